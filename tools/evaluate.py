#!/usr/bin/python3
"""Measures the network of perceptual.py on held-out pictures beside the present engine, which is scaled to the same butteraugli.

    evaluate.py --images PICTURES --encoders ENCODERS --network network.pt --budgets .6 .9 1.3 [--ctl IMGWARDCTL --weights FILE]

It measures held-out photographs and drawings: butteraugli (3-norm and peak), S-CIELAB (mean, 99th percentile), the
strongest line of the spectrum, tint and PSNR.  It adds each encoder's relative latent shift, plain and after processing,
and the growth of a JPEG 85.  Both encoders were trained against.
"""

import argparse
import io
import os
import subprocess
import tempfile

import numpy
import torch
from PIL import Image, ImageFilter

from encoders import FILES, latent_shift, load_encoder
from perceptual import Perturber, protected
from pictures import list_pictures, load_picture, split_pictures
from visibility import Visibility, butteraugli, line_share, picture_of, scielab, tensor_of, tint

DRAWINGS = ("own-", "tenniel-", "squeeze-wcdogg-004", "dracula")


def coded(picture, kind, quality):
    file = io.BytesIO()
    Image.fromarray(picture).save(file, kind, quality=quality)
    return file


def recoded(picture, kind, quality):
    return numpy.array(Image.open(coded(picture, kind, quality)).convert("RGB"))


def halved(picture):
    image = Image.fromarray(picture)
    return numpy.array(image.resize((image.width // 64 * 32, image.height // 64 * 32), Image.LANCZOS))


PROCESSING = {
    "plain": lambda p: p,
    "JPEG 75": lambda p: recoded(p, "JPEG", 75),
    "WebP 75": lambda p: recoded(p, "WEBP", 75),
    "half": halved,
    "blur 1": lambda p: numpy.array(Image.fromarray(p).filter(ImageFilter.GaussianBlur(1))),
    "crop 3": lambda p: p[3:p.shape[0] - 29, 3:p.shape[1] - 29],
}


def figures_of(picture, result, encoders, folder, processing):
    x, d = tensor_of(picture), tensor_of(result) - tensor_of(picture)
    norm, peak = butteraugli(picture, result, folder)
    mean, p99 = scielab(picture, result)
    row = {"b": norm, "b. peak": peak, "S mean": mean, "S p99": p99, "line %": 100 * line_share(d).item(),
           "tint": tint(d).item(), "PSNR": -10 * numpy.log10(max(1e-9, d.square().mean().item())),
           "model": Visibility(x).total(d).item(),
           "growth %": 100 * (len(coded(result, "JPEG", 85).getvalue()) / len(coded(picture, "JPEG", 85).getvalue()) - 1)}
    with torch.no_grad():
        for name in processing:
            a, b = (tensor_of(PROCESSING[name](p)) for p in (picture, result))
            for kind, encoder in encoders.items():
                row["%s %s" % (kind, name)] = latent_shift(encoder(b), encoder(a)).item()
    return row


def engine_result(options, picture, strength, seed, folder):
    source, result = os.path.join(folder, "in.png"), os.path.join(folder, "out.png")
    Image.fromarray(picture).save(source, compress_level=1)
    subprocess.run([options.ctl, "image", "protect", "--strength", strength, "--seed", str(seed), "--weights", options.weights,
                    source, result], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return numpy.array(Image.open(result).convert("RGB"))


def engine_scaled(options, picture, seed, wanted, folder):
    """The present engine's perturbation (low) scaled so that the result has the butteraugli wanted."""
    strong = engine_result(options, picture, "low", seed, folder).astype(float) - picture
    scale = 1.0
    for _ in range(3):
        result = (picture + scale * strong).round().clip(0, 255).astype(numpy.uint8)
        scale *= wanted / max(0.05, butteraugli(picture, result, folder)[0])
    return (picture + scale * strong).round().clip(0, 255).astype(numpy.uint8)


def table(title, rows):
    """rows: figures of each picture."""
    mean = {key: numpy.mean([row[key] for row in rows]) for key in rows[0]}
    print("%-26s b %.2f worst %.2f peak %.2f worst %.2f | S %.2f p99 %.2f | line %.2f %% tint %.2f PSNR %.1f growth %.1f %%" % (
        title, mean["b"], max(r["b"] for r in rows), mean["b. peak"], max(r["b. peak"] for r in rows), mean["S mean"],
        mean["S p99"], max(r["line %"] for r in rows), max(r["tint"] for r in rows), mean["PSNR"], mean["growth %"]))
    for kind in FILES:
        plain = mean["%s plain" % kind]
        print("%-26s %-4s %.3f  %s" % ("", kind, plain, "  ".join("%s %.0f %%" % (name, 100 * mean["%s %s" % (kind, name)] / plain)
              for name in PROCESSING if name != "plain" and "%s %s" % (kind, name) in mean)), flush=True)


def crops(options, names):
    for name in names:
        picture = load_picture(os.path.join(options.images, name))
        height, width = (min(options.side, side // 64 * 64) for side in picture.shape[:2])
        top, left = (picture.shape[0] - height) // 2, (picture.shape[1] - width) // 2
        yield name, numpy.ascontiguousarray(picture[top:top + height, left:left + width])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", required=True)
    parser.add_argument("--encoders", required=True)
    parser.add_argument("--network", required=True)
    parser.add_argument("--budgets", type=float, nargs="+", required=True, help="of the model, a strength each")
    parser.add_argument("--ctl", help="imgwardctl of the engine to compare with")
    parser.add_argument("--weights")
    parser.add_argument("--count", type=int, default=30, help="photographs")
    parser.add_argument("--drawings", type=int, default=12)
    parser.add_argument("--side", type=int, default=512)
    parser.add_argument("--quick", action="store_true", help="shifts without processing, but JPEG 75")
    parser.add_argument("--sheets", help="a folder for the pictures: original, then each budget")
    options = parser.parse_args()
    torch.set_num_threads(1)
    encoders = {name: load_encoder(name, os.path.join(options.encoders, FILES[name])) for name in FILES}
    network = Perturber()
    network.load_state_dict({k: v.float() for k, v in torch.load(options.network).items()})
    _, held = split_pictures(list_pictures(options.images), 20261121)
    groups = {"photographs": [n for n in held if not n.startswith(DRAWINGS)][:options.count],
              "drawings": [n for n in held if n.startswith(DRAWINGS)][:options.drawings]}
    processing = ("plain", "JPEG 75") if options.quick else PROCESSING
    with tempfile.TemporaryDirectory() as folder:
        for group, names in groups.items():
            if not names:
                continue
            pictures = list(crops(options, names))
            print("%d %s: %s" % (len(names), group, " ".join(names)))
            for budget in options.budgets:
                rows, beside = [], []
                for seed, (name, picture) in enumerate(pictures):
                    result = picture_of(protected(network, tensor_of(picture), budget, seed))
                    rows.append(figures_of(picture, result, encoders, folder, processing))
                    if options.sheets:
                        os.makedirs(options.sheets, exist_ok=True)
                        Image.fromarray(picture).save(os.path.join(options.sheets, name[:-4] + ".png"))
                        Image.fromarray(result).save(os.path.join(options.sheets, "%s-%.2f.png" % (name[:-4], budget)))
                    if options.ctl:
                        other = engine_scaled(options, picture, seed, rows[-1]["b"], folder)
                        beside.append(figures_of(picture, other, encoders, folder, processing))
                table("network, budget %.2f" % budget, rows)
                if beside:
                    table("engine, same butteraugli", beside)


if __name__ == "__main__":
    main()
