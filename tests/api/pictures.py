"""Pictures for tests, the same on every run."""
import io

import numpy
from PIL import Image


# The formats of the service as clients see them: the name in messages, the media type and the extensions. First the
# formats that every order accepts, then those that only an extraction reads.
CHANGED = [("JPEG", "image/jpeg", [".jpg", ".jpeg"]), ("PNG", "image/png", [".png"]), ("WebP", "image/webp", [".webp"])]
READ = [("HEIC", "image/heic", [".heic", ".heif"]), ("AVIF", "image/avif", [".avif"]), ("TIFF", "image/tiff", [".tif", ".tiff"]),
        ("GIF", "image/gif", [".gif"]), ("BMP", "image/bmp", [".bmp"])]


def listed(texts):
    """Joins the formats as the service's messages do: "JPEG, PNG or WebP"."""
    return ", ".join(texts[:-1]) + " or " + texts[-1]


def titles(formats):
    return listed([title for title, _, _ in formats])


def endings(formats):
    return listed([ending for _, _, extensions in formats for ending in extensions])


def scene(width, height, seed=1):
    """Draws a photo-like picture: soft colour fields, edges, and texture at several scales."""
    random = numpy.random.default_rng(seed)
    y, x = numpy.mgrid[0:height, 0:width].astype(float)
    planes = []
    for channel in range(3):
        plane = 110 + 50 * numpy.sin(x / width * 5 + channel) + 40 * numpy.cos(y / height * 4 - channel)
        for scale in (4, 12, 40):
            rough = random.normal(0, 60 / scale ** 0.5, (height // scale + 2, width // scale + 2))
            plane += numpy.asarray(Image.fromarray(rough).resize((width, height), Image.BICUBIC))
        plane[(x - width / 2) ** 2 + (y - height / 2) ** 2 < (min(width, height) / 4) ** 2] += 35
        planes.append(plane)
    return Image.fromarray(numpy.clip(numpy.stack(planes, -1), 0, 255).astype("uint8"))


def encode(picture, form, **options):
    out = io.BytesIO()
    picture.save(out, form, **options)
    return out.getvalue()


def jpeg(width=320, height=240, seed=1, **options):
    return encode(scene(width, height, seed), "JPEG", **{"quality": 90, **options})


def png(width=200, height=150, seed=2, **options):
    return encode(scene(width, height, seed), "PNG", **options)


def webp(width=180, height=140, seed=3, **options):
    return encode(scene(width, height, seed), "WEBP", **{"quality": 90, **options})


def decode(data):
    picture = Image.open(io.BytesIO(data))
    picture.load()
    return picture


def psnr(one, two):
    """Returns the PSNR of two pictures of the same size, as RGB."""
    a, b = (numpy.asarray(decode(data).convert("RGB"), dtype=float) for data in (one, two))
    error = ((a - b) ** 2).mean()
    return float("inf") if error == 0 else 10 * numpy.log10(255 ** 2 / error)
