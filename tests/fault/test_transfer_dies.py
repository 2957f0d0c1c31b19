"""kill -9 of the worker during transfers: every file is fetched and pushed completely, and finishes once."""
import datetime
import os
import threading
import time

import pytest

import pictures
from remotes import Remotes
from test_worker_dies import kill


@pytest.fixture
def remotes():
    made = Remotes()
    yield made
    made.close()


def test_sources_are_fetched_whole_though_the_worker_is_killed_in_mid_transfer(client, stack, remotes):
    count, gate = 12, threading.Event()
    for number in range(count):
        remotes.gives[f"/{number}"] = ("gate", gate, pictures.jpeg(240, 200, seed=number))
    order = client.create([{"fileName": f"{number}.jpg", "imageUrl": remotes.url(f"/{number}")} for number in range(count)],
                          kind="anti-ai/with-urls").data["orderId"]
    before = 0  # a fast worker has already requested all files
    for _ in range(2):
        end = time.monotonic() + 120
        while len(remotes.asked) < before + 4:
            assert time.monotonic() < end, f"{len(remotes.asked) - before} of 4 transfers open"
            time.sleep(0.02)
        kill(stack, "worker")
        before = len(remotes.asked)
    gate.set()
    data = client.wait(order, 400)
    assert data["status"] == "complete" and data["completedFileCount"] == count and data["errors"] is None, data
    assert stack.sql(f"SELECT COUNT(*) FROM results WHERE order_id = {order}") == [[str(count)]]
    usage = stack.sql(f"SELECT SUM(result_count) FROM usage_days WHERE account_id = {client.account}")
    assert int(usage[0][0]) == count
    stack.settled(order)
    assert sorted(set(stack.stored(order))) == ["out", "thumb", "zip"]
    assert [name for name in os.listdir(os.path.join(stack.store, "tmp"))] == []


def test_results_reach_their_targets_though_the_worker_is_killed_while_pushing(client, stack, remotes):
    count = 6
    until = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    remotes.gives["/good"] = pictures.jpeg(240, 200, seed=3)
    for number in range(count):
        remotes.takes[f"/out/{number}"] = [("slow", b"ok"), 200]
    order = client.create([{"fileName": f"{number}.jpg", "imageUrl": remotes.url("/good")} for number in range(count)],
                          kind="anti-ai/with-urls", mode={"zeroCopy": True}, outputTargets=[
                              {"fileKey": "k", "url": remotes.url(f"/out/{number}"), "presignedUrlExpiresAt": until}
                              for number in range(count)]).data["orderId"]
    end = time.monotonic() + 120
    while not any(remotes.count(f"/out/{number}") for number in range(count)):
        assert time.monotonic() < end
        time.sleep(0.02)
    time.sleep(0.3)
    kill(stack, "worker")
    data = client.wait(order, 400)
    assert data["status"] == "complete" and data["completedFileCount"] == count, data
    for number in range(count):
        bodies = {body for _, body in remotes.put[f"/out/{number}"]}
        assert len(bodies) == 1 and pictures.decode(bodies.pop()).size == (240, 200)
    stack.emptied(order)
    assert stack.stored(order) == []
    assert stack.sql(f"SELECT 1 FROM results WHERE order_id = {order}") == []
