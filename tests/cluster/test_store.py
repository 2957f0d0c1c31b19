"""The file store in an object store: a real Ceph with its S3 gateway, one stack for all tests.

Uploads and downloads use the URLs that the service signs; http.client sends them to the gateway. The programs are
built with fault points.
"""
import base64
import concurrent.futures
import configparser
import contextlib
import datetime
import hashlib
import hmac
import http.client
import http.server
import io
import json
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid
import zipfile

import numpy
import pytest
from PIL import Image

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "fault"))

import client as client_module  # noqa: E402
import marks  # noqa: E402
import pictures  # noqa: E402
import points  # noqa: E402
import rounds  # noqa: E402
from client import ORDERS  # noqa: E402
from remotes import Remotes  # noqa: E402
from receiver import Receiver  # noqa: E402

CEPH = os.path.join(ROOT, "tests", "cluster", "ceph-mini")
PROGRAMS = ("ceph-mon", "ceph-mgr", "ceph-osd", "radosgw", "ceph", "s3cmd")
PREFIX = "site/one/"
UPLOAD_MAX = 6_000_000


def free_ports():
    """Returns two adjacent free ports, as ceph-mini needs them, below the kernel's range for outgoing connections."""
    while True:
        port = random.randrange(10000, 32000)
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)), socket.create_server(("127.0.0.1", port + 1)):
            return port


@pytest.fixture(scope="session")
def ceph(tmp_path_factory):
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        pytest.skip("not installed: " + " ".join(missing))
    folder = str(tmp_path_factory.mktemp("ceph"))
    up = subprocess.run([CEPH, "up", folder, str(free_ports())], capture_output=True, text=True, timeout=300)
    try:
        assert up.returncode == 0, up.stdout + up.stderr
        yield {"CEPH_FOLDER": folder, **client_module.environment_read(os.path.join(folder, "s3.env"))}
    finally:
        subprocess.run([CEPH, "down", folder], check=True, timeout=120)


def secret_write(path, text):
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text + "\n")
    shutil.chown(path, *owner_of(os.path.dirname(path)))


def owner_of(path):
    facts = os.stat(path)
    return facts.st_uid, facts.st_gid


def store_settings(stack, environment, etc):
    return {"driver": "s3", "s3_endpoint": stack.front.url, "s3_public_endpoint": environment["S3_ENDPOINT"],
            "s3_ca_file": stack.environment["IMGWARD_CA"], "s3_region": environment["S3_REGION"],
            "s3_bucket": environment["S3_BUCKET"], "s3_prefix": PREFIX,
            "s3_access_key_file": os.path.join(etc, "s3.access"), "s3_secret_key_file": os.path.join(etc, "s3.secret"),
            "s3_events_key_file": os.path.join(etc, "s3.events"), "s3_timeout_s": "2", "upload_max_bytes": str(UPLOAD_MAX)}


class Bucket:
    """The objects of the bucket, as s3cmd lists them."""

    def __init__(self, environment):
        host = urllib.parse.urlsplit(environment["S3_ENDPOINT"]).netloc
        self.words = ["s3cmd", "--config=/dev/null", "--no-ssl", "--no-check-md5", f"--access_key={environment['S3_ACCESS_KEY']}",
                      f"--secret_key={environment['S3_SECRET_KEY']}", f"--host={host}", f"--host-bucket={host}",
                      f"--region={environment['S3_REGION']}"]
        self.name = environment["S3_BUCKET"]

    def run(self, *words):
        return subprocess.run([*self.words, *words], capture_output=True, text=True, timeout=60, check=True).stdout

    def keys(self, order=""):
        """Returns the keys of an order after the prefix."""
        lines = self.run("ls", "--recursive", f"s3://{self.name}/{PREFIX}").splitlines()
        keys = [line.split(f"s3://{self.name}/{PREFIX}")[1] for line in lines]
        return sorted(key for key in keys if str(order) in key)

    def uploads(self):
        """Returns the multipart uploads that are neither complete nor aborted."""
        return [line for line in self.run("multipart", f"s3://{self.name}").splitlines() if PREFIX in line]


@pytest.fixture(scope="session")
def bucket(ceph):
    return Bucket(ceph)


@pytest.fixture(scope="session")
def faults(tmp_path_factory):
    return points.Faults(str(tmp_path_factory.mktemp("faults") / "points"), points.OBJECT_PLACES)


ERROR = "<?xml version=\"1.0\"?><Error><Code>{}</Code><RequestId>1</RequestId></Error>"
TROUBLES = {"slow": (503, "SlowDown"), "error": (500, "InternalError"), "denied": (403, "AccessDenied")}


class Front:
    """The gateway as the service reaches it: over TLS, and with troubles. Clients use the gateway directly.

    A trouble is (method, part of the path, kind, times). cut ends a response in the middle of the body.
    """

    def __init__(self, target, certificate, key):
        self.target, self.troubles, self.lock = urllib.parse.urlsplit(target), [], threading.Lock()
        self.count = 0
        front = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def run(self):
                front.serve(self)

            do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = run

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, key)
        self.server.socket = tls.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"https://127.0.0.1:{self.server.server_address[1]}"

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def trouble_of(self, method, path):
        with self.lock:
            self.count += 1
            for trouble in self.troubles:
                if trouble[0] == method and trouble[1] in path and trouble[3] > 0:
                    trouble[3] -= 1
                    return trouble[2]
        return None

    def left(self):
        """Returns the troubles that have not happened yet."""
        return [trouble for trouble in self.troubles if trouble[3] > 0]

    def serve(self, handler):
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        trouble = self.trouble_of(handler.command, handler.path)
        if trouble in TROUBLES:
            status, code = TROUBLES[trouble]
            answer, headers, data = status, [("Content-Type", "application/xml")], ERROR.format(code).encode()
        else:
            connection = http.client.HTTPConnection(self.target.hostname, self.target.port, timeout=60)
            connection.request(handler.command, handler.path, body, dict(handler.headers))
            given = connection.getresponse()
            answer, headers, data = given.status, given.getheaders(), given.read()
            connection.close()
        handler.send_response_only(answer)
        for name, value in headers:
            if name.lower() not in ("content-length", "connection", "transfer-encoding"):
                handler.send_header(name, value)
        length = dict((name.lower(), value) for name, value in headers).get("content-length", "0")
        handler.send_header("Content-Length", length if handler.command == "HEAD" else str(len(data)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(data[:len(data) // 2] if trouble == "cut" else data)
        handler.close_connection = trouble == "cut"


class Variables:
    """Environment variables of the stack, which parts that are started later need, too."""

    def __init__(self, **values):
        self.values = values
        self.before = {name: os.environ.get(name) for name in values}

    def __enter__(self):
        os.environ.update(self.values)

    def __exit__(self, *_):
        for name, value in self.before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def dev(verb):
    return subprocess.run([os.path.join(ROOT, "dev"), verb], capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="session")
def stack(ceph, faults, tmp_path_factory):
    """A stack whose file store is the bucket. Before that, it made one order with the local store."""
    given = os.environ.get("IMGWARD_TEST_VAR")
    var = given + ".store" if given else str(tmp_path_factory.mktemp("stack"))
    with Variables(IMGWARD_VAR=var, IMGWARD_BUILD=rounds.build(), IMGWARD_FAULTS=faults.path,
                   IMGWARD_DATABASE_TIMEOUT_S="15", IMGWARD_REDIS_TIMEOUT_MS="10000"):
        up = dev("up")
        assert up.returncode == 0, up.stdout + up.stderr
        try:
            made = client_module.Stack(client_module.environment_read(os.path.join(var, "dev.env")))
            made.former = made.account_new()
            made.former_order = made.former.order_whole([("old.jpg", pictures.jpeg(160, 120))])
            made.former_pending = created_of(made.former, ["pending.jpg"])
            made.former_url = made.former.get(f"{ORDERS}/{made.former_order['orderId']}/download").data["downloadUrl"]
            tls = os.path.dirname(made.environment["IMGWARD_CA"])
            made.front = Front(ceph["S3_ENDPOINT"], os.path.join(tls, "server.pem"), os.path.join(tls, "server.key"))
            use_bucket(made, ceph)
            yield made
            made.front.close()
        finally:
            down = dev("down")
            assert down.returncode == 0, down.stdout + down.stderr


@pytest.fixture
def remotes():
    made = Remotes()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def disarmed(faults, stack):
    yield
    faults.disarm()
    stack.front.troubles = []


def use_bucket(stack, ceph):
    """Changes the configuration to the bucket and restarts API and worker."""
    etc = os.path.dirname(stack.environment["IMGWARD_CONFIG"])
    secret_write(os.path.join(etc, "s3.access"), ceph["S3_ACCESS_KEY"])
    secret_write(os.path.join(etc, "s3.secret"), ceph["S3_SECRET_KEY"])
    secret_write(os.path.join(etc, "s3.events"), "events-" + uuid.uuid4().hex)
    for name in ("api", "worker"):
        stack.part("stop", name)
    stack.configure(changed(stack, store=store_settings(stack, ceph, etc), worker={"retry_first_ms": "100"}))
    for name in ("api", "worker"):
        stack.part("start", name)


def changed(stack, **sections):
    """Returns the text of the configuration with other values."""
    parser = configparser.RawConfigParser()
    parser.read(stack.environment["IMGWARD_CONFIG"])
    for section, values in sections.items():
        if not parser.has_section(section):
            parser.add_section(section)
        for key, value in values.items():
            parser.set(section, key, value)
    text = io.StringIO()
    parser.write(text)
    return text.getvalue()


def direct(method, url, body=None, **headers):
    """Sends a request to the object store, as a client does."""
    target = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(target.hostname, target.port, timeout=60)
    try:
        connection.request(method, f"{target.path}?{target.query}", body=body,
                           headers={name.replace("_", "-"): value for name, value in headers.items()})
        answer = connection.getresponse()
        return client_module.Answer(answer.status, answer.headers, answer.read())
    finally:
        connection.close()


def put(url, data, kind="image/jpeg"):
    answer = direct("PUT", url, data, Content_Type=kind)
    assert answer.status == 200, answer


def created_of(client, names, **fields):
    answer = client.create(names, **fields)
    assert answer.status == 201, answer
    return answer.data


def until(look, seconds=240):
    """Waits for a true value and returns it."""
    end = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)
    return found


def is_input(key):
    return key.startswith(("in/", "original/"))


def cleared(bucket, order):
    """Waits until only outputs of an ended order are in the bucket; returns their kinds."""
    until(lambda: not any(map(is_input, bucket.keys(order))))
    return [key.split("/")[0] for key in bucket.keys(order)]


def file_name(answer):
    """Returns the UTF-8 name in Content-Disposition (RFC 8187)."""
    kind, _, name = answer.headers["Content-Disposition"].partition("; ")
    assert kind == "attachment"
    return urllib.parse.unquote(name.split("filename*=UTF-8''")[1])


def whole(client, files):
    """Returns the data of a complete order of (name, bytes)."""
    created = created_of(client, [name for name, _ in files])
    for file, (_, data) in zip(created["files"], files):
        put(file["uploadUrl"], data)
    answer = client.confirm(created["orderId"])
    assert answer.status == 200, answer
    return client.wait(created["orderId"])


def noise(width, height, seed):
    """Returns a PNG that does not compress."""
    pixels = numpy.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=numpy.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", compress_level=1)
    return file.getvalue()


def log_text(stack, name):
    with open(os.path.join(stack.environment["IMGWARD_LOG"], name), encoding="utf-8") as file:
        return file.read()


def ctl(stack, *words, config=None):
    """Runs imgwardctl; returns exit status and output."""
    done = subprocess.run([stack.environment["IMGWARD_CTL"], "--config", config or stack.environment["IMGWARD_CONFIG"], *words],
                          capture_output=True, text=True, timeout=180)
    return done.returncode, done.stdout + done.stderr


@contextlib.contextmanager
def without_worker(stack):
    stack.part("stop", "worker")
    try:
        yield
    finally:
        stack.part("start", "worker")


# ---------------------------------------------------------------- the way of an order


def test_bytes_go_straight_to_the_bucket_and_back(stack, ceph, client, bucket):
    created = created_of(client, ["straße.jpg"])
    order, url = created["orderId"], created["files"][0]["uploadUrl"]
    assert url.startswith(ceph["S3_ENDPOINT"]) and created["files"][0]["fileKey"] == f"in/{order}/1"
    put(url, pictures.jpeg(320, 240))
    assert client.confirm(order).status == 200
    assert client.wait(order)["status"] == "complete"
    data = client.get(f"{ORDERS}/{order}/download").data
    assert data["expiresIn"] == 3600
    result = direct("GET", data["downloadUrl"])
    assert result.status == 200 and result.headers["Content-Type"] == "image/jpeg"
    assert pictures.decode(result.body).size == (320, 240) and file_name(result) == data["fileName"] == "straße.jpg"
    part = direct("GET", data["downloadUrl"], Range="bytes=0-9")
    assert part.status == 206 and part.body == result.body[:10]
    thumbnail = direct("GET", client.detail(order).data["thumbnailImageUrl"])
    assert thumbnail.status == 200 and thumbnail.headers["Content-Type"] == "image/webp"
    assert thumbnail.headers["Content-Disposition"] is None
    assert cleared(bucket, order) == ["out", "thumb"]
    assert f"/files/in/{order}" not in log_text(stack, "access.log")


def test_a_url_permits_one_method_on_one_key(client):
    created = created_of(client, ["a.jpg", "b.jpg"])
    first, second = (file["uploadUrl"] for file in created["files"])
    assert direct("GET", first).status == 403 and direct("DELETE", first).status == 403
    assert direct("PUT", first.replace("/1.0?", "/2.0?"), b"x").status == 403
    assert first.split("?")[0] != second.split("?")[0]


def test_confirm_names_the_files_that_are_missing(client, bucket):
    created = created_of(client, ["a.jpg", "b.jpg"])
    put(created["files"][0]["uploadUrl"], pictures.jpeg(80, 80))
    answer = client.confirm(created["orderId"])
    assert answer.code == "ORDER_FILE_NOT_UPLOADED" and answer.fields() == ["files[1].fileName"]
    assert bucket.keys(created["orderId"]) == [f"in/{created['orderId']}/1.0"], "nothing was copied"
    put(created["files"][1]["uploadUrl"], pictures.jpeg(80, 80))
    assert client.confirm(created["orderId"]).status == 200
    assert client.wait(created["orderId"])["status"] == "complete"


def test_a_file_that_is_too_large_or_no_picture_fails_alone(stack, client, bucket):
    created = created_of(client, ["good.jpg", "text.jpg", "large.jpg", "empty.jpg"])
    large = pictures.jpeg(80, 80).ljust(UPLOAD_MAX + 1, b"\0")
    for file, data in zip(created["files"], (pictures.jpeg(80, 80), b"GIF89a" + b"x" * 400, large, b"")):
        put(file["uploadUrl"], data)
    with without_worker(stack):
        assert client.confirm(created["orderId"]).status == 200
        # The refused objects are deleted. The accepted object has a copy that no URL names.
        keys = bucket.keys(created["orderId"])
        assert [key.split("/")[2].split(".")[0] for key in keys] == ["1", "1"], keys
    order = client.wait(created["orderId"])
    files = client.detail(created["orderId"]).data["files"]
    assert order["status"] == "complete" and [file["status"] for file in files] == ["complete", "failed", "failed", "failed"]
    assert [file["error"] and file["error"]["code"] for file in files] == \
        [None, "IMAGE_FORMAT_UNSUPPORTED", "IMAGE_TOO_LARGE", "IMAGE_FORMAT_UNSUPPORTED"]
    assert "GIF" in files[1]["error"]["message"]
    assert files[2]["error"]["message"] == f"The file has {UPLOAD_MAX + 1} bytes; at most {UPLOAD_MAX} are allowed."


def test_a_later_put_changes_nothing_and_is_cleared_away(stack, client, bucket, tmp_path):
    created = created_of(client, ["a.jpg"])
    order, url = created["orderId"], created["files"][0]["uploadUrl"]
    put(url, pictures.jpeg(200, 100))
    with without_worker(stack):
        assert client.confirm(order).status == 200
        put(url, pictures.jpeg(90, 90))
    assert client.wait(order)["status"] == "complete"
    result = direct("GET", client.get(f"{ORDERS}/{order}/download").data["downloadUrl"])
    assert pictures.decode(result.body).size == (200, 100)
    assert cleared(bucket, order) == ["out", "thumb"]
    # The URL is still valid after the end of the order. The hourly reclaim deletes late uploads when the order is too old to
    # be pending; here the clock is three days ahead, which the store refuses at first.
    # On a slow machine a repeated request of the first deletion may come late, so the upload is repeated, too.
    def is_there():
        put(url, pictures.jpeg(90, 90))
        return f"in/{order}/1.0" in bucket.keys(order)
    until(is_there)
    config = tmp_path / "ahead.conf"
    config.write_text(changed(stack, test={"clock_offset_s": str(3 * 86400)}))
    code, output = ctl(stack, "store", "reclaim", config=str(config))
    assert code == 0, output
    assert "store_clock_differs" in output and f"in/{order}/1.0" not in bucket.keys(order)


def test_uploads_of_a_pending_order_stay(stack, client, bucket, tmp_path):
    """A walk over the bucket deletes unnamed files after an hour, except the uploads of a pending order."""
    created = created_of(client, ["a.jpg"])
    put(created["files"][0]["uploadUrl"], pictures.jpeg(80, 80))
    config = tmp_path / "ahead.conf"
    config.write_text(changed(stack, test={"clock_offset_s": "7200"}))
    code, output = ctl(stack, "store", "reclaim", config=str(config))
    assert code == 0 and bucket.keys(created["orderId"]) == [f"in/{created['orderId']}/1.0"], output
    assert client.request("DELETE", f"{ORDERS}/{created['orderId']}").status == 200
    assert bucket.keys(created["orderId"]) == []


def test_a_walk_has_several_pages(stack, ceph, client, bucket, tmp_path):
    """There are more keys than one step lists. Behind them is an output that no row names, of an order that has ended."""
    ended = whole(client, [("a.jpg", pictures.jpeg(80, 80))])["orderId"]
    orders = [created_of(client, [f"{i}.jpg" for i in range(70)]) for _ in range(3)]
    urls = [file["uploadUrl"] for order in orders for file in order["files"]]
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda url: put(url, b"x"), urls))
    orphan = f"thumb/{ended}/0.77"
    assert signed(ceph, "PUT", f"/{ceph['S3_BUCKET']}/{PREFIX}{orphan}", b"x").status == 200
    assert orphan in bucket.keys(ended)
    config = tmp_path / "ahead.conf"
    config.write_text(changed(stack, test={"clock_offset_s": "7200"}))
    code, output = ctl(stack, "store", "reclaim", config=str(config))
    assert code == 0 and "1 files that no row names" in output, output
    assert orphan not in bucket.keys(ended) and [key.split("/")[0] for key in bucket.keys(ended)] == ["out", "thumb"]
    for order in orders:
        assert len(bucket.keys(order["orderId"])) == 70
        assert client.request("DELETE", f"{ORDERS}/{order['orderId']}").status == 200
        assert bucket.keys(order["orderId"]) == []


def test_an_embedding_starts_by_itself_and_an_extraction_reads_it(stack, client, bucket):
    photo = pictures.jpeg(640, 480)
    created = marks.embed(client, [("a.jpg", photo, ["one", "two"]), ("ä.png", pictures.png(512, 512), ["three"])]).data
    for file, data in zip(created["files"], (photo, pictures.png(512, 512))):
        put(file["uploadUrl"], data)
    order = client.wait(created["orderId"])
    assert order["status"] == "complete", order
    data = client.get(f"{ORDERS}/{order['orderId']}/download").data
    archive = direct("GET", data["downloadUrl"])
    assert archive.headers["Content-Type"] == "application/zip" and file_name(archive) == data["fileName"]
    with zipfile.ZipFile(io.BytesIO(archive.body)) as opened:
        assert opened.testzip() is None and opened.namelist() == [*(file["fileName"] for file in data["files"]), "copies.csv"]
        marked = opened.read(opened.namelist()[0])
    assert cleared(bucket, order["orderId"]) == ["out", "out", "out", "thumb", "thumb", "zip"]
    file = {"fileName": "s.jpg", "includeOriginal": True, "originalFile": {"fileName": "o.jpg"}}
    place = client.post(f"{ORDERS}/wtr-extract", {"idempotencyKey": uuid.uuid4().hex, "file": file}).data
    put(place["file"]["uploadUrl"], marked)
    put(place["file"]["originalFile"]["uploadUrl"], photo)
    found = client.wait(place["orderId"])
    assert found["status"] == "detected" and found["watermarkText"] == "one"
    assert cleared(bucket, place["orderId"]) == []
    assert stack.sql("SELECT COUNT(*) FROM upload_checks WHERE order_id IN "
                     f"({order['orderId']}, {place['orderId']})") == [["0"]]


def signed(ceph, method, path, body, query="", kind="application/x-www-form-urlencoded"):
    """Sends a signed request that s3cmd does not support: topics (form) and notifications (XML)."""
    host = urllib.parse.urlsplit(ceph["S3_ENDPOINT"]).netloc
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    digest = hashlib.sha256(body).hexdigest()
    sent = {"content-type": kind, "host": host, "x-amz-content-sha256": digest, "x-amz-date": now}
    lines = [method, path, query and query + "=", *(f"{name}:{value}" for name, value in sent.items()), "", ";".join(sent), digest]
    scope = f"{now[:8]}/{ceph['S3_REGION']}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", now, scope, hashlib.sha256("\n".join(lines).encode()).hexdigest()])
    key = ("AWS4" + ceph["S3_SECRET_KEY"]).encode()
    for word in scope.split("/"):
        key = hmac.digest(key, word.encode(), "sha256")
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    # The gateway accepts a topic with a password only over TLS, or if a proxy reports that it ends TLS.
    return direct(method, f"{ceph['S3_ENDPOINT']}{path}?{query}", body, **sent, **{
        "X-Forwarded-Proto": "https",
        "Authorization": f"AWS4-HMAC-SHA256 Credential={ceph['S3_ACCESS_KEY']}/{scope},SignedHeaders={';'.join(sent)},"
                         f"Signature={signature}"})


def event_order(stack, client):
    """A pending order whose next check is in an hour, so only a notification makes it earlier."""
    created = marks.embed(client, [("a.jpg", None, ["one"])]).data
    order = created["orderId"]

    def is_late():
        """False if the worker checked the order at this moment and wrote the time of the next check."""
        stack.sql(f"UPDATE upload_checks SET check_at = UTC_TIMESTAMP(3) + INTERVAL 1 HOUR WHERE order_id = {order}")
        time.sleep(1)
        return stack.sql(f"SELECT 1 FROM upload_checks WHERE order_id = {order} AND check_at > UTC_TIMESTAMP(3) + INTERVAL 30 MINUTE")
    until(is_late)
    return order, created["files"][0]["uploadUrl"]


def events_key(stack):
    with open(os.path.join(os.path.dirname(stack.environment["IMGWARD_CONFIG"]), "s3.events"), encoding="ascii") as file:
        return file.read().strip()


def test_a_notification_needs_the_key(stack, client):
    order, url = event_order(stack, client)
    put(url, pictures.jpeg(512, 512))
    key = events_key(stack)
    body = {"Records": [{"eventName": "ObjectCreated:Put", "s3": {"object": {"key": f"{PREFIX}in/{order}/1.0"}}}]}
    for wrong in ("Bearer " + key + "x", "Basic " + base64.b64encode(b"imgward:").decode()):
        assert client.post("/store-events", body, headers={"Authorization": wrong}).status == 401
    assert client.detail(order).data["status"] == "pending"
    for other in ({"Records": "x"}, {"Records": [{"s3": {"object": {"key": "other/in/1/1.0"}}}]}):
        assert client.post("/store-events", other, headers={"Authorization": "Bearer " + key}).status == 204
    assert client.post("/store-events", body, headers={"Authorization": "Bearer " + key}).status == 204
    assert client.wait(order)["status"] == "complete"


def test_the_orders_of_a_suspended_account_wait(stack, client):
    suspended = stack.account_new()
    order, url = event_order(stack, suspended)
    put(url, pictures.jpeg(512, 512))
    stack.ctl("account", "suspend", suspended.account)
    stack.sql(f"UPDATE upload_checks SET check_at = UTC_TIMESTAMP(3) WHERE order_id = {order}")
    assert marks_started(stack, client) == "complete", "a later order of another account was looked at"
    assert stack.sql(f"SELECT status FROM orders WHERE id = {order}") == [["pending"]]
    stack.ctl("account", "resume", suspended.account)
    assert suspended.wait(order)["status"] == "complete"


def marks_started(stack, client):
    """Waits until the worker's check has started an order; returns its status."""
    other, url = event_order(stack, client)
    put(url, pictures.jpeg(512, 512))
    stack.sql(f"UPDATE upload_checks SET check_at = UTC_TIMESTAMP(3) WHERE order_id = {other}")
    return client.wait(other)["status"]


def test_the_gateway_itself_notifies(stack, ceph, client):
    daemon = os.path.join(ceph["CEPH_FOLDER"], "run", "client.rgw.asok")
    subprocess.run(["ceph", "--admin-daemon", daemon, "config", "set", "rgw_trust_forwarded_https", "true"], check=True,
                   capture_output=True, timeout=60, env={**os.environ, "CEPH_CONF": os.path.join(ceph["CEPH_FOLDER"], "ceph.conf")})
    endpoint = stack.url.replace("https://", f"https://imgward:{events_key(stack)}@") + "/store-events"
    form = {"Action": "CreateTopic", "Name": "imgward", "Attributes.entry.1.key": "push-endpoint", "Attributes.entry.1.value": endpoint,
            "Attributes.entry.2.key": "verify-ssl", "Attributes.entry.2.value": "false"}
    topic = signed(ceph, "POST", "/", urllib.parse.urlencode(form).encode())
    assert topic.status == 200, topic
    arn = topic.body.decode().split("<TopicArn>")[1].split("<")[0]
    rule = ("<NotificationConfiguration><TopicConfiguration><Id>imgward</Id><Event>s3:ObjectCreated:*</Event>"
            f"<Topic>{arn}</Topic><Filter><S3Key><FilterRule><Name>prefix</Name><Value>{PREFIX}in/</Value></FilterRule></S3Key>"
            "</Filter></TopicConfiguration></NotificationConfiguration>")
    made = signed(ceph, "PUT", f"/{ceph['S3_BUCKET']}", rule.encode(), "notification", "text/xml")
    assert made.status == 200, made
    try:
        order, url = event_order(stack, client)
        put(url, pictures.jpeg(512, 512))
        assert client.wait(order)["status"] == "complete"
    finally:
        removed = signed(ceph, "DELETE", f"/{ceph['S3_BUCKET']}", b"", "notification", "text/xml")
        assert removed.status in (200, 204), removed


def test_a_large_archive_is_a_multipart_upload(client, bucket):
    files = [(f"{i}.png", noise(1100, 1100, i)) for i in range(3)]
    assert sum(len(data) for _, data in files) > 9_000_000
    order = whole(client, files)
    data = client.get(f"{ORDERS}/{order['orderId']}/download").data
    archive = direct("GET", data["downloadUrl"])
    assert "-" in archive.headers["ETag"], "its ETag is not that of several parts"
    with zipfile.ZipFile(io.BytesIO(archive.body)) as opened:
        assert opened.testzip() is None and len(opened.namelist()) == 3


def test_an_unfinished_multipart_upload_is_aborted(stack, ceph, bucket, tmp_path):
    begun = signed(ceph, "POST", f"/{ceph['S3_BUCKET']}/{PREFIX}zip/1/0.1", b"", "uploads")
    assert begun.status == 200 and bucket.uploads()
    config = tmp_path / "ahead.conf"
    config.write_text(changed(stack, test={"clock_offset_s": str(3 * 86400)}))
    code, output = ctl(stack, "store", "reclaim", config=str(config))
    assert code == 0 and "0 unfinished" not in output and bucket.uploads() == [], output


def test_sources_targets_and_deletion(client, bucket, remotes):
    remotes.gives["/a.jpg"] = pictures.jpeg(120, 90)
    created = client.create([{"fileName": "a.jpg", "imageUrl": remotes.url("/a.jpg")}], kind="anti-ai/with-urls",
                            mode={"zeroCopy": True}, outputTargets=[{"presignedUrl": remotes.url("/out.jpg")}])
    if created.status != 201:
        created = client.create([{"fileName": "a.jpg", "imageUrl": remotes.url("/a.jpg")}], kind="anti-ai/with-urls")
    assert created.status == 201, created
    order = client.wait(created.data["orderId"])
    assert order["status"] == "complete", order
    cleared(bucket, order["orderId"])
    order = whole(client, [("a.jpg", pictures.jpeg(80, 80)), ("b.jpg", pictures.jpeg(80, 80))])
    url = client.get(f"{ORDERS}/{order['orderId']}/download").data["downloadUrl"]
    assert client.request("DELETE", f"{ORDERS}/{order['orderId']}").status == 200
    assert bucket.keys(order["orderId"]) == [] and direct("GET", url).status == 404


def test_an_upload_url_of_the_local_store_still_works(stack, bucket):
    """The service receives the file and stores it in the bucket."""
    order, url = stack.former_pending["orderId"], stack.former_pending["files"][0]["uploadUrl"]
    assert stack.former.upload(url, b"GIF89a" + b"x" * 400).status == 415
    assert stack.former.upload(url, pictures.jpeg(80, 80)).status == 201
    [key] = bucket.keys(order)
    assert stack.former.upload(url, pictures.jpeg(90, 90)).status == 200
    assert len(bucket.keys(order)) == 1 and key not in bucket.keys(order)
    assert stack.former.confirm(order).status == 200 and stack.former.wait(order)["status"] == "complete"
    assert cleared(bucket, order) == ["out", "thumb"]


def test_a_webhook_has_the_url_of_the_bucket(stack, ceph):
    account, receiver = stack.account_new(), Receiver()
    try:
        receiver.answers["/hook"] = 200
        assert account.post(f"{ORDERS}/webhooks", {"url": receiver.url("/hook"), "name": "hook"}).status == 201
        order = whole(account, [("a.jpg", pictures.jpeg(80, 80))])
        until(lambda: any("downloadUrl" in delivery.json["data"] for delivery in receiver.at("/hook")))
        [data] = [delivery.json["data"] for delivery in receiver.at("/hook") if "downloadUrl" in delivery.json["data"]]
    finally:
        receiver.close()
    assert data["orderId"] == order["orderId"] and data["downloadUrl"].startswith(ceph["S3_ENDPOINT"])
    assert direct("GET", data["downloadUrl"]).status == 200


# ---------------------------------------------------------------- failures


FAILURES = ["object.peeked", "object.copied", "object.input", "object.result", "object.deleted", "object.listed", "object.part"]


def test_each_failed_request_is_repeated(client, faults):
    before = {name: faults.taken(name) for name in FAILURES}
    for name in FAILURES:
        faults.arm(name, "fail")
    order = whole(client, [("a.jpg", pictures.jpeg(80, 80)), ("b.png", pictures.png(80, 80))])
    assert order["status"] == "complete"
    until(lambda: all(faults.taken(name) == before[name] + 1 for name in FAILURES))


def test_confirm_is_503_while_the_store_fails_and_can_be_repeated(client, faults):
    created = created_of(client, ["a.jpg"])
    put(created["files"][0]["uploadUrl"], pictures.jpeg(80, 80))
    faults.arm("object.peeked", "fail", width=100)
    answer = client.confirm(created["orderId"])
    assert answer.status == 503 and int(answer.headers["Retry-After"]) > 0, answer
    faults.disarm()
    client_module.until_served(lambda: client.confirm(created["orderId"]), 200)
    assert client.wait(created["orderId"])["status"] == "complete"


def test_a_job_waits_while_the_store_fails(client, faults, stack):
    """The result cannot be stored in one attempt of the job, but in the next. That does not count as a failure of the file."""
    created = created_of(client, ["a.jpg"])
    put(created["files"][0]["uploadUrl"], pictures.jpeg(80, 80))
    before = faults.taken("object.result")
    faults.arm("object.result", "fail", width=4)
    client_module.until_served(lambda: client.confirm(created["orderId"]), 200)
    assert client.wait(created["orderId"])["status"] == "complete" and faults.taken("object.result") == before + 4
    assert stack.sql(f"SELECT failure_count FROM jobs WHERE order_id = {created['orderId']}") in ([["0"]], [])


def test_processes_die_at_their_requests(client, faults):
    created = created_of(client, ["a.jpg", "b.jpg"])
    for file in created["files"]:
        put(file["uploadUrl"], pictures.jpeg(80, 80))
    names = ["object.copied", "object.result", "object.part"]
    before = {name: faults.taken(name) for name in names}
    for name in names:
        faults.arm(name, "kill")
    client_module.until_served(lambda: client.confirm(created["orderId"]), 200)
    assert client.wait(created["orderId"])["status"] == "complete"
    assert all(faults.taken(name) == before[name] + 1 for name in names)


def test_troubled_answers_are_repeated(stack, client):
    """Before a request succeeds, it is refused twice, or the response ends early."""
    stack.front.troubles = [["GET", "/in/", "slow", 2], ["PUT", "/in/", "error", 2], ["PUT", "/out/", "slow", 2],
                            ["GET", "/out/", "cut", 2], ["PUT", "/zip/", "error", 1], ["POST", "?delete", "slow", 1]]
    order = whole(client, [("a.jpg", pictures.jpeg(80, 80)), ("b.png", pictures.png(80, 80))])
    assert order["status"] == "complete"
    until(lambda: not stack.front.left())
    created = created_of(client, ["a.jpg"])
    put(created["files"][0]["uploadUrl"], pictures.jpeg(300, 200))
    with without_worker(stack):
        assert client.confirm(created["orderId"]).status == 200
        stack.front.troubles = [["GET", "/in/", "cut", 1]]
    assert client.wait(created["orderId"])["status"] == "complete" and not stack.front.left()


def test_a_refusal_is_503_and_named_in_the_log(stack, client):
    created = created_of(client, ["a.jpg"])
    put(created["files"][0]["uploadUrl"], pictures.jpeg(80, 80))
    stack.front.troubles = [["GET", "/in/", "denied", 1]]
    answer = client.confirm(created["orderId"])
    assert answer.status == 503 and answer.headers["Retry-After"] and "AccessDenied" not in answer.body.decode()
    until(lambda: "status 403 AccessDenied" in log_text(stack, "api.log"))
    assert client.confirm(created["orderId"]).status == 200
    assert client.wait(created["orderId"])["status"] == "complete"


def test_an_input_that_is_gone_or_changed_fails(stack, ceph, client, bucket):
    created = created_of(client, ["gone.jpg", "changed.jpg", "good.jpg"])
    for file in created["files"]:
        put(file["uploadUrl"], pictures.jpeg(80, 80))
    with without_worker(stack):
        assert client.confirm(created["orderId"]).status == 200
        copies = {key.split("/")[2].split(".")[0]: key for key in bucket.keys(created["orderId"]) if not key.endswith(".0")}
        bucket.run("del", f"s3://{bucket.name}/{PREFIX}{copies['1']}")
        answer = signed(ceph, "PUT", f"/{ceph['S3_BUCKET']}/{PREFIX}{copies['2']}", pictures.jpeg(90, 90), kind="image/jpeg")
        assert answer.status == 200, answer
    client.wait(created["orderId"])
    files = client.detail(created["orderId"]).data["files"]
    assert [file["status"] for file in files] == ["failed", "failed", "complete"]
    assert '"reason":"store_changed"' in log_text(stack, "worker.log")


def gateway_pid(ceph):
    with open(os.path.join(ceph["CEPH_FOLDER"], "run", "rgw.pid"), encoding="ascii") as file:
        return int(file.read())


def test_the_gateway_hangs(stack, ceph, client):
    created = created_of(client, ["a.jpg"])
    put(created["files"][0]["uploadUrl"], pictures.jpeg(80, 80))
    os.kill(gateway_pid(ceph), signal.SIGSTOP)
    try:
        begun = time.monotonic()
        assert client.confirm(created["orderId"]).status == 503
        assert time.monotonic() - begun < 60
        assert client.detail(created["orderId"]).status == 200, "queries need no store"
        ready = client.get("/readyz")
        assert ready.status == 503 and "store away" in ready.body.decode()
    finally:
        os.kill(gateway_pid(ceph), signal.SIGCONT)
    client_module.until_served(lambda: client.confirm(created["orderId"]), 200)
    assert client.wait(created["orderId"])["status"] == "complete"


# ---------------------------------------------------------------- operators


def location(stack, url):
    """Returns where a URL of the service redirects to; the contract's document does not list this response."""
    target = urllib.parse.urlsplit(url)
    connection = http.client.HTTPSConnection(target.hostname, target.port, context=stack.tls, timeout=60)
    try:
        connection.request("GET", f"{target.path}?{target.query}")
        answer = connection.getresponse()
        assert answer.status == 307, answer.status
        return answer.headers["Location"]
    finally:
        connection.close()


def test_the_store_is_copied_verified_and_copied_back(stack, client, bucket):
    former = stack.former_order["orderId"]
    order = whole(client, [("a.jpg", pictures.jpeg(80, 80))])["orderId"]
    cleared(bucket, order)
    code, output = ctl(stack, "store", "verify")
    assert code == 1 and f"of order {former}: missing" in output, output
    # Copies from the local store to the bucket. If killed in the middle, the next run continues.
    begun = subprocess.Popen([stack.environment["IMGWARD_CTL"], "--config", stack.environment["IMGWARD_CONFIG"], "store", "copy",
                              "--progress", "0", "s3"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert "continue with --after 0" in begun.stderr.readline()
    begun.kill()
    begun.communicate()
    code, output = ctl(stack, "store", "copy", "s3")
    assert code == 0, output
    code, output = ctl(stack, "store", "verify")
    assert code == 0, output
    assert [key.split("/")[0] for key in bucket.keys(former)] == ["out", "thumb"]
    # A URL that was signed for the local store redirects to the bucket.
    found = location(stack, stack.former_url)
    assert direct("GET", found).headers["Content-Type"] == "image/jpeg"
    # A missing object is reported, and the copy to the local store skips it.
    [result] = [key for key in bucket.keys(order) if key.startswith("out/")]
    bucket.run("del", f"s3://{bucket.name}/{PREFIX}{result}")
    code, output = ctl(stack, "store", "verify", "--json")
    assert code == 1 and [(fault["storeKey"], fault["fault"]) for fault in json.loads(output)] == [(result, "missing")]
    code, output = ctl(stack, "store", "copy", "local")
    assert code == 0 and "1 missing" in output, output
    assert stack.stored(order) == ["thumb"] and ctl(stack, "store", "copy", "tape")[0] == 2


def test_doctor_and_secrets(stack, ceph, tmp_path):
    assert "the bucket imgward" in ctl(stack, "doctor")[1]
    secret = tmp_path / "secret"
    secret.write_text(ceph["S3_SECRET_KEY"] + "\n")
    secret.chmod(0o644)
    config = tmp_path / "open.conf"
    for key, value, words in (("s3_secret_key_file", str(secret), "readable by other users"),
                              ("s3_endpoint", "s3.example.com", "store.s3_endpoint"),
                              ("driver", "tape", "store.driver")):
        config.write_text(changed(stack, store={key: value}))
        code, output = ctl(stack, "store", "verify", config=str(config))
        assert code == 2 and words in output, output
    for name in ("api.log", "worker.log", "access.log", "nginx.log"):
        text = log_text(stack, name)
        assert ceph["S3_SECRET_KEY"] not in text and "X-Amz-Signature" not in text and "AWS4-HMAC" not in text
