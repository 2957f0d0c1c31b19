"""Redis is flushed, stopped and killed during orders: nothing is lost or done twice."""
import uuid

import pytest

import pictures


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
