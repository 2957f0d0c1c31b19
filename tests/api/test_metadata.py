"""Metadata of results, read by exiftool: kept tags, removed tags, and notes.

Every kind of metadata goes through "imgwardctl image protect" and "image embed", which decode and encode like the image
process. Each kind lists the tags that may change or disappear; all other tags must stay the same.
"""
import base64
import io
import re
import shutil
import subprocess
import zipfile
import zlib

import numpy
import pytest
from PIL import Image

import metadata as made
import pictures

pytestmark = pytest.mark.skipif(shutil.which("exiftool") is None, reason="exiftool is not installed (libimage-exiftool-perl)")

ORDERS = ("protect", "embed")
# Facts of the container, and the opt-out tag.
ALWAYS = r"RIFF:WebP_Flags|XMP-plus:DataMining|RIFF:AlphaPreprocessing|RIFF:AlphaFilter"
FINER = "File:YCbCrSubSampling"  # a protected JPEG may have a higher quality
AI = made.DMI + "PROHIBITED-AIMLTRAINING"


@pytest.fixture(scope="module")
def exiftool():
    program = made.Exiftool()
    yield program
    program.close()


# The notes of imgwardctl that are not about metadata: a protection weaker than ordered, a JPEG of a higher quality.
REDUCED = re.compile(r"(imgwardctl: note: )?(The protection is weaker than .*? is in the result\. [^.]*\.|No pixel changed: [^.]*\.( Export [^.]*\.)?|The picture was encoded at a higher quality, [^.]*\.)\s*")


@pytest.fixture(scope="module")
def through(stack, tmp_path_factory):
    """Sends bytes through an order; returns the paths of input and result, and the notes on metadata."""
    folder = tmp_path_factory.mktemp("metadata")
    words = {"protect": ("--strength", "low"), "embed": ("--id", "00000000deadbeef")}
    count = 0

    def run(order, form, data):
        nonlocal count
        count += 1
        source, target = folder / f"{count}.{form}", folder / f"{count}-out.{form}"
        source.write_bytes(data)
        done = subprocess.run([stack.environment["IMGWARD_CTL"], "--config", stack.environment["IMGWARD_CONFIG"], "image",
                               order, *words[order], source, target], capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, done.stderr
        return source, target, REDUCED.sub("", done.stderr)
    return run


def compared(exiftool, source, target, may_differ="", order="embed"):
    """Returns the tags of the result. They must equal those of the input, except tags that match the pattern."""
    before, after = exiftool.tags(source), exiftool.tags(target)
    pattern = re.compile("|".join([ALWAYS] + [FINER] * (order == "protect") + [may_differ] * bool(may_differ)))

    def plain(tag):
        return re.sub("(Main|Copy[0-9]+):", "", tag)
    differing = {tag for tag in before.keys() | after.keys() if before.get(tag) != after.get(tag)}
    surprising = {tag: (before.get(tag), after.get(tag)) for tag in differing if not pattern.fullmatch(plain(tag))}
    assert not surprising, surprising
    assert not re.search(rb"(?<!vocab/)DMI-PRO", target.read_bytes()), "exiftool is not asked about the namespace"
    mining = [value for tag, value in after.items() if tag.endswith(":DataMining")]
    if order == "protect":
        assert mining and set(mining) <= {made.DMI + word for word in FORBIDDING}, mining
    return {plain(tag): value for tag, value in reversed(after.items())}


FORBIDDING = ("PROHIBITED-AIMLTRAINING", "PROHIBITED-EXCEPTSEARCHENGINEINDEXING", "PROHIBITED-SEECONSTRAINT",
              "PROHIBITED-SEEEMBEDDEDRIGHTSEXPR", "PROHIBITED-SEELINKEDRIGHTSEXPR", "PROHIBITED")
RICH = ("-Artist=Ada Smith", "-Copyright=(c) Ada Smith", "-Make=Maker", "-Model=One", "-GPS:GPSLatitude=48.2", "-GPS:GPSLatitudeRef=N",
        "-Orientation#=6", "-UserComment=a comment", "-ExposureTime=0.01", "-XMP-dc:Rights=(c) Ada Smith",
        "-XMP-dc:Creator=Ada Smith", "-XMP-photoshop:Credit=Ada", "-XMP-xmpRights:WebStatement=https://example.com/terms",
        "-XMP-dc:Subject=one", "-XMP-dc:Subject=two", "-XMP-iptcCore:CreatorCity=Wien", "-XMP-plus:OtherConstraints=ask")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("form", made.FORMS)
def test_metadata_that_stay_true_are_kept(through, exiftool, tmp_path, order, form):
    path = tmp_path / f"rich.{form}"
    path.write_bytes(made.bare(form))
    words = RICH + (("-IPTC:By-line=Ada Smith", "-IPTC:CopyrightNotice=(c) Ada", "-Photoshop:URL=https://example.com",
                     "-JFIF:XResolution=300", "-Comment=of the maker") if form == "jpeg" else ())
    exiftool(path, "-overwrite_original", *words)
    source, target, notes = through(order, form, path.read_bytes())
    found = compared(exiftool, source, target, order=order)
    assert found["XMP-dc:Rights"] == "(c) Ada Smith" and "GPS:GPSLatitude" in found and found["IFD0:Orientation"] == 6
    assert not notes
    if order == "protect":
        assert found["XMP-plus:DataMining"] == AI


# ---- the opt-out is never weaker than the client's value

def mining_forms(value):
    """Returns one value in every form that XMP allows."""
    yield made.packet("", f'xmlns:plus="{made.PLUS}" plus:DataMining="{value}"')
    yield made.packet("", f"xmlns:p='{made.PLUS}' p:DataMining = ' {value} '", wrapper=False)
    yield made.packet(f"<plus:DataMining>{value}</plus:DataMining>", f'xmlns:plus="{made.PLUS}"')
    yield made.packet(f'<q:DataMining rdf:resource="{value}"/>', f'xmlns:q="{made.PLUS}"')
    yield made.packet("", made.DC + ' dc:format="image/jpeg"').replace(
        b"</rdf:RDF>", f'<rdf:Description rdf:about="" xmlns:plus="{made.PLUS}"><plus:DataMining>{value}</plus:DataMining>'
                       f"</rdf:Description></rdf:RDF>".encode())


@pytest.mark.parametrize("word, expected", [
    ("PROHIBITED", None), ("PROHIBITED-AIMLTRAINING", None), ("PROHIBITED-EXCEPTSEARCHENGINEINDEXING", None),
    ("PROHIBITED-SEECONSTRAINT", None), ("PROHIBITED-SEEEMBEDDEDRIGHTSEXPR", None), ("PROHIBITED-SEELINKEDRIGHTSEXPR", None),
    ("PROHIBITED-GENAIMLTRAINING", "PROHIBITED-AIMLTRAINING"), ("ALLOWED", "PROHIBITED-AIMLTRAINING"),
    ("UNSPECIFIED", "PROHIBITED-AIMLTRAINING"), ("PROHIBITED-OFALATERVOCABULARY", "PROHIBITED")])
def test_no_value_becomes_weaker(through, exiftool, word, expected):
    for number, packet in enumerate(mining_forms(made.DMI + word)):
        form = made.FORMS[number % len(made.FORMS)]
        _, target, _ = through("protect", form, made.file_with(form, made.xmp_part(form, packet), size=made.SMALL))
        values = {value for tag, value in exiftool.tags(target).items() if tag.endswith(":DataMining")}
        assert values == {made.DMI + (expected or word)}, (form, packet)


def test_the_strongest_of_several_values_holds_for_all(through, exiftool):
    two = made.packet("", f'xmlns:plus="{made.PLUS}" plus:DataMining="{made.DMI}ALLOWED"').replace(
        b"</rdf:RDF>", f'<rdf:Description xmlns:plus="{made.PLUS}" plus:DataMining="{made.DMI}PROHIBITED"/></rdf:RDF>'.encode())
    for form in made.FORMS:
        _, target, _ = through("protect", form, made.file_with(form, made.xmp_part(form, two), size=made.SMALL))
        assert set(re.findall(rb"DMI-[A-Z-]+", target.read_bytes())) == {b"DMI-PROHIBITED"}


@pytest.mark.parametrize("order", ORDERS)
def test_an_order_without_opt_out_leaves_the_value(through, exiftool, order):
    packet = made.packet("", f'xmlns:plus="{made.PLUS}" plus:DataMining="{made.DMI}ALLOWED"')
    _, target, _ = through(order, "jpeg", made.jpeg_with(made.xmp_part("jpeg", packet)))
    assert exiftool.binary(target, "XMP-plus:DataMining").decode().startswith(AI if order == "protect" else made.DMI + "ALLOWED")


def extended(inner, attributes, extra=""):
    guid, parts = made.extension(made.packet(inner, attributes, wrapper=False))
    main = made.packet("", f'xmlns:xmpNote="http://ns.adobe.com/xmp/note/" xmpNote:HasExtendedXMP="{guid}" {made.DC} '
                           f'dc:format="image/jpeg" {extra}')
    return made.jpeg_with(made.xmp_part("jpeg", main), *parts, size=made.SMALL)


def test_extended_xmp_says_no_other_thing(through, exiftool):
    long_text = "x" * 90000
    for word in ("ALLOWED", "PROHIBITED", "PROHIBITED-GENAIMLTRAINING"):
        data = extended(f"<dc:description>{long_text}</dc:description>",
                        f'{made.DC} xmlns:plus="{made.PLUS}" plus:DataMining="{made.DMI}{word}"')
        source, target, notes = through("protect", "jpeg", data)
        found = compared(exiftool, source, target, "XMP-xmpNote:HasExtendedXMP", "protect")
        strongest = made.DMI + ("PROHIBITED" if word == "PROHIBITED" else "PROHIBITED-AIMLTRAINING")
        values = [value for tag, value in exiftool.tags(target).items() if tag.endswith(":DataMining")]
        assert values == [strongest] * 2, (word, values)
        assert found["XMP-dc:Description"] == long_text and not notes
        assert not exiftool.warnings(target)


@pytest.mark.parametrize("where", ["tEXt", "zTXt", "iTXt compressed", "raw", "raw APP1", "twice"])
def test_a_png_has_xmp_in_many_places(through, exiftool, where):
    packet = made.packet(made.RIGHTS, f'{made.DC} xmlns:plus="{made.PLUS}" plus:DataMining="{made.DMI}ALLOWED"')
    key = b"XML:com.adobe.xmp\0"
    chunk = {"tEXt": lambda: made.chunk_png(b"tEXt", key + packet),
             "zTXt": lambda: made.chunk_png(b"zTXt", key + b"\0" + zlib.compress(packet)),
             "iTXt compressed": lambda: made.chunk_png(b"iTXt", key + b"\1\0\0\0" + zlib.compress(packet)),
             "raw": lambda: made.png_text_profile("xmp", packet),
             "raw APP1": lambda: made.png_text_profile("APP1", b"http://ns.adobe.com/xap/1.0/\0" + packet),
             "twice": lambda: made.xmp_part("png", packet) * 2}[where]()
    source, target, notes = through("protect", "png", made.png_with(chunk, size=made.SMALL))
    found = compared(exiftool, source, target, order="protect")
    assert found["XMP-dc:Rights"] == "(c) Ada Smith" and not notes
    assert set(re.findall(rb"DMI-[A-Z-]+", target.read_bytes())) == {b"DMI-PROHIBITED-AIMLTRAINING"}


@pytest.mark.parametrize("form", made.FORMS)
def test_xmp_inside_exif_says_no_other_thing(through, exiftool, form):
    packet = made.packet(made.RIGHTS, f'{made.DC} xmlns:plus="{made.PLUS}" plus:DataMining="{made.DMI}ALLOWED"')
    block = made.tiff(first=(made.MAKE, made.COPYRIGHT, (0x02BC, 1, len(packet), packet)))
    source, target, _ = through("protect", form, made.file_with(form, made.exif_part(form, block)))
    found = compared(exiftool, source, target, "IFD0:ApplicationNotes", "protect")
    assert found["XMP-dc:Rights"] == "(c) Ada Smith" and found["IFD0:Copyright"] == "(c) Ada Smith"
    assert b"ALLOWED" not in target.read_bytes()


# ---- XMP in other encodings keeps rights and creator; XMP that is not well-formed is replaced

BODY = made.packet(made.RIGHTS.replace("Ada Smith", "Ada Müller"), made.DC)
PLAIN = made.packet(made.RIGHTS, made.DC)
LATIN = made.packet(made.RIGHTS.replace("Ada Smith", "Ada Müller"), made.DC, False).decode().encode("latin-1")
READABLE = {
    "latin-1": BODY.decode().replace("\ufeff", "").encode("latin-1"),
    "latin-1 declared": b'<?xml version="1.0" encoding="ISO-8859-1"?>' + LATIN,
    "declared as something else": b'<?xml version="1.0" encoding="UTF-16"?>' + made.packet(made.RIGHTS, made.DC, False),
    "utf-16": PLAIN.decode().encode("utf-16"),
    "utf-16 without mark": PLAIN.decode().replace("\ufeff", "").encode("utf-16-be"),
    "mark in front": b"\xef\xbb\xbf" + PLAIN,
    "zeros behind": PLAIN + b"\0" * 300,
    "no meta element": PLAIN.replace(b'<x:xmpmeta xmlns:x="adobe:ns:meta/">', b"").replace(b"</x:xmpmeta>", b""),
}
BROKEN = {
    "bare ampersand": PLAIN.replace(b"Ada Smith", b"Ada Smith & Sons &copy; &#0; R&D"),
    "utf-32": PLAIN.decode().encode("utf-32"),
    "control characters": PLAIN.replace(b"Ada Smith", b"Ada\x01 Smith\x1f"),
    "tags not closed": PLAIN.replace(b"</rdf:Description></rdf:RDF></x:xmpmeta>", b""),
    "undeclared prefix": PLAIN.replace(b" " + made.DC.encode(), b""),
    "document type": b'<!DOCTYPE x [<!ENTITY e "f">]>' + made.packet(made.RIGHTS, made.DC, False),
    "two roots": made.packet(made.RIGHTS, made.DC, False) + made.packet("", made.DC + ' dc:format="x"', False),
    "no RDF element": re.sub(rb"</?rdf:RDF[^>]*>", b"", PLAIN),
    "no XML": b"no XML at all, (c) Ada",
}


@pytest.mark.parametrize("kind", READABLE)
def test_rights_survive_other_encodings(through, exiftool, kind):
    for form in made.FORMS:
        _, target, notes = through("protect", form, made.file_with(form, made.xmp_part(form, READABLE[kind]), size=made.SMALL))
        text = exiftool.binary(target, "XMP-dc:Rights").decode() + exiftool.binary(target, "XMP-dc:Creator").decode()
        assert text.count("Ada Müller" if "latin" in kind else "Ada Smith") == 2, (form, text)
        assert exiftool.binary(target, "XMP-plus:DataMining").decode() == AI
        assert not exiftool.warnings(target) and not notes


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_packet_is_replaced_with_a_note(through, exiftool, kind):
    for form in made.FORMS:
        _, target, notes = through("protect", form, made.file_with(form, made.xmp_part(form, BROKEN[kind]), size=made.SMALL))
        assert "XMP packet that could not be read" in notes, (form, notes)
        assert exiftool.binary(target, "XMP-plus:DataMining").decode() == AI
        assert b"Ada" not in target.read_bytes() and not exiftool.warnings(target)


def broken(inner, attributes):
    return made.packet(inner + "<dc:source>R&D</dc:source>", f"{made.DC} {attributes}")


def test_a_broken_packet_makes_the_opt_out_no_weaker(through, exiftool):
    packet = broken("", f'xmlns:plus="{made.PLUS}" plus:DataMining="{made.DMI}PROHIBITED"')
    for form in made.FORMS:
        _, target, _ = through("protect", form, made.file_with(form, made.xmp_part(form, packet), size=made.SMALL))
        assert exiftool.binary(target, "XMP-plus:DataMining").decode() == made.DMI + "PROHIBITED"


def test_a_broken_packet_inside_exif_says_no_other_thing(through, exiftool):
    packet = broken("", f'xmlns:plus="{made.PLUS}" plus:DataMining="{made.DMI}ALLOWED"')
    block = made.tiff(first=(made.MAKE, made.COPYRIGHT, (0x02BC, 1, len(packet), packet)))
    for form in made.FORMS:
        _, target, notes = through("protect", form, made.file_with(form, made.exif_part(form, block)))
        found = exiftool.tags(target)
        assert {value for tag, value in found.items() if tag.endswith(":DataMining")} == {AI}
        assert found["IFD0:Copyright"] == "(c) Ada Smith" and "XMP packet that could not be read" in notes
        assert b"ALLOWED" not in target.read_bytes()


def test_an_order_without_opt_out_leaves_broken_xmp_as_it_is(through):
    for form in made.FORMS:
        part = made.xmp_part(form, BROKEN["bare ampersand"])
        _, target, notes = through("embed", form, made.file_with(form, part))
        assert BROKEN["bare ampersand"] in target.read_bytes() and not notes


def test_a_broken_packet_with_a_preview_is_removed(through, exiftool):
    packet = XMP_THUMBNAIL.replace(b"</rdf:RDF>", b"R&D</rdf:RDF>")
    for form in made.FORMS:
        _, target, notes = through("embed", form, made.file_with(form, made.xmp_part(form, packet)))
        assert "XMP packet that could not be read" in notes, (form, notes)
        assert SMALL_TEXT.encode() not in target.read_bytes() and not exiftool.binary(target, "XMP-dc:Rights")


# ---- tags that are removed with their data

GAIN = ('xmlns:hdrgm="http://ns.adobe.com/hdr-gain-map/1.0/" hdrgm:Version="1.0" hdrgm:GainMapMax="2.5" '
        'xmlns:Container="http://ns.google.com/photos/1.0/container/" '
        'xmlns:Item="http://ns.google.com/photos/1.0/container/item/" ' + made.DC)
DIRECTORY = ('<Container:Directory><rdf:Seq><rdf:li rdf:parseType="Resource"><Container:Item Item:Semantic="Primary" '
             'Item:Mime="image/jpeg"/></rdf:li><rdf:li rdf:parseType="Resource"><Container:Item Item:Semantic="%s" '
             'Item:Mime="image/jpeg" Item:Length="900"/></rdf:li></rdf:Seq></Container:Directory>')
CAMERA = ('xmlns:GCamera="http://ns.google.com/photos/1.0/camera/" GCamera:MotionPhoto="1" GCamera:MotionPhotoVersion="1" '
          'GCamera:MicroVideo="1" GCamera:MicroVideoOffset="3012" GCamera:SpecialTypeID="kept" ' + made.DC)
# Newer versions of exiftool rename some of these tags.
HDR = r"XMP-hdrgm:\w+|XMP-G?Container:\w+|Google:GainMapImage|APP2:UniformResourceName"
FILM = b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom" + b"film" * 700
MPF = made.segment(0xE2, b"MPF\0MM\0*\0\0\0\x08\0\x01\xb0\x00\0\7\0\0\0\x040100\0\0\0\0")
ISO = made.segment(0xE2, b"urn:iso:std:iso:ts:21496:-1\0\0\0\0\0")
SAMSUNG = b"\0\0\x31\x0a\x10\0\0\0MotionPhoto_Data" + FILM + b"SEFHk\0\0\0\1\0\0\0\0\0\x31\x0a" + b"\x18\0\0\0SEFT"


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind, form, data, gone, words", [
    ("ultra HDR", "jpeg", lambda: made.jpeg_with(made.xmp_part("jpeg", made.packet(DIRECTORY % "GainMap" + made.RIGHTS, GAIN)),
                                                 MPF, ISO, tail=made.small_jpeg()),
     rf"{HDR}|MPF\d?:\w+|MPImage\d:\w+", ("HDR gain map", "further pictures")),
    ("hdrgm in a PNG", "png", lambda: made.png_with(made.xmp_part("png", made.packet(made.RIGHTS, GAIN))), r"XMP-hdrgm:\w+",
     ("HDR gain map",)),
    ("hdrgm in a WebP", "webp", lambda: made.webp_with(made.xmp_part("webp", made.packet(made.RIGHTS, GAIN))), r"XMP-hdrgm:\w+",
     ("HDR gain map",)),
    ("motion photo", "jpeg", lambda: made.jpeg_with(made.xmp_part("jpeg", made.packet(made.RIGHTS, CAMERA)), tail=FILM),
     r"XMP-GCamera:M(otionPhoto|icroVideo)\w*|\w+:EmbeddedVideo\w*", ("film of the motion photo",)),
    ("motion photo of items", "jpeg",
     lambda: made.jpeg_with(made.xmp_part("jpeg", made.packet(DIRECTORY % "MotionPhoto" + made.RIGHTS, GAIN)), tail=FILM),
     rf"{HDR}|\w+:EmbeddedVideo\w*", ("film of the motion photo",)),
    ("samsung's trailer", "jpeg", lambda: made.jpeg_with(made.xmp_part("jpeg", made.packet(made.RIGHTS, made.DC)), tail=SAMSUNG),
     r"Samsung:\w+|\w+:EmbeddedVideo\w*", ("film of the motion photo",)),
    ("pictures behind", "jpeg", lambda: made.jpeg_with(made.xmp_part("jpeg", made.packet(made.RIGHTS, made.DC)), MPF,
                                                       tail=made.small_jpeg()),
     r"MPF\d?:\w+|MPImage\d:\w+", ("further pictures",)),
    ("bytes behind a PNG", "png", lambda: made.png_with(made.xmp_part("png", made.packet(made.RIGHTS, made.DC)), tail=b"more"),
     "", ("data after the end",)),
    ("bytes behind a WebP", "webp", lambda: made.webp_with(made.xmp_part("webp", made.packet(made.RIGHTS, made.DC)), tail=b"more"),
     "", ("data after the end",)),
], ids=lambda value: value if isinstance(value, str) and len(value) < 30 else "")
def test_entries_go_with_their_data(through, exiftool, order, kind, form, data, gone, words):
    source, target, notes = through(order, form, data())
    found = compared(exiftool, source, target, gone, order)
    assert found["XMP-dc:Rights"] == "(c) Ada Smith"
    assert "SpecialTypeID" not in source.read_bytes().decode("latin-1") or found["XMP-GCamera:SpecialTypeID"] == "kept"
    for word in (b"hdrgm:", b"Container:Item", b"GCamera:Mo", b"GCamera:Mi", b"MPF\0", b"21496", b"ftyp", b"SEFT"):
        assert word not in target.read_bytes(), word
    assert all(word in notes for word in words), notes


@pytest.mark.parametrize("order", ORDERS)
def test_padding_behind_the_picture_is_no_loss(through, order):
    for form in made.FORMS:
        assert not through(order, form, made.file_with(form, tail=b"\0" * 64))[2]


# ---- Content Credentials

PROVENANCE = 'xmlns:dcterms="http://purl.org/dc/terms/" dcterms:provenance="%s" ' + made.DC


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("form", made.FORMS)
def test_content_credentials_go_with_a_note(through, exiftool, order, form):
    manifest = {"jpeg": lambda: b"".join(made.jumbf_segments(made.jumbf())), "png": lambda: made.chunk_png(b"caBX", made.jumbf()),
                "webp": lambda: made.chunk_webp(b"C2PA", made.jumbf())}[form]()
    packet = made.packet(made.RIGHTS, PROVENANCE % "self#jumbf=/c2pa/urn:uuid:1")
    source, target, notes = through(order, form, made.file_with(form, made.xmp_part(form, packet), manifest))
    found = compared(exiftool, source, target, r"(JUMBF|CBOR|JSON|C2PA|XMP-dcterms|PNG|RIFF):\w+", order)
    assert found["XMP-dc:Rights"] == "(c) Ada Smith"
    assert b"c2pa" not in target.read_bytes() and b"jumb" not in target.read_bytes()
    assert "Content Credentials" in notes and "self#jumbf" in notes


@pytest.mark.parametrize("order", ORDERS)
def test_the_place_of_a_remote_manifest_is_named_in_the_note(through, exiftool, order):
    packet = made.packet(made.RIGHTS, PROVENANCE % "https://manifests.example.com/1.c2pa")
    source, target, notes = through(order, "jpeg", made.jpeg_with(made.xmp_part("jpeg", packet)))
    compared(exiftool, source, target, "XMP-dcterms:Provenance", order)
    assert "https://manifests.example.com/1.c2pa" in notes and b"provenance" not in target.read_bytes()


@pytest.mark.parametrize("order", ORDERS)
def test_a_box_that_is_no_manifest_is_kept(through, exiftool, order):
    packet = made.packet(made.RIGHTS, PROVENANCE % "Bought in Wien in 1911")
    other = made.jumbf(uuid=b"\x12" * 16, label=b"mine\0")
    source, target, notes = through(order, "jpeg", made.jpeg_with(made.xmp_part("jpeg", packet), *made.jumbf_segments(other)))
    found = compared(exiftool, source, target, order=order)
    assert found["XMP-dcterms:Provenance"] == "Bought in Wien in 1911" and not notes
    assert target.read_bytes().count(b"jumd") == source.read_bytes().count(b"jumd") == 1


# ---- previews show the result or are removed

def looks_like(preview, data):
    """Returns the mean difference of two pictures at the preview's size, 0 to 255."""
    small = Image.open(io.BytesIO(preview)).convert("RGB")
    whole = pictures.decode(data).convert("RGB").resize(small.size, Image.BOX)
    return float(numpy.abs(numpy.asarray(small, float) - numpy.asarray(whole, float)).mean())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("form", made.FORMS)
@pytest.mark.parametrize("byte_order", "<>")
def test_the_exif_thumbnail_shows_the_result(through, exiftool, order, form, byte_order):
    block = made.tiff_thumbnail(byte_order)
    source, target, notes = through(order, form, made.file_with(form, made.exif_part(form, block)))
    found = compared(exiftool, source, target, "IFD1:Thumbnail(Image|Length|Offset)", order)
    thumbnail = exiftool.binary(target, "ThumbnailImage")
    assert thumbnail != exiftool.binary(source, "ThumbnailImage") and len(thumbnail) == found["IFD1:ThumbnailLength"]
    assert Image.open(io.BytesIO(thumbnail)).size == (150, 120)
    assert looks_like(thumbnail, target.read_bytes()) < 12 < looks_like(exiftool.binary(source, "ThumbnailImage"), target.read_bytes())
    assert not notes
    assert not exiftool.warnings(target)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("form", made.FORMS)
@pytest.mark.parametrize("kind", ["too small", "not a JPEG", "out of bounds", "uncompressed", "overlapping", "chain of three"])
def test_a_thumbnail_that_cannot_be_made_again_is_removed(through, exiftool, order, form, kind):
    strip = b"\xC8\x10\x10" * 16 * 12
    block = {
        "too small": lambda: made.tiff_thumbnail(thumbnail=made.small_jpeg(optimize=True)),
        "not a JPEG": lambda: made.tiff_thumbnail(thumbnail=b"\xC8\x10\x10" * 300),
        "out of bounds": lambda: made.tiff_thumbnail()[:-900],
        "uncompressed": lambda: made.tiff("<", (made.MAKE, made.COPYRIGHT), (
            (0x0100, 3, 1, 16), (0x0101, 3, 1, 12), (0x0103, 3, 1, 1), (0x0111, 4, 1, "DATA"), (0x0117, 4, 1, len(strip))), strip),
        "overlapping": lambda: made.tiff("<", (made.MAKE, made.COPYRIGHT), (
            (0x0201, 4, 1, 8), (0x0202, 4, 1, 60)), made.thumbnail_jpeg()),
        "chain of three": lambda: made.tiff_thumbnail(thumbnail=b"\xFF\xD8\xFF\xC0broken"),
    }[kind]()
    source, target, notes = through(order, form, made.file_with(form, made.exif_part(form, block)))
    found = compared(exiftool, source, target, r"IFD1:\w+", order)
    assert found["IFD0:Copyright"] == "(c) Ada Smith" and not exiftool.binary(target, "ThumbnailImage")
    assert b"\xC8\x10\x10" * 8 not in target.read_bytes() and "embedded previews" in notes


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind, form, parts, gone", [
    ("maker note", "jpeg", lambda: made.exif_part("jpeg", made.tiff(first=(made.MAKE, made.COPYRIGHT),
                                                                  maker=b"Maker\0kept" + made.small_jpeg() + b"kept")),
     r"(ExifIFD|Maker\w*):\w+"),
    ("maker note of a PNG", "png", lambda: made.exif_part("png", made.tiff(first=(made.MAKE, made.COPYRIGHT),
                                                                           maker=b"Maker\0kept" + made.small_jpeg() + b"kept")),
     r"(ExifIFD|Maker\w*):\w+"),
    ("JFXX", "jpeg", lambda: made.segment(0xE0, b"JFXX\0\x10" + made.small_jpeg()), r"JFXX:\w+|JFIF:ThumbnailImage"),
    ("photoshop", "jpeg", lambda: made.segment(0xED, b"Photoshop 3.0\0" + made.resource(0x0404, b"\x1c\x02\x74\0\7(c) Ada")
     + made.resource(0x040C, struct_head() + made.small_jpeg()) + made.resource(0x0BB7, b"\5after")), r"Photoshop:PhotoshopThumbnail"),
    ("photoshop in two segments", "jpeg", lambda: split_photoshop(), r"Photoshop:PhotoshopThumbnail"),
    ("XMP thumbnails", "jpeg", lambda: made.xmp_part("jpeg", XMP_THUMBNAIL), r"XMP-xmp:Thumbnail\w+"),
    ("XMP thumbnails", "webp", lambda: made.xmp_part("webp", XMP_THUMBNAIL), r"XMP-xmp:Thumbnail\w+"),
    ("the original in XMP", "jpeg", lambda: made.xmp_part("jpeg", made.packet(
        '<GImage:Data>%s</GImage:Data>' % SMALL_TEXT, 'xmlns:GImage="http://ns.google.com/photos/1.0/image/" '
        'GImage:Mime="image/jpeg"')), r"XMP-GImage:\w+"),
    ("a segment", "jpeg", lambda: made.segment(0xE4, made.small_jpeg()[:300]) + made.segment(0xE4, made.small_jpeg()[300:]),
     r"APP4:\w+|File:\w+|Jpeg\w*:\w+"),
    ("raw EXIF of a PNG", "png", lambda: made.png_text_profile("exif", b"Exif\0\0" + made.tiff_thumbnail(
        thumbnail=made.small_jpeg())), r"IFD1:\w+|PNG:\w+"),
], ids=lambda value: value if isinstance(value, str) and len(value) < 30 else "")
def test_other_previews_are_removed(through, exiftool, order, kind, form, parts, gone):
    source, target, notes = through(order, form, made.file_with(form, parts()))
    compared(exiftool, source, target, gone, order)
    data = target.read_bytes()
    # Tables of the small picture that the large picture lacks.
    tables = made.small_jpeg()[4:80]
    assert tables not in data and SMALL_TEXT[:200].encode() not in data
    assert "embedded previews" in notes, notes
    for word in (b"kept", b"(c) Ada", b"after"):
        assert data.count(word) >= (source.read_bytes().count(word) if word != b"kept" else 0)


def struct_head():
    return b"\0\0\0\1\0\0\0\xa0\0\0\0\x78\0\0\1\xe0\0\0\xe1\0\0\0\0\0\0\x18\0\1"


def split_photoshop():
    blocks = made.resource(0x0404, b"\x1c\x02\x74\0\7(c) Ada") + made.resource(0x040C, struct_head() + made.small_jpeg()) \
        + made.resource(0x0BB7, b"\5after")
    return b"".join(made.segment(0xED, b"Photoshop 3.0\0" + part) for part in (blocks[:200], blocks[200:]))


SMALL_TEXT = base64.b64encode(made.small_jpeg()).decode()
XMP_THUMBNAIL = made.packet(
    '<xmp:Thumbnails><rdf:Alt><rdf:li rdf:parseType="Resource"><xmpGImg:width>160</xmpGImg:width><xmpGImg:image>%s'
    "</xmpGImg:image></rdf:li></rdf:Alt></xmp:Thumbnails>" % SMALL_TEXT + made.RIGHTS,
    f'xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:xmpGImg="http://ns.adobe.com/xap/1.0/g/img/" {made.DC}')


# ---- the same in the image process

def test_the_service_does_the_same(client, exiftool, tmp_path):
    data = {"extended.jpg": extended("<dc:description>long</dc:description>",
                                     f'{made.DC} xmlns:plus="{made.PLUS}" plus:DataMining="{made.DMI}ALLOWED"'),
            "thumbnail.png": made.png_with(made.exif_part("png", made.tiff_thumbnail())),
            "latin.webp": made.webp_with(made.xmp_part("webp", READABLE["latin-1 declared"])),
            "film.jpg": made.jpeg_with(made.xmp_part("jpeg", made.packet(made.RIGHTS, CAMERA)), tail=SAMSUNG),
            "credentials.jpg": made.jpeg_with(*made.jumbf_segments(made.jumbf()))}
    order = client.order_whole(list(data.items()))
    assert order["status"] == "complete", order
    archive = zipfile.ZipFile(io.BytesIO(client.download(order["orderId"]).body))
    assert sorted(archive.namelist()) == sorted(data)
    for name in data:
        path = tmp_path / name
        path.write_bytes(archive.read(name))
        assert exiftool.binary(path, "XMP-plus:DataMining").decode().startswith(AI), name
        assert exiftool.warnings(path) == ""
        assert b"ALLOWED" not in path.read_bytes() and b"c2pa" not in path.read_bytes() and b"ftyp" not in path.read_bytes()
    thumbnail = exiftool.binary(tmp_path / "thumbnail.png", "ThumbnailImage")
    assert looks_like(thumbnail, archive.read("thumbnail.png")) < 12
    assert exiftool.binary(tmp_path / "latin.webp", "XMP-dc:Rights").decode() == "(c) Ada Müller"
