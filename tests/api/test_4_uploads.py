"""Contract section 4, with URLs that this file signs with the stack's key.

Orders are inserted into the database, so that only uploading and downloading are tested.
"""
import base64
import datetime
import gzip
import hashlib
import hmac
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.parse
import uuid

import pytest

import pictures
import wire
from client import repeated

MAX_BYTES = 50 << 20


def store_files(stack, order=None):
    """Returns all files of the store, or those of an order."""
    return {name for name in every_file(stack) if order is None or f"/{order.id}." in name}


def every_file(stack):
    return {os.path.relpath(os.path.join(folder, name), stack.store)
            for folder, _, names in os.walk(stack.store) for name in names}


def signing_key(stack):
    with open(stack.environment["IMGWARD_CONFIG"], encoding="utf-8") as file:
        path = re.search(r"signing_keys_file = (.*)", file.read())[1]
    with open(path, encoding="utf-8") as file:
        name, secret = file.readline().strip().split(":")[:2]
    return name, bytes.fromhex(secret)


class Signer:
    """Signs as presign.h describes; each part can be replaced by a wrong value."""

    def __init__(self, stack):
        self.stack = stack

    def url(self, method, key, expires=None, limit=None, signed=None, path=None, order=None):
        name, secret = signing_key(self.stack)
        expires = int(time.time()) + 600 if expires is None else expires
        limit = (MAX_BYTES if method == "PUT" else 0) if limit is None else limit
        told = {"method": method, "key": key, "e": expires, "m": limit, "k": name, **(signed or {})}
        text = "imgward-url-1\n{method}\n{key}\n{e}\n{m}\n{k}".format(**told)
        digest = hmac.new(secret, text.encode(), hashlib.sha256).digest()
        pairs = [("e", expires), ("k", name), ("s", base64.urlsafe_b64encode(digest).decode().rstrip("="))]
        if method == "PUT":
            pairs.insert(1, ("m", limit))
        if order:
            pairs.sort(key=lambda pair: order.index(pair[0]))
        return f"{self.stack.url}/files/{path or key}?" + "&".join(f"{n}={v}" for n, v in pairs)

    def put(self, key, **more):
        return self.url("PUT", key, **more)

    def get(self, key, **more):
        return self.url("GET", key, **more)


class Order:
    """A pending order inserted into the database."""

    def __init__(self, stack, account, files=1, name="an order", **columns):
        self.stack = stack
        self.id = (int(time.time() * 1000) - 1704067200000) << 22 | uuid.uuid4().int & 0x3FFFFF
        more = "".join(f", {column} = {value}" for column, value in columns.items() if column != "status")
        status = columns.get("status", "'pending'")
        stack.sql(f"INSERT INTO orders SET id = {self.id}, account_id = {account}, type = 'antiAi', status = {status},"
                  f" name = {text(name)}, idempotency_key = '{uuid.uuid4().hex}', body_digest = REPEAT('x', 32),"
                  f" file_count = {files}, created_at = UTC_TIMESTAMP(3), updated_at = UTC_TIMESTAMP(3){more}")
        self.files = []
        for position in range(1, files + 1):
            self.files.append(int(stack.sql(
                f"INSERT INTO files SET order_id = {self.id}, position = {position}, name = 'a.jpg',"
                f" updated_at = UTC_TIMESTAMP(3); SELECT LAST_INSERT_ID()")[0][0]))

    def key(self, position=1):
        return f"in/{self.id}/{position}"

    def status(self, status):
        self.stack.sql(f"UPDATE orders SET status = '{status}', started_at = UTC_TIMESTAMP(3) WHERE id = {self.id}")

    def row(self, position=1):
        return self.stack.sql("SELECT status, IFNULL(store_key, ''), IFNULL(format, ''), IFNULL(size_bytes, 0),"
                              f" IFNULL(LOWER(HEX(digest)), '') FROM files WHERE order_id = {self.id}"
                              f" AND position = {position}")[0]


def text(value):
    return "CONVERT(X'" + value.encode().hex() + "' USING utf8mb4)"


def shard(order):
    return "%03x" % ((order * 11400714819323198485 & (1 << 64) - 1) >> 52)


def stored_path(stack, store_key):
    kind, order, rest = store_key.split("/")
    return os.path.join(stack.store, kind, shard(int(order)), f"{order}.{rest}")


@pytest.fixture(scope="module")
def account(stack):
    return int(stack.ctl("account", "create", "--plan", "pro", "files-" + uuid.uuid4().hex[:12]).split()[-1])


@pytest.fixture(scope="module")
def signer(stack):
    return Signer(stack)


@pytest.fixture
def order(stack, account):
    return Order(stack, account)


def refused(answer, status, code):
    assert answer.status == status, answer
    assert answer.code == code, answer
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["X-Request-Id"] == answer.json["requestId"]
    assert answer.headers.get_all("X-Request-Id") == [answer.json["requestId"]]
    assert answer.headers["Cache-Control"] == "no-store"


def connection_of(stack, url, source="127.0.0.1"):
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPSConnection(parts.hostname, parts.port, context=stack.tls, timeout=90, source_address=(source, 0))
    return connection, f"{parts.path}?{parts.query}"


# ---- Uploading

def test_a_put_lands_whole_and_its_row_names_it(stack, signer, anonymous, order, jpeg):
    answer = anonymous.upload(signer.put(order.key()), jpeg)
    digest = hashlib.sha256(jpeg).hexdigest()
    assert answer.status == 201, answer
    assert answer.headers["ETag"] == f'"{digest}"'
    assert answer.data == {"fileKey": order.key(), "fileFormat": "JPG", "sizeBytes": len(jpeg), "sha256": digest}
    status, key, form, size, stored = order.row()
    assert (status, form, int(size), stored) == ("uploaded", "jpeg", len(jpeg), digest)
    with open(stored_path(stack, key), "rb") as file:
        assert file.read() == jpeg


def test_a_second_put_replaces_and_leaves_one_file(stack, signer, anonymous, order, jpeg, png, webp):
    url = signer.put(order.key())
    answers = [anonymous.upload(url, data) for data in (jpeg, png, webp)]
    assert [answer.status for answer in answers] == [201, 200, 200]
    assert [answer.data["fileFormat"] for answer in answers] == ["JPG", "PNG", "WEBP"]
    assert [name for name in store_files(stack) if f"/{order.id}." in name] == [
        os.path.relpath(stored_path(stack, order.row()[1]), stack.store)]
    assert order.row()[2] == "webp"


def test_an_empty_part_of_an_order_is_not_found(signer, anonymous, order, jpeg):
    refused(anonymous.upload(signer.put(order.key(2)), jpeg), 404, "ORDER_NOT_FOUND")
    refused(anonymous.upload(signer.put(f"in/{order.id + 1}/1"), jpeg), 404, "ORDER_NOT_FOUND")
    refused(anonymous.upload(signer.put(order.key() + "o"), jpeg), 404, "ORDER_NOT_FOUND")


def test_the_unmarked_original_is_a_separate_file(stack, signer, anonymous, order, jpeg, png):
    stack.sql(f"INSERT INTO files SET order_id = {order.id}, position = 1, role = 'original', name = 'o.png',"
              " updated_at = UTC_TIMESTAMP(3)")
    assert anonymous.upload(signer.put(order.key()), jpeg).status == 201
    assert anonymous.upload(signer.put(order.key() + "o"), png).status == 201
    rows = dict(stack.sql(f"SELECT role, format FROM files WHERE order_id = {order.id}"))
    assert rows == {"main": "jpeg", "original": "png"}


def test_parameters_come_in_any_order(signer, anonymous, order, jpeg):
    for places in ("ksme", "smek", "mkes"):
        assert anonymous.upload(signer.put(order.key(), order=places), jpeg).status in (200, 201)


@pytest.mark.parametrize("lie", [
    {"signed": {"method": "GET"}}, {"signed": {"key": "in/1/1"}}, {"signed": {"e": 1}}, {"signed": {"m": 1}},
    {"signed": {"k": "two"}}, {"signed": {"k": ""}}], ids=lambda lie: str(list(lie["signed"])[0]))
def test_every_part_is_bound_by_the_signature(signer, anonymous, order, jpeg, lie):
    refused(anonymous.upload(signer.put(order.key(), **lie), jpeg), 403, "URL_SIGNATURE_INVALID")


def test_a_url_has_each_parameter_once_and_no_other(signer, anonymous, order, jpeg):
    url = signer.put(order.key())
    parts = dict(pair.split("=", 1) for pair in url.split("?")[1].split("&"))
    for other in [url + "&x=1", url + "&", url + "&e=" + parts["e"], url + "&s=" + parts["s"], url + "=",
                  url.replace("&k=", "&k=0"), url.replace("e=", "e=0"), url.replace("m=", "m=+"),
                  url.replace("s=", "s=%41"), url.replace(parts["s"], ""), url.replace(parts["s"], parts["s"] + "="),
                  url.replace("/in/", "/in/0"), url.split("?")[0], url.replace(f"e={parts['e']}&", "")]:
        assert anonymous.upload(other, jpeg).code == "URL_SIGNATURE_INVALID", other
    refused(anonymous.upload(url.replace("/in/", "/out/"), jpeg), 405, "METHOD_NOT_ALLOWED")
    assert order.row()[0] == "pending"


def test_another_spelling_of_the_same_signature_is_refused(signer, anonymous, order, jpeg):
    """The last base64 character has unused bits, so only the canonical text is accepted."""
    url = signer.put(order.key())
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    twin = url[:-1] + letters[letters.index(url[-1]) ^ 1]
    assert base64.urlsafe_b64decode(twin[-43:] + "=") == base64.urlsafe_b64decode(url[-43:] + "=")
    refused(anonymous.upload(twin, jpeg), 403, "URL_SIGNATURE_INVALID")


def test_an_expired_url_names_both_times(signer, anonymous, order, jpeg):
    before = time.time()
    answer = anonymous.upload(signer.put(order.key(), expires=1700000000), jpeg)
    refused(answer, 403, "URL_EXPIRED")
    assert answer.json["expiredAt"] == "2023-11-14T22:13:20.000Z"
    told = datetime.datetime.fromisoformat(answer.json["serverTime"].replace("Z", "+00:00")).timestamp()
    assert before - 1 <= told <= time.time() + 1


def test_expiry_counts_when_the_request_starts(stack, signer, anonymous, order, jpeg):
    for seconds in (2, 4, 8, 16):  # longer if a slow machine has not begun the request
        expires = int(time.time()) + seconds
        connection, place = connection_of(stack, signer.put(order.key(), expires=expires))
        connection.putrequest("PUT", place)
        connection.putheader("Content-Length", str(len(jpeg)))
        connection.endheaders()
        connection.send(jpeg[:100])
        time.sleep(max(0, expires + 1 - time.time()))
        connection.send(jpeg[100:])
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status == 201:
            break
    assert answer.status == 201, body


def test_a_client_cannot_tell_when_its_request_started(signer, anonymous, order, jpeg):
    url = signer.put(order.key(), expires=1700000000)
    for name in ("Imgward-Checked-Ms", "IMGWARD-CHECKED-MS", "Imgward_Checked_Ms"):
        answer = anonymous.request("PUT", url, jpeg, headers={name: "1699999999000"}, key=False)
        refused(answer, 403, "URL_EXPIRED")


def test_the_signed_size_counts_not_the_usual_one(signer, anonymous, order, jpeg):
    answer = anonymous.upload(signer.put(order.key(), limit=len(jpeg) - 1), jpeg)
    refused(answer, 413, "PAYLOAD_TOO_LARGE")
    assert str(len(jpeg)) in answer.json["message"] and str(len(jpeg) - 1) in answer.json["message"]
    assert anonymous.upload(signer.put(order.key(), limit=len(jpeg)), jpeg).status == 201


def chunked(stack, url, pieces):
    connection, place = connection_of(stack, url)
    try:
        connection.request("PUT", place, body=pieces, headers={"Transfer-Encoding": "chunked"}, encode_chunked=True)
    except OSError:
        pass  # The response may come before the last piece.
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_a_chunked_upload_is_counted_against_the_signed_size(stack, signer, order, jpeg):
    before = store_files(stack)
    answer, body = chunked(stack, signer.put(order.key(), limit=len(jpeg) - 1), iter([jpeg[:1000], jpeg[1000:]]))
    assert answer.status == 413 and str(len(jpeg) - 1).encode() in body, body
    assert store_files(stack) - before == set()
    answer, body = chunked(stack, signer.put(order.key()), iter([jpeg[:1000], jpeg[1000:]]))
    assert answer.status == 201, body


def test_a_chunked_upload_is_cut_off_at_the_limit(stack, signer, order):
    """nginx ends the upload, with an error in the service's format."""
    piece = b"\xff\xd8\xff" + b"\0" * ((1 << 20) - 3)
    answer, body = chunked(stack, signer.put(order.key()), iter([piece] * 52))
    assert answer.status == 413, body
    assert b'"PAYLOAD_TOO_LARGE"' in body and b"52428800" in body
    assert order.row()[0] == "pending"


def test_a_refused_upload_is_answered_before_its_body(stack, signer, order):
    order.status("inProgress")
    connection, place = connection_of(stack, signer.put(order.key()))
    connection.putrequest("PUT", place)
    connection.putheader("Content-Length", "40000000")
    connection.endheaders()
    answer = connection.getresponse()
    assert answer.status == 409, "and not 408, as a body that never comes is given up"
    assert b"ORDER_ALREADY_STARTED" in answer.read()
    connection.close()


def test_a_refused_upload_gets_no_100_continue(stack, signer, order, jpeg):
    """Expect: 100-continue (RFC 9110, 10.1.1): the final response replaces the response 100."""
    parts = urllib.parse.urlsplit(signer.put(order.key()) + "x")
    status, head, body = raw(stack, f"PUT {parts.path}?{parts.query} HTTP/1.1\r\nHost: localhost\r\n"
                             "Content-Length: 40000000\r\nExpect: 100-continue\r\n\r\n".encode())
    assert status == 403 and "URL_SIGNATURE_INVALID" in body, head + body
    assert "Connection: close" in head


def test_after_the_start_the_url_answers_409(signer, anonymous, order, jpeg):
    url = signer.put(order.key())
    assert anonymous.upload(url, jpeg).status == 201
    for status in ("inProgress", "complete", "failed", "expired"):
        order.status(status)
        refused(anonymous.upload(url, jpeg), 409, "ORDER_ALREADY_STARTED")


def test_an_order_that_was_never_started_is_no_longer_pending(stack, signer, anonymous, order, jpeg):
    stack.sql(f"UPDATE orders SET status = 'failed', error_code = 'UPLOAD_EXPIRED' WHERE id = {order.id}")
    refused(anonymous.upload(signer.put(order.key()), jpeg), 400, "ORDER_NOT_PENDING")


def test_an_upload_in_progress_when_the_order_starts_is_409(stack, signer, anonymous, order, jpeg, png):
    url = signer.put(order.key())
    assert anonymous.upload(url, jpeg).status == 201
    kept, files = order.row(), store_files(stack, order)
    connection, place = connection_of(stack, url)
    connection.putrequest("PUT", place)
    connection.putheader("Content-Length", str(len(png)))
    connection.endheaders()
    connection.send(png[:100])
    time.sleep(0.3)
    order.status("inProgress")
    connection.send(png[100:])
    answer = connection.getresponse()
    assert answer.status == 409 and b"ORDER_ALREADY_STARTED" in answer.read()
    assert order.row() == kept and store_files(stack, order) == files
    connection.close()


def test_the_start_wins_against_an_upload_that_waits_for_the_row(stack, signer, anonymous, order, jpeg, png):
    """The order's row is locked while the upload is recorded. Either may come first, but neither is done by half."""
    url = signer.put(order.key())
    assert anonymous.upload(url, jpeg).status == 201
    kept = order.row()
    answers = []
    holder = threading.Thread(target=stack.sql, args=(
        f"BEGIN; UPDATE orders SET status = 'inProgress', started_at = UTC_TIMESTAMP(3) WHERE id = {order.id};"
        f" DO GET_LOCK('held-{order.id}', 0); DO SLEEP(1.5); COMMIT",))
    holder.start()
    while holder.is_alive() and stack.sql(f"SELECT IS_USED_LOCK('held-{order.id}')") == [["NULL"]]:
        time.sleep(0.05)
    sender = threading.Thread(target=lambda: answers.append(anonymous.upload(url, png)))
    sender.start()
    sender.join()
    holder.join()
    refused(answers[0], 409, "ORDER_ALREADY_STARTED")
    assert order.row() == kept


def handed_over(stack, url, body, is_whole):
    """Returns the pool's response to an upload without a length, complete or broken off, as a web server forwards it."""
    parts = urllib.parse.urlsplit(url)
    return wire.fastcgi(stack, {"REQUEST_METHOD": "PUT", "REQUEST_URI": f"{parts.path}?{parts.query}"}, body, is_whole)


def test_a_truncated_body_without_a_length_is_not_complete(stack, signer, order, jpeg):
    before = store_files(stack)
    response = handed_over(stack, signer.put(order.key()), jpeg[:3000], False)
    assert b"Status: 400" in response and b"ended early" in response, response
    assert order.row()[0] == "pending" and store_files(stack) - before == set()
    response = handed_over(stack, signer.put(order.key()), jpeg, True)
    assert b"Status: 201" in response and order.row()[3] == str(len(jpeg)), response


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_an_aborted_upload_leaves_nothing(stack, signer, anonymous, order, jpeg, png, share):
    url = signer.put(order.key())
    assert anonymous.upload(url, jpeg).status == 201
    kept, files, others = order.row(), store_files(stack, order), store_files(stack)
    connection, place = connection_of(stack, url)
    connection.putrequest("PUT", place)
    connection.putheader("Content-Length", str(len(png)))
    connection.endheaders()
    connection.send(png[:int(len(png) * share)])
    connection.sock.shutdown(socket.SHUT_RDWR)
    connection.close()
    time.sleep(0.4)
    assert order.row() == kept and store_files(stack, order) == files and store_files(stack) - others == set()


def test_an_upload_with_a_content_encoding_is_refused(stack, signer, anonymous, order):
    data = pictures.jpeg(64, 64)
    answer = anonymous.request("PUT", signer.put(order.key()), gzip.compress(data), key=False, headers={"Content-Encoding": "gzip"})
    refused(answer, 415, "UNSUPPORTED_MEDIA_TYPE")
    assert "Content-Encoding is gzip" in answer.json["message"] and order.row()[0] == "pending"
    assert anonymous.request("PUT", signer.put(order.key()), data, key=False, headers={"Content-Encoding": "identity"}).status == 201


def test_twenty_concurrent_puts_leave_one_complete_file(stack, signer, anonymous, order):
    url = signer.put(order.key())
    bodies = [pictures.jpeg(80 + i, 60, seed=i) for i in range(20)]
    answers = []

    def upload(body):
        """Uploads, and repeats if two other uploads of the URL are in progress."""
        while (answer := anonymous.upload(url, body)).status == 429:
            time.sleep(0.05)
        answers.append(answer)

    threads = [threading.Thread(target=upload, args=(body,)) for body in bodies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [200] * 19 + [201]
    with open(stored_path(stack, order.row()[1]), "rb") as file:
        data = file.read()
    assert data in bodies and hashlib.sha256(data).hexdigest() == order.row()[4]
    assert len([name for name in store_files(stack) if f"/{order.id}." in name]) == 1


@pytest.mark.parametrize("data", [b"GIF89a" + b"\0" * 4000, b"\xff\xd8", b"", b"RIFF\0\0\0\0WAVE" + b"\0" * 70000],
                         ids=["gif", "cut", "empty", "wave"])
def test_an_upload_that_is_no_image_is_415_and_leaves_nothing(stack, signer, anonymous, order, data):
    before = store_files(stack)
    refused(anonymous.upload(signer.put(order.key()), data), 415, "UNSUPPORTED_MEDIA_TYPE")
    assert store_files(stack) - before == set() and order.row()[0] == "pending"


def test_content_range_is_refused_before_the_body(stack, signer, order):
    connection, place = connection_of(stack, signer.put(order.key()))
    connection.putrequest("PUT", place)
    connection.putheader("Content-Length", "1000")
    connection.putheader("Content-Range", "bytes 0-999/2000")
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read()
    assert answer.status == 400 and b'"Content-Range"' in body, body
    connection.close()


@pytest.mark.parametrize("header, value", [
    ("Content-Digest", "sha-256=:AAAA:"), ("Content-Digest", "sha-256=abc"), ("Content-MD5", "nonsense"),
    ("Content-MD5", "AAAA"), ("Content-Digest", "sha-512=:AAAA:, sha-256=:" + "A" * 43 + "=:")])
def test_a_digest_that_cannot_be_right_is_400(stack, signer, anonymous, order, jpeg, header, value):
    before = store_files(stack)
    answer = anonymous.request("PUT", signer.put(order.key()), jpeg, headers={header: value}, key=False)
    refused(answer, 400, "VALIDATION_FAILED")
    assert answer.fields() == [header]
    assert store_files(stack) - before == set()


def test_a_valid_digest_with_an_unknown_one_is_accepted(signer, anonymous, order, jpeg):
    value = "unixsum=:AAA=:, sha-256=:" + base64.b64encode(hashlib.sha256(jpeg).digest()).decode() + ":"
    assert anonymous.request("PUT", signer.put(order.key()), jpeg, headers={"Content-Digest": value},
                          key=False).status == 201


def test_an_error_is_problem_json_when_requested(signer, anonymous, order, jpeg):
    order.status("inProgress")
    answer = anonymous.request("PUT", signer.put(order.key()), jpeg, key=False,
                            headers={"Accept": "application/problem+json"})
    assert answer.status == 409 and answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json["status"] == 409 and answer.json["type"].endswith("ORDER_ALREADY_STARTED")


def test_a_file_that_is_fetched_by_url_takes_no_upload(stack, signer, anonymous, order, jpeg):
    stack.sql(f"UPDATE files SET source_url = 'https://example.com/a.jpg' WHERE order_id = {order.id}")
    refused(anonymous.upload(signer.put(order.key()), jpeg), 404, "ORDER_NOT_FOUND")


def test_slow_uploads_hold_no_process_of_the_pool(stack, signer, anonymous, account, order, jpeg):
    """There are more slow uploads than pool processes, but another upload succeeds immediately. An address may have 32."""
    url = signer.put(order.key())
    processes = len(child_pids(stack.pid("api")))
    many = Order(stack, account, files=processes * 3)
    slow = []
    for number in range(processes * 3):
        connection, place = connection_of(stack, signer.put(many.key(number + 1)), f"127.0.1.{number // 16 + 1}")
        connection.putrequest("PUT", place)
        connection.putheader("Content-Length", str(len(jpeg)))
        connection.endheaders()
        connection.send(jpeg[:50])
        slow.append(connection)
    time.sleep(0.5)
    assert anonymous.upload(url, jpeg).status == 201
    # The slow uploads have not timed out: each pool process still completes one.
    for connection in slow[-processes:]:
        connection.send(jpeg[50:])
        assert connection.getresponse().status == 201
    for connection in slow:
        connection.close()


# ---- Downloading

class Result:
    """A complete order with one result in the store."""

    def __init__(self, stack, account, data, name="a.jpg", form="jpeg"):
        self.order = Order(stack, account, status="'complete'", name="übersicht",
                           expires_at="UTC_TIMESTAMP(3) + INTERVAL 7 DAY")
        self.store_key = f"out/{self.order.id}/{self.order.files[0]}.1"
        self.path = stored_path(stack, self.store_key)
        file_put(self.path, data)
        self.id = int(stack.sql(
            f"INSERT INTO results SET order_id = {self.order.id}, file_id = {self.order.files[0]}, name = {text(name)},"
            f" store_key = '{self.store_key}', format = '{form}', size_bytes = {len(data)}, digest = REPEAT('x', 32),"
            " width_px = 1, height_px = 1, created_at = UTC_TIMESTAMP(3); SELECT LAST_INSERT_ID()")[0][0])
        self.key = f"out/{self.order.id}/{self.id}"


def file_put(path, data):
    os.makedirs(os.path.dirname(path), mode=0o750, exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


@pytest.fixture
def result(stack, account, jpeg):
    return Result(stack, account, jpeg)


def test_a_result_comes_with_type_name_length_and_etag(stack, account, signer, anonymous, jpeg):
    result = Result(stack, account, jpeg, name="größe \"1\" 100%;/日本.jpg")
    answer = anonymous.request("GET", signer.get(result.key), key=False)
    assert answer.status == 200 and answer.body == jpeg, answer
    assert answer.headers["Content-Type"] == "image/jpeg"
    assert answer.headers["ETag"] and answer.headers["Content-Length"] == str(len(jpeg))
    assert answer.headers["Accept-Ranges"] == "bytes"
    disposition = answer.headers["Content-Disposition"]
    coded = urllib.parse.quote("größe \"1\" 100%;_日本.jpg", safe="")
    assert disposition == f"attachment; filename=\"gr__e _1_ 100_;___.jpg\"; filename*=UTF-8''{coded}"
    assert answer.headers.get_all("X-Request-Id") and len(answer.headers.get_all("X-Request-Id")) == 1
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "X-Accel-Redirect" not in answer.headers
    age = int(re.fullmatch(r"private, max-age=(\d+)", answer.headers["Cache-Control"])[1])
    assert 0 < age <= 600


def test_range_head_and_conditions(signer, anonymous, result, jpeg):
    url = signer.get(result.key)
    etag = anonymous.request("GET", url, key=False).headers["ETag"]

    def get(method="GET", **headers):
        return anonymous.request(method, url, key=False, headers={n.replace("_", "-"): v for n, v in headers.items()})

    part = get(Range="bytes=5-9")
    assert part.status == 206 and part.body == jpeg[5:10]
    assert part.headers["Content-Range"] == f"bytes 5-9/{len(jpeg)}"
    assert get(Range="bytes=-3").body == jpeg[-3:]
    assert get(Range="bytes=5-9", If_Range=etag).status == 206
    assert get(Range="bytes=5-9", If_Range='"other"').body == jpeg
    assert get(If_None_Match=etag).status == 304
    head = get("HEAD")
    assert head.status == 200 and head.body == b"" and head.headers["Content-Length"] == str(len(jpeg))
    assert "filename*" in head.headers["Content-Disposition"]
    beyond = get(Range="bytes=999999999-")
    assert beyond.status == 416 and beyond.headers["Content-Type"] == "application/json", beyond
    assert beyond.headers["Content-Range"] == f"bytes */{len(jpeg)}"
    assert beyond.json["requestId"] == beyond.headers["X-Request-Id"] and not repeated(beyond.headers), beyond.headers


def test_archive_and_thumbnail(stack, signer, anonymous, result, webp):
    order = result.order.id
    for key in (f"zip/{order}", f"thumb/{order}"):
        refused(anonymous.request("GET", signer.get(key), key=False), 404, "PROCESSED_FILE_NOT_FOUND")
    file_put(stored_path(stack, f"zip/{order}/0.1"), b"PK not really")
    file_put(stored_path(stack, f"thumb/{order}/0.4"), webp)
    stack.sql(f"UPDATE orders SET zip_store_key = 'zip/{order}/0.1', has_thumbnail = TRUE,"
              f" thumbnail_store_key = 'thumb/{order}/0.4' WHERE id = {order}")
    archive = anonymous.request("GET", signer.get(f"zip/{order}"), key=False)
    assert archive.status == 200 and archive.headers["Content-Type"] == "application/zip"
    assert archive.headers["Content-Disposition"].endswith("filename*=UTF-8''%C3%BCbersicht.zip")
    thumbnail = anonymous.request("GET", signer.get(f"thumb/{order}"), key=False)
    assert thumbnail.status == 200 and thumbnail.headers["Content-Type"] == "image/webp"
    assert thumbnail.body == webp and "Content-Disposition" not in thumbnail.headers


def test_a_download_url_is_only_valid_for_its_file(stack, account, signer, anonymous, result, jpeg):
    other = Result(stack, account, jpeg)
    refused(anonymous.request("GET", signer.get(result.key, path=other.key), key=False), 403, "URL_SIGNATURE_INVALID")
    refused(anonymous.request("GET", signer.get(result.key, expires=1700000000), key=False), 403, "URL_EXPIRED")
    refused(anonymous.request("GET", signer.get(result.key) + "&m=5", key=False), 403, "URL_SIGNATURE_INVALID")
    refused(anonymous.request("GET", signer.put(result.order.key()), key=False), 405, "METHOD_NOT_ALLOWED")
    refused(anonymous.request("GET", signer.get(result.order.key()), key=False), 405, "METHOD_NOT_ALLOWED")
    refused(anonymous.request("PUT", signer.put(result.key), jpeg, key=False), 405, "METHOD_NOT_ALLOWED")
    refused(anonymous.request("GET", signer.put(result.key), key=False), 403, "URL_SIGNATURE_INVALID")
    refused(anonymous.request("PUT", signer.get(result.order.key()), jpeg, key=False), 403, "URL_SIGNATURE_INVALID")


def test_another_method_is_405_with_allow(signer, anonymous, order, result):
    for method, url in (("POST", signer.put(order.key())), ("DELETE", signer.put(order.key())),
                        ("POST", signer.get(result.key)), ("PATCH", signer.get(result.key))):
        answer = anonymous.request(method, url, key=False)
        refused(answer, 405, "METHOD_NOT_ALLOWED")
        assert answer.headers["Allow"] == ("PUT, OPTIONS" if "/in/" in url else "GET, HEAD, OPTIONS")


@pytest.mark.parametrize("change", ["status = 'expired'", "expires_at = UTC_TIMESTAMP(3) - INTERVAL 1 SECOND",
                                    "files_deleted_at = UTC_TIMESTAMP(3)"])
def test_when_the_order_is_over_its_file_is_gone(stack, signer, anonymous, result, change):
    stack.sql(f"UPDATE orders SET {change} WHERE id = {result.order.id}")
    refused(anonymous.request("GET", signer.get(result.key), key=False), 404, "PROCESSED_FILE_NOT_FOUND")


def test_missing_bytes_are_404_without_a_name(signer, anonymous, result):
    os.unlink(result.path)
    answer = anonymous.request("GET", signer.get(result.key), key=False)
    refused(answer, 404, "PROCESSED_FILE_NOT_FOUND")
    assert "Content-Disposition" not in answer.headers


def test_a_planted_symbolic_link_is_not_followed(stack, signer, anonymous, result):
    secret = os.path.join(stack.environment["IMGWARD_VAR"], "etc", "database.password")
    os.unlink(result.path)
    os.symlink(secret, result.path)
    answer = anonymous.request("GET", signer.get(result.key), key=False)
    assert answer.status == 503 and answer.code == "SERVICE_UNAVAILABLE", answer


def test_a_planted_folder_is_not_followed(stack, signer, anonymous, result, tmp_path):
    """A symbolic link stands in place of a shard."""
    folder = os.path.dirname(result.path)
    aside = folder + ".aside"
    os.rename(folder, aside)
    try:
        os.symlink(aside, folder)
        assert anonymous.request("GET", signer.get(result.key), key=False).status == 503
    finally:
        os.unlink(folder)
        os.rename(aside, folder)
    assert anonymous.request("GET", signer.get(result.key), key=False).status == 200


def test_the_internal_locations_are_not_reachable(stack, anonymous, result):
    inner = os.path.relpath(result.path, stack.store)
    for path in ("/imgward-store/" + inner, "/imgward-error", "/imgward-problem", "/imgward-upload-check",
                 "/imgward-files", "/imgward-unsized/in/1/1", "/internal/upload-check", "/files/%2e%2e/imgward-store/"):
        for method in ("GET", "PUT"):
            refused(anonymous.request(method, path, key=False), 404, "RESOURCE_NOT_FOUND")


# ---- Failures

def test_a_dead_pool_is_503_with_retry_after(stack, signer, anonymous, order, result, jpeg):
    stack.part("stop", "api")
    try:
        answers = [anonymous.upload(signer.put(order.key()), jpeg),
                   anonymous.request("GET", signer.get(result.key), key=False),
                   anonymous.request("OPTIONS", signer.put(order.key()), key=False)]
        api = anonymous.request("GET", "/api/v2/orders", key=False)
    finally:
        stack.part("start", "api")
    for answer in answers:
        refused(answer, 503, "SERVICE_UNAVAILABLE")
        assert int(answer.headers["Retry-After"]) > 0
    assert api.status == 502 and api.code == "SERVICE_UNAVAILABLE" and int(api.headers["Retry-After"]) > 0
    assert anonymous.upload(signer.put(order.key()), jpeg).status == 201


def test_a_pool_that_dies_between_check_and_body_is_503(stack, signer, anonymous, order, jpeg):
    connection, place = connection_of(stack, signer.put(order.key()))
    connection.putrequest("PUT", place)
    connection.putheader("Content-Length", str(len(jpeg)))
    connection.endheaders()
    connection.send(jpeg[:100])
    time.sleep(0.5)
    stack.part("stop", "api")
    try:
        connection.send(jpeg[100:])
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 503 and b"SERVICE_UNAVAILABLE" in body and answer.headers["Retry-After"], body
        connection.close()
    finally:
        stack.part("start", "api")
    assert order.row()[0] == "pending"


def test_without_a_database_uploads_are_503(stack, signer, anonymous, order, jpeg):
    before = store_files(stack)
    stack.part("stop", "mariadbd")
    try:
        answer = anonymous.upload(signer.put(order.key()), jpeg)
    finally:
        stack.part("start", "mariadbd")
    refused(answer, 503, "SERVICE_UNAVAILABLE")
    assert int(answer.headers["Retry-After"]) > 0
    assert store_files(stack) - before == set()
    assert anonymous.upload(signer.put(order.key()), jpeg).status == 201


def child_pids(parent):
    with open(f"/proc/{parent}/task/{parent}/children", encoding="ascii") as file:
        return [int(pid) for pid in file.read().split()]


def test_a_row_never_names_an_incomplete_file(stack, account, signer, anonymous):
    """Pool processes are killed during uploads. The bytes of a row must always be complete, and no upload may be lost."""
    order = Order(stack, account, files=4)
    told = {position: set() for position in range(1, 5)}
    begun = time.monotonic()
    answers, killed = [], 0

    def is_over():
        """True after four seconds, or later on a slow machine."""
        taken = answers.count(200) + answers.count(201)
        return time.monotonic() - begun > (4 if taken > 20 and killed > 20 else 60)

    def send(position):
        url = signer.put(order.key(position))
        for seed in range(100000):
            if is_over():
                return
            data = pictures.jpeg(64 + seed % 50, 64, seed=seed % 7)
            told[position].add(hashlib.sha256(data).hexdigest())
            answers.append(anonymous.upload(url, data).status)
            time.sleep(0.05)  # Four senders stay below nginx's limit of 100 requests a second.

    threads = [threading.Thread(target=send, args=(position,)) for position in told]
    for thread in threads:
        thread.start()
    while not is_over():
        for pid in child_pids(stack.pid("api"))[::5]:
            try:
                os.kill(pid, signal.SIGKILL)
                killed += 1
            except ProcessLookupError:
                pass
        time.sleep(0.2)
    for thread in threads:
        thread.join()
    # If a process died after the commit, it sent no 201, and the repeated PUT gets 200.
    assert killed > 20 and answers.count(201) <= 4 and answers.count(200) + answers.count(201) > 20, (killed, answers)
    assert set(answers) <= {200, 201, 503}, set(answers)
    for position in told:
        _, key, _, size, digest = order.row(position)
        with open(stored_path(stack, key), "rb") as file:
            data = file.read()
        assert len(data) == int(size) and hashlib.sha256(data).hexdigest() == digest and digest in told[position]
    assert not os.listdir(os.path.join(stack.store, "tmp"))


def test_cors_reaches_refusals_too(signer, anonymous, order, result, jpeg):
    origin = "https://app.example"
    order.status("inProgress")
    for answer in (anonymous.upload(signer.put(order.key()), jpeg, Origin=origin),
                   anonymous.request("GET", signer.get(result.key), key=False, headers={"Origin": origin}),
                   anonymous.request("GET", signer.get(result.key) + "x", key=False, headers={"Origin": origin})):
        assert answer.headers.get_all("Access-Control-Allow-Origin") == [origin], answer.headers
        assert "ETag" in answer.headers["Access-Control-Expose-Headers"]
    for answer in (anonymous.upload(signer.put(order.key()), jpeg, Origin="https://evil.example"),
                   anonymous.request("GET", signer.get(result.key), key=False, headers={"Origin": "null"})):
        assert "Access-Control-Allow-Origin" not in answer.headers


def raw(stack, request):
    parts = urllib.parse.urlsplit(stack.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=90) as plain:
        with stack.tls.wrap_socket(plain, server_hostname=parts.hostname) as secure:
            secure.sendall(request)
            data = b""
            while piece := secure.recv(65536):
                data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    return int(head.split()[1]), head.decode(), body.decode()


@pytest.mark.parametrize("request_bytes, status, code", [
    (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 414, "VALIDATION_FAILED"),
    (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 9000 + b"\r\nConnection: close\r\n\r\n", 431, "VALIDATION_FAILED"),
    (b"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 400, "VALIDATION_FAILED"),
    (b"nonsense\r\n\r\n", 400, "VALIDATION_FAILED"),
    (b"GET /none.html HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 404, "RESOURCE_NOT_FOUND"),
    (b"POST /api/v2/orders HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 1048577\r\n\r\n", 413,
     "PAYLOAD_TOO_LARGE"),
], ids=["414", "431", "no host", "nonsense", "404", "413"])
def test_errors_of_nginx_have_the_one_shape(stack, request_bytes, status, code):
    answered, head, body = raw(stack, request_bytes)
    assert answered == status, head + body
    assert f'"code":"{code}"' in body and '"requestId":"' in body, body
    assert "Content-Type: application/json" in head
    request_id = re.search(r'"requestId":"([0-9a-f]+)"', body)[1]
    assert f"X-Request-Id: {request_id}" in head
    assert "Server: nginx\r\n" in head + "\r\n"
    if status == 413:
        assert "1048577" in body and "1048576" in body


def test_plain_http_on_the_port_of_https_is_sent_over(stack):
    parts = urllib.parse.urlsplit(stack.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=90)
    connection.request("GET", "/api/v2/orders?page=2")
    answer = connection.getresponse()
    assert answer.status == 308 and answer.headers["Location"] == f"{stack.url}/api/v2/orders?page=2"
    connection.close()


def test_no_query_reaches_a_log(stack, signer, anonymous, order, result, jpeg):
    """The query is hidden also in errors, where nginx would log the whole request line."""
    urls = [signer.put(order.key()), signer.get(result.key), signer.get(result.key) + "x", signer.put(order.key(), limit=10)]
    for url in urls:
        anonymous.upload(url, jpeg)
        anonymous.request("GET", url, key=False)
    os.unlink(result.path)
    anonymous.request("GET", urls[1], key=False)
    plain = urllib.parse.urlsplit(stack.environment["IMGWARD_HTTP_URL"])
    connection = http.client.HTTPConnection(plain.hostname, plain.port, timeout=90)
    connection.request("GET", urls[1][len(stack.url):])
    moved = connection.getresponse()
    assert moved.status == 308 and moved.headers["Location"] == urls[1] and moved.headers["X-Request-Id"]
    connection.close()
    chunked(stack, urls[0], iter([b"\xff\xd8\xff" + b"\0" * (1 << 20)] * 52))
    stack.part("stop", "api")
    try:
        for url in urls:
            anonymous.upload(url, jpeg)
            anonymous.request("GET", url, key=False)
    finally:
        stack.part("start", "api")
    folder = stack.environment["IMGWARD_LOG"]
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            log = file.read()
        assert not re.search(r"/files/[^\s\"]*\?", log), name
        assert not any(url.split("s=")[-1][:43] in log for url in urls), name
    with open(os.path.join(folder, "access.log"), encoding="utf-8") as file:
        log = file.read()
    assert f"\"PUT /files/{order.key()}\"" in log and '"status":308' in log


# ---- Configuration

def test_cors_is_off_unless_an_origin_is_listed(stack, signer, anonymous, order, jpeg):
    with stack.configured("store", "cors_origins", ""):
        preflight = anonymous.request("OPTIONS", signer.put(order.key()), key=False, headers={
            "Origin": "https://app.example", "Access-Control-Request-Method": "PUT"})
        put = anonymous.upload(signer.put(order.key()), jpeg, Origin="https://app.example")
    assert preflight.status == 204 and put.status == 201
    for answer in (preflight, put):
        assert not [name for name in answer.headers if name.startswith("Access-Control-")], answer.headers
        assert "Vary" not in answer.headers


def test_the_command_that_makes_signing_keys(stack, tmp_path):
    path = str(tmp_path / "signing.keys")

    def keys():
        assert os.stat(path).st_mode & 0o777 == 0o600
        with open(path, encoding="ascii") as file:
            lines = file.read().splitlines()
        assert all(re.fullmatch(r"[0-9a-f]{8}:[0-9a-f]{64}(:[0-9]{10})?", line) for line in lines), lines
        return lines

    told = stack.ctl("secret", "signing", path)
    first = keys()
    assert len(first) == 1 and first[0].split(":")[0] in told and first[0].split(":")[1] not in told
    with pytest.raises(RuntimeError, match="--rotate"):
        stack.ctl("secret", "signing", path)
    assert keys() == first
    with pytest.raises(RuntimeError, match="--after"):
        stack.ctl("secret", "signing", "--after", "5", str(tmp_path / "other"))
    for _ in range(2):
        before = keys()
        stack.ctl("secret", "signing", "--rotate", "--after", "0", path)
        after = keys()
        assert len(after) == 2 and after[1] == before[0] and after[0] not in before
    told = stack.ctl("secret", "signing", "--rotate", path)
    waiting = keys()
    assert waiting[1] == after[0] and 50 < int(waiting[0].split(":")[2]) - time.time() < 61, "a minute to reload all"
    assert time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(int(waiting[0].split(":")[2]))) in told
    with pytest.raises(RuntimeError):
        stack.ctl("secret", "signing", "--rotate", str(tmp_path / "none"))


def test_a_rotated_out_key_is_no_longer_accepted(stack, signer, anonymous, order, jpeg):
    with open(stack.environment["IMGWARD_CONFIG"], encoding="utf-8") as file:
        path = re.search(r"signing_keys_file = (.*)", file.read())[1]
    url = signer.put(order.key())
    for expected in (201, 403):
        stack.ctl("secret", "signing", "--rotate", "--after", "0", path)
        stack.reload()
        answer = anonymous.upload(url, jpeg)
        assert answer.status == expected, answer
    assert answer.code == "URL_SIGNATURE_INVALID"
    assert anonymous.upload(signer.put(order.key()), jpeg).status == 200


SPELLINGS = ["//files/{}", "/files//{}", "/files%2F{}", "/files%2f{}", "/%66iles/{}", "/./files/{}", "/x/../files/{}", "///files/{}"]


@pytest.mark.parametrize("version", ["--http1.1", "--http2"])
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_signed_path_in_another_spelling_says_what_was_changed(stack, signer, order, result, jpeg, tmp_path, version, spelling):
    """Such paths come from a base URL with a slash at the end, or from a proxy that encodes them."""
    picture = tmp_path / "a.jpg"
    picture.write_bytes(jpeg)
    for url, more in ((signer.put(order.key()), ["-T", picture]), (signer.get(result.key), []), (signer.get(f"thumb/{result.order.id}"), []),
                      (signer.put(order.key()), ["-T", picture, "-H", "Transfer-Encoding: chunked"])):
        parts = urllib.parse.urlsplit(url)
        changed = stack.url + spelling.replace("{}", parts.path.removeprefix("/files/")) + "?" + parts.query
        done = subprocess.run(["curl", "-sS", version, "--path-as-is", "--cacert", stack.environment["IMGWARD_CA"], "-w", "\n%{http_code}", *more,
                               changed], capture_output=True, text=True, timeout=60)
        body, _, status = done.stdout.rpartition("\n")
        assert status == "403" and json.loads(body)["code"] == "URL_SIGNATURE_INVALID", (changed, done.stdout, done.stderr)
        assert "its path was changed" in body, body


def test_a_slash_at_the_end_of_an_upload_is_refused(signer, anonymous, order, jpeg):
    refused(anonymous.upload(signer.put(order.key(), path=order.key() + "/"), jpeg), 403, "URL_SIGNATURE_INVALID")
