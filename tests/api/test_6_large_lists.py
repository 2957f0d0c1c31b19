"""Contract section 6 for a large account: database work and memory use."""
import json
import os
import re
import time

import pytest

from client import ORDERS, Client, children

COUNT = 20000
# 2024-01-01 UTC, the epoch of order ids; see src/model/order.h.
EPOCH_MS = 1704067200000


@pytest.fixture(scope="module")
def large(stack):
    """A client of an account with 20,000 orders of one file each, at least an hour old.

    The orders do not expire when a later test moves the clock, because that takes the worker minutes on a slow machine.
    """
    client = stack.account_new()
    newest = ((int(time.time() * 1000) - 3600000 - EPOCH_MS) << 22) + int(client.account)
    stack.sql(f"""
        INSERT INTO orders (id, account_id, type, status, name, idempotency_key, body_digest, strength, file_count,
                            created_at, updated_at, expires_at, metadata)
        SELECT {newest} - (seq << 22), {client.account}, 'antiAi', 'complete', CONCAT('bulk ', seq), CONCAT('bulk-', seq),
               UNHEX(SHA2(seq, 256)), 'high', 1, NOW(3), NOW(3), NOW(3) + INTERVAL 400 DAY,
               CONCAT('a key of a usual length for customers\\t', seq, '\\nanother key of a usual length for them\\tvalue\\n') FROM seq_1_to_{COUNT}""")
    stack.sql(f"""
        INSERT INTO files (order_id, position, name, status, updated_at)
        SELECT id, 1, CONCAT(name, '.jpg'), 'complete', NOW(3) FROM orders WHERE account_id = {client.account}""")
    # Otherwise the server would update the statistics later.
    stack.sql("ANALYZE TABLE orders, files")
    return client


def statements(stack, call, user="imgward_api"):
    """Returns the statements that a user of the database sent during call."""
    stack.sql("SET GLOBAL log_output = 'TABLE'; TRUNCATE mysql.general_log; SET GLOBAL general_log = 1")
    try:
        # The log shows the values of a statement only if it was prepared after the log was enabled.
        stack.connections_kill()
        call()
    finally:
        stack.sql("SET GLOBAL general_log = 0")
    rows = stack.sql("SELECT argument FROM mysql.general_log WHERE command_type = 'Execute' "
                     f"AND user_host LIKE '{user}%'")
    # The statement of a stream begins with a longer time limit, which is removed.
    return [re.sub(r"^SET STATEMENT max_statement_time *= *[0-9.]+ FOR ", "", row[0].replace("\\n", "\n").replace("\\\\", "\\"), flags=re.I)
            for row in rows]


def plan(stack, statement):
    """Returns EXPLAIN of a statement: one dictionary per table."""
    names = ["id", "select_type", "table", "type", "possible_keys", "key", "key_len", "ref", "rows", "extra"]
    return [dict(zip(names, row)) for row in stack.sql("EXPLAIN " + statement)]


def list_statement(stack, call):
    """Returns the statement that reads the orders of a list."""
    return next(text for text in statements(stack, call) if text.startswith("SELECT o.id, o.type"))


@pytest.mark.parametrize("query, index", [({}, "orders_list"), ({"status": "complete"}, "orders_list_status"),
                                          ({"type": "antiAi"}, "orders_list_type")])
def test_a_page_only_reads_an_index(large, stack, query, index):
    statement = list_statement(stack, lambda: large.list(page=40, limit=10, **query))
    inner = [row for row in plan(stack, statement) if row["select_type"] == "DERIVED"]
    assert len(inner) == 1 and inner[0]["key"] == index, inner
    assert "Using index" in inner[0]["extra"] and "filesort" not in inner[0]["extra"], inner
    outer = [row for row in plan(stack, statement) if row["table"] == "o" and row["select_type"] == "PRIMARY"]
    assert [row["key"] for row in outer] == ["PRIMARY"], outer


def test_everything_is_read_in_the_order_of_an_index(large, stack):
    statement = list_statement(stack, lambda: large.list(limit=-1))
    rows = plan(stack, statement)
    assert len(rows) == 1 and rows[0]["key"] == "orders_list", rows
    assert "filesort" not in rows[0]["extra"] and "temporary" not in rows[0]["extra"], rows


def test_everything_is_answered_whole_and_newest_first(large):
    answer = large.list(limit=-1)
    data, info = answer.items, answer.page
    ids = [int(order["orderId"]) for order in data]
    assert len(ids) == COUNT and ids == sorted(ids, reverse=True)
    assert info["totalItems"] == COUNT and info["totalPages"] == 1


def test_pages_count_a_large_account_rightly_while_it_grows(large):
    before = large.list(limit=1).page["totalItems"]
    for grown in range(1, 4):
        large.create()
        assert {large.list(limit=1).page["totalItems"] for _ in range(6)} == {before + grown}


def rows_read(stack):
    """Returns the number of index entries and rows that the database has read since it started."""
    rows = stack.sql("SHOW GLOBAL STATUS WHERE Variable_name IN ('Handler_read_key', 'Handler_read_next', 'Handler_read_prev', "
                     "'Handler_read_first', 'Handler_read_rnd', 'Handler_read_rnd_next')")
    return sum(int(value) for _, value in rows)


@pytest.mark.parametrize("path", ["/stats/recent", "/{order}", "/{order}/download"])
def test_other_requests_look_at_as_much_as_in_a_small_account(large, stack, path):
    order = large.list(limit=1).items[0]["orderId"]
    large.get(f"{ORDERS}{path.format(order=order)}")
    for text in statements(stack, lambda: large.get(f"{ORDERS}{path.format(order=order)}")):
        for row in plan(stack, text) if text.startswith("SELECT") else []:
            assert row["rows"] is None or row["rows"] == "NULL" or int(row["rows"]) <= 10, (text, row)


@pytest.fixture(scope="module")
def indexed(large, stack):
    """The large account when all orders but the last are in segments of the index."""
    end = time.monotonic() + 240
    while int(stack.sql(f"SELECT COALESCE(SUM(order_count), 0) FROM order_segments WHERE account_id = {large.account}")[0][0]) < COUNT - 1024:
        assert time.monotonic() < end, "the worker does not index the orders"
        time.sleep(0.1)
    return large


@pytest.fixture
def quiet(stack):
    """Stops the worker, so that only the test's requests read rows."""
    stack.part("stop", "worker")
    yield
    stack.part("start", "worker")


@pytest.mark.parametrize("query", [{}, {"type": "antiAi"}, {"channel": "api"}])
def test_a_list_of_a_large_account_is_not_counted_whole_each_time(indexed, stack, quiet, query):
    """Lists count segments, and the orders after the last segment."""
    processes = len(children(stack.pid("api")))
    lists = 10 * processes
    before = rows_read(stack)
    for _ in range(lists):
        assert indexed.list(**query).page["totalItems"] >= COUNT
    # At most 1,024 orders are not in segments.
    assert rows_read(stack) - before < lists * 1500, (processes, lists)


QUERIES = [{}, {"page": COUNT // 10 - 1}, {"status": "complete", "page": COUNT // 20}, {"type": "antiAi", "page": COUNT // 20}, {"status": "failed"},
           {"channel": "api", "page": COUNT // 20}, {"channel": "web"}, {"status": "complete", "type": "antiAi", "channel": "api", "page": COUNT // 15},
           {"status": "failed", "type": "watermarkEmbed"}, {"keyword": "bulk"}, {"keyword": "bulk", "page": COUNT // 10 - 1}, {"keyword": "b"}, {"keyword": "1"},
           {"keyword": "bulk 1 jpg", "page": COUNT // 40}, {"keyword": str(COUNT - 1)}, {"keyword": "nothing"}, {"keyword": "bulk nothing"},
           {"keyword": "bulk", "status": "failed"}, {"keyword": "jpg", "status": "complete", "channel": "api", "page": COUNT // 15}]


def test_no_list_reads_more_than_a_segment_and_the_younger_orders(indexed, stack, quiet):
    """A segment has 4,096 orders. At most 1,024 orders and those of the last seconds are not in segments."""
    spent = {}
    for query in QUERIES:
        before = rows_read(stack)
        assert indexed.list(**query).status == 200
        spent[json.dumps(query)] = rows_read(stack) - before
    print(spent)
    assert max(spent.values()) < 4096 + 3 * 1100 < COUNT / 2, spent


def samples(stack, name):
    text = Client(stack).get("/metrics").body.decode()
    return {labels: float(value) for labels, value in re.findall(rf"^{name}(\S*) (\S+)$", text, re.M)}


def test_metrics_do_not_read_whole_tables(indexed, stack):
    """Metrics count up to a thousand rows of a state; above that they show the worker's last census."""
    def jobs():
        return samples(stack, "imgward_queue_jobs").get('{kind="protect",state="done"}', 0)

    stack.sql(f"""INSERT INTO jobs (account_id, order_id, kind, status, available_at, created_at, updated_at)
        SELECT account_id, id, 'protect', 'done', NOW(3), NOW(3), NOW(3) FROM orders WHERE account_id = {indexed.account} AND name LIKE 'bulk %'""")
    stack.part("stop", "worker")
    try:
        before = rows_read(stack)
        samples(stack, "imgward_")
        assert rows_read(stack) - before < 12 * 1001
    finally:
        stack.part("start", "worker")
    [[done]] = stack.sql("SELECT COUNT(*) FROM jobs WHERE status = 'done' AND kind = 'protect'")
    end = time.monotonic() + 120
    while jobs() != int(done):
        assert time.monotonic() < end, (jobs(), done)
        time.sleep(0.5)


def handler_reads(stack, statement):
    """Returns the number of rows that a statement reads in a session without others."""
    rows = stack.sql(f"FLUSH STATUS; {statement}; SHOW SESSION STATUS LIKE 'Handler_read%'")
    return sum(int(row[1]) for row in rows if len(row) == 2 and row[0].startswith("Handler_read"))


def test_a_lease_does_not_read_the_whole_queue(indexed, stack, jpeg):
    """The queue is full of jobs of a suspended account."""
    client = stack.account_new()
    stack.sql(f"UPDATE accounts SET status = 'suspended' WHERE id = {indexed.account}")
    stack.sql(f"""INSERT INTO jobs (account_id, order_id, kind, available_at, created_at, updated_at)
        SELECT account_id, id, 'extract', NOW(3), NOW(3), NOW(3) FROM orders WHERE account_id = {indexed.account} AND name LIKE 'bulk %'""")
    stack.sql("ANALYZE TABLE jobs")

    def order():
        client.order_whole([("a.jpg", jpeg)])
        end = time.monotonic() + 60
        while stack.sql("SELECT COUNT(*) FROM mysql.general_log WHERE argument LIKE '%a WHERE (SELECT available_at FROM jobs%' AND user_host LIKE 'imgward%'") == [["0"]]:
            assert time.monotonic() < end, "the worker does not look for stranded jobs"
            time.sleep(0.5)
    try:
        texts = {text for text in statements(stack, order, "imgward_worker") if re.search(r"^SELECT .* FROM jobs\b", text) and " slice " not in text and "?" not in text}
        reads = {text: handler_reads(stack, text) for text in texts}
    finally:
        stack.sql(f"DELETE FROM jobs WHERE account_id = {indexed.account}; UPDATE accounts SET status = 'active' WHERE id = {indexed.account}")
    print({text[:300]: count for text, count in reads.items() if count > 5})
    assert any("available_at <= UTC_TIMESTAMP(3) FROM jobs" in text for text in texts), texts
    assert any("a WHERE (SELECT available_at FROM jobs" in text for text in texts), texts
    # The search for stranded jobs reads a row and at most two index entries of each account.
    [[accounts]] = stack.sql("SELECT COUNT(*) FROM accounts")
    most = 500 + 4 * int(accounts)
    assert most < COUNT / 2 and max(reads.values()) < most, {text: count for text, count in reads.items() if count >= most}


def pool_peak_kib(stack):
    """Returns the highest peak resident set of the pool's processes."""
    peaks = []
    supervisor = stack.pid("api")
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/status", encoding="ascii") as file:
                facts = dict(line.split(":", 1) for line in file.read().splitlines() if ":" in line)
        except OSError:
            continue
        if int(facts["PPid"]) == supervisor:
            peaks.append(int(facts["VmHWM"].split()[0]))
    return max(peaks)


def test_listing_everything_takes_no_more_memory_than_one_page(large, stack):
    for _ in range(40):
        large.list(limit=100)
    before = pool_peak_kib(stack)
    size = len(large.list(limit=-1).body)
    after = pool_peak_kib(stack)
    print(json.dumps({"answer_bytes": size, "peak_kib_before": before, "peak_kib_after": after}))
    assert size > 4 << 20 and after - before < 1024, (size, before, after)
