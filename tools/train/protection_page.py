#!/usr/bin/python3
"""Measures the tables of doc/protection.md and prints them as Markdown; draws its pictures.

    protection_page.py --ctl OLD/imgwardctl --weights OLD/protect.weights --third third.pt --save before.json
    protection_page.py --third third.pt --decoders DECODERS --before before.json --out doc/protection > tables.md

A figure in parentheses is that of --before, with the same pictures and seeds.  third.pt is of autoencoder.py; DECODERS holds
sana.pt and sd15.pt of roundtrip.py.
"""

import argparse
import json
import os
import sys
import tempfile

import numpy
import torch
from PIL import Image, ImageFilter
from skimage.restoration import denoise_nl_means, estimate_sigma

from roundtrip import load_models
from visibility import butteraugli, tensor_of

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "tests", "bench"))
import protect as bench  # noqa: E402
from watermark_drawings import JUDGING, drawing  # noqa: E402

SHOWN = {  # picture: top, left of the crops, px
    "stdebooks-058.jpg": (55, 165), "clip_fall_scene.png": (490, 320), "budgie-006.jpg": (250, 130),
}
SIDE, GAP = 180, 4  # px
UPLOADS = {  # file format, options of its encoder
    "PNG": ("png", {"compress_level": 9}), "JPEG 95": ("jpg", {"quality": 95}), "JPEG 85": ("jpg", {"quality": 85}),
    "JPEG 75": ("jpg", {"quality": 75}), "WebP 80": ("webp", {"quality": 80}),
}


# ---- removal

def denoised(picture, level=None):
    """Applies non-local means (Buades, Coll, Morel, CVPR 2005) with a filter level, or that of the noise estimated from the picture."""
    sigma = 0 if level else float(numpy.mean(estimate_sigma(picture / 255, channel_axis=-1)))
    result = denoise_nl_means(picture / 255, 5, 6, level / 255 if level else 0.8 * sigma, sigma=sigma, channel_axis=-1)
    return (result * 255).round().clip(0, 255).astype(numpy.uint8)


REMOVAL = {
    "JPEG 75": bench.PROCESSING["JPEG 75"], "WebP 75": bench.PROCESSING["WebP 75"], "Half size": bench.PROCESSING["half"],
    "Blur 1": bench.PROCESSING["blur 1"], "Crop 3 px": bench.PROCESSING["crop 3"],
    "Median 3": lambda p: numpy.array(Image.fromarray(p).filter(ImageFilter.MedianFilter(3))),
    "Non-local means": denoised, "Non-local means, level 10": lambda p: denoised(p, 10),
    "Blur 1, JPEG 75, half": lambda p: bench.PROCESSING["half"](bench.PROCESSING["JPEG 75"](bench.PROCESSING["blur 1"](p))),
}


# ---- the engine

class Engine:
    """Protects each picture once."""

    def __init__(self, options, folder):
        self.options, self.folder, self.done = options, folder, {}

    def file(self, path, strength="standard", seed=1):
        """Returns (result decoded, bytes of the result relative to those of the file)."""
        result = os.path.join(self.folder, "out" + os.path.splitext(path)[1])
        bench.protect(self.options.ctl, self.options.weights, path, result, strength, seed)
        return numpy.array(Image.open(result).convert("RGB")), os.path.getsize(result) / os.path.getsize(path)

    def picture(self, name, picture, upload="PNG", strength="standard", seed=1):
        """Returns (upload decoded, result decoded, growth)."""
        key = name, upload, strength
        if key not in self.done:
            kind, options = UPLOADS[upload]
            path = os.path.join(self.folder, "in." + kind)
            Image.fromarray(picture).save(path, **options)
            self.done[key] = (numpy.array(Image.open(path).convert("RGB")), *self.file(path, strength, seed))
        return self.done[key]

    def group(self, pictures, upload="PNG", strength="standard"):
        return [self.picture(name, picture, upload, strength, seed) for seed, (name, picture) in enumerate(pictures)]


def shifts(options, x, y):
    with torch.no_grad():
        return [bench.latent_shift(encoder(tensor_of(y)), encoder(tensor_of(x))).item() for encoder in options.models.values()]


def mean_shifts(options, found):
    return numpy.mean([shifts(options, x, y) for x, y, _ in found], 0)


def psnr(x, y):
    return -10 * numpy.log10(max(1e-9, (tensor_of(x) - tensor_of(y)).square().mean().item()))


def apart(engine, x, y):
    return psnr(x, y), butteraugli(x, y, engine.folder)[0]


# ---- tables: a head, and rows of labels and figures

def visibility_table(options, engine, groups):
    yield ["PNG uploads", "Strength"], ["Butteraugli, mean", "Worst", "Largest peak"], "%.2f"
    for title, pictures in groups.items():
        for strength in bench.STRENGTHS:
            norms, peaks = zip(*[butteraugli(x, y, engine.folder) for x, y, _ in engine.group(pictures, "PNG", strength)])
            yield ["%d %s" % (len(pictures), title), "`%s`" % strength], [numpy.mean(norms), max(norms), max(peaks)]


def effect_table(options, engine, groups):
    yield ["PNG uploads", "Strength"], ["Shift " + name for name in options.models], "%.2f"
    for title, pictures in groups.items():
        for strength in bench.STRENGTHS:
            found = engine.group(pictures, "PNG", strength)
            yield ["%d %s" % (len(pictures), title), "`%s`" % strength], mean_shifts(options, found)


def upload_table(options, engine, groups):
    yield (["At `standard`", "Upload"],
           ["Shift " + name for name in options.models] + ["Butteraugli, mean", "Worst", "Result / upload, bytes"], "%.2f")
    for title, pictures in groups.items():
        for upload in UPLOADS:
            found = engine.group(pictures, upload)
            norms = [butteraugli(x, y, engine.folder)[0] for x, y, _ in found]
            growth = numpy.mean([growth for _, _, growth in found])
            yield (["%d %s" % (len(pictures), title), upload],
                   [*mean_shifts(options, found), numpy.mean(norms), max(norms), growth])


def removal_table(options, engine, groups):
    """Returns the shift after original and result are processed alike, in per cent of the shift before."""
    short = [title.removeprefix("photographs of the ").removesuffix(" photographs") for title in groups]
    yield ["Left of the shift, %, after"], ["%s, %s" % (kind, title) for title in short for kind in bench.FILES], "%.0f"
    found = [engine.group(pictures) for pictures in groups.values()]
    plain = [mean_shifts(options, group) for group in found]
    for name, process in REMOVAL.items():
        left = [mean_shifts(options, [(process(x), process(y), 0) for x, y, _ in group]) for group in found]
        yield [name], [100 * share for group in zip(left, plain) for share in (group[0] / group[1])[:len(bench.FILES)]]


def drawings(options, folder):
    """Returns the paths of ten PNG files as drawing programs write them; manga pages and text pages are grey."""
    for seed in range(JUDGING, JUDGING + 8):
        name, picture = drawing(seed)
        image = Image.fromarray(picture)
        path = os.path.join(folder, name.replace(" ", "-") + ".png")
        (image.convert("L") if name.startswith(("manga", "page")) else image).save(path, optimize=True)
        yield path
    for name in ("clip_fall_scene.png", "clip_spread.png"):
        path = os.path.join(folder, name)
        Image.open(os.path.join(options.images, name)).convert("RGB").save(path, optimize=True)
        yield path


def growth_table(options, engine, groups):
    yield ["PNG at `standard`", "Upload"], ["Result / upload, bytes", "Butteraugli"] + ["Shift " + name for name in options.models], "%.2f"
    for path in drawings(options, engine.folder):
        x = bench.load_picture(path)
        y, growth = engine.file(path)
        rows, columns = (edge // 32 * 32 for edge in x.shape[:2])
        yield ([os.path.basename(path)[:-4], "%d kB" % round(os.path.getsize(path) / 1000)],
               [growth, butteraugli(x, y, engine.folder)[0], *shifts(options, x[:rows, :columns], y[:rows, :columns])])


def roundtrip_table(options, engine, groups):
    """Returns PSNR and butteraugli between the original and a version: of the files, and as each model reads them."""
    names = ["files"] + list(options.trips)
    yield ["Picture", "Original and"], ["%s: %s" % (name, unit) for name in names for unit in ("dB", "butteraugli")], "%.1f"
    for name, picture, place in shown(options):
        versions = {"`%s`" % strength: engine.picture(name, picture, "PNG", strength)[1] for strength in ("standard", "high")}
        versions["JPEG 75"] = REMOVAL["JPEG 75"](picture)
        pairs = [[picture, *versions.values()]]
        pairs += [[model(one) for one in pairs[0]] for model in options.trips.values()]
        for row, version in enumerate(versions, 1):
            yield [name, version], [figure for pair in pairs for figure in apart(engine, pair[0], pair[row])]
        yield [name, "as the model draws it"], [None, None] + [figure for pair in pairs[1:] for figure in apart(engine, picture, pair[0])]
        draw(options, name, place, [pair[:3] for pair in pairs])


TABLES = {"roundtrip": roundtrip_table, "visibility": visibility_table, "effect": effect_table, "uploads": upload_table,
          "removal": removal_table, "growth": growth_table}


# ---- pictures

def shown(options):
    for name, place in SHOWN.items():
        folder = options.images if os.path.exists(os.path.join(options.images, name)) else options.held
        yield name, bench.load_picture(os.path.join(folder, name)), place


def sheet(rows, place):
    """Draws crops at 100 %, in rows."""
    top, left = place
    page = Image.new("RGB", ((SIDE + GAP) * len(rows[0]) - GAP, (SIDE + GAP) * len(rows) - GAP), "white")
    for down, row in enumerate(rows):
        for right, picture in enumerate(row):
            page.paste(Image.fromarray(picture[top:top + SIDE, left:left + SIDE]), (right * (SIDE + GAP), down * (SIDE + GAP)))
    return page


def draw(options, name, place, rows):
    if options.out:
        base = os.path.join(options.out, os.path.splitext(name)[0])
        sheet(rows[:1], place).save(base + ".webp", lossless=True, quality=100, method=6)
        sheet(rows[1:], place).save(base + "-read.webp", quality=92, method=6)


# ---- the page

def printed(title, rows, before):
    labels, heads, form = next(rows)
    print("<!-- %s -->\n| %s |\n|%s" % (title, " | ".join(labels + heads), "---|" * len(labels + heads)))
    figures = {}
    for labels, values in rows:
        key = " / ".join(labels)
        old = before.get(key, [])
        cells = ["" if value is None else form % value + (" (%s)" % (form % old[place]) if place < len(old) else "")
                 for place, value in enumerate(values)]
        print("| %s |" % " | ".join(labels + cells), flush=True)
        figures[key] = [None if value is None else float(value) for value in values]
    print()
    return figures


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ctl", default=os.path.join(TOP, "build", "imgwardctl"))
    parser.add_argument("--weights", default=os.path.join(TOP, "data", "protect.weights"))
    parser.add_argument("--before", help="figures that --save wrote for another engine")
    parser.add_argument("--save", help="a file for the figures")
    parser.add_argument("--images", default=os.path.join(TOP, "tests", "bench", "pictures"))
    parser.add_argument("--held", default=os.path.join(TOP, "..", "shared", "training-images"),
                        help="training pictures, of which those kept from training are judged")
    parser.add_argument("--encoders", default=os.path.join(TOP, "..", "shared", "models"))
    parser.add_argument("--decoders", default="", help="a folder with sana.pt and sd15.pt")
    parser.add_argument("--third", help="an autoencoder of autoencoder.py")
    parser.add_argument("--photos", type=int, default=8, help="held-out photographs and paintings")
    parser.add_argument("--drawings", type=int, default=8)
    parser.add_argument("--side", type=int, default=384, help="px of the crops that are measured")
    parser.add_argument("--only", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--out", help="a folder for the pictures of the page")
    return parser.parse_args()


def main():
    options, figures, before = options_of(), {}, {}
    torch.set_num_threads(1)
    options.models = {name: bench.load_encoder(name, os.path.join(options.encoders, bench.FILES[name])) for name in bench.FILES}
    if options.third:
        options.models["third"] = bench.load_autoencoder(options.third)
    options.trips = load_models(options.encoders, options.decoders, options.third)
    if options.before:
        with open(options.before) as file:
            before = json.load(file)
    groups = {title: pictures for title, pictures in bench.groups_of(options).items() if pictures}
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(options, folder)
        for name in options.only:
            figures[name] = printed(name, TABLES[name](options, engine, groups), before.get(name, {}))
            if options.save:
                with open(options.save, "w") as file:
                    json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
