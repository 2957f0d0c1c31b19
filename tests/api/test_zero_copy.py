"""Zero copy (contract 3.1, 5 and 9): results go to the client's output targets, and the service keeps no file."""
import contextlib
import datetime
import threading
import time

import pytest

import pictures
from client import ORDERS
from remotes import Remotes


@pytest.fixture(scope="module")
def remotes():
    made = Remotes()
    yield made
    made.close()


@pytest.fixture(scope="module", autouse=True)
def short(stack, remotes):
    remotes.gives["/good.jpg"] = pictures.jpeg(300, 200, seed=71)
    with stack.configured("worker", "retry_first_ms", "200"):
        yield


def later(seconds=3600):
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return at.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def pushed(client, remotes, targets, source="/good.jpg", seconds=300):
    """Waits for a zero-copy order with one source per target (path, lifetime in seconds)."""
    created = client.create(
        [{"fileName": f"{number}.jpg", "imageUrl": remotes.url(source)} for number in range(len(targets))],
        kind="anti-ai/with-urls", mode={"zeroCopy": True},
        outputTargets=[{"fileKey": f"key/{number}", "url": remotes.url(path), "presignedUrlExpiresAt": later(lifetime)}
                       for number, (path, lifetime) in enumerate(targets)])
    assert created.status == 201, created
    return client.wait(created.data["orderId"], seconds)


def nothing_is_left(stack, order):
    stack.emptied(order)
    assert stack.stored(order) == []
    assert stack.sql(f"SELECT id FROM results WHERE order_id = {order}") == []
    assert stack.sql(f"SELECT store_key, target_url FROM files WHERE order_id = {order} AND "
                     "(store_key IS NOT NULL OR target_url IS NOT NULL)") == []


def test_each_result_is_put_to_its_target_with_its_content_type(client, stack, remotes):
    """The content type depends on the bytes, not on the names."""
    remotes.gives["/good.png"] = pictures.png(200, 200)
    created = client.create(
        [{"fileName": "a.png", "imageUrl": remotes.url("/good.jpg")}, {"fileName": "b.jpg", "imageUrl": remotes.url("/good.png")}],
        kind="anti-ai/with-urls", mode={"zeroCopy": True},
        outputTargets=[{"fileKey": "k", "url": remotes.url(path), "presignedUrlExpiresAt": later()} for path in ("/out/a?s=1", "/out/b")])
    order = client.wait(created.data["orderId"])
    assert order["status"] == "complete" and order["completedFileCount"] == 2
    [(headers, body)] = remotes.put["/out/a?s=1"]
    assert headers["Content-Type"] == "image/jpeg" and pictures.decode(body).size == (300, 200)
    assert body != remotes.gives["/good.jpg"] and headers["Content-Length"] == str(len(body))
    [(headers, body)] = remotes.put["/out/b"]
    assert headers["Content-Type"] == "image/png" and pictures.decode(body).format == "PNG"
    assert "Authorization" not in headers and "Transfer-Encoding" not in headers
    nothing_is_left(stack, order["orderId"])


def test_nothing_is_kept_not_even_a_thumbnail_and_nothing_can_be_downloaded(client, stack, remotes):
    order = pushed(client, remotes, [("/out/one", 600)])
    assert order["status"] == "complete" and order["thumbnailImageUrl"] is None and order["errors"] is None
    nothing_is_left(stack, order["orderId"])
    answer = client.get(f"{ORDERS}/{order['orderId']}/download")
    assert answer.status == 400 and answer.code == "ORDER_TYPE_CANT_DOWNLOAD"


def test_uploads_can_be_zero_copy_too(client, stack, remotes, jpeg):
    created = client.create(["a.jpg"], mode={"zeroCopy": True}, outputTargets=[
        {"fileKey": "k", "url": remotes.url("/out/upload"), "presignedUrlExpiresAt": later()}])
    assert client.upload(created.data["files"][0]["uploadUrl"], jpeg).status == 201
    assert client.confirm(created.data["orderId"]).status == 200
    order = client.wait(created.data["orderId"])
    assert order["status"] == "complete" and len(remotes.put["/out/upload"]) == 1
    nothing_is_left(stack, order["orderId"])


@pytest.mark.parametrize("status", [403, 404, 411])
def test_a_target_that_refuses_only_fails_its_file(client, stack, remotes, status):
    remotes.takes[f"/refuses{status}"] = status
    order = pushed(client, remotes, [(f"/refuses{status}", 600), ("/out/good", 600)])
    assert order["status"] == "complete" and order["completedFileCount"] == 1
    error = order["errors"]
    assert error.startswith("0.jpg: OUTPUT_TARGET_REFUSED: ") and str(status) in error
    assert remotes.count(f"/refuses{status}") == 1
    nothing_is_left(stack, order["orderId"])


def test_an_expired_target_fails_without_a_request(client, stack, remotes):
    """The target expires while the source is fetched."""
    gate = threading.Event()
    remotes.gives["/late"] = ("gate", gate, pictures.jpeg(300, 200, seed=72))
    created = client.create([{"fileName": "0.jpg", "imageUrl": remotes.url("/late")}], kind="anti-ai/with-urls",
                            mode={"zeroCopy": True}, outputTargets=[
                                {"fileKey": "k", "url": remotes.url("/out/expired"), "presignedUrlExpiresAt": later()}])
    end = time.monotonic() + 90
    while remotes.count("/late") == 0:
        assert time.monotonic() < end
        time.sleep(0.05)
    stack.sql(f"UPDATE files SET target_expires_at = UTC_TIMESTAMP(3) WHERE order_id = {created.data['orderId']}")
    gate.set()
    order = client.wait(created.data["orderId"])
    assert order["status"] == "failed" and order["errors"].startswith("0.jpg: OUTPUT_TARGET_REFUSED: ")
    assert "expired" in order["errors"] and remotes.count("/out/expired") == 0
    nothing_is_left(stack, order["orderId"])


def test_a_target_that_redirects_is_refused(client, remotes):
    remotes.takes["/moved"] = (307, {"Location": "/out/moved"}, b"")
    order = pushed(client, remotes, [("/moved", 600)])
    assert order["status"] == "failed" and "OUTPUT_TARGET_REFUSED" in order["errors"]
    assert remotes.count("/out/moved") == 0


@pytest.mark.parametrize("first", [500, 503, "hang"])
def test_a_server_error_or_a_timeout_of_a_target_is_retried(client, stack, remotes, first):
    path = f"/flaky/{first}"
    remotes.takes[path] = [first, 200]
    with stack.configured("outgoing", "push_timeout_s", "8") if first == "hang" else contextlib.nullcontext():
        order = pushed(client, remotes, [(path, 600)])
    assert order["status"] == "complete" and remotes.count(path) == 2 and len(remotes.put[path]) == 1
    nothing_is_left(stack, order["orderId"])


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_of_a_target_delays_the_retry(client, remotes, status):
    path = f"/asks/{status}"
    remotes.takes[path] = [(status, {"Retry-After": "4"}, b""), 200]
    assert pushed(client, remotes, [(path, 600)])["status"] == "complete"
    first, second = remotes.times(path)
    assert second - first > 3.9


def test_an_unreachable_target_fails_after_five_attempts(client, stack, remotes):
    remotes.takes["/away"] = 503
    order = pushed(client, remotes, [("/away", 600)])
    assert order["status"] == "failed" and "503" in order["errors"] and remotes.count("/away") == 5
    nothing_is_left(stack, order["orderId"])


def test_retries_end_with_the_targets_time(client, stack, remotes):
    """If the target asks for a retry after the end of its URL, no retry is made."""
    remotes.takes["/brief"] = (503, {"Retry-After": "600"}, b"")
    created = client.create([{"fileName": "a.jpg", "imageUrl": remotes.url("/good.jpg")}], kind="anti-ai/with-urls",
                            mode={"zeroCopy": True}, outputTargets=[
                                {"fileKey": "k", "url": remotes.url("/brief"), "presignedUrlExpiresAt": later()}])
    order, end = created.data["orderId"], time.monotonic() + 180
    while not stack.sql(f"SELECT 1 FROM jobs WHERE order_id = {order} AND kind = 'push' AND failure_count = 1"):
        assert time.monotonic() < end
        time.sleep(0.2)
    stack.sql(f"UPDATE files SET target_expires_at = UTC_TIMESTAMP(3) WHERE order_id = {order}")
    stack.ctl("order", "retry", order)
    data = client.wait(order)
    assert data["status"] == "failed" and "expired" in data["errors"]
    assert remotes.count("/brief") == 1


def test_a_push_to_an_address_that_is_not_public_is_refused(client, remotes):
    created = client.create([{"fileName": "a.jpg", "imageUrl": remotes.url("/good.jpg")}], kind="anti-ai/with-urls",
                            mode={"zeroCopy": True}, outputTargets=[
                                {"fileKey": "k", "url": "http://10.0.0.1/x", "presignedUrlExpiresAt": later()}])
    order = client.wait(created.data["orderId"])
    assert order["status"] == "failed" and order["errors"].startswith("a.jpg: OUTPUT_TARGET_REFUSED: ")


def test_pushed_results_count_as_usage(client, stack, remotes):
    def count():
        rows = stack.sql(f"SELECT SUM(result_count) FROM usage_days WHERE account_id = {client.account}")
        return int(rows[0][0])
    pushed(client, remotes, [("/out/u", 600)])
    before = count()
    pushed(client, remotes, [("/out/u1", 600), ("/out/u2", 600), ("/refuses403", 600)])
    assert count() == before + 2


def test_a_bad_source_of_a_zero_copy_order_pushes_nothing(client, stack, remotes):
    order = pushed(client, remotes, [("/out/never", 600)], source="/not-there")
    assert order["status"] == "failed" and "SOURCE_REFUSED" in order["errors"]
    assert "/out/never" not in remotes.put
    nothing_is_left(stack, order["orderId"])
