"""Contract section 2: keys, plans, the rate limit."""
import hashlib
import re
import time

import pytest

from client import ORDERS, Client


def refused(answer, status, code):
    assert answer.status == status, answer
    assert answer.code == code
    if status == 401:
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")


PATHS = [("GET", ORDERS), ("POST", f"{ORDERS}/anti-ai"), ("POST", f"{ORDERS}/anti-ai/confirm"), ("GET", f"{ORDERS}/5"),
         ("GET", f"{ORDERS}/5/download"), ("POST", f"{ORDERS}/5/refresh-urls")]


@pytest.mark.parametrize("method, path", PATHS)
def test_no_header_is_401_everywhere(anonymous, method, path):
    refused(anonymous.request(method, path, {} if method == "POST" else None), 401, "AUTH_NOT_AUTHENTICATED")


@pytest.mark.parametrize("value", ["Basic abc", "Bearer", "Bearer ", "Bearer iw_live_short", "Bearer iw_test_" + "a" * 43,
                                   "Bearer iw_live_" + "a" * 42 + "-", "Bearer iw_live_" + "a" * 44])
def test_a_key_of_another_form_is_invalid_format(anonymous, value):
    answer = anonymous.get(ORDERS, headers={"Authorization": value})
    refused(answer, 401, "AUTH_TOKEN_INVALID_FORMAT")


def test_an_unknown_key_is_invalid(anonymous):
    refused(anonymous.get(ORDERS, headers={"Authorization": "Bearer iw_live_" + "a" * 43}), 401, "AUTH_TOKEN_INVALID")


def test_the_scheme_is_compared_without_case(client, anonymous):
    assert anonymous.get(ORDERS, headers={"Authorization": "bearer " + client.key}).status == 200


def test_keys_have_their_prefix_and_43_base62_characters(client):
    assert re.fullmatch(r"iw_live_[0-9A-Za-z]{43}", client.key)


def test_only_the_hash_of_a_key_is_stored(client, stack):
    tables = [row[0] for row in stack.sql("SHOW TABLES")]
    rows = "\n".join("\t".join(row) for table in tables if "key" in table
                     for row in stack.sql(f"SELECT * FROM {table}"))
    assert client.key not in rows and client.key[len("iw_live_"):] not in rows
    columns = stack.sql("SELECT table_name, column_name FROM information_schema.columns "
                        "WHERE table_schema = 'imgward' AND table_name = 'api_keys' AND column_name LIKE '%digest%'")
    digest = hashlib.sha256(client.key.encode()).hexdigest().upper()
    assert columns and any(stack.sql(f"SELECT 1 FROM {table} WHERE HEX({column}) = '{digest}'")
                           for table, column in columns)


def test_two_keys_of_an_account_see_the_same_orders(client, stack):
    other = Client(stack, stack.key_new(client.account))
    order = client.create().data["orderId"]
    assert other.detail(order).status == 200


def test_a_revoked_key_is_refused_within_the_cache_time_and_the_others_work(client, stack):
    key = stack.key_new(client.account)
    other = Client(stack, key)
    assert other.list().status == 200
    key_revoke(stack, client.account, key)
    time.sleep(5.5)  # longer than api.key_cache_s: every process must have dropped the cached key
    for _ in range(20):
        refused(other.list(), 401, "AUTH_TOKEN_INVALID")
    assert client.list().status == 200


def key_revoke(stack, account, key):
    """Finds the id of the key by the prefix in the list, and revokes it."""
    for line in stack.ctl("key", "list", account).splitlines():
        words = line.split()
        shown = [word for word in words if word.startswith("iw_live_")]
        if shown and key.startswith(shown[0].rstrip(".…*")):
            stack.ctl("key", "revoke", words[0])
            return
    raise AssertionError("the list does not show the key")


def test_plans_have_their_limits(planned):
    plan, client = planned
    answer = client.list()
    assert answer.status == 200
    assert int(answer.headers["RateLimit-Limit"]) == {"free": 60, "pro": 300, "enterprise": 1000}[plan]
    assert 0 <= int(answer.headers["RateLimit-Remaining"]) < int(answer.headers["RateLimit-Limit"])
    assert 0 <= int(answer.headers["RateLimit-Reset"]) <= 60


def test_every_authenticated_answer_carries_the_limit(client):
    for answer in (client.list(), client.get(f"{ORDERS}/1"), client.create(), client.create([]), client.list(page="x")):
        for name in ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"):
            assert answer.headers[name].isdigit(), answer


def test_over_the_limit_is_429_for_all_keys_of_the_account(stack):
    client = stack.account_new("free", None)
    other = Client(stack, stack.key_new(client.account))
    answers = [(client if number % 2 else other).list() for number in range(60)]
    statuses = [answer.status for answer in answers]
    assert statuses.count(200) == 60, statuses
    remaining = [int(answer.headers["RateLimit-Remaining"]) for answer in answers]
    assert remaining[0] == 59 and remaining == sorted(remaining, reverse=True)
    for one in (client, other):
        over = one.list()
        refused(over, 429, "RATE_LIMIT_EXCEEDED")
        assert 1 <= int(over.headers["Retry-After"]) <= 60
        assert over.headers["RateLimit-Remaining"] == "0"


def test_a_refused_request_does_not_push_the_window_away(stack):
    client = stack.account_new("free", 3)
    while client.list().status == 200:
        pass
    first = int(client.list().headers["Retry-After"])
    begin = time.monotonic()
    while time.monotonic() < begin + 3:
        client.list()
    assert int(client.list().headers["Retry-After"]) <= first - 2


def test_accounts_do_not_share_a_limit(stack):
    one, two = stack.account_new("free", 2), stack.account_new("free", 2)
    while one.list().status == 200:
        pass
    assert two.list().status == 200
