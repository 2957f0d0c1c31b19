"""The commands of daily work and their effects."""
import configparser
import json
import os
import re
import shutil
import subprocess
import time
import uuid

import pictures
from client import ORDERS

WEBHOOKS = "/api/v2/orders/webhooks"
SQL = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "sql")


def ctl(stack, *words):
    return subprocess.run([stack.environment["IMGWARD_CTL"], "--config", stack.environment["IMGWARD_CONFIG"], *words],
                          capture_output=True, text=True, timeout=240)


def listed(stack, *words):
    return json.loads(ctl(stack, *words, "--json").stdout)


def begun(client, name="a.jpg"):
    """Returns the id of an uploaded and confirmed order."""
    created = client.create([name]).data
    assert client.upload(created["files"][0]["uploadUrl"], pictures.jpeg(80, 80)).status == 201
    assert client.confirm(created["orderId"]).status == 200
    return created["orderId"]


def paused(stack):
    """Pauses the queue and waits until the worker has read the pause."""
    assert ctl(stack, "queue", "drain", "--wait", "150").returncode == 0


def test_a_drain_waits_for_each_live_worker_to_read_the_pause(stack):
    """The other worker had its last heartbeat just before the pause, and no later one."""
    stack.sql("INSERT INTO workers (owner, host, pid, version, places, busy, metrics, started_at, seen_at) "
              "VALUES ('other', 'other.example', 7, 'x', 4, 0, '', UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))")
    try:
        done = ctl(stack, "queue", "drain", "--wait", "6")
        assert done.returncode == 1 and "workers have not read the pause yet" in done.stdout, done
        stack.sql("DELETE FROM workers WHERE owner = 'other'")
        paused(stack)
    finally:
        stack.sql("DELETE FROM workers WHERE owner = 'other'")
        ctl(stack, "queue", "resume")


def test_a_limit_is_overridden_and_reset(stack):
    client = stack.account_new("free", None)
    assert "7 requests a minute (individual limit)" in ctl(stack, "account", "limit", client.account, "7").stdout
    assert client.list().headers["RateLimit-Limit"] == "7"
    assert "60 requests a minute\n" in ctl(stack, "account", "limit", client.account, "plan").stdout
    assert ctl(stack, "account", "limit", client.account, "0").returncode == 2


def test_a_key_expires_at_the_given_time(stack):
    client = stack.account_new()
    prefix = client.key[:16]
    assert ctl(stack, "key", "expire", "--days", "3", prefix).returncode == 0
    assert client.list().status == 200
    assert ctl(stack, "key", "expire", prefix).returncode == 0
    time.sleep(6)  # longer than api.key_cache_s
    assert client.list().code == "AUTH_TOKEN_EXPIRED"


def test_orders_are_found_by_their_properties(stack, client):
    order = client.create(["a.jpg"], orderName="needle " + uuid.uuid4().hex)
    number, name = order.data["orderId"], client.detail(order.data["orderId"]).data["orderName"]
    for words in (("--name", name), ("--request-id", order.headers["X-Request-Id"])):
        assert [row["orderId"] for row in listed(stack, "order", "find", *words)] == [number], words
    found = listed(stack, "order", "find", "--account", client.account, "--status", "pending", "--most", "500")
    assert number in [row["orderId"] for row in found]
    assert ctl(stack, "order", "find", "--status", "nonsense").returncode == 2


CANCELLED = "a.jpg: ORDER_CANCELLED: The operator cancelled the order; ask the operator why."


def test_a_pending_order_and_a_waiting_one_are_cancelled(stack, client):
    pending = client.create(["a.jpg"]).data["orderId"]
    assert ctl(stack, "order", "cancel", pending).returncode == 0
    data = client.detail(pending).data
    assert data["status"] == "failed" and data["errors"] == CANCELLED and data["files"][0]["error"]["code"] == "ORDER_CANCELLED"
    again = ctl(stack, "order", "cancel", pending)
    assert again.returncode == 2 and "has ended" in again.stderr
    paused(stack)
    try:
        waiting = begun(client)
        assert client.detail(waiting).data["status"] == "inProgress"
        assert ctl(stack, "order", "cancel", waiting).returncode == 0
        assert client.detail(waiting).data["status"] == "failed"
        assert client.detail(waiting).data["errors"] == CANCELLED
        assert waiting in [row["orderId"] for row in listed(stack, "queue", "dead")]
    finally:
        ctl(stack, "queue", "resume")
    assert stack.sql(f"SELECT DISTINCT status FROM jobs WHERE order_id = {waiting}") == [["failed"]]
    left = [name for _, _, names in os.walk(os.path.join(stack.store, "in")) for name in names if waiting in name]
    assert left == []


def test_a_paused_queue_takes_orders_and_works_on_none_until_it_is_resumed(stack, client):
    paused(stack)
    try:
        order = begun(client)
        time.sleep(3)
        assert client.detail(order).data["status"] == "inProgress"
        assert listed(stack, "status")["isPaused"] is True
        assert "was already paused" in ctl(stack, "queue", "pause").stdout
    finally:
        assert ctl(stack, "queue", "resume").returncode == 0
    assert client.wait(order)["status"] == "complete"


def test_a_job_in_backoff_starts_immediately(stack, client):
    paused(stack)
    order = begun(client)
    stack.sql(f"UPDATE jobs SET available_at = UTC_TIMESTAMP(3) + INTERVAL 10 MINUTE, failure_count = 3 WHERE order_id = {order}")
    ctl(stack, "queue", "resume")
    time.sleep(6)
    assert client.detail(order).data["status"] == "inProgress"
    assert ctl(stack, "order", "retry", order).returncode == 0
    assert client.wait(order)["status"] == "complete"


def used(stack, client):
    return int(stack.sql(f"SELECT COALESCE(SUM(result_count), 0) FROM usage_days WHERE account_id = {client.account}")[0][0])


def test_a_failed_file_of_an_order_in_progress_is_retried_and_counted_once(stack, client):
    """One of two files fails because of a worker, and is retried before the order ends. Both results exist."""
    before = used(stack, client)
    paused(stack)
    created = client.create(["a.jpg", "b.jpg"]).data
    order = created["orderId"]
    for file in created["files"]:
        assert client.upload(file["uploadUrl"], pictures.jpeg(80, 80)).status == 201
    assert client.confirm(order).status == 200
    first, second = [file["fileId"] for file in created["files"]]
    try:
        # The state after three deaths of image processes with the first file, before the second one starts.
        stack.sql(f"UPDATE jobs SET status = 'failed', death_count = 3, reason = 'crash' WHERE file_id = {first}; "
                  f"UPDATE files SET status = 'failed', error_code = 'PROCESSING_CRASHED', error_sentence = 'x' WHERE id = {first}; "
                  f"UPDATE orders SET failed_file_count = 1 WHERE id = {order}")
        assert client.detail(order).data["errors"] == "a.jpg: PROCESSING_CRASHED: x"
        done = ctl(stack, "order", "retry", order)
        assert done.returncode == 0 and "1 waiting jobs start now, 1 failed jobs are retried" in done.stdout
        data = client.detail(order).data
        assert data["errors"] is None and [file["status"] for file in data["files"]] == ["uploaded", "uploaded"]
        assert stack.sql(f"SELECT failed_file_count FROM orders WHERE id = {order}") == [["0"]]
        assert stack.sql(f"SELECT status, death_count FROM jobs WHERE order_id = {order}") == [["queued", "0"]] * 2
    finally:
        ctl(stack, "queue", "resume")
    data = client.wait(order)
    assert data["status"] == "complete" and data["completedFileCount"] == 2 and data["errors"] is None
    assert used(stack, client) == before + 2 and second
    assert stack.sql(f"SELECT completed_file_count, failed_file_count, result_count FROM orders WHERE id = {order}") == [["2", "0", "2"]]


def test_a_finished_order_is_not_retried_and_the_reason_is_printed(stack, client):
    created = client.create(["a.jpg"]).data
    done = ctl(stack, "order", "retry", created["orderId"])
    assert done.returncode == 1 and "its client must confirm it" in done.stdout
    client.upload(created["files"][0]["uploadUrl"], pictures.jpeg(80, 80)[:-400])
    client.confirm(created["orderId"])
    assert client.wait(created["orderId"])["status"] == "failed"
    done = ctl(stack, "order", "retry", created["orderId"])
    assert done.returncode == 1 and "inputs are deleted" in done.stdout and "submit a new order" in done.stdout
    assert client.detail(created["orderId"]).data["status"] == "failed"
    assert ctl(stack, "order", "retry", "1").returncode == 2


def test_failed_deliveries_are_retried(stack, client):
    hook = client.post(WEBHOOKS, {"name": "one", "url": "http://127.0.0.1:1/nobody"})
    assert hook.status == 201, hook
    number = stack.sql(f"SELECT id FROM webhooks WHERE account_id = {client.account}")[0][0]
    client.order_whole([("a.jpg", pictures.jpeg(80, 80))])
    stack.sql(f"UPDATE webhook_deliveries SET status = 'FAILED' WHERE webhook_id = {number}")
    row = next(row for row in listed(stack, "webhook", "list", client.account) if str(row["webhookId"]) == number)
    assert row["failed"] == 1
    assert "1 deliveries are retried" in ctl(stack, "webhook", "retry", number).stdout
    assert stack.sql(f"SELECT COUNT(*) FROM webhook_deliveries WHERE webhook_id = {number} AND status = 'FAILED'") == [["0"]]


def test_a_missing_and_a_cut_file_are_found(stack, client):
    order = client.order_whole([("a.jpg", pictures.jpeg(80, 80))])["orderId"]
    stack.settled(order)
    assert ctl(stack, "store", "verify").returncode == ctl(stack, "store", "verify", "--quick").returncode == 0
    key = stack.sql(f"SELECT store_key FROM results WHERE order_id = {order}")[0][0]
    named = [os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(stack.store, "out"))
             for name in names if order in name]
    assert len(named) == 1
    with open(named[0], "rb") as file:
        whole = file.read()
    try:
        with open(named[0], "wb") as file:
            file.write(whole[:-1])
        done = ctl(stack, "store", "verify", "--json")
        assert done.returncode == 1
        assert [row["storeKey"] for row in json.loads(done.stdout)] == [key]
        assert ctl(stack, "store", "verify", "--quick").returncode == 1
        os.unlink(named[0])
        assert "missing" in ctl(stack, "store", "verify").stdout
    finally:
        with open(named[0], "wb") as file:
            file.write(whole)
    assert ctl(stack, "store", "verify").returncode == 0
    stack.part("stop", "worker")  # the worker would also delete it
    try:
        stray = named[0] + "7"  # a file of another attempt, two hours old
        with open(stray, "wb") as file:
            file.write(whole)
        os.utime(stray, (time.time() - 7200,) * 2)
        done = ctl(stack, "store", "reclaim")
        assert done.returncode == 0 and ", 1 files that no row names, " in done.stdout and not os.path.exists(stray), done
    finally:
        stack.part("start", "worker")
    assert os.path.exists(named[0]) and ctl(stack, "store", "verify").returncode == 0


def test_a_changed_file_of_any_kind_is_found_by_its_digest(stack, client):
    """In a result, an archive, a thumbnail and the upload of a pending order, one byte changes, but not the size."""
    done = client.order_whole([("a.jpg", pictures.jpeg(80, 80)), ("b.jpg", pictures.jpeg(80, 80))])["orderId"]
    stack.settled(done)
    created = client.create(["c.jpg"]).data
    waiting = created["orderId"]
    assert client.upload(created["files"][0]["uploadUrl"], pictures.jpeg(80, 80)).status == 201
    keys = [row[0] for row in stack.sql(
        f"SELECT MIN(store_key) FROM results WHERE order_id = {done} UNION ALL SELECT zip_store_key FROM orders WHERE id = {done} "
        f"UNION ALL SELECT thumbnail_store_key FROM orders WHERE id = {done} UNION ALL SELECT store_key FROM files WHERE order_id = {waiting}")]
    paths = [stored_at(stack, key) for key in keys]
    assert len(set(paths)) == 4
    assert ctl(stack, "store", "verify").returncode == 0
    try:
        for path in paths:
            byte_turn(path)
        assert ctl(stack, "store", "verify", "--quick").returncode == 0
        found = ctl(stack, "store", "verify", "--json")
        assert found.returncode == 1
        faults = json.loads(found.stdout)
        assert {row["storeKey"] for row in faults} == set(keys)
        assert {row["fault"] for row in faults} == {"does not have the digest that the database has"}
    finally:
        for path in paths:
            byte_turn(path)
    told = ctl(stack, "store", "verify", "--progress", "0")
    assert told.returncode == 0 and re.search(r"store: \d+ of \d+ orders, \d+ files, \d+ MiB read", told.stderr)


def test_the_thumbnail_of_an_order_of_the_previous_release_is_kept(stack, client):
    """The previous release recorded a thumbnail only with the order. Reclaim keeps it, verify reads it, a deletion deletes it."""
    order = client.order_whole([("a.jpg", pictures.jpeg(80, 80))])["orderId"]
    stack.settled(order)
    stack.sql(f"UPDATE orders SET thumbnail_digest = (SELECT thumbnail_digest FROM files WHERE order_id = {order}) WHERE id = {order}")
    stack.sql(f"UPDATE files SET thumbnail_store_key = NULL, thumbnail_digest = NULL WHERE order_id = {order}")
    key = stack.sql(f"SELECT thumbnail_store_key FROM orders WHERE id = {order}")[0][0]
    path = stored_at(stack, key)
    os.utime(path, (time.time() - 7200,) * 2)
    done = ctl(stack, "store", "reclaim")
    assert done.returncode == 0 and os.path.exists(path), done
    assert ctl(stack, "store", "verify").returncode == 0
    byte_turn(path)
    found = ctl(stack, "store", "verify", "--json")
    byte_turn(path)
    assert [row["storeKey"] for row in json.loads(found.stdout)] == [key]
    assert client.request("DELETE", f"{ORDERS}/{order}").status == 200
    assert not os.path.exists(path)


def stored_at(stack, key):
    """Returns the path of a key: KIND/ORDER/REST is stored under KIND/ as ORDER.REST."""
    kind, order, rest = key.split("/")
    [path] = [os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(stack.store, kind)) for name in names
              if name == f"{order}.{rest}"]
    return path


def byte_turn(path):
    with open(path, "r+b") as file:
        file.seek(10)
        byte = file.read(1)[0]
        file.seek(10)
        file.write(bytes([byte ^ 1]))


def test_the_units_restart_without_an_end_and_survive_the_death_of_a_child():
    """A worker that waits for the store is restarted as often as needed. The death of an image process ends no worker."""
    units = {}
    for name in ("api", "worker"):
        units[name] = configparser.RawConfigParser(strict=False)
        units[name].optionxform = str
        units[name].read(os.path.join(os.path.dirname(SQL), "packaging", "systemd", f"imgward-{name}.service.in"))
        assert units[name]["Unit"]["StartLimitIntervalSec"] == "0" and units[name]["Service"]["Restart"] in ("always", "on-failure")
    worker = units["worker"]["Service"]
    assert worker["OOMPolicy"] == "continue" and worker["MemoryMax"] == "80%"


def migrations_line(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    return next(line for line in done.stdout.splitlines() if line.startswith("migrations"))


def test_doctor_finds_the_migrations_of_a_build_tree_or_names_the_option(stack, tmp_path):
    config = ("--config", stack.environment["IMGWARD_CONFIG"], "doctor")
    assert re.match(r"migrations +ok +all [0-9]+ applied", migrations_line(stack.environment["IMGWARD_CTL"], *config, "--directory", SQL))
    (tmp_path / "build").mkdir()
    alone = str(tmp_path / "build" / "imgwardctl")
    shutil.copy(stack.environment["IMGWARD_CTL"], alone)
    if not os.path.exists("/usr/local/share/imgward/sql"):  # an installed imgwardctl would use that folder
        done = migrations_line(alone, *config)
        assert " WRONG " in done and "--directory" in done, done
    shutil.copytree(SQL, tmp_path / "sql")
    assert re.match(r"migrations +ok +all [0-9]+ applied", migrations_line(alone, *config))


def test_one_screen_tells_queue_workers_rates_and_the_oldest_job(stack):
    done = ctl(stack, "status").stdout
    for word in ("queue: open", "oldest job waits", "workers", "image processes busy", "jobs done", "deliveries", "store"):
        assert word in done, word
    status = listed(stack, "status")
    assert len(status["workers"]) >= 1 and status["oldestSeconds"] >= 0 and "rates" in status
