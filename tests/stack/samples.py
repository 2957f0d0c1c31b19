"""Sample pictures drawn by this program, the same on every run.

A landscape (JPEG), a flat illustration (PNG with transparency) and a page of text (WebP): protection treats these
three kinds differently.
"""
import pathlib
import sys

import numpy
from PIL import Image, ImageDraw, ImageFont


def fractal(random, width, height, roughness=0.55):
    """Returns noise at every scale from the whole picture down to two pixels, about -1..1."""
    field, weight, cells = numpy.zeros((height, width)), 1.0, 2
    while cells < max(width, height) / 2:
        grid = random.normal(0, 1, (max(2, cells * height // width) + 1, cells + 1)).astype("float32")
        field += weight * numpy.asarray(Image.fromarray(grid).resize((width, height), Image.BICUBIC))
        weight *= roughness
        cells *= 2
    return field / numpy.abs(field).max()


def mixed(one, other, share):
    return one * (1 - share[..., None]) + other * share[..., None]


def ridge(random, width, base, height):
    """Returns the skyline of one mountain range, one height per column."""
    return base - height * fractal(random, width, 8, 0.6)[0]


def landscape(width=960, height=640):
    random = numpy.random.default_rng(20260312)
    y = numpy.mgrid[0:height, 0:width][0] / height
    colour = numpy.array
    picture = mixed(colour([96.0, 140, 200]), colour([245.0, 214, 170]), numpy.clip(y * 1.7, 0, 1))
    clouds = numpy.clip(fractal(random, width, height, 0.6) * 2.2 - 0.3, 0, 1) * numpy.clip(1 - y * 2.2, 0, 1)
    picture = mixed(picture, colour([255.0, 250, 245]), clouds)
    for depth, tint in enumerate(([138, 150, 176], [98, 116, 128], [60, 84, 66], [42, 60, 34])):
        line = ridge(random, width, height * (0.48 + 0.12 * depth), height * (0.16 - 0.02 * depth))
        inside = numpy.clip(y * height - line[None, :], 0, 1)
        grain = 1 + (0.12 + 0.1 * depth) * fractal(random, width, height, 0.75)
        picture = mixed(picture, colour(tint, dtype=float) * grain[..., None], inside)
    picture += random.normal(0, 2.0, picture.shape)
    return Image.fromarray(numpy.clip(picture, 0, 255).astype("uint8"))


def illustration(width=800, height=600):
    picture = Image.new("RGBA", (width * 2, height * 2), (0, 0, 0, 0))
    draw = ImageDraw.Draw(picture)
    draw.rounded_rectangle((80, 80, 1520, 1120), 120, fill=(252, 236, 206, 255))
    draw.ellipse((1040, 150, 1320, 430), fill=(244, 150, 76, 255))
    draw.polygon([(80, 900), (520, 420), (900, 860), (1120, 620), (1520, 960), (1520, 1000), (80, 1000)],
                 fill=(94, 142, 134, 255))
    draw.rounded_rectangle((80, 860, 1520, 1120), 120, fill=(58, 92, 108, 255))
    draw.rectangle((80, 860, 1520, 1000), fill=(58, 92, 108, 255))
    draw.polygon([(560, 900), (1060, 900), (980, 1020), (640, 1020)], fill=(196, 74, 62, 255))
    draw.line([(800, 900), (800, 500)], fill=(80, 54, 48, 255), width=16)
    draw.polygon([(816, 510), (816, 860), (1080, 860)], fill=(255, 255, 255, 255))
    draw.polygon([(784, 560), (784, 860), (600, 860)], fill=(240, 210, 120, 255))
    return picture.resize((width, height), Image.LANCZOS)


LINES = """ON KEEPING A PICTURE ONE'S OWN

A picture that is shown is a picture that is copied.
This page is a sample made for a test: black letters
on white paper, where every change of a pixel is easy
to see and hard to hide. A flat page asks for care;
a photograph forgives more. The sheet beside this
page shows how far apart the two have come, with the
difference made eight times stronger than it is.

    one two three four five six seven eight nine ten
    0123456789  +-*/=  ()[]{}  .,;:!?  "quoted" 'so'
""".splitlines()


def text_page(width=700, height=520):
    small = Image.new("L", (width // 2, height // 2), 252)
    draw = ImageDraw.Draw(small)
    font = ImageFont.load_default()
    for number, line in enumerate(LINES):
        draw.text((14, 14 + 18 * number), line, fill=20, font=font)
    return small.resize((width, height), Image.BICUBIC).convert("RGB")


def write_all(folder):
    """Writes the samples; returns their paths."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    made = ((landscape, "landscape.jpg", {"quality": 92}), (illustration, "illustration.png", {}),
            (text_page, "text-page.webp", {"quality": 92}))
    for make, name, options in made:
        make().save(folder / name, **options)
    return [folder / name for _, name, _ in made]


if __name__ == "__main__":
    for path in write_all(sys.argv[1]):
        print(path)
