"""The client's specification, one test per row, in its order and wording, only over HTTPS.

The name of a test begins with the section of the row. Other files test behaviour that the document leaves open.
"""
import datetime
import re
import uuid

import pytest

import pictures
from remotes import Remotes

BASE = "/api/v2/orders"
STATES = ("pending", "inProgress", "complete", "failed", "detected", "undetected", "expired")
TYPES = ("antiAi", "watermarkEmbed", "watermarkExtract")
CREATIONS = ("anti-ai", "anti-ai/with-urls", "wtr-embed")
DAY_S = 24 * 3600


# ---- helpers

def key():
    return uuid.uuid4().hex


def is_integer(value):
    return type(value) is int


def is_text(value):
    return isinstance(value, str) and value != ""


def is_url(value):
    return is_text(value) and re.match(r"https?://[^/]+/", value) is not None


def is_date_time(value):
    """True for ISO 8601 with an offset."""
    return datetime.datetime.fromisoformat(value.replace("Z", "+00:00")).tzinfo is not None


def ok(answer, *statuses):
    assert answer.status in (statuses or (200, 201)), answer
    assert list(answer.json) == ["data"], answer
    return answer.data


def refused(answer, field):
    assert answer.status == 400 and field in answer.fields(), answer


@pytest.fixture(scope="module")
def source():
    """A web server for sources and output targets."""
    made = Remotes()
    made.gives["/photo.jpg"] = pictures.jpeg(320, 240, seed=91)
    yield made
    made.close()


@pytest.fixture(scope="module")
def bodies(source):
    """For each creation with files, a function that returns a body with count files."""
    def file(kind, number):
        more = {"anti-ai": {}, "anti-ai/with-urls": {"imageUrl": source.url("/photo.jpg")},
                "wtr-embed": {"watermarks": [{"text": "for Ada"}]}}
        return {"fileName": f"{number}.jpg", **more[kind]}

    def body(kind, count=1, **fields):
        if kind == "wtr-extract":
            return {"idempotencyKey": key(), "file": {"fileName": "found.jpg"}, **fields}
        return {"idempotencyKey": key(), "files": [file(kind, number) for number in range(count)], **fields}
    return body


@pytest.fixture(scope="module")
def create(client, bodies):
    def post(kind, count=1, **fields):
        return client.post(f"{BASE}/{kind}", bodies(kind, count, **fields))
    return post


def put(client, file, data, media="image/jpeg"):
    answer = client.request("PUT", file["uploadUrl"], data, headers={"Content-Type": media}, key=False)
    assert answer.status in (200, 201), answer


def confirm(client, order):
    return client.post(f"{BASE}/anti-ai/confirm", {"idempotencyKey": key(), "orderId": order})


def protected(client, create, *files, **fields):
    """Returns a finished anti-AI order of (name, data) by upload, with the data of the creation."""
    created = ok(create("anti-ai", files=[{"fileName": name} for name, _ in files], **fields))
    for file, (_, data) in zip(created["files"], files):
        put(client, file, data)
    ok(confirm(client, created["orderId"]))
    return created, client.wait(created["orderId"])


def marked(client, create, text, data):
    created = ok(create("wtr-embed", files=[{"fileName": "a.jpg", "watermarks": [{"text": text}]}]))
    put(client, created["files"][0], data)
    return created, client.wait(created["orderId"])


def extracted(client, create, data):
    created = ok(create("wtr-extract"))
    put(client, created["file"], data)
    return created, client.wait(created["orderId"])


def result(client, order):
    link = ok(client.get(f"{BASE}/{order['orderId']}/download"))
    answer = client.request("GET", link["downloadUrl"], key=False)
    assert answer.status == 200, answer
    return answer.body


class KnownOrders:
    """Orders of each type and final status, in a separate account."""

    def __init__(self, client, create):
        self.client = client
        photo = pictures.jpeg(512, 384, seed=92)
        self.created, self.complete = protected(client, create, ("beach.jpg", photo), ("map.png", pictures.png(120, 90)))
        _, self.failed = protected(client, create, ("broken.jpg", photo[:300] + b"\0" * 100))
        self.embed_created, self.embedded = marked(client, create, "for Ada", photo)
        self.extract_created, self.detected = extracted(client, create, result(client, self.embedded))
        _, self.undetected = extracted(client, create, photo)
        self.pending_created = ok(create("anti-ai", orderName="waits for its file"))
        self.pending = self.detail(self.pending_created)

    def detail(self, order):
        return ok(self.client.get(f"{BASE}/{order['orderId']}"))

    def all(self):
        return [self.complete, self.failed, self.embedded, self.detected, self.undetected, self.pending]


@pytest.fixture(scope="module")
def known_orders(client, create):
    return KnownOrders(client, create)


@pytest.fixture(scope="module")
def later(client, create, known_orders):
    """A second set, with orders that have not expired (section 3: seven days)."""
    return KnownOrders(client, create)


# ---- 1. What the service does

def test_1_image_files_in_orders_are_processed(known_orders, client):
    assert known_orders.complete["status"] == "complete" and result(client, known_orders.complete)


def test_1_three_order_types_exist(known_orders):
    assert {order["type"] for order in known_orders.all()} == set(TYPES)


@pytest.mark.parametrize("name, form", [("a.jpg", "JPEG"), ("a.jpeg", "JPEG"), ("a.png", "PNG"), ("a.webp", "WEBP")])
def test_1_formats_for_protection(client, create, name, form):
    data = pictures.encode(pictures.scene(160, 120), form)
    _, order = protected(client, create, (name, data))
    assert order["status"] == "complete" and pictures.decode(result(client, order)).format == form


def test_1_upload_mode(client, create):
    created = ok(create("anti-ai", 2))
    assert len({file["uploadUrl"] for file in created["files"]}) == 2
    for file in created["files"]:
        answer = client.request("PUT", file["uploadUrl"], pictures.jpeg(160, 120), key=False)
        assert answer.status == 201, answer
    ok(confirm(client, created["orderId"]))
    assert client.wait(created["orderId"])["status"] == "complete"


def test_1_url_mode(client, create):
    created = ok(create("anti-ai/with-urls"))
    assert created["status"] == "inProgress"
    assert client.wait(created["orderId"])["status"] == "complete"


def test_1_zero_copy_mode(client, bodies, source):
    target = {"fileKey": "out/0.jpg", "url": source.url("/out/0.jpg"), "presignedUrlExpiresAt": "2099-01-01T00:00:00.000Z"}
    created = ok(client.post(f"{BASE}/anti-ai/with-urls", bodies("anti-ai/with-urls", mode={"zeroCopy": True}, outputTargets=[target])))
    assert client.wait(created["orderId"])["status"] == "complete" and len(source.put["/out/0.jpg"]) == 1


def test_1_typical_flow(client, create):
    created = ok(create("anti-ai"))
    put(client, created["files"][0], pictures.jpeg(160, 120))
    ok(confirm(client, created["orderId"]))
    assert client.wait(created["orderId"])["status"] == "complete"
    link = ok(client.get(f"{BASE}/{created['orderId']}/download"))
    assert pictures.decode(client.request("GET", link["downloadUrl"], key=False).body).size == (160, 120)


def test_1_channel(known_orders):
    assert {order["channel"] for order in known_orders.all()} <= {"api", "web"}


# ---- 2.1 Order creation request (anti-AI)

ANTI_AI = ("anti-ai", "anti-ai/with-urls")


@pytest.mark.parametrize("kind", ANTI_AI)
def test_2_1_idempotency_key(create, kind):
    for value in (None, 7, "", ["x"]):
        refused(create(kind, idempotencyKey=value), "idempotencyKey")
    one = key()
    assert ok(create(kind, idempotencyKey=one), 201)["orderId"] == ok(create(kind, idempotencyKey=one), 200)["orderId"]


@pytest.mark.parametrize("kind", ANTI_AI)
def test_2_1_files(create, kind):
    for value in (None, [], {}, "a.jpg"):
        refused(create(kind, files=value), "files")
    refused(create(kind, files=["a.jpg"]), "files[0]")
    refused(create(kind, 101), "files")
    for count in (1, 100):
        ok(create(kind, count), 201)


@pytest.mark.parametrize("kind", ANTI_AI)
def test_2_1_files_file_name(create, bodies, kind):
    for value in (None, 7, ""):
        files = bodies(kind)["files"]
        files[0]["fileName"] = value
        refused(create(kind, files=files), "files[0].fileName")


def test_2_1_files_image_url(create):
    for value in (None, 7, "", "photo.jpg"):
        refused(create("anti-ai/with-urls", files=[{"fileName": "a.jpg", "imageUrl": value}]), "files[0].imageUrl")
    ok(create("anti-ai", files=[{"fileName": "a.jpg"}]), 201)


@pytest.mark.parametrize("kind", ANTI_AI)
def test_2_1_order_name(create, kind):
    assert ok(create(kind, orderName="ö" * 64), 201)["orderName"] == "ö" * 64
    refused(create(kind, orderName="ö" * 65), "orderName")
    refused(create(kind, orderName=7), "orderName")
    assert is_text(ok(create(kind), 201)["orderName"])


@pytest.mark.parametrize("kind", ANTI_AI)
def test_2_1_mode(create, kind):
    refused(create(kind, mode=True), "mode")
    for value in ("true", 1):
        refused(create(kind, mode={"zeroCopy": value}), "mode.zeroCopy")
    for mode in (None, {}, {"zeroCopy": False}):
        ok(create(kind, mode=mode), 201)


@pytest.mark.parametrize("kind", ANTI_AI)
def test_2_1_output_targets(create, source, kind):
    for value in (None, [], "x", [7]):
        answer = create(kind, mode={"zeroCopy": True}, outputTargets=value)
        refused(answer, "outputTargets[0]" if value == [7] else "outputTargets")
    target = {"fileKey": "k", "url": source.url("/out/1"), "presignedUrlExpiresAt": "2099-01-01T00:00:00.000Z"}
    ok(create(kind, mode={"zeroCopy": True}, outputTargets=[target]), 201)


@pytest.mark.parametrize("kind", ANTI_AI)
def test_2_1_options(create, kind):
    ok(create(kind, options={"strength": "high"}), 201)
    for options in (None, {}):
        ok(create(kind, options=options), 201)
    refused(create(kind, options={"strength": 3}), "options.strength")
    refused(create(kind, options="high"), "options")


# ---- 2.2 Order creation request (watermark embed)

def test_2_2_idempotency_key(create):
    for value in (None, 7, ""):
        refused(create("wtr-embed", idempotencyKey=value), "idempotencyKey")
    one = key()
    assert ok(create("wtr-embed", idempotencyKey=one), 201)["orderId"] == ok(create("wtr-embed", idempotencyKey=one), 200)["orderId"]


def test_2_2_files(create):
    for value in (None, [], {}):
        refused(create("wtr-embed", files=value), "files")
    refused(create("wtr-embed", 101), "files")
    for count in (1, 100):
        ok(create("wtr-embed", count), 201)


def test_2_2_files_file_name(create):
    for value in (None, 7):
        refused(create("wtr-embed", files=[{"fileName": value, "watermarks": [{"text": "x"}]}]), "files[0].fileName")


def test_2_2_files_watermarks(create):
    for value, field in ((None, ""), ("x", ""), (["x"], "[0]"), ([{}], "[0].text"), ([{"text": 7}], "[0].text")):
        refused(create("wtr-embed", files=[{"fileName": "a.jpg", "watermarks": value}]), "files[0].watermarks" + field)
    ok(create("wtr-embed", files=[{"fileName": "a.jpg", "watermarks": [{"text": "one"}, {"text": "two"}]}]), 201)


# ---- 2.3 Order creation request (watermark extract)

def test_2_3_idempotency_key(create):
    for value in (None, 7, ""):
        refused(create("wtr-extract", idempotencyKey=value), "idempotencyKey")
    one = key()
    assert ok(create("wtr-extract", idempotencyKey=one), 201)["orderId"] == ok(create("wtr-extract", idempotencyKey=one), 200)["orderId"]


def test_2_3_file(create):
    for value in (None, "a.jpg", []):
        refused(create("wtr-extract", file=value), "file")
    for value in (None, 7):
        refused(create("wtr-extract", file={"fileName": value}), "file.fileName")
    ok(create("wtr-extract", file={"fileName": "a.jpg"}), 201)


@pytest.mark.parametrize("place", ["in file", "beside it"])
def test_2_3_include_original(create, place):
    """The document does not say where the member belongs, so both places are accepted."""
    more = {"includeOriginal": True, "originalFile": {"fileName": "first.jpg"}}
    answer = create("wtr-extract", file={"fileName": "a.jpg", **more}) if place == "in file" else create("wtr-extract", **more)
    assert is_url(ok(answer, 201)["file"]["originalFile"]["uploadUrl"])


# ---- 2.4 Order creation response

EVERY = (*CREATIONS, "wtr-extract")


@pytest.mark.parametrize("kind", EVERY)
def test_2_4_envelope(create, kind):
    assert list(create(kind).json) == ["data"]


@pytest.mark.parametrize("kind", EVERY)
def test_2_4_order_name(create, kind):
    prefix, _, date = ok(create(kind))["orderName"].rpartition("_")
    assert prefix and (prefix == "anti_ai") == kind.startswith("anti-ai") and datetime.date.fromisoformat(date)


@pytest.mark.parametrize("kind", EVERY)
def test_2_4_order_id(create, client, kind):
    order = ok(create(kind))["orderId"]
    assert is_text(order) and ok(client.get(f"{BASE}/{order}"))["orderId"] == order


def test_2_4_status(create):
    assert ok(create("anti-ai"))["status"] == "pending" and ok(create("anti-ai/with-urls"))["status"] == "inProgress"


def test_2_4_files(create):
    assert "files" not in ok(create("anti-ai/with-urls"))
    for kind in ("anti-ai", "wtr-embed"):
        assert len(ok(create(kind, 3))["files"]) == 3


def test_2_4_files_file_id(create):
    assert all(is_integer(file["fileId"]) for file in ok(create("anti-ai", 2))["files"])
    assert all(is_text(file["fileId"]) for file in ok(create("wtr-embed", 2))["files"])


@pytest.mark.parametrize("kind", ["anti-ai", "wtr-embed"])
def test_2_4_files_file_name(create, kind):
    assert [file["fileName"] for file in ok(create(kind, 2))["files"]] == ["0.jpg", "1.jpg"]


@pytest.mark.parametrize("kind", ["anti-ai", "wtr-embed"])
def test_2_4_files_upload_url(create, client, kind):
    for file in ok(create(kind, 2))["files"]:
        assert is_url(file["uploadUrl"])
        put(client, file, pictures.jpeg(300, 260))


@pytest.mark.parametrize("kind", ["anti-ai", "wtr-embed"])
def test_2_4_files_file_key(create, kind):
    keys = [file["fileKey"] for file in ok(create(kind, 2))["files"]]
    assert all(map(is_text, keys)) and len(set(keys)) == 2


def test_2_4_extract_response(create):
    data = ok(create("wtr-extract"))
    assert is_text(data["orderName"]) and is_text(data["orderId"])
    for name in ("fileId", "fileName", "uploadUrl", "fileKey", "fileFormat", "fileType"):
        assert is_text(data["file"][name]), name
    assert data["file"]["fileName"] == "found.jpg" and is_url(data["file"]["uploadUrl"])


# ---- 2.5 Order detail

def test_2_5_order_id(known_orders):
    assert known_orders.complete["orderId"] == known_orders.created["orderId"] and all(is_text(order["orderId"]) for order in known_orders.all())


def test_2_5_order_name(known_orders):
    assert all(is_text(order["orderName"]) for order in known_orders.all()) and known_orders.pending["orderName"] == "waits for its file"


def test_2_5_type(known_orders):
    assert [order["type"] for order in (known_orders.complete, known_orders.embedded, known_orders.detected)] == list(TYPES)


def test_2_5_channel(known_orders):
    assert all(order["channel"] == "api" for order in known_orders.all())


def test_2_5_status(known_orders):
    assert [order["status"] for order in known_orders.all()] == ["complete", "failed", "complete", "detected", "undetected", "pending"]


def test_2_5_file_count(known_orders):
    counts = [order["fileCount"] for order in known_orders.all()]
    assert counts == [2, 1, 1, 1, 1, 1] and all(map(is_integer, counts))


def test_2_5_thumbnail_image_url(known_orders, client):
    answer = client.request("GET", known_orders.complete["thumbnailImageUrl"], key=False)
    assert answer.status == 200 and max(pictures.decode(answer.body).size) <= 320
    assert all(order["thumbnailImageUrl"] is None or is_url(order["thumbnailImageUrl"]) for order in known_orders.all())


def test_2_5_created_at(known_orders):
    assert all(is_date_time(order["createdAt"]) for order in known_orders.all())


def test_2_5_updated_at(known_orders):
    assert all(is_date_time(order["updatedAt"]) and order["updatedAt"] >= order["createdAt"] for order in known_orders.all())


def test_2_5_errors(known_orders):
    assert isinstance(known_orders.failed["errors"], str) and "broken.jpg" in known_orders.failed["errors"]
    assert all(order["errors"] is None for order in known_orders.all() if order is not known_orders.failed)


def test_2_5_watermarks(known_orders):
    assert known_orders.embedded["watermarks"] == ["for Ada"]
    assert all(order["watermarks"] == [] for order in known_orders.all() if order is not known_orders.embedded)


def test_2_5_watermark_text(known_orders):
    assert known_orders.detected["watermarkText"] == "for Ada"
    assert all(order["watermarkText"] is None for order in known_orders.all() if order is not known_orders.detected)


# ---- 2.6 Order list item

ITEM = ("orderId", "orderName", "type", "channel", "status", "fileCount", "thumbnailImageUrl", "createdAt", "updatedAt")
DETAIL_ONLY = ("errors", "watermarks", "watermarkText")


def listed(client, **query):
    words = "&".join(f"{name}={value}" for name, value in query.items())
    return client.get(f"{BASE}?{words}" if words else BASE)


def orders(client, **query):
    return [item["orderId"] for item in ok(listed(client, **query))["orders"]]


def test_2_6_item(known_orders, client):
    items = {item["orderId"]: item for item in ok(listed(client, limit=-1))["orders"]}
    for order in known_orders.all():
        item = items[order["orderId"]]
        assert all(type(item[name]) is type(order[name]) for name in ITEM) and not set(DETAIL_ONLY) & set(item)
        assert all(item[name] == order[name] for name in ITEM if name != "thumbnailImageUrl")


@pytest.mark.parametrize("query", [{}, {"limit": 3}, {"limit": -1}, {"keyword": "nothing-has-this-name"}])
def test_2_6_list(known_orders, client, query):
    data = ok(listed(client, **query))
    assert set(data) == {"orders", "pageInfo"} and isinstance(data["orders"], list)
    assert set(data["pageInfo"]) == {"totalItems", "totalPages", "currentPage", "itemsPerPage"}
    assert all(map(is_integer, data["pageInfo"].values()))


# ---- 2.7 Download link

def test_2_7_download_url(known_orders, client, stack):
    url = ok(client.get(f"{BASE}/{known_orders.complete['orderId']}/download"))["downloadUrl"]
    assert is_url(url) and client.request("GET", url, key=False).status == 200
    for ahead_s, status in ((3540, 200), (3660, 403)):
        with stack.configured("test", "clock_offset_s", str(ahead_s)):
            assert client.request("GET", url, key=False).status == status


def test_2_7_expires_in(known_orders, client):
    data = ok(client.get(f"{BASE}/{known_orders.complete['orderId']}/download"))
    assert is_integer(data["expiresIn"]) and data["expiresIn"] == 3600


# ---- 2.8 Usage statistics

def statistics(client, query=""):
    return ok(client.get(f"{BASE}/stats/recent{query}"))


def test_2_8_daily_stats(known_orders, client):
    days = statistics(client)["dailyStats"]
    assert all(set(day) == {"usageDate", "usageCount"} for day in days)
    assert all(datetime.date.fromisoformat(day["usageDate"]) and is_integer(day["usageCount"]) for day in days)
    assert sum(day["usageCount"] for day in days) >= 5


def test_2_8_domain(known_orders, client):
    assert statistics(client)["domain"] and all(type(value) in (int, float) for value in statistics(client)["domain"])


def test_2_8_ticks(known_orders, client):
    assert statistics(client)["ticks"] and all(type(value) in (int, float) for value in statistics(client)["ticks"])


# ---- 2.9 Webhook

@pytest.fixture(scope="module")
def hook(client):
    """The document does not show how a webhook is created; the contract does."""
    return ok(client.post(f"{BASE}/webhooks", {"name": "first name", "url": "https://you.example/hook"}), 201)


@pytest.fixture
def changed(client, hook):
    return ok(client.put(f"{BASE}/webhooks/{hook['id']}", {"name": "new name", "url": "https://you.example/new"}), 200)


def test_2_9_id(hook, changed):
    assert is_integer(changed["id"]) and changed["id"] == hook["id"]


def test_2_9_name(changed):
    assert changed["name"] == "new name"


def test_2_9_url(changed):
    assert changed["url"] == "https://you.example/new"


def test_2_9_is_active(changed):
    assert changed["isActive"] is True


def test_2_9_updated_at(hook, changed):
    assert is_date_time(changed["updatedAt"]) and changed["updatedAt"] >= hook["updatedAt"]


# ---- 2.10 URL refresh response

def test_2_10_files(create, client):
    created = ok(create("anti-ai", 2))
    files = ok(client.post(f"{BASE}/{created['orderId']}/refresh-urls"), 200)["files"]
    for file, before in zip(files, created["files"], strict=True):
        assert file["fileId"] == str(before["fileId"]) and file["fileName"] == before["fileName"]
        assert file["fileKey"] == before["fileKey"] and is_url(file["uploadUrl"])
        put(client, file, pictures.jpeg(160, 120))


# ---- 3. States and transitions

def test_3_states(client):
    for state in STATES:
        ok(listed(client, status=state))


def test_3_pending(create, client):
    created = ok(create("anti-ai"))
    assert ok(client.get(f"{BASE}/{created['orderId']}"))["status"] == "pending"
    put(client, created["files"][0], pictures.jpeg(160, 120))


def test_3_in_progress(create, client):
    assert ok(client.get(f"{BASE}/{ok(create('anti-ai/with-urls', 20))['orderId']}"))["status"] in ("inProgress", "complete")


def test_3_complete(known_orders, client):
    assert known_orders.complete["status"] == "complete" and result(client, known_orders.complete)


def test_3_failed(known_orders, client):
    assert known_orders.failed["status"] == "failed"
    assert client.get(f"{BASE}/{known_orders.failed['orderId']}/download").status == 400


def test_3_expired(known_orders, client, stack):
    """Advances the clock for all existing orders, so later tests in this file use new orders."""
    order = known_orders.complete["orderId"]
    with stack.configured("test", "clock_offset_s", str(8 * DAY_S)):
        assert client.wait(order, until=("expired",))["status"] == "expired"
        assert client.get(f"{BASE}/{order}/download").status == 400
    assert order in orders(client, status="expired", limit=100)


def test_3_detected_undetected(known_orders, client):
    assert known_orders.detected["orderId"] in orders(client, status="detected", limit=100)
    assert known_orders.undetected["orderId"] in orders(client, status="undetected", limit=100)


def test_3_creation_leads_to_pending(create):
    created = ok(create("anti-ai"))
    assert created["status"] == "pending" and is_url(created["files"][0]["uploadUrl"])


def test_3_creation_with_urls_leads_to_in_progress(create, client):
    created = ok(create("anti-ai/with-urls"))
    assert created["status"] == "inProgress" and client.wait(created["orderId"])["status"] == "complete"


def test_3_confirmation_starts_the_processing(create, client):
    created = ok(create("anti-ai", 2))
    put(client, created["files"][0], pictures.jpeg(160, 120))
    assert confirm(client, created["orderId"]).status == 400, "not all files are uploaded"
    put(client, created["files"][1], pictures.jpeg(160, 120))
    ok(confirm(client, created["orderId"]), 200)
    assert client.wait(created["orderId"])["status"] == "complete"


def test_3_refresh_issues_new_upload_urls(create, client, stack):
    created = ok(create("anti-ai"))
    with stack.configured("test", "clock_offset_s", "7200"):
        late = client.request("PUT", created["files"][0]["uploadUrl"], pictures.jpeg(160, 120), key=False)
        assert late.status == 403, late
        [file] = ok(client.post(f"{BASE}/{created['orderId']}/refresh-urls"))["files"]
        put(client, file, pictures.jpeg(160, 120))
        assert ok(client.get(f"{BASE}/{created['orderId']}"))["status"] == "pending"


def test_3_seven_days_after_creation_an_order_expires(create, client, stack):
    order = protected(client, create, ("a.jpg", pictures.jpeg(160, 120)))[1]["orderId"]
    with stack.configured("test", "clock_offset_s", str(7 * DAY_S - 600)):
        assert client.get(f"{BASE}/{order}/download").status == 200
    with stack.configured("test", "clock_offset_s", str(7 * DAY_S + 60)):
        assert client.wait(order, until=("expired",))["status"] == "expired"
        assert client.get(f"{BASE}/{order}/download").status == 400


# ---- 4. Endpoints

def test_4_1_anti_ai(create):
    data = ok(create("anti-ai"))
    assert data["status"] == "pending" and is_url(data["files"][0]["uploadUrl"])


def test_4_2_anti_ai_with_urls(create):
    data = ok(create("anti-ai/with-urls"))
    assert is_text(data["orderName"]) and is_text(data["orderId"]) and data["status"] == "inProgress"


def test_4_3_confirm(create, client):
    created = ok(create("anti-ai"))
    put(client, created["files"][0], pictures.jpeg(160, 120))
    place, order = f"{BASE}/anti-ai/confirm", created["orderId"]
    refused(client.post(place, {"orderId": order}), "idempotencyKey")
    refused(client.post(place, {"idempotencyKey": 7, "orderId": order}), "idempotencyKey")
    refused(client.post(place, {"idempotencyKey": key()}), "orderId")
    refused(client.post(place, {"idempotencyKey": key(), "orderId": 7}), "orderId")
    ok(client.post(place, {"idempotencyKey": key(), "orderId": order}), 200)


def test_4_4_wtr_embed(create):
    data = ok(create("wtr-embed"))
    assert is_text(data["orderName"]) and is_text(data["orderId"]) and is_url(data["files"][0]["uploadUrl"])


def test_4_5_wtr_extract(create):
    data = ok(create("wtr-extract"))
    assert is_text(data["orderName"]) and is_text(data["orderId"]) and is_url(data["file"]["uploadUrl"])


def test_4_6_order(later, client):
    for order in later.all():
        data = ok(client.get(f"{BASE}/{order['orderId']}"), 200)
        assert set(ITEM + DETAIL_ONLY) <= set(data) and data["orderId"] == order["orderId"]


def test_4_7_download(later, client):
    for order in later.all():
        answer = client.get(f"{BASE}/{order['orderId']}/download")
        assert answer.status == (200 if order["status"] == "complete" else 400), answer


def test_4_8_refresh_urls(later, client):
    for order in later.all():
        answer = client.post(f"{BASE}/{order['orderId']}/refresh-urls")
        assert answer.status == (200 if order["status"] == "pending" else 400), answer


def test_4_9_orders(later, client):
    data = ok(client.get(BASE), 200)
    assert len(data["orders"]) == 10 and data["pageInfo"]["currentPage"] == 1


def test_4_10_stats_recent(later, client):
    today = datetime.datetime.now(datetime.timezone.utc).date()
    for query, last in (("", None), ("?date=2026-03-12", datetime.date(2026, 3, 12))):
        days = [datetime.date.fromisoformat(day["usageDate"]) for day in statistics(client, query)["dailyStats"]]
        last = last or max(days)
        assert sorted(days) == [last - datetime.timedelta(days=back) for back in range(6, -1, -1)]
    assert abs(max(datetime.date.fromisoformat(day["usageDate"]) for day in statistics(client)["dailyStats"]) - today).days <= 1
    for word in ("yesterday", "2026-02-30", "12.3.2026"):
        refused(client.get(f"{BASE}/stats/recent?date={word}"), "date")


def test_4_11_webhook(client, hook):
    place = f"{BASE}/webhooks/{hook['id']}"
    assert ok(client.put(place, {"name": "only the name"}), 200)["name"] == "only the name"
    assert ok(client.put(place, {"url": "https://you.example/only"}), 200)["url"] == "https://you.example/only"
    data = ok(client.put(place, {}), 200)
    assert (data["name"], data["url"]) == ("only the name", "https://you.example/only")
    refused(client.put(place, {"name": "n" * 101}), "name")
    refused(client.put(place, {"name": 7}), "name")
    for url in ("no url", 7, "//you.example/"):
        refused(client.put(place, {"url": url}), "url")
    assert client.put(f"{BASE}/webhooks/word", {}).status == 404


@pytest.mark.parametrize("name, media, form", [("a.jpg", "image/jpeg", "JPEG"), ("a.png", "image/png", "PNG"), ("a.webp", "image/webp", "WEBP")])
def test_4_upload_step(create, client, name, media, form):
    created = ok(create("anti-ai", files=[{"fileName": name}]))
    assert not created["files"][0]["uploadUrl"].startswith(client.stack.url + BASE)
    put(client, created["files"][0], pictures.encode(pictures.scene(160, 120), form), media)
    ok(confirm(client, created["orderId"]), 200)


# ---- 4. List query parameters

def test_4_list_page(later, client):
    first, second = ok(listed(client, limit=3)), ok(listed(client, limit=3, page=2))
    assert first["pageInfo"]["currentPage"] == 1 and second["pageInfo"]["currentPage"] == 2
    assert not {item["orderId"] for item in first["orders"]} & {item["orderId"] for item in second["orders"]}
    for value in (0, -1, "x", "1.5", ""):
        refused(listed(client, page=value), "page")


def test_4_list_limit(later, client):
    assert len(ok(listed(client))["orders"]) == ok(listed(client))["pageInfo"]["itemsPerPage"] == 10
    for value in (1, 7, 100):
        data = ok(listed(client, limit=value))
        assert data["pageInfo"]["itemsPerPage"] == value and len(data["orders"]) == min(value, data["pageInfo"]["totalItems"])
    everything = ok(listed(client, limit=-1))
    assert len(everything["orders"]) == everything["pageInfo"]["totalItems"] > 10
    for value in (0, 101, -2, "x"):
        refused(listed(client, limit=value), "limit")


def test_4_list_keyword(later, client):
    assert later.pending["orderId"] in orders(client, keyword="waits", limit=100)
    assert orders(client, keyword="nothing-has-this-name") == []


@pytest.mark.parametrize("value", [*STATES, "all"])
def test_4_list_status(later, client, value):
    found = ok(listed(client, status=value, limit=-1))["orders"]
    assert found or value == "inProgress", "one of each state is there"
    assert value == "all" or {item["status"] for item in found} <= {value}
    if value == "all":
        assert len(found) == len(ok(listed(client, limit=-1))["orders"])
        refused(listed(client, status="done"), "status")


@pytest.mark.parametrize("value", [*TYPES, "all"])
def test_4_list_type(later, client, value):
    found = ok(listed(client, type=value, limit=-1))["orders"]
    assert {item["type"] for item in found} == ({value} if value != "all" else set(TYPES))
    refused(listed(client, type="other"), "type")


@pytest.mark.parametrize("value", ["api", "web", "all"])
def test_4_list_channel(later, client, value):
    found = ok(listed(client, channel=value, limit=-1))["orders"]
    assert bool(found) == (value != "web") and {item["channel"] for item in found} <= {"api"}
    refused(listed(client, channel="post"), "channel")


# ---- 4. Rules

@pytest.mark.parametrize("kind", EVERY)
def test_4_rule_1_a_repeated_key_answers_the_existing_order(client, bodies, kind):
    body = bodies(kind)
    before = ok(listed(client))["pageInfo"]["totalItems"]
    answers = [ok(client.post(f"{BASE}/{kind}", body)) for _ in range(3)]
    assert len({answer["orderId"] for answer in answers}) == 1
    assert ok(listed(client))["pageInfo"]["totalItems"] == before + 1


@pytest.mark.parametrize("kind", CREATIONS)
def test_4_rule_2_files_holds_1_to_100_elements(create, kind):
    for count, status in ((0, 400), (1, 201), (100, 201), (101, 400)):
        assert create(kind, count).status == status


@pytest.mark.parametrize("kind", ANTI_AI)
def test_4_rule_3_zero_copy_needs_output_targets(create, kind):
    refused(create(kind, mode={"zeroCopy": True}), "outputTargets")
    ok(create(kind, mode={"zeroCopy": False}), 201)


def test_4_rule_4_orders_with_urls_need_no_confirmation(create, client):
    assert client.wait(ok(create("anti-ai/with-urls"))["orderId"])["status"] == "complete"


# ---- 5. Authentication

ENDPOINTS = [("POST", "/anti-ai"), ("POST", "/anti-ai/with-urls"), ("POST", "/anti-ai/confirm"), ("POST", "/wtr-embed"),
             ("POST", "/wtr-extract"), ("GET", "/1"), ("GET", "/1/download"), ("POST", "/1/refresh-urls"), ("GET", ""),
             ("GET", "/stats/recent"), ("PUT", "/webhooks/1")]


@pytest.mark.parametrize("method, path", ENDPOINTS)
def test_5_every_endpoint_requires_the_header(client, anonymous, method, path):
    body = {} if method != "GET" else None
    assert anonymous.request(method, BASE + path, body).status == 401
    assert client.request(method, BASE + path, body, headers={"Authorization": f"Bearer {client.key}"}).status not in (401, 403)


def test_5_a_key_is_shown_once(client, stack):
    """In the document the user creates the key on a settings page; here the operator does."""
    assert client.key not in stack.ctl("key", "list", client.account)


def test_5_a_key_only_gives_access_to_its_account(stranger, later):
    for order in later.all():
        assert stranger.get(f"{BASE}/{order['orderId']}").status == 404
    assert ok(listed(stranger))["orders"] == []


# ---- 6. Events

def test_6_completion_by_polling(later):
    assert later.complete["status"] == "complete"


def test_6_a_webhook_has_its_fields(client, hook, source):
    assert {"id", "name", "url", "isActive", "updatedAt"} <= set(hook)
    assert ok(client.put(f"{BASE}/webhooks/{hook['id']}", {"name": "ü" * 100}))["name"] == "ü" * 100


# ---- 7. Errors

def test_7_rate_limit_exceeded(stack):
    client = stack.account_new("free", None)
    statuses = [client.get(BASE).status for _ in range(60)]
    over = client.get(BASE)
    assert statuses == [200] * 60 and over.status == 429 and over.code == "RATE_LIMIT_EXCEEDED"


def test_7_a_failed_order_has_errors(later):
    assert is_text(later.failed["errors"])


# ---- 8. Limits

@pytest.mark.parametrize("plan, limit", [("free", 60), ("pro", 300), ("enterprise", 1000)])
def test_8_requests_per_minute(stack, plan, limit):
    assert stack.account_new(plan, None).get(BASE).headers["RateLimit-Limit"] == str(limit)


@pytest.mark.parametrize("kind", CREATIONS)
def test_8_files_per_order_creation_request(create, kind):
    assert create(kind, 100).status == 201 and create(kind, 101).status == 400


@pytest.mark.parametrize("kind", EVERY)
def test_8_order_name_length(create, kind):
    assert create(kind, orderName="n" * 64).status == 201
    refused(create(kind, orderName="n" * 65), "orderName")


def test_8_webhook_name_length(client, hook):
    place = f"{BASE}/webhooks/{hook['id']}"
    assert client.put(place, {"name": "n" * 100}).status == 200
    refused(client.put(place, {"name": "n" * 101}), "name")


@pytest.mark.parametrize("value, status", [(1, 200), (100, 200), (-1, 200), (0, 400), (101, 400)])
def test_8_list_limit(client, value, status):
    assert listed(client, limit=value).status == status


@pytest.mark.parametrize("value, status", [(1, 200), (1000000, 200), (0, 400), (-1, 400)])
def test_8_list_page(client, value, status):
    assert listed(client, page=value).status == status


def test_8_download_url_validity(later, client):
    assert ok(client.get(f"{BASE}/{later.complete['orderId']}/download"))["expiresIn"] == 3600


def test_8_file_availability(later, client, stack):
    order = later.embedded["orderId"]
    with stack.configured("test", "clock_offset_s", str(7 * DAY_S - 600)):
        assert client.get(f"{BASE}/{order}/download").status == 200
    with stack.configured("test", "clock_offset_s", str(7 * DAY_S + 60)):
        assert client.wait(order, until=("expired",))["status"] == "expired"
        assert client.get(f"{BASE}/{order}/download").status == 400


# ---- 9. Versioning

def test_9_the_version_is_in_the_path(client):
    assert client.get(BASE).status == 200
    for version in ("v1", "v3"):
        assert client.get(f"/api/{version}/orders").status == 404
