"""Fair between accounts: a large order of one holds back nobody else's single file; and it stays quick."""
import os
import subprocess
import threading
import time

import pytest

import pictures
from places import Places
from test_6_large_lists import plan, statements

QUEUED = 30000


def seconds_of(call):
    begun = time.monotonic()
    call()
    return time.monotonic() - begun


@pytest.fixture(scope="module")
def single():
    return pictures.jpeg(256, 256, seed=5)


@pytest.mark.parametrize("processes", [1, 2])
def test_an_order_of_a_hundred_uploads_holds_back_no_single_file(stack, single, processes, capsys):
    with stack.configured("worker", "processes", str(processes)):
        stack.part("stop", "worker")
        stack.part("start", "worker")
        large, small = stack.account_new(), stack.account_new()
        alone = min(seconds_of(lambda: small.order_whole([("a.jpg", single)])) for _ in range(3))
        files = [(f"{number}.jpg", single) for number in range(100)]
        whole = []
        thread = threading.Thread(target=lambda: whole.append(large.order_whole(files, 300)))
        begun = time.monotonic()
        thread.start()
        order = wait_until_working(large)
        beside = [seconds_of(lambda: small.order_whole([("a.jpg", single)])) for _ in range(3)]
        done = large.detail(order).data["completedFileCount"]
        thread.join()
        total = time.monotonic() - begun
    stack.part("stop", "worker")
    stack.part("start", "worker")
    with capsys.disabled():
        print(f"\n  {processes} image processes: a single file alone {alone:.2f} s, beside 100 files of another account "
              f"{max(beside):.2f} s at most; the 100 files {total:.1f} s")
    assert whole[0]["status"] == "complete" and whole[0]["completedFileCount"] == 100
    assert done < 90, "the large order was through before the others could be compared"
    # It waits for what is in work and takes turns: a few files' time, not a hundred's.
    assert max(beside) < alone + max(1.0, 8 * total / 100), beside


def wait_until_working(client, seconds=120):
    """The client's newest order once the first of its files are done."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        orders = client.list(limit=1).json["data"]
        if orders and orders[0]["completedFileCount"] >= 2:
            return orders[0]["orderId"]
        time.sleep(0.05)
    raise TimeoutError("no file of the large order was done")


@pytest.fixture
def two_supervisors(stack, tmp_path):
    """Two workers on one database, one image process each; the folder of the second one's log."""
    with stack.configured("worker", "processes", "1"):
        stack.part("stop", "worker")
        stack.part("start", "worker")
        config = tmp_path / "imgward.conf"
        with open(stack.environment["IMGWARD_CONFIG"], encoding="utf-8") as file:
            config.write_text(file.read().replace("/worker.pid", "/worker-2.pid"), encoding="utf-8")
        with open(tmp_path / "log", "wb") as log:
            second = subprocess.Popen([os.path.join(stack.environment["IMGWARD_BUILD"], "imgward-worker"), "--config", str(config)],
                                      stderr=log)
        try:
            end = time.monotonic() + 60
            while len(stack.sql("SELECT 1 FROM workers WHERE seen_at > UTC_TIMESTAMP(3) - INTERVAL 10 SECOND")) < 2:
                assert time.monotonic() < end, "the second worker does not tell of itself"
                time.sleep(0.2)
            yield tmp_path / "log"
        finally:
            second.terminate()
            assert second.wait(60) == 0
    stack.part("stop", "worker")
    stack.part("start", "worker")


def overtaken(stack, small, large):
    """How many files of the large order were done while the small one's only file waited and was worked on."""
    return int(stack.sql(
        "SELECT COUNT(*) FROM jobs l JOIN jobs s ON l.updated_at > s.created_at AND l.updated_at <= s.updated_at "
        f"WHERE s.order_id = {small} AND l.order_id = {large} AND l.kind = s.kind AND s.kind = 'protect'")[0][0])


def test_two_supervisors_on_one_database_are_fair_as_one_is(stack, single, two_supervisors, capsys):
    """Told by the order in which jobs ended, not by the clock: it holds on a machine of any speed."""
    large, small, other = stack.account_new(), stack.account_new(), stack.account_new()
    files = [(f"{number}.jpg", single) for number in range(100)]
    whole = []
    thread = threading.Thread(target=lambda: whole.append(large.order_whole(files, 300)))
    thread.start()
    order = wait_until_working(large)
    beside = [client.order_whole([("a.jpg", single)])["orderId"] for client in (small, other, small, other)]
    done = large.detail(order).data["completedFileCount"]
    thread.join()
    before = [overtaken(stack, one, order) for one in beside]
    by_second = two_supervisors.read_text(encoding="utf-8").count('"event":"job_done"')
    with capsys.disabled():
        print(f"\n  two supervisors: {before} of 100 files of the large order ended while each single file waited and was worked "
              f"on; the second one did {by_second} of 105 jobs")
    assert whole[0]["status"] == "complete" and done < 90, "the large order was through before the others could be compared"
    # Two are in work when it comes, and a few more end at the other place while it is worked on itself.
    assert max(before) <= 10, before
    assert 5 <= by_second <= 100, "both take part"


def test_a_hundred_hanging_sources_hold_back_no_single_one(stack, single, capsys):
    places = Places()
    places.gives.update({"/hang": "hang", "/good.jpg": single})
    large, small = stack.account_new(), stack.account_new()

    def by_url(client, path, count):
        return client.create([{"fileName": f"{number}.jpg", "imageUrl": places.url(path)} for number in range(count)],
                             kind="anti-ai/with-urls").data["orderId"]
    try:
        with stack.configured("outgoing", "fetch_timeout_s", "3"), stack.configured("worker", "failures_max", "2"):
            alone = min(seconds_of(lambda: small.wait(by_url(small, "/good.jpg", 1))) for _ in range(3))
            order = by_url(large, "/hang", 100)
            end = time.monotonic() + 20
            while places.open < 16 and time.monotonic() < end:
                time.sleep(0.05)
            open_most = places.open
            beside = max(seconds_of(lambda: small.wait(by_url(small, "/good.jpg", 1))) for _ in range(3))
            data = large.wait(order, 200)
        with capsys.disabled():
            print(f"\n  a single source alone {alone:.2f} s, beside 100 that hang ({open_most} open at once) {beside:.2f} s")
        assert open_most == 16, "half of the 32 places, and no more, are one account's"
        assert data["status"] == "failed" and len(data["errors"]) == 100
        assert all(": SOURCE_UNREACHABLE: " in line for line in data["errors"])
        assert beside < alone + 1.0
    finally:
        places.close()


@pytest.fixture
def queued(stack, single):
    """Tens of thousands of jobs of three accounts, which nobody leases before next year."""
    clients = [stack.account_new() for _ in range(3)]
    orders = []
    for client in clients:
        order = client.create().data["orderId"]
        orders.append(order)
        stack.sql(f"""
            INSERT INTO jobs (account_id, order_id, file_id, kind, available_at, created_at, updated_at)
            SELECT {client.account}, {order}, 1000000 + seq, 'protect', UTC_TIMESTAMP(3) + INTERVAL 1 YEAR - INTERVAL seq SECOND,
                   NOW(3), NOW(3) FROM seq_1_to_{QUEUED // 3}""")
    stack.sql("ANALYZE TABLE jobs")
    yield orders
    stack.sql(f"DELETE FROM jobs WHERE order_id IN ({', '.join(orders)})")


def test_leasing_reads_one_index_entry_an_account_however_many_jobs_are_queued(stack, client, queued, single, capsys):
    found = statements(stack, lambda: client.order_whole([("a.jpg", single)]))
    found = [text for text in found if "?" not in text]  # of a statement that was prepared just then, the run
    turns = next(text for text in found if text.startswith("SELECT account_id, available_at"))
    [row] = plan(stack, turns)
    assert row["key"] == "jobs_next" and row["type"] == "range" and row["key_len"] == "11", row
    assert "filesort" not in row["extra"] and "temporary" not in row["extra"], row
    read = stack.sql(f"FLUSH STATUS; {turns}; SHOW SESSION STATUS LIKE 'Handler_read_next'")[-1]
    assert int(read[1]) < 5, "it stops at the first entry"
    one = next(text for text in found if text.startswith("SELECT id FROM jobs WHERE status = 'queued'"))
    [row] = plan(stack, one)
    assert row["key"] == "jobs_next" and "filesort" not in row["extra"], row

    # With everything due: what a worker pays for a look at a full table.
    stack.part("stop", "worker")
    try:
        stack.sql(f"UPDATE jobs SET available_at = available_at - INTERVAL 2 YEAR WHERE order_id IN ({', '.join(queued)})")
        empty = seconds_of(lambda: stack.sql("SELECT 1"))
        taken = (seconds_of(lambda: stack.sql(";".join([turns] * 50))) - empty) / 50
        read_due = stack.sql(f"FLUSH STATUS; {turns}; SHOW SESSION STATUS LIKE 'Handler_read_next'")[-1]
    finally:
        stack.sql(f"DELETE FROM jobs WHERE order_id IN ({', '.join(queued)})")
        stack.part("start", "worker")
    with capsys.disabled():
        print(f"\n  one step to the next account among {QUEUED} queued jobs: {taken * 1000:.2f} ms")
    assert int(read_due[1]) < 5, "nor does it read more when all of them are due"


def test_accounts_take_turns_job_by_job(stack, client):
    """With one place, three accounts with queues of their own are served in turn, not one after the other."""
    with stack.configured("worker", "processes", "1"):
        stack.part("stop", "worker")
        accounts = [stack.account_new() for _ in range(3)]
        data = pictures.jpeg(128, 128, seed=9)
        orders = []
        for account in accounts:
            created = account.create([f"{number}.jpg" for number in range(6)]).data
            for file in created["files"]:
                assert account.upload(file["uploadUrl"], data).status == 201
            assert account.confirm(created["orderId"]).status == 200
            orders.append(created["orderId"])
        stack.part("start", "worker")
        for account, order in zip(accounts, orders):
            account.wait(order)
    stack.part("stop", "worker")
    stack.part("start", "worker")
    rows = stack.sql(f"SELECT account_id FROM jobs WHERE order_id IN ({', '.join(orders)}) AND kind = 'protect' "
                     "ORDER BY updated_at, id")
    served = [row[0] for row in rows]
    for at in range(0, 18, 3):
        assert len(set(served[at:at + 3])) == 3, served
