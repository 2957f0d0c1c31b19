"""Check and act in the web console: a password is reset between the proof of the old password and the change that it permits.

The programs have fault points. A delay after the proof lets the other request come first. The delayed request must
have no effect.
"""
import os
import subprocess
import sys
import threading
import time

import pytest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), "console")]

import client as client_module  # noqa: E402
import points  # noqa: E402
import rounds  # noqa: E402
from browser import PASSWORD, Browser, totp  # noqa: E402

RESET, MINE = "set by the reset link", "set by the late request"


@pytest.fixture(scope="module")
def faults(tmp_path_factory):
    return points.Faults(str(tmp_path_factory.mktemp("faults") / "points"), points.CONSOLE_PLACES)


@pytest.fixture(scope="module")
def stack(faults, tmp_path_factory):
    var = str(tmp_path_factory.mktemp("stack"))
    environment = {**os.environ, "IMGWARD_VAR": var, "IMGWARD_BUILD": rounds.build(), "IMGWARD_FAULTS": faults.path,
                   "IMGWARD_DATABASE_TIMEOUT_S": "15", "IMGWARD_REDIS_TIMEOUT_MS": "10000"}
    dev = lambda verb: subprocess.run([os.path.join(ROOT, "dev"), verb], env=environment, capture_output=True, text=True, timeout=600)  # noqa: E731
    up = dev("up")
    assert up.returncode == 0, up.stdout + up.stderr
    try:
        yield client_module.Stack(client_module.environment_read(os.path.join(var, "dev.env")))
    finally:
        down = dev("down")
        assert down.returncode == 0, down.stdout + down.stderr


class Late:
    """A request that waits at a fault point; answer() releases it and returns the response."""

    LONGEST_S = 50  # nginx gives up after 60 s

    def __init__(self, faults, change, request):
        name, self.given = f"verified.{change}", []
        before = faults.taken(name)
        faults.arm(name, "delay", delay_ms=1000 * self.LONGEST_S)
        self.thread = threading.Thread(target=lambda: self.given.append(request()))
        self.thread.start()
        end = time.monotonic() + 60
        while faults.taken(name) == before:
            assert time.monotonic() < end and self.thread.is_alive(), f"{name} was not reached: {self.given}"
            time.sleep(0.01)
        self.begun, self.faults = time.monotonic(), faults

    def answer(self):
        assert time.monotonic() - self.begun < self.LONGEST_S - 2, "the machine was too slow: the other request came too late"
        self.faults.disarm()
        self.thread.join()
        return self.given[0]


@pytest.fixture
def owner(stack, faults):
    stack.sql("DELETE FROM sign_in_attempts")
    browser = Browser(stack)
    assert browser.sign_up().status == 201
    browser.token = stack.ctl("user", "reset", browser.email).strip().partition("token=")[2]
    yield browser
    faults.disarm()


def reset(browser):
    answer = Browser(browser.stack).post("/password/reset", {"token": browser.token, "password": RESET})
    assert answer.status == 200, answer


def enabled(browser):
    secret = browser.post("/user/totp", {"password": PASSWORD}).data["secret"]
    answer = browser.post("/user/totp/enable", {"code": totp(secret)})
    assert answer.status == 200, answer
    return secret, answer.data["recoveryCodes"]


def sessions(browser):
    return browser.stack.sql(f"SELECT COUNT(*) FROM user_sessions s JOIN users u ON u.id = s.user_id WHERE u.email = '{browser.email}'")


def reset_holds(browser):
    """Checks that only the password of the reset signs in, and that no session is left."""
    assert sessions(browser) == [["0"]]
    for password, status in ((PASSWORD, 401), (MINE, 401), (RESET, 200)):
        browser.stack.sql("DELETE FROM sign_in_attempts")
        assert Browser(browser.stack).sign_in(browser.email, password).status == status, password


def test_a_sign_in_on_its_way_opens_no_session_after_a_reset(stack, faults, owner):
    late = Late(faults, "sign_in", lambda: Browser(stack).sign_in(owner.email))
    reset(owner)
    answer = late.answer()
    assert answer.status == 401 and answer.code == "SIGN_IN_FAILED" and "Set-Cookie" not in answer.headers
    reset_holds(owner)


def test_a_sign_in_on_its_way_opens_no_session_of_a_disabled_user(stack, faults, owner):
    late = Late(faults, "sign_in", lambda: Browser(stack).sign_in(owner.email))
    stack.ctl("user", "disable", owner.email)
    assert late.answer().code == "SIGN_IN_FAILED" and sessions(owner) == [["0"]]


def test_a_sign_in_on_its_way_does_not_pass_by_a_new_second_factor(stack, faults, owner):
    secret = owner.post("/user/totp", {"password": PASSWORD}).data["secret"]
    late = Late(faults, "sign_in", lambda: Browser(stack).sign_in(owner.email))
    assert owner.post("/user/totp/enable", {"code": totp(secret)}).status == 200
    assert late.answer().code == "SIGN_IN_FAILED" and sessions(owner) == [["1"]]


def test_a_challenge_on_its_way_ends_with_a_reset(stack, faults, owner):
    enabled(owner)
    late = Late(faults, "challenge", lambda: Browser(stack).sign_in(owner.email))
    reset(owner)
    assert late.answer().code == "SIGN_IN_FAILED"
    reset_holds(owner)


def test_a_code_on_its_way_opens_no_session_after_a_reset(stack, faults, owner):
    _, codes = enabled(owner)
    challenge = Browser(stack).sign_in(owner.email).data["challenge"]
    late = Late(faults, "second_factor", lambda: Browser(stack).post("/session/second-factor", {"challenge": challenge, "code": codes[0]}))
    reset(owner)
    answer = late.answer()
    assert answer.code == "SIGN_IN_FAILED" and "Set-Cookie" not in answer.headers
    reset_holds(owner)


def test_a_new_hash_of_the_old_password_does_not_undo_a_reset(stack, faults, owner):
    with stack.configured("console", "hash_memory_bytes", "2097152"):
        late = Late(faults, "hash_renew", lambda: Browser(stack).sign_in(owner.email))
        reset(owner)
        assert late.answer().code == "SIGN_IN_FAILED"
    reset_holds(owner)


@pytest.mark.parametrize("change, path, body", [
    ("password", "/user/password", {"currentPassword": PASSWORD, "newPassword": MINE}),
    ("totp_make", "/user/totp", {"password": PASSWORD})])
def test_a_change_on_its_way_has_no_effect_after_a_reset(stack, faults, owner, change, path, body):
    late = Late(faults, change, lambda: owner.post(path, body))
    reset(owner)
    answer = late.answer()
    assert answer.status == 401 and answer.code == "SESSION_REQUIRED", answer
    assert stack.sql(f"SELECT totp_sealed IS NULL FROM users WHERE email = '{owner.email}'") == [["1"]]
    reset_holds(owner)


def test_a_second_factor_on_its_way_is_not_enabled_after_a_reset(stack, faults, owner):
    secret = owner.post("/user/totp", {"password": PASSWORD}).data["secret"]
    late = Late(faults, "totp_enable", lambda: owner.post("/user/totp/enable", {"code": totp(secret)}))
    reset(owner)
    assert late.answer().code == "SESSION_REQUIRED"
    assert stack.sql(f"SELECT totp_enabled_at IS NULL FROM users WHERE email = '{owner.email}'") == [["1"]]
    reset_holds(owner)


@pytest.mark.parametrize("change, path", [("totp_disable", "/user/totp/disable"), ("recovery_codes", "/user/totp/recovery-codes")])
def test_the_second_factor_is_not_changed_after_a_reset(stack, faults, owner, change, path):
    _, codes = enabled(owner)
    late = Late(faults, change, lambda: owner.post(path, {"password": PASSWORD}))
    reset(owner)
    assert late.answer().code == "SESSION_REQUIRED"
    browser = Browser(stack)
    answer = browser.sign_in(owner.email, RESET)
    assert answer.data["state"] == "secondFactor"
    assert browser.post("/session/second-factor", {"challenge": answer.data["challenge"], "code": codes[0]}).status == 200
