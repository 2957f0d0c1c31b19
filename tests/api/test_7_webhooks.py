"""Contract section 7: webhooks."""
import base64
import concurrent.futures
import contextlib
import datetime
import email.utils
import http.client
import json
import os
import subprocess
import time
import urllib.parse
import uuid

import pytest

import client as client_module
import marks
import openapi
import pictures
from client import ORDERS
from receiver import Receiver

WEBHOOKS = ORDERS + "/webhooks"
SCHEDULE_S = [5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400]
BROKEN = b"\xff\xd8\xff\xe0" + b"broken" * 40


ANSWERS = []


@pytest.fixture(scope="module", autouse=True)
def answers_kept():
    """Keeps every response about webhooks; the last tests compare them with the document."""
    request = client_module.Client.request

    def keep(self, method, path, *words, **names):
        answer = request(self, method, path, *words, **names)
        if path.startswith(WEBHOOKS):
            ANSWERS.append((method, path.split("?")[0], answer))
        return answer

    client_module.Client.request = keep
    yield
    client_module.Client.request = request


@pytest.fixture(scope="module")
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def account(stack):
    return stack.account_new()


class Hook:
    """A webhook of an account, on a separate path."""

    def __init__(self, client, receiver, answer=200):
        self.client = client
        self.receiver = receiver
        self.path = "/" + uuid.uuid4().hex[:12]
        receiver.answers[self.path] = answer
        created = client.post(WEBHOOKS, {"url": receiver.url(self.path), "name": self.path})
        assert created.status == 201, created
        self.id = created.data["id"]
        self.secret = created.data["secret"]
        self.place = f"{WEBHOOKS}/{self.id}"

    def data(self):
        return self.client.get(self.place).data

    def test(self):
        answer = self.client.post(self.place + "/test")
        assert answer.status == 200, answer
        return answer.data["eventId"]

    def events(self, **query):
        words = "&".join(f"{name}={value}" for name, value in query.items())
        return self.client.get(f"{self.place}/events?{words}")

    def event(self, event):
        return next(item for item in self.events(limit=-1).items if item["eventId"] == event)

    def wait_event(self, event, condition, seconds=90):
        end = time.monotonic() + seconds
        while True:
            data = self.event(event)
            if condition(data):
                return data
            assert time.monotonic() < end, data
            time.sleep(0.1)

    def failed_once(self, tries=10):
        """Returns an event after the first failed attempt; repeats with a new event if a slow machine was late."""
        for _ in range(tries):
            data = self.wait_event(self.test(), lambda item: item["failedAttempts"] >= 1)
            if data["failedAttempts"] == 1:
                return data
        raise TimeoutError(f"{tries} times the retry was faster than we are")

    def retry(self, event):
        return self.client.post(f"{self.place}/events/{event}/retry")

    def got(self, count=1, seconds=90):
        return self.receiver.wait(self.path, count, seconds)


@pytest.fixture
def webhook_of(account, receiver):
    hooks = []

    def make(answer=200):
        hooks.append(Hook(account, receiver, answer))
        return hooks[-1]

    yield make
    for hook in hooks:
        account.request("DELETE", hook.place)
        receiver.let_go(hook.path)


def time_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


@contextlib.contextmanager
def clock_ahead(stack, seconds):
    with stack.configured("test", "clock_offset_s", str(int(seconds))):
        yield


def failed_order(client):
    created = client.create(["broken.jpg"]).data
    assert client.upload(created["files"][0]["uploadUrl"], BROKEN).status == 201
    assert client.confirm(created["orderId"]).status == 200
    assert client.wait(created["orderId"])["status"] == "failed"
    return created["orderId"]


# ---- creating, reading, changing ----


def test_creating_answers_201_with_location_and_a_secret(account, receiver):
    answer = account.post(WEBHOOKS, {"url": receiver.url("/x"), "name": "Büro", "unknown": 1})
    assert answer.status == 201, answer
    data = answer.data
    assert answer.headers["Location"] == f"{account.stack.url}{WEBHOOKS}/{data['id']}"
    assert data["name"] == "Büro" and data["url"] == receiver.url("/x") and data["isActive"] is True
    assert data["secret"].startswith("whsec_")
    assert 24 <= len(base64.b64decode(data["secret"].removeprefix("whsec_"), validate=True)) <= 64
    assert time_of(data["createdAt"]) == time_of(data["updatedAt"])


def test_the_name_is_optional(account, receiver):
    assert account.post(WEBHOOKS, {"url": receiver.url("/x")}).data["name"] == ""


def test_the_secret_is_shown_once(webhook_of):
    hook = webhook_of()
    for answer in (hook.client.get(hook.place), hook.client.get(WEBHOOKS),
                   hook.client.request("PUT", hook.place, {"name": "n"})):
        assert answer.status == 200 and hook.secret.encode() not in answer.body
        assert b'"secret"' not in answer.body


def test_two_webhooks_have_two_secrets(webhook_of):
    assert webhook_of().secret != webhook_of().secret


def test_secrets_are_stored_encrypted(webhook_of, stack):
    hook = webhook_of()
    stored = bytes.fromhex(stack.sql(f"SELECT HEX(sealed) FROM webhook_secrets WHERE webhook_id = {hook.id}")[0][0])
    key = base64.b64decode(hook.secret.removeprefix("whsec_"))
    assert len(stored) == len(key) + 28
    assert key not in stored and hook.secret.encode() not in stored
    assert not any(key[at:at + 4] in stored for at in range(len(key) - 3))


@pytest.mark.parametrize("url", ["", "hook", "/hook", "ftp://a.example/", "https://", "https://me@a.example/",
                                 "https://me:secret@a.example/", "https://a.example/a b", "javascript:alert(1)",
                                 "https://a.example/ä", "https://a.example/" + "x" * 2048, "https:///hooks/imgward",
                                 "https:/hooks/imgward", "https://a..invalid/h", "https://-a.invalid/h", "https://%68ooks.invalid/h", 7, True, ["https://a.example/"], {}])
def test_a_bad_url_is_named(account, url):
    answer = account.post(WEBHOOKS, {"url": url})
    assert answer.status == 400 and answer.code == "VALIDATION_FAILED" and answer.fields() == ["url"], answer


def test_the_url_is_required(account):
    for body in ({}, {"url": None}, {"name": "n"}):
        answer = account.post(WEBHOOKS, body)
        assert answer.status == 400 and answer.fields() == ["url"], answer


def test_plain_http_is_refused_unless_the_operator_allows_it(account, stack):
    with stack.configured("outgoing", "allow_http", "no"):
        answer = account.post(WEBHOOKS, {"url": "http://a.example/"})
        assert answer.status == 400 and answer.fields() == ["url"], answer
        assert account.post(WEBHOOKS, {"url": "https://a.example/"}).status == 201


def test_every_bad_field_is_named_in_one_answer(webhook_of, account):
    answer = account.post(WEBHOOKS, {"url": "nothing", "name": "x" * 101})
    assert answer.status == 400 and sorted(answer.fields()) == ["name", "url"], answer
    answer = account.post(WEBHOOKS, {"url": "https://a.example/" + "x" * 2040})
    assert "2058" in answer.json["message"] and "2048" in answer.json["message"], answer
    answer = account.request("PUT", webhook_of().place, {"url": 1, "name": "a\u0007", "isActive": "yes"})
    assert answer.status == 400 and sorted(answer.fields()) == ["isActive", "name", "url"], answer


def test_a_name_has_at_most_100_characters(account, receiver):
    assert account.post(WEBHOOKS, {"url": receiver.url("/x"), "name": "é" * 100}).status == 201
    answer = account.post(WEBHOOKS, {"url": receiver.url("/x"), "name": "é" * 101})
    assert answer.status == 400 and "100" in answer.json["details"][0]["message"]


def test_get_shows_the_webhook(webhook_of):
    hook = webhook_of()
    data = hook.data()
    assert set(data) == {"id", "name", "url", "isActive", "inactiveReason", "createdAt", "updatedAt",
                         "previousSecretExpiresAt"}
    assert data["id"] == hook.id and data["isActive"] is True and data["inactiveReason"] is None


def test_put_changes_only_the_given_members(webhook_of):
    hook = webhook_of()
    before = hook.data()
    answer = hook.client.request("PUT", hook.place, {"name": "new name"})
    assert answer.status == 200, answer
    assert set(answer.data) == {"id", "name", "url", "isActive", "updatedAt"}
    assert answer.data["name"] == "new name" and answer.data["url"] == before["url"]
    assert time_of(answer.data["updatedAt"]) >= time_of(before["updatedAt"])
    answer = hook.client.request("PUT", hook.place, {"url": hook.receiver.url("/y"), "isActive": False})
    assert answer.data["url"] == hook.receiver.url("/y") and answer.data["isActive"] is False
    assert answer.data["name"] == "new name"
    assert hook.client.request("PUT", hook.place, {}).status == 200
    data = hook.data()
    assert (data["name"], data["isActive"], data["inactiveReason"]) == ("new name", False, "BY_CLIENT")
    hook.client.request("PUT", hook.place, {"isActive": True})
    assert hook.data()["isActive"] is True and hook.data()["inactiveReason"] is None


def test_a_deleted_webhook_is_gone(webhook_of, account):
    hook = webhook_of()
    assert account.request("DELETE", hook.place).status == 200
    for answer in (account.get(hook.place), account.request("DELETE", hook.place),
                   account.request("PUT", hook.place, {}), account.post(hook.place + "/test")):
        assert answer.status == 404 and answer.code == "WEBHOOK_NOT_FOUND", answer
    assert account.get(WEBHOOKS).items == []


PLACES = [("GET", ""), ("PUT", ""), ("DELETE", ""), ("POST", "/rotate-secret"), ("POST", "/test"),
          ("GET", "/events"), ("POST", "/events/1/retry")]


@pytest.mark.parametrize("method, rest", PLACES)
def test_a_missing_webhook_is_404(account, method, rest):
    for name in ("999999999", "nothing", "0", "-1", "99999999999999999999"):
        answer = account.request(method, f"{WEBHOOKS}/{name}{rest}", {} if method == "PUT" else None)
        assert answer.status == 404 and answer.code == "WEBHOOK_NOT_FOUND", answer


@pytest.mark.parametrize("method, rest", PLACES)
def test_another_accounts_webhook_answers_as_a_missing_one(webhook_of, stranger, method, rest):
    hook = webhook_of()
    body = {} if method == "PUT" else None
    foreign = stranger.request(method, hook.place + rest, body)
    missing = stranger.request(method, f"{WEBHOOKS}/999999999{rest}", body)
    assert foreign.status == 404 and foreign.code == "WEBHOOK_NOT_FOUND"
    assert {**foreign.json, "requestId": ""} == {**missing.json, "requestId": ""}
    assert hook.data()["isActive"] is True


def test_another_webhooks_event_is_404(webhook_of):
    one, two = webhook_of(), webhook_of()
    event = one.test()
    for name in (event, "7", "nothing"):
        answer = two.retry(name)
        assert answer.status == 404 and answer.code == "WEBHOOK_EVENT_NOT_FOUND", answer


def test_webhooks_is_no_order_id(account):
    assert account.get(WEBHOOKS).status == 200
    assert account.get(WEBHOOKS + "/").status == 200
    answer = account.request("DELETE", WEBHOOKS)
    assert answer.status == 405 and set(answer.headers["Allow"].split(", ")) == {"GET", "HEAD", "POST"}
    assert account.get(WEBHOOKS + "/download").code == "WEBHOOK_NOT_FOUND"


def test_a_key_is_required(anonymous):
    for method, path in [(method, "/1" + rest) for method, rest in PLACES] + [("GET", ""), ("POST", "")]:
        answer = anonymous.request(method, WEBHOOKS + path)
        assert answer.status == 401 and answer.code == "AUTH_NOT_AUTHENTICATED"


def test_the_list_has_pages_newest_first(account, receiver):
    for number in range(12):
        account.post(WEBHOOKS, {"url": receiver.url(f"/list/{number}"), "name": f"number {number}"})
    answer = account.get(WEBHOOKS)
    assert [item["name"] for item in answer.items] == [f"number {number}" for number in range(11, 1, -1)]
    assert answer.page == {"totalItems": 12, "totalPages": 2, "currentPage": 1, "itemsPerPage": 10}
    answer = account.get(WEBHOOKS + "?page=3&limit=5")
    assert [item["name"] for item in answer.items] == ["number 1", "number 0"]
    assert answer.page == {"totalItems": 12, "totalPages": 3, "currentPage": 3, "itemsPerPage": 5}
    assert len(account.get(WEBHOOKS + "?limit=-1").items) == 12 and account.get(WEBHOOKS + "?limit=-1&page=2").items == []
    beyond = account.get(WEBHOOKS + "?page=99")
    assert beyond.status == 200 and beyond.items == [] and beyond.page["totalItems"] == 12


def test_the_keyword_finds_in_name_and_url_and_the_id(account, receiver):
    ids = [account.post(WEBHOOKS, {"url": receiver.url(path), "name": name}).data["id"]
           for path, name in (("/alpha", "First 100%"), ("/beta", "Second"), ("/gamma", "THIRD"))]
    def found(keyword):
        return [item["id"] for item in account.get(f"{WEBHOOKS}?keyword={keyword}").items]
    assert found("third") == [ids[2]] and found("BETA") == [ids[1]] and found("%25") == [ids[0]]
    assert found(ids[1]) == [ids[1]] or ids[1] in found(ids[1])
    assert found("_") == [] and found("nothing") == []
    assert account.get(f"{WEBHOOKS}?keyword=nothing").page["totalItems"] == 0


def test_bad_list_parameters_are_named(webhook_of, account):
    for place in (WEBHOOKS, webhook_of().place + "/events"):
        answer = account.get(place + "?page=0&limit=101")
        assert answer.status == 400 and sorted(answer.fields()) == ["limit", "page"], answer


# ---- events ----


def test_a_test_event_is_only_sent_to_this_webhook(webhook_of):
    one, other = webhook_of(), webhook_of()
    event = one.test()
    delivery = one.got()[0]
    body = delivery.json
    assert set(body) == {"eventId", "eventType", "occurredAt", "data"}
    assert body["eventId"] == event and body["eventType"] == "webhook.test"
    assert body["data"] == {"webhookId": one.id, "sequence": 1} and type(one.id) is int
    assert delivery.headers["Content-Type"] == "application/json"
    time.sleep(1.5)
    assert other.receiver.at(other.path) == [] and len(one.receiver.at(one.path)) == 1


def test_deliveries_are_signed_as_standard_webhooks(webhook_of):
    hook = webhook_of()
    event = hook.test()
    delivery = hook.got()[0]
    assert delivery.id == event
    assert abs(int(delivery.headers["webhook-timestamp"]) - time.time()) < 60
    assert len(delivery.signatures()) == 1 and delivery.is_signed_with(hook.secret)
    assert not delivery.is_signed_with("whsec_" + base64.b64encode(bytes(32)).decode())


def test_the_event_of_a_failed_order_has_its_errors(webhook_of, account):
    hook, second = webhook_of(), webhook_of()
    order = failed_order(account)
    body = hook.got()[0].json
    detail = account.detail(order).data
    assert body["eventType"] == "order.antiAi.failed"
    assert body["data"] == {**{name: detail[name] for name in ("orderId", "orderName", "type", "status", "fileCount",
                                                             "createdAt", "updatedAt", "errors")}, "sequence": 1}
    assert body["data"]["errors"].startswith("broken.jpg: IMAGE_CORRUPT: ")
    assert second.got()[0].id == body["eventId"], "one event, each receiver"
    shown = hook.wait_event(body["eventId"], lambda item: item["status"] == "DELIVERED")
    assert shown["orderId"] == order and shown["eventType"] == body["eventType"]


def test_the_event_of_a_complete_order_has_a_new_download_url(webhook_of, account, jpeg):
    hook = webhook_of()
    order = account.order_whole([("a.jpg", jpeg)])
    assert order["status"] == "complete", order
    body = hook.got()[0].json
    data = body["data"]
    assert body["eventType"] == "order.antiAi.completed" and data["status"] == "complete"
    assert set(data) == {"orderId", "orderName", "type", "status", "fileCount", "createdAt", "updatedAt",
                         "downloadUrl", "sequence"}
    picture = account.request("GET", data["downloadUrl"], key=False)
    assert picture.status == 200 and picture.body == account.download(order["orderId"]).body
    hook.wait_event(body["eventId"], lambda item: item["status"] == "DELIVERED")
    # A delivery that is sent an hour later has a new, valid URL.
    with clock_ahead(hook.client.stack, 3700):
        hook.retry(body["eventId"])
        again = hook.got(2)[1].json
        assert again["data"]["downloadUrl"] != data["downloadUrl"]
        assert account.request("GET", again["data"]["downloadUrl"], key=False).status == 200
        assert account.request("GET", data["downloadUrl"], key=False).status == 403


def test_the_event_of_several_results_has_the_archive(webhook_of, account, jpeg, png):
    hook = webhook_of()
    account.order_whole([("a.jpg", jpeg), ("b.png", png), ("c.jpg", BROKEN)])
    data = hook.got()[0].json["data"]
    archive = account.request("GET", data["downloadUrl"], key=False)
    assert archive.status == 200 and archive.body.startswith(b"PK")
    assert data["fileCount"] == 3 and "\n" not in data["errors"] and data["errors"].startswith("c.jpg: ")


def test_the_event_of_an_abandoned_order_is_failed(webhook_of, account, stack):
    hook = webhook_of()
    order = account.create(["late.jpg"]).data["orderId"]
    with clock_ahead(stack, 24 * 3600 + 60):
        body = hook.got()[0].json
    assert body["eventType"] == "order.antiAi.failed" and body["data"]["orderId"] == order
    assert body["data"]["errors"].startswith("late.jpg: UPLOAD_EXPIRED: ")


def test_orders_of_another_account_send_no_event(webhook_of, stranger):
    hook = webhook_of()
    failed_order(stranger)
    time.sleep(2)
    assert hook.receiver.at(hook.path) == [] and hook.events().items == []


@pytest.fixture
def end_of_extraction(stack, account):
    """Inserts a finished extraction and its event, as the worker does, without running the engine."""
    def write(hook, status, text):
        order = int(time.time() * 1000) * 1000 + int(uuid.uuid4().int % 1000)
        text = "NULL" if text is None else "'" + text + "'"
        stack.sql(f"""
            SET NAMES utf8mb4;
            INSERT INTO orders (id, account_id, type, status, name, idempotency_key, body_digest, file_count,
                completed_file_count, watermark_text, created_at, updated_at)
                VALUES ({order}, {account.account}, 'watermarkExtract', '{status}', 'x', UUID(), REPEAT('x', 32), 1,
                1, {text}, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3));
            INSERT INTO files (order_id, position, name, updated_at)
                VALUES ({order}, 1, 'a.jpg', UTC_TIMESTAMP(3));
            INSERT INTO webhook_events (id, account_id, order_id, type, occurred_at)
                VALUES ({order}, {account.account}, {order}, 'order.watermarkExtract.completed', UTC_TIMESTAMP(3));
            INSERT INTO webhook_deliveries (webhook_id, event_id, available_at, created_at, updated_at)
                VALUES ({hook.id}, {order}, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))""")
        return str(order)
    return write


def test_the_event_of_a_detection_has_its_text(webhook_of, end_of_extraction):
    hook = webhook_of()
    order = end_of_extraction(hook, "detected", "für Käthe 🦊")
    data = hook.got()[0].json["data"]
    assert data["orderId"] == order and data["status"] == "detected" and data["type"] == "watermarkExtract"
    assert data["watermarkText"] == "für Käthe 🦊" and "downloadUrl" not in data and "errors" not in data
    assert "isSamePicture" not in data, "the pictures were not compared"


def test_the_event_without_a_detection_has_no_text(webhook_of, end_of_extraction):
    hook = webhook_of()
    end_of_extraction(hook, "undetected", None)
    data = hook.got()[0].json["data"]
    assert data["status"] == "undetected" and "watermarkText" not in data


def test_an_embedding_and_its_extraction_send_events(webhook_of, account):
    hook = webhook_of()
    photo = pictures.jpeg(1024, 768, seed=7)
    order = marks.embedded(account, [("a.jpg", photo, ["für Käthe"])])
    assert order["status"] == "complete", order
    embedded = hook.got()[0].json
    assert embedded["eventType"] == "order.watermarkEmbed.completed"
    assert embedded["data"]["type"] == "watermarkEmbed" and embedded["data"]["status"] == "complete"
    marked = account.request("GET", embedded["data"]["downloadUrl"], key=False)
    assert marked.status == 200
    found = marks.extract(account, marked.body)
    assert found["status"] == "detected", found
    told = hook.got(2)[1].json
    assert told["eventType"] == "order.watermarkExtract.completed" and told["data"]["status"] == "detected"
    assert told["data"]["watermarkText"] == found["watermarkText"] == "für Käthe"
    assert told["data"]["isSamePicture"] is True


# ---- delivery ----


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_every_2xx_counts(webhook_of, status):
    hook = webhook_of(status)
    event = hook.test()
    data = hook.wait_event(event, lambda item: item["status"] == "DELIVERED")
    assert data["responseStatus"] == status and data["failedAttempts"] == 0 and data["nextAttemptAt"] is None
    assert time_of(data["deliveredAt"]) == time_of(data["lastAttemptAt"])


@pytest.mark.parametrize("status", [304, 400, 401, 404, 429, 500, 503])
def test_nothing_else_counts(webhook_of, status):
    data = webhook_of(status).failed_once()
    assert data["status"] == "PENDING" and data["responseStatus"] == status and data["deliveredAt"] is None
    wait = time_of(data["nextAttemptAt"]) - time_of(data["lastAttemptAt"])
    assert 5 <= wait.total_seconds() <= 6


def test_redirects_are_not_followed(webhook_of, receiver):
    for status in (301, 302, 307, 308):
        hook = webhook_of((status, {"Location": receiver.url("/elsewhere")}, b""))
        event = hook.test()
        assert hook.wait_event(event, lambda item: item["failedAttempts"] >= 1)["responseStatus"] == status
    assert receiver.at("/elsewhere") == []


def test_a_long_answer_with_2xx_counts(webhook_of):
    hook = webhook_of((200, {}, b"x" * 1000000))
    assert hook.wait_event(hook.test(), lambda item: item["status"] == "DELIVERED")["responseStatus"] == 200


def test_a_status_counts_though_its_body_is_cut_off(webhook_of):
    hook = webhook_of((200, {"Content-Length": "100"}, b"half"))
    data = hook.wait_event(hook.test(), lambda item: item["status"] == "DELIVERED" or item["failedAttempts"] > 0)
    assert data["status"] == "DELIVERED" and data["responseStatus"] == 200, data
    data = webhook_of((503, {"Content-Length": "100", "Retry-After": "3600"}, b"half")).failed_once()
    assert data["reason"] == "status" and data["responseStatus"] == 503
    assert (time_of(data["nextAttemptAt"]) - time_of(data["lastAttemptAt"])).total_seconds() >= 3600


@pytest.mark.parametrize("headers", [{"Content-Encoding": "gzip"}, {"Content-Encoding": "br, zstd, " * 9 + "br"},
                                     {"Transfer-Encoding": "gzip, chunked", "Content-Length": "0"}])
def test_a_status_counts_however_its_body_is_encoded(webhook_of, headers):
    hook = webhook_of((200, headers, b"no gzip"))
    data = hook.wait_event(hook.test(), lambda item: item["status"] == "DELIVERED" or item["failedAttempts"] > 0)
    assert data["status"] == "DELIVERED" and data["responseStatus"] == 200, data


def test_an_unreachable_receiver_is_a_failure_with_a_reason(account, receiver):
    created = account.post(WEBHOOKS, {"url": "http://127.0.0.1:1/"}).data
    event = account.post(f"{WEBHOOKS}/{created['id']}/test").data["eventId"]
    end = time.monotonic() + 90
    while True:
        data = account.get(f"{WEBHOOKS}/{created['id']}/events").items[0]
        if data["failedAttempts"] >= 1:
            break
        assert time.monotonic() < end
        time.sleep(0.1)
    assert data["eventId"] == event and data["reason"] == "connect" and data["responseStatus"] is None


def test_private_addresses_are_not_connected_to(account):
    created = account.post(WEBHOOKS, {"url": "http://10.1.2.3/"}).data
    account.post(f"{WEBHOOKS}/{created['id']}/test")
    end = time.monotonic() + 90
    while account.get(f"{WEBHOOKS}/{created['id']}/events").items[0]["reason"] != "address":
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_retry_is_the_same_event_with_a_new_time(webhook_of):
    for _ in range(5):  # a slow machine may be late
        hook = webhook_of([500, 200])
        event = hook.test()
        first, second = hook.got(2)
        assert second.at - first.at >= 5
        if second.at - first.at < 9:
            break
    assert second.at - first.at < 9
    assert first.id == second.id == event and first.json == second.json
    assert int(second.headers["webhook-timestamp"]) > int(first.headers["webhook-timestamp"])
    assert second.is_signed_with(hook.secret)
    assert hook.wait_event(event, lambda item: item["status"] == "DELIVERED")["failedAttempts"] == 1


def test_retries_follow_the_schedule_and_then_it_is_failed(webhook_of, stack):
    """The clock only moves forward until the last attempt. If it moved back, the next attempt would be due early."""
    for _ in range(5):  # with a new event if a slow machine was late for the first retry
        hook = webhook_of(500)
        event = hook.test()
        data = hook.wait_event(event, lambda item: item["failedAttempts"] >= 1)
        if data["failedAttempts"] == 1:
            break
    ahead = 0
    with contextlib.ExitStack() as clock:
        for number, step in enumerate(SCHEDULE_S, 1):
            assert data["status"] == "PENDING" and data["failedAttempts"] == number
            wait = (time_of(data["nextAttemptAt"]) - time_of(data["lastAttemptAt"])).total_seconds()
            assert step <= wait <= step * 1.2 + 0.001, (step, wait)
            ahead += step * 1.2
            clock.enter_context(clock_ahead(stack, ahead))
            data = hook.wait_event(event, lambda item: item["failedAttempts"] > number)
        assert data["status"] == "FAILED" and data["nextAttemptAt"] is None and data["failedAttempts"] == 10
        clock.enter_context(clock_ahead(stack, ahead + 86400))
        time.sleep(2.5)
    assert len(hook.receiver.at(hook.path)) == 10
    assert hook.data()["isActive"] is True


def test_retry_after_is_honoured(webhook_of):
    data = webhook_of((503, {"Retry-After": "30"}, b"")).failed_once()
    assert (time_of(data["nextAttemptAt"]) - time_of(data["lastAttemptAt"])).total_seconds() == 30


def test_retry_after_may_be_a_date(webhook_of):
    begun = time.time()
    date = email.utils.formatdate(begun + 600, usegmt=True)
    data = webhook_of((503, {"Retry-After": date}, b"")).failed_once()
    wait = (time_of(data["nextAttemptAt"]) - time_of(data["lastAttemptAt"])).total_seconds()
    assert 600 - (time.time() - begun) - 1 <= wait <= 601


def test_retry_after_counts_up_to_a_day(webhook_of):
    data = webhook_of((429, {"Retry-After": "999999"}, b"")).failed_once()
    assert (time_of(data["nextAttemptAt"]) - time_of(data["lastAttemptAt"])).total_seconds() == 86400


def test_410_deactivates_the_webhook(webhook_of, stack):
    hook = webhook_of([(500, {"Retry-After": "7200"}, b""), 410])  # the first delivery waits until the second is finished
    first = hook.test()
    hook.wait_event(first, lambda item: item["failedAttempts"] == 1)
    second = hook.test()
    data = hook.wait_event(second, lambda item: item["status"] == "FAILED")
    assert data["responseStatus"] == 410 and data["failedAttempts"] == 1
    assert hook.data()["isActive"] is False and hook.data()["inactiveReason"] == "RECEIVER_GONE"
    assert hook.event(first)["status"] == "FAILED", "nothing more is sent to it"
    with clock_ahead(stack, 86400):
        time.sleep(2)
    assert len(hook.receiver.at(hook.path)) == 2


def test_five_days_without_success_deactivate_the_webhook(webhook_of, stack):
    """The clock only moves forward. If it moved back, a retry would be due early."""
    hook = webhook_of(500)
    first = hook.test()
    begun = time_of(hook.wait_event(first, lambda item: item["failedAttempts"] >= 1)["lastAttemptAt"])
    with clock_ahead(stack, 5 * 86400 - 900):
        hook.wait_event(first, lambda item: time_of(item["lastAttemptAt"]) > begun + datetime.timedelta(days=4))
        assert hook.data()["isActive"] is True
        with clock_ahead(stack, 5 * 86400 + 7200):
            hook.wait_event(first, lambda item: item["status"] == "FAILED")
            data = hook.data()
            assert data["isActive"] is False and data["inactiveReason"] == "RECEIVER_FAILING"
    # After reactivation the count starts again.
    hook.client.request("PUT", hook.place, {"isActive": True})
    event = hook.test()
    hook.wait_event(event, lambda item: item["failedAttempts"] >= 1)
    assert hook.data()["isActive"] is True and hook.data()["inactiveReason"] is None


def test_a_changed_url_restarts_the_five_days(webhook_of, receiver, stack):
    hook = webhook_of((500, {"Retry-After": "3600"}, b""))  # no second attempt before the URL changes
    first = hook.test()
    hook.wait_event(first, lambda item: item["failedAttempts"] >= 1)
    stack.sql(f"UPDATE webhooks SET first_failure_at = UTC_TIMESTAMP(3) - INTERVAL 6 DAY WHERE id = {hook.id}")
    assert hook.client.request("PUT", hook.place, {"name": "moved", "url": receiver.url(hook.path + "?2")}).status == 200
    receiver.answers[hook.path + "?2"] = 503
    second = hook.test()
    hook.wait_event(second, lambda item: item["failedAttempts"] >= 1)
    assert hook.data()["isActive"] is True


def test_a_success_ends_the_five_days(webhook_of, stack):
    hook = webhook_of([500, 200, 500])
    first = hook.test()
    hook.wait_event(first, lambda item: item["status"] == "DELIVERED")
    with clock_ahead(stack, 6 * 86400):
        second = hook.test()
        hook.wait_event(second, lambda item: item["failedAttempts"] >= 1)
        assert hook.data()["isActive"] is True


def test_nothing_is_sent_to_an_inactive_webhook(webhook_of, account, stack):
    hook = webhook_of((500, {"Retry-After": "3600"}, b""))
    waiting = hook.test()
    hook.wait_event(waiting, lambda item: item["failedAttempts"] == 1)
    account.request("PUT", hook.place, {"isActive": False})
    assert hook.event(waiting)["status"] == "FAILED" and hook.event(waiting)["reason"] == "webhook_inactive"
    failed_order(account)
    for answer in (account.post(hook.place + "/test"), hook.retry(waiting)):
        assert answer.status == 400 and answer.code == "VALIDATION_FAILED" and answer.fields() == ["isActive"]
    with clock_ahead(stack, 7200):  # the time of the retry
        time.sleep(2)
    assert len(hook.receiver.at(hook.path)) == 1 and len(hook.events().items) == 1


def test_after_a_rotation_both_secrets_sign_for_24_hours(webhook_of, stack):
    hook = webhook_of()
    begun = time.time()
    answer = hook.client.post(hook.place + "/rotate-secret")
    assert answer.status == 200 and answer.data["secret"].startswith("whsec_")
    fresh = answer.data["secret"]
    assert fresh != hook.secret and hook.secret.encode() not in answer.body
    expires = time_of(answer.data["previousSecretExpiresAt"]).timestamp()
    assert begun + 86399 < expires <= time.time() + 86400
    assert hook.data()["previousSecretExpiresAt"] == answer.data["previousSecretExpiresAt"]
    hook.test()
    both = hook.got(1)[0]
    assert len(both.signatures()) == 2
    assert both.is_signed_with(hook.secret) and both.is_signed_with(fresh)
    with clock_ahead(stack, 86460):
        hook.test()
        one = hook.got(2)[1]
        assert hook.data()["previousSecretExpiresAt"] is None
    assert len(one.signatures()) == 1 and one.is_signed_with(fresh) and not one.is_signed_with(hook.secret)


def test_two_rotations_in_a_day_leave_every_secret_its_24_hours(webhook_of, stack):
    hook = webhook_of()
    second = hook.client.post(hook.place + "/rotate-secret").data["secret"]
    with clock_ahead(stack, 12 * 3600):
        third = hook.client.post(hook.place + "/rotate-secret").data["secret"]
        hook.test()
        all_three = hook.got(1)[0]
    assert [all_three.is_signed_with(secret) for secret in (hook.secret, second, third)] == [True] * 3
    with clock_ahead(stack, 25 * 3600):
        hook.test()
        two = hook.got(2)[1]
    assert [two.is_signed_with(secret) for secret in (hook.secret, second, third)] == [False, True, True]
    with clock_ahead(stack, 37 * 3600):
        hook.client.post(hook.place + "/rotate-secret")
        assert stack.sql(f"SELECT COUNT(*) FROM webhook_secrets WHERE webhook_id = {hook.id}") == [["2"]]


def test_at_most_five_secrets_sign(webhook_of):
    hook = webhook_of()
    for _ in range(8):
        newest = hook.client.post(hook.place + "/rotate-secret").data["secret"]
    hook.test()
    delivery = hook.got()[0]
    assert len(delivery.signatures()) == 5 and delivery.is_signed_with(newest)


def test_a_delivered_event_can_be_sent_again(webhook_of):
    hook = webhook_of()
    event = hook.test()
    hook.wait_event(event, lambda item: item["status"] == "DELIVERED")
    answer = hook.retry(event)
    assert answer.status == 200 and answer.data["eventId"] == event and answer.data["status"] == "PENDING"
    first, second = hook.got(2)
    assert first.id == second.id and first.json == second.json


def test_a_failed_event_can_be_sent_again(webhook_of, stack):
    hook = webhook_of([410, 200])
    event = hook.test()
    hook.wait_event(event, lambda item: item["status"] == "FAILED")
    hook.client.request("PUT", hook.place, {"isActive": True})
    assert hook.retry(event).status == 200
    assert hook.wait_event(event, lambda item: item["status"] == "DELIVERED")["failedAttempts"] == 0


def test_a_waiting_event_is_sent_immediately(webhook_of):
    hook = webhook_of([(503, {"Retry-After": "3600"}, b""), 200])
    event = hook.test()
    hook.wait_event(event, lambda item: item["failedAttempts"] == 1)
    hook.retry(event)
    hook.got(2)  # and not after an hour


def test_events_are_listed_newest_first(webhook_of):
    hook = webhook_of()
    events = [hook.test() for _ in range(3)]
    for event in events:
        hook.wait_event(event, lambda item: item["status"] == "DELIVERED")
    answer = hook.events(limit=2)
    assert [item["eventId"] for item in answer.items] == [events[2], events[1]]
    assert answer.page == {"totalItems": 3, "totalPages": 2, "currentPage": 1, "itemsPerPage": 2}
    assert set(answer.items[0]) == {"eventId", "eventType", "orderId", "occurredAt", "status", "failedAttempts",
                                   "responseStatus", "reason", "lastAttemptAt", "nextAttemptAt", "deliveredAt"}
    assert [item["eventId"] for item in hook.events(keyword=events[0]).items] == [events[0]]
    assert len(hook.events(keyword="TEST").items) == 3 and hook.events(keyword="order.").items == []
    assert len(hook.events(status="DELIVERED").items) == 3 and hook.events(status="FAILED").page["totalItems"] == 0
    assert len(hook.events(status="DELIVERED", keyword=events[0], limit=-1).items) == 1
    assert hook.events(status="SENDING").fields() == ["status"]
    assert hook.events(keyword="%C3%A4").items == [] and hook.events(limit=-1, page=2).items == []


def test_all_of_very_many_events_are_listed(webhook_of, stack):
    """The events need more memory than a pool process may use."""
    hook, count = webhook_of(), 60000
    newest = int(hook.test()) - (3600000 << 22)  # an hour ago, see src/model/order.h
    stack.sql(f"""
        INSERT INTO webhook_events (id, account_id, type, occurred_at)
        SELECT {newest} - seq, {hook.client.account}, 'webhook.test', NOW(3) FROM seq_1_to_{count};
        INSERT INTO webhook_deliveries (webhook_id, event_id, status, available_at, delivered_at, created_at, updated_at)
        SELECT {hook.id}, {newest} - seq, 'DELIVERED', NOW(3), NOW(3), NOW(3), NOW(3) FROM seq_1_to_{count}""")
    place = urllib.parse.urlsplit(stack.url)
    connection = http.client.HTTPSConnection(place.hostname, place.port, context=stack.tls, timeout=180)
    try:  # without the check of every response, which takes a minute for so many
        connection.request("GET", f"{hook.place}/events?limit=-1", headers={"Authorization": "Bearer " + hook.client.key})
        answer = connection.getresponse()
        told = json.loads(answer.read())
    finally:
        connection.close()
        stack.sql(f"DELETE FROM webhook_deliveries WHERE webhook_id = {hook.id} AND event_id < {newest};"
                  f"DELETE FROM webhook_events WHERE account_id = {hook.client.account} AND id < {newest}")
    assert answer.status == 200 and told["data"]["pageInfo"]["totalItems"] == count + 1, told["data"]["pageInfo"]
    numbers = [int(item["eventId"]) for item in told["data"]["events"]]
    assert len(numbers) == count + 1 and numbers == sorted(numbers, reverse=True)


# ---- receivers do not delay each other ----


@pytest.fixture
def patient_worker(stack):
    """A worker whose receivers have two minutes, so a hanging receiver delays the deliveries behind it for the whole test."""
    with stack.configured("webhooks", "timeout_s", "120"):
        yield


def test_one_slow_receiver_does_not_delay_anothers(webhook_of, receiver, patient_worker):
    slow, good = webhook_of("hang"), webhook_of()
    for _ in range(20):
        slow.test()
    slow.got(3)
    for number in range(1, 6):
        good.test()
        good.got(number)
    assert receiver.open_most[slow.path] <= 3, "few deliveries of one receiver at a time"
    assert len(receiver.at(slow.path)) == 3, "before even one of the slow ones is over"


def test_a_receiver_has_15_seconds(webhook_of):
    for _ in range(3):  # a slow machine may need longer
        hook = webhook_of("hang")
        event = hook.test()
        data = hook.wait_event(event, lambda item: item["failedAttempts"] >= 1)
        spent = (time_of(data["lastAttemptAt"]) - time_of(data["occurredAt"])).total_seconds()
        assert data["reason"] == "timeout" and data["responseStatus"] is None and spent >= 14.5
        if data["failedAttempts"] == 1 and spent < 25:
            break
    assert spent < 25


def test_many_receivers_are_served_in_parallel(account, receiver, stack):
    accounts = [account, stack.account_new(), stack.account_new()]
    hooks = [Hook(accounts[number % 3], receiver, "hang" if number % 2 else 200) for number in range(40)]
    for hook in hooks:
        hook.test()
    begin = time.monotonic()
    for hook in hooks:
        hook.got(1)
    assert time.monotonic() - begin < 150, "one after the other they would take 20 times 15 s"
    for hook in hooks:
        hook.client.request("DELETE", hook.place)
        receiver.let_go(hook.path)


def test_one_account_does_not_fill_all_the_room(account, stranger, receiver, stack, patient_worker):
    with stack.configured("webhooks", "deliveries_max", "16"):
        hooks = [Hook(account, receiver, "hang") for _ in range(19)]
        for hook in hooks:
            hook.test()
        receiver.wait(hooks[0].path)
        good = Hook(stranger, receiver)
        good.test()
        good.got()
    assert stack.sql("SELECT COUNT(*) FROM webhook_deliveries d JOIN webhooks w ON w.id = d.webhook_id WHERE d.tried_at IS NOT "
                     f"NULL AND w.account_id = {account.account}") == [["0"]], "before even one of the slow ones is over"
    for hook in [*hooks, good]:
        hook.client.request("DELETE", hook.place)
        receiver.let_go(hook.path)


def test_slow_receivers_of_several_accounts_leave_room_for_another(receiver, stack, patient_worker):
    """With a fixed half for each, two accounts filled all places, and a third waited until their requests timed out."""
    other = type(receiver)()
    with stack.configured("webhooks", "deliveries_max", "16"):
        slow = [Hook(client, receiver, "hang") for client in [stack.account_new() for _ in range(3)] for _ in range(16)]
        for hook in slow:
            hook.test()
        receiver.wait(slow[0].path)
        time.sleep(3)  # the worker has leased as much as it may
        hooks = [Hook(stack.account_new(), other) for _ in range(2)]
        for hook in hooks:
            hook.test()
            hook.got()
        tried = stack.sql("SELECT COUNT(*) FROM webhook_deliveries WHERE tried_at IS NOT NULL AND webhook_id IN "
                          f"({', '.join(str(hook.id) for hook in slow)})")
        busy = sum(receiver.open.values())
    for hook in [*slow, *hooks]:
        hook.client.request("DELETE", hook.place)
        receiver.let_go(hook.path)
    other.close()
    assert tried == [["0"]], "before even one of the slow ones is over"
    assert busy < 16, busy


def test_one_server_does_not_fill_all_the_room(receiver, stack, patient_worker):
    other = type(receiver)()
    with stack.configured("outgoing", "server_requests", "4"):
        hooks = [Hook(client, receiver, "hang") for client in [stack.account_new() for _ in range(3)] for _ in range(4)]
        for hook in hooks:
            hook.test()
        good = Hook(stack.account_new(), other)
        good.test()
        good.got()
        time.sleep(2)
        # An account may use as many places as stay free: if three accounts use one each, one is left for a fourth.
        assert 3 <= sum(receiver.open.values()) <= 4, receiver.open
    for hook in [*hooks, good]:
        hook.client.request("DELETE", hook.place)
        receiver.let_go(hook.path)
    other.close()


# ---- how many an account has ----


def test_an_account_has_at_most_20_webhooks_and_so_at_the_same_time(stack, receiver):
    client = stack.account_new()
    with concurrent.futures.ThreadPoolExecutor(30) as pool:
        answers = list(pool.map(lambda n: client.post(WEBHOOKS, {"url": receiver.url(f"/many/{n}")}), range(40)))
    assert sorted(answer.status for answer in answers) == [201] * 20 + [429] * 20
    refused = next(answer for answer in answers if answer.status == 429)
    assert refused.code == "USAGE_LIMIT_EXCEEDED" and "webhooks" in refused.json["message"], refused
    assert client.get(WEBHOOKS).data["pageInfo"]["totalItems"] == 20


def test_an_account_keeps_webhooks_from_before_the_limit(stack, receiver):
    client = stack.account_new()
    first = Hook(client, receiver)
    stack.sql("INSERT INTO webhooks (account_id, url, created_at, updated_at) SELECT "
              f"{client.account}, CONCAT('https://old.example/', seq MOD 20), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM seq_1_to_25")
    assert client.get(WEBHOOKS).data["pageInfo"]["totalItems"] == 26
    assert client.post(WEBHOOKS, {"url": receiver.url("/one-more")}).code == "USAGE_LIMIT_EXCEEDED"
    assert client.request("PUT", first.place, {"url": receiver.url("/moved")}).status == 200
    old = next(item["id"] for item in client.get(WEBHOOKS + "?limit=-1").items if item["url"].endswith("old.example/1"))
    assert client.request("PUT", f"{WEBHOOKS}/{old}", {"url": "https://old.example/1", "name": "same"}).status == 200


def test_a_url_has_one_webhook_of_an_account(stack, receiver, stranger):
    client = stack.account_new()
    first, second = Hook(client, receiver), Hook(client, receiver)
    taken = {"url": receiver.url(first.path)}
    for answer in (client.post(WEBHOOKS, taken), client.request("PUT", second.place, taken)):
        assert answer.status == 400 and answer.fields() == ["url"] and "another webhook" in answer.json["message"], answer
    host, path = receiver.url("").removeprefix("http://").rstrip("/"), first.path
    for spelt in (f"http://{host}{path}#a", f"HTTP://{host}{path}", f"http://{host}/.{path}", f"http://{host}/x/..{path}", f"http://{host}{path}?"):
        answer = client.post(WEBHOOKS, {"url": spelt})
        assert answer.status == 400 and "another webhook" in answer.json["message"], (spelt, answer)
    assert client.request("PUT", first.place, taken).status == 200
    other = stranger.post(WEBHOOKS, taken)
    assert other.status == 201
    stranger.request("DELETE", f"{WEBHOOKS}/{other.data['id']}")
    assert client.request("DELETE", first.place).status == 200
    assert client.post(WEBHOOKS, taken).status == 201


@pytest.fixture
def second_worker(stack, tmp_path):
    """A second worker; each worker has places for two deliveries of an account."""
    config = tmp_path / "imgward.conf"
    with stack.configured("webhooks", "deliveries_max", "4"):
        with open(stack.environment["IMGWARD_CONFIG"], encoding="utf-8") as file:
            config.write_text(file.read().replace("/worker.pid", "/worker-2.pid"), encoding="utf-8")
        with open(tmp_path / "log", "wb") as log:
            worker = subprocess.Popen([os.path.join(stack.environment["IMGWARD_BUILD"], "imgward-worker"),
                                       "--config", str(config)], stderr=log)
        end = time.monotonic() + 90
        while '"event":"started"' not in (tmp_path / "log").read_text(encoding="utf-8"):
            assert time.monotonic() < end and worker.poll() is None, "the second worker does not start"
            time.sleep(0.1)
        yield tmp_path / "log"
        worker.terminate()
        assert worker.wait(120) == 0


def test_two_workers_share_deliveries_and_send_none_twice(webhook_of, receiver, second_worker, stack):
    hook = webhook_of((200, {}, b"", 0.3))
    stack.sql(f"""
        INSERT INTO webhook_events (id, account_id, type, occurred_at)
            SELECT 1000000 + seq, {hook.client.account}, 'webhook.test', UTC_TIMESTAMP(3) FROM seq_1_to_60;
        INSERT INTO webhook_deliveries (webhook_id, event_id, available_at, created_at, updated_at)
            SELECT {hook.id}, 1000000 + seq, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3) FROM seq_1_to_60""")
    hook.got(60, seconds=180)
    time.sleep(2)
    ids = [delivery.id for delivery in receiver.at(hook.path)]
    assert sorted(ids) == sorted(set(ids)) and len(ids) == 60
    assert receiver.open_most[hook.path] <= 3
    assert second_worker.read_text(encoding="utf-8").count('"event":"delivered"') > 0


# ---- restarts ----


def test_a_delivery_outlives_a_killed_worker(webhook_of, stack):
    hook = webhook_of([500, 200])
    event = hook.test()
    hook.wait_event(event, lambda item: item["failedAttempts"] == 1)
    stack.part("kill", "worker")
    stack.part("start", "worker")
    assert len(hook.got(2)) == 2
    hook.wait_event(event, lambda item: item["status"] == "DELIVERED")


def test_a_delivery_in_progress_survives_a_killed_worker(webhook_of, stack):
    hook = webhook_of(["hang", 200])
    event = hook.test()
    hook.got()
    stack.part("kill", "worker")
    stack.part("start", "worker")
    first, second = hook.got(2, seconds=35)  # the lease is 45 s
    assert first.id == second.id == event
    assert hook.wait_event(event, lambda item: item["status"] == "DELIVERED")["failedAttempts"] == 0


def test_a_delivery_outlives_the_database_and_redis(webhook_of, stack):
    hook = webhook_of([500, 200])
    event = hook.test()
    hook.wait_event(event, lambda item: item["failedAttempts"] == 1)
    try:
        stack.part("stop", "redis")
        stack.part("stop", "mariadbd")
        time.sleep(1)
        stack.part("start", "mariadbd")
        hook.got(2)
        hook.wait_event(event, lambda item: item["status"] == "DELIVERED")
    finally:
        stack.part("start", "mariadbd")
        stack.part("start", "redis")


def test_an_answer_is_recorded_once_the_database_is_back(webhook_of, stack, patient_worker):
    hook = webhook_of((200, {}, b"", 3))
    event = hook.test()
    hook.got()
    stack.part("stop", "mariadbd")
    time.sleep(4)
    stack.part("start", "mariadbd")
    hook.wait_event(event, lambda item: item["status"] == "DELIVERED")
    assert len(hook.receiver.at(hook.path)) == 1


def test_no_event_is_lost_when_the_worker_is_killed_again_and_again(webhook_of, stack):
    hook = webhook_of((200, {}, b"", 0.2))
    events = {hook.test() for _ in range(40)}
    for number in range(3):
        hook.got(5 * (number + 1))
        stack.part("kill", "worker")
        stack.part("start", "worker")
    end = time.monotonic() + 180
    while {item["eventId"] for item in hook.events(limit=-1).items if item["status"] == "DELIVERED"} != events:
        assert time.monotonic() < end, hook.events(limit=-1).items
        time.sleep(0.3)
    sent = [delivery.id for delivery in hook.receiver.at(hook.path)]
    assert set(sent) == events and len(sent) <= 40 + 3 * 3, "only what was under way comes twice"


def test_an_event_is_written_with_the_end_of_its_order_while_no_worker_delivers(webhook_of, account, stack):
    hook = webhook_of()
    order = account.create(["a.jpg"]).data
    account.upload(order["files"][0]["uploadUrl"], BROKEN)
    stack.part("stop", "worker")
    account.confirm(order["orderId"])
    assert hook.events().items == []
    stack.part("start", "worker")
    assert account.wait(order["orderId"])["status"] == "failed"
    assert [item["orderId"] for item in hook.events().items] == [order["orderId"]]
    assert hook.got()[0].json["data"]["orderId"] == order["orderId"]


def test_a_deleted_webhook_gets_nothing_more(webhook_of, account, stack):
    hook = webhook_of((500, {"Retry-After": "3600"}, b""))
    event = hook.test()
    hook.wait_event(event, lambda item: item["failedAttempts"] == 1)
    account.request("DELETE", hook.place)
    with clock_ahead(stack, 7200):  # the time of the retry
        time.sleep(3)
    assert len(hook.receiver.at(hook.path)) == 1


def test_old_events_are_forgotten(webhook_of, stack):
    hook = webhook_of()
    event = hook.test()
    hook.wait_event(event, lambda item: item["status"] == "DELIVERED")
    with clock_ahead(stack, 31 * 86400):
        end = time.monotonic() + 90
        while hook.events().items:
            assert time.monotonic() < end
            time.sleep(0.5)
    assert stack.sql(f"SELECT COUNT(*) FROM webhook_events WHERE id = {event}") == [["0"]]


# ---- the published library ----

VERIFY = """
const { Webhook } = require("standardwebhooks");
const input = JSON.parse(require("fs").readFileSync(0, "utf8"));
const verdicts = input.map(({ secret, body, headers }) => {
  try { new Webhook(secret).verify(body, headers); return "ok"; } catch (error) { return error.message; }
});
console.log(JSON.stringify(verdicts));
"""


def test_the_published_library_verifies_deliveries(webhook_of, account, modules):
    hook = webhook_of()
    hook.test()
    failed_order(account)
    fresh = account.post(hook.place + "/rotate-secret").data["secret"]
    hook.got(2)
    hook.test()
    sent = hook.got(3)
    stranger_secret = "whsec_" + base64.b64encode(os.urandom(32)).decode()
    cases = [(hook.secret, sent[0], "", True), (hook.secret, sent[1], "", True), (hook.secret, sent[2], "", True),
             (fresh, sent[2], "", True), (fresh, sent[0], "", False), (stranger_secret, sent[1], "", False),
             (hook.secret, sent[0], " ", False)]
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    done = subprocess.run(
        ["node", "-e", VERIFY], env={**os.environ, "NODE_PATH": modules}, capture_output=True, text=True, timeout=300, check=True,
        input=json.dumps([{"secret": secret, "body": delivery.body.decode() + more,
                           "headers": {name: delivery.headers[name] for name in names}}
                          for secret, delivery, more, _ in cases]))
    verdicts = json.loads(done.stdout)
    assert [verdict == "ok" for verdict in verdicts] == [is_good for _, _, _, is_good in cases], verdicts


# ---- the document ----


@pytest.fixture(scope="module")
def document():
    if openapi.jsonschema is None:
        pytest.skip("python3-yaml or python3-jsonschema is not installed")
    return openapi.document()


def faults_of(schema, instance):
    return openapi.faults_of(openapi.closed(schema), instance)


def template_of(document, path):
    """Returns the documented path that matches; if several do, the path with the fewest captures."""
    parts = path.rstrip("/").split("/")
    fitting = [template for template in document["paths"]
               if len(template.split("/")) == len(parts)
               and all(a == b or a.startswith("{") for a, b in zip(template.split("/"), parts))]
    return min(fitting, key=lambda template: template.count("{")) if fitting else None


def response_of(document, template, method, status):
    response = document["paths"][template][method.lower()]["responses"][str(status)]
    if "$ref" in response:
        response = document["components"]["responses"][response["$ref"].rsplit("/", 1)[1]]
    return response


def test_every_answer_is_as_documented(document):
    checked = 0
    for method, path, answer in ANSWERS:
        template = template_of(document, path)
        if answer.status == 405 or template is None:
            continue
        response = response_of(document, template, method, answer.status)
        schema = response["content"]["application/json"]["schema"]
        assert faults_of(schema, answer.json) == [], (method, path, answer)
        for name in response.get("headers", {}):
            assert answer.headers[name] is not None, (name, method, path, answer)
        checked += 1
    assert checked > 200


def test_every_delivery_is_as_documented(document, receiver):
    headers = [document["components"]["parameters"][name]
               for name in ("webhook-id", "webhook-timestamp", "webhook-signature", "webhook-traceparent")]
    assert len(receiver.deliveries) > 50
    for delivery in receiver.deliveries:
        body = delivery.json
        event = "test" if body["eventType"] == "webhook.test" else "order"
        content = document["webhooks"][event]["post"]["requestBody"]["content"]["application/json"]
        assert faults_of(content["schema"], body) == [], body
        for header in headers:
            assert faults_of(header["schema"], delivery.headers[header["name"]]) == []
