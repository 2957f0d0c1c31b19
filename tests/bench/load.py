"""Behaviour of the service under high and long load.

    bench load soak [SECONDS]     reads and creations at full speed: memory, descriptors, statements, times and cost a minute
                                  (BENCH_ORDERS=N: the account has N orders at the beginning)
    bench load drain [ORDERS]     that many orders queued together: throughput, longest pause
    bench load list [ORDERS]      limit=-1 over that many orders: bytes, seconds, memory of the pool
    bench load uploads [MANY]     MANY parallel uploads of 5 MB, then 20 of 50 MB
    bench load redis              creation, query and processing with Redis, without it, and with a silent one

Without arguments, all parts run with small numbers. The exit code is 1 if something was lost, leaked or refused.
"""
import asyncio
import json
import os
import random
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "api"), HERE]

import pictures  # noqa: E402
from api import GROUPS, TICKS, answer_read, cpu_seconds, creation, parents, private_kib, reading, seed, tree  # noqa: E402
from client import ORDERS, Stack, environment_read  # noqa: E402

SMALL = {"soak": 30, "drain": 200, "list": 20000, "uploads": 40, "redis": 1}
FULL = {"soak": 600, "drain": 10000, "list": 100000, "uploads": 300, "redis": 1}
CLIENTS = 32


def private_of(pid):
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Private_"))


def percentile(times, part):
    times = sorted(times)
    return 1000 * times[min(len(times) - 1, int(len(times) * part))]


# ---------------------------------------------------------------- soak
class Census:
    """Memory, descriptors and prepared statements of the pool and the worker."""

    def __init__(self, stack):
        self.stack = stack

    def take(self):
        table = parents()
        pool = sorted(tree(table, self.stack.pid("api")) - {self.stack.pid("api")})
        watched = {"pool": pool, "api supervisor": [self.stack.pid("api")], "worker": [self.stack.pid("worker")]}
        [[_, statements]] = self.stack.sql("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'")
        [[_, connections]] = self.stack.sql("SHOW GLOBAL STATUS LIKE 'Threads_connected'")
        return {"pids": pool, "statements": int(statements), "connections": int(connections),
                "memory": {name: max(private_of(pid) for pid in pids) for name, pids in watched.items()},
                "median": int(statistics.median(private_of(pid) for pid in pool)),
                "descriptors": {name: max(len(os.listdir(f"/proc/{pid}/fd")) for pid in pids) for name, pids in watched.items()}}


# Counters of the database between two samples; the last four are current values.
COUNTERS = ("Handler_read_key", "Handler_read_next", "Handler_read_prev", "Innodb_data_fsyncs", "Innodb_os_log_written", "Innodb_buffer_pool_reads",
            "Innodb_buffer_pool_pages_flushed", "Innodb_log_waits", "Innodb_row_lock_time",
            "Innodb_checkpoint_age", "Innodb_checkpoint_max_age", "Innodb_history_list_length", "Innodb_buffer_pool_pages_dirty")
STANDING = 4


def machine_seconds():
    """Returns the CPU seconds used on this machine by any process, including kernel and stolen time."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, irq, softirq, steal = (int(word) / TICKS for word in file.readline().split()[1:9])
    return user + nice + system + irq + softirq + steal


class Toil:
    """The cost per request since the last sample: CPU of each group of processes, and the database's counters."""

    def __init__(self, stack):
        self.stack = stack
        self.last = self.look()

    def look(self):
        rows = self.stack.sql("SHOW GLOBAL STATUS WHERE Variable_name IN (" + ", ".join(f"'{name}'" for name in COUNTERS) + ")")
        return {**cpu_seconds(self.stack), "clients": sum(os.times()[:4])}, {name: int(value) for name, value in rows}, machine_seconds()

    def line(self, requests):
        (was_cpu, was, was_busy), (cpu, now, busy) = self.last, self.look()
        self.last = cpu, now, busy
        others = busy - was_busy - sum(cpu.values()) + sum(was_cpu.values())
        grown = {name: now[name] - (0 if name in COUNTERS[-STANDING:] else was[name]) for name in COUNTERS}
        read = sum(value for name, value in grown.items() if name.startswith("Handler"))
        return ("          CPU s of 1000: " + ", ".join(f"{group} {(cpu[group] - was_cpu[group]) * 1000 / requests:.3f}" for group in (*GROUPS, "clients"))
                + f"; others {others:.1f} CPU s in all; of a request: {read / requests:.0f} rows read, {grown['Innodb_data_fsyncs'] / requests:.2f} fsync, "
                f"{grown['Innodb_os_log_written'] / requests / 1000:.1f} kB of log, {grown['Innodb_buffer_pool_reads'] / requests:.3f} pages read, "
                f"{grown['Innodb_buffer_pool_pages_flushed'] / requests:.2f} written; {grown['Innodb_log_waits']} waits for the log, "
                f"{grown['Innodb_row_lock_time']} ms for rows; checkpoint {grown['Innodb_checkpoint_age'] / 1e6:.0f} of "
                f"{grown['Innodb_checkpoint_max_age'] / 1e6:.0f} MB behind, {grown['Innodb_buffer_pool_pages_dirty']} pages dirty, "
                f"history {grown['Innodb_history_list_length']}")


async def soak_client(place, tls, makes, end, times, bad):
    reader = writer = None
    while time.monotonic() < end:
        if writer is None:
            reader, writer = await asyncio.open_connection(place.hostname, place.port, ssl=tls)
        name, make, wanted = random.choice(makes)
        begin = time.monotonic()
        writer.write(make())
        status, is_last = await answer_read(reader)
        times.append((name, time.monotonic() - begin))
        if status != wanted:
            bad.append(status)
        if is_last:
            writer.close()
            writer = None
    if writer is not None:
        writer.close()


def soak_requests(client):
    """Returns requests in equal parts: name, maker, expected status."""
    orders = [client.create().data["orderId"] for _ in range(50)]
    return [("POST 1", creation(client.key, 1), 201), ("POST 10", creation(client.key, 10), 201),
            ("GET", reading(client.key, lambda: f"{ORDERS}/{random.choice(orders)}"), 200),
            ("list", reading(client.key, lambda: f"{ORDERS}?page={random.randint(1, 50)}"), 200),
            ("statistics", reading(client.key, lambda: f"{ORDERS}/stats/recent"), 200)]


def endpoints_line(part, makes):
    """Returns the median and 99th percentile of every endpoint."""
    by_name = {name: [took for other, took in part if other == name] for name, *_ in makes}
    return "          ms, p50 and p99: " + ", ".join(f"{name} {percentile(times, 0.5):.0f} {percentile(times, 0.99):.0f}"
                                                     for name, times in by_name.items() if times)


def soak(stack, seconds):
    client = stack.account_new()
    before = int(os.environ.get("BENCH_ORDERS", 0))
    if before:
        seed(stack, client.account, before)
    makes = soak_requests(client)
    times, bad, census, toil = [], [], Census(stack), Toil(stack)
    begin = time.monotonic()
    step = max(5, min(60, seconds // 5))

    async def run():
        tls, place = ssl.create_default_context(cafile=stack.environment["IMGWARD_CA"]), urllib.parse.urlsplit(stack.url)
        await asyncio.gather(*(soak_client(place, tls, makes, begin + seconds, times, bad) for _ in range(CLIENTS)))
    runner = threading.Thread(target=lambda: asyncio.run(run()))
    runner.start()
    print(f"soak: {CLIENTS} clients for {seconds} s, steps of {step} s, {before} orders there before\n{'second':>8}{'requests':>10}{'p50 ms':>8}"
          f"{'p99 ms':>8}{'pool KiB':>10}{'largest':>9}{'worker':>8}{'fds':>5}{'statements':>12}{'connections':>13}")
    rows, last = [], 0
    while runner.is_alive():
        # The time for sampling must not make the steps longer.
        time.sleep(max(0.1, min(begin + step * (len(rows) + 1), begin + seconds) - time.monotonic()))
        part = times[last:]
        last += len(part)
        if len(part) < 20:
            break
        now, took = census.take(), [took for _, took in part]
        rows.append((now, percentile(took, 0.99)))
        print(f"{time.monotonic() - begin:>8.0f}{len(part):>10}{percentile(took, 0.5):>8.1f}{rows[-1][1]:>8.1f}{now['median']:>10}"
              f"{now['memory']['pool']:>9}{now['memory']['worker']:>8}{now['descriptors']['pool']:>5}{now['statements']:>12}"
              f"{now['connections']:>13}\n{endpoints_line(part, makes)}\n{toil.line(len(part))}", flush=True)
    runner.join()
    return soak_judge(rows, times, bad)


def soak_judge(rows, times, bad):
    # The first step fills prepared statements, arenas and other caches.
    first, end = rows[min(1, len(rows) - 1)][0], rows[-1][0]
    grown = end["median"] / first["median"] - 1
    violations = []
    if grown > 0.05:
        violations.append(f"a process of the pool grew by {100 * grown:.1f} %")
    if end["descriptors"]["pool"] > first["descriptors"]["pool"] + 2 or end["descriptors"]["worker"] > first["descriptors"]["worker"] + 2:
        violations.append(f"descriptors: {first['descriptors']} then {end['descriptors']}")
    if end["statements"] > first["statements"] * 1.1 + 20:
        violations.append(f"statements: {first['statements']} then {end['statements']}")
    if bad:
        violations.append(f"{len(bad)} answers of {sorted(set(bad))}")
    print(f"soak: {len(times)} requests, memory {100 * grown:+.1f} %, p99 of the last step {100 * (rows[-1][1] / rows[0][1] - 1):+.0f} % "
          "of the first")
    return violations


# ---------------------------------------------------------------- drain
def shard_of(order):
    """Returns the folder of an order in the store, computed as in src/service/files/store_local.c."""
    return f"{(order * 11400714819323198485 % 2**64) >> 52:03x}"


def queue_fill(stack, account, count):
    """Inserts confirmed orders of one small picture each, as the service writes them."""
    picture = pictures.jpeg(64, 64)
    source = os.path.join(stack.store, "tmp", "bench")
    with open(source, "wb") as file:
        file.write(picture)
    first = ((int(time.time()) - 1704067200 - count) * 1000) << 22
    orders = [first + (number * 1000 << 22) + int(account) for number in range(count)]
    for order in orders:
        folder = os.path.join(stack.store, "in", shard_of(order))
        os.makedirs(folder, mode=0o750, exist_ok=True)
        os.link(source, os.path.join(folder, f"{order}.1.7"))
    os.unlink(source)
    for at in range(0, count, 250):
        part = orders[at:at + 250]
        rows = ", ".join(f"({order}, {account}, 'antiAi', 'inProgress', 'drain', 'drain-{order}', REPEAT('x', 32), 'high', 1, NOW(3), "
                         "NOW(3), NOW(3))" for order in part)
        files = ", ".join(f"({order}, 1, 'small.jpg', 'uploaded', 'in/{order}/1.7', 'jpeg', {len(picture)}, REPEAT('x', 32), NOW(3), NOW(3))"
                          for order in part)
        stack.sql("INSERT INTO orders (id, account_id, type, status, name, idempotency_key, body_digest, strength, file_count, "
                  f"created_at, updated_at, started_at) VALUES {rows}; INSERT INTO files (order_id, position, name, status, store_key, "
                  f"format, size_bytes, digest, uploaded_at, updated_at) VALUES {files}")
    stack.sql("INSERT INTO jobs (account_id, order_id, file_id, kind, available_at, created_at, updated_at) SELECT o.account_id, o.id, "
              f"f.id, 'protect', NOW(3), NOW(3), NOW(3) FROM orders o JOIN files f ON f.order_id = o.id WHERE o.account_id = {account}")


def drain(stack, count):
    client = stack.account_new()
    stack.ctl("queue", "pause")
    time.sleep(6)
    begin = time.monotonic()
    queue_fill(stack, client.account, count)
    wanted = count
    print(f"drain: {wanted} orders queued in {time.monotonic() - begin:.0f} s")
    stack.ctl("queue", "resume")
    begin, ended, pace, last_change, longest = time.monotonic(), 0, [], time.monotonic(), 0.0
    while ended < wanted and time.monotonic() - last_change < 120:
        time.sleep(1)
        [[done]] = stack.sql(f"SELECT COUNT(*) FROM orders WHERE account_id = {client.account} AND status = 'complete'")
        now = time.monotonic()
        if int(done) > ended:
            longest = max(longest, now - last_change) if ended else longest
            last_change = now
        pace.append(int(done) - ended)
        ended = int(done)
    seconds = time.monotonic() - begin
    middle = sorted(pace[len(pace) // 10: len(pace) - len(pace) // 10] or pace)
    print(f"drain: {ended} of {wanted} ended in {seconds:.0f} s, {ended / seconds:.1f} a second; a second's orders: median "
          f"{statistics.median(middle):.0f}, fewest {middle[0]}, most {middle[-1]}; longest pause {longest:.1f} s")
    violations = [] if ended == wanted else [f"{ended} of {wanted} orders ended"]
    return violations + ([f"a pause of {longest:.0f} s"] if longest > 20 else [])


# ---------------------------------------------------------------- list
def long_list(stack, count):
    client = stack.account_new()
    seed(stack, client.account, count)
    client.list(limit=10)
    largest, is_over = [max(private_kib(stack))], threading.Event()

    def watch():
        while not is_over.wait(0.03):
            largest.append(max(private_kib(stack)))
    watcher = threading.Thread(target=watch)
    watcher.start()
    begin = time.monotonic()
    answer = client.get(f"{ORDERS}?limit=-1", timeout=600)
    seconds = time.monotonic() - begin
    is_over.set()
    watcher.join()
    got = len(answer.items)
    print(f"list: {got} orders, {len(answer.body) / 1e6:.1f} MB in {seconds:.1f} s; the largest process of the pool had "
          f"{largest[0]} KiB before, {max(largest)} KiB at most meanwhile")
    violations = [] if got == count else [f"{got} of {count} orders in the list"]
    return violations + ([f"the pool grew from {largest[0]} to {max(largest)} KiB"] if max(largest) > largest[0] + 1024 else [])


# ---------------------------------------------------------------- uploads
async def body_put(reader, writer, chunk, left, statuses, times, begin):
    try:
        while left > 0:
            writer.write(chunk[:min(left, len(chunk))])
            await writer.drain()
            left -= min(left, len(chunk))
    except OSError:
        pass  # refused during the upload: the response has the reason
    try:
        status, _ = await answer_read(reader)
        writer.close()
    except (OSError, asyncio.IncompleteReadError) as error:
        status = repr(error)
    statuses.append(status)
    times.append(time.monotonic() - begin)


async def put_all(stack, urls, size, statuses, times):
    """Sends all request headers first. Otherwise one process, which encrypts for hundreds of clients, would let the last TLS
    handshakes time out."""
    chunk, head = os.urandom(1 << 16), pictures.jpeg(64, 64)[:600]
    tls, place = ssl.create_default_context(cafile=stack.environment["IMGWARD_CA"]), urllib.parse.urlsplit(stack.url)
    begin, wires = time.monotonic(), []
    for url in urls:
        path = urllib.parse.urlsplit(url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port, ssl=tls)
        writer.write(f"PUT {path.path}?{path.query} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {size}\r\n\r\n".encode() + head)
        wires.append((reader, writer))
    await asyncio.gather(*(body_put(reader, writer, chunk, size - len(head), statuses, times, begin) for reader, writer in wires))


def uploads_at_once(stack, client, count, megabytes):
    urls = []
    for at in range(0, count, 100):
        urls += [file["uploadUrl"] for file in client.create([f"{number}.jpg" for number in range(min(100, count - at))]).data["files"]]
    statuses, times = [], []
    begin = time.monotonic()
    asyncio.run(put_all(stack, urls, megabytes * 1000 * 1000, statuses, times))
    seconds = time.monotonic() - begin
    print(f"uploads: {count} of {megabytes} MB at once: {seconds:.1f} s, {count * megabytes / seconds:.0f} MB/s; slowest {max(times):.1f} s; "
          f"answers {dict((status, statuses.count(status)) for status in set(statuses))}; largest process of the pool {max(private_kib(stack))} KiB")
    left = os.listdir(os.path.join(stack.store, "tmp"))
    return ([f"{statuses.count(201)} of {count} uploads of {megabytes} MB were taken: {set(statuses)}"] if statuses.count(201) != count else []) + \
        ([f"{len(left)} unfinished files are left"] if left else [])


def uploads(stack, count):
    client = stack.account_new()
    return uploads_at_once(stack, client, count, 5) + uploads_at_once(stack, client, max(2, count // 15), 50)


# ---------------------------------------------------------------- Redis unavailable
def times_of(stack, client, rounds=40):
    """Returns median and longest milliseconds of a creation, of a query, and from confirmation to completion, over some
    orders."""
    made, asked, done = [], [], []
    picture = pictures.jpeg(128, 128)
    for number in range(rounds):
        begin = time.monotonic()
        created = client.create()
        made.append(time.monotonic() - begin)
        begin = time.monotonic()
        client.detail(created.data["orderId"])
        asked.append(time.monotonic() - begin)
        if number % 8 == 0:
            client.upload(created.data["files"][0]["uploadUrl"], picture)
            begin = time.monotonic()
            client.confirm(created.data["orderId"])
            client.wait(created.data["orderId"], 60)
            done.append(time.monotonic() - begin)
    return [1000 * value for value in (statistics.median(made), max(made), statistics.median(asked), max(asked),
                                       statistics.median(done), max(done))]


def redis_away(stack, _):
    client, violations = stack.account_new(), []
    print(f"redis: milliseconds{'':<8}{'create':>8}{'worst':>8}{'query':>8}{'worst':>8}{'confirm to end':>16}{'worst':>8}")

    def line(name):
        print(f"{name:<26}" + "{:>8.1f}{:>8.1f}{:>8.1f}{:>8.1f}{:>16.0f}{:>8.0f}".format(*times_of(stack, client)), flush=True)
    line("  there")
    stack.part("stop", "redis")
    line("  away")
    stack.part("start", "redis")
    redis = stack.pid("redis")
    time.sleep(2)
    os.kill(redis, signal.SIGSTOP)
    line("  there and silent")
    os.kill(redis, signal.SIGCONT)
    time.sleep(3)
    line("  back")
    return violations


PARTS = {"soak": soak, "drain": drain, "list": long_list, "uploads": uploads, "redis": redis_away}


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # also stops the stack
    words = sys.argv[1:]
    sizes = FULL if "--full" in words else SMALL
    words = [word for word in words if word != "--full"]
    wanted = [word for word in words if word in PARTS] or list(PARTS)
    given = next((int(word) for word in words if word.isdigit()), None)
    with tempfile.TemporaryDirectory(prefix="imgward-bench.") as var:
        environment = {**os.environ, "IMGWARD_VAR": var}
        subprocess.run([os.path.join(ROOT, "dev"), "up"], env=environment, check=True, stdout=subprocess.DEVNULL)
        violations = []
        try:
            stack = Stack(environment_read(os.path.join(var, "dev.env")))
            print(f"machine: {os.cpu_count()} cores, {len(os.sched_getaffinity(0))} of them for this run; load {os.getloadavg()[0]:.1f} before the start")
            for name in wanted:
                violations += [f"{name}: {sentence}" for sentence in PARTS[name](stack, given or sizes[name])]
        finally:
            subprocess.run([os.path.join(ROOT, "dev"), "down"], env=environment, check=True, stdout=subprocess.DEVNULL)
    print("\n".join(violations) if violations else "load: nothing lost, leaked or refused")
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
