"""Responses that break off: of the database between two rows, and of the pool in the middle of a list.

Before the first byte, a client gets 503 with Retry-After; after it, a broken connection, never a list that looks whole.
"""
import collections
import contextlib
import http.client
import json
import os
import random
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.parse

import pytest

import pictures
from client import ORDERS, children
from proxy import LEASE, Proxy
from remotes import Remotes

COUNT = 30000
WEBHOOKS = ORDERS + "/webhooks"
# 2024-01-01 UTC, the epoch of order ids; see src/model/order.h.
EPOCH_MS = 1704067200000


@pytest.fixture(scope="module")
def large(stack):
    """A client of an account with many orders, and the paths of its two long lists.

    The orders do not expire when a later test moves the clock, because that takes the worker minutes on a slow machine.
    """
    client = stack.account_new()
    hook = client.post(WEBHOOKS, {"url": "http://127.0.0.1:9/hook"}).data["id"]
    newest = ((int(time.time() * 1000) - 3600000 - EPOCH_MS) << 22) + int(client.account)
    stack.sql(f"""
        INSERT INTO orders (id, account_id, type, status, name, idempotency_key, body_digest, strength, file_count,
                            created_at, updated_at, expires_at)
        SELECT {newest} - (seq << 22), {client.account}, 'antiAi', 'complete', CONCAT('bulk ', seq), CONCAT('bulk-', seq),
               UNHEX(SHA2(seq, 256)), 'high', 1, NOW(3), NOW(3), NOW(3) + INTERVAL 400 DAY FROM seq_1_to_{COUNT}""")
    stack.sql(f"""
        INSERT INTO webhook_events (id, account_id, type, occurred_at)
        SELECT id, account_id, 'order.antiAi.completed', NOW(3) FROM orders WHERE account_id = {client.account}""")
    stack.sql(f"""
        INSERT INTO webhook_deliveries (webhook_id, event_id, status, available_at, created_at, updated_at)
        SELECT {hook}, id, 'DELIVERED', NOW(3), NOW(3), NOW(3) FROM webhook_events WHERE account_id = {client.account}""")
    return client, {"orders": ORDERS, "events": f"{WEBHOOKS}/{hook}/events"}


def outcome(client, path):
    """Returns whole, broken, or the status of a response that is not a list; a cut list that ends in order "looks whole"."""
    base = urllib.parse.urlsplit(client.stack.url)
    connection = http.client.HTTPSConnection(base.hostname, base.port, context=client.stack.tls, timeout=60)
    try:
        connection.request("GET", path + "?limit=-1", headers={"Authorization": "Bearer " + client.key})
        answer = connection.getresponse()
        body = answer.read()
    except (http.client.HTTPException, OSError):
        return "broken"
    finally:
        connection.close()
    if answer.status != 200:
        return str(answer.status)
    with contextlib.suppress(ValueError):
        if len(json.loads(body)["data"][path.rsplit("/", 1)[1]]) == COUNT:
            return "whole"
    return "looks whole"


def child_kill(stack):
    with contextlib.suppress(ProcessLookupError, IndexError):
        os.kill(random.choice(sorted(children(stack.pid("api")))), signal.SIGKILL)


def statement_kill(stack, what):
    for row in stack.sql("SHOW FULL PROCESSLIST"):
        if row[1] == "imgward_api" and re.search(r"\bSELECT [oe]\.id", row[7]):
            with contextlib.suppress(subprocess.CalledProcessError):
                stack.sql(f"KILL {what} {row[0]}")


BREAKS = {"a process": child_kill, "a query": lambda stack: statement_kill(stack, "QUERY"),
          "a connection": lambda stack: statement_kill(stack, "CONNECTION")}


@pytest.mark.parametrize("name", ["orders", "events"])
@pytest.mark.parametrize("killed", list(BREAKS))
def test_a_list_that_breaks_off_never_looks_whole(large, stack, name, killed):
    client, paths = large
    seen, is_over, end = collections.Counter(), threading.Event(), time.monotonic() + 240

    def ask():
        while not is_over.is_set():
            result = outcome(client, paths[name])
            if result == "429":  # an account may read one such list at a time
                time.sleep(0.05)
            else:
                seen[result] += 1
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        while seen["broken"] < 5 and not seen["looks whole"] and time.monotonic() < end:
            time.sleep(random.uniform(0, 0.1))
            BREAKS[killed](stack)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    print(dict(seen))
    assert seen["looks whole"] == 0 and seen["broken"] >= 5, seen
    assert set(seen) <= {"whole", "broken", "looks whole", "502", "503"}, seen
    assert outcome(client, paths[name]) == "whole"


@pytest.fixture(scope="module")
def proxy(stack):
    """A proxy between the service and its database."""
    with open(stack.environment["IMGWARD_CONFIG"], encoding="utf-8") as file:
        before = file.read()
    proxy = Proxy(os.path.join(stack.run, "torn.sock"), stack.environment["IMGWARD_DB_SOCKET"])

    def use(text):
        stack.configure(text)
        for part in ("api", "worker"):
            stack.part("stop", part)
            stack.part("start", part)
    use(before.replace("/mariadb.sock", "/torn.sock"))
    yield proxy
    use(before)
    proxy.close()


@pytest.fixture(params=["cut", "error"])
def torn(proxy, request):
    yield request.param
    proxy.tear(None)


def timed(request):
    begin = time.monotonic()
    return request(), time.monotonic() - begin


def test_a_torn_answer_is_503_and_the_connection_serves_again(client, proxy, torn):
    """Each process of the pool gets a torn response, and serves the next request."""
    names = ["a.jpg", "b.jpg", "c.jpg"]
    order = client.create(names).data["orderId"]
    client.create(names)
    for request in [lambda: client.detail(order), client.list] * 10:
        proxy.tear(torn)
        before = proxy.torn
        answer, first_s = timed(request)
        assert proxy.torn > before
        assert answer.status == 503 and int(answer.headers["Retry-After"]) >= 1, answer
        proxy.tear(None)
        answer, next_s = timed(request)
        assert answer.status == 200
        # If a process waited for the rest of a torn response, it took 20 s.
        assert first_s < 10 and next_s < 10, (first_s, next_s)


def test_a_worker_with_torn_answers_is_never_silent(client, proxy, torn):
    """For a while, every second response with rows is torn. The worker's loop continues, and the order ends."""
    created = client.create([f"{number}.jpg" for number in range(8)]).data
    for number, file in enumerate(created["files"]):
        assert client.upload(file["uploadUrl"], pictures.jpeg(300, 300, seed=number)).status == 201
    before = proxy.torn
    assert client.confirm(created["orderId"]).status == 200
    proxy.tear(torn, every=2)
    time.sleep(12)
    torn_count, silence_s = proxy.torn - before, max(proxy.silence_s, time.monotonic() - proxy.sent_at)
    proxy.tear(None)
    data = client.wait(created["orderId"], 400)
    print(json.dumps({"torn": torn_count, "silence_s": round(silence_s, 2)}))
    assert data["status"] == "complete" and data["completedFileCount"] == 8, data
    # An idle worker sweeps every 2 s. If it waited for the rest of a response, it took 20 s.
    assert torn_count > 0 and silence_s < 6, (torn_count, silence_s)


def upload_files(stack, order):
    """Returns the order's files in the store."""
    return {os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(stack.store, "in"))
            for name in names if name.startswith(f"{order}.")}


@pytest.mark.parametrize("how, statuses", [("uncommitted", {503}), ("committed", {200, 201})])
def test_an_upload_whose_commit_was_lost_leaves_one_file(client, stack, proxy, how, statuses):
    """The row determines which of two uploads stays."""
    created = client.create(["a.jpg"]).data
    order, url = created["orderId"], created["files"][0]["uploadUrl"]
    assert client.upload(url, pictures.jpeg(300, 300, seed=1)).status == 201
    [before] = upload_files(stack, order)
    proxy.tear(how)
    answer = client.upload(url, pictures.jpeg(300, 300, seed=2))
    assert proxy.how is None and answer.status in statuses, answer
    [left] = upload_files(stack, order)
    assert (left == before) == (how == "uncommitted")
    assert client.confirm(order).status == 200
    assert client.wait(order)["status"] == "complete"


def test_a_job_whose_lease_was_committed_without_an_answer_is_leased_again(client, stack, proxy):
    """The worker does not know the job, and meanwhile renews the leases of other jobs."""
    remotes, gate = Remotes(), threading.Event()
    remotes.gives["/late"] = ("gate", gate, pictures.jpeg(300, 300))
    try:
        with stack.configured("worker", "lease_s", "15"), stack.configured("worker", "heartbeat_s", "1"), \
                stack.configured("outgoing", "fetch_timeout_s", "600"):
            late = client.create([{"fileName": "late.jpg", "imageUrl": remotes.url("/late")}], kind="anti-ai/with-urls").data["orderId"]
            end = time.monotonic() + 120
            while remotes.count("/late") == 0:
                assert time.monotonic() < end, "the source is not asked"
                time.sleep(0.1)
            proxy.tear("committed", of=LEASE)
            order = client.order_whole([("a.jpg", pictures.jpeg(300, 300))], 120)
            assert proxy.how is None and order["status"] == "complete", order
            assert stack.sql(f"SELECT attempt FROM jobs WHERE order_id = {order['orderId']} AND kind = 'protect'") == [["2"]]
            assert stack.sql(f"SELECT attempt FROM jobs WHERE order_id = {late} AND kind = 'fetch'") == [["1"]]
            gate.set()
            assert client.wait(late)["status"] == "complete"
    finally:
        gate.set()
        remotes.close()


def test_reclaim_deletes_an_unnamed_upload_of_a_pending_order(client, stack):
    """A process that died while the database was down leaves such a file. A young file stays, because its row may follow."""
    created = client.create(["a.jpg"]).data
    order = created["orderId"]
    assert client.upload(created["files"][0]["uploadUrl"], pictures.jpeg(300, 300)).status == 201
    [named] = upload_files(stack, order)
    stem, version = named.rsplit(".", 1)
    old, young = (f"{stem}.{int(version) // number}" for number in (2, 3))
    for path in (old, young):
        shutil.copy(named, path)
    two_hours_ago = time.time() - 7200
    for path in (old, named):
        os.utime(path, (two_hours_ago, two_hours_ago))
    stack.ctl("store", "reclaim")
    assert upload_files(stack, order) == {named, young}
