"""Bounds of the tables that a refused request may write, after ten thousand refusals, and lists of full tables."""
import concurrent.futures
import http.client
import json
import math
import time
import urllib.parse

import pytest

from browser import PASSWORD, Browser, address_new
from client import Client
from test_account import logged
from test_sign_in import count_set

DAY_S = 86400


def flood(stack, count, sent, addresses=20):
    """Sends requests over as many connections as addresses; returns a count of each status. sent(number) is method, path,
    body, headers."""
    base = urllib.parse.urlsplit(stack.url)

    def work(place):
        connection, seen = None, {}
        for number in range(place, count, addresses):
            connection = connection or http.client.HTTPSConnection(
                base.hostname, base.port, context=stack.tls, timeout=120, source_address=(f"127.0.3.{place + 1}", 0))
            method, path, body, headers = sent(number)
            connection.request(method, path, None if body is None else json.dumps(body),
                               {"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin", **headers})
            answer = connection.getresponse()
            answer.read()
            if answer.headers.get("Connection") == "close":
                connection.close()
                connection = None
            seen[answer.status] = seen.get(answer.status, 0) + 1
        return seen
    with concurrent.futures.ThreadPoolExecutor(addresses) as pool:
        every = list(pool.map(work, range(addresses)))
    return {status: sum(seen.get(status, 0) for seen in every) for status in {status for seen in every for status in seen}}


def by(browser):
    return {"Cookie": "; ".join(map("=".join, browser.cookies.items())), "X-CSRF-Token": browser.csrf}


def rows(stack, table, where="TRUE"):
    return int(stack.sql(f"SELECT COUNT(*) FROM {table} WHERE {where}")[0][0])


def test_refused_requests_with_a_key_write_no_row(stack):
    account = stack.account_new("free", requests_per_minute=60)
    seen = flood(stack, 10000, lambda number: ("GET", "/api/v2/orders/" + "z" * 100, None, {"Authorization": "Bearer " + account.key}))
    assert seen[429] > 9500 and seen.keys() <= {404, 429}, seen
    end = time.monotonic() + 60
    while rows(stack, "request_log", f"account_id = {account.account}") < seen[404] and time.monotonic() < end:
        time.sleep(0.1)
    time.sleep(2)
    assert rows(stack, "request_log", f"account_id = {account.account}") == seen[404]


def test_refused_sign_ins_write_few_rows(stack):
    """Each address has thirty attempts, then a wait. Rows count attempts by network, by pair and by user."""
    before, begin = rows(stack, "audit_events"), time.monotonic()
    seen = flood(stack, 10000, lambda number: ("POST", "/console/api/session", {"email": address_new(), "password": "wrong password"}, {}))
    # The waits are 1, 2, 4 seconds and so on, so only so many end within the time of the test.
    waits = math.log2(time.monotonic() - begin + 1)
    assert seen[401] <= 20 * (31 + waits) and seen[429] == 10000 - seen[401], seen
    assert rows(stack, "audit_events") - before == seen[401]
    assert rows(stack, "sign_in_attempts") <= 20 + 2 * seen[401]


def test_refused_changes_of_an_account_write_few_rows(stack, owner):
    """Invitations, keys and renaming are requested far more often than allowed, without mail."""
    tables = {"invitations": 20, "api_keys": 100, "audit_events": 2100, "mails": 0}
    before = {table: rows(stack, table) for table in tables}
    kinds = [("POST", "/console/api/account/invitations", lambda: {"email": address_new(), "role": "member"}),
             ("POST", "/console/api/keys", lambda: {"name": "k"}), ("PATCH", "/console/api/account", lambda: {"name": address_new()})]

    def sent(number):
        method, path, body = kinds[number % 3]
        return method, path, body(), by(owner)
    with stack.configured("console", "requests_per_minute", "1000000"):
        seen = flood(stack, 10000, sent, 24)
    assert seen.get(429, 0) > 7000 and seen.keys() <= {200, 201, 400, 429}, seen
    grown = {table: rows(stack, table) - before[table] for table in tables}
    assert all(grown[table] <= most for table, most in tables.items()), grown


def test_a_user_s_changes_of_a_day_are_limited_but_not_the_ways_out(stack, owner):
    user = owner.get("/session").data["user"]["id"]
    count_set(stack, f"changes:{user}", 1998, DAY_S)
    statuses = [owner.patch("/user", {"name": f"N {number}"}).status for number in range(4)]
    assert statuses == [200, 200, 429, 429]
    refused = owner.post("/keys", {"name": "x"})
    assert refused.code == "USAGE_LIMIT_EXCEEDED" and int(refused.headers["Retry-After"]) > 80000
    assert owner.post("/user/password", {"currentPassword": PASSWORD, "newPassword": PASSWORD + " 2"}).status == 200
    assert owner.delete("/user/sessions").status == 200 and owner.get("/account").status == 200


def test_a_user_s_sign_ins_and_sessions_are_limited(stack, owner):
    user = owner.get("/session").data["user"]["id"]
    stack.sql("INSERT INTO user_sessions (user_id, digest, address, user_agent, created_at, seen_at, expires_at) SELECT "
              f"{user}, UNHEX(SHA2(CONCAT('{user} ', seq), 256)), '::1', 'x', NOW(3), NOW(3), NOW(3) + INTERVAL 1 DAY FROM seq_1_to_150")
    assert Browser(stack).sign_in(owner.email).status == 200
    assert rows(stack, "user_sessions", f"user_id = {user}") == 100
    count_set(stack, f"sign-ins:{user}", 1000, DAY_S)
    refused = Browser(stack).sign_in(owner.email)
    assert refused.status == 429 and refused.code == "SIGN_IN_LIMITED" and "Set-Cookie" not in refused.headers
    token = stack.ctl("user", "reset", owner.email).strip().partition("token=")[2]
    assert Browser(stack).post("/password/reset", {"token": token, "password": PASSWORD}).status == 200
    assert Browser(stack).sign_in(owner.email).status == 200


def test_an_account_keeps_its_newest_rows(stack, owner):
    key = owner.post("/keys", {"name": "log"}).data
    stack.sql("INSERT INTO request_log (account_id, key_id, request_id, method, path, status, code, ms, at) SELECT "
              f"{owner.account}, {key['id']}, MD5(seq), 'GET', '/api/v2/orders', 200, '', 3, UTC_TIMESTAMP(3) FROM seq_1_to_100100; "
              "INSERT INTO request_bodies (account_id, request_id, request_body, response_body, at) SELECT "
              f"{owner.account}, MD5(seq), '', '', UTC_TIMESTAMP(3) FROM seq_1_to_10100; "
              "INSERT INTO audit_events (account_id, user_id, user_name, event, address, details, at) SELECT "
              f"{owner.account}, 1, 'x', 'signedIn', '::1', '', UTC_TIMESTAMP(3) FROM seq_1_to_100100")
    Client(stack, key["value"]).detail("1")
    logged(owner, "code=ORDER_NOT_FOUND")
    assert owner.patch("/user", {"name": "Newest"}).status == 200
    end = time.monotonic() + 240
    while any(rows(stack, table, f"account_id = {owner.account}") > 100000 for table in ("request_log", "audit_events")):
        assert time.monotonic() < end
        time.sleep(0.5)
    assert rows(stack, "request_log", f"account_id = {owner.account}") == 100000
    while rows(stack, "request_bodies", f"account_id = {owner.account}") > 10000:
        assert time.monotonic() < end
        time.sleep(0.5)
    assert rows(stack, "request_bodies", f"account_id = {owner.account}") == 10000


@pytest.fixture(scope="module")
def full(stack):
    """A signed-in owner of an account with 300,000 rows in each list, and a key id of the request log."""
    browser = Browser(stack)
    assert browser.sign_up().status == 201
    stack.sql("INSERT INTO request_log (account_id, key_id, request_id, method, path, status, code, ms, at) SELECT "
              f"{browser.account}, 1, MD5(seq), 'GET', '/api/v2/orders', IF(seq = 299990, 500, 200), '', 3, UTC_TIMESTAMP(3) FROM seq_1_to_300000")
    return browser


@pytest.mark.parametrize("query", ["", "code=ZZ", "requestId=nothing", "status=5xx", "page=90000", "status=2xx&page=50", "limit=-1"])
def test_a_list_of_the_request_log_reads_a_bounded_number_of_rows(stack, full, query):
    read = lambda: sum(int(value) for _, value in stack.sql("SHOW GLOBAL STATUS LIKE 'Handler_read%'"))  # noqa: E731
    full.get("/requests?" + query)
    for _ in range(10):  # the worker trims tables at the same time, and its reads count, too
        before = read()
        answer = full.get("/requests?" + query)
        count = read() - before
        assert answer.status == 200 and answer.page["totalItems"] <= 5000, answer
        if count < 40000:
            break
        time.sleep(3)
    assert count < 40000, "rows read"


def test_older_requests_are_found_from_list_to_list(full):
    found, before, lists = 0, "", 0
    while before is not None and lists < 100:
        answer = full.get("/requests?status=5xx" + (f"&before={before}" if before else ""))
        found, before, lists = found + answer.page["totalItems"], answer.page["olderBefore"], lists + 1
    assert found == 1 and 15 <= lists <= 62
    assert full.get("/requests?before=x").fields() == ["before"]


def test_an_account_runs_one_search_of_the_log_at_a_time(stack, owner):
    """Further searches are refused immediately; tests/api/test_shares.py keeps a search open."""
    seen = []
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for answer in pool.map(lambda _: Browser.get(owner, "/requests?code=NOTHING"), range(200)):
            seen.append(answer.status)
    assert set(seen) <= {200, 429} and 200 in seen
