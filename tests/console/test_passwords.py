"""Sign-up, passwords, resets, the profile."""
import threading

import pytest

from browser import PASSWORD, Browser, address_new

NEW = "another long password"


def reset_token(stack, email, *options):
    return stack.ctl("user", "reset", *options, email).strip().partition("token=")[2]


@pytest.mark.parametrize("field, value", [
    ("email", "no address"), ("email", "a@b@c"), ("email", "a b@c.example"), ("email", "a@b\r\nBcc: c@d.example"),
    ("password", "short"), ("password", "x" * 257), ("name", ""), ("accountName", ""), ("accountName", "a\nb")])
def test_a_sign_up_names_the_bad_field(browser, field, value):
    body = {"email": address_new(), "password": PASSWORD, "name": "N", "accountName": address_new(), field: value}
    answer = browser.post("/sign-up", body)
    assert answer.status == 400 and answer.fields() == [field], answer


def test_the_address_is_no_password_and_belongs_to_one_user(browser, owner):
    email = address_new()
    assert browser.sign_up(email, password=email).fields() == ["password"]
    taken = browser.sign_up(owner.email.upper())
    assert taken.status == 400 and taken.fields() == ["email"]


def test_common_passwords_are_refused_at_each_place(stack, browser, owner):
    """NIST SP 800-63B, 5.1.1.2 applies to sign-up, reset, change and invitation. imgwardctl makes random passwords."""
    common, details = "Password1234", []
    answers = [browser.sign_up(password=common),
               browser.post("/password/reset", {"token": reset_token(stack, owner.email), "password": common}),
               owner.post("/user/password", {"currentPassword": PASSWORD, "newPassword": common})]
    invited = owner.post("/account/invitations", {"email": address_new(), "role": "member"})
    token = invited.data["link"].partition("token=")[2]
    answers.append(browser.post("/invitations/accept", {"token": token, "name": "Member", "password": common}))
    for answer in answers:
        assert answer.status == 400, answer
        details.append([(one["field"], "guessing programs try first" in one["message"]) for one in answer.json["details"]])
    assert details == [[("password", True)], [("password", True)], [("newPassword", True)], [("password", True)]]


def test_sign_up_is_closed_where_it_is_not_open(stack, browser):
    with stack.configured("console", "sign_up", "invite"):
        assert browser.get("/session").data["signUp"] == "invite"
        assert browser.sign_up().code == "SIGN_UP_CLOSED"
    assert browser.sign_up().status == 201


def test_a_password_change_needs_the_old_one_and_ends_other_sessions(stack, owner):
    second, before = Browser(stack), Browser(stack)
    before.cookies = dict(owner.cookies)
    second.sign_in(owner.email)
    wrong = owner.post("/user/password", {"currentPassword": NEW, "newPassword": NEW})
    assert wrong.status == 400 and wrong.fields() == ["currentPassword"]
    assert owner.post("/user/password", {"currentPassword": PASSWORD, "newPassword": "short"}).fields() == ["newPassword"]
    assert owner.post("/user/password", {"currentPassword": PASSWORD, "newPassword": NEW}).status == 200
    assert second.get("/user/sessions").status == 401 and owner.get("/user/sessions").status == 200
    # The user's session has a new id and a new token against forged requests.
    assert before.get("/user/sessions").status == 401 and owner.patch("/user", {"name": "Still here"}).status == 200
    assert Browser(stack).sign_in(owner.email).status == 401
    assert Browser(stack).sign_in(owner.email, NEW).status == 200


def test_a_reset_link_works_once_and_ends_all_sessions(stack, owner):
    first, token = reset_token(stack, owner.email), reset_token(stack, owner.email)
    browser = Browser(stack)
    assert browser.post("/password/reset", {"token": token, "password": "short"}).fields() == ["password"]
    for bad in (first, token[:-1] + ("A" if token[-1] != "A" else "B"), "x"):
        assert browser.post("/password/reset", {"token": bad, "password": NEW}).code == "TOKEN_INVALID"
    assert browser.post("/password/reset", {"token": token, "password": NEW}).status == 200
    assert browser.post("/password/reset", {"token": token, "password": PASSWORD}).code == "TOKEN_INVALID"
    assert owner.get("/user/sessions").status == 401
    assert browser.sign_in(owner.email, NEW).status == 200


def test_of_parallel_resets_one_succeeds(stack, owner):
    token, answers = reset_token(stack, owner.email), []

    def reset(number):
        answers.append(Browser(stack).post("/password/reset", {"token": token, "password": f"{NEW} {number}"}).status)
    threads = [threading.Thread(target=reset, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [200] + [400] * 5


def test_a_reset_link_expires(stack, owner):
    token = reset_token(stack, owner.email)
    stack.sql("UPDATE user_tokens SET expires_at = UTC_TIMESTAMP(3)")
    answer = Browser(stack).post("/password/reset", {"token": token, "password": NEW})
    assert answer.status == 400 and answer.code == "TOKEN_INVALID"


def test_a_token_serves_only_its_purpose(stack, owner):
    token = reset_token(stack, owner.email)
    browser = Browser(stack)
    assert browser.post("/email/verify", {"token": token}).code == "TOKEN_INVALID"
    assert browser.post("/session/second-factor", {"challenge": token, "code": "123456"}).code == "TOKEN_INVALID"
    assert browser.post("/invitations/accept", {"token": token, "name": "N", "password": NEW}).code == "TOKEN_INVALID"


def test_forgot_has_one_answer(owner, browser):
    assert browser.post("/password/forgot", {"email": owner.email}).data == {}
    assert browser.post("/password/forgot", {"email": address_new()}).data == {}


def test_requests_for_mails_never_make_a_sign_in_wait(stack, owner):
    for _ in range(8):
        owner.post("/password/forgot", {"email": owner.email})
        Browser(stack).sign_up(owner.email)
    assert Browser(stack).sign_in(owner.email).status == 200


def test_the_profile_changes(owner):
    answer = owner.patch("/user", {"name": "김철수", "language": "ko"})
    assert answer.status == 200 and answer.data["name"] == "김철수" and answer.data["language"] == "ko"
    assert owner.get("/session").data["user"]["language"] == "ko"
    assert owner.patch("/user", {"language": "xx"}).fields() == ["language"]


def test_the_commands_for_users(stack):
    email = address_new()
    account = stack.ctl("account", "create", email).split()[-1]
    password = stack.ctl("user", "create", "--name", "By hand", "--role", "member", email, account).strip()
    browser = Browser(stack)
    answer = browser.sign_in(email, password)
    assert answer.status == 200 and answer.data["account"]["role"] == "member" and not answer.data["user"]["isAdmin"]
    assert email in stack.ctl("user", "list", account)
    stack.ctl("user", "admin", email)
    assert browser.get("/session").data["user"]["isAdmin"] is True
    stack.ctl("user", "admin", "--undo", email)
    assert browser.get("/session").data["user"]["isAdmin"] is False
