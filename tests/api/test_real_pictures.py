"""Pictures as real clients send them. Unusual or slightly damaged files are accepted, other formats are refused by
name, and notes describe facts about complete results.
"""
import struct
import zlib

import pytest

import bombs
import marks
import pictures

WIDTH, HEIGHT = 320, 288


def scan_of_zeros(data):
    """Writes the spectral selection 0,0 to a sequential scan."""
    at = data.index(b"\xff\xda")
    end = at + 2 + struct.unpack(">H", data[at + 2:at + 4])[0]
    return data[:end - 3] + b"\0\0\0" + data[end:]


def damaged_text(data):
    text = bytearray(bombs.chunk(b"tEXt", b"Comment\0hello"))
    text[-1] ^= 1
    return data[:33] + bytes(text) + data[33:]


def long_transparency(data):
    at = data.index(b"IDAT") - 4
    return data[:at] + bombs.chunk(b"tRNS", bytes(range(256))) + data[at:]


def palette(colors):
    return pictures.scene(WIDTH, HEIGHT).quantize(colors)


def cmyk(**options):
    return pictures.encode(pictures.scene(WIDTH, HEIGHT).convert("CMYK"), "JPEG", quality=90, **options)


def orientation(kind, value):
    entry = struct.pack("<HHII", 0x0112, kind, 1, value)
    return b"Exif\0\0II*\0" + struct.pack("<IH", 8, 1) + entry + b"\0\0\0\0"


def files():
    """Returns {name: (bytes, code of the note or None)}."""
    jpeg = pictures.jpeg(WIDTH, HEIGHT)
    png = pictures.png(WIDTH, HEIGHT)
    webp = pictures.webp(WIDTH, HEIGHT)
    return {
        "samsung.jpg": (scan_of_zeros(jpeg), None),
        "trailing.jpg": (jpeg[:-2] + b"\0\0\0" + jpeg[-2:], None),
        "padded.jpg": (jpeg[:-2] + bytes(400) + jpeg[-2:], None),
        "acTL without frames.png": (png[:33] + bombs.chunk(b"acTL", struct.pack(">II", 1, 0)) + png[33:], None),
        "cmyk.jpg": (cmyk(), None),
        "cmyk progressive.jpg": (cmyk(progressive=True), None),
        "long orientation.jpg": (pictures.jpeg(WIDTH, HEIGHT, exif=orientation(4, 6)), None),
        "coarse.jpg": (pictures.jpeg(WIDTH, HEIGHT, quality=2), "PROTECTION_REDUCED"),
        "damaged text.png": (damaged_text(png), None),
        "no end.png": (png[:-12], None),
        "few colours.png": (pictures.encode(palette(64).convert("RGB"), "PNG"), "PALETTE_EXPANDED"),
        "palette.png": (long_transparency(pictures.encode(palette(16), "PNG")), "PALETTE_EXPANDED"),
        "size of the file.webp": (webp[:4] + struct.pack("<I", 12) + webp[8:], "ENCODED_FINER"),
        "canvas.webp": (bombs.riff(bombs.vp8x(0x3c, 9999, 9999), (b"VP8 ", webp[20:20 + struct.unpack("<I", webp[16:20])[0]])), "ENCODED_FINER"),
    }


@pytest.fixture(scope="module")
def protected(client):
    made = files()
    order = client.order_whole([(name, data) for name, (data, _) in made.items()], 240, options={"strength": "low"})
    return made, order, dict(marks.results(client, order["orderId"]))


def test_all_are_accepted(protected):
    made, order, results = protected
    assert (order["status"], order["errors"]) == ("complete", None)
    assert set(results) == set(made)


def test_the_pixels_are_those_of_the_file(protected):
    made, _, results = protected
    for name in ("samsung.jpg", "trailing.jpg", "cmyk.jpg", "damaged text.png", "no end.png"):
        # Some readers refuse the damaged files.
        wanted = pictures.decode(pictures.png(WIDTH, HEIGHT) if name.endswith(".png") else made[name][0])
        result = pictures.decode(results[name])
        assert (result.mode, result.size) == (wanted.mode, wanted.size), name
        assert pictures.psnr(pictures.encode(wanted.convert("RGB"), "PNG"), results[name]) > 36, name


def test_notes_have_the_expected_codes(protected):
    made, order, _ = protected
    # With strength low, compression leaves less than half of the change in most of the lossy files.
    notes = {file["fileName"]: file["note"] and file["note"]["code"] for file in order["files"] if file["protection"]["word"] == "strong"}
    assert notes == {name: note for name, (_, note) in made.items() if name in notes}
    assert {"damaged text.png", "no end.png"} <= set(notes)
    for file in order["files"]:
        assert (file["note"] or {}).get("code") == "PROTECTION_REDUCED" or file["fileName"] in notes, file
    reduced = next(file["note"]["message"] for file in order["files"] if file["fileName"] == "coarse.jpg")
    assert "low" in reduced


def test_cmyk_is_marked_and_read(client):
    order = marks.embedded(client, [("print.jpg", cmyk(), ["for the printer"])])
    assert order["status"] == "complete", order
    (_, data), = marks.results(client, order["orderId"])
    assert pictures.decode(data).mode == "CMYK"
    assert marks.extract(client, data)["watermarkText"] == "for the printer"
    plain = pictures.encode(pictures.decode(data).convert("RGB"), "JPEG", quality=85)
    assert marks.extract(client, plain)["watermarkText"] == "for the printer"


def test_the_first_frame_of_an_animation_is_read(client):
    order = marks.embedded(client, [("still.png", pictures.png(WIDTH, HEIGHT), ["of the still"])])
    (_, data), = marks.results(client, order["orderId"])
    frames = [pictures.decode(data), pictures.scene(WIDTH, HEIGHT, 7)]
    for form, name in (("PNG", "a.png"), ("WEBP", "a.webp")):
        options = {"lossless": True} if form == "WEBP" else {}
        animation = pictures.encode(frames[0], form, save_all=True, append_images=frames[1:], duration=90, **options)
        assert marks.extract(client, animation, name=name)["watermarkText"] == "of the still", form


def iphone_png():
    return b"\x89PNG\r\n\x1a\n" + bombs.chunk(b"CgBI", b"\x50\0\x20\6") + pictures.png(WIDTH, HEIGHT)[8:]


def cut(data, share):
    return data[:int(len(data) * share)]


TEXT_MODE = "transfer in text mode. Transfer it in binary mode and upload it again."
REFUSED = {
    "text mode.jpg": (lambda: pictures.jpeg(WIDTH, HEIGHT).replace(b"\n", b"\r\n"), "IMAGE_CORRUPT", TEXT_MODE),
    "text mode.webp": (lambda: pictures.webp(WIDTH, HEIGHT).replace(b"\n", b"\r\n"), "IMAGE_CORRUPT", TEXT_MODE),
    "stray.jpg": (lambda: pictures.jpeg(WIDTH, HEIGHT)[:-2] + bytes(range(200)) + b"\xff\xd9", "IMAGE_CORRUPT", "damaged"),
    "iphone.png": (iphone_png, "IMAGE_FORMAT_UNSUPPORTED", "iPhone"),
    "animated.png": (lambda: bombs.animation("PNG"), "IMAGE_FORMAT_UNSUPPORTED", "3 frames"),
    "animated.webp": (lambda: bombs.animation("WEBP"), "IMAGE_FORMAT_UNSUPPORTED", "3 frames"),
    "cut.jpg": (lambda: cut(pictures.jpeg(WIDTH, HEIGHT), 0.7), "IMAGE_CORRUPT", "The file is cut off after {size} bytes; upload it again."),
}


def test_truncated_files_and_other_formats_are_refused_with_a_remedy(client):
    made = {name: make() for name, (make, _, _) in REFUSED.items()}
    order = client.order_whole([*made.items(), ("good.jpg", pictures.jpeg(96, 80))], 240)
    errors = {file["fileName"]: file["error"] for file in order["files"]}
    for name, (_, code, words) in REFUSED.items():
        assert errors[name]["code"] == code and words.format(size=len(made[name])) in errors[name]["message"], errors[name]
        assert "libjpeg" not in errors[name]["message"] and "Corrupt" not in errors[name]["message"]


OTHERS = {
    "HEIC": (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "This is a HEIC file (iPhone photo). Export it as JPEG and upload it again."),
    "AVIF": (b"\0\0\0\x1cftypavif\0\0\0\0avifmif1miaf", "AVIF"),
    "GIF": (b"GIF89a\1\0\1\0", "GIF"),
    "TIFF": (b"II*\0\x08\0\0\0", "TIFF"),
    "BMP": (b"BM\x36\0\0\0\0\0\0\0", "BMP"),
    "JPEG XL": (b"\0\0\0\x0cJXL \r\n\x87\n", "JPEG XL"),
    "PSD": (b"8BPS\0\1\0\0\0\0\0\0", "Photoshop"),
    "PDF": (b"%PDF-1.7\n", "PDF"),
    "ZIP": (b"PK\3\4\x14\0\0\0", "ZIP"),
    "blank line": (b"\n" + pictures.jpeg(96, 80), "stand before the JPEG picture. Send only the bytes of the picture file"),
    "PHP warning": (b"<br />\n<b>Warning</b>:  Undefined variable $a in <b>/srv/send.php</b> on line <b>3</b><br />\n" + pictures.png(96, 80),
                    "stand before the PNG picture"),
    "seven bits": (bytes(byte & 0x7F for byte in pictures.jpeg(96, 80)), "text mode"),
    "UTF-8": (pictures.png(96, 80).decode("latin-1").encode(), "read it as text"),
    "SVG": (b'<?xml version="1.0"?>\n<!-- a drawing -->\n<svg xmlns="http://www.w3.org/2000/svg"/>', "SVG"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_format_is_415_with_its_name(client, name):
    first, words = OTHERS[name]
    url = client.create(["a.jpg"]).data["files"][0]["uploadUrl"]
    answer = client.upload(url, first + zlib.compress(b"\0" * 100) * 30)
    assert (answer.status, answer.code) == (415, "UNSUPPORTED_MEDIA_TYPE"), answer
    assert words in answer.json["message"]
