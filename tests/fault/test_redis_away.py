"""Redis is flushed, stopped and killed during orders: nothing is lost or done twice."""
import os
import time
import uuid

import pytest

import pictures
from client import children


@pytest.fixture
def without_redis(stack):
    stack.part("stop", "redis")
    yield
    stack.part("start", "redis")


def confirmed(client, count):
    created = client.create([f"{number}.jpg" for number in range(count)]).data
    for number, file in enumerate(created["files"]):
        assert client.upload(file["uploadUrl"], pictures.jpeg(300, 300, seed=number)).status == 201
    assert client.confirm(created["orderId"]).status == 200
    return created["orderId"]


def test_redis_flushed_in_mid_order(client, stack):
    order = confirmed(client, 20)
    for _ in range(5):
        stack.redis("flushall")
    data = client.wait(order, 400)
    assert data["status"] == "complete" and data["completedFileCount"] == 20


def test_redis_killed_in_mid_order(client, stack):
    order = confirmed(client, 20)
    stack.part("kill", "redis")
    try:
        data = client.wait(order, 400)
        assert data["status"] == "complete" and data["completedFileCount"] == 20
    finally:
        stack.part("start", "redis")


def test_without_redis_a_whole_order_goes_through(client, without_redis):
    data = client.wait(confirmed(client, 3), 400)
    assert data["status"] == "complete" and data["completedFileCount"] == 3


def test_without_redis_limits_fail_open(stack, without_redis):
    limited = stack.account_new("free", 2)
    assert [limited.list().status for _ in range(6)] == [200] * 6


def test_without_redis_idempotency_holds(client, without_redis):
    import concurrent.futures
    key = uuid.uuid4().hex
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda _: client.create(key=key), range(12)))
    assert sorted(answer.status for answer in answers) == [200] * 11 + [201]
    assert len({answer.data["orderId"] for answer in answers}) == 1
    assert client.create(["other.jpg"], key=key).status == 409


def test_redis_back_limits_again(stack):
    limited = stack.account_new("free", 3)
    stack.part("stop", "redis")
    limited.list()
    stack.part("start", "redis")
    import time
    time.sleep(1.5)
    statuses = [limited.list().status for _ in range(60)]
    assert 429 in statuses


def log_lines(stack, start, event):
    """Returns the lines of an event in the log of the pool after a position."""
    with open(os.path.join(stack.environment["IMGWARD_LOG"], "api.log"), "rb") as file:
        file.seek(start)
        return [line for line in file.read().splitlines() if f'"event":"{event}"'.encode() in line]


@pytest.mark.parametrize("refuse, accept, code", [
    (["CONFIG", "SET", "min-replicas-to-write", "1"], ["CONFIG", "SET", "min-replicas-to-write", "0"], b"NOREPLICAS"),
    (["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"], b"READONLY"),
])
def test_redis_that_answers_errors_is_away(stack, client, refuse, accept, code):
    """A process tries Redis and logs the error once per redis.retry_ms (1 s), not at each request."""
    processes = len(children(stack.pid("api")))
    start = os.path.getsize(os.path.join(stack.environment["IMGWARD_LOG"], "api.log"))
    stack.redis(*refuse)
    try:
        begin = time.monotonic()
        assert {client.list().status for _ in range(300)} == {200}
        seconds = time.monotonic() - begin
        away = log_lines(stack, start, "redis_away")
        # A process without a request since the test before first notices that its old connection is closed. On a slow machine,
        # an answer may be late.
        refused = [line for line in away if b'"reason":"send"' not in line and b'"reason":"timeout"' not in line]
        assert refused and all(code in line for line in refused)
        assert len(away) <= processes * (seconds + 1), (len(away), seconds)
        assert not log_lines(stack, start, "ratelimit_failed")
    finally:
        stack.redis(*accept)
    time.sleep(1.5)
    limited = stack.account_new("free", 3)
    assert 429 in [limited.list().status for _ in range(60)]
