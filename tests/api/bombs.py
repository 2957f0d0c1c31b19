"""Decompression bombs and damaged files, built chunk by chunk."""
import struct
import zlib

import pictures


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, depth=8, color=2, rows=None, before=b"", after=b"", data=None):
    """Returns a PNG with this header; without rows, the pixels are one row of zeros."""
    if data is None:
        samples = {0: 1, 2: 3, 4: 2, 6: 4}[color] * depth // 8
        data = chunk(b"IDAT", zlib.compress(b"\0" * (1 + width * samples) * (rows or 1), 9))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))
            + before + data + after + chunk(b"IEND", b""))


def segment(marker, data):
    return b"\xff" + bytes([marker]) + struct.pack(">H", len(data) + 2) + data


def behind_start(jpeg, segments):
    return jpeg[:2] + segments + jpeg[2:]


def jpeg_sized(width, height):
    """Returns a JPEG whose header claims another size."""
    data = bytearray(pictures.jpeg(96, 80))
    at = data.index(b"\xff\xc0")
    data[at + 5:at + 9] = struct.pack(">HH", height, width)
    return bytes(data)


def jpeg_scans(count):
    """Returns a progressive JPEG that repeats the last scan."""
    data = pictures.jpeg(96, 80, progressive=True)
    last = data.rindex(b"\xff\xda")
    return data[:-2] + data[last:-2] * count + data[-2:]


def riff(*chunks):
    body = b"WEBP" + b"".join(name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2) for name, data in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def vp8x(flags, width, height):
    return b"VP8X", struct.pack("<I", flags) + struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]


def webp_chunk(picture):
    """Returns name and bytes of the chunk with the pixels of a plain WebP."""
    data = pictures.encode(picture, "WEBP", quality=50)
    assert data[12:16] == b"VP8 "
    return b"VP8 ", data[20:20 + struct.unpack("<I", data[16:20])[0]]


def webp_frame_sized(width, height):
    """Returns a lossy WebP whose frame header claims another size."""
    name, data = webp_chunk(pictures.scene(96, 80))
    return riff((name, data[:6] + struct.pack("<HH", width, height) + data[10:]))


def exif_loop():
    """Returns an EXIF block with directories that point at themselves and values outside the block."""
    entries = struct.pack(">HHII", 0x8769, 4, 1, 8) + struct.pack(">HHII", 0x0112, 3, 0xFFFFFFFF, 0xFFFFFFF0) + struct.pack(
        ">HHII", 0x9286, 7, 0x7FFFFFFF, 0x7FFFFFFF)
    return b"Exif\0\0MM\0*" + struct.pack(">IH", 8, 3) + entries + struct.pack(">I", 8)


def animation(form):
    frames = [pictures.scene(96, 80, seed) for seed in (1, 2, 3)]
    return pictures.encode(frames[0], form, save_all=True, append_images=frames[1:], duration=50)


def icc_segments(count, given=None):
    """Returns a profile split into count segments, of which only the first given are present."""
    return b"".join(segment(0xE2, b"ICC_PROFILE\0" + bytes([number + 1, count]) + b"\0" * 65000) for number in range(given or count))


# The upload is refused, because no host has enough memory.
REFUSED = "PAYLOAD_TOO_LARGE"


def bombs():
    """Returns {name: (bytes, error code of the file or of the upload; None if the file is processed)}."""
    plain = pictures.jpeg(96, 80)
    packed = zlib.compress(b"\0" * (40 << 20), 9)
    rows = chunk(b"IDAT", zlib.compress((b"\0" + b"\x55" * 96 * 3) * 80, 9))
    return {
        "one pixel wide.png": (png(1, 65535, rows=2), "IMAGE_TOO_LARGE"),
        "one pixel high.png": (png(65535, 1), "IMAGE_TOO_LARGE"),
        "one pixel wide.jpg": (jpeg_sized(1, 65500), "IMAGE_TOO_LARGE"),
        "one pixel high.jpg": (jpeg_sized(65500, 1), "IMAGE_TOO_LARGE"),
        "thin.png": (png(16384, 1), "IMAGE_TOO_SMALL"),
        "billions of pixels.png": (png(0x7FFFFFFF, 0x7FFFFFFF, data=rows), REFUSED),
        "268 megapixels.png": (png(16384, 16384, 8, 0), REFUSED),
        "800 MB of samples.png": (png(10000, 10000, 16, 6), REFUSED),
        "four gigapixels.jpg": (jpeg_sized(65500, 65500), REFUSED),
        "268 megapixels.webp": (webp_frame_sized(16383, 16383), REFUSED),
        "no width.png": (png(0, 80, data=rows), "IMAGE_CORRUPT"),
        "no height.png": (png(96, 0, data=rows), "IMAGE_CORRUPT"),
        "no height.jpg": (jpeg_sized(96, 0), "IMAGE_CORRUPT"),
        "no width.webp": (webp_frame_sized(0, 80), "IMAGE_CORRUPT"),
        "no pixels.png": (png(96, 80, data=b""), "IMAGE_CORRUPT"),
        "pixels that end early.png": (png(96, 80, rows=79), "IMAGE_CORRUPT"),
        "more pixels than there is room.png": (png(96, 80, data=chunk(b"IDAT", packed)), None),
        "scans without end.jpg": (jpeg_scans(2000), "IMAGE_CORRUPT"),
        "forty megabytes of text.png": (png(96, 80, data=rows, before=chunk(b"zTXt", b"a\0\0" + packed)), None),
        "forty megabytes of XMP.png": (
            png(96, 80, data=rows, before=chunk(b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + packed)), None),
        "forty megabytes of profile.png": (png(96, 80, data=rows, before=chunk(b"iCCP", b"p\0\0" + packed)), None),
        "seventeen megabytes of text.png": (png(96, 80, data=rows, before=chunk(b"tEXt", b"a\0" + b"x" * (17 << 20))), "IMAGE_TOO_LARGE"),
        "four megabytes of profile.jpg": (behind_start(plain, icc_segments(60)), None),
        "seventeen megabytes of metadata.jpg": (behind_start(plain, segment(0xE5, b"x" * 65000) * 260), "IMAGE_TOO_LARGE"),
        "a broken profile.jpg": (behind_start(plain, icc_segments(3, 2) + segment(0xE2, b"ICC_PROFILE\0\xff\0")), None),
        "EXIF in a circle.jpg": (behind_start(plain, segment(0xE1, exif_loop())), None),
        "a quarter of a million little chunks.png": (png(96, 80, data=rows, before=chunk(b"prVt", b"") * 265000), "IMAGE_TOO_LARGE"),
        "animated.png": (animation("PNG"), "IMAGE_FORMAT_UNSUPPORTED"),
        "animated without frames.png": (png(96, 80, data=rows, before=chunk(b"acTL", struct.pack(">II", 0, 0))), None),
        "animated.webp": (animation("WEBP"), "IMAGE_FORMAT_UNSUPPORTED"),
        "animated without frames.webp": (riff(vp8x(2, 96, 80), (b"ANIM", struct.pack("<IH", 0, 0))), "IMAGE_FORMAT_UNSUPPORTED"),
        "a canvas without a picture.webp": (riff(vp8x(0, 96, 80)), "IMAGE_CORRUPT"),
        "two pictures.webp": (riff(vp8x(0, 96, 80), webp_chunk(pictures.scene(96, 80)), webp_chunk(pictures.scene(96, 80, 2))), None),
        "a canvas of another size.webp": (riff(vp8x(0, 16383, 16383), webp_chunk(pictures.scene(96, 80))), None),
        "no end marker.jpg": (plain[:-2], None),
        "half.jpg": (plain[:len(plain) // 2], "IMAGE_CORRUPT"),
        "a page behind it.jpg": (plain + b"<script>alert(1)</script>", None),
    }
