"""Files with all kinds of metadata, built from segments and chunks, and exiftool to read them."""
import hashlib
import io
import json
import re
import struct
import subprocess
import zlib

from PIL import Image

import pictures

FORMS = ("jpeg", "png", "webp")
NAMES = {"jpeg": "JPEG", "png": "PNG", "webp": "WEBP"}
RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
PLUS = "http://ns.useplus.org/ldf/xmp/1.0/"
DMI = "http://ns.useplus.org/ldf/vocab/DMI-"
WIDTH, HEIGHT = 320, 256  # large enough for a watermark
SMALL = (96, 80)  # large enough for protection only


# ---- containers

def segment(marker, payload):
    return bytes((0xFF, marker)) + struct.pack(">H", len(payload) + 2) + payload


def chunk_png(name, payload):
    return struct.pack(">I", len(payload)) + name + payload + struct.pack(">I", zlib.crc32(name + payload))


def chunk_webp(name, payload):
    return name + struct.pack("<I", len(payload)) + payload + b"\0" * (len(payload) & 1)


def bare(form, size=(WIDTH, HEIGHT), **options):
    """Returns a picture without any metadata."""
    scene = pictures.scene(*size, 5)
    return pictures.encode(scene, NAMES[form], **{"quality": 88, **options})


def jpeg_with(*segments, size=(WIDTH, HEIGHT), tail=b""):
    """Returns a JPEG with the segments after JFIF."""
    data = bare("jpeg", size)
    return data[:20] + b"".join(segments) + data[20:] + tail


def png_with(*chunks, size=(WIDTH, HEIGHT), tail=b""):
    data = bare("png", size)
    return data[:33] + b"".join(chunks) + data[33:] + tail


def webp_with(*chunks, size=(WIDTH, HEIGHT), tail=b""):
    """Returns a WebP with the chunks after the frame; the flags match the chunks."""
    flags = sum(flag for name, flag in ((b"EXIF", 8), (b"XMP ", 4)) if any(part[:4] == name for part in chunks))
    head = chunk_webp(b"VP8X", struct.pack("<I", flags) + b"".join(struct.pack("<I", side - 1)[:3] for side in size))
    body = b"WEBP" + head + bare("webp", size)[12:] + b"".join(chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body + tail


def xmp_part(form, packet):
    """Returns an XMP packet in the container of the format."""
    return {"jpeg": lambda: segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + packet),
            "png": lambda: chunk_png(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + packet),
            "webp": lambda: chunk_webp(b"XMP ", packet)}[form]()


def exif_part(form, tiff):
    return {"jpeg": lambda: segment(0xE1, b"Exif\0\0" + tiff), "png": lambda: chunk_png(b"eXIf", tiff),
            "webp": lambda: chunk_webp(b"EXIF", tiff)}[form]()


def file_with(form, *parts, **options):
    return {"jpeg": jpeg_with, "png": png_with, "webp": webp_with}[form](*parts, **options)


# ---- contents

def packet(inner, attributes="", wrapper=True):
    text = f'<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF {RDF}><rdf:Description rdf:about="" {attributes}>' \
           f"{inner}</rdf:Description></rdf:RDF></x:xmpmeta>"
    if wrapper:
        text = '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>' + text + " " * 200 + '<?xpacket end="w"?>'
    return text.encode()


DC = 'xmlns:dc="http://purl.org/dc/elements/1.1/"'
RIGHTS = '<dc:rights><rdf:Alt><rdf:li xml:lang="x-default">(c) Ada Smith</rdf:li></rdf:Alt></dc:rights>' \
         "<dc:creator><rdf:Seq><rdf:li>Ada Smith</rdf:li></rdf:Seq></dc:creator>"


def small_jpeg(color=(250, 0, 0), size=(160, 120), **options):
    """Returns a picture of other colours, so that a preview that was not replaced is detected."""
    out = io.BytesIO()
    Image.new("RGB", size, color).save(out, "JPEG", **{"quality": 85, **options})
    data = out.getvalue()
    return data[:2] + data[20:]


def thumbnail_jpeg():
    """Returns a JPEG of about as many bytes as a camera's preview."""
    scene = Image.effect_mandelbrot((160, 120), (-2, -1, 1, 1), 60).convert("RGB")
    out = io.BytesIO()
    scene.save(out, "JPEG", quality=92)
    return out.getvalue()[:2] + out.getvalue()[20:] if len(out.getvalue()) > 6000 else \
        pictures.jpeg(160, 120, seed=77, quality=92)


def tiff(order="<", first=(), second=(), data=b"", maker=None):
    """Returns a TIFF block. Entries are (tag, type, count, value). A bytes value is stored after the directory; "DATA"
    stands for the offset of data."""
    tables = [list(first), list(second)]
    if maker is not None:
        tables[0].append((0x8769, 4, 1, "EXIF"))
    size = 8 + sum(2 + 12 * len(table) + 4 for table in tables if table)
    exif_at = size
    size += 2 + 12 + 4 if maker is not None else 0
    behind = b""

    def value(kind, count, content):
        nonlocal behind
        if content == "EXIF":
            return struct.pack(order + "I", exif_at)
        if content == "DATA":
            return struct.pack(order + "I", data_at)
        if isinstance(content, bytes):
            if len(content) <= 4:
                return content.ljust(4, b"\0")
            behind += content + b"\0" * (len(content) & 1)
            return struct.pack(order + "I", size + len(behind) - len(content) - (len(content) & 1))
        return struct.pack(order + ("HH" if kind == 3 else "I"), *((content, 0) if kind == 3 else (content,)))

    long_values = sum(len(content) + (len(content) & 1) for table in tables for *_, content in table
                      if isinstance(content, bytes) and len(content) > 4)
    long_values += len(maker) + (len(maker) & 1) if maker is not None else 0
    data_at = size + long_values
    out = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", 8)
    for number, table in enumerate(tables):
        if not table:
            continue
        entries = b"".join(struct.pack(order + "HHI", tag, kind, count) + value(kind, count, content)
                           for tag, kind, count, content in sorted(table, key=lambda row: row[0]))
        end = len(out) + 2 + len(entries) + 4
        out += struct.pack(order + "H", len(table)) + entries
        out += struct.pack(order + "I", end if number == 0 and tables[1] else 0)
    if maker is not None:
        out += struct.pack(order + "H", 1) + struct.pack(order + "HHI", 0x927C, 7, len(maker))
        out += value(7, len(maker), maker) + struct.pack(order + "I", 0)
    out += behind
    assert len(out) == data_at, (len(out), data_at)
    return out + data


MAKE = (0x010F, 2, 6, b"Maker\0")
COPYRIGHT = (0x8298, 2, 14, b"(c) Ada Smith\0")


def tiff_thumbnail(order="<", thumbnail=None, more=(), **options):
    thumbnail = thumbnail_jpeg() if thumbnail is None else thumbnail
    return tiff(order, (MAKE, COPYRIGHT), ((0x0103, 3, 1, 6), (0x0201, 4, 1, "DATA"), (0x0202, 4, 1, len(thumbnail)),
                                           *more), thumbnail, **options)


def extension(packet_bytes, part=40000):
    """Returns the digest of an extended packet, and the segments."""
    guid = hashlib.md5(packet_bytes).hexdigest().upper().encode()
    parts = [segment(0xE1, b"http://ns.adobe.com/xmp/extension/\0" + guid + struct.pack(">II", len(packet_bytes), at)
                     + packet_bytes[at:at + part]) for at in range(0, len(packet_bytes), part)]
    return guid.decode(), parts


def box(kind, payload):
    return struct.pack(">I", len(payload) + 8) + kind + payload


def jumbf(uuid=b"c2pa\0\x11\0\x10\x80\0\0\xaa\0\x38\x9b\x71", label=b"c2pa\0"):
    """Returns a superbox with the description box and one other box."""
    return box(b"jumb", box(b"jumd", uuid + b"\3" + label) + box(b"json", b'{"claim": "made for a test"}'))


def jumbf_segments(superbox, number=1, part=60):
    """Returns the APP11 segments of a JUMBF superbox; each segment repeats the box header."""
    head, body = superbox[:8], superbox[8:]
    return [segment(0xEB, b"JP" + struct.pack(">HI", number, 1 + at // part) + head + body[at:at + part])
            for at in range(0, len(body), part)]


def resource(number, data):
    return b"8BIM" + struct.pack(">H", number) + b"\0\0" + struct.pack(">I", len(data)) + data + b"\0" * (len(data) & 1)


def png_text_profile(name, data):
    """Returns a profile in the form that ImageMagick writes to a PNG."""
    digits = data.hex()
    lines = "\n".join(digits[at:at + 72] for at in range(0, len(digits), 72))
    text = f"\n{name}\n{len(data):8d}\n{lines}\n".encode()
    return chunk_png(b"zTXt", f"Raw profile type {name}".encode() + b"\0\0" + zlib.compress(text))


# ---- exiftool

class Exiftool:
    """One exiftool process for all queries."""

    def __init__(self):
        self.process = subprocess.Popen(["exiftool", "-stay_open", "True", "-@", "-"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def __call__(self, path, *words):
        """Returns the standard output of exiftool."""
        self.process.stdin.write("\n".join([*words, str(path), "-execute", ""]).encode())
        self.process.stdin.flush()
        out = b""
        while not out.endswith(b"{ready}\n"):
            line = self.process.stdout.readline()
            assert line, "exiftool ended"
            out += line
        return out[:-len(b"{ready}\n")]

    def tags(self, path):
        """Returns every tag with group and copy number: {"XMP-dc:Rights": value}; binary values as base64."""
        out = self(path, "-j", "-a", "-G1:4", "-n", "-b", "-s", "--System:all", "--ExifTool:all", "--Composite:all")
        found = json.loads(out.decode("utf-8", "replace"))[0]
        found.pop("SourceFile")
        return {tag: self.whole(value) if tag.endswith(":DataMining") else value for tag, value in found.items()}

    def binary(self, path, tag):
        return self.whole(self(path, "-b", "-" + tag).decode("latin-1")).encode("latin-1")

    @staticmethod
    def whole(value):
        """Restores the namespace of PLUS's vocabulary, which newer versions of exiftool remove."""
        return re.sub(r"^(?=DMI-)", DMI.removesuffix("DMI-"), value) if isinstance(value, str) else value

    def warnings(self, path):
        return self(path, "-a", "-warning").decode()

    def close(self):
        self.process.stdin.write(b"-stay_open\nFalse\n")
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()
