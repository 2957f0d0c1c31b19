"""Archives open everywhere (contract 6, download). Every program lists and extracts all entries, also with hostile
names, and the extension of each name matches the bytes.

Programs that read the central headers and programs that read a stream (Java's ZipInputStream, bsdtar
from a pipe) read the same archives: those of the service and of tests/unit/zip_maker.c.
"""
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import unicodedata
import urllib.parse
import zipfile
import zlib

import pytest

import pictures
from client import ORDERS
from marks import embedded, results
from remotes import Remotes

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
BUILD = pathlib.Path(os.environ.get("IMGWARD_BUILD", ROOT / "build"))
# Programs print and write names in the encoding of the locale.
ENVIRONMENT = {**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"}


# ---------------------------------------------------------------- programs
def output_of(*words, **more):
    done = subprocess.run([str(word) for word in words], env=ENVIRONMENT, capture_output=True, timeout=300, **more)
    assert done.returncode == 0, (words, done.stdout[-500:], done.stderr[-1500:])
    return done.stdout.decode()


def lines(text):
    return text.split("\n")[:-1]


def sized(text):
    """Returns the names in lines of size and name."""
    return [line.split(" ", 1)[1] for line in lines(text)]


# Debian 13's package has no 7zz.
SEVEN_ZIP = "7zz" if shutil.which("7zz") else "7z"


def seven_list(archive):
    return re.findall(r"^Path = (.*)$", output_of(SEVEN_ZIP, "l", "-slt", "-ba", archive), re.M)


def busybox_list(archive):
    return [line[30:] for line in lines(output_of("busybox", "unzip", "-l", archive))[3:-2]]


def piped(archive, *words):
    with subprocess.Popen(["cat", archive], stdout=subprocess.PIPE) as cat:
        return output_of(*words, stdin=cat.stdout)


def bsdtar_list(archive):
    return lines(output_of("bsdtar", "-tf", archive))


def bsdtar_extract(archive, folder):
    return output_of("bsdtar", "-xf", archive, "-C", folder)


def bsdtar_list_piped(archive):
    return lines(piped(archive, "bsdtar", "-tf", "-"))


def bsdtar_extract_piped(archive, folder):
    return piped(archive, "bsdtar", "-xf", "-", "-C", folder)


def python_extract(archive, folder):
    with zipfile.ZipFile(archive) as opened:
        for entry in opened.infolist():
            pathlib.Path(folder, entry.filename).write_bytes(opened.read(entry))


def needs(name):
    """All programs are packages of ./dev deps check. If a program is missing, these tests fail and name it."""
    assert shutil.which(name), f"{name} is not installed: ./dev deps check"
    return name


# For each program, functions that list an archive and extract it into a folder.
READERS = {
    "Info-ZIP": (lambda archive: lines(output_of("unzip", "-Z1", archive)),
                 lambda archive, folder: output_of("unzip", "-q", archive, "-d", folder)),
    "7-Zip": (seven_list, lambda archive, folder: output_of(SEVEN_ZIP, "x", "-bd", f"-o{folder}", archive)),
    "bsdtar": (bsdtar_list, bsdtar_extract),
    "bsdtar, piped": (bsdtar_list_piped, bsdtar_extract_piped),
    "busybox": (busybox_list, lambda archive, folder: output_of("busybox", "unzip", "-q", archive, "-d", folder)),
    "Python": (lambda archive: zipfile.ZipFile(archive).namelist(), python_extract),
    "Java's ZipInputStream": (lambda archive: sized(output_of("bsh", HERE / "unzip.bsh", archive)),
                              lambda archive, folder: output_of("bsh", HERE / "unzip.bsh", archive, folder)),
}


def composed(name):
    return unicodedata.normalize("NFC", name)


# busybox prints "?" for each non-ASCII byte; bsdtar normalises every name to NFC.
SHOWN = {busybox_list: lambda name: re.sub(rb"[\x80-\xff]", b"?", name.encode()).decode(), bsdtar_list: composed, bsdtar_list_piped: composed}
WRITTEN = {bsdtar_extract: composed, bsdtar_extract_piped: composed}


def reader_expect(reader, archive, folder, wanted):
    """Checks a reader. wanted has the bytes of each name, in the order of the archive."""
    lister, extractor = reader
    names = list(wanted)
    assert lister(archive) == [SHOWN.get(lister, str)(name) for name in names]
    extractor(archive, folder)
    there = {name: pathlib.Path(folder, name).read_bytes() for name in os.listdir(folder)}
    assert there == {WRITTEN.get(extractor, str)(name): content for name, content in wanted.items()}


def readers_expect(readers, archive, folder, wanted):
    for place, (name, reader) in enumerate(readers.items()):
        out = pathlib.Path(folder, f"out-{place}")
        out.mkdir()
        try:
            reader_expect(reader, archive, out, wanted)
        except AssertionError as error:
            raise AssertionError(f"{name}: {error}") from error


@pytest.mark.parametrize("program", ["unzip", SEVEN_ZIP, "bsdtar", "busybox", "bsh", "node"])
def test_the_program_is_installed(program):
    needs(program)


# ---------------------------------------------------------------- the format
def headers(data):
    """Returns the local headers of an archive, read as a stream: each header leads to the next."""
    at, found = 0, []
    while data[at:at + 4] == b"PK\3\4":
        version, flags, method, _, crc, packed, size, name, extra = struct.unpack_from("<HHHIIIIHH", data, at + 4)
        assert method == 0 and packed == size
        at += 30
        found.append((data[at:at + name].decode(), version, flags, crc, data[at + name + extra:at + name + extra + size]))
        at += name + extra + size
    assert data[at:at + 4] == b"PK\1\2"
    return found


def format_expect(data):
    """Checks sizes and CRC in local headers, no data descriptor, UTF-8, no ZIP64; returns the names."""
    found = headers(data)
    for name, version, flags, crc, content in found:
        assert (version, flags) == (10, 0x800), name
        assert crc == zlib.crc32(content), name
    return [name for name, *_ in found]


# ---------------------------------------------------------------- names
DEVICES = ["con", "PRN", "Aux", "nul", "conin$", "CONOUT$", "com1", "COM9", "lpt1", "LPT\u00b9", "com\u00b2", "COM\u00b3"]
HOSTILE = [
    "n" * 251 + ".jpg", "n" * 251 + ".jpg", "\u00e9" * 125 + ".jpg", "\u00e9" * 125 + ".jpg", "\U0001f680" * 62 + ".jpg",
    "\U0001f680" * 62 + ".jpg", "e\u0301" * 83 + ".jpg", "e\u0301" * 83 + ".jpg", "what: ever?.jpg", "x<y>|\"z\"*.jpg",
    "\u00e9.jpg", "e\u0301.jpg", "\u00c9.jpg", "stra\u00dfe.jpg", "STRASSE.jpg", "a.jpg", "A.JPG", "a (2).jpg", "a.jpg",
    "\u202egpj.exe.jpg", "\u2067a\u2069.jpg", "-rf.jpg", "--help.jpg", "@list.jpg", ".hidden.jpg", " lead.jpg", "trail .jpg",
    "dots...jpg", "%2e%2e%2f.jpg", "$(touch x);`id`&.jpg", "it's.jpg", "[a-z]{1,2}.jpg", "~.jpg", "#.jpg", "=1+1.jpg",
    "\u65e5\u672c\u8a9e.jpg", "\u05e9\u05dc\u05d5\u05dd.jpg", "\U0001f469\u200d\U0001f469\u200d\U0001f467.jpg",
    "\U0001f1e9\U0001f1ea.jpg", "zero\u200bwidth.jpg", "\u2028line.jpg", "no extension", "photo.png", "photo.jpg",
    *[f"{device}.jpg" for device in DEVICES], *[f"{device} .tar.jpg" for device in DEVICES[:4]],
]


def folded(name):
    """Names that are equal under this function are one file on macOS and Windows. Uses Python's tables, not those of the
    service's library."""
    return unicodedata.normalize("NFD", unicodedata.normalize("NFD", name).casefold())


def names_expect(names):
    assert len({folded(name) for name in names}) == len(names)
    for name in names:
        assert 0 < len(name.encode()) <= 255, name
        assert not pathlib.PureWindowsPath(name).is_reserved(), name
        assert not re.search(r'[<>:"/\\|?*\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]', name), name
        assert name[-1] not in ". " and name not in (".", ".."), name
        assert re.search(r"\.jpe?g$", name, re.I), name


@pytest.fixture(scope="session")
def maker():
    program = BUILD / "zip_maker"
    if not program.exists():
        output_of("make", "-s", "-C", BUILD, "zip_maker")
    return program


def listed(maker, folder, names, verb="list"):
    """Returns the names of entries that the service makes from names."""
    return output_of(maker, verb, folder, input="".join(name + "\n" for name in names).encode()).split("\n")[:-1]


def made(maker, folder, names):
    """Returns the archive of names, and the bytes of each entry."""
    told = listed(maker, folder, names, "names")
    return folder / "archive.zip", {name: bytes([ord("a") + place % 26]) * (place + 1) for place, name in enumerate(told)}


def test_every_program_reads_hostile_names(maker, tmp_path):
    archive, wanted = made(maker, tmp_path, HOSTILE)
    assert len(wanted) == len(HOSTILE)
    names_expect(list(wanted))
    assert format_expect(archive.read_bytes()) == list(wanted)
    readers_expect(READERS, archive, tmp_path, wanted)


def test_names_of_any_letters_are_safe_and_unique(maker, tmp_path):
    """Thousands of names are made of few parts, so that all kinds of duplicates occur. A second pass changes nothing."""
    choice = random.Random(45)
    pieces = ["a", "A", "\u00e9", "e\u0301", "\u00c9", "\u00df", "ss", "SS", "\u017f", "\u212a", "k", "\u03c2", "\u03a3", " ", ".", "..",
              "con", "COM\u00b9", "nul", "(2)", " (2)", "?", "\u202e", "\u2067", "\u200d", "\U0001f469", "\u0301", "\u0345", "\u1e9b\u0323",
              "\uac00", "\u1100\u1161", "x" * 120, "\u65e5" * 60, "\x7f", "\u2028", "\u0130", "\u0131", "\ufb01"]
    names = ["".join(choice.choices(pieces, k=choice.randint(1, 5))) + choice.choice([".jpg", ".JPG", ".jpeg", ".png", ""])
             for _ in range(4000)]
    told = listed(maker, tmp_path, names)
    assert len(told) == len(names)
    names_expect(told)
    assert listed(maker, tmp_path, told) == told


# ---------------------------------------------------------------- large archives
def test_an_archive_of_more_than_65535_entries(maker, tmp_path):
    output_of(maker, "many", tmp_path, 66000)
    archive = tmp_path / "archive.zip"
    wanted = [f"{number}.jpg" for number in range(66000)]
    for name in ("Info-ZIP", "7-Zip", "bsdtar", "bsdtar, piped", "Python", "Java's ZipInputStream"):
        assert READERS[name][0](archive) == wanted, name
    assert output_of("unzip", "-p", archive, "65999.jpg") == "x"


def test_an_entry_of_more_than_4_gib(maker, tmp_path):
    """The file is sparse. busybox is left out, because it does not support ZIP64."""
    output_of(maker, "large", tmp_path)
    archive = tmp_path / "archive.zip"
    wanted = ["first.jpg", "large.jpg", "last.jpg"]
    for name in ("Info-ZIP", "7-Zip", "bsdtar", "Python"):
        assert READERS[name][0](archive) == wanted, name
    assert output_of("unzip", "-p", archive, "last.jpg") == output_of(SEVEN_ZIP, "e", "-so", archive, "last.jpg") == "\0" * 7
    assert zipfile.ZipFile(archive).read("last.jpg") == b"\0" * 7
    assert [entry.file_size for entry in zipfile.ZipFile(archive).infolist()] == [5, (4 << 30) + 1, 7]
    # Stream readers find the last entry only from the sizes in the local headers.
    assert lines(output_of("bsh", HERE / "unzip.bsh", archive)) == [f"5 {wanted[0]}", f"{(4 << 30) + 1} {wanted[1]}", f"7 {wanted[2]}"]


def test_memory_does_not_grow_with_the_pictures(maker, tmp_path):
    """300 MiB need no more memory than 1 MiB, except some pages."""
    small, large = (int(output_of(maker, "weigh", tmp_path, *size)) for size in ((1, 1), (6, 50)))
    assert (tmp_path / "archive.zip").stat().st_size > 300 << 20
    assert large < small + 4096, (small, large)


# ---------------------------------------------------------------- the service
@pytest.fixture(scope="module")
def small():
    return pictures.jpeg(64, 64)


def archive_of(client, order, folder):
    """Returns the order's archive in a file, the bytes of each name from the URLs, and the download response."""
    data = client.get(f"{ORDERS}/{order}/download").data
    assert data["contentType"] == "application/zip"
    archive = folder / "archive.zip"
    archive.write_bytes(client.request("GET", data["downloadUrl"], key=False).body)
    wanted = {}
    for file in data["files"]:
        answer = client.request("GET", file["downloadUrl"], key=False)
        assert answer.headers["Content-Type"] == file["contentType"]
        assert answer.headers["Content-Disposition"].endswith("filename*=UTF-8''" + urllib.parse.quote(file["fileName"], safe="!#$&+-.^_`|~"))
        wanted[file["fileName"]] = answer.body
    return archive, wanted


def test_every_program_reads_an_order(client, small, tmp_path):
    given = ["n" * 251 + ".jpg", "n" * 251 + ".jpg", "what: ever?.jpg", "x<y>|\"z\"*.jpg", "CON.jpg", "\u00e9.jpg", "e\u0301.jpg",
             "\u00c9.jpg", "\u202egpj.exe.jpg", "-1.jpg", "b.jpg"]
    told = ["n" * 251 + ".jpg", "n" * 247 + " (2).jpg", "what_ ever_.jpg", "x_y___z__.jpg", "_CON.jpg", "\u00e9.jpg", "e\u0301 (2).jpg",
            "\u00c9 (3).jpg", "gpj.exe.jpg", "-1.jpg", "b.png"]
    files = [(name, small) for name in given[:-1]] + [(given[-1], pictures.png(64, 64))]
    order = client.order_whole(files, orderName="order: \u00e9?")
    assert order["status"] == "complete", order
    assert [file["fileName"] for file in order["files"]] == given
    archive, wanted = archive_of(client, order["orderId"], tmp_path)
    assert list(wanted) == told
    assert format_expect(archive.read_bytes()) == told
    assert all(entry.external_attr >> 16 == 0o100644 for entry in zipfile.ZipFile(archive).infolist())
    readers_expect(READERS, archive, tmp_path, wanted)
    assert client.get(f"{ORDERS}/{order['orderId']}/download").data["fileName"] == "order_ \u00e9_.zip"


def test_copies_of_a_long_name(client, tmp_path):
    photo = pictures.jpeg(640, 480, seed=41)
    order = embedded(client, [("n" * 251 + ".jpg", photo, ["one", "two"]), ("n" * 251 + ".jpg", photo, ["one"])])
    told = ["n" * 249 + "-1.jpg", "n" * 249 + "-2.jpg", "n" * 251 + ".jpg"]
    archive, wanted = archive_of(client, order["orderId"], tmp_path)
    assert list(wanted) == told
    assert format_expect(archive.read_bytes()) == [*told, "copies.csv"]


# ---------------------------------------------------------------- extensions
WRONG = [("photo.jpg", "PNG", "photo.png", "image/png"), ("photo.png", "JPEG", "photo.jpg", "image/jpeg"),
         ("PHOTO.WEBP", "PNG", "PHOTO.png", "image/png"), ("photo.jpeg", "WEBP", "photo.webp", "image/webp"),
         ("photo.JPEG", "JPEG", "photo.JPEG", "image/jpeg")]


@pytest.mark.parametrize("name, form, told, kind", WRONG)
def test_a_result_has_the_extension_of_its_bytes(client, name, form, told, kind):
    order = client.order_whole([(name, pictures.encode(pictures.scene(100, 90), form))])
    data = client.get(f"{ORDERS}/{order['orderId']}/download").data
    assert (data["fileName"], data["contentType"]) == (told, kind)
    assert [(file["fileName"], file["contentType"]) for file in data["files"]] == [(told, kind)]
    answer = client.request("GET", data["downloadUrl"], key=False)
    assert answer.headers["Content-Type"] == kind
    assert answer.headers["Content-Disposition"] == f"attachment; filename=\"{told}\"; filename*=UTF-8''{told}"
    assert pictures.decode(answer.body).format == form


def test_duplicates_by_extension_are_renamed(client, small, tmp_path):
    order = client.order_whole([("photo.jpg", pictures.png(64, 64)), ("photo.png", pictures.png(64, 64)), ("photo.jpg", small)])
    archive, wanted = archive_of(client, order["orderId"], tmp_path)
    assert list(wanted) == ["photo.png", "photo (2).png", "photo.jpg"] == format_expect(archive.read_bytes())


def test_copies_have_the_extension_of_their_bytes(client):
    order = embedded(client, [("photo.jpg", pictures.png(400, 300), ["one", "two"]), ("photo.jpg", pictures.webp(400, 300), ["one"])])
    assert [name for name, _ in results(client, order["orderId"])] == ["photo-1.png", "photo-2.png", "photo.webp"]


def test_a_duplicate_keeps_its_number_when_the_first_fails(client, small):
    order = client.order_whole([("photo.jpg", pictures.png(40, 40)), ("photo.png", pictures.png(64, 64)), ("photo.png", small)])
    assert [name for name, _ in results(client, order["orderId"])] == ["photo (2).png", "photo.jpg"]


@pytest.fixture(scope="module")
def remotes():
    opened = Remotes()
    yield opened
    opened.close()


@pytest.mark.parametrize("late", [0, 1])
def test_names_by_url_do_not_depend_on_which_file_ends_first(client, remotes, late):
    """The format of a source is known after the fetch, so names are assigned when the last file has finished."""
    remotes.gives["/now"] = pictures.png(64, 64)
    remotes.gives["/later"] = [503, pictures.png(64, 64)]
    sources = ["/later", "/now"] if late == 0 else ["/now", "/later"]
    created = client.create([{"fileName": name, "imageUrl": remotes.url(path)} for name, path in zip(("photo.jpg", "photo.png"), sources)],
                            kind="anti-ai/with-urls")
    order = client.wait(created.data["orderId"])
    assert order["status"] == "complete", order
    assert [name for name, _ in results(client, order["orderId"])] == ["photo.png", "photo (2).png"]
