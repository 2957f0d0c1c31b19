"""API keys that are limited: the endpoints that each scope allows, and the response to other requests."""
import json
import subprocess
import uuid

import pytest

import openapi
from client import ORDERS, Client
from test_access import KEYED

SCOPES = ["read", "antiAi", "watermarkEmbed", "watermarkExtract", "webhooks"]
KINDS = {"antiAi": "anti-ai", "watermarkEmbed": "wtr-embed", "watermarkExtract": "wtr-extract"}
# The scopes that an endpoint needs; None is the type of the order.
NEEDS = {**{("POST", f"{ORDERS}/{path}"): {scope} for path, scope in (
            ("anti-ai", "antiAi"), ("anti-ai/with-urls", "antiAi"), ("wtr-embed", "watermarkEmbed"), ("wtr-extract", "watermarkExtract"))},
         ("POST", f"{ORDERS}/anti-ai/confirm"): set(KINDS),
         **{("GET", ORDERS + path): {"read"} for path in ("", "/stats/recent", "/stats/usage")},
         **{("GET", ORDERS + path): {"read", None} for path in ("/{orderId}", "/{orderId}/download")},
         ("POST", ORDERS + "/{orderId}/refresh-urls"): {None}, ("DELETE", ORDERS + "/{orderId}"): {None},
         **{("GET", f"{ORDERS}/webhooks{path}"): {"read", "webhooks"} for path in ("", "/{webhookId}", "/{webhookId}/events")},
         **{(method, f"{ORDERS}/webhooks{path}"): {"webhooks"} for method, path in (
             ("POST", ""), ("PUT", "/{webhookId}"), ("DELETE", "/{webhookId}"), ("POST", "/{webhookId}/rotate-secret"), ("POST", "/{webhookId}/test"),
             ("POST", "/{webhookId}/events/{eventId}/retry"))}}


@pytest.fixture(scope="module")
def owner(stack):
    return stack.account_new()


def limited(owner, *scopes):
    return Client(owner.stack, owner.stack.key_new(owner.account, "--scope", ",".join(scopes)))


def make(client, kind, **fields):
    picture = {"fileName": "a.jpg"}
    files = {"file": picture} if kind == "watermarkExtract" else {"files": [picture]}
    texts = {"watermarks": [{"text": "Ada"}]} if kind == "watermarkEmbed" else {}
    return client.post(f"{ORDERS}/{KINDS[kind]}", {"idempotencyKey": uuid.uuid4().hex, **files, **texts, **fields})


def test_the_table_has_every_endpoint():
    assert {endpoint for endpoint in KEYED if not endpoint[1].endswith(("/openapi.json", "/docs"))} == set(NEEDS)


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_allows_its_endpoints_only(owner, scope):
    client = limited(owner, scope)
    orders = {kind: make(owner, kind).data["orderId"] for kind in KINDS}
    for (method, path), needs in sorted(NEEDS.items(), key=lambda item: item[0][0] == "DELETE"):
        for kind, order in orders.items():
            answer = client.request(method, path.replace("{orderId}", order).replace("{webhookId}", "9").replace("{eventId}", "9"), {} if method in ("POST", "PUT") else None)
            is_allowed = scope in {kind if need is None else need for need in needs}
            assert (answer.status != 403) == is_allowed, (method, path, kind, answer)
            if not is_allowed:
                words = sorted({kind if need is None else need for need in needs}, key=SCOPES.index)
                assert answer.code == "AUTH_SCOPE_MISSING" and " or ".join(words) in answer.json["message"], answer
                assert "RateLimit-Remaining" in answer.headers
    for order in orders.values():
        assert owner.detail(order).data["status"] == ("failed" if scope in orders and orders[scope] == order else "pending")


def test_a_missing_order_is_missing_for_a_limited_key(owner, stack):
    foreign = make(stack.account_new(), "antiAi").data["orderId"]
    for client in (limited(owner, "read"), limited(owner, "antiAi")):
        for order in (foreign, "123", "abc"):
            assert client.detail(order).code == "ORDER_NOT_FOUND"


def test_a_confirmation_needs_the_scope_of_the_order(owner):
    """The order is in the body. A refusal does not report anything about the order and does not start it."""
    for scope in KINDS:
        client = limited(owner, scope)
        for kind in KINDS:
            order = make(owner, kind).data["orderId"]
            answer = client.confirm(order)
            if kind == scope:
                assert (answer.status, answer.code) == (400, "ORDER_FILE_NOT_UPLOADED"), answer
            else:
                assert (answer.status, answer.code) == (403, "AUTH_SCOPE_MISSING"), answer
                assert kind in answer.json["message"] and "a.jpg" not in answer.body.decode(), answer
            assert owner.detail(order).data["status"] == "pending"
        assert client.confirm("123").code == "ORDER_NOT_FOUND"
    assert limited(owner, "read").confirm(make(owner, "antiAi").data["orderId"]).code == "AUTH_SCOPE_MISSING"


def test_a_key_may_have_several_scopes(owner):
    client = limited(owner, "antiAi", "watermarkExtract")
    assert [make(client, kind).status for kind in KINDS] == [201, 403, 201]
    assert client.list().code == "AUTH_SCOPE_MISSING"


def test_a_key_of_one_type_runs_its_order_to_the_end(owner, jpeg):
    client, reader = limited(owner, "antiAi"), limited(owner, "read")
    key = uuid.uuid4().hex
    created = make(client, "antiAi", idempotencyKey=key)
    assert created.status == 201
    # A replay needs the same scope; uploads and downloads need no key.
    replay = make(client, "antiAi", idempotencyKey=key)
    assert replay.status == 200 and replay.headers["Idempotent-Replayed"] == "true"
    assert make(reader, "antiAi", idempotencyKey=key).code == "AUTH_SCOPE_MISSING"
    order = created.data["orderId"]
    assert client.upload(created.data["files"][0]["uploadUrl"], jpeg).status == 201
    assert client.confirm(order).status == 200 and client.wait(order)["status"] == "complete"
    assert client.download(order).status == reader.download(order).status == 200


def test_imgwardctl_shows_and_checks_scopes(owner, stack):
    stack.key_new(owner.account, "--scope", "webhooks,read")
    stack.key_new(owner.account, "--scope", "all")
    listed = json.loads(stack.ctl("key", "list", "--json", owner.account))
    assert [row["scope"] for row in listed][-2:] == ["read,webhooks", "all"] and listed[0]["scope"] == "all"
    assert "read,webhooks" in stack.ctl("key", "list", owner.account)
    for scopes in ("reed", "", "read,", "read, webhooks", "all,read", "READ"):
        done = subprocess.run([stack.environment["IMGWARD_CTL"], "--config", stack.environment["IMGWARD_CONFIG"], "key", "create", "--scope", scopes, owner.account],
                              capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and f'--scope is "{scopes}"' in done.stderr and "watermarkExtract" in done.stderr, done


def test_keys_of_before_may_do_everything(owner, stack):
    assert stack.sql(f"SELECT COUNT(*) FROM api_keys WHERE account_id = {owner.account} AND scopes IS NULL AND digest = UNHEX(SHA2('{owner.key}', 256))") == [["1"]]
    assert "AUTH_SCOPE_MISSING" in openapi.document()["components"]["schemas"]["ErrorCode"]["enum"]
