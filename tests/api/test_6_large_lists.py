"""Contract section 6 for a large account: database work and memory use."""
import json
import os
import re
import time

import pytest

from client import ORDERS, children

COUNT = 20000
# 2024-01-01 UTC, the epoch of order ids; see src/model/order.h.
EPOCH_MS = 1704067200000


@pytest.fixture(scope="module")
def large(stack):
    """A client of an account with 20,000 orders of one file each, at least an hour old."""
    client = stack.account_new()
    newest = ((int(time.time() * 1000) - 3600000 - EPOCH_MS) << 22) + int(client.account)
    stack.sql(f"""
        INSERT INTO orders (id, account_id, type, status, name, idempotency_key, body_digest, strength, file_count,
                            created_at, updated_at, expires_at)
        SELECT {newest} - (seq << 22), {client.account}, 'antiAi', 'complete', CONCAT('bulk ', seq), CONCAT('bulk-', seq),
               UNHEX(SHA2(seq, 256)), 'high', 1, NOW(3), NOW(3), NOW(3) + INTERVAL 7 DAY FROM seq_1_to_{COUNT}""")
    stack.sql(f"""
        INSERT INTO files (order_id, position, name, status, updated_at)
        SELECT id, 1, CONCAT(name, '.jpg'), 'complete', NOW(3) FROM orders WHERE account_id = {client.account}""")
    # The server would update its statistics later.
    stack.sql("ANALYZE TABLE orders, files")
    return client


def statements(stack, call):
    """Statements that the pool sent to the database during call."""
    stack.sql("SET GLOBAL log_output = 'TABLE'; TRUNCATE mysql.general_log; SET GLOBAL general_log = 1")
    try:
        # The log only shows the values of statements that were prepared after it was enabled.
        stack.connections_kill()
        call()
    finally:
        stack.sql("SET GLOBAL general_log = 0")
    rows = stack.sql("SELECT argument FROM mysql.general_log WHERE command_type = 'Execute' "
                     "AND user_host LIKE 'imgward%'")
    # A stream has a longer limit than other statements, set in front of its SELECT.
    return [re.sub(r"^SET STATEMENT max_statement_time *= *[0-9.]+ FOR ", "", row[0].replace("\\n", "\n").replace("\\\\", "\\"), flags=re.I)
            for row in rows]


def plan(stack, statement):
    """EXPLAIN of a statement: one dictionary per table."""
    names = ["id", "select_type", "table", "type", "possible_keys", "key", "key_len", "ref", "rows", "extra"]
    return [dict(zip(names, row)) for row in stack.sql("EXPLAIN " + statement)]


def list_statement(stack, call):
    """The statement that reads the orders of a list."""
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
    """Index entries and rows that the database has read since it started."""
    rows = stack.sql("SHOW GLOBAL STATUS WHERE Variable_name IN ('Handler_read_key', 'Handler_read_next', 'Handler_read_prev', "
                     "'Handler_read_first', 'Handler_read_rnd', 'Handler_read_rnd_next')")
    return sum(int(value) for _, value in rows)


@pytest.mark.parametrize("query", [{}, {"type": "antiAi"}, {"channel": "api"}])
def test_a_list_of_a_large_account_is_not_counted_whole_each_time(large, stack, query):
    """A process counts a large account once or twice; a hundred further lists read one page each."""
    processes = len(children(stack.pid("api")))
    lists = 10 * processes
    before = rows_read(stack)
    for _ in range(lists):
        assert large.list(**query).page["totalItems"] >= COUNT
    # The worker's sweeps also read rows; they find no jobs.
    whole = 2 * (COUNT + 1000)
    assert rows_read(stack) - before < processes * whole + lists * 500, (processes, lists)


@pytest.mark.parametrize("path", ["/stats/recent", "/{order}", "/{order}/download"])
def test_other_requests_look_at_as_much_as_in_a_small_account(large, stack, path):
    order = large.list(limit=1).items[0]["orderId"]
    large.get(f"{ORDERS}{path.format(order=order)}")
    for text in statements(stack, lambda: large.get(f"{ORDERS}{path.format(order=order)}")):
        for row in plan(stack, text) if text.startswith("SELECT") else []:
            assert row["rows"] is None or row["rows"] == "NULL" or int(row["rows"]) <= 10, (text, row)


def pool_peak_kib(stack):
    """The highest peak resident set of the pool's processes."""
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
