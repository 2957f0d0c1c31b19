"""Contract section 4: upload and download through nginx."""
import base64
import datetime
import hashlib
import http.client
import os
import re
import time
import urllib.parse

import pytest

import pictures
from client import ORDERS


@pytest.fixture
def slot(client):
    """A pending order with one file: the id of the order and the upload URL."""
    created = client.create(["a.jpg"]).data
    return created["orderId"], created["files"][0]["uploadUrl"]


def stored_files(stack):
    return {os.path.join(folder, name) for folder, _, names in os.walk(stack.store) for name in names}


def refused(answer, status, code):
    assert answer.status == status, answer
    assert answer.code == code, answer
    assert answer.headers["X-Request-Id"] == answer.json["requestId"]


def test_put_answers_201_and_then_200_with_an_etag(client, slot, jpeg, png):
    _, url = slot
    first, second = client.upload(url, jpeg), client.upload(url, png)
    assert (first.status, second.status) == (201, 200), (first, second)
    assert first.headers["ETag"] and second.headers["ETag"] and first.headers["ETag"] != second.headers["ETag"]


def test_put_needs_no_authorization_and_takes_any_content_type(client, slot, jpeg):
    assert client.upload(slot[1], jpeg, Content_Type="text/html").status == 201


def test_the_last_upload_is_the_one_that_is_processed(client, slot):
    order, url = slot
    client.upload(url, pictures.jpeg(400, 300, seed=5))
    last = pictures.jpeg(200, 160, seed=6)
    client.upload(url, last)
    client.confirm(order)
    client.wait(order)
    assert pictures.decode(client.download(order).body).size == (200, 160)


def altered(url, change):
    parts = urllib.parse.urlsplit(url)
    return urllib.parse.urlunsplit(parts._replace(**change(parts)))


def query_change(url, number, by):
    """Returns the URL with the value of its n-th parameter changed by a function."""
    parts = urllib.parse.urlsplit(url)
    pairs = [pair.split("=", 1) for pair in parts.query.split("&")]
    pairs[number % len(pairs)][1] = by(pairs[number % len(pairs)][1])
    return urllib.parse.urlunsplit(parts._replace(query="&".join("=".join(pair) for pair in pairs)))


def flipped(value):
    last = value[-1]
    return value[:-1] + ("1" if last != "1" else "2")


def test_any_altered_parameter_is_403(client, slot, jpeg):
    _, url = slot
    count = len(urllib.parse.urlsplit(url).query.split("&"))
    for number in range(count):
        answer = client.upload(query_change(url, number, flipped), jpeg)
        assert answer.status == 403 and answer.code in ("URL_SIGNATURE_INVALID", "URL_EXPIRED"), answer
    refused(client.upload(query_change(url, -1, flipped), jpeg), 403, "URL_SIGNATURE_INVALID")
    refused(client.upload(url.split("?")[0], jpeg), 403, "URL_SIGNATURE_INVALID")


def test_a_signature_is_for_one_key_and_one_method(client, jpeg):
    files = client.create(["a.jpg", "b.jpg"]).data["files"]
    one, two = (urllib.parse.urlsplit(file["uploadUrl"]) for file in files)
    mixed = urllib.parse.urlunsplit(two._replace(query=one.query))
    refused(client.upload(mixed, jpeg), 403, "URL_SIGNATURE_INVALID")
    for method in ("GET", "DELETE", "POST"):
        answer = client.request(method, files[0]["uploadUrl"], key=False)
        assert answer.status in (403, 405), answer


def test_an_expired_url_is_403_with_both_times(client, stack, jpeg):
    with stack.configured("test", "clock_offset_s", "-7200"):
        url = client.create().data["files"][0]["uploadUrl"]
    answer = client.upload(url, jpeg)
    refused(answer, 403, "URL_EXPIRED")
    times = [datetime.datetime.strptime(answer.json[name], "%Y-%m-%dT%H:%M:%S.%fZ") for name in ("expiredAt", "serverTime")]
    assert times[0] < times[1]


@pytest.mark.parametrize("data", [b"GIF89a" + b"\0" * 100, b"%PDF-1.7\n", b"<html></html>", b"\0" * 64, b"BM" + b"\0" * 100,
                                  b"RIFF\0\0\0\0WAVEfmt ", b"x", b""],
                         ids=["gif", "pdf", "html", "zeros", "bmp", "wave", "one-byte", "empty"])
def test_anything_but_the_three_formats_is_415_and_not_stored(client, stack, slot, data):
    before = stored_files(stack)
    refused(client.upload(slot[1], data), 415, "UNSUPPORTED_MEDIA_TYPE")
    assert stored_files(stack) - before == set()
    assert client.confirm(slot[0]).code == "ORDER_FILE_NOT_UPLOADED"


def test_content_range_is_400(client, slot, jpeg):
    answer = client.upload(slot[1], jpeg, Content_Range=f"bytes 0-{len(jpeg) - 1}/{len(jpeg)}")
    assert answer.status == 400, answer


def test_a_wrong_digest_is_400_and_a_right_one_is_accepted(client, slot, jpeg):
    md5 = base64.b64encode(hashlib.md5(jpeg).digest()).decode()
    sha = "sha-256=:" + base64.b64encode(hashlib.sha256(jpeg).digest()).decode() + ":"
    wrong = base64.b64encode(hashlib.md5(jpeg + b"x").digest()).decode()
    wrong_sha = "sha-256=:" + base64.b64encode(hashlib.sha256(b"x").digest()).decode() + ":"
    assert client.upload(slot[1], jpeg, Content_MD5=wrong).status == 400
    assert client.upload(slot[1], jpeg, Content_Digest=wrong_sha).status == 400
    assert client.confirm(slot[0]).code == "ORDER_FILE_NOT_UPLOADED"
    assert client.upload(slot[1], jpeg, Content_MD5=md5).status == 201
    assert client.upload(slot[1], jpeg, Content_Digest=sha).status == 200


def raw_put(stack, url, headers, body, seconds=90):
    """Sends a PUT whose headers may be false; returns the status, or None if the connection was closed."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=stack.tls, timeout=seconds)
    connection.putrequest("PUT", f"{parts.path}?{parts.query}")
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    try:
        connection.send(body)
        return connection
    except OSError:
        return connection


def test_too_large_is_413_immediately_with_both_sizes(client, stack, slot):
    before = stored_files(stack)
    connection = raw_put(stack, slot[1], {"Content-Length": str((50 << 20) + 1)}, b"\xff\xd8\xff")
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    assert answer.status == 413, "and not 408, as a body that never comes is given up: " + body
    assert "PAYLOAD_TOO_LARGE" in body and "52428800" in body and "52428801" in body
    assert stored_files(stack) - before == set()


def test_a_broken_upload_leaves_nothing_and_the_earlier_one_untouched(client, stack, slot, jpeg):
    order, url = slot
    assert client.upload(url, jpeg).status == 201
    before = {path for path in stored_files(stack) if order in path}
    connection = raw_put(stack, url, {"Content-Length": str(len(jpeg) * 2)}, jpeg)
    connection.close()
    time.sleep(0.5)
    assert {path for path in stored_files(stack) if order in path} == before
    assert client.confirm(order).status == 200
    assert client.wait(order)["status"] == "complete"


def test_a_chunked_upload_lands_whole(client, stack, slot, jpeg):
    parts = urllib.parse.urlsplit(slot[1])
    connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=stack.tls, timeout=90)
    connection.request("PUT", f"{parts.path}?{parts.query}", body=iter([jpeg[:1000], jpeg[1000:]]),
                       headers={"Transfer-Encoding": "chunked"}, encode_chunked=True)
    answer = connection.getresponse()
    assert answer.status in (201, 411), answer.read()
    connection.close()


def test_after_the_start_the_url_answers_409(client, slot, jpeg):
    order, url = slot
    client.upload(url, jpeg)
    client.confirm(order)
    refused(client.upload(url, jpeg), 409, "ORDER_ALREADY_STARTED")
    client.wait(order)
    refused(client.upload(url, jpeg), 409, "ORDER_ALREADY_STARTED")


def test_an_upload_in_progress_at_the_confirmation_is_409(client, stack, slot, jpeg):
    order, url = slot
    client.upload(url, jpeg)
    other = pictures.jpeg(300, 300, seed=9)
    connection = raw_put(stack, url, {"Content-Length": str(len(other))}, other[:-10])
    time.sleep(0.3)
    assert client.confirm(order).status == 200
    connection.send(other[-10:])
    answer = connection.getresponse()
    assert answer.status == 409, answer.read()
    connection.close()
    client.wait(order)
    assert pictures.decode(client.download(order).body).size == pictures.decode(jpeg).size


def test_cors_headers_are_only_for_listed_origins(client, slot, jpeg):
    _, url = slot
    for origin, allowed in (("https://app.example", True), ("https://evil.example", False)):
        preflight = client.request("OPTIONS", url, key=False, headers={
            "Origin": origin, "Access-Control-Request-Method": "PUT", "Access-Control-Request-Headers": "content-type"})
        assert (preflight.headers.get("Access-Control-Allow-Origin") == origin) == allowed, preflight.headers
        if allowed:
            assert preflight.status in (200, 204)
            assert "PUT" in preflight.headers["Access-Control-Allow-Methods"]
        put = client.upload(url, jpeg, Origin=origin)
        assert put.status in (200, 201)
        assert (put.headers.get("Access-Control-Allow-Origin") == origin) == allowed
        if allowed:
            assert "etag" in put.headers["Access-Control-Expose-Headers"].lower()


@pytest.fixture(scope="module")
def done(client, jpeg):
    """A complete order and the response of its download."""
    order = client.order_whole([("größe \"1\".jpg", jpeg)])
    assert order["status"] == "complete", order
    return order, client.get(f"{ORDERS}/{order['orderId']}/download").data


def test_a_result_downloads_with_type_name_etag(client, done):
    _, data = done
    answer = client.request("GET", data["downloadUrl"], key=False)
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "image/jpeg" == data["contentType"]
    assert answer.headers["ETag"]
    assert urllib.parse.quote("größe", safe="") in answer.headers["Content-Disposition"]
    assert "filename*=UTF-8''" in answer.headers["Content-Disposition"]
    assert int(answer.headers["Content-Length"]) == len(answer.body)


def test_ranges_head_and_conditions(client, done):
    url = done[1]["downloadUrl"]
    whole = client.request("GET", url, key=False)
    part = client.request("GET", url, key=False, headers={"Range": "bytes=10-19"})
    assert part.status == 206 and part.body == whole.body[10:20]
    assert part.headers["Content-Range"] == f"bytes 10-19/{len(whole.body)}"
    head = client.request("HEAD", url, key=False)
    assert head.status == 200 and head.body == b"" and head.headers["Content-Length"] == str(len(whole.body))
    same = client.request("GET", url, key=False, headers={"If-None-Match": whole.headers["ETag"]})
    assert same.status == 304
    beyond = client.request("GET", url, key=False, headers={"Range": "bytes=99999999-"})
    assert beyond.status == 416


def test_a_forged_download_is_403(client, done):
    url = done[1]["downloadUrl"]
    refused(client.request("GET", query_change(url, -1, flipped), key=False), 403, "URL_SIGNATURE_INVALID")
    refused(client.request("GET", url.split("?")[0], key=False), 403, "URL_SIGNATURE_INVALID")
    assert client.upload(url, b"\xff\xd8\xff").status in (403, 405)


def test_no_signature_reaches_a_log(client, stack, done, slot, jpeg):
    client.upload(slot[1], jpeg)
    secrets = [urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query)[-1][1] for url in (slot[1], done[1]["downloadUrl"])]
    folder = stack.environment["IMGWARD_LOG"]
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            text = file.read()
        assert not any(secret in text for secret in secrets), name


def test_the_internal_path_of_the_store_is_not_reachable(client, stack):
    for path in ("/_store/", "/_files/", "/store/", "/files/../signing.keys", "/internal/"):
        assert client.request("GET", path).status in (400, 403, 404, 405)


def test_two_signing_keys_are_valid_together(client, stack, slot, jpeg):
    """After a rotation, URLs of the old key still work, and new URLs use the new key."""
    path = re.search(r"signing_keys_file = (.*)", open(stack.environment["IMGWARD_CONFIG"], encoding="utf-8").read())[1]
    stack.ctl("secret", "signing", "--rotate", "--after", "0", path)
    stack.reload()
    assert client.upload(slot[1], jpeg).status == 201
    fresh = client.create().data["files"][0]["uploadUrl"]
    assert client.upload(fresh, jpeg).status == 201
