"""Clients distinguish results by a thumbnail of each, a word in the names, and the time of the deletion."""
import io
import re
import urllib.parse
import zipfile

import pytest

import pictures
from client import ORDERS
from marks import embedded


def shown(client, url):
    answer = client.request("GET", url, key=False)
    assert answer.status == 200 and answer.headers["Content-Type"] == "image/webp"
    assert re.fullmatch(r"private, max-age=\d+", answer.headers["Cache-Control"])
    return pictures.decode(answer.body)


def mean(picture):
    return [sum(band) / len(band) for band in zip(*picture.convert("RGB").resize((8, 8)).getdata())]


def test_each_file_has_a_thumbnail_of_its_result_and_the_order_that_of_its_first(client, stack):
    sources = [("red.png", pictures.encode(pictures.scene(700, 350, 4), "PNG")), ("cut.jpg", pictures.jpeg()[:2000]),
               ("tall.jpg", pictures.jpeg(200, 500, 9)), ("small.webp", pictures.webp(100, 80, 10))]
    order = client.order_whole(sources)
    urls = [file["thumbnailImageUrl"] for file in order["files"]]
    assert urls[1] is None and len(set(urls)) == 4
    thumbnails = [shown(client, url) for url in urls if url]
    assert [one.size for one in thumbnails] == [(320, 160), (128, 320), (100, 80)]
    for thumbnail, (_, data) in zip(thumbnails, [sources[0], *sources[2:]]):
        assert all(abs(one - two) < 6 for one, two in zip(mean(thumbnail), mean(pictures.decode(data))))
    assert shown(client, order["thumbnailImageUrl"]).size == (320, 160)
    assert sorted(stack.stored(order["orderId"])) == ["out"] * 3 + ["thumb"] * 3 + ["zip"]
    # Only the account gets URLs, and a URL is valid for one file only.
    assert stack.account_new().detail(order["orderId"]).status == 404
    path = urllib.parse.urlsplit(urls[0])
    for place in ("2", "3", "9", "0", "-1", "1/1", "x", ""):
        forged = client.request("GET", f"{path.path.rpartition('/')[0]}/{place}?{path.query}", key=False)
        assert forged.status == 403 and forged.code == "URL_SIGNATURE_INVALID", place


def test_the_thumbnails_are_deleted_with_the_order(client, stack, jpeg):
    order = client.order_whole([("a.jpg", jpeg), ("b.jpg", jpeg)])
    urls = [file["thumbnailImageUrl"] for file in order["files"]]
    assert order["deletedAt"] is None
    assert client.request("DELETE", f"{ORDERS}/{order['orderId']}").status == 200
    after = client.detail(order["orderId"]).data
    assert after["status"] == "expired" and after["deletedAt"] == after["expiresAt"] == after["updatedAt"]
    assert [file["thumbnailImageUrl"] for file in after["files"]] == [None, None] and stack.stored(order["orderId"]) == []
    assert [client.request("GET", url, key=False).status for url in urls] == [404, 404]
    assert stack.sql(f"SELECT COUNT(thumbnail_store_key) FROM files WHERE order_id = {order['orderId']}") == [["0"]]


def test_an_order_whose_time_is_over_was_not_deleted_by_the_account(client, stack, jpeg):
    order = client.order_whole([("a.jpg", jpeg)])["orderId"]
    stack.sql(f"UPDATE orders SET expires_at = '2020-01-01 00:00:00' WHERE id = {order}")
    assert client.wait(order, until=("expired",))["deletedAt"] is None
    assert [item["deletedAt"] for item in client.list().data["orders"] if item["orderId"] == order] == [None]


def test_a_file_with_several_copies_has_one_thumbnail(client, stack):
    order = embedded(client, [("a.jpg", pictures.jpeg(400, 400), ["one", "two", "three"])])
    assert order["status"] == "complete"
    assert shown(client, order["files"][0]["thumbnailImageUrl"]).size == (320, 320)
    stack.settled(order["orderId"])
    assert sorted(stack.stored(order["orderId"])) == ["out"] * 3 + ["thumb", "zip"]


def names(client, order):
    data = client.get(f"{ORDERS}/{order}/download").data
    archive = client.request("GET", data["downloadUrl"], key=False)
    if data["contentType"] != "application/zip":
        return [data["fileName"]]
    with zipfile.ZipFile(io.BytesIO(archive.body)) as opened:
        listed = [name for name in opened.namelist() if name != "copies.csv"]
    assert listed == [file["fileName"] for file in data["files"]]
    return listed


@pytest.mark.parametrize("suffix, expected", [
    (None, ["a.jpg", "a (2).jpg", "b.png"]), ("-protected", ["a-protected.jpg", "a-protected (2).jpg", "b-protected.png"])])
def test_a_suffix_is_in_the_names_of_all_results(client, jpeg, png, suffix, expected):
    order = client.order_whole([("a.jpg", jpeg), ("a.jpg", jpeg), ("b.png", png)], **({"resultSuffix": suffix} if suffix else {}))
    assert names(client, order["orderId"]) == expected
    assert [file["fileName"] for file in order["files"]] == ["a.jpg", "a.jpg", "b.png"]


def test_a_suffix_of_a_single_result_and_of_copies(client, jpeg):
    assert names(client, client.order_whole([("a.jpg", jpeg)], resultSuffix="_x")["orderId"]) == ["a_x.jpg"]
    order = embedded(client, [("a.jpg", pictures.jpeg(400, 400), ["one", "two"])], resultSuffix="-marked")
    assert names(client, order["orderId"]) == ["a-marked-1.jpg", "a-marked-2.jpg"]


@pytest.mark.parametrize("suffix", ["", "x" * 21, "../x", "a b", "é", ".exe", "a\u0000", 3])
def test_a_suffix_that_is_no_word_is_refused(client, suffix):
    answer = client.create(resultSuffix=suffix)
    assert answer.status == 400 and answer.fields() == ["resultSuffix"], answer


def test_a_suffix_belongs_to_the_request(client):
    first = client.create(key="suffixed", resultSuffix="-a")
    assert client.create(key="suffixed", resultSuffix="-a").data["orderId"] == first.data["orderId"]
    assert client.create(key="suffixed", resultSuffix="-b").code == "IDEMPOTENCY_KEY_REUSED"
