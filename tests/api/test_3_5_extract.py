"""Contract 3.5: pictures from which a watermark is extracted, and pictures without one."""
import pytest
from PIL import Image

import pictures
from client import ORDERS
from marks import embedded, extract, results

TEXT = "copy of the press office"


@pytest.fixture(scope="module")
def photo():
    return pictures.jpeg(800, 600, seed=52, quality=93)


@pytest.fixture(scope="module")
def marked(client, photo):
    [(_, data)] = results(client, embedded(client, [("photo.jpg", photo, [TEXT])])["orderId"])
    return data


def test_a_marked_picture_is_detected_with_its_text(client, marked):
    order = extract(client, marked)
    assert (order["status"], order["watermarkText"], order["errors"]) == ("detected", TEXT, None)
    assert (order["type"], order["fileCount"], order["completedFileCount"]) == ("watermarkExtract", 1, 1)


def test_a_mark_survives_being_scaled_and_compressed(client, marked):
    smaller = pictures.decode(marked).resize((600, 450), Image.LANCZOS)
    order = extract(client, pictures.encode(smaller, "JPEG", quality=70))
    assert (order["status"], order["watermarkText"]) == ("detected", TEXT)


def test_an_unmarked_picture_is_undetected(client, photo):
    order = extract(client, photo)
    assert (order["status"], order["watermarkText"], order["errors"]) == ("undetected", None, None)
    assert order["completedFileCount"] == 1


def test_another_accounts_mark_is_undetected(stranger, marked):
    order = extract(stranger, marked)
    assert (order["status"], order["watermarkText"]) == ("undetected", None)


def test_with_its_original_a_hard_crop_is_still_read(client, photo, marked):
    """A quarter of the picture, scaled and strongly compressed: only extraction with the original can read it."""
    crop = pictures.decode(marked).crop((170, 120, 470, 345)).resize((330, 248), Image.BICUBIC)
    order = extract(client, pictures.encode(crop, "JPEG", quality=75), original=photo)
    assert (order["status"], order["watermarkText"]) == ("detected", TEXT), order


def test_an_extraction_starts_only_when_suspect_and_original_are_in(client, photo, marked):
    import uuid
    created = client.post(f"{ORDERS}/wtr-extract", {
        "idempotencyKey": uuid.uuid4().hex,
        "file": {"fileName": "s.jpg", "includeOriginal": True, "originalFile": {"fileName": "o.jpg"}}})
    place, order = created.data["file"], created.data["orderId"]
    assert client.upload(place["uploadUrl"], marked).status == 201
    assert client.detail(order).data["status"] == "pending"
    assert client.upload(place["originalFile"]["uploadUrl"], photo).status == 201
    assert client.wait(order)["status"] == "detected"


def test_an_extraction_has_nothing_to_download(client, marked):
    order = extract(client, marked)["orderId"]
    answer = client.get(f"{ORDERS}/{order}/download")
    assert answer.status == 400 and answer.code == "ORDER_TYPE_CANT_DOWNLOAD"


def test_suspect_and_original_are_deleted_at_the_end(client, stack, photo, marked):
    order = extract(client, marked, original=photo)["orderId"]
    stack.settled(order)
    assert stack.stored(order) == []


def test_an_extraction_counts_one_result_of_its_day(client, stack, photo):
    def count():
        rows = stack.sql(f"SELECT SUM(result_count) FROM usage_days WHERE account_id = {client.account}")
        return int(rows[0][0])
    before = count()
    extract(client, photo)
    assert count() == before + 1


def test_a_broken_suspect_fails_the_order(client, marked):
    order = extract(client, marked[:700] + b"\0" * 300)
    assert order["status"] == "failed" and order["errors"].startswith("suspect.jpg: IMAGE_CORRUPT: "), order


def test_a_broken_original_fails_the_order_and_says_which(client, marked):
    order = extract(client, marked, original=marked[:700] + b"\0" * 300)
    assert order["status"] == "failed"
    assert order["errors"].startswith("suspect.jpg: IMAGE_CORRUPT: The original: "), order
