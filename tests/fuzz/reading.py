"""Writes the inputs of the target fuzz_reading: one small picture in the formats that extractions read.

    reading.py FOLDER

It needs PIL, heif-enc (libheif-examples) and tiffcp (libtiff-tools). tests/unit/codec/test_codec_reading.c has the table of the files.
"""
import pathlib
import struct
import subprocess
import sys

import numpy
from PIL import Image

WIDTH, HEIGHT = 64, 96


def picture():
    """Draws slow ramps, which every encoder keeps, by the formula of the unit test."""
    y, x = numpy.mgrid[0:HEIGHT, 0:WIDTH]
    return Image.fromarray(numpy.stack([x * 4, y * 2, 255 - x - y], -1).astype("uint8"))


def info(bits, compression, extra=b"", height=HEIGHT, size=40, at=0):
    head = struct.pack("<IiiHHIIiiII", size, WIDTH, height, 1, bits, compression, 0, 2835, 2835, 0, 0)
    at = at or 14 + len(head) + len(extra)
    return b"BM" + struct.pack("<IHHI", 0, 0, 0, at) + head + extra


def rows(pixels):
    """Returns the rows from the bottom, each padded to four bytes."""
    return b"".join(row + bytes(-len(row) % 4) for row in reversed(pixels))


def packed(picture, red, green, blue, bytes_px):
    """Returns pixels with these numbers of bits a colour, red highest."""
    pixels = numpy.asarray(picture).astype("uint32")
    values = (pixels[..., 0] >> (8 - red)) << (green + blue) | (pixels[..., 1] >> (8 - green)) << blue | pixels[..., 2] >> (8 - blue)
    return [row.astype("<u2" if bytes_px == 2 else "<u4").tobytes() for row in values]


def bmp(folder, base):
    base.save(folder / "bmp-24.bmp")
    whole = (folder / "bmp-24.bmp").read_bytes()
    (folder / "bmp-cut.bmp").write_bytes(whole[:54 + WIDTH * 3 * 60 + 7])
    down = b"".join(row.tobytes() for row in numpy.asarray(base)[..., ::-1])
    (folder / "bmp-down.bmp").write_bytes(info(24, 0, height=-HEIGHT) + down)
    base.quantize(256).save(folder / "bmp-8.bmp")
    base.convert("L").save(folder / "bmp-grey.bmp")
    base.convert("1").save(folder / "bmp-1.bmp")
    indices = numpy.asarray(base.quantize(16, dither=0))
    palette = base.quantize(16, dither=0).getpalette()[:48]
    colors = b"".join(bytes([*reversed(palette[i:i + 3]), 0]) for i in range(0, 48, 3))
    (folder / "bmp-4.bmp").write_bytes(info(4, 0, colors) + rows([(row[::2] << 4 | row[1::2]).tobytes() for row in indices]))
    (folder / "bmp-555.bmp").write_bytes(info(16, 0) + rows(packed(base, 5, 5, 5, 2)))
    (folder / "bmp-565.bmp").write_bytes(info(16, 3, struct.pack("<III", 0xF800, 0x7E0, 0x1F)) + rows(packed(base, 5, 6, 5, 2)))
    (folder / "bmp-32.bmp").write_bytes(info(32, 0) + rows(packed(base, 8, 8, 8, 4)))
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    clear = [(numpy.frombuffer(row, "<u4") | 0xFF000000).tobytes() for row in packed(base, 8, 8, 8, 4)]
    (folder / "bmp-alpha.bmp").write_bytes(info(32, 3, masks + bytes(68), size=124) + rows(clear))
    core = b"BM" + struct.pack("<IHHI", 0, 0, 0, 26) + struct.pack("<IHHHH", 12, WIDTH, HEIGHT, 1, 24)
    (folder / "bmp-core.bmp").write_bytes(core + rows([row.tobytes() for row in numpy.asarray(base)[..., ::-1]]))
    (folder / "bmp-rle.bmp").write_bytes(info(8, 1) + bytes(64))


def gif(folder, base):
    few = base.quantize(256)
    few.save(folder / "gif.gif", interlace=0)
    few.save(folder / "gif-interlaced.gif", interlace=1)
    few.save(folder / "gif-clear.gif", interlace=0, transparency=0)
    few.save(folder / "gif-frames.gif", save_all=True, append_images=[few.rotate(180)], interlace=0)
    for name in ("gif", "gif-interlaced"):
        whole = (folder / f"{name}.gif").read_bytes()
        (folder / f"{name}-cut.gif").write_bytes(whole[:len(whole) * 3 // 4])


def tiff(folder, base):
    for name, compression in (("none", None), ("lzw", "tiff_lzw"), ("deflate", "tiff_adobe_deflate"), ("packbits", "packbits"), ("jpeg", "jpeg")):
        base.save(folder / f"tiff-{name}.tif", compression=compression)
    for name, mode in (("grey", "L"), ("bilevel", "1"), ("cmyk", "CMYK"), ("alpha", "RGBA"), ("float", "F"), ("grey16", "I;16")):
        made = base.convert("L").convert("F") if mode == "F" else base.convert("L").convert("I").point(lambda v: v * 257) if mode == "I;16" else base
        (Image.fromarray(numpy.asarray(made).astype("uint16")) if mode == "I;16" else made.convert(mode)).save(folder / f"tiff-{name}.tif")
    base.quantize(256).save(folder / "tiff-palette.tif")
    base.save(folder / "tiff-turned.tif", tiffinfo={274: 6})
    base.save(folder / "tiff-preview.tif", tiffinfo={254: 1})
    whole = (folder / "tiff-none.tif").read_bytes()
    for name, words in (("tiled", ["-t", "-w", "32", "-l", "32"]), ("planes", ["-p", "separate"]), ("big", ["-8"]), ("motorola", ["-B"]), ("strips", ["-r", "8"])):
        subprocess.run(["tiffcp", *words, folder / "tiff-none.tif", folder / f"tiff-{name}.tif"], check=True)

    base.save(folder / "tiff-pages.tif", save_all=True, append_images=[base.rotate(180)])
    (folder / "tiff-cut.tif").write_bytes(whole[:len(whole) * 3 // 4])
    damaged = bytearray((folder / "tiff-lzw.tif").read_bytes())
    damaged[2000:2100] = bytes(100)
    (folder / "tiff-damaged.tif").write_bytes(damaged)


def heif(folder, base):
    base.save(folder / "base.png")
    clear = base.copy()
    clear.putalpha(200)
    clear.save(folder / "clear.png")
    for name, words, source in (("heic.heic", [], "base"), ("heic-444.heic", ["-p", "chroma=444"], "base"), ("heic-clear.heic", [], "clear"),
                                ("avif.avif", ["-A"], "base"), ("avif-clear.avif", ["-A"], "clear")):
        subprocess.run(["heif-enc", "-q", "90", *words, "-o", folder / name, folder / f"{source}.png"], check=True, capture_output=True)
    for name in ("base", "clear"):
        (folder / f"{name}.png").unlink()
    for name in ("heic.heic", "avif.avif"):
        whole = (folder / name).read_bytes()
        (folder / name.replace(".", "-cut.")).write_bytes(whole[:len(whole) - 100])
    # The sizes are in the file's header, not in the bitstream.
    whole, size = (folder / "avif.avif").read_bytes(), struct.pack(">II", WIDTH, HEIGHT)
    (folder / "avif-lies.avif").write_bytes(whole.replace(b"ispe" + bytes(4) + size, b"ispe" + bytes(4) + struct.pack(">II", WIDTH * 2, HEIGHT)))
    (folder / "avif-bomb.avif").write_bytes(whole.replace(b"ispe" + bytes(4) + size, b"ispe" + bytes(4) + struct.pack(">II", 30000, 30000)))


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for write in (bmp, gif, tiff, heif):
        write(folder, picture())


main()
