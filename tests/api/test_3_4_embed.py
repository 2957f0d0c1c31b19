"""Contract 3.4: embedded watermarks, one copy per text, and extraction from the downloads."""
import csv
import hashlib
import io
import zipfile

import os
import sys

import pytest

import pictures
from client import ORDERS
from marks import detail_files, embed, embedded, extract, results

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bench"))
from watermark_drawings import drawing  # noqa: E402


@pytest.fixture(scope="module")
def photo():
    return pictures.jpeg(640, 480, seed=41)


def test_an_embedded_text_is_extracted_from_the_download(client, photo):
    text = "licensed to Ada, 7 \u2013 Zo\u00eb \U0001d11e"
    order = embedded(client, [("photo.jpg", photo, [text])])
    assert order["status"] == "complete" and order["errors"] is None and order["completedFileCount"] == 1
    assert order["expiresAt"] is not None and order["thumbnailImageUrl"]
    [(name, data)] = results(client, order["orderId"])
    assert name == "photo.jpg" and data != photo
    read = extract(client, data)
    assert (read["status"], read["watermarkText"]) == ("detected", text), read


def test_a_result_keeps_format_size_and_looks(client, photo):
    for name, data in [("a.jpg", photo), ("a.png", pictures.png(400, 300)), ("a.webp", pictures.webp(400, 300))]:
        order = embedded(client, [(name, data, ["x"])])
        [(_, result)] = results(client, order["orderId"])
        before, after = pictures.decode(data), pictures.decode(result)
        assert (after.format, after.size, after.mode) == (before.format, before.size, before.mode)
        assert pictures.psnr(data, result) > 33


def test_each_text_makes_a_copy_with_a_unique_name(client, photo):
    texts = ["for Ada", "for Bob", "for Cleo"]
    order = embedded(client, [("photo.jpg", photo, texts)])
    assert order["status"] == "complete" and (order["fileCount"], order["completedFileCount"]) == (1, 1)
    found = results(client, order["orderId"])
    assert [name for name, _ in found] == ["photo-1.jpg", "photo-2.jpg", "photo-3.jpg"]
    assert len({data for _, data in found}) == 3
    assert [extract(client, data)["watermarkText"] for _, data in found] == texts


def test_names_are_unique_in_the_order_and_in_the_zip(client, photo):
    order = embedded(client, [("a.jpg", photo, ["one", "two"]), ("a-1.jpg", photo, ["three"]), ("a.jpg", photo, ["four"])])
    names = [name for name, _ in results(client, order["orderId"])]
    assert names == ["a-1.jpg", "a-2.jpg", "a-1 (2).jpg", "a.jpg"]
    answer = client.get(f"{ORDERS}/{order['orderId']}/download").data
    archive = zipfile.ZipFile(io.BytesIO(client.request("GET", answer["downloadUrl"], key=False).body))
    assert archive.namelist() == [*names, "copies.csv"]


def test_copies_are_named_by_their_texts(client, photo):
    """Texts that must be quoted in CSV, in the download and in the archive."""
    texts = ["for Ada", 'a "quoted", one', "=1+1", "요약 ✓"]
    order = embedded(client, [("photo.jpg", photo, texts)])
    answer = client.get(f"{ORDERS}/{order['orderId']}/download").data
    assert [file["watermark"] for file in answer["files"]] == texts
    archive = zipfile.ZipFile(io.BytesIO(client.request("GET", answer["downloadUrl"], key=False).body))
    assert archive.testzip() is None
    rows = list(csv.DictReader(io.StringIO(archive.read("copies.csv").decode(), newline="")))
    assert rows == [{"fileName": file["fileName"], "watermark": text, "sha256": hashlib.sha256(archive.read(file["fileName"])).hexdigest()}
                    for file, text in zip(answer["files"], texts)]
    assert [extract(client, archive.read(row["fileName"]))["watermarkText"] for row in rows] == texts


def test_ten_copies_of_a_file_are_one_complete_file(client, stack):
    order = embedded(client, [("p.png", pictures.png(300, 300), [f"copy {n}" for n in range(10)])])
    assert (order["status"], order["completedFileCount"]) == ("complete", 1)
    assert len(results(client, order["orderId"])) == 10
    day = stack.sql(f"SELECT result_count FROM usage_days WHERE account_id = {client.account}")
    assert int(day[0][0]) >= 10


def test_a_file_too_small_for_a_mark_fails_alone(client, photo):
    order = embedded(client, [("small.png", pictures.png(400, 255), ["x", "y"]), ("good.jpg", photo, ["x"])])
    assert order["status"] == "complete" and order["completedFileCount"] == 1
    assert [line.split(": ")[:2] for line in order["errors"].splitlines()] == [["small.png", "IMAGE_TOO_SMALL"]]
    assert detail_files(order) == [("small.png", "failed"), ("good.jpg", "complete")]
    assert [name for name, _ in results(client, order["orderId"])] == ["good.jpg"]


def test_a_picture_that_is_all_transparent_has_too_little_to_be_marked_and_says_so(client):
    clear = pictures.encode(pictures.Image.new("RGBA", (400, 400), (90, 120, 30, 0)), "PNG")
    order = embedded(client, [("clear.png", clear, ["x"])])
    assert order["status"] == "failed"
    assert order["errors"] == ("clear.png: WATERMARK_NOT_EMBEDDABLE: The visible part of the picture is too small for a "
                               "readable watermark; use a larger picture or one with less transparency."), order


def test_watermarks_of_drawings_are_readable_or_the_file_fails_with_a_code(client):
    files = [(f"{name.replace(' ', '-')}.{kind.lower()}", pictures.encode(pictures.Image.fromarray(pixels), kind, quality=quality))
             for (name, pixels), (kind, quality) in zip([drawing(seed) for seed in (0, 2, 3, 5)],
                                                        [("WEBP", 60), ("WEBP", 60), ("JPEG", 75), ("JPEG", 75)])]
    order = embedded(client, [(name, data, [f"copy of {name}"]) for name, data in files])
    delivered = results(client, order["orderId"]) if order["status"] == "complete" else []
    failed = [file["fileName"] for file in order["files"] if file["status"] == "failed"]
    assert sorted(failed + [name for name, _ in delivered]) == sorted(name for name, _ in files), order
    assert all(file["error"]["code"] == "WATERMARK_NOT_EMBEDDABLE" for file in order["files"] if file["status"] == "failed"), order
    assert len(delivered) >= 3, order
    for name, data in delivered:
        read = extract(client, data)
        assert (read["status"], read["watermarkText"]) == ("detected", f"copy of {name}"), (name, read)


def test_the_same_text_of_the_same_account_reuses_its_number(client, stack, photo):
    for _ in range(2):
        embedded(client, [("a.jpg", photo, ["a text that comes twice"])])
    assert len(stack.sql(f"SELECT 1 FROM watermark_texts WHERE account_id = {client.account} "
                         "AND text = 'a text that comes twice'")) == 1


def test_inputs_are_deleted_when_an_embedding_order_ends(client, stack, photo):
    order = embedded(client, [("a.jpg", photo, ["x", "y"])])["orderId"]
    stack.settled(order)
    assert stack.stored(order) == ["out", "out", "thumb", "zip"]


def test_an_embedding_order_without_a_watermark_key_fails_clearly(stack, client, photo):
    import os
    path = os.path.join(os.path.dirname(stack.environment["IMGWARD_CONFIG"]), "watermark.key")
    os.rename(path, path + ".away")
    try:
        stack.part("stop", "worker")
        stack.part("start", "worker")
        order = embedded(client, [("a.jpg", photo, ["x"])])
        assert order["status"] == "failed"
        assert order["errors"] == "a.jpg: PROCESSING_CRASHED: The service is not set up for this kind of work."
    finally:
        os.rename(path + ".away", path)
        stack.part("stop", "worker")
        stack.part("start", "worker")


def test_a_download_before_the_end_is_refused(client):
    created = embed(client, [("a.jpg", None, ["x"])])
    answer = client.get(f"{ORDERS}/{created.data['orderId']}/download")
    assert answer.status == 400 and answer.code == "ORDER_NOT_COMPLETED"
