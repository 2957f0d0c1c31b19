"""Contract 3.5: pictures from which a watermark is extracted, and pictures without one."""
import re

import pytest
from PIL import Image

import pictures
from client import ORDERS
from marks import copied, embedded, extract, results
from test_imgwardctl import ctl

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


def verbose(stack, tmp_path, data, *words):
    file = tmp_path / "suspect.jpg"
    file.write_bytes(data)
    return ctl(stack, "image", "extract", "--verbose", *words, str(file))


def test_of_two_accounts_marks_each_reads_its_own(client, stranger, stack, marked, tmp_path):
    [(_, twice)] = results(stranger, embedded(stranger, [("photo.jpg", marked, ["of the stranger"])])["orderId"])
    assert extract(client, twice)["watermarkText"] == TEXT
    assert extract(stranger, twice)["watermarkText"] == "of the stranger"
    told = verbose(stack, tmp_path, twice)
    assert told.returncode == 0, told
    for account, text in ((client.account, TEXT), (stranger.account, "of the stranger")):
        assert f": account {account} (" in told.stderr and f"text: {text}\n" in told.stderr, told.stderr
    told = verbose(stack, tmp_path, twice, "--account", str(stranger.account))
    assert len(told.stdout.split()) == 1 and "text: of the stranger\n" in told.stderr, told


def test_a_weak_mark_is_read_by_its_account_only(client, stranger):
    """A JPEG of quality 10: the mark is too weak for a reader without the numbers of the account."""
    photo = pictures.jpeg(640, 480, seed=59, quality=93)
    [(_, copy)] = results(client, embedded(client, [("a.jpg", photo, [TEXT])])["orderId"])
    weak = pictures.encode(pictures.decode(copy), "JPEG", quality=10)
    read = extract(client, weak)
    assert read["watermarkText"] == TEXT and 10**9 <= read["certainty"] <= 10**15
    unread = extract(stranger, weak)
    assert (unread["status"], unread["certainty"], unread["foundIn"]) == ("undetected", None, None)


def test_each_copy_has_its_own_number(client, stack, photo):
    """Copies with one text have different numbers, so an average of them is not a picture with one of these marks."""
    order = embedded(client, [("a.jpg", photo, [TEXT, TEXT]), ("b.jpg", photo, [TEXT])])
    rows = stack.sql(f"SELECT number, text_id FROM order_watermarks WHERE order_id = {order['orderId']}")
    assert len({number for number, _ in rows}) == 3 and len({text for _, text in rows}) == 1
    last = results(client, order["orderId"])[2][1]
    assert extract(client, last)["certainty"] == 10**15
    assert extract(client, last)["foundIn"] == {
        "watermark": TEXT, "orderId": order["orderId"], "orderName": order["orderName"], "fileName": "b.jpg",
        "createdAt": order["createdAt"], "isSamePicture": True, "others": []}


def test_a_copied_mark_is_detected_but_not_as_the_same_picture(client, stack, marked, tmp_path):
    forged = copied(marked, pictures.jpeg(800, 600, seed=61, quality=93))
    order = extract(client, forged)
    assert (order["status"], order["watermarkText"], order["isSamePicture"]) == ("detected", TEXT, False)
    assert order["foundIn"]["fileName"] == "photo.jpg" and order["foundIn"]["isSamePicture"] is False
    told = verbose(stack, tmp_path, forged, "--account", str(client.account))
    assert "picture: not the one to which the watermark was added\n" in told.stderr, told
    told = verbose(stack, tmp_path, marked, "--account", str(client.account))
    assert "picture: the one to which the watermark was added\n" in told.stderr, told
    assert f"certainty: at most one of {10**15} pictures without a mark gives this answer\n" in told.stderr, told


def test_an_attacked_copy_is_the_same_picture(client, marked):
    whole = pictures.decode(marked)
    turned = whole.rotate(12, Image.BICUBIC).crop((150, 100, 650, 500))
    for attacked in (whole.convert("L"), whole.transpose(Image.FLIP_LEFT_RIGHT), whole.resize((400, 360)), turned):
        order = extract(client, pictures.encode(attacked, "JPEG", quality=80))
        assert (order["watermarkText"], order["isSamePicture"]) == (TEXT, True), attacked.size


def test_a_small_piece_is_not_judged(client, marked):
    order = extract(client, pictures.encode(pictures.decode(marked).crop((301, 202, 461, 322)), "PNG"))
    assert order["status"] == "undetected" or order["isSamePicture"] is not False


def collage(*copies):
    """Places pictures of 800 x 600 px on white, two in a row, 20 px apart."""
    whole = Image.new("RGB", (1620, 620 * ((len(copies) + 1) // 2)), "white")
    for place, data in enumerate(copies):
        whole.paste(pictures.decode(data), (place % 2 * 820, place // 2 * 620))
    return pictures.encode(whole, "PNG")


def test_each_account_reads_its_marks_in_a_collage(client, stranger, stack, marked, tmp_path):
    other = pictures.jpeg(800, 600, seed=53, quality=93)
    [(_, first)] = results(client, embedded(client, [("b.jpg", other, ["of the client"])])["orderId"])
    [(_, foreign)] = results(stranger, embedded(stranger, [("c.jpg", other, ["of the stranger"])])["orderId"])
    for copies in ((marked, foreign), (foreign, marked)):
        assert extract(client, collage(*copies))["watermarkText"] == TEXT
        assert extract(stranger, collage(*copies))["watermarkText"] == "of the stranger"
    several = extract(client, collage(marked, foreign, first, other))
    assert several["status"] == "detected" and sorted(several["watermarkText"].split("\n")) == sorted([TEXT, "of the client"])
    told = verbose(stack, tmp_path, collage(marked, foreign))
    assert len(told.stdout.split()) == 2 and told.stderr.count("text: ") == 2, told


def test_the_operator_reads_a_number_that_no_account_has(client, stack, photo, tmp_path):
    plain, foreign = tmp_path / "plain.jpg", tmp_path / "foreign.jpg"
    plain.write_bytes(photo)
    assert ctl(stack, "image", "embed", "--id", "00000000deadbeef", str(plain), str(foreign)).returncode == 0
    told = verbose(stack, tmp_path, foreign.read_bytes())
    assert (told.returncode, told.stdout) == (0, "00000000deadbeef\n")
    assert "correlation " in told.stderr and "number 00000000deadbeef: no account has a text with this number" in told.stderr, told.stderr
    assert extract(client, foreign.read_bytes())["status"] == "undetected"
    unmarked = verbose(stack, tmp_path, photo)
    assert unmarked.returncode == 1 and "number" not in unmarked.stderr


def test_the_operator_reads_a_cut_file_with_a_note(stack, marked, tmp_path):
    told = verbose(stack, tmp_path, marked[:len(marked) * 3 // 5])
    assert told.returncode == 0 and "note: The file is cut short" in told.stderr and f"text: {TEXT}\n" in told.stderr, told


def test_with_its_original_a_hard_crop_is_still_read(client, photo, marked):
    """A quarter of the picture, scaled and strongly compressed: only an extraction with the original can read the mark."""
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


# ---- Files that a delivery refuses

@pytest.fixture(scope="module")
def kinds(client, photo, marked):
    """The marked picture as a file of each kind."""
    scene = pictures.decode(photo)
    files = {"jpeg": marked, "progressive": pictures.encode(pictures.decode(marked), "JPEG", quality=90, progressive=True)}
    for form in ("PNG", "WEBP"):
        [(_, data)] = results(client, embedded(client, [(f"photo.{form.lower()}", pictures.encode(scene, form), [TEXT])])["orderId"])
        files[form.lower()] = data
    return files


@pytest.mark.parametrize("percent", [50, 70, 90])
@pytest.mark.parametrize("kind", ["jpeg", "progressive", "png", "webp"])
def test_a_file_that_is_cut_short_is_read_as_far_as_its_rows_go(client, kinds, kind, percent):
    data = kinds[kind]
    order = extract(client, data[:len(data) * percent // 100])
    assert (order["status"], order["watermarkText"], order["errors"]) == ("detected", TEXT, None)
    note = order["files"][0]["note"]
    assert note["code"] == "IMAGE_INCOMPLETE" and note["message"].startswith("The file is cut short"), note


def test_an_unmarked_file_that_is_cut_short_is_undetected_with_its_note(client, photo):
    order = extract(client, photo[:len(photo) // 2])
    assert (order["status"], order["errors"]) == ("undetected", None)
    note = order["files"][0]["note"]["message"]
    assert re.fullmatch("The file is cut short: 4[0-9] % of its rows could be read.", note), note


def test_a_file_without_its_end_marker_has_no_note(client, marked):
    order = extract(client, marked[:-2])
    assert (order["status"], order["files"][0]["note"]) == ("detected", None)


def test_a_cut_file_is_read_with_its_original(client, photo, marked):
    order = extract(client, marked[:len(marked) * 2 // 5], original=photo)
    assert (order["status"], order["watermarkText"]) == ("detected", TEXT)


@pytest.mark.parametrize("mode, form, status", [("CMYK", "JPEG", "detected"), ("L", "PNG", "detected"), ("P", "PNG", "detected"),
                                                ("1", "PNG", None), ("P", "WEBP", "detected")])
def test_a_copy_in_another_colour_mode_is_read(client, marked, mode, form, status):
    picture = pictures.decode(marked).convert(mode)
    order = extract(client, pictures.encode(picture if form != "WEBP" else picture.convert("RGB"), form))
    assert order["status"] in ((status,) if status else ("detected", "undetected")) and order["errors"] is None, order


@pytest.mark.parametrize("form", ["PNG", "WEBP"])
def test_of_an_animation_the_first_frame_is_read(client, marked, form):
    first = pictures.decode(marked)
    order = extract(client, pictures.encode(first, form, save_all=True, append_images=[first.rotate(180)], duration=100))
    assert (order["status"], order["watermarkText"]) == ("detected", TEXT)
