"""Access control: ids of other accounts, keys, signed URLs, paths, injections, floods.

The endpoints come from doc/openapi.yaml, which test_openapi.py compares with the program, so none is missed.
"""
import concurrent.futures
import itertools
import json
import os
import re
import statistics
import threading
import time
import urllib.parse
import uuid

import pytest

import openapi
import pictures
from client import ORDERS, Client
from test_4_uploads import Signer
from wire import Wire, once, statuses

yaml = pytest.importorskip("yaml")

UNKNOWN_KEY = "Bearer iw_live_" + "0" * 43


def endpoints():
    """Returns (method, template, is_signed) of every documented endpoint."""
    return [(method.upper(), path, operation.get("security") == [])
            for path, item in openapi.document()["paths"].items()
            for method, operation in item.items() if method in openapi.METHODS]


KEYED = [(method, path) for method, path, is_signed in endpoints() if not is_signed]
FOREIGN = [(method, path) for method, path in KEYED if "{" in path] + [("POST", f"{ORDERS}/anti-ai/confirm")]


@pytest.fixture(scope="module")
def owner(stack):
    """An account with a complete order, a pending order, a webhook and an event."""
    client = stack.account_new()
    client.complete = client.order_whole([("secret-holiday.jpg", pictures.jpeg(96, 80))])["orderId"]
    pending = client.create(["secret-draft.png"], orderName="secret name").data
    client.pending, client.upload_url = pending["orderId"], pending["files"][0]["uploadUrl"]
    webhook = client.post(f"{ORDERS}/webhooks", {"url": "https://secret.example/hook", "name": "secret"}).data
    client.webhook = webhook["id"]
    client.post(f"{ORDERS}/webhooks/{client.webhook}/test")
    client.event = client.get(f"{ORDERS}/webhooks/{client.webhook}/events").items[0]["eventId"]
    return client


def fill(template, order, webhook, event):
    return template.replace("{orderId}", str(order)).replace("{webhookId}", str(webhook)).replace("{eventId}", str(event))


def body_of(method, template, order):
    if template.endswith("/confirm"):
        return {"idempotencyKey": uuid.uuid4().hex, "orderId": str(order)}
    return {"name": "taken over", "isActive": False} if method in ("PUT", "POST") else None


def state_of(stack, owner):
    """Returns all rows of the owner in the database, except times."""
    account = owner.account
    return (stack.sql(f"SELECT id, status, name FROM orders WHERE account_id = {account}"),
            stack.sql(f"SELECT id, name, url, is_active, deleted_at FROM webhooks WHERE account_id = {account}"),
            stack.sql(f"SELECT COUNT(*) FROM webhook_secrets WHERE webhook_id = {owner.webhook}"),
            stack.sql(f"SELECT COUNT(*) FROM webhook_events WHERE account_id = {account}"))


# ---- Slow senders: started here, checked at the end of this file

class Dribblers:
    """A hundred connections from a separate address that send a header one byte at a time."""

    def __init__(self, stack):
        self.wires = [Wire(stack, source="127.0.0.7", timeout=60) for _ in range(100)]
        self.begin = time.monotonic()
        self.ended = {}
        self.thread = threading.Thread(target=self.run, daemon=True)
        for wire in self.wires:
            wire.send(f"GET {ORDERS} HTTP/1.1\r\nHost: localhost\r\nX: ")
            wire.socket.settimeout(0.001)
        self.thread.start()

    def run(self):
        while len(self.ended) < len(self.wires) and time.monotonic() < self.begin + 300:
            for wire in [wire for wire in self.wires if wire not in self.ended]:
                try:
                    wire.send("a")
                    is_over = wire.socket.recv(1000) == b""
                except TimeoutError:
                    is_over = False
                except OSError:
                    is_over = True
                if is_over:
                    self.ended[wire] = time.monotonic() - self.begin
            time.sleep(0.5)


@pytest.fixture(scope="module")
def dribblers(stack):
    dribblers = Dribblers(stack)
    yield dribblers
    dribblers.thread.join()
    for wire in dribblers.wires:
        wire.socket.close()


def test_slow_senders_of_headers_do_not_delay_others(client, dribblers):
    for _ in range(5):
        begin = time.monotonic()
        assert client.list().status == 200
        print(f"answered after {(time.monotonic() - begin) * 1000:.0f} ms")
    assert len(dribblers.ended) < 100


# ---- Ids of another account

@pytest.mark.parametrize("method, template", FOREIGN, ids=lambda word: word.replace(ORDERS, ""))
def test_another_accounts_ids_answer_as_missing_ones_at_every_endpoint(stack, owner, client, method, template):
    before = state_of(stack, owner)
    for order in (owner.complete, owner.pending):
        foreign = client.request(method, fill(template, order, owner.webhook, owner.event), body_of(method, template, order))
        missing = client.request(method, fill(template, int(order) + 1, 1, 1), body_of(method, template, int(order) + 1))
        assert foreign.status == missing.status == 404, foreign
        assert (foreign.code, foreign.json["message"]) == (missing.code, missing.json["message"])
        assert "secret" not in foreign.body.decode()
    assert state_of(stack, owner) == before


def test_an_event_is_only_found_under_its_webhook(owner, client):
    mine = client.post(f"{ORDERS}/webhooks", {"url": "https://mine.example/hook"}).data["id"]
    answer = client.post(f"{ORDERS}/webhooks/{mine}/events/{owner.event}/retry")
    assert answer.status == 404 and answer.code == "WEBHOOK_EVENT_NOT_FOUND", answer


@pytest.mark.parametrize("method, template", [pair for pair in KEYED if pair[0] == "GET" and "{" not in pair[1]],
                         ids=lambda word: word.replace(ORDERS, ""))
def test_lists_and_sums_hold_nothing_of_another_account(owner, client, method, template):
    queries = ["", "?limit=-1", f"?keyword={owner.pending}", "?keyword=secret", f"?keyword={owner.webhook}"]
    for query in queries if "stats" not in template else [""]:
        answer = client.request(method, template + query)
        assert answer.status == 200 and "secret" not in answer.body.decode(), answer
        for name in (owner.complete, owner.pending):
            assert str(name) not in answer.body.decode()
    if template.endswith("/usage"):
        uses = {limit["name"]: limit["used"] for limit in answer.data["limits"]}
        assert not any(use for name, use in uses.items() if name != "webhooks"), uses
    elif "stats" in template:
        assert [day["usageCount"] for day in answer.data["dailyStats"]] == [0] * 7


def test_an_idempotency_key_belongs_to_its_account(stack, owner, client):
    key = uuid.uuid4().hex
    first, second = owner.create(["a.jpg"], key=key), client.create(["a.jpg"], key=key)
    other_body = client.create(["b.jpg"], key=key)
    assert (first.status, second.status) == (201, 201)
    assert first.data["orderId"] != second.data["orderId"] and "Idempotent-Replayed" not in second.headers
    assert other_body.status == 409


# ---- Keys

@pytest.mark.parametrize("method, template", KEYED, ids=lambda word: word.replace(ORDERS, ""))
def test_every_endpoint_refuses_who_has_no_key(owner, anonymous, method, template):
    path = fill(template, owner.pending, owner.webhook, owner.event)
    for header, code in ((None, "AUTH_NOT_AUTHENTICATED"), (UNKNOWN_KEY + "x", "AUTH_TOKEN_INVALID_FORMAT"),
                         (UNKNOWN_KEY, "AUTH_TOKEN_INVALID")):
        answer = anonymous.request(method, path, body_of(method, template, owner.pending),
                                headers={"Authorization": header} if header else None)
        assert answer.status == 401 and answer.code == code, answer
        assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert "RateLimit-Limit" not in answer.headers


@pytest.mark.parametrize("make", [
    lambda key: key + "\0", lambda key: key[:-1], lambda key: key + " x", lambda key: key.swapcase(), lambda key: key + "," + key,
    lambda key: key.replace("iw_live_", "iw_live_%20"), lambda key: "\t" + key + "\t\x0b", lambda key: "é" + key],
    ids=["zero", "short", "more", "case", "twice", "encoded", "blanks", "latin-1"])
def test_only_the_exact_text_of_a_key_is_accepted(stack, client, make):
    request = f"GET {ORDERS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {make(client.key)}\r\nConnection: close\r\n\r\n"
    assert statuses(once(stack, request)) in ([400], [401])


def test_a_key_is_only_accepted_in_its_header(stack, client, anonymous):
    for path, headers in ((f"{ORDERS}?access_token={client.key}", {}), (f"{ORDERS}?Authorization=Bearer%20{client.key}", {}),
                          (ORDERS, {"X-Api-Key": client.key}), (ORDERS, {"Cookie": f"key={client.key}"}),
                          (ORDERS, {"Proxy-Authorization": f"Bearer {client.key}"}), (ORDERS, {"Http-Authorization": client.key})):
        assert anonymous.get(path, headers=headers).status == 401
    twice = (f"GET {ORDERS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.key}\r\n"
             f"Authorization: {UNKNOWN_KEY}\r\nConnection: close\r\n\r\n")
    assert statuses(once(stack, twice)) == [400]


def test_how_long_a_key_is_looked_for_tells_nothing(stack, client):
    """Printed, not asserted: the comparison of SHA-256 digests takes constant time (http/auth.c)."""
    near = client.key[:-1] + ("0" if client.key[-1] != "0" else "1")
    times = {"no character right": [], "all but the last right": []}
    keys = {"no character right": UNKNOWN_KEY, "all but the last right": "Bearer " + near}
    with Wire(stack, source="127.0.0.9") as wire:
        for number in range(50):
            for name in sorted(times, reverse=bool(number % 2)):
                begin = time.perf_counter()
                wire.send(f"GET {ORDERS} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {keys[name]}\r\n\r\n")
                status, _, _ = wire.answer()
                times[name].append((time.perf_counter() - begin) * 1e6)
                assert status in (401, 429)
    for name, list_us in times.items():
        print(f"{name}: median {statistics.median(list_us):.0f} us, quartiles "
              f"{[round(value) for value in statistics.quantiles(list_us, n=4)]}")


# ---- Signed URLs

def parts_of(url):
    return dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))


def test_a_signed_url_is_only_valid_for_its_method_and_file(stack, owner, anonymous, jpeg):
    download = owner.get(f"{ORDERS}/{owner.complete}/download").data["downloadUrl"]
    upload = owner.post(f"{ORDERS}/{owner.pending}/refresh-urls").data["files"][0]["uploadUrl"]
    thumbnail = owner.detail(owner.complete).data["thumbnailImageUrl"]
    path_in, path_out = (urllib.parse.urlsplit(url).path for url in (upload, download))
    tries = [("GET", upload), ("HEAD", upload), ("PUT", download), ("PUT", thumbnail),
             ("GET", upload.replace(path_in, path_out)), ("PUT", download.replace(path_out, path_in)),
             ("GET", thumbnail.replace("/thumb/", "/zip/")), ("GET", download.replace("/out/", "/in/")),
             ("PUT", download + "&m=52428800"), ("GET", upload.replace("&m=52428800", ""))]
    for method, url in tries:
        answer = anonymous.request(method, url, jpeg if method == "PUT" else None, key=False)
        is_method_right = (method == "PUT") == ("/in/" in url)
        assert answer.status == (403 if is_method_right else 405), (method, url, answer)
        if method != "HEAD":
            assert answer.code == ("URL_SIGNATURE_INVALID" if is_method_right else "METHOD_NOT_ALLOWED")
    for method in ("POST", "DELETE", "PATCH", "TRACE", "PROPFIND", "MKCOL", "MOVE", "COPY"):
        for url in (upload, download):
            assert anonymous.request(method, url, key=False).status == 405, (method, url)
    assert owner.detail(owner.pending).data["files"][0]["status"] == "pending"


def test_a_signature_opens_no_other_accounts_file(owner, client, anonymous, jpeg):
    mine = client.create(["mine.jpg"]).data
    url, theirs = mine["files"][0]["uploadUrl"], owner.pending
    answer = anonymous.upload(url.replace(mine["orderId"], theirs), jpeg)
    assert answer.status == 403 and answer.code == "URL_SIGNATURE_INVALID", answer
    order = client.order_whole([("a.jpg", jpeg)])["orderId"]
    download = client.get(f"{ORDERS}/{order}/download").data["downloadUrl"]
    theirs = owner.get(f"{ORDERS}/{owner.complete}/download").data["downloadUrl"]
    swapped = theirs.split("?")[0] + "?" + download.split("?")[1]
    assert anonymous.request("GET", swapped, key=False).code == "URL_SIGNATURE_INVALID"
    # The API key of another account does not help.
    assert client.request("GET", swapped[len(client.stack.url):]).code == "URL_SIGNATURE_INVALID"


def test_the_time_of_a_signed_url_cannot_be_moved(stack, owner, anonymous, jpeg):
    signer = Signer(stack)
    key = urllib.parse.urlsplit(owner.upload_url).path[len("/files/"):]
    expires = int(parts_of(owner.upload_url)["e"])
    for other in (expires + 1, expires + 10 ** 9, 0, -1, 9 * 10 ** 18, 10 ** 30):
        answer = anonymous.upload(owner.upload_url.replace(f"e={expires}", f"e={other}"), jpeg)
        assert answer.code == "URL_SIGNATURE_INVALID", (other, answer)
    gone = anonymous.upload(signer.put(key, expires=int(time.time()) - 1), jpeg)
    assert gone.status == 403 and gone.code == "URL_EXPIRED"
    # The signature is valid, but the time is invalid or overflows.
    for odd in (0, -5, 2 ** 63 // 1000 + 1, 2 ** 63):
        assert anonymous.upload(signer.put(key, expires=odd), jpeg).status == 403, odd


@pytest.mark.parametrize("spelling", ["%73=", "S=", "s=&s=", "s[]=", ";s=", "%26s=", "s%3D", "&&s="])
def test_a_signature_is_read_in_one_spelling(owner, anonymous, jpeg, spelling):
    answer = anonymous.upload(owner.upload_url.replace("&s=", "&" + spelling), jpeg)
    assert answer.status == 403 and answer.code == "URL_SIGNATURE_INVALID", answer


# ---- Paths

TRICKS = ["/../{}", "/%2e%2e/{}", "/%2e%2e%2f{}", "//{}", "/./{}", "/{}/", "/{}//", "/{}/.", "/{}/..", "/{}%2f..", "/{}%00", "/{}%00.jpg",
          "/%c0%ae%c0%ae/{}", "/%e0%80%ae%e0%80%ae/{}", "/..;/{}", "/{};x", "/\\{}", "/{}%5c..", "/x/../{}", "/%252e%252e/{}", "/{}%20", "/{}%0a",
          "/{}%0d%0aX:y", "/{}#x", "/%2f{}", "/../../../../etc/passwd", "/%2e%2e/%2e%2e/%2e%2e/etc/passwd", "/{}\xff", "/{}%ff", "/{}\u202e"]


@pytest.mark.parametrize("trick", TRICKS)
def test_no_spelling_of_a_path_leads_to_another_file(stack, owner, trick):
    """A valid signature is refused with another spelling of the path. One trailing slash is ignored."""
    download = urllib.parse.urlsplit(owner.get(f"{ORDERS}/{owner.complete}/download").data["downloadUrl"])
    key = download.path[len("/files/"):]
    path = "/files" + trick.replace("{}", key)
    data = once(stack, f"GET {path}?{download.query} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode("utf-8"))
    found = statuses(data)
    assert len(found) == 1 and found[0] in ((200,) if trick == "/{}/" else (400, 403, 404)), (path, data[:300])
    assert b"root:" not in data and b"\r\nX:y" not in data


@pytest.mark.parametrize("trick", ["/api/v2/orders/../../../files/{}", "/files/{}/../../../api/v2/orders", "/api/v2/%2e%2e/%2e%2e/internal/upload-check",
                                   "/files/../internal/upload-check", "/internal/upload-check/../../api/v2/orders", "/api/v2/orders/%2e%2e",
                                   "/api/v2/orders%2f{}", "/api/v2/orders/{}%2fdownload", "/api//v2/orders/..//orders", "/API/v2/orders", "/api/v2/./orders",
                                   "/api/v2/../../metrics", "/files/../metrics", "/imgward-store/out", "/files/..%2fimgward-store/out", "/metrics/../api/v2/orders"])
@pytest.mark.parametrize("method", ["GET", "PUT", "POST"])
def test_no_path_leads_round_a_location(stack, client, owner, method, trick):
    """nginx matches locations by the normalised path, the pool by the path as sent; no trick bypasses either."""
    path = trick.replace("{}", f"in/{owner.pending}/1" if "files" in trick else owner.pending)
    data = once(stack, f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.key}\r\nContent-Length: 2\r\n"
                "Connection: close\r\n\r\n{}")
    assert statuses(data)[0] in (400, 403, 404, 405), (path, data[:300])
    assert b"secret" not in data and b"Imgward-" not in data


def test_a_client_cannot_set_the_parameters_of_nginx(stack, client, anonymous, owner, jpeg):
    lies = {"IMGWARD-ROUTE": "/internal/upload-check", "Imgward-Route": "/internal/upload-check", "Remote-Addr": "127.0.0.1", "Request-Id": "x",
            "X-Request-Id": "x" * 32, "X-Accel-Redirect": "/imgward-store/x", "X-Forwarded-For": "127.0.0.1", "X-Original-URI": ORDERS,
            "X-Rewrite-Url": "/metrics", "X-Http-Method-Override": "DELETE", "Script-Name": "/x", "Document-Root": "/etc", "Proxy": "http://evil.example"}
    answer = client.request("GET", ORDERS, headers=lies)
    assert answer.status == 200 and re.fullmatch("[0-9a-f]{32}", answer.headers["X-Request-Id"])
    refused = anonymous.request("GET", ORDERS, headers=lies)
    assert refused.status == 401
    assert client.get(f"{ORDERS}/webhooks/{owner.webhook}", headers=lies).status == 404


# ---- Injection

NASTY = ["a\r\nX-Evil: 1", "a\nb", "a\rb", "\x1b[31mred", "a\x00b", "\u2028", "\x85", "\u202egpj.exe", "<script>alert(1)</script>", "${jndi:ldap://x}",
         "%0d%0aX-Evil:%201", "'; DROP TABLE orders; --", '"quoted\\"', "../../etc/passwd", "%s%n%x", "\ufeff", "a" * 60]


@pytest.mark.parametrize("text", NASTY, ids=lambda text: repr(text)[:30])
def test_no_text_of_a_client_becomes_a_header_or_a_line(stack, client, text):
    """Accepted names are returned unchanged; control characters are refused."""
    is_taken = not any(ord(character) < 0x20 or ord(character) in (0x7F, *range(0x80, 0xA0)) for character in text)
    answer = client.create(["a.jpg"], orderName=text)
    assert answer.status == (201 if is_taken else 400), answer
    if answer.status == 201:
        assert client.detail(answer.data["orderId"]).data["orderName"] == text
    named = client.create([text.replace("/", "").replace("\\", "") + ".jpg"])
    for given in (answer, named, client.get(f"{ORDERS}?keyword=" + urllib.parse.quote(text)),
                  client.get(f"{ORDERS}/" + urllib.parse.quote(text, safe="")),
                  client.post(f"{ORDERS}/webhooks", {"url": "https://x.example/", "name": text})):
        assert given.status < 500 and "X-Evil" not in given.headers, given


def test_a_file_name_stays_inside_its_header(stack, client, anonymous, jpeg):
    name = "a\"; filename=evil.exe; x=\"';%0d%0aX-Evil: 1,ä\u202e.jpg"
    order = client.order_whole([(name, jpeg)])["orderId"]
    url = client.get(f"{ORDERS}/{order}/download").data["downloadUrl"]
    answer = anonymous.request("GET", url, key=False)
    assert answer.status == 200 and "X-Evil" not in answer.headers
    disposition = answer.headers["Content-Disposition"]
    plain, coded = re.fullmatch(r"attachment; filename=\"([^\"\\]*)\"; filename\*=UTF-8''([!#$&+.^_`|~0-9A-Za-z%-]*)", disposition).groups()
    assert urllib.parse.unquote(coded) == "a_; filename=evil.exe; x=_';%0d%0aX-Evil_ 1,ä.jpg" and plain.endswith(".jpg")


def test_every_line_of_the_logs_stays_one_json_object(stack, client):
    """The text has invalid UTF-8, quotes, escapes, and line ends in every encoding."""
    places = {name: os.path.getsize(path) for name, path in log_paths(stack).items()}
    paths = [b"/api/v2/orders/\xff\xfe\xc0\xaf", b"/api/v2/orders/\"\\", b"/api/v2/orders/\x1b[31m", b"/api/v2/orders/%0a{\"level\":\"error\"}",
             b"/api/v2/orders/\xe2\x80\xa8", b"/files/out/\xf0\x9f", b"/\xff", b"/api/v2/orders?keyword=\xff\"\\%0a"]
    for path in paths:
        once(stack, b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nUser-Agent: \"\\\xff\x1b\r\nReferer: \"}\r\nAuthorization: Bearer "
             + client.key.encode() + b"\r\nConnection: close\r\n\r\n")
    client.post(f"{ORDERS}/anti-ai", b'{"a":"\xff', headers={"Content-Type": "application/json"})
    client.post(f"{ORDERS}/anti-ai", b"{}", headers={"Content-Type": "text/\xff\"\\"})
    for name, path in log_paths(stack).items():
        lines, end = [], time.monotonic() + 60
        while len(lines) < (len(paths) if name == "api" else 1) and time.monotonic() < end:
            time.sleep(0.2)  # the log line follows the response
            with open(path, "rb") as file:
                file.seek(places[name])
                lines = file.read().split(b"\n")[:-1]
        assert len(lines) >= len(paths) or name != "api", name
        for line in lines:
            assert isinstance(json.loads(line.decode("utf-8")), dict), (name, line)
            assert client.key.encode() not in line


def log_paths(stack):
    return {name: os.path.join(stack.environment["IMGWARD_LOG"], name + ".log") for name in ("api", "access")}


# ---- One request is one request

PROBE = "GET /smuggled-{} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

SMUGGLING = {
    "two lengths": "Content-Length: 0\r\nContent-Length: {n}\r\n\r\n{probe}",
    "the same length twice": "Content-Length: {n}\r\nContent-Length: {n}\r\n\r\n{probe}",
    "a list of lengths": "Content-Length: {n}, 0\r\n\r\n{probe}",
    "a length with a sign": "Content-Length: +{n}\r\n\r\n{probe}",
    "a negative length": "Content-Length: -1\r\n\r\n{probe}",
    "a length in hexadecimal": "Content-Length: 0x{n:x}\r\n\r\n{probe}",
    "a length that overflows": "Content-Length: 18446744073709551616\r\n\r\n{probe}",
    "a length with a blank inside": "Content-Length: 0 {n}\r\n\r\n{probe}",
    "length and chunks": "Content-Length: {n}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{probe}",
    "chunks and length": "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n{probe}",
    "an encoding that is none": "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n{probe}",
    "two encodings": "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{probe}",
    "chunked, identity": "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{probe}",
    "a vertical tab": "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n{probe}",
    "a blank before the colon": "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n{probe}",
    "a folded header": "X-Fold: a\r\n Content-Length: {n}\r\n\r\n{probe}",
    "a folded encoding": "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n{probe}",
    "a size that is none": "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n{probe}",
    "a size that overflows": "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n{probe}",
    "a negative size": "Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n{probe}",
    "a zero in a header": "X-Zero: a\x00b\r\nContent-Length: 0\r\n\r\n{probe}",
    "a bare carriage return": "X: a\rContent-Length: {n}\r\n\r\n{probe}",
}


@pytest.mark.parametrize("how", SMUGGLING)
def test_an_ambiguous_request_is_refused(stack, client, how):
    """nginx refuses ambiguous requests and closes the connection, so bytes after them are not served as a request."""
    name = uuid.uuid4().hex
    probe = PROBE.format(name)
    request = (f"POST {ORDERS}/anti-ai HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.key}\r\n"
               + SMUGGLING[how].format(n=len(probe), probe=probe))
    found = statuses(once(stack, request))
    assert len(found) == 1 and found[0] in (400, 411, 413, 501), (how, found)
    with open(log_paths(stack)["access"], encoding="utf-8") as file:
        assert "smuggled-" + name not in file.read()


@pytest.mark.parametrize("method, path", [("GET", ORDERS), ("DELETE", f"{ORDERS}/webhooks/1"), ("POST", f"{ORDERS}/none"), ("GET", "/files/out/1/1?x=1"),
                                          ("GET", "/nowhere"), ("PUT", "/files/out/1/1"), ("OPTIONS", "/files/in/1/1")])
def test_the_body_of_a_request_is_never_the_next_request(stack, client, method, path):
    """A body that no endpoint reads is dropped or closes the connection; it is never served as a request."""
    name = uuid.uuid4().hex
    probe = PROBE.format(name)
    with Wire(stack) as wire:
        wire.send(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.key}\r\nContent-Length: {len(probe)}\r\n\r\n{probe}"
                  f"GET {ORDERS}/2 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.key}\r\nConnection: close\r\n\r\n")
        found = statuses(wire.rest())
    assert len(found) in (1, 2) and found[1:] in ([], [404]), found
    with open(log_paths(stack)["access"], encoding="utf-8") as file:
        assert "smuggled-" + name not in file.read()


def test_a_hundred_requests_in_one_piece_are_answered_in_their_order(stack, client):
    numbers = [10 ** 12 + number for number in range(100)]
    request = "".join(f"GET {ORDERS}?keyword={number}&limit={number % 7 - 3} HTTP/1.1\r\nHost: localhost\r\n"
                      f"Authorization: Bearer {client.key}\r\n{'Connection: close' if number == numbers[-1] else 'X: y'}\r\n\r\n"
                      for number in numbers)
    found = statuses(once(stack, request))
    assert found == [200 if number % 7 - 3 in (-1, 1, 2, 3) else 400 for number in numbers]


def test_expect_is_answered_and_other_expectations_do_no_harm(stack, client):
    body = json.dumps({"idempotencyKey": uuid.uuid4().hex, "files": [{"fileName": "a.jpg"}]})
    for expect in ("100-continue", "100-Continue", "200-ok", "100-continue, x", ""):
        with Wire(stack) as wire:
            wire.send(f"POST {ORDERS}/anti-ai HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.key}\r\nExpect: {expect}\r\n"
                      f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n")
            if expect.lower() == "100-continue":
                assert wire.socket.recv(100).startswith(b"HTTP/1.1 100")
            wire.send(body)
            assert statuses(wire.rest())[0] in (200, 201), expect


def test_chunked_bodies_are_read_as_they_are_meant(stack, client):
    body = json.dumps({"idempotencyKey": uuid.uuid4().hex, "files": [{"fileName": "a.jpg"}]})
    half = len(body) // 2
    chunks = f"{half:x};ext=\"1\"\r\n{body[:half]}\r\n{len(body) - half:X}\r\n{body[half:]}\r\n0\r\nTrailer: x\r\n\r\n"
    head = (f"POST {ORDERS}/anti-ai HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {client.key}\r\nContent-Type: application/json\r\n"
            "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
    assert statuses(once(stack, head + chunks)) == [201]
    # Half a chunk, then nothing.
    with Wire(stack) as wire:
        wire.send(head + chunks[:len(chunks) // 2])
        wire.socket.shutdown(1)
        assert statuses(wire.rest()) in ([], [400])


# ---- Floods

def test_requests_without_a_key_are_limited_for_each_address(stack, client):
    counts = []
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        for _ in range(10):  # nginx allows five a second, which a slow machine may not reach at once
            counts += sum(threads.map(lambda _: flood(stack, 75, "X: y", "127.0.0.2"), range(4)), [])
            if counts.count(429) > 50:
                break
    assert counts.count(401) >= 100 and counts.count(429) > 50, (counts.count(401), counts.count(429))
    # Text that only looks like a key is limited like a missing key; otherwise the pool would have to check it.
    assert 429 in sum((flood(stack, 50, f"Authorization: Bearer IW_LIVE_{'a' * 43}", "127.0.0.2") for _ in range(10)), [])
    # Requests with a key are served from the same address; other addresses are not affected.
    assert flood(stack, 20, f"Authorization: Bearer {client.key}", "127.0.0.2") == [200] * 20
    assert flood(stack, 1, "X: y", "127.0.0.3") == [401]
    for _ in range(30):  # after a fifth of a second another request is allowed
        with Wire(stack, source="127.0.0.2") as wire:
            flood(stack, 20, "X: y", "127.0.0.2")
            wire.send(f"POST {ORDERS}/anti-ai HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{{}}")
            status, headers, body = wire.answer()
        if status == 429:
            break
    assert status == 429 and int(headers["retry-after"][0]) > 0
    error = json.loads(body)
    assert error["code"] == "RATE_LIMIT_EXCEEDED" and error["requestId"] == headers["x-request-id"][0]


def test_of_ipv6_the_network_is_counted():
    """The pattern of nginx/http.conf, applied to addresses as nginx writes them."""
    path = os.path.join(os.path.dirname(openapi.PATH), "..", "nginx", "http.conf")
    with open(path, encoding="utf-8") as file:
        pattern = re.compile(re.search(r'"~(\^.*imgward_prefix.*)" \$imgward_prefix', file.read())[1].replace("?<", "?P<"))
    for address, network in (("2001:db8:1:2:a:b:c:d", "2001:db8:1:2:"), ("2001:db8:1:2::1", "2001:db8:1:2:"), ("2001:db8::1", "2001:db8::"),
                             ("fe80::1:2:3:4", "fe80::"), ("192.0.2.1", None), ("::1", None), ("::ffff:192.0.2.1", None)):
        found = pattern.match(address)
        assert (found and found["imgward_prefix"]) == network, address


def flood(stack, count, header, source):
    """Sends count requests on one connection; returns the statuses."""
    found = []
    with Wire(stack, source=source) as wire:
        for _ in range(count):
            wire.send(f"GET {ORDERS}?limit=1 HTTP/1.1\r\nHost: localhost\r\n{header}\r\n\r\n")
            found.append(wire.answer()[0])
    return found


def test_an_address_that_sends_many_unknown_keys_is_throttled(stack, client):
    """The limit is 60 per process and minute (src/http). Valid keys and other addresses are still served."""
    assert flood(stack, 5, f"Authorization: Bearer {client.key}", "127.0.0.4") == [200] * 5
    found, end = [], time.monotonic() + 300
    for turn in itertools.count():
        found += flood(stack, 100, f"Authorization: Bearer iw_live_{turn:043d}", "127.0.0.4")
        if found.count(429) >= 100 or time.monotonic() > end:
            break
    assert found.count(401) >= 60 and found.count(429) >= 100, (found.count(401), found.count(429))
    assert flood(stack, 1, f"Authorization: {UNKNOWN_KEY}", "127.0.0.5") == [401]


# ---- Slow senders, checked

def test_slow_senders_of_headers_are_sent_away(dribblers):
    """nginx's client_header_timeout is 20 s from the first byte, even if further bytes arrive steadily."""
    dribblers.thread.join()
    print(f"{len(dribblers.ended)} ended, the last {max(dribblers.ended.values()):.0f} s after they began")
    assert len(dribblers.ended) == 100


# ---- Information leaks

@pytest.mark.parametrize("headers, body", [
    ({"Server": "nginx/1.22.1"}, "{}"), ({"X-Powered-By": "x"}, "{}"), ({}, '{"message":"open /var/lib/imgward/store/x"}'),
    ({}, '{"message":"You have an error in your SQL syntax"}'), ({}, '{"message":"SELECT id FROM orders"}'), ({}, '{"message":"MariaDB is away"}'),
    ({}, '{"message":"orders.c:12"}'), ({}, '{"message":"connect: No such file or directory"}')])
def test_the_check_of_every_response_finds_leaks(headers, body):
    assert openapi.leaks({"Server": "nginx", **headers}, body.encode())


def test_the_look_at_every_answer_lets_the_usual_pass(client):
    answer = client.list()
    assert openapi.leaks(answer.headers, answer.body) == []
