"""Sign-in: sessions, CSRF, fixation, brute force, the second factor."""
import hashlib
import http.cookies
import json
import math
import os
import re
import threading
import time

import pytest

from browser import COOKIE, PASSWORD, Browser, address_new, totp

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def test_without_a_session_the_page_learns_how_to_sign_up(browser):
    answer = browser.get("/session")
    data = dict(answer.data)
    service = data.pop("service")
    assert service["maxFiles"] == 100 and service["minPasswordLength"] == 12, service
    assert answer.status == 200 and data == {
        "user": None, "account": None, "csrfToken": None, "signUp": "open", "mail": False, "operatorContact": None}
    refused = browser.get("/v2/orders")
    assert refused.status == 401 and refused.code == "SESSION_REQUIRED"
    assert refused.headers["WWW-Authenticate"] == "Session"


def test_a_session_has_a_strict_cookie_and_only_its_digest_is_stored(stack, browser):
    answer = browser.sign_up()
    assert answer.status == 201 and answer.data["state"] == "signedIn"
    [morsel] = http.cookies.SimpleCookie(answer.headers["Set-Cookie"]).values()
    assert morsel.key == COOKIE and morsel["path"] == "/" and not morsel["domain"]
    assert morsel["secure"] and morsel["httponly"] and morsel["samesite"] == "Lax"
    token = browser.cookies[COOKIE]
    assert len(token) == 43
    digest = hashlib.sha256(token.encode()).hexdigest()
    assert stack.sql(f"SELECT COUNT(*) FROM user_sessions WHERE digest = X'{digest}'") == [["1"]]
    shown = browser.get("/session").data
    assert shown["user"]["email"] == browser.email and shown["account"]["role"] == "owner"
    assert shown["csrfToken"] == browser.csrf
    assert token not in open(stack.environment["IMGWARD_LOG"] + "/console.log", encoding="utf-8").read()


def test_signing_out_ends_the_session_everywhere(browser, stack):
    browser.sign_up()
    copy = Browser(stack)
    copy.cookies = dict(browser.cookies)
    assert copy.get("/user/sessions").status == 200
    assert browser.delete("/session").status == 200 and COOKIE not in browser.cookies
    assert copy.get("/user/sessions").code == "SESSION_REQUIRED"


def test_a_session_ends_after_its_times(stack, owner):
    # Each of these times ends a new session, which the worker's retention then deletes.
    for column, last_s, ended_s in (("seen_at", -43100, -43201), ("expires_at", 100, -1)):
        browser = Browser(stack)
        assert browser.sign_in(owner.email).status == 200
        token = hashlib.sha256(browser.cookies[COOKIE].encode()).hexdigest()
        for seconds, status in ((last_s, 200), (ended_s, 401)):
            stack.sql(f"UPDATE user_sessions SET {column} = UTC_TIMESTAMP(3) + INTERVAL {seconds} SECOND WHERE digest = X'{token}'")
            assert browser.get("/user/sessions").status == status
        assert browser.get("/user/sessions").code == "SESSION_REQUIRED"


def test_sessions_are_listed_and_ended(stack, owner):
    second = Browser(stack, agent="second browser")
    assert second.sign_in(owner.email).status == 200
    sessions = owner.get("/user/sessions").data["sessions"]
    assert [(row["userAgent"], row["isCurrent"]) for row in sessions] == [("second browser", False), ("test browser", True)]
    assert sessions[0]["address"] == owner.address
    assert owner.delete(f"/user/sessions/{sessions[0]['id']}").status == 200
    assert second.get("/user/sessions").status == 401
    second.sign_in(owner.email)
    third = Browser(stack)
    third.sign_in(owner.email)
    assert third.delete("/user/sessions").status == 200
    assert owner.get("/user/sessions").status == second.get("/user/sessions").status == 401
    assert third.get("/user/sessions").page["totalItems"] == 1


# ---- CSRF ----

SAME = {"Sec-Fetch-Site": "same-origin"}


@pytest.mark.parametrize("headers", [
    {"Origin": "https://evil.example"},
    {"Origin": None},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "none"},
])
def test_a_change_from_another_origin_is_refused(owner, headers):
    answer = owner.patch("/user", {"name": "Other"}, headers=headers)
    assert answer.status == 403 and answer.code == "CSRF_TOKEN_INVALID"


def test_a_change_without_the_token_is_refused(owner, other):
    for token in (None, "", "x" * 43, other.csrf):
        answer = owner.patch("/user", {"name": "Other"}, headers={"X-CSRF-Token": token})
        assert answer.status == 403 and answer.code == "CSRF_TOKEN_INVALID", token
        answer = owner.post("/v2/orders/anti-ai", {"idempotencyKey": "csrf", "files": [{"fileName": "a.jpg"}]},
                            headers={"X-CSRF-Token": token})
        assert answer.code == "CSRF_TOKEN_INVALID"
    assert owner.patch("/user", {"name": "New name"}, headers={**SAME, "Origin": None}).data["name"] == "New name"


def test_a_form_of_another_page_cannot_sign_in(owner):
    """Login CSRF: a browser sends a form with the Origin of its page, and never as JSON."""
    body = json.dumps({"email": owner.email, "password": PASSWORD})
    for headers in ({"Content-Type": "application/x-www-form-urlencoded", **SAME}, {"Content-Type": "text/plain", **SAME},
                    {"Content-Type": None, **SAME}, {"Content-Type": "application/json", "Origin": "https://evil.example"},
                    {"Content-Type": "application/json", "Origin": "null"}):
        answer = Browser(owner.stack).request("POST", "/session", body, headers)
        assert answer.status == 403 and answer.code == "CSRF_TOKEN_INVALID", headers
        assert "Set-Cookie" not in answer.headers


def test_reading_needs_no_token(owner):
    assert owner.get("/session", headers={"Origin": None}, csrf=False).data["user"] is not None


# ---- fixation ----

def test_a_token_that_the_client_brings_is_never_taken_over(stack, owner, other):
    planted = other.cookies[COOKIE]
    victim = Browser(stack)
    victim.cookies[COOKIE] = planted
    assert victim.sign_in(owner.email).status == 200
    assert victim.cookies[COOKIE] != planted
    # The planted session ended with the sign-in and never became that of the victim.
    assert other.get("/user/sessions").code == "SESSION_REQUIRED"
    assert victim.get("/session").data["user"]["email"] == owner.email
    victim.cookies[COOKIE] = "A" * 43
    assert victim.get("/session").data["user"] is None


# ---- bodies before a session ----

OPEN = ["/session", "/session/second-factor", "/sign-up", "/email/verify", "/password/forgot", "/password/reset", "/invitations/inspect",
        "/invitations/accept"]


def test_the_routes_without_a_session_are_known():
    text = open(os.path.join(ROOT, "src", "console", "session.c"), encoding="utf-8").read()
    assert sorted(re.findall(r'\{METHOD_POST, "/api([^"]*)", \w+, ROUTE_OPEN\}', text)) == sorted(OPEN)


@pytest.mark.parametrize("path", OPEN)
def test_a_body_before_sign_in_is_small(stack, path):
    """The body is refused by its length. The pool has a limit, too, for another web server (test_serve.c)."""
    answer = Browser(stack).request("POST", path, {"z": [0] * 9000})
    assert answer.status == 413 and answer.code == "PAYLOAD_TOO_LARGE" and "16384" in answer.json["message"], answer
    assert Browser(stack).post(path, {"z": "x" * 16000}).status == 400


def test_large_bodies_before_sign_in_make_nobody_wait(stack, owner):
    """Without the limit, 24 connections with bodies of 240 kB delayed a signed-in user by seconds."""
    def median(end):
        waits = []
        while time.monotonic() < end:
            begin = time.monotonic()
            assert owner.get("/user/sessions").status in (200, 429)
            waits.append(time.monotonic() - begin)
            time.sleep(0.05)
        return sorted(waits)[len(waits) // 2]
    alone = median(time.monotonic() + 1)
    end, body = time.monotonic() + 3, {"z": [0] * 80000}

    def flood():
        while time.monotonic() < end:
            Browser(stack).post("/session", body)
    threads = [threading.Thread(target=flood) for _ in range(4)]
    for thread in threads:
        thread.start()
    beside = median(end)
    for thread in threads:
        thread.join()
    assert beside < max(0.5, 10 * alone), (beside, alone)


# ---- brute force ----

def test_unknown_user_and_wrong_password_have_one_answer(stack, owner):
    answers = [Browser(stack).sign_in(email, "not the password")
               for email in (owner.email, address_new(), "No.Such@" + "x" * 60 + ".example")]
    assert {(answer.status, answer.code, answer.json["message"]) for answer in answers} == {
        (401, "SIGN_IN_FAILED", "The email address, the password or the code is wrong.")}
    assert all("Set-Cookie" not in answer.headers for answer in answers)


@pytest.mark.parametrize("is_known", [True, False])
def test_attempts_on_a_user_wait_longer_and_longer(stack, owner, is_known):
    email = owner.email if is_known else address_new()
    browser = Browser(stack)
    assert [browser.sign_in(email, "wrong password").status for _ in range(5)] == [401] * 5
    waits = []
    for _ in range(6):
        refused = browser.sign_in(email, "wrong password")
        if refused.status == 401:  # the wait was over before this request
            continue
        assert refused.status == 429 and refused.code == "SIGN_IN_LIMITED"
        waits.append(int(refused.headers["Retry-After"]))
        # Time passes; the next attempt counts and doubles the wait.
        stack.sql("UPDATE sign_in_attempts SET next_at = UTC_TIMESTAMP(3)")
        assert browser.sign_in(email, "wrong password").status == 401
    assert waits == sorted(waits) and waits[-1] >= 16, waits
    if is_known:  # the correct password has to wait, too
        assert browser.sign_in(email).status == 429
        stack.sql("UPDATE sign_in_attempts SET next_at = UTC_TIMESTAMP(3)")
        assert browser.sign_in(email).status == 200
        assert browser.sign_in(email, "wrong password").status == 401  # counted from the beginning


def test_attempts_from_an_address_are_limited_over_all_users(stack):
    browser = Browser(stack)
    # The first wait is a second and may be over before the next attempt; each wait is twice as long as the previous.
    statuses = [browser.sign_in(address_new(), "wrong password").status for _ in range(36)]
    assert statuses[:30] == [401] * 30 and 429 in statuses[30:], statuses


def count_set(stack, name, attempts, seconds):
    """Writes a count of attempts, named as in src/domain/people/throttle.c."""
    digest = hashlib.sha256(name.encode()).hexdigest()
    stack.sql(f"REPLACE INTO sign_in_attempts VALUES (X'{digest}', {attempts}, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) + INTERVAL {seconds} SECOND)")


def test_wrong_passwords_of_others_make_no_user_wait(stack, owner):
    attacker = Browser(stack, address="127.0.0.2")
    assert [attacker.sign_in(owner.email, "wrong password").status for _ in range(5)] == [401] * 5
    # The wait is a second. It is made longer, so that a slow machine does not try after it.
    stack.sql("UPDATE sign_in_attempts SET next_at = next_at + INTERVAL 600 SECOND WHERE next_at > tried_at")
    assert attacker.sign_in(owner.email, "wrong password").status == 429
    assert attacker.sign_in(owner.email).status == 429
    assert Browser(stack).sign_in(owner.email).status == Browser(stack, address="127.0.0.3").sign_in(owner.email).status == 200
    assert owner.post("/user/totp", {"password": PASSWORD}).status == 200
    assert owner.post("/user/password", {"currentPassword": PASSWORD, "newPassword": PASSWORD + " new"}).status == 200


def test_attempts_from_many_networks_make_only_unknown_networks_wait(stack, owner):
    count_set(stack, f"user:{owner.email}", 200, 300)
    assert Browser(stack, address="127.0.0.4").sign_in(owner.email).status == 429
    assert owner.post("/user/totp", {"password": PASSWORD}).status == 200
    token = stack.ctl("user", "reset", owner.email).strip().partition("token=")[2]
    unknown = Browser(stack, address="127.0.0.4")
    assert unknown.post("/password/reset", {"token": token, "password": PASSWORD}).status == 200
    assert unknown.sign_in(owner.email).status == 200  # a reset clears the count
    count_set(stack, f"user:{owner.email}", 200, 300)
    assert Browser(stack).sign_in(owner.email).status == 200  # the network is known from an earlier sign-in


def test_a_session_has_its_own_count_of_wrong_passwords(stack, owner):
    statuses = [owner.post("/user/totp", {"password": "wrong password"}).status for _ in range(8)]
    assert statuses[:5] == [400] * 5 and 429 in statuses
    second = Browser(stack)
    assert second.sign_in(owner.email).status == 200
    assert second.post("/user/totp", {"password": PASSWORD}).status == 200


def test_a_refused_attempt_writes_no_row(stack):
    """Otherwise a flood of new addresses would fill the table."""
    browser = Browser(stack)
    count_set(stack, f"address:{browser.address}", 40, 300)
    before = stack.sql("SELECT COUNT(*) FROM sign_in_attempts")
    assert {browser.sign_in(address_new(), "wrong password").status for _ in range(50)} == {429}
    assert stack.sql("SELECT COUNT(*) FROM sign_in_attempts") == before


def test_parallel_attempts_count_before_they_are_checked(stack, owner):
    statuses = []
    threads = [threading.Thread(target=lambda: statuses.append(Browser(stack).sign_in(owner.email, "wrong password").status))
               for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(statuses) == {401, 429} and statuses.count(401) <= 10, statuses


def test_failures_are_in_the_audit_log(stack, owner):
    Browser(stack).sign_in(owner.email, "wrong password")
    row = stack.sql("SELECT event, address FROM audit_events WHERE event = 'signInFailed' ORDER BY id DESC LIMIT 1")
    assert row == [["signInFailed", owner.address]]


def test_a_disabled_user_is_refused_and_its_sessions_end(stack, owner):
    stack.ctl("user", "disable", owner.email)
    assert owner.get("/user/sessions").status == 401
    assert Browser(stack).sign_in(owner.email).code == "SIGN_IN_FAILED"
    stack.ctl("user", "disable", "--undo", owner.email)
    assert Browser(stack).sign_in(owner.email).status == 200


def test_the_time_of_an_unknown_user_is_that_of_a_known_one(stack, owner):
    """With the hash of production, both cost one Argon2id hash, by far the longest step."""
    hashed = dict.fromkeys((owner.email, address_new()), math.inf)
    with stack.configured("console", "hash_memory_bytes", "67108864"), stack.configured("console", "hash_operations", "2"):
        assert Browser(stack).sign_in(owner.email).status == 200  # makes a new hash
        for _ in range(4):
            for email in hashed:
                stack.sql("DELETE FROM sign_in_attempts")
                begin = time.monotonic()
                assert Browser(stack).sign_in(email, "wrong password").status == 401
                hashed[email] = min(hashed[email], time.monotonic() - begin)
    known, unknown = hashed.values()
    assert 0.5 < known / unknown < 2, hashed


# ---- the second factor ----

def enabled(browser):
    """Enables the second factor; returns the secret and the recovery codes."""
    made = browser.post("/user/totp", {"password": PASSWORD})
    assert made.status == 200, made
    secret = made.data["secret"]
    assert f"secret={secret}" in made.data["otpauthUrl"]
    answer = browser.post("/user/totp/enable", {"code": totp(secret)})
    assert answer.status == 200, answer
    # The code of this step counts as used; a test may use it again.
    browser.stack.sql(f"UPDATE users SET totp_step = 0 WHERE email = '{browser.email}'")
    return secret, answer.data["recoveryCodes"]


def challenged(stack, email):
    browser = Browser(stack)
    answer = browser.sign_in(email)
    assert answer.data["state"] == "secondFactor" and "Set-Cookie" not in answer.headers
    return browser, answer.data["challenge"]


def second(browser, challenge, code):
    return browser.took(browser.post("/session/second-factor", {"challenge": challenge, "code": code}))


def test_the_second_factor_is_asked_for_and_each_code_works_once(stack, owner):
    secret, codes = enabled(owner)
    assert len(codes) == len(set(codes)) == 10
    assert owner.get("/session").data["user"]["totpEnabled"] is True
    browser, challenge = challenged(stack, owner.email)
    code = totp(secret)
    assert second(browser, challenge, code).data["state"] == "signedIn"
    again, challenge = challenged(stack, owner.email)
    assert second(again, challenge, code).code == "SIGN_IN_FAILED"
    assert second(again, challenge, codes[0].lower()).status == 200
    last, challenge = challenged(stack, owner.email)
    assert second(last, challenge, codes[0]).code == "SIGN_IN_FAILED"
    assert second(last, challenge, codes[1].replace("-", "")).status == 200
    # A challenge is valid for one sign-in.
    assert second(last, challenge, codes[2]).code == "TOKEN_INVALID"


def test_the_second_factor_ends_the_sessions_that_had_only_a_password(stack, owner):
    before = Browser(stack)
    before.cookies, token = dict(owner.cookies), owner.cookies[COOKIE]
    second = Browser(stack)
    second.sign_in(owner.email)
    enabled(owner)
    assert second.get("/user/sessions").status == before.get("/user/sessions").status == 401
    assert owner.cookies[COOKIE] != token and owner.patch("/user", {"name": "Still here"}).status == 200


def test_a_challenge_allows_few_wrong_codes(stack, owner):
    enabled(owner)
    browser, challenge = challenged(stack, owner.email)
    codes = []
    for _ in range(6):
        stack.sql("UPDATE sign_in_attempts SET next_at = UTC_TIMESTAMP(3)")
        codes.append(second(browser, challenge, "000000").code)
    assert codes == ["SIGN_IN_FAILED"] * 5 + ["TOKEN_INVALID"]


def test_a_refused_attempt_takes_no_code_of_the_challenge(stack, owner):
    _, codes = enabled(owner)
    browser, challenge = challenged(stack, owner.email)
    for _ in range(3):
        stack.sql("UPDATE sign_in_attempts SET next_at = UTC_TIMESTAMP(3) + INTERVAL 60 SECOND")
        assert [second(browser, challenge, "000000").status for _ in range(3)] == [429] * 3
    stack.sql("UPDATE sign_in_attempts SET next_at = UTC_TIMESTAMP(3)")
    assert second(browser, challenge, codes[0]).status == 200


def test_wrong_codes_count_like_wrong_passwords(stack, owner):
    enabled(owner)
    statuses = []
    for _ in range(4):
        answer = Browser(stack).sign_in(owner.email)
        statuses.append(answer.status)
        if answer.status == 200:
            statuses.append(second(Browser(stack), answer.data["challenge"], "000000").status)
    assert 429 in statuses and 200 in statuses


def test_changes_of_the_second_factor_need_the_password(stack, owner):
    wrong = owner.post("/user/totp", {"password": "not the password"})
    assert wrong.status == 400 and wrong.fields() == ["password"]
    secret, codes = enabled(owner)
    assert owner.post("/user/totp", {"password": PASSWORD}).status == 400
    fresh = owner.post("/user/totp/recovery-codes", {"password": PASSWORD}).data["recoveryCodes"]
    assert not set(fresh) & set(codes)
    assert owner.post("/user/totp/disable", {"password": PASSWORD}).status == 200
    assert Browser(stack).sign_in(owner.email).data["state"] == "signedIn"
    assert stack.sql("SELECT COUNT(*) FROM recovery_codes c JOIN users u ON u.id = c.user_id "
                     f"WHERE u.email = '{owner.email}'") == [["0"]]


def test_a_wrong_code_does_not_enable_it(owner):
    owner.post("/user/totp", {"password": PASSWORD})
    answer = owner.post("/user/totp/enable", {"code": "123"})
    assert answer.status == 400 and answer.fields() == ["code"]
    assert owner.get("/session").data["user"]["totpEnabled"] is False
