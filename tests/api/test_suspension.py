"""Suspension of an account: URLs answer 403, jobs and deliveries wait; resuming loses nothing."""
import contextlib
import time

import pytest

import pictures
from client import ORDERS
from remotes import Remotes
from receiver import Receiver

# Several sweeps of the worker (worker.sweep_ms), after which all work that was due has started.
SWEEPS_S = 6


@pytest.fixture(scope="module")
def jpeg():
    return pictures.jpeg(256, 256, seed=50)


@pytest.fixture(scope="module")
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@contextlib.contextmanager
def worker_stopped(stack):
    stack.part("stop", "worker")
    try:
        yield
    finally:
        stack.part("start", "worker")


def suspend(stack, client):
    stack.ctl("account", "suspend", client.account)


def resume(stack, client):
    """Waits until no process of the pool has the suspended account in its cache (api.key_cache_s)."""
    stack.ctl("account", "resume", client.account)
    time.sleep(5.5)


def forbidden(answer):
    assert answer.status == 403 and answer.code == "AUTH_FORBIDDEN", answer
    assert "Retry-After" not in answer.headers


def test_signed_urls_of_a_suspended_account_answer_403(stack, anonymous, jpeg):
    client = stack.account_new()
    done = client.order_whole([("a.jpg", jpeg), ("b.jpg", jpeg)])["orderId"]
    given = client.get(f"{ORDERS}/{done}/download").data
    urls = [given["downloadUrl"], client.detail(done).data["thumbnailImageUrl"], *(file["downloadUrl"] for file in given["files"])]
    pending = client.create(["c.jpg"]).data
    upload = pending["files"][0]["uploadUrl"]
    suspend(stack, client)
    for url in urls:
        forbidden(anonymous.request("GET", url, key=False))
        assert anonymous.request("HEAD", url, key=False).status == 403
    forbidden(anonymous.upload(upload, jpeg))
    assert stack.stored(pending["orderId"]) == []
    resume(stack, client)
    for url in urls:
        assert anonymous.request("GET", url, key=False).status == 200
    assert anonymous.upload(upload, jpeg).status == 201
    assert client.confirm(pending["orderId"]).status == 200
    assert client.wait(pending["orderId"])["status"] == "complete"


def test_an_upload_that_arrives_during_the_suspension_leaves_nothing(stack, anonymous, jpeg):
    """The check at the end of the body refuses the upload; the check before the body was made while the account was active."""
    client = stack.account_new()
    created = client.create(["a.jpg"], kind="wtr-embed", watermarks=[{"text": "x"}]).data
    upload = created["files"][0]["uploadUrl"]

    def pieces():
        yield jpeg[:1000]
        time.sleep(0.5)
        suspend(stack, client)
        yield jpeg[1000:]

    forbidden(anonymous.request("PUT", upload, pieces(), {"Content-Length": str(len(jpeg))}, key=False))
    assert stack.stored(created["orderId"]) == []
    assert stack.sql(f"SELECT status FROM orders WHERE id = {created['orderId']}") == [["pending"]]
    stack.ctl("account", "resume", client.account)
    assert anonymous.upload(upload, jpeg).status == 201


@pytest.mark.parametrize("kind", ["upload", "source"])
def test_jobs_of_a_suspended_account_wait(stack, jpeg, kind):
    remotes = Remotes()
    remotes.gives["/a.jpg"] = jpeg
    client, other = stack.account_new(), stack.account_new()
    try:
        with worker_stopped(stack):
            if kind == "upload":
                order = client.create(["a.jpg"]).data
                assert client.upload(order["files"][0]["uploadUrl"], jpeg).status == 201
                assert client.confirm(order["orderId"]).status == 200
            else:
                order = client.create([{"fileName": "a.jpg", "imageUrl": remotes.url("/a.jpg")}], kind="anti-ai/with-urls").data
            suspend(stack, client)
        # Meanwhile the worker serves other accounts.
        assert other.order_whole([("a.jpg", jpeg)])["status"] == "complete"
        time.sleep(SWEEPS_S)
        assert remotes.count("/a.jpg") == 0
        assert stack.sql(f"SELECT status, attempt FROM jobs WHERE order_id = {order['orderId']}") == [["queued", "0"]]
        resume(stack, client)
        assert client.wait(order["orderId"])["status"] == "complete"
    finally:
        remotes.close()


def test_more_suspended_accounts_than_a_lease_considers_delay_no_other(stack, jpeg):
    """A lease considers 64 accounts. It skips suspended accounts, and the next lease continues after them."""
    waiting = [stack.account_new() for _ in range(3)]
    with worker_stopped(stack):
        order = waiting[0].create(["a.jpg"]).data["orderId"]
        base = int(waiting[0].account) + 1000000
        stack.sql(f"""
            INSERT INTO accounts (id, name, plan, status, created_at) SELECT {base} + seq, CONCAT('suspended-{base}-', seq), 'free',
                'suspended', NOW(3) FROM seq_1_to_100;
            INSERT INTO jobs (account_id, order_id, file_id, kind, available_at, created_at, updated_at)
                SELECT {base} + seq, {order}, seq, 'protect', UTC_TIMESTAMP(3), NOW(3), NOW(3) FROM seq_1_to_100""")
    try:
        begun = time.monotonic()
        assert waiting[1].order_whole([("a.jpg", jpeg)])["status"] == "complete"
        print(f"beside 100 suspended accounts with queued jobs: {time.monotonic() - begun:.2f} s")
        assert time.monotonic() - begun < 90
        assert stack.sql(f"SELECT DISTINCT status FROM jobs WHERE order_id = {order}") == [["queued"]]
    finally:
        stack.sql(f"DELETE FROM jobs WHERE order_id = {order}; DELETE FROM accounts WHERE id > {base} AND id <= {base} + 100")


def test_deliveries_of_a_suspended_account_wait(stack, jpeg, receiver):
    client = stack.account_new()
    receiver.answers["/waits"] = (500, {"Retry-After": "3600"}, b"")  # no retry before the suspension
    assert client.post(f"{ORDERS}/webhooks", {"url": receiver.url("/waits")}).status == 201
    client.order_whole([("a.jpg", jpeg)])
    hook = client.get(f"{ORDERS}/webhooks").data["webhooks"][0]["id"]
    end = time.monotonic() + 90
    while not stack.sql(f"SELECT 1 FROM webhook_deliveries WHERE webhook_id = {hook} AND status = 'PENDING' AND failure_count = 1"):
        assert time.monotonic() < end, "no attempt has failed"
        time.sleep(0.1)
    suspend(stack, client)
    # The first attempt failed long ago, so another failure would deactivate the webhook. The next attempt is due now.
    stack.sql(f"UPDATE webhooks SET first_failure_at = UTC_TIMESTAMP(3) - INTERVAL 6 DAY WHERE id = {hook};"
              f"UPDATE webhook_deliveries SET available_at = UTC_TIMESTAMP(3) WHERE webhook_id = {hook}")
    time.sleep(SWEEPS_S)
    assert len(receiver.at("/waits")) == 1
    receiver.answers["/waits"] = 200
    resume(stack, client)
    assert len(receiver.wait("/waits", 2)) == 2
    hook = client.get(f"{ORDERS}/webhooks").data["webhooks"][0]
    assert hook["isActive"] is True


def test_the_answer_to_a_suspended_account_has_the_limits_numbers(stack):
    client = stack.account_new(requests_per_minute=3)
    suspend(stack, client)
    answers = [client.list() for _ in range(4)]
    for number, answer in enumerate(answers[:3]):
        forbidden(answer)
        assert answer.headers["RateLimit-Limit"] == "3"
        assert answer.headers["RateLimit-Remaining"] == str(2 - number)
    assert answers[3].status == 429
