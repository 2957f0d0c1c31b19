"""URLs and headers that are too long, over HTTP/1.1 and HTTP/2."""
import json
import secrets
import subprocess

import pytest

from client import ORDERS


def ask(stack, version, path, *more):
    done = subprocess.run(["curl", "-sS", version, "--cacert", stack.environment["IMGWARD_CA"], "-w", "\n%{http_code} %{http_version}", *more,
                           stack.url + path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    body, _, status = done.stdout.rpartition("\n")
    return *status.split(), body


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@pytest.mark.parametrize("path", [ORDERS, "/", "/files/in/1/1", "/console/api/session", "/console/", "/api/v2/docs"])
@pytest.mark.parametrize("count", [20000, 40000])
def test_a_long_header_or_url_is_answered(stack, client, version, path, count):
    text = secrets.token_urlsafe(count)[:count]
    for status, words, more in ((431, "headers are too long", ["-H", "X-A: " + "a" * count]), (431, "headers are too long", ["-H", "Cookie: a=" + text]),
                                (431, "headers are too long", ["-T/dev/null", "-H", "X-A: " + text]),
                                (414, "URL is too long", ["-G", "-d", "x=" + "a" * count]), (414, "URL is too long", ["-G", "-d", "x=" + text])):
        got, spoken, body = ask(stack, version, path, *more)
        assert (int(got), spoken) == (status, version[6:]), (more[0], got, body[:200])
        answer = json.loads(body)
        assert answer["code"] == "VALIDATION_FAILED" and words in answer["message"], answer


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
def test_allowed_lengths_are_taken(stack, client, version):
    key = ["-H", f"Authorization: Bearer {client.key}"]
    for more in (["-H", "X-A: " + "a" * 7800], ["-G", "-d", "keyword=a", "-d", "x=" + "a" * 7600]):
        status, _, body = ask(stack, version, ORDERS, *key, *more)
        assert status in ("200", "400") and "too long" not in body, body
