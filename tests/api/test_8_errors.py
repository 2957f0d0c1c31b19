"""Contract section 8: every endpoint returns each error that doc/openapi.yaml lists for it, in one format."""
import os
import re
import signal
import time
import uuid

import pytest

import openapi
import pictures
from client import ORDERS

pytestmark = pytest.mark.skipif(openapi.jsonschema is None, reason="python3-yaml or python3-jsonschema is not installed")

WEBHOOKS = ORDERS + "/webhooks"
# Ids for path parameters that do not exist.
NOBODYS = {"orderId": "1", "webhookId": "1", "eventId": "1"}
# Valid bodies, except that the ids in them do not exist.
BODIES = {
    f"{ORDERS}/anti-ai": {"files": [{"fileName": "a.jpg"}]},
    f"{ORDERS}/anti-ai/with-urls": {"files": [{"fileName": "a.jpg", "imageUrl": "https://source.example/a.jpg"}]},
    f"{ORDERS}/anti-ai/confirm": {"orderId": "1"},
    f"{ORDERS}/wtr-embed": {"files": [{"fileName": "a.jpg", "watermarks": [{"text": "x"}]}]},
    f"{ORDERS}/wtr-extract": {"file": {"fileName": "a.jpg"}},
    WEBHOOKS: {"url": "https://receiver.example/"},
    WEBHOOKS + "/{webhookId}": {"name": "x"},
}


def operations(status):
    """Returns (path template, verb) of every operation with a key that documents a status."""
    if openapi.jsonschema is None:
        return []
    return [(template, verb) for template, item in openapi.document()["paths"].items() for verb in openapi.METHODS
            if verb in item and str(status) in item[verb]["responses"] and item[verb].get("security") != []]


def cases(status, keep=lambda template, verb: True):
    found = [one for one in operations(status) if keep(*one)]
    return pytest.mark.parametrize("template, verb", found, ids=[f"{verb} {template}" for template, verb in found])


def body_of(template):
    body = BODIES.get(template)
    return None if body is None else {"idempotencyKey": uuid.uuid4().hex, **body}


def ask(client, template, verb, **more):
    path = template
    for name, value in NOBODYS.items():
        path = path.replace("{" + name + "}", value)
    body = more.pop("body", body_of(template) if verb in ("post", "put") else None)
    return client.request(verb.upper(), path, body, **more)


def has_the_shape(answer, status, code):
    assert answer.status == status and answer.code == code, answer
    assert answer.json["message"].endswith(".") and answer.json["requestId"] == answer.headers["X-Request-Id"], answer
    assert answer.headers["Content-Type"].split(";")[0] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"
    return answer


@cases(401)
def test_without_a_key_every_endpoint_answers_401(anonymous, template, verb):
    answer = has_the_shape(ask(anonymous, template, verb), 401, "AUTH_NOT_AUTHENTICATED")
    assert answer.headers["WWW-Authenticate"].split()[0] == "Bearer"


@pytest.fixture(scope="module")
def suspended(stack):
    client = stack.account_new()
    stack.ctl("account", "suspend", client.account)
    return client


@cases(403)
def test_a_suspended_account_is_answered_403_by_every_endpoint(suspended, template, verb):
    has_the_shape(ask(suspended, template, verb), 403, "AUTH_FORBIDDEN")


@pytest.fixture(scope="module")
def exhausted(stack):
    return stack.account_new(requests_per_minute=1)


@cases(429)
def test_over_the_limit_every_endpoint_answers_429_with_retry_after(exhausted, template, verb):
    for _ in range(5):
        answer = ask(exhausted, template, verb)
        if answer.status == 429:
            break
    has_the_shape(answer, 429, "RATE_LIMIT_EXCEEDED")
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert answer.headers["RateLimit-Limit"] == "1" and answer.headers["RateLimit-Remaining"] == "0"


@cases(404)
def test_unknown_ids_are_404(client, template, verb):
    code = "WEBHOOK_NOT_FOUND" if template.startswith(WEBHOOKS) else "ORDER_NOT_FOUND"
    has_the_shape(ask(client, template, verb), 404, code)


@cases(413)
def test_a_body_over_one_mebibyte_is_answered_413_naming_both_sizes(client, template, verb):
    body = b'{"x": "' + b"x" * (1024 * 1024) + b'"}'
    answer = ask(client, template, verb, body=body, headers={"Content-Type": "application/json"})
    has_the_shape(answer, 413, "PAYLOAD_TOO_LARGE")
    assert "1048576" in answer.json["message"] or "1 MiB" in answer.json["message"], answer


@pytest.fixture(scope="module")
def hook(client):
    """An existing webhook, for requests that must not fail with 404."""
    return client.post(WEBHOOKS, {"url": "http://127.0.0.1:1/nobody"}).data["id"]


@cases(415)
def test_a_body_that_is_not_json_by_its_type_is_answered_415(client, hook, template, verb):
    answer = ask(client, template.replace("{webhookId}", str(hook)), verb, body=b"<order/>", headers={"Content-Type": "application/xml"})
    has_the_shape(answer, 415, "UNSUPPORTED_MEDIA_TYPE")


@cases(400, lambda template, verb: verb == "post" and template in BODIES)
def test_a_body_that_is_empty_names_every_required_field(client, template, verb):
    answer = has_the_shape(ask(client, template, verb, body={}), 400, "VALIDATION_FAILED")
    assert {"idempotencyKey", "files", "file", "url", "orderId"} & set(answer.fields()), answer


@cases(400, lambda template, verb: verb == "post" and template in BODIES)
def test_broken_json_is_answered_400_with_line_and_column(client, template, verb):
    answer = ask(client, template, verb, body=b'{\n  "a": \n}', headers={"Content-Type": "application/json"})
    has_the_shape(answer, 400, "VALIDATION_FAILED")
    text = str(answer.json)
    assert "line 3" in text and "column" in text, answer


@cases(409)
def test_the_same_key_with_another_body_is_answered_409(client, template, verb):
    body = body_of(template)
    assert client.post(template, body).status == 201
    has_the_shape(client.post(template, {**body, "orderName": "another"}), 409, "IDEMPOTENCY_KEY_REUSED")


@cases(200, lambda template, verb: template in [one for one, _ in operations(409)])
def test_the_same_key_with_the_same_body_is_answered_200_and_the_same_order(client, template, verb):
    body = body_of(template)
    first, again = client.post(template, body), client.post(template, body)
    assert (first.status, again.status) == (201, 200) and first.data["orderId"] == again.data["orderId"]
    assert again.headers["Idempotent-Replayed"] == "true" and first.headers["Idempotent-Replayed"] is None


def test_an_error_is_rfc_9457_when_requested(client):
    answer = client.get(f"{ORDERS}/1", headers={"Accept": "application/problem+json"})
    assert answer.status == 404 and answer.headers["Content-Type"].startswith("application/problem+json")
    assert answer.json["status"] == 404 and answer.json["code"] == "ORDER_NOT_FOUND" and answer.json["title"]


def test_an_internal_error_is_a_500_without_its_cause(stack, client):
    stack.sql("RENAME TABLE usage_days TO usage_days_away")
    try:
        answer = client.get(f"{ORDERS}/stats/recent")
    finally:
        stack.sql("RENAME TABLE usage_days_away TO usage_days")
    has_the_shape(answer, 500, "SERVER_INTERNAL_ERROR")
    assert b"usage" not in answer.body and b"SELECT" not in answer.body and "details" not in answer.json
    assert client.get(f"{ORDERS}/stats/recent").status == 200


def test_an_expired_key_differs_from_an_unknown_one(stack):
    client = stack.account_new()
    stack.ctl("key", "expire", client.key[:16])
    has_the_shape(client.list(), 401, "AUTH_TOKEN_EXPIRED")


def test_a_download_url_takes_no_upload(client, anonymous):
    order = client.order_whole([("a.jpg", pictures.jpeg(80, 80))])["orderId"]
    url = client.get(f"{ORDERS}/{order}/download").data["files"][0]["downloadUrl"]
    has_the_shape(anonymous.request("PUT", url, pictures.jpeg(80, 80), key=False), 405, "METHOD_NOT_ALLOWED")


def test_an_order_that_the_operator_cancels_says_so(stack, client):
    order = client.create(["a.jpg"]).data["orderId"]
    stack.ctl("order", "cancel", order)
    data = client.detail(order).data
    assert data["status"] == "failed" and data["errors"] == "a.jpg: ORDER_CANCELLED: The operator cancelled the order; ask the operator why."


def filters(status):
    """Returns the number of seccomp filters in a text of /proc/PID/status."""
    return int(re.search(r"(?m)^Seccomp_filters:\s*(\d+)$", status)[1])


def image_processes(stack):
    """Returns the image processes of this stack, identified by their key file, that are sealed and wait for a picture.

    A process seals itself with one more seccomp filter just before it is ready.
    """
    with open("/proc/self/status", encoding="utf-8") as file:
        ours = filters(file.read())
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            with open(f"/proc/{name}/status", encoding="utf-8") as file:
                status = file.read()
        except OSError:
            continue
        if (os.path.basename(words[0]) == b"imgward-image" and stack.environment["IMGWARD_VAR"].encode() in b" ".join(words)
                and filters(status) > ours and "State:\tS" in status):
            yield int(name)


def test_a_picture_that_takes_too_long_says_so(stack, client):
    """Stops the image processes with SIGSTOP, so that the picture times out on any machine."""
    places, held = stack.worker_places(), []
    with stack.configured("image", "timeout_s", "1"), stack.configured("worker", "deaths_max", "1"):
        # All image processes of the worker must be stopped, because any other would process the picture. A reload replaced them.
        end = time.monotonic() + 60
        while len(held := list(image_processes(stack))) < places:
            assert time.monotonic() < end, held
            time.sleep(0.1)
        for process in held:
            os.kill(process, signal.SIGSTOP)
        data = client.order_whole([("a.jpg", pictures.jpeg(80, 80))])
    # The reload at the end of the block replaced the stopped processes.
    assert data["status"] == "failed" and data["errors"] == (
        "a.jpg: PROCESSING_TIMEOUT: Processing took too long in every attempt; order again with a smaller picture.")


@pytest.fixture(scope="module")
def away(stack, client):
    """Stops the database; returns responses of every endpoint and of both kinds of presigned URL."""
    upload = client.create(["a.jpg"]).data["files"][0]["uploadUrl"]
    whole = client.order_whole([("a.jpg", pictures.jpeg(80, 80))])["orderId"]
    download = client.get(f"{ORDERS}/{whole}/download").data["downloadUrl"]
    stack.part("stop", "mariadbd")
    try:
        answers = {one: ask(client, *one) for one in operations(503)}
        answers["upload"] = client.upload(upload, pictures.jpeg(80, 80))
        answers["download"] = client.request("GET", download, key=False)
    finally:
        stack.part("start", "mariadbd")
    end = time.monotonic() + 60
    while client.list().status != 200:
        assert time.monotonic() < end, "the database is back, and nobody notices"
        time.sleep(0.2)
    return answers


@cases(503)
def test_with_the_database_away_every_endpoint_answers_503_with_retry_after(away, template, verb):
    answer = has_the_shape(away[template, verb], 503, "SERVICE_UNAVAILABLE")
    assert int(answer.headers["Retry-After"]) >= 1


@pytest.mark.parametrize("what", ["upload", "download"])
def test_with_the_database_away_a_presigned_url_is_answered_503_with_retry_after(away, what):
    answer = has_the_shape(away[what], 503, "SERVICE_UNAVAILABLE")
    assert int(answer.headers["Retry-After"]) >= 1
