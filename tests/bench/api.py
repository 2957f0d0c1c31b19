"""CPU seconds per 1000 requests, by group of processes, next to the floors of doc/architecture.md.

It uses a private stack and 64 clients on kept TLS connections, opened before the measurement. The last row opens a
connection for each request. Endpoints alternate for several rounds, so that disturbances affect all, and the
median round is printed. The CPU time of nginx, the API pool, MariaDB and Redis comes from /proc; that of the
clients is left out.
"""
import asyncio
import collections
import json
import multiprocessing
import os
import random
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import uuid

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "api"))

import openapi  # noqa: E402
from client import ORDERS, Stack, environment_read  # noqa: E402

# Tests compare every response with the document; without this, the comparison would be measured, too.
openapi.check = lambda *_: None

CLIENTS, GENERATORS = 64, 2
ROUNDS = int(os.environ.get("BENCH_ROUNDS", 5))
REQUESTS = int(os.environ.get("BENCH_REQUESTS", 2000))
GROUPS = ("nginx", "api", "mariadbd", "redis")
TICKS = os.sysconf("SC_CLK_TCK")
SMALL, LARGE = 1000, 50000


# ---------------------------------------------------------------- CPU time from /proc
def parents():
    """Returns pid -> (parent, CPU seconds of the process and its reaped children)."""
    table = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                words = file.read().rsplit(") ", 1)[1].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        table[int(name)] = (int(words[1]), sum(map(int, words[11:15])) / TICKS)
    return table


def tree(table, top):
    members, grown = {top}, True
    while grown:
        more = {pid for pid, (parent, _) in table.items() if parent in members} - members
        members |= more
        grown = bool(more)
    return members


def cpu_seconds(stack):
    table = parents()
    return {group: sum(table[pid][1] for pid in tree(table, stack.pid(group)) if pid in table) for group in GROUPS}


def private_kib(stack):
    """Returns the private memory of each pool process, in KiB."""
    table = parents()
    sizes = []
    for pid in tree(table, stack.pid("api")) - {stack.pid("api")}:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            sizes.append(sum(int(line.split()[1]) for line in file if line.startswith("Private_")))
    return sizes


# ---------------------------------------------------------------- requests
def creation(key, count):
    files = [{"fileName": f"picture-{number}.jpg"} for number in range(count)]

    def make():
        body = json.dumps({"idempotencyKey": uuid.uuid4().hex, "files": files}).encode()
        return (f"POST {ORDERS}/anti-ai HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n"
                f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body
    return make


def reading(key, remotes):
    def make():
        return f"GET {remotes()} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n".encode()
    return make


async def answer_read(reader):
    """Reads one response; returns status and length."""
    head = await reader.readuntil(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
    size = int(headers.get("content-length", -1))
    if size >= 0:
        await reader.readexactly(size)
    else:
        size = 0
        while True:
            chunk = int((await reader.readline()).split(b";")[0], 16)
            await reader.readexactly(chunk + 2)
            size += chunk
            if chunk == 0:
                break
    return int(lines[0].split()[1]), headers.get("connection") == "close"


class Client:
    """A connection, which is reopened if the server closes it or is_kept is false."""

    def __init__(self, place, tls, is_kept):
        self.place, self.tls, self.is_kept = place, tls, is_kept
        self.writer = None

    async def open(self):
        self.reader, self.writer = await asyncio.open_connection(self.place.hostname, self.place.port, ssl=self.tls)

    def close(self):
        if self.writer is not None:
            self.writer.close()
        self.writer = None

    async def run(self, make, left, wanted, times):
        while left[0] > 0:
            left[0] -= 1
            begin = time.perf_counter()
            if self.writer is None:
                await self.open()
            self.writer.write(make())
            status, is_last = await answer_read(self.reader)
            times.append(time.perf_counter() - begin)
            if status != wanted:
                raise RuntimeError(f"status {status} instead of {wanted}")
            if is_last or not self.is_kept:
                self.close()


def generator(url, ca, request, count, queue, gate):
    """Runs a process of clients. Puts the seconds of each request into the queue, and passes the gate three times."""
    async def run():
        tls, times, left = ssl.create_default_context(cafile=ca), [], [count]
        place = urllib.parse.urlsplit(url)
        clients = [Client(place, tls, request.is_kept) for _ in range(CLIENTS // GENERATORS)]
        if request.is_kept:
            await asyncio.gather(*(client.open() for client in clients))
        gate.wait()
        gate.wait()
        await asyncio.gather(*(client.run(request.make, left, request.wanted, times) for client in clients))
        gate.wait()
        for client in clients:
            client.close()
        return times
    try:
        queue.put(asyncio.run(run()))
    except Exception as error:
        queue.put(repr(error))
        gate.abort()


def measured(stack, request, count):
    """Runs count requests; returns CPU seconds per 1000 by group, requests a second, and times."""
    queue, gate = multiprocessing.Queue(), multiprocessing.Barrier(GENERATORS + 1, timeout=300)
    workers = [multiprocessing.Process(target=generator, args=(stack.url, stack.environment["IMGWARD_CA"], request,
                                                               count // GENERATORS, queue, gate)) for _ in range(GENERATORS)]
    for worker in workers:
        worker.start()
    try:
        gate.wait()
        before, begin = cpu_seconds(stack), time.perf_counter()
        gate.wait()
        gate.wait()
        seconds, after = time.perf_counter() - begin, cpu_seconds(stack)
    except threading.BrokenBarrierError:
        seconds = before = after = None
    answers = [queue.get(timeout=300) for _ in workers]
    for worker in workers:
        worker.join()
    broken = [answer for answer in answers if isinstance(answer, str)]
    if broken:
        sys.exit(f"bench api: {broken[0]}")
    times = sorted(sum(answers, []))
    return {group: (after[group] - before[group]) * 1000 / len(times) for group in GROUPS}, len(times) / seconds, times


# ---------------------------------------------------------------- data
def seed(stack, account, count):
    """Inserts orders of one file each, a second apart, as the service writes them."""
    first = ((int(time.time()) - 1704067200 - count) * 1000) << 22
    # Order ids depend only on the time, so the account is added to distinguish the orders of two accounts.
    number = f"({first} + (seq * 1000 << 22) + {int(account)})"
    stack.sql(f"""INSERT INTO orders (id, account_id, type, status, name, idempotency_key, body_digest, strength, file_count,
        created_at, updated_at, expires_at) SELECT {number}, {account}, 'antiAi', IF(seq % 3, 'complete', 'pending'),
        CONCAT('order ', seq), CONCAT('seed-', seq), UNHEX(SHA2(seq, 256)), 'high', 1,
        UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) + INTERVAL 7 DAY FROM seq_1_to_{count};
        INSERT INTO files (order_id, position, name, updated_at) SELECT {number}, 1, CONCAT('file-', seq, '.jpg'),
        UTC_TIMESTAMP(3) FROM seq_1_to_{count}; ANALYZE TABLE orders, files""")


# A request to measure. floor may be None; wanted is the expected status.
Request = collections.namedtuple("Request", "name floor make wanted is_kept", defaults=[True])


def endpoints(stack):
    """Returns the requests to measure, and the client with the long list."""
    client = stack.account_new()
    for limit in ("ordersPending", "filesPending", "promisedBytes", "filesPerDay"):
        stack.ctl("account", "quota", client.account, limit, "0")
    orders = [client.create().data["orderId"] for _ in range(50)]
    small, large = stack.account_new(), stack.account_new()
    seed(stack, small.account, SMALL)
    seed(stack, large.account, LARGE)
    detail = reading(client.key, lambda: f"{ORDERS}/{random.choice(orders)}")
    return [
        Request("POST, 1 file", 0.25, creation(client.key, 1), 201),
        Request("POST, 10 files", 0.37, creation(client.key, 10), 201),
        Request("GET order", 0.17, detail, 200),
        Request("list of 1,000 orders", 0.68, reading(small.key, lambda: f"{ORDERS}?page={random.randint(1, 50)}"), 200),
        Request("list of 50,000 orders", 0.68, reading(large.key, lambda: f"{ORDERS}?page={random.randint(1, 50)}"), 200),
        Request("GET, a connection each", None, detail, 200, False),
    ], large


def report(results, table):
    print(f"\nCPU seconds per 1000 requests, median of {ROUNDS} rounds of {REQUESTS} requests, {CLIENTS} clients, TLS\n")
    print(f"{'':<23}" + "".join(f"{group:>10}" for group in GROUPS)
          + f"{'total':>9}{'floor':>8}{'times':>7}{'req/s':>8}{'p50 ms':>8}{'p99 ms':>8}")
    for name, floor, *_ in table:
        rounds = results[name]
        groups = [statistics.median(one[0][group] for one in rounds) for group in GROUPS]
        total = statistics.median(sum(one[0].values()) for one in rounds)
        times = sorted(sum((one[2] for one in rounds), []))
        beside = f"{floor:>8.2f}{total / floor:>7.2f}" if floor else " " * 15
        print(f"{name:<23}" + "".join(f"{value:>10.3f}" for value in groups)
              + f"{total:>9.3f}{beside}{statistics.median(one[1] for one in rounds):>8.0f}"
              + f"{1000 * times[len(times) // 2]:>8.1f}{1000 * times[len(times) * 99 // 100]:>8.1f}")


def memory_of_a_long_list(stack, client):
    before = max(private_kib(stack))
    begin = time.perf_counter()
    answer = client.get(f"{ORDERS}?limit=-1", timeout=120)
    seconds = time.perf_counter() - begin
    after = max(private_kib(stack))
    print(f"\nlimit=-1 over {len(answer.items):,} orders: {len(answer.body) / 1e6:.1f} MB in {seconds:.2f} s; the largest process "
          f"of the pool has {before} KiB of private memory before and {after} KiB after")


def bench(stack):
    print(f"machine: {os.cpu_count()} cores; load {os.getloadavg()[0]:.1f} before the start")
    table, large = endpoints(stack)
    results = {request.name: [] for request in table}
    for number in range(ROUNDS + 1):
        for request in table:
            one = measured(stack, request, REQUESTS)
            # The first round fills caches and prepares statements.
            if number > 0:
                results[request.name].append(one)
    report(results, table)
    memory_of_a_long_list(stack, large)
    sizes = private_kib(stack)
    print(f"private memory of a process of the pool: median {statistics.median(sizes):.0f} KiB, largest {max(sizes)} KiB "
          f"after {(ROUNDS + 1) * REQUESTS * len(table):,} requests among {len(sizes)} processes")


def main():
    if os.environ.get("IMGWARD_ENV"):
        bench(Stack(environment_read(os.environ["IMGWARD_ENV"])))
        return
    with tempfile.TemporaryDirectory(prefix="imgward-bench.") as var:
        environment = {**os.environ, "IMGWARD_VAR": var}
        subprocess.run([os.path.join(ROOT, "dev"), "up"], env=environment, check=True, stdout=subprocess.DEVNULL)
        try:
            bench(Stack(environment_read(os.path.join(var, "dev.env"))))
        finally:
            subprocess.run([os.path.join(ROOT, "dev"), "down"], env=environment, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
