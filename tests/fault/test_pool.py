"""The pool during failures: closed connections, a silent or flushed Redis, reloads, changed keys and accounts."""
import collections
import concurrent.futures
import os
import signal
import threading
import time
import uuid

import pytest

import client as client_module
from client import ORDERS, Client
from test_redis_away import log_lines


def until(condition, seconds=90):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def children(stack):
    return client_module.children(stack.pid("api"))


@pytest.fixture
def order(client):
    return client.create().data["orderId"]


def test_connections_that_the_database_closed_are_replaced_unseen(client, stack, order):
    stack.connections_kill()
    statuses = [client.create().status for _ in range(40)] + [client.detail(order).status for _ in range(40)]
    assert set(statuses) == {200, 201}, statuses


def test_redis_that_answers_nothing_delays_a_moment_only(client, stack, order):
    """Each process waits redis.timeout_ms (250) and logs that once per redis.retry_ms (1 s), not at each request."""
    processes, start = len(children(stack)), os.path.getsize(os.path.join(stack.environment["IMGWARD_LOG"], "api.log"))
    redis = stack.pid("redis")
    os.kill(redis, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            assert set(pool.map(lambda _: client.detail(order).status, range(320))) == {200}
        spent = time.monotonic() - begin
    finally:
        os.kill(redis, signal.SIGCONT)
    away = log_lines(stack, start, "redis_away")
    print(f"{len(away)} waits in {spent:.1f} s")
    assert away and len(away) <= processes * (spent + 1), (len(away), spent)


def test_redis_that_forgot_its_scripts_is_taught_them_again(client, stack):
    for _ in range(5):
        # For a second, a process that found Redis unavailable or slow does not use it.
        until(lambda: all(int(client.list().headers["RateLimit-Remaining"]) < 1000000 for _ in range(40)))
        stack.redis("FLUSHALL")
        stack.redis("SCRIPT", "FLUSH")
        answers = [client.list() for _ in range(20)]
        remaining = [int(answer.headers["RateLimit-Remaining"]) for answer in answers]
        if remaining == list(range(remaining[0], remaining[0] - 20, -1)):
            break
    assert remaining == list(range(remaining[0], remaining[0] - 20, -1)), remaining


def test_a_reload_replaces_every_process_and_breaks_no_request(client, stack, order):
    before, is_over, seen = children(stack), threading.Event(), collections.Counter()

    def ask():
        while not is_over.is_set():
            seen[client.detail(order).status] += 1

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        os.kill(stack.pid("api"), signal.SIGHUP)
        until(lambda: not before & children(stack) and len(children(stack)) == len(before))
        asked = seen[200]
        until(lambda: seen[200] > asked + 10)
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
    assert set(seen) == {200} and seen[200] > 10, seen


def test_a_bad_configuration_keeps_the_one_in_force(client, stack, order):
    with open(stack.environment["IMGWARD_CONFIG"], encoding="utf-8") as file:
        good = file.read()
    before = children(stack)
    try:
        stack.configure(good + "\n[api]\nnonsense = 1\n")
        until(stack.hangup("api"))
        assert children(stack) == before
        assert client.detail(order).status == 200
    finally:
        stack.configure(good)


def test_a_reload_takes_new_values_over(client, stack):
    with open(stack.environment["IMGWARD_CONFIG"], encoding="utf-8") as file:
        good = file.read()

    def reload_with(text):
        before = children(stack)
        stack.configure(text)
        os.kill(stack.pid("api"), signal.SIGHUP)
        until(lambda: not before & children(stack) and len(children(stack)) == len(before))

    large = {"idempotencyKey": uuid.uuid4().hex, "files": [{"fileName": "a.jpg"}], "filler": "x" * 3000}
    try:
        reload_with(good.replace("[api]", "[api]\nbody_max_bytes = 2000"))
        answer = client.post(f"{ORDERS}/anti-ai", large)
        assert answer.status == 413 and "2000" in answer.json["message"], answer
    finally:
        reload_with(good)
    assert client.post(f"{ORDERS}/anti-ai", large).status == 201


def test_a_suspended_account_is_403(stack):
    client = stack.account_new()
    assert client.list().status == 200
    stack.ctl("account", "suspend", client.account)
    time.sleep(5.5)  # longer than api.key_cache_s: every process must have dropped the cached key
    assert [client.list().code for _ in range(20)] == ["AUTH_FORBIDDEN"] * 20


def test_an_expired_key_is_401(stack, client):
    key = stack.key_new(client.account)
    stack.sql("UPDATE api_keys SET expires_at = NOW(3) - INTERVAL 1 SECOND WHERE digest = UNHEX(SHA2('%s', 256))" % key)
    answer = Client(stack, key).list()
    assert answer.status == 401 and answer.code == "AUTH_TOKEN_EXPIRED", answer


def test_keys_remember_when_they_were_used(stack, client):
    key = stack.key_new(client.account)
    used = "SELECT last_used_at FROM api_keys WHERE digest = UNHEX(SHA2('%s', 256))" % key
    assert stack.sql(used) == [["NULL"]]
    Client(stack, key).list()
    assert stack.sql(used) != [["NULL"]]
