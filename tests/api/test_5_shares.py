"""Contract 5 and 6: the share of the ordered protection in a result, the result's size, and the owner of a found mark."""
import re

import pytest

import pictures
from client import ORDERS
from marks import embedded, extract, results


def words(order):
    return {file["fileName"]: file["protection"]["word"] for file in order["files"]}


@pytest.fixture(scope="module")
def protected(client):
    made = {"coarse.jpg": pictures.jpeg(320, 240, quality=5), "fine.jpg": pictures.jpeg(320, 240, quality=99),
            "photo.png": pictures.png(320, 240), "lossy.webp": pictures.encode(pictures.decode(pictures.png(320, 240)), "WEBP", quality=60)}
    return made, client.order_whole(list(made.items()), 120)


def test_each_result_has_its_share_of_the_ordered_change(protected):
    _, order = protected
    for file in order["files"]:
        share, word = file["protection"]["share"], file["protection"]["word"]
        assert 0 <= share <= 100
        assert word == ("strong" if share >= 50 else "medium" if share >= 25 else "weak"), file
    assert words(order)["photo.png"] == "strong" and words(order)["coarse.jpg"] == "weak", words(order)


def test_a_coarser_file_has_a_smaller_share(protected):
    _, order = protected
    share = {file["fileName"]: file["protection"]["share"] for file in order["files"]}
    # A JPEG of quality 99 keeps the whole change, and may show up to 5 % more than the budget (doc/protection-engine.md).
    assert 1.05 * share["photo.png"] >= share["fine.jpg"] > share["coarse.jpg"] and share["photo.png"] > share["lossy.webp"], share


def test_one_threshold_decides_about_the_note(protected):
    """With earlier thresholds, a JPEG with 11 % had no note, but a PNG with 36 % had one."""
    _, order = protected
    for file in order["files"]:
        reduced = file["note"] is not None and file["note"]["code"] == "PROTECTION_REDUCED"
        assert reduced == (file["protection"]["share"] < 50), file
        if reduced and file["protection"]["share"] > 0:
            assert re.search(rf"\b{file['protection']['share']} % of its effect", file["note"]["message"]), file


def test_the_sizes_before_and_after_are_known(client, protected):
    made, order = protected
    sizes = {name: len(data) for name, data in results(client, order["orderId"])}
    assert {file["fileName"]: (file["inputBytes"], file["resultBytes"]) for file in order["files"]} == {
        name: (len(data), sizes[name]) for name, data in made.items()}


def test_before_its_upload_a_file_has_no_size(client):
    order = client.get(f"{ORDERS}/{client.create(['a.jpg']).data['orderId']}").data
    assert [(file["inputBytes"], file["resultBytes"], file["protection"]) for file in order["files"]] == [(None, None, None)]


@pytest.fixture(scope="module")
def marked(client):
    data = pictures.jpeg(600, 450, seed=11)
    return embedded(client, [("beach.jpg", data, ["for Ada", "for all"]), ("boat.jpg", pictures.jpeg(600, 450, seed=12), ["for all"])])


def test_a_found_mark_names_its_order_and_file(client, marked):
    copies = results(client, marked["orderId"])
    read = extract(client, copies[0][1])
    assert read["watermarkText"] == "for Ada"
    assert read["foundIn"] == {"watermark": "for Ada", "orderId": marked["orderId"], "orderName": marked["orderName"], "fileName": "beach.jpg",
                               "createdAt": marked["createdAt"], "isSamePicture": True, "others": []}


def test_of_a_text_of_several_files_the_copy_is_named(client, marked):
    for copy, name in ((1, "beach.jpg"), (2, "boat.jpg")):
        read = extract(client, results(client, marked["orderId"])[copy][1])
        assert read["watermarkText"] == "for all" and read["foundIn"]["fileName"] == name
        assert read["foundIn"]["others"] == []


def test_each_copy_of_a_collage_has_its_place(client, stack, marked):
    """The extraction finds all copies of the order."""
    read = extract(client, results(client, marked["orderId"])[0][1])["orderId"]
    stack.sql(f"INSERT IGNORE INTO readings (order_id, number) SELECT {read}, number FROM order_watermarks "
              f"WHERE order_id = {marked['orderId']}")
    found = client.get(f"{ORDERS}/{read}").data["foundIn"]
    assert [(place["watermark"], place["fileName"]) for place in [found, *found["others"]]] == [
        ("for Ada", "beach.jpg"), ("for all", "beach.jpg"), ("for all", "boat.jpg")]


def test_without_a_mark_of_the_account_nothing_is_named(client, stranger, marked):
    copy = results(client, marked["orderId"])[0][1]
    assert extract(stranger, copy)["foundIn"] is None
    assert "foundIn" not in marked
