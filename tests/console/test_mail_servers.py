"""The sender of mails, and mail servers that answer in unusual ways."""
import configparser
import os
import socket
import subprocess
import time

import pytest

from browser import Browser, address_new
from sink import Sink, mail_server

SQL = os.path.join(os.path.dirname(__file__), "..", "..", "sql")
SENDERS = [  # mail.from, and the name that a mail program shows
    ("no-reply@imgward.example", ""),
    ("Imgward <no-reply@imgward.example>", "Imgward"),
    ('"Images, safe" <no-reply@imgward.example>', "Images, safe"),
    ("Images Inc. <no-reply@imgward.example>", "Images Inc."),
    ("=?UTF-8?B?7J2066+47KeA?= <no-reply@imgward.example>", "이미지"),
    ("이미지 보호 서비스에서 보내는 안내 메일 <no-reply@imgward.example>", "이미지 보호 서비스에서 보내는 안내 메일"),
]
# Replies by command; None closes the connection.
TAKEN = {
    "several lines": {"greeting": b"220-hello\r\n220-" + b"x" * 400 + b"\r\n220 ready\r\n"},
    "bare line feed": {"greeting": b"220 bare\n"},
    "no EHLO": {"EHLO": b"502 5.5.1 not implemented\r\n"},
    "extensions": {"EHLO": b"250-sink\r\n250-8BITMIME\r\n250-SIZE 1000\r\n250-SMTPUTF8\r\n250 PIPELINING\r\n"},
    "will forward": {"RCPT": b"251 2.1.5 will forward\r\n"},
    "cannot verify": {"RCPT": b"252 cannot verify\r\n"},
    "long acceptance": {"end": b"250-2.0.0 queued\r\n250 2.0.0 as 123\r\n"},
    "no goodbye": {"QUIT": None},
}
REFUSED = {
    "too busy": {"greeting": b"421 4.3.2 too busy\r\n"},
    "no greeting": {"greeting": None},
    "closing": {"MAIL": b"421 closing\r\n"},
    "too big": {"MAIL": b"552 5.3.4 too big\r\n"},
    "no such user": {"RCPT": b"550 5.1.1 no such user\r\n"},
    "greylisted": {"RCPT": b"451 4.7.1 Greylisted, try again in 300 seconds\r\n"},
    "spam": {"end": b"554 5.7.1 spam\r\n"},
    "lost after the mail": {"end": None},
}


@pytest.fixture(scope="module")
def sink(stack):
    with mail_server(stack, "no-reply@imgward.example") as server:
        yield server


def waited(condition, seconds=60):
    end = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < end
        time.sleep(0.05)
    return value


def row(stack, recipient):
    return stack.sql(f"SELECT attempt, reason FROM mails WHERE recipient = '{recipient}'")


@pytest.mark.parametrize("odd", TAKEN.values(), ids=TAKEN)
def test_an_unusual_server_gets_each_mail_once(stack, sink, odd):
    email, sink.odd = address_new(), odd
    Browser(stack).sign_up(email)
    sink.of(email)
    waited(lambda: not row(stack, email))
    assert len([1 for to, _ in sink.mails if to == email]) == 1


@pytest.mark.parametrize("odd", REFUSED.values(), ids=REFUSED)
def test_a_refusal_is_recorded_and_the_mail_is_sent_again(stack, sink, odd):
    email, sink.odd = address_new(), odd
    Browser(stack).sign_up(email)
    assert waited(lambda: [reason for _, reason in row(stack, email) if reason != "NULL"])
    count = len([1 for to, _ in sink.mails if to == email])
    sink.odd = {}
    stack.sql(f"UPDATE mails SET available_at = UTC_TIMESTAMP(3) WHERE recipient = '{email}'")
    first = sink.of(email, count=count + 1)
    waited(lambda: not row(stack, email))
    assert len({mail["Message-ID"] for to, mail in sink.mails if to == email}) == 1, first


@pytest.mark.parametrize("sender, name", SENDERS)
def test_envelope_and_header_have_the_sender(stack, sender, name):
    with mail_server(stack, sender) as sink:
        email = address_new()
        Browser(stack).sign_up(email)
        mail = sink.of(email)
        assert [line for line in sink.lines if line.startswith("MAIL")] == ["MAIL FROM:<no-reply@imgward.example>"]
        [address] = mail["From"].addresses
        # Python's parser doubles a blank between two encoded words.
        assert address.display_name.replace("  ", " ") == name and address.addr_spec == "no-reply@imgward.example"
        assert all(len(line) <= 76 for line in dict(mail.raw_items())["From"].splitlines())
        assert mail["Message-ID"].endswith("@imgward.example>") and mail["Message-ID"].count(">") == 1
        assert mail.defects == [] and mail["From"].defects == ()


def doctor(stack, tmp_path, **mail):
    config, parser = tmp_path / "imgward.conf", configparser.RawConfigParser()
    parser.read(stack.environment["IMGWARD_CONFIG"], encoding="utf-8")
    parser["mail"] = mail
    with open(config, "w", encoding="utf-8") as file:
        parser.write(file)
    done = subprocess.run([stack.environment["IMGWARD_CTL"], "--config", config, "doctor", "--directory", SQL],
                          capture_output=True, text=True, timeout=180)
    return next((line for line in done.stdout.splitlines() if line.startswith("smtp ")), done.stdout + done.stderr)


@pytest.mark.parametrize("key, value", [
    ("from", "no-reply"), ("from", "no reply@x.example"), ("from", "a@x.example, b@x.example"), ("from", "A <a@x.example"),
    ("from", "A a@x.example>"), ("from", "<a@x.example> A"), ("from", "a@x..example"), ("from", "A, B <a@x.example>"),
    ("url", "mail.example"), ("url", "http://mail.example"), ("url", "smtp:///mail"), ("url", "smtp://mail.example?x"),
    ("url", "smtp://user:the-password@mail.example")])
def test_a_wrong_value_is_refused_when_the_configuration_is_read(stack, tmp_path, key, value):
    output = doctor(stack, tmp_path, **{"url": "smtp://127.0.0.1:25", "from": "a@x.example", key: value})
    assert f"mail.{key} is " in output and "must be" in output, output
    assert "the-password" not in output


def test_doctor_tries_the_server(stack, tmp_path):
    assert " ok " in doctor(stack, tmp_path) and "off" in doctor(stack, tmp_path)
    sink = Sink()
    try:
        plain = {"url": sink.url, "from": "Imgward <a@x.example>", "tls": "no"}
        output = doctor(stack, tmp_path, **plain)
        assert " ok " in output and f"{sink.url} answers" in output, output
        assert [line.split()[0] for line in sink.lines] == ["EHLO", "NOOP", "QUIT"], sink.lines
        output = doctor(stack, tmp_path, **{**plain, "tls": "yes"})
        assert "WRONG" in output and "STARTTLS not supported" in output, output
        password = tmp_path / "password"
        password.write_text("the-password\n")
        password.chmod(0o600)
        login = {**plain, "user": "me", "password_file": password}
        sink.odd = {"EHLO": b"250-sink\r\n250 AUTH PLAIN\r\n", "password": b"535 5.7.8 no\r\n"}
        output = doctor(stack, tmp_path, **login)
        assert "WRONG" in output and "535" in output and "the-password" not in output, output
        del sink.odd["password"]
        assert "answers and accepts mail.user" in doctor(stack, tmp_path, **login)
        sink.odd = {"greeting": None}
        assert "WRONG" in doctor(stack, tmp_path, **plain)
        assert "mail.from is empty" in doctor(stack, tmp_path, url=sink.url)
    finally:
        sink.shutdown()
        sink.server_close()
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        output = doctor(stack, tmp_path, url=f"smtp://127.0.0.1:{unheard.getsockname()[1]}", **{"from": "a@x.example"})
    assert "WRONG" in output and "see [mail] of the configuration" in output, output
