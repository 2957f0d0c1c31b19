"""Contract section 8: error messages name the problem and the remedy. Each row is a mistake that clients make."""
import json
import re
import urllib.parse
import uuid

import pytest

import pictures
import wire
from client import ORDERS
from remotes import Remotes
from test_4_uploads import MAX_BYTES, Signer

JSON = {"Content-Type": "application/json"}


def assert_error(answer, status, code, *words):
    """Checks an error response; the message must contain these words."""
    assert answer.status == status and answer.code == code, answer
    message = answer.json["message"]
    assert message.endswith(".") and all(word in message for word in words), message
    return message


# ---- Keys

ADVICE = 'Send "Authorization: Bearer iw_live_..." with your API key: iw_live_ and 43 letters and digits, 51 characters.'


def test_without_the_header_the_message_shows_it(anonymous):
    assert_error(anonymous.get(ORDERS), 401, "AUTH_NOT_AUTHENTICATED", "no Authorization header", ADVICE)
    assert_error(anonymous.get(ORDERS, headers={"Authorization": ""}), 401, "AUTH_NOT_AUTHENTICATED", ADVICE)


@pytest.mark.parametrize("make, words", [
    (lambda key: "Bearer " + key[:49], "the key has 49 characters"),
    (lambda key: "Bearer " + key + "=", "the key has 52 characters"),
    (lambda key: "Bearer $KEY", "the key has 4 characters"),
    (lambda key: "Bearer " + key + "\\n", "the key has 53 characters"),
    (lambda key: "Bearer " + "é" * 51, "does not begin with iw_live_"),
    (lambda key: "Bearer sk_live_" + key[8:], "does not begin with iw_live_"),
    (lambda key: "Bearer " + key[:50] + "-", "neither a letter nor a digit"),
    (lambda key: f'Bearer "{key}"', "in quotation marks or brackets"),
    (lambda key: f"Bearer '{key}'", "in quotation marks or brackets"),
    (lambda key: f"Bearer <{key}>", "in quotation marks or brackets"),
    (lambda key: f"Bearer {key},{key}", "two keys"),
    (lambda key: f"Bearer {key} {key}", "two keys"),
    (lambda key: f"Bearer {key} x", "spaces or control characters"),
    (lambda key: f"Bearer {key}\t", "spaces or control characters"),
    (lambda key: f"Bearer Bearer {key}", "the word Bearer occurs twice"),
    (lambda key: "Bearer", "no key follows the word Bearer"),
    (lambda key: f"Bearer:{key}", "a space is needed between the word Bearer and the key"),
    (lambda key: key, "the word Bearer is missing before the key"),
    (lambda key: "Basic dXNlcjpwYXNzd29yZA==", "its scheme is Basic"),
    (lambda key: f"Token {key}", "its scheme is not Bearer")], ids=range(20))
def test_a_header_without_a_key_is_explained_and_never_quoted(client, anonymous, make, words):
    header = make(client.key)
    answer = anonymous.get(ORDERS, headers={"Authorization": header.encode()})
    message = assert_error(answer, 401, "AUTH_TOKEN_INVALID_FORMAT", words, ADVICE)
    assert client.key[8:30] not in message and "dXNlcj" not in message and answer.headers["WWW-Authenticate"] == "Bearer"


def test_the_length_in_the_advice_is_that_of_a_key(client):
    assert len(client.key) == 51 and len(client.key[len("iw_live_"):]) == 43


@pytest.mark.parametrize("header", ["bearer {}", "BEARER {}", "Bearer   {}"])
def test_the_scheme_has_any_case_and_blanks(client, anonymous, header):
    assert anonymous.get(ORDERS, headers={"Authorization": header.format(client.key)}).status == 200


def test_a_carriage_return_after_the_key_is_ignored(client, stack):
    """The key was read from a file with Windows line ends."""
    request = f"GET {ORDERS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: Bearer {client.key}\r\r\n\r\n"
    assert wire.statuses(wire.once(stack, request)) == [200]


def test_two_headers_are_refused_with_a_sentence_on_it(client, stack):
    line = f"Authorization: Bearer {client.key}\r\n"
    request = f"GET {ORDERS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{line}{line}\r\n"
    data = wire.once(stack, request)
    assert wire.statuses(data) == [400] and b"duplicate headers" in data


def test_unknown_revoked_and_expired_keys_have_different_errors(client, stack, anonymous):
    def ask(key):
        return anonymous.get(ORDERS, headers={"Authorization": "Bearer " + key})
    assert_error(ask("iw_live_" + "a" * 43), 401, "AUTH_TOKEN_INVALID", "No account has this API key")
    revoked, expired = stack.key_new(client.account), stack.key_new(client.account)
    stack.sql(f"UPDATE api_keys SET revoked_at = '2026-03-12 10:00:00.125' WHERE prefix = '{revoked[:16]}'")
    stack.sql(f"UPDATE api_keys SET expires_at = '2026-03-13 11:30:00.000' WHERE prefix = '{expired[:16]}'")
    assert_error(ask(revoked), 401, "AUTH_TOKEN_INVALID", "was revoked at 2026-03-12T10:00:00.125Z")
    assert_error(ask(expired), 401, "AUTH_TOKEN_EXPIRED", "expired at 2026-03-13T11:30:00.000Z")


# ---- Presigned URLs

@pytest.fixture(scope="module")
def pair(client):
    """The URLs of a pending order with two files of the same name, and the order's data."""
    data = client.create(["a.jpg", "a.jpg"]).data
    return data["files"][0]["uploadUrl"], data


@pytest.fixture(scope="module")
def whole(client, jpeg):
    return client.order_whole([("a.jpg", jpeg)])["orderId"]


@pytest.fixture(scope="module")
def downloads(client, whole):
    """URLs of a result and of a thumbnail."""
    return (client.get(f"{ORDERS}/{whole}/download").data["downloadUrl"], client.detail(whole).data["thumbnailImageUrl"])


FORM = (b"--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.jpg\"\r\n\r\n" + bytes(3 << 20) + b"\r\n--x--\r\n")


@pytest.mark.parametrize("body", [None, b"", FORM, "chunked"], ids=["none", "empty", "form", "chunked"])
@pytest.mark.parametrize("method", ["POST", "GET", "HEAD", "PATCH", "DELETE", "PROPFIND"])
def test_another_method_on_an_upload_url_is_405_and_names_put(anonymous, pair, method, body):
    headers = {"Content-Type": "multipart/form-data; boundary=x"} if body else {}
    data = iter([FORM[:70000], FORM[70000:]]) if body == "chunked" else body
    answer = anonymous.request(method, pair[0], data, headers=headers, key=False)
    assert answer.status == 405 and answer.headers["Allow"] == "PUT, OPTIONS", answer
    if method != "HEAD":
        assert_error(answer, 405, "METHOD_NOT_ALLOWED", "This is an upload URL", "with PUT", f"the request used {method}.")


@pytest.mark.parametrize("method", ["PUT", "POST", "PATCH", "DELETE"])
@pytest.mark.parametrize("which", [0, 1], ids=["result", "thumbnail"])
def test_another_method_on_a_download_url_is_405_and_names_get(anonymous, downloads, jpeg, method, which):
    for body in (jpeg, bytes(3 << 20), None):
        answer = anonymous.request(method, downloads[which], body, key=False)
        assert_error(answer, 405, "METHOD_NOT_ALLOWED", "This is a download URL", "with GET", f"the request used {method}.")
        assert answer.headers["Allow"] == "GET, HEAD, OPTIONS"


def test_a_preflight_names_the_same_methods(anonymous, pair, downloads):
    for url, methods in ((pair[0], "PUT, OPTIONS"), (downloads[0], "GET, HEAD, OPTIONS")):
        answer = anonymous.request("OPTIONS", url, key=False)
        assert answer.status == 204 and answer.headers["Allow"] == methods


def test_a_browser_may_read_why_its_method_was_refused(stack, anonymous, pair):
    with stack.configured("store", "cors_origins", "https://app.example"):
        answer = anonymous.request("POST", pair[0], FORM, headers={"Origin": "https://app.example"}, key=False)
    assert answer.status == 405 and answer.headers["Access-Control-Allow-Origin"] == "https://app.example"


@pytest.mark.parametrize("change, words", [
    (lambda url: url.split("?")[0], "the query after the question mark is missing"),
    (lambda url: url.split("&")[0], "the parameters m, k, s are missing; quote the URL in a shell"),
    (lambda url: url.split("&s=")[0], "the parameters s are missing"),
    (lambda url: url[:-4], "its signature has 39 characters in place of 43"),
    (lambda url: url.replace("&", "&amp;"), "copied out of HTML; write & for each &amp;"),
    (lambda url: url.replace("&", "%26"), "percent-encoded again"),
    (lambda url: url + "&utm_source=mail", "parameters were added to it"),
    (lambda url: url.replace("m=52428800", "m=99999999"), "it was changed"),
    (lambda url: re.sub("k=[a-z0-9]+", "k=other", url), "the key that signed it is no longer in use"),
    (lambda url: url.replace("/in/", "/in/0"), "its path was changed")], ids=range(10))
def test_an_altered_upload_url_is_explained(anonymous, pair, jpeg, change, words):
    assert_error(anonymous.upload(change(pair[0]), jpeg), 403, "URL_SIGNATURE_INVALID", words, "exactly as the service returned it")


def test_an_altered_download_url_is_explained(anonymous, downloads, pair):
    url = downloads[0]
    for change, words in ((url.split("&")[0], "the parameters k, s are missing"), (url.replace("&", "&amp;"), "copied out of HTML"),
                          (url + "&m=1", "parameters were added"), (url[:-2], "41 characters"), (url.replace("/out/", "/out/x"), "its path was changed")):
        assert_error(anonymous.request("GET", change, key=False), 403, "URL_SIGNATURE_INVALID", words)


def test_an_expired_url_names_the_endpoint_of_a_new_one(stack, client, anonymous, jpeg, whole):
    signer, pending = Signer(stack), client.create(["a.jpg"]).data["orderId"]
    answer = anonymous.upload(signer.put(f"in/{pending}/1", expires=1700000000), jpeg)
    assert_error(answer, 403, "URL_EXPIRED", "2023-11-14T22:13:20.000Z", f"POST {ORDERS}/{pending}/refresh-urls")
    assert client.post(f"{ORDERS}/{pending}/refresh-urls").status == 200
    for key, words in ((f"out/{whole}/1", f"GET {ORDERS}/{whole}/download "), (f"zip/{whole}", f"GET {ORDERS}/{whole}/download "),
                       (f"thumb/{whole}", f"GET {ORDERS}/{whole} returns")):
        assert_error(anonymous.request("GET", signer.get(key, expires=1700000000), key=False), 403, "URL_EXPIRED", words)


# ---- Bodies

def posted(client, body, **headers):
    return client.post(f"{ORDERS}/anti-ai", body, headers={**JSON, **headers})


def creation(**fields):
    return json.dumps({"idempotencyKey": uuid.uuid4().hex, "files": [{"fileName": "a.jpg"}], **fields})


@pytest.mark.parametrize("body, words", [
    (b"", "The body is empty"), (b" \r\n", "The body is empty"),
    (b"idempotencyKey=1&files%5B0%5D=a.jpg", "a form (name=value)"), (b"files[0][fileName]=a.jpg", "a form (name=value)"),
    (b"--x\r\nContent-Disposition: form-data\r\n", "multipart/form-data"), (b"<order><file/></order>", "XML or HTML"),
    (b"\x1f\x8b\x08\0", "compressed with gzip"), ('{"a":1}'.encode("utf-16"), "UTF-16"), ('{"a":1}'.encode("utf-16-be"), "UTF-16"),
    ('{"a":1}'.encode("utf-16-le"), "UTF-16"), ('{"a":1}'.encode("utf-32"), "UTF-32"), ('{"a":1}'.encode("utf-32-be"), "UTF-32"),
    (b"{'a': 1}", "line 1, column"), (b'{"a": 1,}', "line 1, column"), (b"[1]", "is an array; it must be a JSON object")], ids=range(15))
def test_the_format_of_a_body_that_is_not_json_is_named(client, body, words):
    answer = posted(client, body)
    assert_error(answer, 400, "VALIDATION_FAILED", words)
    assert answer.fields() == ["body"]


@pytest.mark.parametrize("method, path", [("POST", "/anti-ai"), ("POST", "/anti-ai/with-urls"), ("POST", "/anti-ai/confirm"), ("POST", "/wtr-embed"),
                                          ("POST", "/wtr-extract"), ("POST", "/webhooks")])
def test_an_empty_body_is_called_empty_everywhere(client, method, path):
    assert_error(client.request(method, ORDERS + path, b"", headers=JSON), 400, "VALIDATION_FAILED", "The body is empty; send a JSON object.")
    assert_error(client.request(method, ORDERS + path, None, headers=JSON), 400, "VALIDATION_FAILED", "The body is empty; send a JSON object.")


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "application/xml"])
def test_another_content_type_is_named_with_the_right_one(client, kind):
    answer = client.post(f"{ORDERS}/anti-ai", creation(), headers={"Content-Type": kind})
    assert_error(answer, 415, "UNSUPPORTED_MEDIA_TYPE", kind, "Content-Type: application/json")


def test_a_byte_order_mark_is_skipped(client):
    body = creation()
    answer, again = posted(client, b"\xef\xbb\xbf" + body.encode()), posted(client, body)
    assert answer.status == 201 and again.status == 200 and again.data["orderId"] == answer.data["orderId"]
    assert_error(posted(client, b"\xef\xbb\xbf"), 400, "VALIDATION_FAILED", "The body is empty")
    assert_error(posted(client, b"\xef\xbb\xbf{oops}"), 400, "VALIDATION_FAILED", "line 1, column")


def test_an_empty_array_counts_as_an_empty_object(client):
    """json_encode of PHP writes an empty object as an empty array. A required object has members, so it is never one."""
    key = uuid.uuid4().hex
    first = posted(client, creation(idempotencyKey=key, options=[], mode=[]))
    assert first.status == 201, first
    again = posted(client, creation(idempotencyKey=key, options={}, mode={}))
    assert again.status == 200 and again.data["orderId"] == first.data["orderId"], again
    assert posted(client, b"[]").fields() == ["idempotencyKey", "files"]
    original = client.post(f"{ORDERS}/wtr-extract", {"idempotencyKey": uuid.uuid4().hex,
                                                     "file": {"fileName": "a.jpg", "includeOriginal": True, "originalFile": []}})
    assert original.fields() == ["file.originalFile.fileName"]
    webhook = client.post(f"{ORDERS}/webhooks", {"url": "https://receiver.example/"}).data["id"]
    assert client.request("PUT", f"{ORDERS}/webhooks/{webhook}", b"[]", headers=JSON).status == 200
    for wrong in ([1], [[]], "", 0, False):
        assert posted(client, creation(options=wrong)).fields() == ["options"], wrong


@pytest.mark.parametrize("fields, field, words", [
    ({"files": {}}, "files", "is an object; it must be an array"), ({"orderName": 5}, "orderName", "is a number; it must be a string"),
    ({"mode": {"zeroCopy": "true"}}, "mode.zeroCopy", "is a string; it must be true or false, without quotation marks"),
    ({"options": "high"}, "options", "is a string; it must be an object"), ({"files": ["a.jpg"]}, "files[0]", "is a string; it must be an object"),
    ({"orderName": "x" * 65}, "orderName", "65 characters; 1 to 64"), ({"files": []}, "files", "0 items; 1 to 100"),
    ({"files": [{"fileName": "C:\\a.jpg"}]}, "files[0].fileName", "without folders")], ids=range(8))
def test_a_bad_field_has_its_value_and_the_allowed_one(client, fields, field, words):
    answer = posted(client, creation(**fields))
    assert_error(answer, 400, "VALIDATION_FAILED", field)
    assert answer.fields() == [field] and words in answer.json["details"][0]["message"], answer


# ---- Uploads

@pytest.mark.parametrize("body, words", [
    (b"", "it has 0 bytes"), (FORM, "multipart/form-data"), (b"/9j/4AAQSkZJRgABAQ", "Base64"), (b"iVBORw0KGgoAAAANSUhEUg", "Base64"),
    (b"data:image/png;base64,iVBORw0KGgo", "data URL"), (b"[object File]", "[object"), ("\ufffd\ufffd\ufffd\x10JFIF and so on".encode(), "read it as text"),
    (b"\x89PNG\n\x1a\n\0\0\0\rIHDR", "text mode"), (b'{"file": "a.jpg"}', "JSON"), (b"<svg xmlns='x'></svg>", "SVG"),
    (b"%PDF-1.7 and so on", "PDF"), (b"RIFF\1\2\3\4WAVEfmt and so on", f"not a {pictures.titles(pictures.CHANGED)} picture")], ids=range(12))
def test_the_format_of_an_upload_that_is_no_image_is_named(anonymous, pair, body, words):
    assert_error(anonymous.upload(pair[0], body), 415, "UNSUPPORTED_MEDIA_TYPE", words)


def test_an_upload_without_a_body_is_called_empty(stack, pair):
    """curl -X PUT sends neither Content-Length nor a chunked body."""
    parts = urllib.parse.urlsplit(pair[0])
    for header in ("", "Content-Length: 0\r\n"):
        data = wire.once(stack, f"PUT {parts.path}?{parts.query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n")
        assert wire.statuses(data) == [415] and b"it has 0 bytes" in data, data


def webp_of(size):
    return pictures.webp(*size), pictures.encode(pictures.scene(*size), "WEBP", lossless=True)


@pytest.mark.parametrize("make", [lambda: pictures.png(300, 200), lambda: webp_of((300, 200))[0], lambda: webp_of((300, 200))[1]],
                         ids=["png", "webp", "webp-lossless"])
def test_a_file_that_is_surely_cut_is_refused_at_upload_by_its_name(client, anonymous, make):
    data, order = make(), client.create(["holiday.png"]).data
    url = order["files"][0]["uploadUrl"]
    for size in (len(data) // 2, len(data) - 40, 50):
        assert_error(anonymous.upload(url, data[:size]), 400, "VALIDATION_FAILED", "holiday.png", f"cut off after {size} bytes", "Upload it again.")
    assert client.detail(order["orderId"]).data["files"][0]["status"] == "pending"
    assert anonymous.upload(url, data).status == 201


@pytest.mark.parametrize("make", [lambda: pictures.png(300, 200), lambda: webp_of((300, 200))[0]], ids=["png", "webp"])
def test_a_cut_suspect_of_an_extraction_is_taken_but_not_its_original(client, anonymous, make):
    data = make()
    created = client.post(f"{ORDERS}/wtr-extract", {
        "idempotencyKey": uuid.uuid4().hex,
        "file": {"fileName": "found.png", "includeOriginal": True, "originalFile": {"fileName": "whole.png"}}})
    place, half = created.data["file"], data[:len(data) // 2]
    assert anonymous.upload(place["uploadUrl"], half).status == 201
    assert_error(anonymous.upload(place["originalFile"]["uploadUrl"], half), 400, "VALIDATION_FAILED", "whole.png", "cut off after")


def test_a_file_that_only_lacks_its_end_marker_is_decoded(anonymous, pair):
    png, jpeg = pictures.png(300, 200), pictures.jpeg(300, 200)
    for data in (png[:-12], png[:-16], png[:-20], jpeg[:-2], jpeg[:-200], jpeg[:400]):
        assert anonymous.upload(pair[0], data).status in (200, 201), len(data)


def test_a_truncated_source_fails_with_the_message_of_an_upload(client):
    remotes, png = Remotes(), pictures.png(300, 200)
    remotes.gives["/cut.png"] = png[:len(png) // 2]
    try:
        answer = client.create([{"fileName": "a.png", "imageUrl": remotes.url("/cut.png")}], kind="anti-ai/with-urls")
        order = client.wait(answer.data["orderId"])
    finally:
        remotes.close()
    assert order["status"] == "failed"
    assert order["errors"].startswith(f"a.png: IMAGE_CORRUPT: The file is cut off after {len(png) // 2} bytes"), order


# ---- Names and ids

def test_files_of_one_name_are_distinguished(client, jpeg):
    created = client.create(["a.jpg", "a.jpg", "b.jpg"]).data
    ids = [file["fileId"] for file in created["files"]]
    answer = client.confirm(created["orderId"])
    assert_error(answer, 400, "ORDER_FILE_NOT_UPLOADED", "3 of 3 files", "confirm again")
    told = {detail["field"]: detail["message"] for detail in answer.json["details"]}
    assert told["files[0].fileName"].startswith(f"a.jpg (position 1, fileId {ids[0]}) has not been uploaded")
    assert told["files[1].fileName"].startswith(f"a.jpg (position 2, fileId {ids[1]}) has not been uploaded")
    assert told["files[2].fileName"].startswith("b.jpg has not been uploaded")
    for file, data in zip(created["files"], (jpeg, jpeg[:900], jpeg[:900])):
        assert client.upload(file["uploadUrl"], data).status == 201
    client.confirm(created["orderId"])
    errors = client.wait(created["orderId"])["errors"]
    lines = errors.split("\n")
    assert lines[0].startswith(f"a.jpg (position 2, fileId {ids[1]}): IMAGE_CORRUPT: ") and lines[1].startswith("b.jpg: IMAGE_CORRUPT: ")


WORDS = ["abc", "0", "007", "9223372036854775808", "1" * 40, "1.5", "-1", "null", "undefined", "%7BorderId%7D"]


@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_is_the_id_of_nothing_is_404(client, word):
    for method, path in (("GET", f"/{word}"), ("GET", f"/{word}/download"), ("POST", f"/{word}/refresh-urls")):
        assert_error(client.request(method, ORDERS + path), 404, "ORDER_NOT_FOUND", "no order with this id")
    assert_error(client.confirm(urllib.parse.unquote(word)), 404, "ORDER_NOT_FOUND", "no order with this id")
    for method, path in (("GET", ""), ("DELETE", ""), ("PUT", ""), ("POST", "/test"), ("POST", "/rotate-secret"), ("GET", "/events"), ("POST", "/events/1/retry")):
        answer = client.request(method, f"{ORDERS}/webhooks/{word}{path}", {} if method == "PUT" else None)
        assert_error(answer, 404, "WEBHOOK_NOT_FOUND", "no webhook with this id")


@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_is_the_id_of_no_event_is_404(client, webhook, word):
    assert_error(client.post(f"{ORDERS}/webhooks/{webhook}/events/{word}/retry"), 404, "WEBHOOK_EVENT_NOT_FOUND", "no event with this id")


@pytest.fixture(scope="module")
def webhook(client):
    return client.post(f"{ORDERS}/webhooks", {"url": "https://receiver.example/no-event"}).data["id"]


def test_an_order_id_of_another_type_or_none_is_400(client):
    for value in (5, None, [], ""):
        answer = client.post(f"{ORDERS}/anti-ai/confirm", {"idempotencyKey": "x", "orderId": value})
        assert answer.status == 400 and answer.fields() == ["orderId"], answer


@pytest.mark.parametrize("path, near", [("/123/downloads", "/{orderId}/download"), ("/123/refresh", "/{orderId}/refresh-urls"),
                                        ("/anti-ai/confirmation", "/anti-ai/confirm"), ("/stats/rec", "/stats/recent"), ("/webhooks/1/event", "/webhooks/{webhookId}/events")])
def test_an_unknown_path_is_404_with_the_nearest_one(client, path, near):
    assert_error(client.get(ORDERS + path), 404, "RESOURCE_NOT_FOUND", f"the most similar path is {ORDERS}{near}.")


def test_an_unknown_path_that_is_near_nothing_names_the_list(client, anonymous):
    assert_error(client.get(f"{ORDERS}/123/xyz"), 404, "RESOURCE_NOT_FOUND", "/api/v2/docs")
    assert_error(anonymous.get("/api/v1/orders"), 404, "RESOURCE_NOT_FOUND", "/api/v2/orders", "/api/v2/docs")


# ---- States

def test_an_error_of_an_orders_status_has_a_remedy(client, whole):
    pending = client.create(["a.jpg"]).data["orderId"]
    assert_error(client.get(f"{ORDERS}/{pending}/download"), 400, "ORDER_NOT_COMPLETED", "pending", "confirm it first")
    assert_error(client.post(f"{ORDERS}/{whole}/refresh-urls"), 400, "ORDER_NOT_PENDING", "complete", "takes no more files")
    extract = client.post(f"{ORDERS}/wtr-extract", {"idempotencyKey": uuid.uuid4().hex, "file": {"fileName": "a.jpg"}}).data["orderId"]
    assert_error(client.get(f"{ORDERS}/{extract}/download"), 400, "ORDER_TYPE_CANT_DOWNLOAD", "watermarkText")


def test_the_rate_limit_names_the_plan_and_the_wait(stack):
    client = stack.account_new("free", 2)
    while (answer := client.list()).status == 200:
        pass
    assert_error(answer, 429, "RATE_LIMIT_EXCEEDED", "2 requests a minute", f"in {answer.headers['Retry-After']} s")


# ---- Responses of nginx

def test_errors_of_nginx_have_a_remedy(stack, client, anonymous):
    assert_error(client.request("TRACE", ORDERS), 405, "METHOD_NOT_ALLOWED", "the request used TRACE.")
    assert_error(anonymous.request("POST", "/api/v2/docs", b"x"), 405, "METHOD_NOT_ALLOWED", "GET, HEAD", "the request used POST.")
    assert_error(client.post(f"{ORDERS}/anti-ai", b"x" * (2 << 20), headers=JSON), 413, "PAYLOAD_TOO_LARGE", str(2 << 20), str(1 << 20))
    assert_error(client.get(ORDERS + "?keyword=" + "x" * 9000), 414, "VALIDATION_FAILED", "8 KiB")
    assert_error(client.get(ORDERS, headers={"X-Long": "x" * 9000}), 431, "VALIDATION_FAILED", "8 KiB")


def test_a_range_that_the_file_does_not_have_says_so(anonymous, downloads):
    assert_error(anonymous.request("GET", downloads[0], headers={"Range": "bytes=999999999-"}, key=False), 416, "VALIDATION_FAILED", "Range header")


def test_a_stopped_pool_says_when_to_come_again(stack, client):
    stack.part("stop", "api")
    try:
        answer = client.list()
    finally:
        stack.part("start", "api")
    assert_error(answer, answer.status, "SERVICE_UNAVAILABLE", "2 s", "idempotencyKey")
    assert answer.status in (502, 503) and answer.headers["Retry-After"] == "2"


def test_a_large_upload_names_both_sizes(stack, anonymous, client):
    parts = urllib.parse.urlsplit(client.create().data["files"][0]["uploadUrl"])
    data = wire.once(stack, f"PUT {parts.path}?{parts.query} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {MAX_BYTES + 1}\r\n\r\n")
    assert wire.statuses(data) == [413] and str(MAX_BYTES + 1).encode() in data and str(MAX_BYTES).encode() in data
