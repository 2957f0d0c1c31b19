"""Contract 9: sources and targets that behave like real servers. test_fetch.c and test_decode.c cover more cases."""
import concurrent.futures
import contextlib
import datetime
import gzip
import os
import random
import shutil
import signal
import socket
import subprocess
import time
import zlib

import pytest

import pictures
from authority import Authority, served
from client import ORDERS
from remotes import Remotes

WITH_URLS = "anti-ai/with-urls"
LATER = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


@pytest.fixture(scope="module")
def photo():
    return pictures.jpeg(300, 200, seed=91)


@pytest.fixture(scope="module")
def remotes(photo):
    made = Remotes()
    made.gives["/good.jpg"] = photo
    yield made
    made.close()


@pytest.fixture(scope="module", autouse=True)
def short(stack, remotes):
    with stack.configured("worker", "retry_first_ms", "200"):
        yield


def fetched(client, urls, seconds=300):
    """Waits for an order of these sources; returns {position: "CODE: message"} of the failed files."""
    files = [{"fileName": f"{number}.jpg", "imageUrl": url} for number, url in enumerate(urls)]
    created = client.create(files, kind=WITH_URLS)
    assert created.status == 201, created
    return failures(client.wait(created.data["orderId"], seconds))


def failures(order):
    return {int(file["fileName"].removesuffix(".jpg")): "{code}: {message}".format(**file["error"])
            for file in order["files"] if file["error"]}


def target(url, **fields):
    return {"fileKey": "k", "url": url, "presignedUrlExpiresAt": LATER, **fields}


def push(client, source, targets):
    return client.create([{"fileName": f"{number}.jpg", "imageUrl": source} for number in range(len(targets))],
                         kind=WITH_URLS, mode={"zeroCopy": True}, outputTargets=targets)


def pushed(client, source, targets, seconds=300):
    created = push(client, source, targets)
    assert created.status == 201, created
    return client.wait(created.data["orderId"], seconds)


# ---- responses of sources ----


def raw_deflate(data):
    encoder = zlib.compressobj(wbits=-15)
    return encoder.compress(data) + encoder.flush()


def test_encoded_sources_are_decoded(client, remotes, photo):
    labelled = {
        "/gzip": ("gzip", gzip.compress(photo)),
        "/x-gzip": ("x-gzip", gzip.compress(photo)),
        "/deflate": ("deflate", zlib.compress(photo)),
        "/raw-deflate": ("deflate", raw_deflate(photo)),
        "/not-at-all": ("gzip", photo),
        "/aws": ("aws-chunked", photo),
        "/charset": ("utf-8", photo),
    }
    remotes.gives.update({path: (200, {"Content-Encoding": coding}, body) for path, (coding, body) in labelled.items()})
    assert fetched(client, [remotes.url(path) for path in labelled]) == {}
    assert remotes.headers("/gzip")["Accept-Encoding"] == "identity"


def test_encoded_sources_that_are_no_pictures_are_refused(client, remotes, photo):
    body = gzip.compress(photo)
    remotes.gives.update({
        "/damaged-gzip": (200, {"Content-Encoding": "gzip"}, body[:4000] + b"x" * 4000 + body[8000:]),
        "/cut-gzip": (200, {"Content-Encoding": "gzip"}, body[:len(body) // 2]),
        "/page": (200, {"Content-Encoding": "gzip"}, gzip.compress(b"<html>please log in</html>" * 9)),
        "/compress": (200, {"Content-Encoding": "compress"}, b"\x1f\x9d" + bytes(100)),
        "/twice": (200, {"Content-Encoding": "gzip, gzip"}, gzip.compress(body)),
    })
    failed = fetched(client, [remotes.url(path) for path in ("/damaged-gzip", "/cut-gzip", "/page", "/compress", "/twice")])
    assert failed[0].startswith("SOURCE_UNREACHABLE: ") and "Content-Encoding" in failed[0]
    assert failed[1].startswith("IMAGE_CORRUPT: ")
    assert all(failed[number].startswith("IMAGE_FORMAT_UNSUPPORTED: ") for number in (2, 3, 4)), failed
    assert all("Content-Encoding" in failed[number] for number in (3, 4)), failed
    assert remotes.count("/damaged-gzip") == 5 and remotes.count("/page") == 1 and remotes.count("/compress") == 2


def test_the_size_limit_counts_decoded_bytes(client, stack, remotes, photo):
    """A small body decodes to the first bytes of a picture and many zeros."""
    bomb = gzip.compress(photo + bytes(50_000_000))
    remotes.gives["/bomb"] = (200, {"Content-Encoding": "gzip"}, bomb)
    remotes.gives["/bomb-in-bomb"] = (200, {"Content-Encoding": "gzip, gzip"}, gzip.compress(bomb))
    with stack.configured("store", "upload_max_bytes", "1000000"):
        failed = fetched(client, [remotes.url("/bomb"), remotes.url("/bomb-in-bomb"), remotes.url("/good.jpg")])
    assert len(bomb) < 200_000 and set(failed) == {0, 1}
    assert failed[0].startswith("SOURCE_TOO_LARGE: ") and "Content-Encoding" in failed[1], failed


def test_a_part_is_not_the_file(client, remotes, photo):
    def part(first, last, of):
        return 206, {"Content-Range": f"bytes {first}-{last}/{of}"}, photo[first:last + 1]
    size = len(photo)
    remotes.gives.update({"/whole": part(0, size - 1, size), "/first-half": part(0, size // 2, size),
                         "/once-half": [part(0, size // 2, size), photo], "/no-range": (206, {}, photo)})
    failed = fetched(client, [remotes.url(path) for path in ("/whole", "/first-half", "/once-half", "/no-range")])
    assert set(failed) == {1, 3}
    assert all(text.startswith("SOURCE_UNREACHABLE: ") and "206" in text for text in failed.values()), failed
    assert remotes.count("/first-half") == 5 and remotes.count("/once-half") == 2


def test_each_status_of_a_source_has_its_rule(client, remotes, photo):
    taken, final, retried = [201, 203], [204, 205, 300, 304, 401, 402, 403, 404, 405, 410, 416], [202, 408, 421, 425, 429, 502]
    for status in final:
        remotes.gives[f"/final/{status}"] = (status, {}, b"" if status in (204, 205, 304) else b"no")
    for status in taken:
        remotes.gives[f"/taken/{status}"] = (status, {}, photo)
    for status in retried:
        remotes.gives[f"/retried/{status}"] = [(status, {}, b"later"), photo]
    paths = [f"/final/{status}" for status in final]
    paths += [f"/taken/{status}" for status in taken] + [f"/retried/{status}" for status in retried]
    failed = fetched(client, [remotes.url(path) for path in paths])
    assert set(failed) == set(range(len(final))), failed
    for number, status in enumerate(final):
        assert failed[number].startswith("SOURCE_REFUSED: ") and str(status) in failed[number]
        assert remotes.count(f"/final/{status}") == 1
    assert "presigned URL may have expired" in failed[final.index(403)]
    assert all(remotes.count(f"/retried/{status}") == 2 for status in retried)


def test_redirects_of_every_form_are_followed(client, remotes, photo):
    remotes.gives["/dir/ok%20pic.jpg"] = photo
    forms = {"/relative": "good.jpg", "/fragment": "/good.jpg#top", "/same-scheme": remotes.url("/good.jpg").removeprefix("http:"),
             "/blank": "/dir/ok pic.jpg"}
    remotes.gives.update({path: (302, {"Location": location}, b"") for path, location in forms.items()})
    remotes.gives["/nowhere"] = (302, {}, b"")
    failed = fetched(client, [remotes.url(path) for path in (*forms, "/nowhere")])
    assert set(failed) == {len(forms)} and failed[len(forms)].startswith("SOURCE_REFUSED: ") and "302" in failed[len(forms)]


def test_a_source_that_is_not_there_is_refused_with_its_reason(client, remotes):
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        failed = fetched(client, [f"http://127.0.0.1:{unheard.getsockname()[1]}/a.jpg", "http://unknown.invalid/a.jpg",
                                  "http://10.0.0.1/a.jpg"])
    assert failed[0].startswith("SOURCE_UNREACHABLE: ") and "refused" in failed[0]
    assert failed[1].startswith("SOURCE_UNREACHABLE: ") and "resolved" in failed[1]
    assert failed[2] == failed[1]  # a client cannot find out which names the internal DNS knows


# ---- slow servers ----


def test_a_source_and_a_target_may_think(client, remotes, photo):
    """Both wait in parallel, longer than the 15 seconds after which a slow body is cut off."""
    remotes.gives["/thinks"] = ("pause", 17, photo)
    remotes.takes["/thinks"] = ("pause", 25, 200)
    order = push(client, remotes.url("/good.jpg"), [target(remotes.url("/thinks"))]).data["orderId"]
    assert fetched(client, [remotes.url("/thinks")]) == {}
    assert client.wait(order)["status"] == "complete"
    assert remotes.count("/thinks") == 2 and len(remotes.put["/thinks"]) == 1


# ---- responses of targets ----


def test_each_status_of_a_target_has_its_rule(client, remotes):
    taken, final, retried = [200, 201, 202, 204], [300, 304, 400, 401, 403, 404, 409, 410, 412], [408, 421, 425, 429, 500]
    remotes.takes.update({f"/t/{status}": status for status in taken + final})
    remotes.takes.update({f"/t/{status}": [status, 200] for status in retried})
    order = pushed(client, remotes.url("/good.jpg"), [target(remotes.url(f"/t/{status}")) for status in taken + retried + final])
    failed = failures(order)
    assert set(failed) == set(range(len(taken + retried), len(taken + retried + final))), failed
    for number, status in enumerate(final, len(taken + retried)):
        assert failed[number].startswith("OUTPUT_TARGET_REFUSED: ") and str(status) in failed[number]
        assert remotes.count(f"/t/{status}") == 1
    assert all(remotes.count(f"/t/{status}") == 2 for status in retried)


def test_a_redirect_of_a_target_is_refused_and_names_the_host(client, remotes):
    remotes.takes["/to-elsewhere"] = (307, {"Location": "https://elsewhere.example:8443/x?secret=1"}, b"")
    order = pushed(client, remotes.url("/good.jpg"), [target(remotes.url("/to-elsewhere"))])
    [text] = failures(order).values()
    assert "307" in text and "elsewhere.example" in text and "secret" not in text
    assert remotes.count("/to-elsewhere") == 1


def test_a_status_of_a_target_counts_though_its_body_is_cut_off(client, remotes):
    remotes.takes["/cut-201"] = (201, {"Content-Length": "100"}, b"half")
    remotes.takes["/long-200"] = (200, {}, b"x" * 1_000_000)
    order = pushed(client, remotes.url("/good.jpg"), [target(remotes.url("/cut-201")), target(remotes.url("/long-200"))])
    assert failures(order) == {} and remotes.count("/cut-201") == 1 and remotes.count("/long-200") == 1


# ---- headers of output targets ----


def azure_like(headers):
    """Azure's Put Blob needs a header that a presigned URL cannot contain."""
    return 201 if headers.get("x-ms-blob-type") == "BlockBlob" else (400, {}, b"<Error><Code>MissingRequiredHeader</Code></Error>")


def test_headers_of_a_target_are_sent_as_they_are(client, stack, remotes):
    remotes.takes.update({"/c/azure": azure_like, "/c/azure-without": azure_like})
    given = {"x-ms-blob-type": "BlockBlob", "Content-Type": "application/x-own; a=\"b\"", "Cache-Control": "no-cache, max-age=0",
             "Content-Disposition": "attachment; filename*=UTF-8''b%C3%BC.jpg", "X-Amz-Meta-Note": "a  b: c\\d",
             "x-goog-acl": "private"}
    targets = [target(remotes.url("/c/azure"), headers=given), target(remotes.url("/c/azure-without")),
               target(remotes.url("/c/plain"), headers=[]), target(remotes.url("/c/empty"), headers={}),
               target(remotes.url("/c/null"), headers=None)]
    order = pushed(client, remotes.url("/good.jpg"), targets)
    failed = failures(order)
    assert set(failed) == {1} and "status 400" in failed[1]
    [(sent, body)] = remotes.put["/c/azure"]
    assert {name: sent[name] for name in given} == given and sent.get_all("Content-Type") == [given["Content-Type"]]
    assert pictures.decode(body).size == (300, 200)
    for path in ("/c/plain", "/c/empty", "/c/null"):
        assert remotes.put[path][0][0]["Content-Type"] == "image/jpeg"
    stack.emptied(order["orderId"])
    assert stack.sql(f"SELECT id FROM files WHERE order_id = {order['orderId']} AND target_headers IS NOT NULL") == []


def test_headers_are_kept_with_their_file(client, stack, remotes):
    created = client.create(["0.jpg"], mode={"zeroCopy": True},
                            outputTargets=[target(remotes.url("/kept"), headers={"x-amz-meta-a": "q\"\\"})])
    [[kept]] = stack.sql(f"SELECT JSON_VALUE(target_headers, '$.\"x-amz-meta-a\"') FROM files WHERE order_id = {created.data['orderId']}")
    assert kept.replace("\\\\", "\\") == "q\"\\"


@pytest.mark.parametrize("headers, field, words", [
    ({"Authorization": "Bearer x"}, "headers.Authorization", "x-ms-"),
    ({"Host": "a"}, "headers.Host", "Content-Type"),
    ({"Content-Length": "1"}, "headers.Content-Length", "x-goog-"),
    ({"Transfer-Encoding": "chunked"}, "headers.Transfer-Encoding", "x-amz-"),
    ({"Expect": "100-continue"}, "headers.Expect", "allowed"),
    ({"x-amz-": "a"}, "headers.x-amz-", "allowed"),
    ({"x-ms-a b": "a"}, "headers", "name"),
    ({"x-ms-a\r\nHost": "a"}, "headers", "name"),
    ({"": "a"}, "headers", "name"),
    ({"x-ms-" + "a" * 200: "a"}, "headers", "128"),
    ({"x-ms-a": "b\r\nHost: c"}, "headers.x-ms-a", "printable"),
    ({"x-ms-a": "\u00fc"}, "headers.x-ms-a", "printable"),
    ({"x-ms-a": "b\u0000"}, "headers.x-ms-a", "printable"),
    ({"x-ms-a": ""}, "headers.x-ms-a", "empty"),
    ({"x-ms-a": " b"}, "headers.x-ms-a", "blank"),
    ({"x-ms-a": 1}, "headers.x-ms-a", "string"),
    ({"x-ms-a": None}, "headers.x-ms-a", "string"),
    ({"x-ms-a": "1", "X-MS-A": "2"}, "headers.X-MS-A", "twice"),
    ({f"x-ms-{number}": "a" for number in range(21)}, "headers", "20"),
    ({"x-ms-a": "b" * 8190}, "headers", "8192"),
    ("x-ms-a: b", "headers", "object"),
    ([["x-ms-a", "b"]], "headers", "object"),
])
def test_headers_that_are_not_sent_are_named(client, remotes, headers, field, words):
    answer = push(client, remotes.url("/good.jpg"), [target(remotes.url("/c/x")), target(remotes.url("/c/y"), headers=headers)])
    assert answer.status == 400 and answer.code == "VALIDATION_FAILED"
    [detail] = answer.json["details"]
    assert detail["field"] == "outputTargets[1]." + field and words in detail["message"], detail


def test_every_bad_header_is_named_in_one_answer(client, remotes):
    headers = {"Cookie": "a", "x-ms-ok": "b", "x-ms-bad": "\n", "Accept": "c"}
    answer = push(client, remotes.url("/good.jpg"), [target(remotes.url("/c/x"), headers=headers)])
    assert answer.fields() == [f"outputTargets[0].headers.{name}" for name in ("Cookie", "x-ms-bad", "Accept")]


def test_another_header_makes_another_order_of_the_same_key(client, remotes):
    def ask(value):
        return client.create([{"fileName": "0.jpg", "imageUrl": remotes.url("/good.jpg")}], key="peers-headers", kind=WITH_URLS,
                             mode={"zeroCopy": True}, outputTargets=[target(remotes.url("/c/key"), headers={"x-ms-a": value})])
    first, again, other = ask("1"), ask("1"), ask("2")
    assert first.status == 201 and again.status == 200 and again.data["orderId"] == first.data["orderId"]
    assert other.status == 409 and other.code == "IDEMPOTENCY_KEY_REUSED"


# ---- https ----


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


def test_the_fault_of_a_certificate_is_named(client, stack, authority, photo, tmp_path):
    stranger = Authority(tmp_path)
    kinds = {"expired": (authority.issue("expired", days=0), "expired"),
             "other": (authority.issue("other", host="DNS:other.example"), "another host name"),
             "own": (authority.self_signed("own"), "self-signed"),
             "stranger": (stranger.issue("stranger"), "unknown authority"),
             "good": (authority.issue("good"), None)}
    with contextlib.ExitStack() as ended:
        servers = []
        for pair, _ in kinds.values():
            servers.append(Remotes(served(pair)))
            ended.callback(servers[-1].close)
            servers[-1].gives["/a.jpg"] = photo
        plain = Remotes()
        ended.callback(plain.close)
        with stack.configured("outgoing", "ca_file", authority.file):
            urls = [server.url("/a.jpg") for server in servers]
            failed = fetched(client, urls + [plain.url("/a.jpg").replace("http:", "https:")])
            source = servers[-1].url("/a.jpg")
            refused = failures(pushed(client, source, [target(server.url("/t")) for server in servers]))
    words = [word for _, word in kinds.values()][:-1]
    assert set(failed) == {0, 1, 2, 3, 5} and set(refused) == {0, 1, 2, 3}, (failed, refused)
    for number, word in enumerate(words):
        assert failed[number].startswith("SOURCE_REFUSED: ") and word in failed[number], failed
        assert refused[number].startswith("OUTPUT_TARGET_REFUSED: ") and word in refused[number], refused
    assert failed[5].startswith("SOURCE_UNREACHABLE: ") and "TLS" in failed[5]


NGINX = """
daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 64; }}
http {{
    log_format brief "$request_method $server_protocol $uri"; access_log {folder}/access.log brief;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl http2; ssl_certificate {certificate}; ssl_certificate_key {key};
        client_max_body_size 0; root {folder}/files; dav_methods PUT;
    }}
}}
"""


def free_port():
    """Returns a port below the kernel's range for outgoing connections, where the kernel could use it before nginx does."""
    while True:
        port = random.randrange(10000, 32000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port


@pytest.fixture
def http2(tmp_path, authority, photo):
    """nginx with HTTP/2: its folder of files, its log and its address."""
    program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    certificate, key = authority.issue("http2")
    port = free_port()
    files = tmp_path / "files"
    files.mkdir()
    (files / "a.jpg").write_bytes(photo)
    for folder in (*tmp_path.parents, tmp_path, files):
        with contextlib.suppress(PermissionError):
            if os.stat(folder).st_uid == os.getuid() and str(folder) != "/":
                folder.chmod(os.stat(folder).st_mode | 0o011)
    files.chmod(0o777)
    conf = tmp_path / "nginx.conf"
    conf.write_text(NGINX.format(folder=tmp_path, port=port, certificate=certificate, key=key))
    nginx = subprocess.Popen([program, "-p", str(tmp_path), "-e", str(tmp_path / "error.log"), "-c", str(conf)])
    end = time.monotonic() + 60
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5):
            break
        assert nginx.poll() is None and time.monotonic() < end, (tmp_path / "error.log").read_text()
        time.sleep(0.05)
    yield files, tmp_path / "access.log", f"https://127.0.0.1:{port}"
    nginx.send_signal(signal.SIGTERM)
    nginx.wait(60)


def test_http_2_is_spoken_where_the_server_does(client, stack, authority, http2):
    files, log, url = http2
    with stack.configured("outgoing", "ca_file", authority.file):
        order = pushed(client, url + "/a.jpg", [target(url + "/result.jpg", headers={"x-amz-meta-a": "b"})])
    assert order["status"] == "complete", order
    assert pictures.decode((files / "result.jpg").read_bytes()).size == (300, 200)
    assert log.read_text().splitlines() == ["GET HTTP/2.0 /a.jpg", "PUT HTTP/2.0 /result.jpg"]


# ---- one server, and equal sources ----


def test_equal_sources_of_an_order_are_fetched_once(client, remotes, photo):
    remotes.gives["/same.jpg"] = ("pause", 1, photo)
    assert fetched(client, [remotes.url("/same.jpg")] * 20) == {}
    assert remotes.count("/same.jpg") == 1


def test_equal_sources_of_an_order_fail_together(client, remotes):
    remotes.gives["/same-503"] = (503, {}, b"")
    failed = fetched(client, [remotes.url("/same-503")] * 100)
    assert len(failed) == 100 and len(set(failed.values())) == 1 and "503" in failed[0], failed
    assert remotes.count("/same-503") == 5  # the attempts of one file


def test_a_server_that_is_down_gets_each_source_once_and_the_retries_of_one(client, remotes):
    """An order with many URLs of one server must not multiply its load. Sources of a working server keep their retries."""
    paths = [f"/down/{number}" for number in range(40)]
    remotes.gives.update({path: (503, {}, b"") for path in paths})
    failed = fetched(client, [remotes.url(path) for path in paths])
    counts = [remotes.count(path) for path in paths]
    assert len(failed) == 40 and all(message.startswith("SOURCE_UNREACHABLE") for message in failed.values()), failed
    assert min(counts) >= 1 and sum(counts) <= 40 + 4 + 2, counts  # two sources may retry at the same time
    failed = fetched(client, [remotes.url(path) for path in ("/good.jpg", "/down/a", "/down/b")] + [remotes.url("/good.jpg")])
    assert list(failed) == [1, 2]


def test_sources_of_a_server_that_comes_back_are_fetched(client, remotes, photo):
    paths = [f"/back/{number}" for number in range(10)]
    remotes.gives.update({path: [(503, {}, b""), photo] for path in paths})
    assert fetched(client, [remotes.url(path) for path in paths]) == {}


def test_a_server_gets_few_requests_at_the_same_time(stack, photo):
    with contextlib.ExitStack() as ended, stack.configured("outgoing", "server_requests", "2"):
        remotes = Remotes()
        ended.callback(remotes.close)
        paths = [f"/{number}.jpg" for number in range(6)]
        remotes.gives.update({path: ("pause", 0.5, photo) for path in paths})
        clients = [stack.account_new() for _ in range(2)]
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            failed = list(pool.map(lambda client: fetched(client, [remotes.url(path) for path in paths]), clients))
        assert failed == [{}, {}] and remotes.open_most == 2, (failed, remotes.open_most)


def test_slow_sources_of_several_accounts_leave_room_for_another(stack, remotes, photo):
    remotes.gives.update({f"/hangs/{number}": "hang" for number in range(60)})
    remotes.gives["/quick.jpg"] = photo
    slow = [stack.account_new() for _ in range(3)]
    with stack.configured("outgoing", "fetch_timeout_s", "300"):
        for client in slow:
            files = [{"fileName": f"{number}.jpg", "imageUrl": remotes.url(f"/hangs/{number}")} for number in range(60)]
            assert client.create(files, kind=WITH_URLS).status == 201
        time.sleep(3)  # the worker has leased as much as it may
        try:
            # No slow response ends earlier.
            assert fetched(stack.account_new(), [remotes.url("/quick.jpg")], 120) == {}
        finally:
            for number in range(60):
                remotes.gives[f"/hangs/{number}"] = 404
                remotes.let_go(f"/hangs/{number}")


@pytest.mark.parametrize("url", ["http:///127.0.0.1:8771/pic", "http:/127.0.0.1:8771/pic", "http://a..invalid/x", "http://%31.invalid/x",
                                 "http://[::1%25lo]/x", "http://:80/x"])
def test_a_url_without_a_host_is_refused_everywhere(client, remotes, url):
    """A lenient parser would use the first segment of the path as the host."""
    good, sent = remotes.url("/good.jpg"), remotes.count("/pic")
    answers = {
        "files[0].imageUrl": client.create([{"fileName": "a.jpg", "imageUrl": url}], kind=WITH_URLS),
        "files[0].originalFileUrl": client.create([{"fileName": "a.jpg", "originalFileUrl": url}]),
        "outputTargets[0].url": push(client, good, [target(url)]),
        "url": client.post("/api/v2/orders/webhooks", {"url": url}),
    }
    for field, answer in answers.items():
        assert answer.status == 400 and answer.fields() == [field], (field, answer)
        assert "must be an absolute URL" in answer.json["message"], (field, answer)
    assert remotes.count("/pic") == sent
