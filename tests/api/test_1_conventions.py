"""Contract section 1: shapes, ids, times, bodies, methods, unknown fields, caching."""
import http.client
import json
import re
import urllib.parse
import uuid

import pytest

import wire
from client import ORDERS

TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")


def error_is_whole(answer, status, code):
    assert answer.status == status, answer
    body = answer.json
    assert body["code"] == code
    assert isinstance(body["message"], str) and body["message"]
    assert body["requestId"] == answer.headers["X-Request-Id"]
    assert set(body) <= {"code", "message", "reason", "params", "details", "requestId", "expiredAt", "serverTime"}
    assert answer.headers["Content-Type"].startswith("application/json")
    return body


def test_creation_answers_201_with_location_and_data(client):
    answer = client.create()
    assert answer.status == 201, answer
    assert list(answer.json) == ["data"]
    assert answer.headers["Location"].endswith(f"{ORDERS}/{answer.data['orderId']}")
    assert client.get(urllib.parse.urlsplit(answer.headers["Location"]).path).status == 200


def test_error_has_one_shape_and_the_request_id_of_the_header(client):
    error_is_whole(client.get(f"{ORDERS}/1"), 404, "ORDER_NOT_FOUND")


def test_details_come_on_validation_errors_only_and_name_every_bad_field(client):
    assert "details" not in client.get(f"{ORDERS}/1").json
    answer = client.post(f"{ORDERS}/anti-ai", {
        "idempotencyKey": "", "orderName": "x" * 65, "options": {"strength": "enormous"},
        "files": [{"fileName": "a.jpg"}, {"fileName": "b.gif"}, {"fileName": "c/d.png"}, {}]})
    body = error_is_whole(answer, 400, "VALIDATION_FAILED")
    assert {"idempotencyKey", "orderName", "options.strength", "files[1].fileName", "files[2].fileName",
            "files[3].fileName"} <= set(answer.fields())
    assert "files[0].fileName" not in answer.fields()
    assert all(detail["message"] for detail in body["details"])


def test_every_response_has_a_unique_request_id(client, anonymous):
    answers = [client.list(), client.get(f"{ORDERS}/1"), anonymous.get(ORDERS), anonymous.get("/nowhere"),
               client.post(f"{ORDERS}/anti-ai", b"x" * (2 << 20), headers={"Content-Type": "application/json"})]
    ids = [answer.headers["X-Request-Id"] for answer in answers]
    assert all(re.fullmatch(r"[0-9a-f]{32}", name) for name in ids), ids
    assert len(set(ids)) == len(ids)


def test_the_request_id_is_in_the_log(client, stack):
    name = client.list().headers["X-Request-Id"]
    log = stack.environment["IMGWARD_LOG"]
    found = [part for part in ("api", "nginx", "access") if name in text_of(f"{log}/{part}.log")]
    assert found


def text_of(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def test_times_are_iso_8601_utc_with_milliseconds(client):
    data = client.detail(client.create().data["orderId"]).data
    assert TIME.match(data["createdAt"]) and TIME.match(data["updatedAt"]) and TIME.match(data["expiresAt"])
    created = client.create().data
    assert TIME.match(created["files"][0]["uploadUrlExpiresAt"])


def test_order_ids_are_decimal_strings_of_63_bits_ordered_by_time(client):
    import time
    ids = []
    for _ in range(5):
        ids.append(client.create().data["orderId"])
        time.sleep(0.003)
    assert all(isinstance(name, str) and re.fullmatch(r"[1-9]\d*", name) for name in ids)
    numbers = [int(name) for name in ids]
    assert numbers == sorted(set(numbers))
    assert all(number < 1 << 63 for number in numbers)


def test_unknown_fields_are_ignored(client):
    answer = client.create([{"fileName": "a.jpg", "colour": "red"}], later={"a": [1, None]})
    assert answer.status == 201


def test_an_unknown_field_may_hold_a_number_of_any_size(client):
    assert client.create(later=10 ** 30).status == 201


@pytest.mark.parametrize("field, value", [
    ("idempotencyKey", 7), ("orderName", ["x"]), ("files", {"fileName": "a.jpg"}), ("files", "a.jpg"),
    ("mode", [1]), ("mode", {"zeroCopy": "yes"}), ("options", 1), ("options", {"strength": 3}),
    ("files", [1]), ("files", [{"fileName": 1}]), ("files", [None]), ("outputTargets", {})])
def test_wrong_types_are_refused(client, field, value):
    body = {"idempotencyKey": uuid.uuid4().hex, "files": [{"fileName": "a.jpg"}], field: value}
    answer = client.post(f"{ORDERS}/anti-ai", body)
    assert answer.status == 400 and answer.code == "VALIDATION_FAILED", answer
    assert any(name.startswith(field) for name in answer.fields()), answer


def test_body_over_1_mib_is_413_in_the_same_shape(client):
    body = json.dumps({"idempotencyKey": "x", "filler": "x" * (1 << 20)})
    answer = client.post(f"{ORDERS}/anti-ai", body, headers={"Content-Type": "application/json"})
    error_is_whole(answer, 413, "PAYLOAD_TOO_LARGE")


def test_body_of_just_under_1_mib_is_read(client):
    body = {"idempotencyKey": uuid.uuid4().hex, "files": [{"fileName": "a.jpg"}]}
    body["filler"] = "x" * ((1 << 20) - len(json.dumps(body)) - 20)
    assert client.post(f"{ORDERS}/anti-ai", body).status == 201


def test_bodies_up_to_the_configured_size_are_read(client, stack):
    """nginx has a separate limit in its configuration, so the body is sent through nginx."""
    with stack.configured("api", "body_max_bytes", str(4 << 20)):
        for item in (b"0,", b"{},", b'"",', b"[],"):
            body = b'{"a":[' + item * ((4 << 20) // len(item) - 10) + b"0]}"
            response = wire.fastcgi(stack, {"REQUEST_METHOD": "POST", "REQUEST_URI": f"{ORDERS}/anti-ai", "CONTENT_TYPE": "application/json",
                                        "CONTENT_LENGTH": str(len(body)), "HTTP_AUTHORIZATION": "Bearer " + client.key}, body)
            assert b"Status: 400" in response and b"idempotencyKey" in response, (item, response[:300])


def test_malformed_json_is_400_with_line_and_column(client):
    answer = client.post(f"{ORDERS}/anti-ai", '{\n "idempotencyKey": oops\n}',
                         headers={"Content-Type": "application/json"})
    body = error_is_whole(answer, 400, "VALIDATION_FAILED")
    text = json.dumps(body).lower()
    assert "line 2" in text and "column" in text


@pytest.mark.parametrize("body", [b"", b"[]", b"7", b"null", b'"x"', b"{}{}", b'{"a":1', b"\xff\xfe",
                                  b'{"idempotencyKey":"\xff"}', b"[" * 100000, b'{"a":' * 5000])
def test_bodies_that_are_no_object_are_400(client, body):
    answer = client.post(f"{ORDERS}/anti-ai", body, headers={"Content-Type": "application/json"})
    error_is_whole(answer, 400, "VALIDATION_FAILED")


@pytest.mark.parametrize("form", ["text/plain", "application/x-www-form-urlencoded", "application/xml", "application/jsonx"])
def test_other_content_types_are_415(client, form):
    answer = client.post(f"{ORDERS}/anti-ai", b"{}", headers={"Content-Type": form})
    error_is_whole(answer, 415, "UNSUPPORTED_MEDIA_TYPE")


def test_an_encoded_body_is_415(client):
    answer = client.post(f"{ORDERS}/anti-ai", b"\x1f\x8b",
                         headers={"Content-Type": "application/json", "Content-Encoding": "gzip"})
    assert "gzip" in error_is_whole(answer, 415, "UNSUPPORTED_MEDIA_TYPE")["message"]


@pytest.mark.parametrize("form", ["application/json; charset=utf-8", "Application/JSON"])
def test_json_with_a_charset_is_json(client, form):
    body = json.dumps({"idempotencyKey": uuid.uuid4().hex, "files": [{"fileName": "a.jpg"}]})
    assert client.post(f"{ORDERS}/anti-ai", body, headers={"Content-Type": form}).status == 201


@pytest.mark.parametrize("method, path, allowed", [
    ("DELETE", ORDERS, "GET"), ("GET", f"{ORDERS}/anti-ai/confirm", "POST"),
    ("PUT", f"{ORDERS}/anti-ai", "POST"), ("POST", f"{ORDERS}/123/download", "GET"),
    ("GET", f"{ORDERS}/123/refresh-urls", "POST"), ("PATCH", f"{ORDERS}/123", "GET")])
def test_another_method_of_a_known_path_is_405_with_allow(client, method, path, allowed):
    answer = client.request(method, path)
    error_is_whole(answer, 405, "METHOD_NOT_ALLOWED")
    assert allowed in [word.strip() for word in answer.headers["Allow"].split(",")]


@pytest.mark.parametrize("method, path, near", [
    ("POST", "/antiai", "/anti-ai"), ("PUT", "/antiai", "/anti-ai"), ("PATCH", "/antiai", "/anti-ai"), ("POST", "/antiai/", None),
    ("POST", "/wtr-embedd", "/wtr-embed"), ("POST", "/stats", None), ("POST", "/order-1", None), ("POST", "/0", None), ("PUT", "/1.5", None),
    ("POST", "/abc/download", None), ("DELETE", "/abc/refresh-urls", None), ("POST", "/webhooks/mine", None), ("PATCH", "/webhooks/mine", None),
    ("GET", "/webhooks/1/events/x/retry", None)])
def test_a_path_that_does_not_exist_is_404_with_each_method(client, method, path, near):
    """Only a number is an orderId, so a path with any other word does not exist."""
    answer = client.request(method, ORDERS + path)
    message = error_is_whole(answer, 404, "RESOURCE_NOT_FOUND")["message"]
    assert "Allow" not in answer.headers
    assert near is None or f"the most similar path is {ORDERS}{near}." in message, answer


def test_a_method_that_nginx_refuses_is_405_with_allow_too(client):
    answer = client.request("TRACE", ORDERS)
    error_is_whole(answer, 405, "METHOD_NOT_ALLOWED")
    assert "GET" in answer.headers["Allow"]


@pytest.mark.parametrize("path", [f"{ORDERS}/123/nothing", "/api/v2", "/api/v1/orders", "/", f"{ORDERS}x", f"{ORDERS}/1/2/3/4",
                                  f"{ORDERS}/anti-ai/confirm/more"])
def test_unknown_paths_are_404(client, path):
    error_is_whole(client.get(path), 404, "RESOURCE_NOT_FOUND")


def test_head_works_where_get_does(client):
    order = client.create().data["orderId"]
    for path in (ORDERS, f"{ORDERS}/{order}"):
        answer = client.request("HEAD", path)
        assert answer.status == 200 and answer.body == b""
        assert answer.headers["Content-Type"].startswith("application/json")
    assert client.request("HEAD", f"{ORDERS}/1").status == 404


def test_a_foreign_order_answers_exactly_as_a_missing_one(client, stranger):
    order = stranger.create().data["orderId"]
    for method, path in (("GET", ""), ("GET", "/download"), ("POST", "/refresh-urls")):
        foreign = client.request(method, f"{ORDERS}/{order}{path}")
        missing = client.request(method, f"{ORDERS}/{int(order) + 1}{path}")
        assert foreign.status == missing.status == 404
        assert foreign.code == missing.code == "ORDER_NOT_FOUND"
        assert foreign.json["message"] == missing.json["message"]
    assert client.confirm(order).code == "ORDER_NOT_FOUND"


@pytest.mark.parametrize("name", ["abc", "-1", "0", "9223372036854775808", "1" * 40, "1.5", "1%27", "%2e%2e"])
def test_an_invalid_order_id_is_404(client, name):
    assert client.get(f"{ORDERS}/{name}").status == 404


def test_no_answer_of_the_api_may_be_stored(client, anonymous):
    for answer in (client.list(), client.get(f"{ORDERS}/1"), anonymous.get(ORDERS), client.create()):
        assert answer.headers["Cache-Control"] == "no-store"


def test_problem_json_carries_the_same(client):
    answer = client.get(f"{ORDERS}/1", headers={"Accept": "application/problem+json"})
    assert answer.status == 404
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    body = answer.json
    assert body["status"] == 404 and body["code"] == "ORDER_NOT_FOUND"
    assert body["title"] and body["type"]


def test_several_requests_travel_on_one_connection(client, stack):
    base = urllib.parse.urlsplit(stack.url)
    connection = http.client.HTTPSConnection(base.hostname, base.port, context=stack.tls, timeout=90)
    for _ in range(5):
        connection.request("GET", ORDERS, headers={"Authorization": "Bearer " + client.key})
        answer = connection.getresponse()
        assert answer.status == 200
        answer.read()
    connection.close()
