"""Database work of list requests: CPU milliseconds of MariaDB and rows read by each, for accounts of several sizes.

    bench lists                       a thousand, 50,000 and a million orders
    bench lists --orders 200000       only accounts of this size (may be repeated)
    bench lists --repeat 40           requests a row

It fills the database of a private stack, waits until the worker has indexed the orders, and sends each request through
HTTP. Before that it prints the time of the index and its CPU time. The last rows are /metrics, and the queries of a
lease, with as many jobs in the queue. A row above 50 ms of CPU (/metrics: 20 ms, a lease: 5 ms) is marked, and the exit
code is 1.
"""
import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [os.path.join(ROOT, "tests", "api"), HERE]

import pictures  # noqa: E402
from client import ORDERS, Client, Stack, environment_read  # noqa: E402

SIZES = (1000, 50000, 1000000)
EPOCH_MS = 1704067200000
STEP = 100000
# Name, query, bar in ms. {deep} is the second last page.
LISTS = [
    ("first page", "", 50),
    ("deep page", "?page={deep}", 50),
    ("status of most", "?status=complete&page={middle}", 50),
    ("status of few", "?status=expired", 50),
    ("type of half, deep", "?type=antiAi&page={middle}", 50),
    ("channel of a tenth, deep", "?channel=web&page={tenth}", 50),
    ("status, type, channel", "?status=failed&type=watermarkEmbed&channel=web", 50),
    ("rare word", "?keyword=zebra", 50),
    ("common word", "?keyword=holiday", 50),
    ("common word, deep", "?keyword=holiday&page={deep}", 50),
    ("one letter", "?keyword=i", 50),
    ("part of file name", "?keyword=2034", 50),
    ("file name", "?keyword=IMG_2034.jpg", 50),
    ("absent word", "?keyword=nowhere", 50),
    ("prefix of unique words", "?keyword=1", 50),
    ("unique word", "?keyword={unique}", 50),
    ("common words, filters", "?keyword=holiday+img&status=complete&type=antiAi&channel=api", 50),
    ("eight words", "?keyword=holiday+img+jpg+batch+1+2+3+4", 50),
    ("order id", "?keyword={id}", 50),
    ("metadata of all, deep", "?metadata%5Bsource%5D=shop&page={deep}", 50),
    ("metadata of few", "?metadata%5Bcustomer%5D=7", 50),
    ("unique metadata", "?metadata%5Breference%5D=bench-{unique}", 50),
    ("metadata, word, filters", "?metadata%5Bsource%5D=shop&keyword=holiday&status=complete&type=antiAi", 50),
]


def fill(stack, account, count):
    """Inserts orders as the service writes them, some milliseconds apart, and at least an hour old."""
    newest = (int(time.time() * 1000) - 3600000 - EPOCH_MS) << 22
    number = f"({newest} - (({count} - seq) * 20 << 22) + {int(account)})"
    for begin in range(0, count, STEP):
        rows = f"seq_{begin + 1}_to_{min(begin + STEP, count)}"
        stack.sql(f"""SET foreign_key_checks = 0, unique_checks = 0; START TRANSACTION;
            INSERT INTO orders (id, account_id, type, channel, status, name, idempotency_key, body_digest, strength,
            file_count, created_at, updated_at, expires_at, metadata) SELECT {number}, {account},
            ELT(1 + seq % 4 DIV 2, 'antiAi', 'watermarkEmbed'), IF(seq % 10, 'api', 'web'),
            CASE WHEN seq % 1000 = 0 THEN 'expired' WHEN seq % 50 = 0 THEN 'failed' ELSE 'complete' END,
            CONCAT(IF(seq % 100 = 37, 'zebra ', 'holiday '), 'batch ', seq), CONCAT('bench-', seq), UNHEX(SHA2(seq, 256)),
            'high', 1, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) + INTERVAL 7 DAY,
            CONCAT('source\tshop\ncustomer\t', seq % 1000, '\nreference\tbench-', seq, '\n') FROM {rows};
            INSERT INTO files (order_id, position, name, status, updated_at) SELECT {number}, 1,
            CONCAT('IMG_', LPAD(seq % 10000, 4, '0'), '.jpg'), 'complete', UTC_TIMESTAMP(3) FROM {rows}; COMMIT""")
    stack.sql("ANALYZE TABLE orders, files")


def database_seconds(stack):
    """Returns the CPU seconds of the server's threads from nanoseconds in /proc; ticks are too coarse for one request."""
    pid, spent = stack.pid("mariadbd"), 0
    for task in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as file:
                spent += int(file.read().split()[0])
        except OSError:
            continue
    return spent / 1e9


def rows_read(stack):
    return sum(int(value) for _, value in stack.sql("SHOW GLOBAL STATUS LIKE 'Handler_read%'"))


def index_wait(stack, account, count):
    """Waits until the newest segment is less than a step of growth away from the newest order."""
    begin, cpu = time.monotonic(), database_seconds(stack)
    while True:
        rows = stack.sql(f"SELECT COALESCE(SUM(order_count), 0) FROM order_segments WHERE account_id = {account}")
        if int(rows[0][0]) > count - 1024:
            return time.monotonic() - begin, database_seconds(stack) - cpu
        time.sleep(0.2)


def measure(stack, call, repeat):
    """Returns CPU milliseconds of the database, rows read and wall milliseconds of a call, from the best of three series."""
    call()
    series = []
    for _ in range(3):
        rows, cpu, begin = rows_read(stack), database_seconds(stack), time.monotonic()
        for _ in range(repeat):
            call()
        wall = time.monotonic() - begin
        series.append(((database_seconds(stack) - cpu) * 1000 / repeat, (rows_read(stack) - rows) / repeat, wall * 1000 / repeat))
    return min(series)


class Report:
    def __init__(self, stack, repeat):
        self.stack, self.repeat, self.is_bad = stack, repeat, False

    def row(self, name, bar, call, total=""):
        cpu, rows, wall = measure(self.stack, call, self.repeat)
        self.is_bad |= cpu > bar
        print(f"  {name:<26}{cpu:>9.2f}{rows:>10.0f}{wall:>9.1f}{total:>10}{'  ABOVE ' + str(bar) if cpu > bar else ''}", flush=True)
        return cpu


def lists(stack, count, report):
    client = stack.account_new()
    begin = time.monotonic()
    fill(stack, client.account, count)
    filled = time.monotonic() - begin
    seconds, cpu = index_wait(stack, client.account, count)
    print(f"\n{count:,} orders of one account; filled in {filled:.0f} s, indexed in {seconds:.0f} s with {cpu:.1f} s of database CPU")
    sizes = stack.sql("SELECT table_name, ROUND((data_length + index_length) / 1048576, 1) FROM information_schema.tables "
                      "WHERE table_schema = DATABASE() AND table_name IN ('orders', 'files', 'order_segments', 'order_words')")
    print("  tables in MiB: " + ", ".join(f"{name} {size}" for name, size in sizes))
    print(f"  {'':<26}{'CPU ms':>9}{'rows':>10}{'wall ms':>9}{'total':>10}")
    places = {"deep": max(1, count // 10 - 1), "middle": max(1, count // 20 - 1), "tenth": max(1, count // 100 - 1),
              "unique": count - 7, "id": client.list(limit=1).items[0]["orderId"]}
    with no_worker(stack):
        for name, query, bar in LISTS:
            path = ORDERS + query.format(**places)
            report.row(name, bar, lambda path=path: answered(client, path), answered(client, path).page["totalItems"])
    return client


@contextlib.contextmanager
def no_worker(stack):
    """Stops the worker, because its periodic work would be measured, too."""
    stack.part("stop", "worker")
    yield
    stack.part("start", "worker")


def answered(client, path):
    answer = client.get(path)
    if answer.status != 200:
        sys.exit(f"bench lists: {path}: {answer}")
    return answer


def lease_queries(stack):
    """Returns the worker's queries on the queue, from an order's creation to the end."""
    client, data = stack.account_new(), pictures.jpeg(300, 300)
    stack.sql("SET GLOBAL log_output = 'TABLE'; TRUNCATE mysql.general_log; SET GLOBAL general_log = 1")
    stack.connections_kill()
    try:
        if client.order_whole([("a.jpg", data)])["status"] != "complete":
            sys.exit("bench lists: an order failed")
    finally:
        stack.sql("SET GLOBAL general_log = 0")
    rows = stack.sql("SELECT DISTINCT argument FROM mysql.general_log WHERE command_type = 'Execute' AND user_host LIKE 'imgward%' "
                     "AND argument LIKE 'SELECT %FROM jobs %' AND argument NOT LIKE '%slice%' AND argument NOT LIKE '%?%'")
    return [row[0] for row in rows]


def purge_wait(stack):
    """Waits until the server has removed old versions of rows, which would be read and measured."""
    end = time.monotonic() + 120
    while int(stack.sql("SHOW GLOBAL STATUS LIKE 'Innodb_history_list_length'")[0][1]) > 1 and time.monotonic() < end:
        time.sleep(0.5)


def queue(stack, report, owner, count):
    """Measures a lease and /metrics while as many jobs of a suspended account are queued."""
    stack.sql(f"UPDATE accounts SET status = 'suspended' WHERE id = {owner}")
    for begin in range(0, count, STEP):
        stack.sql(f"""SET foreign_key_checks = 0, unique_checks = 0; INSERT INTO jobs (account_id, order_id, kind, available_at, created_at,
            updated_at) SELECT account_id, id, 'protect', NOW(3), NOW(3), NOW(3) FROM orders WHERE account_id = {owner}
            ORDER BY id LIMIT {min(STEP, count - begin)} OFFSET {begin}""")
    stack.sql("ANALYZE TABLE jobs")
    purge_wait(stack)
    queries = ";".join(lease_queries(stack))
    with no_worker(stack):
        report.row(f"a lease, {count:,} queued", 5, lambda: stack.sql(queries))
        report.row(f"/metrics, {count:,} queued", 20, lambda: answered(Client(stack), "/metrics"))
    for _ in range(0, count, STEP):
        stack.sql(f"UPDATE jobs SET status = 'done' WHERE status = 'queued' AND account_id = {owner} LIMIT {STEP}")
    stack.sql(f"UPDATE accounts SET status = 'active' WHERE id = {owner}")
    with no_worker(stack):
        purge_wait(stack)
        report.row(f"/metrics, {count:,} done", 20, lambda: answered(Client(stack), "/metrics"))


def main():
    parser = argparse.ArgumentParser(prog="bench lists", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--orders", type=int, action="append")
    parser.add_argument("--repeat", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="imgward-bench.") as var:
        environment = {**os.environ, "IMGWARD_VAR": var}
        subprocess.run([os.path.join(ROOT, "dev"), "up"], env=environment, check=True, stdout=subprocess.DEVNULL)
        try:
            stack = Stack(environment_read(os.path.join(var, "dev.env")))
            report = Report(stack, options.repeat)
            for count in options.orders or SIZES:
                queue(stack, report, lists(stack, count, report).account, count)
        finally:
            subprocess.run([os.path.join(ROOT, "dev"), "down"], env=environment, check=True, stdout=subprocess.DEVNULL)
    return report.is_bad


if __name__ == "__main__":
    sys.exit(main())
