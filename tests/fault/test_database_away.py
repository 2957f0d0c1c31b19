"""The database is stopped and restarted: clients get 503 while it is down; afterwards requests work and orders finish."""
import pytest

import pictures


def test_a_request_without_the_database_is_503_and_the_next_one_works(client, stack):
    order = client.create().data["orderId"]
    stack.part("stop", "mariadbd")
    try:
        for answer in (client.list(), client.detail(order), client.create(), client.confirm(order)):
            assert answer.status == 503 and answer.code == "SERVICE_UNAVAILABLE", answer
            assert int(answer.headers["Retry-After"]) >= 1
    finally:
        stack.part("start", "mariadbd")
    assert client.detail(order).status == 200
    # Each process of the pool has to detect that its connection is dead.
    for _ in range(60):
        assert client.list().status == 200


def test_a_killed_database_loses_nothing_that_was_answered(client, stack):
    orders = [client.create().data["orderId"] for _ in range(20)]
    stack.part("kill", "mariadbd")
    stack.part("start", "mariadbd")
    for order in orders:
        assert client.detail(order).status == 200


@pytest.mark.parametrize("verb", ["stop", "kill"])
def test_the_database_restarted_in_mid_order(client, stack, verb):
    created = client.create([f"{number}.jpg" for number in range(20)]).data
    for number, file in enumerate(created["files"]):
        assert client.upload(file["uploadUrl"], pictures.jpeg(300, 300, seed=number)).status == 201
    assert client.confirm(created["orderId"]).status == 200
    stack.part(verb, "mariadbd")
    stack.part("start", "mariadbd")
    data = client.wait(created["orderId"], 400)
    assert data["status"] == "complete" and data["completedFileCount"] == 20, data
    assert data["errors"] is None
