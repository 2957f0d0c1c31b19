"""Mails: verification, reset, invitation, deactivated webhook, sign-in from a new place; English and Korean."""
import re
import time

import pytest

import receiver
from browser import PASSWORD, Browser, address_new
from sink import mail_server

NEW = "another long password"


@pytest.fixture(scope="module")
def sink(stack):
    """A mail server that the stack uses while this module runs."""
    with mail_server(stack, "console@imgward.example") as server:
        yield server


def signed_up(stack, sink, email=None):
    """Returns a browser of a new owner whose address is verified."""
    email, browser = email or address_new(), Browser(stack)
    answer = browser.sign_up(email)
    assert answer.status == 201 and answer.data == {"state": "verify"} and not browser.cookies
    assert browser.post("/email/verify", {"token": sink.token(email)}).status == 200
    assert browser.sign_in(email).status == 200
    return browser


def test_a_sign_up_is_verified_by_a_link(stack, sink):
    email, browser = address_new(), Browser(stack)
    browser.sign_up(email)
    mail = sink.of(email)
    assert mail["Subject"] == "Verify your email address" and mail["From"] == "console@imgward.example"
    assert f"{stack.url}/console/#/verify?token=" in mail.get_content()
    browser.sign_in(email)
    assert browser.get("/session").data["user"]["emailVerified"] is False
    for refused in (browser.get("/v2/orders"), browser.get("/keys"), browser.get("/account")):
        assert refused.status == 403 and refused.code == "EMAIL_UNVERIFIED"
    assert browser.post("/email/verify/resend").status == 200
    token = sink.token(email, count=2)
    assert browser.post("/email/verify", {"token": token}).status == 200
    assert browser.post("/email/verify", {"token": token}).code == "TOKEN_INVALID"
    assert browser.get("/v2/orders").status == 200
    assert browser.get("/session").data["mail"] is True


def test_a_sign_up_with_a_known_address_has_the_same_answer(stack, sink):
    known = signed_up(stack, sink)
    count = len([1 for to, _ in sink.mails if to == known.email])
    answer = Browser(stack).sign_up(known.email)
    assert answer.status == 201 and answer.data == {"state": "verify"}
    assert sink.of(known.email, count=count + 1)["Subject"] == "You already have a user"


def test_a_forgotten_password_is_reset_by_a_link_once(stack, sink):
    owner = signed_up(stack, sink)
    owner.patch("/user", {"language": "ko"})
    browser = Browser(stack)
    assert browser.post("/password/forgot", {"email": owner.email}).data == {}
    mail = sink.of(owner.email, count=2)
    assert mail["Subject"] == "새 비밀번호를 설정해 주세요"
    token = mail.get_content().partition("token=")[2].split()[0]
    assert browser.post("/password/reset", {"token": token, "password": NEW}).status == 200
    assert browser.post("/password/reset", {"token": token, "password": NEW}).code == "TOKEN_INVALID"
    assert owner.get("/user/sessions").status == 401
    assert browser.sign_in(owner.email, NEW).status == 200


def test_no_token_is_readable_in_the_database(stack, sink):
    with_failure = address_new()
    sink.failing.add(with_failure)
    Browser(stack).sign_up(with_failure)
    end = time.monotonic() + 60
    while not (rows := stack.sql(f"SELECT HEX(sealed), reason FROM mails WHERE recipient = '{with_failure}' AND attempt > 0 "
                                 "AND reason IS NOT NULL")):
        assert time.monotonic() < end
        time.sleep(0.05)
    assert b"token=".hex().upper() not in rows[0][0]
    # The mail is retried when the wait is over.
    stack.sql(f"UPDATE mails SET available_at = UTC_TIMESTAMP(3) WHERE recipient = '{with_failure}'")
    token = sink.token(with_failure)
    assert len(token) == 43
    end = time.monotonic() + 60
    while stack.sql(f"SELECT 1 FROM mails WHERE recipient = '{with_failure}'"):
        assert time.monotonic() < end
        time.sleep(0.05)
    log = open(stack.environment["IMGWARD_LOG"] + "/worker.log", encoding="utf-8").read()
    assert token not in log and '"event":"mail_retried"' in log


def test_a_worker_that_stops_finishes_its_mail(stack, sink):
    email, sink.slow_s = address_new(), 2
    try:
        Browser(stack).sign_up(email)
        sink.of(email)
        stack.part("stop", "worker")
    finally:
        sink.slow_s = 0
        stack.part("start", "worker")
    assert stack.sql(f"SELECT 1 FROM mails WHERE recipient = '{email}'") == [] and len([1 for to, _ in sink.mails if to == email]) == 1


def mail_check(stack, operator):
    """Returns the line of doctor and the status of the health page."""
    output = stack.ctl("doctor", check=False)
    [line] = [line for line in output.splitlines() if line.startswith("mail ")]
    [check] = [check for check in operator.get("/admin/health").data["checks"] if check["name"] == "mail"]
    return line.split(None, 2)[1:], check


def test_a_mail_that_fails_is_reported_until_one_is_sent(stack, sink, operator):
    email = address_new()
    stack.sql("DELETE FROM mails")  # the mail of an earlier test would be sent after the failure
    sink.failing.add(email)
    Browser(stack).sign_up(email)
    end = time.monotonic() + 60
    while mail_check(stack, operator)[0][0] != "WRONG":
        assert time.monotonic() < end
        time.sleep(0.2)
    (_, line), check = mail_check(stack, operator)
    assert re.match(r"the last mail failed at 20.*Z: .+ \(451\); see \[mail\] of the configuration$", line), line
    assert check["status"] == "warning" and "(451)" in check["message"]
    stack.sql(f"UPDATE mails SET available_at = UTC_TIMESTAMP(3) WHERE recipient = '{email}'")
    sink.of(email)
    end = time.monotonic() + 60
    while mail_check(stack, operator)[0][0] != "ok":
        assert time.monotonic() < end
        time.sleep(0.2)
    (_, line), check = mail_check(stack, operator)
    assert line.startswith("the last mail was sent at 20") and check["status"] == "ok"


def test_an_invitation_comes_by_mail(stack, sink):
    owner, email = signed_up(stack, sink), address_new()
    answer = owner.post("/account/invitations", {"email": email, "role": "member"})
    assert answer.status == 201 and "link" not in answer.data
    token = sink.token(email)
    browser = Browser(stack)
    assert browser.post("/invitations/inspect", {"token": token}).data["email"] == email
    accepted = browser.took(browser.post("/invitations/accept", {"token": token, "name": "M", "password": PASSWORD}))
    assert accepted.data["account"]["role"] == "member" and accepted.data["user"]["emailVerified"] is True


# ---- mails to strangers ----

def of(sink, recipient, kind):
    return [mail for to, mail in list(sink.mails) if to == recipient and mail["Subject"] == kind]


def test_invitations_have_limits_by_sender_recipient_and_day(stack, sink):
    owner = signed_up(stack, sink)
    statuses = [owner.post("/account/invitations", {"email": address_new(), "role": "member"}).status for _ in range(20)]
    assert statuses == [201] * 20
    refused = owner.post("/account/invitations", {"email": address_new(), "role": "member"})
    assert refused.status == 429 and refused.code == "USAGE_LIMIT_EXCEEDED" and int(refused.headers["Retry-After"]) > 0
    # After an invitation is deleted, another may be sent, but not on the same day.
    assert owner.delete(f"/account/invitations/{owner.get('/account/members').data['invitations'][0]['id']}").status == 200
    assert "today" in owner.post("/account/invitations", {"email": address_new(), "role": "member"}).json["message"]
    target = address_new()
    for count in range(4):
        owner = signed_up(stack, sink)
        first = owner.post("/account/invitations", {"email": target, "role": "member"})
        again = owner.post("/account/invitations", {"email": target, "role": "member"})
        assert (first.status, again.status) == (201 if count < 3 else 429, 429), (first, again)
    assert len(owner.get("/account/members").data["invitations"]) == 0
    sink.of(target, count=3)
    time.sleep(1)
    assert len(of(sink, target, "Invitation to an account")) == 3


def test_a_mail_quotes_the_account_s_name_and_no_subject_has_it(stack, sink):
    owner, email = signed_up(stack, sink), address_new()
    name = "Your invoice is overdue: pay at https://evil.example/pay " + address_new()
    assert owner.patch("/account", {"name": name}).status == 200
    assert owner.post("/account/invitations", {"email": email, "role": "member"}).status == 201
    mail = sink.of(email)
    assert mail["Subject"] == "Invitation to an account" and f'the account "{name}"' in mail.get_content()


def test_mails_of_a_kind_have_a_limit_by_recipient_that_strangers_cannot_use_up(stack, sink):
    owner = signed_up(stack, sink)
    for number in range(3):
        stranger = Browser(stack, address=f"127.0.1.{number + 1}")
        for _ in range(5):
            assert stranger.post("/password/forgot", {"email": owner.email}).status == 200
            stranger.sign_up(owner.email)
    sink.of(owner.email, count=14)
    time.sleep(1)
    assert len(of(sink, owner.email, "Set a new password")) == 10
    assert len(of(sink, owner.email, "You already have a user")) == 3
    assert Browser(stack).post("/password/forgot", {"email": owner.email}).status == 200
    sink.of(owner.email, count=15)
    assert len(of(sink, owner.email, "Set a new password")) == 11


# ---- a sign-up with another person's address ----

def squatted(stack):
    """Returns a browser that is signed in with an address of another person."""
    squatter = Browser(stack)
    email = address_new()
    assert squatter.sign_up(email).data == {"state": "verify"}
    assert squatter.sign_in(email).status == 200
    return squatter


def test_a_second_factor_needs_a_verified_address(stack, sink):
    squatter = squatted(stack)
    refused = squatter.post("/user/totp", {"password": PASSWORD})
    assert refused.status == 403 and refused.code == "EMAIL_UNVERIFIED"


def test_a_reset_of_an_unverified_user_removes_its_second_factor(stack, sink):
    squatter = squatted(stack)
    stack.sql(f"UPDATE users SET totp_sealed = REPEAT('x', 36), totp_enabled_at = NOW() WHERE email = '{squatter.email}'")
    browser = Browser(stack)
    assert browser.post("/password/forgot", {"email": squatter.email}).status == 200
    assert browser.post("/password/reset", {"token": sink.token(squatter.email, count=2), "password": NEW}).status == 200
    assert browser.sign_in(squatter.email, NEW).data["state"] == "signedIn"
    assert squatter.get("/session").data["user"] is None


def test_an_invitation_replaces_an_unverified_user(stack, sink):
    owner, squatter = signed_up(stack, sink), squatted(stack)
    assert owner.post("/account/invitations", {"email": squatter.email, "role": "member"}).status == 201
    browser, token = Browser(stack), sink.token(squatter.email, count=2)
    answer = browser.took(browser.post("/invitations/accept", {"token": token, "name": "M", "password": NEW}))
    assert answer.status == 200 and browser.account == owner.account
    assert squatter.get("/session").data["user"] is None
    # A verified user stays.
    verified = signed_up(stack, sink)
    assert owner.post("/account/invitations", {"email": verified.email, "role": "member"}).status == 201
    token = sink.token(verified.email, count=2)
    refused = browser.post("/invitations/accept", {"token": token, "name": "M", "password": NEW})
    assert refused.status == 400 and "another account" in refused.json["message"]
    assert verified.get("/session").data["user"] is not None


def test_an_unverified_user_is_removed_after_a_day(stack, sink):
    squatter, fresh = squatted(stack), squatted(stack)
    stack.sql(f"UPDATE users SET created_at = created_at - INTERVAL 25 HOUR WHERE email = '{squatter.email}'")
    owner = Browser(stack)
    assert owner.sign_up(squatter.email, password=NEW).data == {"state": "verify"}
    assert squatter.get("/session").data["user"] is None and fresh.get("/session").data["user"] is not None
    assert owner.post("/email/verify", {"token": sink.token(squatter.email, count=2)}).status == 200
    assert owner.sign_in(squatter.email, NEW).status == 200


def test_a_sign_up_does_not_show_whether_an_address_has_a_user(stack, sink):
    owner = signed_up(stack, sink)
    name = owner.get("/account").data["name"]
    answers = [Browser(stack).post("/sign-up", {"email": email, "password": PASSWORD, "name": "N", "accountName": name})
               for email in (owner.email, address_new())]
    assert [(answer.status, answer.fields()) for answer in answers] == [(400, ["accountName"])] * 2


def test_a_sign_in_from_a_new_place_is_reported(stack, sink):
    owner = signed_up(stack, sink)
    assert Browser(stack).sign_in(owner.email).status == 200
    stack.sql(f"UPDATE audit_events SET details = 'network\\t192.0.2.1\\n' WHERE event = 'signedIn' AND account_id = {owner.account}")
    assert Browser(stack, agent="new browser").sign_in(owner.email).status == 200
    mail = sink.of(owner.email, count=2)
    assert mail["Subject"] == "Sign-in from a new place"
    assert owner.address in mail.get_content() and "new browser" in mail.get_content()
    assert len([1 for to, _ in sink.mails if to == owner.email]) == 2


def test_a_deactivated_webhook_is_reported_to_the_owners(stack, sink):
    owner, server = signed_up(stack, sink), receiver.Receiver()
    server.answers["/gone"] = 410
    made = owner.post("/v2/orders/webhooks", {"url": server.url("/gone"), "name": "gone"})
    assert made.status == 201, made
    assert owner.post(f"/v2/orders/webhooks/{made.data['id']}/test").status == 200
    mail = sink.of(owner.email, count=2)
    assert mail["Subject"] == "Your webhook was deactivated" and server.url("/gone") in mail.get_content()
    server.close()


def test_the_operator_mails_a_reset(stack, sink, operator):
    owner = signed_up(stack, sink)
    [user] = operator.get(f"/admin/users?keyword={owner.email}").items
    answer = operator.post(f"/admin/users/{user['id']}/reset")
    assert answer.status == 200 and answer.data == {}
    assert sink.of(owner.email, count=2)["Subject"] == "Set a new password"
