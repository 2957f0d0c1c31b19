#!/usr/bin/python3
"""Fits the factors of src/engine/protect/share.h, by which the engine estimates the share of the protection that a result has.

    protection_fit.py --images PICTURES --encoders ENCODERS --third third.pt --out src/engine/protect/share_fitted.h

The true share is the latent shift of a result of imgwardctl, relative to the shift of the unlimited change: that of the same
strength, neither rounded nor bounded by black and white.  It is the mean of the encoders.  WebP is encoded from pixels, and this
shifts the code without a change, too: the squares of both shifts are subtracted, at the quality of the result.  The uploads are PNG,
JPEG of several qualities and samplings, and WebP.  The share of a drawing (PNG) has another formula, so it is not fitted.  The
factors are fitted on training pictures; the error is that of the pictures kept from training.  Without --out nothing is fitted: the
figure that imgwardctl prints is compared with the true share.
"""

import argparse
import json
import os
import random
import subprocess
import tempfile

import numpy
import torch
import torch.nn.functional as F
from PIL import Image
from scipy.optimize import minimize

from autoencoder import load_autoencoder
from encoders import FILES, latent_shift, load_encoder
from export_weights import BUDGETS, load
from perceptual import CELL, EVEN, filtered, unit
from pictures import list_pictures, load_picture, split_pictures
from visibility import POOLING, opponent, tensor_of

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIDE, GRID = 256, 64  # px of a crop, and of its steps
OCTAVES = 7
UPLOADS = {  # name: suffix, options of the encoder
    "PNG": ("png", {}),
    "JPEG 50": ("jpg", {"quality": 50}), "JPEG 75": ("jpg", {"quality": 75}), "JPEG 85": ("jpg", {"quality": 85}), "JPEG 95": ("jpg", {"quality": 95}),
    "JPEG 75 4:4:4": ("jpg", {"quality": 75, "subsampling": 0}), "JPEG 85 4:4:4": ("jpg", {"quality": 85, "subsampling": 0}),
    "JPEG 95 4:4:4": ("jpg", {"quality": 95, "subsampling": 0}),
    "WebP 30": ("webp", {"quality": 30}), "WebP 60": ("webp", {"quality": 60}), "WebP 80": ("webp", {"quality": 80}),
}
REST_MOST = 4  # as in share.c
DRAWING_BITS = 10.4 / 3  # a pixel of a PNG below which codec.c takes it for a drawing
TURNS = ("standard", "low", "high")  # of the strengths
NEAR = 1e-3  # how much the factors of neighbouring octaves stay alike, and near 1: .1, 1 and 3 thousandths fit alike


# ---- the quality of a WebP

def bits_of(data):
    """Returns a reader of bits of probability one half: the decoder of RFC 6386, 7.3."""
    value, at, span, used = int.from_bytes(data[:2], "big"), 2, 255, 0

    def read(count):
        nonlocal value, at, span, used
        result = 0
        for _ in range(count):
            split = 1 + ((span - 1) * 128 >> 8)
            bit = value >= split << 8
            value, span = (value - (split << 8), span - split) if bit else (value, split)
            while span < 128:
                value, span, used = value << 1, span << 1, used + 1
                if used == 8:
                    value, at, used = value | data[at], at + 1, 0
            result = 2 * result + bit
        return result
    return read


def optional(read, counts):
    for count in counts:
        if read(1):
            read(count)


def quantizer_of(path):
    """Returns the index of the quantizer in a lossy WebP (RFC 6386, 9.2 to 9.6)."""
    with open(path, "rb") as file:
        data = file.read()
    read = bits_of(data[data.index(b"VP8 ") + 18:])
    read(2)
    if read(1):
        is_map, is_data = read(1), read(1)
        if is_data:
            read(1)
            optional(read, 4 * [8] + 4 * [7])
        if is_map:
            optional(read, 3 * [8])
    read(10)
    if read(1) and read(1):
        optional(read, 8 * [7])
    read(2)
    return read(7)


def save_as(picture, result, plain, coding):
    """Encodes a WebP without a change, at the quality of a result."""
    wanted, quality = quantizer_of(result), coding["quality"]
    Image.fromarray(picture).save(plain, quality=quality)
    while quantizer_of(plain) > wanted and quality < 100:
        quality += 1
        Image.fromarray(picture).save(plain, quality=quality)


# ---- a result

def unlimited(network, x, seed, strength):
    """Returns the wanted change of a picture at a strength, without limits."""
    height, width = x.shape[2:]
    _, d, seen = unit(network, x, seed)
    means, peaks = seen.cells(d)
    local = filtered(peaks, EVEN)
    shares = 1 / (local + 0.05 * local.mean((2, 3), keepdim=True) + 1e-12)
    total = (means * shares ** POOLING).mean() ** (1 / POOLING)
    d = d * F.interpolate(shares, scale_factor=CELL, mode="bilinear", align_corners=False)
    return (d * BUDGETS[strength] / total)[:, :, :height, :width]


def bands(one, other):
    """Returns sums of the products of two changes: octave x (luma, colour). The engine's share.c computes the same."""
    one, other, sums = opponent(one), opponent(other), []
    for at in range(OCTAVES):
        planes = (one * other).sum((0, 2, 3)) * 4 ** at
        sums.append(torch.stack([planes[0], planes[1] + planes[2]]))
        one, other = F.avg_pool2d(one, 2), F.avg_pool2d(other, 2)
    sums.append(torch.zeros(2))
    return torch.stack([fine - coarse for fine, coarse in zip(sums, sums[1:])]).numpy()


def protected(options, picture, upload, strength, seed, folder):
    """Returns (picture as uploaded, result, picture encoded like it without a change, share printed, bits a pixel of the upload)."""
    suffix, coding = UPLOADS[upload]
    source, result = (os.path.join(folder, "%s.%s" % (name, suffix)) for name in ("in", "out"))
    Image.fromarray(picture).save(source, **coding)
    said = subprocess.run([options.ctl, "image", "protect", "--json", "--strength", strength, "--seed", str(seed), "--weights",
                           options.weights, source, result], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    before, plain = load_picture(source), os.path.join(folder, "plain.webp")
    if suffix == "webp":
        save_as(before, result, plain, coding)
    again = load_picture(plain) if suffix == "webp" else before
    bits = 8 * os.path.getsize(source) / before[:, :, 0].size
    return tensor_of(before), tensor_of(load_picture(result)), tensor_of(again), json.loads(said)["share"], bits


def true_share(encoder, x, y, plain, wanted):
    before = encoder(x)
    shift, coding, whole = (latent_shift(encoder(other), before).item() if other is not x else 0. for other in (y, plain, x + wanted))
    return max(shift ** 2 - coding ** 2, 0) ** .5 / whole


def crop(path):
    """Returns the middle of a picture."""
    picture = load_picture(path)
    height, width = (min(SIDE, edge // GRID * GRID) for edge in picture.shape[:2])
    top, left = (picture.shape[0] - height) // 2, (picture.shape[1] - width) // 2
    return numpy.ascontiguousarray(picture[top:top + height, left:left + width])


def rows_of(options, network, encoders, paths):
    """Returns a row for each picture and upload; the strengths take turns."""
    rows = []
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        for seed, path in enumerate(paths):
            for turn, upload in enumerate(UPLOADS):
                strength = TURNS[(seed + turn) % len(TURNS)]
                x, y, plain, printed, bits = protected(options, crop(path), upload, strength, seed, folder)
                wanted = unlimited(network, x, seed, strength)
                if upload == "PNG" and bits < DRAWING_BITS:
                    continue
                rows.append({"name": os.path.basename(path), "upload": upload, "strength": strength,
                             "true": numpy.mean([true_share(encoder, x, y, plain, wanted) for encoder in encoders]),
                             "printed": printed, "wanted": bands(wanted, wanted), "form": bands(wanted, y - x),
                             "squares": bands(y - x, y - x) - bands(plain - x, plain - x)})
            print("%d of %d pictures" % (seed + 1, len(paths)), flush=True)
    return rows


# ---- the fit

class Shares:
    """The shares of rows, by logarithms of the factors: of the octaves, of colour, of the rest."""

    def __init__(self, rows):
        self.wanted, self.form, squares = (numpy.array([row[key] for row in rows]) for key in ("wanted", "form", "squares"))
        alike = self.form ** 2 / numpy.maximum(self.wanted, 1e-12)
        self.rest = numpy.clip(squares - alike, 0, REST_MOST * alike)
        self.true = numpy.array([row["true"] for row in rows])

    def estimate(self, logs):
        factors = numpy.exp(numpy.stack([logs[:OCTAVES], logs[:OCTAVES] + logs[OCTAVES]], 1))
        wanted, form, rest = (numpy.einsum("nok,ok->n", sums, factors) for sums in (self.wanted, self.form, self.rest))
        return numpy.minimum(1, numpy.sqrt(numpy.maximum(form / wanted, 0) ** 2 + numpy.exp(logs[-1]) * rest / wanted))

    def loss(self, logs):
        octaves = logs[:OCTAVES]
        return (numpy.square(self.estimate(logs) - numpy.minimum(self.true, 1)).mean()
                + NEAR * (numpy.square(octaves).mean() + 0.3 * numpy.square(numpy.diff(octaves)).mean()))


def fitted(rows):
    start = numpy.concatenate([numpy.zeros(OCTAVES + 1), [-1]])
    return minimize(Shares(rows).loss, start, method="L-BFGS-B", options={"maxiter": 500}).x


def write(path, logs, count):
    numbers = ["%.3f" % value for value in numpy.exp(logs)]
    with open(path, "w", encoding="utf-8") as file:
        file.write("/* Made by tools/train/protection_fit.py from %d results; share.h has the formula. */\n"
                   "#ifndef ENGINE_PROTECT_SHARE_FITTED_H\n#define ENGINE_PROTECT_SHARE_FITTED_H\n\n"
                   "#include \"engine/protect/share.h\"\n\n"
                   "static const double share_factors[share_octaves] = {%s};\n"
                   "static const double share_colour = %s, share_rest = %s;\n\n#endif\n"
                   % (count, ", ".join(numbers[:OCTAVES]), numbers[OCTAVES], numbers[OCTAVES + 1]))


def report(title, rows, estimates):
    true = numpy.minimum(1, numpy.array([row["true"] for row in rows]))
    wrong = 100 * (estimates - true)
    print("%s, %d results: mean error %.1f points, 90th percentile %.1f" % (
        title, len(rows), numpy.abs(wrong).mean(), numpy.percentile(numpy.abs(wrong), 90)))
    for upload in UPLOADS:
        at = [i for i, row in enumerate(rows) if row["upload"] == upload]
        if at:
            print("    %-14s true %3.0f %%, estimated %3.0f %%; mean error %.1f points" % (
                upload, 100 * true[at].mean(), 100 * estimates[at].mean(), numpy.abs(wrong[at]).mean()))


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ctl", default=os.path.join(TOP, "build", "imgwardctl"))
    parser.add_argument("--weights", default=os.path.join(TOP, "data", "protect.weights"))
    parser.add_argument("--images", required=True)
    parser.add_argument("--encoders", required=True)
    parser.add_argument("--third", required=True, help="an encoder of autoencoder.py")
    parser.add_argument("--train", type=int, default=30, metavar="PICTURES")
    parser.add_argument("--held", type=int, default=12, metavar="PICTURES")
    parser.add_argument("--out", help="the header to write")
    return parser.parse_args()


def main():
    options = options_of()
    torch.set_num_threads(1)
    network = load(options.weights)
    encoders = [load_encoder(kind, os.path.join(options.encoders, FILES[kind])) for kind in FILES]
    encoders.append(load_autoencoder(options.third))
    train, held = split_pictures(list_pictures(options.images), 20261121)
    random.Random(5).shuffle(train)
    paths = [[os.path.join(options.images, name) for name in names]
             for names in (train[:options.train], held[::max(1, len(held) // options.held)][:options.held])]
    held = rows_of(options, network, encoders, paths[1])
    if options.out:
        rows = rows_of(options, network, encoders, paths[0])
        logs = fitted(rows)
        write(options.out, logs, len(rows))
        report("training pictures", rows, Shares(rows).estimate(logs))
        report("other pictures", held, Shares(held).estimate(logs))
    report("other pictures, as imgwardctl printed", held, numpy.array([row["printed"] / 100 for row in held]))


if __name__ == "__main__":
    main()
