"""Failures for which the order is not the cause: a store that is not writable, a clock that was set back."""
import os
import time

import pytest

import pictures
from receiver import Receiver


def shard(order):
    """Returns the folder of an order's files, computed as in src/service/files/store_local.c."""
    return f"{(int(order) * 11400714819323198485 % 2**64) >> 52:03x}"


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.close()


def test_a_store_that_cannot_be_written_for_long_fails_no_file(client, stack):
    """A file stands in place of the results' folder, for longer than the retries of a file last."""
    created = client.create(["a.jpg"]).data
    order = created["orderId"]
    assert client.upload(created["files"][0]["uploadUrl"], pictures.jpeg()).status == 201
    folder = os.path.join(stack.store, "out", shard(order))
    aside = folder + ".aside"
    if os.path.isdir(folder):
        os.rename(folder, aside)
    with stack.configured("worker", "retry_first_ms", "50"):
        with open(folder, "wb"):
            pass
        try:
            assert client.confirm(order).status == 200
            end = time.monotonic() + 240
            while int(stack.sql(f"SELECT MAX(attempt) FROM jobs WHERE order_id = {order}")[0][0]) < 7:
                assert time.monotonic() < end, "seven tries"
                time.sleep(0.1)
            assert stack.sql(f"SELECT status, failure_count, death_count FROM jobs WHERE order_id = {order}")[0][1:] == ["0", "0"]
            assert client.detail(order).data["status"] == "inProgress"
        finally:
            os.unlink(folder)
            if os.path.isdir(aside):
                os.rename(aside, folder)
        data = client.wait(order)
    assert data["status"] == "complete" and data["errors"] is None, data
    assert client.download(order).status == 200


def test_jobs_with_times_in_the_future_are_found_after_a_clock_step(stack, receiver):
    """The timestamps of rows from before the step are two hours in the future."""
    client = stack.account_new()
    assert client.post("/api/v2/orders/webhooks", {"url": receiver.url("/hook")}).status == 201
    stack.sql("CREATE TRIGGER ahead_jobs BEFORE INSERT ON jobs FOR EACH ROW SET NEW.available_at = NEW.available_at + INTERVAL 2 HOUR; "
              "CREATE TRIGGER ahead_deliveries BEFORE INSERT ON webhook_deliveries FOR EACH ROW "
              "SET NEW.available_at = NEW.available_at + INTERVAL 2 HOUR")
    try:
        order = client.order_whole([("a.jpg", pictures.jpeg()), ("b.jpg", pictures.jpeg(seed=2))], 400)
        assert order["status"] == "complete" and order["completedFileCount"] == 2
        [delivery, *_] = receiver.wait("/hook", 1, 240)
        assert delivery.json["data"]["orderId"] == order["orderId"]
    finally:
        stack.sql("DROP TRIGGER ahead_jobs; DROP TRIGGER ahead_deliveries")
