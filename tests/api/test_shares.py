"""Fair shares of the pool: limits that are checked first, requests in progress, invalid keys, connections of uploads."""
import http.client
import json
import os
import re
import select
import subprocess
import threading
import time
import urllib.parse
import uuid

import pytest

import client as client_module
import openapi
import pictures
from client import ORDERS
from wire import Wire

LARGE = 1000000


def pool_cpu_s(stack):
    """Returns the CPU seconds that the processes of the pool have used."""
    ticks = 0
    for pid in client_module.children(stack.pid("api")):
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            words = file.read().rsplit(")", 1)[1].split()
        ticks += int(words[11]) + int(words[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def posted(client, body):
    return client.post(f"{ORDERS}/wtr-embed", body, headers={"Content-Type": "application/json"})


# ---- Limits before work

BODIES = {
    "values": b'{"a":[' + b"0," * (LARGE // 2) + b"0]}",
    "files": b'{"files":[' + b"{}," * (LARGE // 3) + b"{}]}",
}


@pytest.mark.parametrize("name", BODIES)
def test_a_large_body_over_the_limit_is_refused_before_it_is_parsed(stack, name):
    client = stack.account_new(requests_per_minute=1)
    assert client.list().status == 200
    before = pool_cpu_s(stack)
    assert [posted(client, BODIES[name]).status for _ in range(10)] == [429] * 10
    spent = (pool_cpu_s(stack) - before) / 10
    print(f"{name}: {spent * 1000:.0f} ms of CPU for a refused body of {len(BODIES[name])} bytes")
    assert spent < 0.02


def test_too_many_files_are_refused_before_they_are_parsed(stack, client):
    before = pool_cpu_s(stack)
    for _ in range(10):
        answer = posted(client, BODIES["files"])
        assert answer.status == 400 and answer.fields() == ["files"], answer
    spent = (pool_cpu_s(stack) - before) / 10
    print(f"{spent * 1000:.0f} ms of CPU for {LARGE // 3} files")
    assert spent < 0.02


def test_a_large_creation_counts_once_and_replays(stack):
    client = stack.account_new(requests_per_minute=10)
    body = {"idempotencyKey": uuid.uuid4().hex, "files": [{"fileName": "a.jpg"}], "filler": "x" * 20000}
    first, again = (client.post(f"{ORDERS}/anti-ai", body) for _ in range(2))
    assert (first.status, again.status) == (201, 200)
    assert again.headers["Idempotent-Replayed"] == "true" and again.data["orderId"] == first.data["orderId"]
    assert [answer.headers["RateLimit-Remaining"] for answer in (first, again)] == ["9", "8"]


def test_a_refused_large_creation_burns_no_key(client):
    key = uuid.uuid4().hex
    body = {"idempotencyKey": key, "files": [{"fileName": "a.gif"}], "filler": "x" * 20000}
    assert client.post(f"{ORDERS}/anti-ai", body).status == 400
    body["files"] = [{"fileName": "a.jpg"}]
    assert client.post(f"{ORDERS}/anti-ai", body).status == 201


# ---- Requests in progress

class TableLock:
    """Locks the table of orders, so that requests that read it stay in progress."""

    def __init__(self, stack):
        self.words = ["mariadb", "--no-defaults", "-n", "-N", "-S", stack.environment["IMGWARD_DB_SOCKET"], "imgward"]
        self.holder = None

    def take(self):
        self.holder = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.holder.stdin.write("LOCK TABLES orders WRITE; SELECT 'held';\n")
        self.holder.stdin.flush()
        assert self.holder.stdout.readline() == "held\n"

    def release(self):
        if self.holder is not None:
            self.holder.communicate(timeout=60)
            self.holder = None


@pytest.fixture
def lock(stack):
    lock = TableLock(stack)
    yield lock
    lock.release()


def at_once(count, call):
    """Starts calls in threads; returns the list that receives the responses, and the threads."""
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(call())) for _ in range(count)]
    for thread in threads:
        thread.start()
    return answers, threads


def until(condition, seconds=12):
    """Waits for a condition. Requests that wait for the table end after 15 s (database.timeout_s of the tests)."""
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.02)
    return condition()


def refused_now(answer):
    assert answer.status == 429 and answer.code == "RATE_LIMIT_EXCEEDED", answer
    assert answer.headers["Retry-After"] == "1" and answer.headers["RateLimit-Limit"]


def test_an_account_has_so_many_requests_in_progress(stack, lock):
    """The plan free has four. Other accounts are served meanwhile, and the places are free again afterwards."""
    client, other = stack.account_new("free", None), stack.account_new()
    lock.take()
    answers, threads = at_once(7, lambda: client.detail(5))
    assert until(lambda: len(answers) == 3)
    for answer in answers:
        refused_now(answer)
        assert "4 requests at the same time" in answer.json["message"]
    assert other.get(f"{ORDERS}/webhooks").status == 200
    lock.release()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [404] * 4 + [429] * 3
    assert client.detail(5).status == 404


@pytest.mark.parametrize("query, words", [("keyword=a", "one search"), ("limit=-1", "one list with limit=-1")])
def test_an_account_has_one_expensive_list_in_progress(stack, lock, query, words):
    client, other = stack.account_new(), stack.account_new()
    lock.take()
    answers, threads = at_once(8, lambda: client.get(f"{ORDERS}?{query}"))
    assert until(lambda: len(answers) == 7)
    for answer in answers:
        refused_now(answer)
        assert words in answer.json["message"]
    assert client.get(f"{ORDERS}/webhooks").status == 200
    assert other.get(f"{ORDERS}/webhooks").status == 200
    lock.release()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [200] + [429] * 7
    assert client.get(f"{ORDERS}?{query}").status == 200


def test_a_killed_process_leaves_no_request_in_progress(stack, lock):
    client = stack.account_new("free", None)
    lock.take()
    answers, threads = at_once(5, lambda: client.detail(5))
    pool = client_module.children(stack.pid("api"))
    assert until(lambda: len(answers) == 1)
    refused_now(answers[0])
    for pid in pool:
        os.kill(pid, 9)
    lock.release()
    for thread in threads:
        thread.join()
    assert {answer.status for answer in answers[1:]} <= {502, 503}
    assert client_module.until_served(lambda: client.detail(5), 404).status == 404


def test_statements_of_the_pool_end_in_the_server(stack, lock):
    """If no process waits for a statement any longer, the statement must not continue in the server."""
    with open(stack.environment["IMGWARD_CONFIG"], encoding="utf-8") as file:
        timeout_s = int(re.search(r"^timeout_s = (\d+)", file.read(), re.M)[1])
    client = stack.account_new()
    lock.take()
    begun = time.monotonic()
    answer = client.detail(5)
    spent = time.monotonic() - begun
    print(f"answered {answer.status} after {spent:.1f} s")
    assert answer.status == 503 and answer.headers["Retry-After"]
    # The driver of the client would wait four times as long.
    assert timeout_s - 1 <= spent < 3 * timeout_s


def test_a_statement_that_is_ended_is_named(stack, lock):
    client = stack.account_new()
    with stack.configured("database", "statement_max_s", "1"):
        lock.take()
        answer = client.list()
        lock.release()
    assert answer.status == 503 and answer.headers["Retry-After"]
    assert answer.code == "SERVICE_UNAVAILABLE" and "The database took too long" in answer.json["message"]
    with open(os.path.join(stack.environment["IMGWARD_LOG"], "api.log"), encoding="utf-8") as file:
        assert any('"reason":"statement_timeout"' in line and answer.json["requestId"] in line for line in file)


# ---- Invalid keys

def flood(stack, count, key, source, path=f"{ORDERS}?limit=1"):
    """Sends count requests on one connection; returns the statuses."""
    found = []
    with Wire(stack, source=source) as wire:
        for _ in range(count):
            wire.send(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}\r\n\r\n")
            found.append(wire.answer()[0])
    return found


@pytest.mark.parametrize("kind", ["revoked", "unknown"])
def test_a_dead_key_does_not_lock_out_its_successor(stack, client, kind):
    """A forgotten job still uses a dead key, so every process has throttled the address."""
    address = {"revoked": "127.0.0.41", "unknown": "127.0.0.42"}[kind]
    dead = stack.key_new(client.account)
    if kind == "revoked":
        number = stack.sql(f"SELECT id FROM api_keys WHERE digest = UNHEX(SHA2('{dead}', 256))")[0][0]
        stack.ctl("key", "revoke", number)
    else:
        stack.sql(f"DELETE FROM api_keys WHERE digest = UNHEX(SHA2('{dead}', 256))")
    stack.part("stop", "worker")  # its statements do not count
    try:
        queries = int(stack.sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'")[0][1])
        found, end = [], time.monotonic() + 120
        while (not found or found[-50:].count(429) < 50) and time.monotonic() < end:
            found += flood(stack, 100, dead, address)
        queries = int(stack.sql("SHOW GLOBAL STATUS LIKE 'Com_stmt_execute'")[0][1]) - queries
    finally:
        stack.part("start", "worker")
    print(f"{len(found)} requests with a dead key: {found.count(401)} times 401, {found.count(429)} times 429, {queries} statements")
    assert set(found) == {401, 429}
    assert queries < len(found) / 2, "the database is asked once for each process"
    for _ in range(5):
        fresh = stack.key_new(client.account)
        assert flood(stack, 20, fresh, address) == [200] * 20
    assert flood(stack, 1, dead, "127.0.0.43") == [401]


def test_invalid_keys_are_limited_at_unknown_paths_too(stack, client):
    found, end = [], time.monotonic() + 120
    while found.count(429) < 50 and time.monotonic() < end:
        found += flood(stack, 100, "iw_live_" + "z" * 43, "127.0.0.44", "/api/v2/nothing")
    assert found.count(404) >= 60 and found.count(429) >= 50, (found.count(404), found.count(429))


def test_requests_to_unknown_paths_count(stack):
    client = stack.account_new(requests_per_minute=2)
    answers = [client.get("/api/v2/nothing"), client.request("DELETE", ORDERS), client.get("/api/v2/nothing")]
    assert [answer.status for answer in answers] == [404, 405, 429]
    assert [answer.headers["RateLimit-Remaining"] for answer in answers] == ["1", "0", "0"]
    assert answers[1].headers["Allow"]


# ---- Uploads that never end

class Trickle:
    """An upload of which some bytes arrived."""

    def __init__(self, stack, url, source="127.0.0.1"):
        path = url[url.index("/files/"):]
        self.wire = Wire(stack, source=source)
        self.wire.__enter__()
        self.wire.send(f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n" + "x" * 100)

    def refusal(self):
        """Returns status and body of a response that comes before the body is complete, or None."""
        self.wire.socket.settimeout(0.1)
        try:
            status, headers, body = self.wire.answer()
        except (TimeoutError, OSError):
            return None
        return status, headers, json.loads(body)

    def close(self):
        self.wire.socket.close()


def refusals_of(held, count):
    """Waits for count refusals among uploads; returns these and those that follow soon."""
    sockets = [one.wire.socket for one in held]
    until(lambda: len(select.select(sockets, [], [], 0)[0]) >= count, 60)
    time.sleep(1)
    return [refusal for refusal in (one.refusal() for one in held) if refusal]


def test_a_url_has_two_uploads_at_a_time(stack, client, anonymous):
    created = client.create(["a.jpg", "b.jpg"]).data["files"]
    held = [Trickle(stack, created[0]["uploadUrl"]) for _ in range(5)]
    try:
        refusals = refusals_of(held, 3)
        assert len(refusals) == 3, refusals
        for status, headers, body in refusals:
            assert status == 429 and body["code"] == "RATE_LIMIT_EXCEEDED" and headers["retry-after"], body
            assert "upload" in body["message"]
        # Another URL is not affected.
        assert anonymous.upload(created[1]["uploadUrl"], pictures.jpeg(64, 64)).status == 201
    finally:
        for one in held:
            one.close()
    # nginx notices the closed connections a moment later.
    assert until(lambda: anonymous.upload(created[0]["uploadUrl"], pictures.jpeg(64, 64)).status in (200, 201), 60)


def test_a_stranger_does_not_keep_the_owner_of_a_url_out(stack, client, anonymous):
    """A refused upload stays open while nginx discards the body, but does not count as an upload of the URL or address."""
    url = client.create().data["files"][0]["uploadUrl"]
    forged = url.partition("?")[0] + "?e=9999999999&m=1&k=one&s=" + "A" * 43
    held = [Trickle(stack, forged) for _ in range(40)]
    try:
        assert [refusal[0] for refusal in refusals_of(held, 40)] == [403] * 40
        assert [anonymous.upload(url, pictures.jpeg(64, 64)).status for _ in range(3)] == [201, 200, 200]
    finally:
        for one in held:
            one.close()


def test_an_address_has_so_many_uploads_at_a_time(stack, client, anonymous):
    """The limit is 32 (nginx/http.conf). Another address is not affected."""
    urls = [file["uploadUrl"] for file in client.create([f"{number}.jpg" for number in range(40)]).data["files"]]
    held = [Trickle(stack, url, "127.0.0.45") for url in urls]
    try:
        refusals = refusals_of(held, 8)
        assert len(refusals) == 8 and {refusal[0] for refusal in refusals} == {429}
        assert anonymous.upload(urls[0], pictures.jpeg(64, 64)).status == 201
    finally:
        for one in held:
            one.close()


@pytest.mark.parametrize("source, path", [("127.0.0.48", "/nothing"), ("127.0.0.49", "/healthz"), ("127.0.0.50", "/store-events")])
def test_other_paths_are_limited_for_each_address(stack, source, path):
    found, end = [], time.monotonic() + 60
    with Wire(stack, source=source) as wire:
        while found.count(429) < 10 and time.monotonic() < end:
            found += [status for status, _, _ in wire.answers(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n", 50)]
    assert found.count(429) >= 10 and len(found) < 5000, len(found)


def test_requests_to_signed_urls_are_limited_for_each_address(stack):
    found, end = [], time.monotonic() + 60
    while found.count(429) < 50 and time.monotonic() < end:
        with Wire(stack, source="127.0.0.46") as wire:
            # nginx closes a connection after 1,000 requests.
            for status, headers, body in wire.answers("GET /files/out/1/1?e=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", 500):
                found.append(status)
                openapi.check("GET", "/files/out/1/1", client_module.Answer(status, {name.title(): value[0] for name, value in headers.items()}, body))
    print(f"{len(found)} downloads with a wrong signature: {found.count(429)} times 429")
    assert set(found) == {403, 429}
    with Wire(stack, source="127.0.0.47") as wire:
        wire.send("GET /files/out/1/1?e=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert wire.answer()[0] == 403


# ---- Redirects

@pytest.mark.parametrize("path", ["/", f"{ORDERS}?page=2"])
def test_redirects_to_https_ignore_the_host_header(stack, path):
    plain = urllib.parse.urlsplit(stack.environment["IMGWARD_HTTP_URL"])
    tls = urllib.parse.urlsplit(stack.url)
    for host, port in ((plain.hostname, plain.port), (tls.hostname, tls.port)):
        connection = http.client.HTTPConnection(host, port, timeout=60)
        connection.request("GET", path, headers={"Host": "evil.example"})
        answer = connection.getresponse()
        assert answer.status == 308
        assert answer.headers["Location"] == f"{stack.url}{path}"
        connection.close()
