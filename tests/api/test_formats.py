"""Leaked copies come in any format: extractions read HEIC, AVIF, TIFF, GIF and BMP; other orders refuse them by name."""
import shutil
import subprocess
import uuid

import pytest
from PIL import Image

import pictures
from client import ORDERS
from marks import embedded, extract, results
from test_imgwardctl import ctl

TEXT = "copy of the archive"
NAMES = {"heic": "leak.heic", "avif": "leak.avif", "tiff": "leak.tif", "gif": "leak.gif", "bmp": "leak.bmp"}
SENTENCES = {"heic": "This is a HEIC file (iPhone photo). Export it as JPEG and upload it again.",
             "avif": "This is an AVIF file. Export it as JPEG and upload it again.",
             "tiff": "This is a TIFF file or a raw photo (DNG, NEF, ARW). Export it as JPEG and upload it again.",
             "gif": "This is a GIF file. Export it as PNG and upload it again.",
             "bmp": "This is a BMP file. Export it as PNG and upload it again."}




def heif_file(picture, folder, *words):
    source, target = folder / "source.png", folder / "target.heif"
    source.write_bytes(pictures.encode(picture, "PNG"))
    if shutil.which("heif-enc") is None:
        pytest.skip("heif-enc is not installed")
    made = subprocess.run(["heif-enc", "-q", "80", *words, "-o", target, source], capture_output=True, text=True)
    if made.returncode != 0 or not target.exists():
        pytest.skip(f"heif-enc has no such encoder: {made.stderr[-80:]}")
    return target.read_bytes()


def converted(form, picture, folder):
    if form in ("heic", "avif"):
        return heif_file(picture, folder, *(["-A"] if form == "avif" else []))
    options = {"tiff": {"compression": "tiff_lzw"}}.get(form, {})
    return pictures.encode(picture.quantize(256) if form == "gif" else picture, form.upper(), **options)


@pytest.fixture(scope="module")
def marked(client):
    photo = pictures.jpeg(800, 600, seed=71, quality=93)
    [(_, data)] = results(client, embedded(client, [("photo.jpg", photo, [TEXT])])["orderId"])
    return pictures.decode(data)


@pytest.mark.parametrize("form", list(NAMES))
def test_a_converted_copy_is_read(client, marked, form, tmp_path):
    data = converted(form, marked, tmp_path)
    order = extract(client, data, name=NAMES[form])
    print(form, len(data), "bytes:", order["status"], order["watermarkText"], order["certainty"])
    assert (order["status"], order["watermarkText"], order["errors"]) == ("detected", TEXT, None)


@pytest.mark.parametrize("form", ["heic", "tiff", "gif"])
def test_a_converted_original_helps(client, marked, form, tmp_path):
    original = converted(form, pictures.scene(800, 600, 71), tmp_path)
    small = pictures.encode(marked.resize((560, 420), Image.LANCZOS), "BMP")
    order = extract(client, small, original=original, name="leak.bmp")
    assert (order["status"], order["watermarkText"]) == ("detected", TEXT)


@pytest.mark.parametrize("make, note", [
    (lambda picture: pictures.encode(picture.transpose(Image.ROTATE_270), "TIFF", tiffinfo={274: 8}), None),
    (lambda picture: pictures.encode(picture.convert("CMYK"), "TIFF"), None),
    (lambda picture: pictures.encode(picture, "TIFF", compression="jpeg", quality=80), None),
    (lambda picture: pictures.encode(picture, "BMP")[:700_000], "cut short: 48 % of its rows"),
    (lambda picture: pictures.encode(picture.quantize(256), "GIF", interlace=0)[:250_000], "cut short: "),
    (lambda picture: pictures.encode(picture, "TIFF")[:900_000], "cut short: ")],
    ids=["turned", "inks", "jpeg", "bmp cut", "gif cut", "tiff cut"])
def test_odd_and_cut_files_are_read_as_far_as_they_go(client, marked, make, note):
    order = extract(client, make(marked))
    [file] = order["files"]
    assert (order["status"], order["watermarkText"]) == ("detected", TEXT), order
    assert (file["note"] is None) if note is None else (note in file["note"]["message"]), order


@pytest.mark.parametrize("form", list(NAMES))
@pytest.mark.parametrize("kind", ["anti-ai", "wtr-embed"])
def test_other_orders_refuse_it_by_name(client, form, kind, tmp_path):
    data = converted(form, pictures.scene(320, 240), tmp_path)
    texts = {"watermarks": [{"text": "x"}]} if kind == "wtr-embed" else {}
    refused = client.create([{"fileName": NAMES[form], **texts}], kind=kind)
    assert refused.status == 400 and refused.fields() == ["files[0].fileName"]
    assert refused.json["details"][0]["message"] == f"ends in .{NAMES[form].split('.')[1]}; it must end in {pictures.endings(pictures.CHANGED)}"
    created = client.create([{"fileName": "renamed.jpg", **texts}], kind=kind)
    answer = client.upload(created.data["files"][0]["uploadUrl"], data)
    assert (answer.status, answer.json["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert answer.json["message"] == f"renamed.jpg: {SENTENCES[form]}"


def test_an_extraction_names_its_formats(client):
    answer = client.post(f"{ORDERS}/wtr-extract", {"idempotencyKey": uuid.uuid4().hex, "file": {"fileName": "leak.psd"}})
    assert answer.json["details"][0]["message"] == (
        f"ends in .psd; it must end in {pictures.endings(pictures.CHANGED + pictures.READ)}")
    created = client.post(f"{ORDERS}/wtr-extract", {"idempotencyKey": uuid.uuid4().hex, "file": {"fileName": "leak.tif"}})
    assert (created.data["file"]["fileFormat"], created.data["file"]["fileType"]) == ("TIFF", "IMG")
    refused = client.upload(created.data["file"]["uploadUrl"], b"8BPS and so on" * 40)
    assert refused.status == 415 and refused.json["message"] == (
        "leak.tif: This is a Photoshop document (PSD). Export it as JPEG and upload it again.")


@pytest.fixture
def without_tiff(stack):
    """The service with image.read_tiff = no, which needs a restart."""
    def restart():
        for part in ("api", "worker"):
            stack.part("stop", part)
            stack.part("start", part)
    with stack.configured("image", "read_tiff", "no"):
        restart()
        yield
    restart()


def test_a_format_that_is_switched_off_is_refused_by_name(without_tiff, stack, client, marked, tmp_path):
    data = converted("tiff", marked, tmp_path)
    refused = client.post(f"{ORDERS}/wtr-extract", {"idempotencyKey": uuid.uuid4().hex, "file": {"fileName": "leak.tif"}})
    endings = ".jpg, .jpeg, .png, .webp, .heic, .heif, .avif, .gif or .bmp"
    assert refused.status == 400 and refused.json["details"][0] == {
        "field": "file.fileName", "message": f"ends in .tif; it must end in {endings}",
        "reason": "file_name_ending", "params": {"actual": ".tif", "formats": endings}}
    created = client.post(f"{ORDERS}/wtr-extract", {"idempotencyKey": uuid.uuid4().hex, "file": {"fileName": "leak.png"}})
    answer = client.upload(created.data["file"]["uploadUrl"], data)
    assert (answer.status, answer.json["message"]) == (415, f"leak.png: {SENTENCES['tiff']}")
    found = extract(client, converted("bmp", marked, tmp_path), name="leak.bmp")
    assert (found["status"], found["watermarkText"]) == ("detected", TEXT)
    (tmp_path / "leak.tif").write_bytes(data)
    told = ctl(stack, "image", "extract", "--account", str(client.account), str(tmp_path / "leak.tif"))
    assert told.returncode == 2 and SENTENCES["tiff"] in told.stderr, told


def test_imgwardctl_reads_them_too(stack, client, marked, tmp_path):
    for form in NAMES:
        file = tmp_path / NAMES[form]
        file.write_bytes(converted(form, marked, tmp_path))
        told = ctl(stack, "image", "extract", "--account", str(client.account), str(file))
        assert told.returncode == 0 and len(told.stdout.split()) == 1, (form, told)


def test_a_bomb_is_refused_from_its_header(client):
    head = b"BM" + (54).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little") + (40).to_bytes(4, "little")
    data = head + (16000).to_bytes(4, "little") * 2 + (1).to_bytes(2, "little") + (24).to_bytes(2, "little") + bytes(64)
    order = extract(client, data)
    assert order["status"] == "failed" and order["errors"] == (
        "suspect.jpg: IMAGE_TOO_LARGE: The picture has 256000000 pixels; at most 100000000 are allowed.")
