"""traceparent (W3C Trace Context, Level 1): one id in the log lines of an order and in its webhooks."""
import json
import os
import re
import time
import uuid

import pytest

import pictures
import wire
from client import ORDERS
from receiver import Receiver

TRACEPARENT = re.compile("00-([0-9a-f]{32})-([0-9a-f]{16})-0[01]")


def trace_new():
    return uuid.uuid4().hex


def parent(trace, flags="01"):
    return {"traceparent": f"00-{trace}-{uuid.uuid4().hex[:16]}-{flags}"}


def lines(stack, wanted, *names):
    """Returns the log lines that contain a text, as objects by the log's name."""
    found = {}
    for name in names:
        with open(os.path.join(stack.environment["IMGWARD_LOG"], name + ".log"), encoding="utf-8") as file:
            found[name] = [json.loads(line) for line in file if wanted in line]
    return found


def request_line(stack, answer, seconds=60):
    """Returns the lines of a response in the logs of pool and nginx."""
    end = time.monotonic() + seconds
    wanted = answer.headers["X-Request-Id"]
    while True:
        found = lines(stack, wanted, "api", "access")
        pool = [line for line in found["api"] if line["event"] == "request"]
        if pool and found["access"]:
            return pool[0], found["access"][0]
        assert time.monotonic() < end, (wanted, found)
        time.sleep(0.1)


@pytest.fixture(scope="module")
def receiver():
    receiver = Receiver()
    yield receiver
    receiver.close()


def hook_new(account, receiver):
    path = "/" + uuid.uuid4().hex[:12]
    receiver.answers[path] = 200
    created = account.post(ORDERS + "/webhooks", {"url": receiver.url(path)})
    assert created.status == 201, created
    return path, created.data["id"]


def order_run(account, trace=None, flags="01", confirm=None):
    """Runs an order of one picture. The creation has the trace, the confirmation the headers confirm."""
    created = account.post(f"{ORDERS}/anti-ai", {"idempotencyKey": uuid.uuid4().hex, "files": [{"fileName": "a.jpg"}]},
                           headers=parent(trace, flags) if trace else None)
    assert created.status == 201, created
    uploaded = account.upload(created.data["files"][0]["uploadUrl"], pictures.jpeg(96, 96))
    confirmed = account.post(f"{ORDERS}/anti-ai/confirm", {"idempotencyKey": "c", "orderId": created.data["orderId"]}, headers=confirm)
    assert (uploaded.status, confirmed.status) == (201, 200), (uploaded, confirmed)
    order = created.data["orderId"]
    account.wait(order)
    return order, created, uploaded, confirmed


def test_one_id_leads_through_nginx_pool_worker_and_delivery(stack, receiver):
    account, trace = stack.account_new(), trace_new()
    path, _ = hook_new(account, receiver)
    order, created, uploaded, confirmed = order_run(account, trace, confirm=parent(trace))
    [delivery] = receiver.wait(path, 1, 90)
    sent = TRACEPARENT.fullmatch(delivery.headers["traceparent"])
    assert sent and sent[1] == trace and delivery.headers["traceparent"].endswith("-01")
    for answer in (created, uploaded, confirmed):
        assert [line["trace_id"] for line in request_line(stack, answer)] == [trace, trace], answer
    end = time.monotonic() + 60
    while "delivered" not in (events := [line["event"] for line in lines(stack, trace, "worker")["worker"]]):
        assert time.monotonic() < end, events
        time.sleep(0.1)
    assert {"job_done", "order_ended", "delivered"} <= set(events), events
    assert all(str(line["order_id"]) == order for line in lines(stack, trace, "worker")["worker"])
    assert json.loads(stack.ctl("order", "show", "--json", order))["traceId"] == trace


def test_without_a_traceparent_the_order_has_the_trace_of_its_creation(stack, receiver):
    account = stack.account_new()
    path, _ = hook_new(account, receiver)
    order, created, uploaded, confirmed = order_run(account)
    trace = created.headers["X-Request-Id"]
    downloaded = account.request("GET", account.get(f"{ORDERS}/{order}/download").data["downloadUrl"], key=False)
    assert downloaded.status == 200
    for answer in (created, uploaded, confirmed, account.detail(order), downloaded):
        assert [line["trace_id"] for line in request_line(stack, answer)] == [trace, trace], answer
        assert "Imgward-Trace-Id" not in answer.headers
    [delivery] = receiver.wait(path, 1, 90)
    assert TRACEPARENT.fullmatch(delivery.headers["traceparent"])[1] == trace


def test_an_order_keeps_the_trace_of_its_creation(stack, receiver):
    account, first, second = stack.account_new(), trace_new(), trace_new()
    path, _ = hook_new(account, receiver)
    order, created, _, confirmed = order_run(account, first, flags="00", confirm=parent(second))
    assert [line["trace_id"] for line in request_line(stack, confirmed)] == [second, second]
    end = time.monotonic() + 60
    while not any(line["event"] == "order_ended" for line in lines(stack, order, "worker")["worker"]):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert {line["trace_id"] for line in lines(stack, order, "worker")["worker"]} == {first}
    [delivery] = receiver.wait(path, 1, 90)
    assert TRACEPARENT.fullmatch(delivery.headers["traceparent"])[1] == first
    assert delivery.headers["traceparent"].endswith("-00"), "the client does not sample its trace"


def test_the_end_of_an_order_by_time_or_by_its_client_has_its_trace(stack, receiver):
    account, trace = stack.account_new(), trace_new()
    path, _ = hook_new(account, receiver)
    body = {"files": [{"fileName": "a.jpg"}]}
    late, deleted = (account.post(f"{ORDERS}/anti-ai", {"idempotencyKey": key, **body}, headers=parent(trace)).data["orderId"] for key in "ab")
    answer = account.request("DELETE", f"{ORDERS}/{deleted}")
    assert answer.status == 200 and [line["trace_id"] for line in request_line(stack, answer)] == [trace, trace]
    stack.sql(f"UPDATE orders SET expires_at = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND WHERE id = {late}")
    account.wait(late)
    end = time.monotonic() + 60
    while not (found := [line for line in lines(stack, trace, "worker")["worker"] if line["event"] == "order_abandoned"]):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert [str(line["order_id"]) for line in found] == [late]
    for delivery in receiver.wait(path, 2, 90):
        assert TRACEPARENT.fullmatch(delivery.headers["traceparent"])[1] == trace


def test_each_attempt_has_a_new_span_and_a_test_a_new_trace(stack, receiver):
    account = stack.account_new()
    path, hook = hook_new(account, receiver)
    receiver.answers[path] = [500, 200]
    event = account.post(f"{ORDERS}/webhooks/{hook}/test").data["eventId"]
    [first] = receiver.wait(path, 1, 90)
    assert account.post(f"{ORDERS}/webhooks/{hook}/events/{event}/retry").status in (200, 202, 409)
    second = receiver.wait(path, 2, 90)[1]
    one, two = (TRACEPARENT.fullmatch(delivery.headers["traceparent"]) for delivery in (first, second))
    assert one and two and one[2] != two[2]


TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
VALID = {"version 0": f"00-{TRACE}-{PARENT}-01", "a later version": f"cc-{TRACE}-{PARENT}-01-more"}
INVALID = {
    "version ff": f"ff-{TRACE}-{PARENT}-01", "upper case": f"00-{TRACE.upper()}-{PARENT}-01", "zero trace": f"00-{'0' * 32}-{PARENT}-01",
    "zero parent": f"00-{TRACE}-{'0' * 16}-01", "too short": f"00-{TRACE}-{PARENT}-0", "too long": f"00-{TRACE}-{PARENT}-01-",
    "longer flags": f"cc-{TRACE}-{PARENT}-012", "a list": f"00-{TRACE}-{PARENT}-01, 00-{TRACE}-{PARENT}-01", "text": "trace me",
    "empty": "", "long": "0" * 4000}


@pytest.mark.parametrize("name", [*VALID, *INVALID])
def test_pool_and_nginx_read_the_same_traces(stack, client, name):
    """nginx asks the pool for the trace. If the pool does not answer (TRACE), nginx reads the header."""
    headers = {"traceparent": {**VALID, **INVALID}[name]}
    answer = client.get(ORDERS + "?limit=1", headers=headers)
    assert answer.status == 200
    wanted = TRACE if name in VALID else answer.headers["X-Request-Id"]
    assert [line["trace_id"] for line in request_line(stack, answer)] == [wanted, wanted]
    refused = client.request("TRACE", ORDERS, headers=headers)
    wanted = TRACE if name in VALID else refused.headers["X-Request-Id"]
    assert refused.status == 405
    end = time.monotonic() + 60
    while not (found := lines(stack, refused.headers["X-Request-Id"], "access")["access"]):
        assert time.monotonic() < end  # nginx writes the line after the response
        time.sleep(0.1)
    assert [line["trace_id"] for line in found] == [wanted]


def test_a_repeated_header_is_refused(stack, client):
    with wire.Wire(stack) as connection:
        connection.send(f"GET {ORDERS}?limit=1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {client.key}\r\n"
                        + f"traceparent: {VALID['version 0']}\r\n" * 2 + "\r\n")
        _, headers, _ = connection.answer()
    [name] = headers["x-request-id"]
    end = time.monotonic() + 60
    while not (found := [line for line in lines(stack, name, "api")["api"] if line["event"] == "request"]):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert found[0]["trace_id"] == name
