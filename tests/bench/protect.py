#!/usr/bin/python3
"""./dev bench protect: visibility, effect and cost of the protection engine, next to the required values.

It runs imgwardctl image protect on crops of photographs and drawings.
- Visibility: butteraugli (3-norm and peak), S-CIELAB (mean and 99th percentile), the strongest line of the spectrum, tint.
- Effect: the relative latent shift |E(y) - E(x)| / |E(x)| of the surrogate encoders.  It is measured plain and after the same
  processing of x and y.

--third is an encoder of tools/train/autoencoder.py, which the engine's training does not use.

--other CTL WEIGHTS also measures another engine: its strength low, scaled to the same butteraugli for each picture.
"""

import argparse
import io
import os
import resource
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STRENGTHS = ("low", "standard", "high")
BAR = {  # upper limits: butteraugli mean, worst, peak; S-CIELAB mean, p99.
    "low": (0.8, 1.0, 2.5, 0.6, 1.5),
    "standard": (1.2, 1.5, 4.0, 0.9, 2.2),
    "high": (1.7, 2.1, 5.5, 1.2, 3.0),
}
KINDS = ("sana", "sd15", "third")
SHIFT_BAR = {"low": (0.30, 0.22, 0.38), "standard": (0.42, 0.34, 0.50), "high": (0.55, 0.46, 0.60)}
DRAWINGS_BAR = {"low": (0, 0, 0), "standard": (0.25, 0.20, 0.40), "high": (0, 0, 0)}
SURVIVES = {"JPEG 75": 85, "WebP 75": 80, "half": 75, "blur 1": 75, "crop 3": 85}  # per cent
LINE_MOST, TINT_MOST, GROWTH_MOST = 1, 0.5, 8  # per cent, levels, per cent
DRAWINGS = ("clip_", "own-", "tenniel-", "squeeze-wcdogg-004", "dracula")  # beginnings of file names


def skip(word):
    print("bench protect: skipped: %s" % word)
    sys.exit(0)


try:
    import numpy
    import skimage  # noqa: F401
    import torch
    from PIL import Image, ImageFilter
except ImportError as missing:
    skip("%s is not installed (./dev deps bench)" % missing.name)

sys.path.insert(0, os.path.join(TOP, "tools", "train"))
from autoencoder import load_autoencoder  # noqa: E402
from encoders import FILES, latent_shift, load_encoder  # noqa: E402
from pictures import list_pictures, load_picture, split_pictures  # noqa: E402
from visibility import butteraugli, line_share, scielab, tensor_of, tint  # noqa: E402


# ---- pictures

def crops(folder, names, side):
    """Returns the middle of each picture, in multiples of 64 px."""
    for name in names:
        picture = load_picture(os.path.join(folder, name))
        height, width = (min(side, edge // 64 * 64) for edge in picture.shape[:2])
        top, left = (picture.shape[0] - height) // 2, (picture.shape[1] - width) // 2
        yield name, numpy.ascontiguousarray(picture[top:top + height, left:left + width])


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


# ---- figures

def figures_of(picture, result, encoders, folder):
    x, d = tensor_of(picture), tensor_of(result) - tensor_of(picture)
    norm, peak = butteraugli(picture, result, folder)
    mean, p99 = scielab(picture, result)
    row = {"b": norm, "peak": peak, "S mean": mean, "S p99": p99, "line": 100 * line_share(d).item(), "tint": tint(d).item(),
           "PSNR": -10 * numpy.log10(max(1e-9, d.square().mean().item())),
           "growth": 100 * (len(coded(result, "JPEG", 85).getvalue()) / len(coded(picture, "JPEG", 85).getvalue()) - 1)}
    with torch.no_grad():
        for name, process in PROCESSING.items():
            a, b = tensor_of(process(picture)), tensor_of(process(result))
            for kind, encoder in encoders.items():
                row["%s %s" % (kind, name)] = latent_shift(encoder(b), encoder(a)).item()
    return row


def verdict(value, bar, is_most=True):
    return "%.2f" % value if (value <= bar if is_most else value >= bar) else "%.2f (bar %.2f)" % (value, bar)


def report(title, rows, strength, is_drawing):
    mean = {key: numpy.mean([row[key] for row in rows]) for key in rows[0]}
    worst = {key: max(row[key] for row in rows) for key in rows[0]}
    b, b_worst, peak, s, s99 = BAR[strength]
    least = dict(zip(KINDS, (DRAWINGS_BAR if is_drawing else SHIFT_BAR)[strength]))
    print("%-20s butteraugli %s, worst %s; peak %.2f, worst %s; S-CIELAB %s, p99 %s" % (
        title, verdict(mean["b"], b), verdict(worst["b"], b_worst), mean["peak"], verdict(worst["peak"], peak),
        verdict(mean["S mean"], s), verdict(mean["S p99"], s99)))
    print("%-20s line at most %s %%, tint at most %s levels, PSNR %.1f dB, JPEG 85 grows by %s %%" % (
        "", verdict(worst["line"], LINE_MOST), verdict(worst["tint"], TINT_MOST), mean["PSNR"],
        verdict(mean["growth"], GROWTH_MOST)))
    for kind in (kind for kind in KINDS if kind + " plain" in mean):
        plain = mean["%s plain" % kind]
        shares = [(name, 100 * mean["%s %s" % (kind, name)] / plain) for name in SURVIVES]
        print("%-20s %-5s shift %s; left by %s" % ("", kind, verdict(plain, least[kind], False), ", ".join(
            "%s %.0f %%%s" % (name, share, "" if share >= SURVIVES[name] else " (bar %d)" % SURVIVES[name]) for name, share in shares)))
    sys.stdout.flush()


# ---- the engines

def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def protect(ctl, weights, source, result, strength, seed, more=()):
    before = cpu_seconds()
    subprocess.run([ctl, "image", "protect", "--strength", strength, "--seed", str(seed), "--weights", weights, *more, source, result],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return cpu_seconds() - before


def protected(ctl, weights, picture, strength, seed, folder, upload=("png", {"compress_level": 1}), more=()):
    """Protects a picture in a format; returns (source, result, bytes of the result relative to the source)."""
    kind, options = upload
    source, result = (os.path.join(folder, "%s.%s" % (name, kind)) for name in ("in", "out"))
    Image.fromarray(picture).save(source, **options)
    protect(ctl, weights, source, result, strength, seed, more)
    return [numpy.array(Image.open(path).convert("RGB")) for path in (source, result)] + [
        os.path.getsize(result) / os.path.getsize(source)]


def shifts_of(picture, result, encoders):
    with torch.no_grad():
        return {kind: latent_shift(encoder(tensor_of(result)), encoder(tensor_of(picture))).item() for kind, encoder in encoders.items()}


def upload_of(options):
    """Returns the format and how a picture is saved in it; None for PNG."""
    return (("jpg", {"quality": options.jpeg, "subsampling": options.sampling}) if options.jpeg
            else ("webp", {"quality": options.webp}) if options.webp else None)


def report_upload(rows, of_png):
    """Prints the bytes of lossy results, and their shift relative to PNG files of the same pixels."""
    shares = ["%s %.0f %%" % (kind, 100 * sum(row[kind + " plain"] for row in rows) / sum(png[kind] for png in of_png))
              for kind in of_png[0]]
    times = [row["times"] for row in rows]
    print("%-20s shift of the PNG's: %s; bytes %.2f times the upload's, at most %.2f" % (
        "", ", ".join(shares), numpy.mean(times), max(times)))


def scaled_to(wanted, picture, strong, folder):
    """Returns a perturbation scaled so that the result has the wanted butteraugli."""
    scale = 1.0
    for _ in range(3):
        result = (picture + scale * strong).round().clip(0, 255).astype(numpy.uint8)
        scale *= wanted / max(0.05, butteraugli(picture, result, folder)[0])
    return (picture + scale * strong).round().clip(0, 255).astype(numpy.uint8)


def bench_group(options, encoders, title, pictures, folder):
    print("\n%d %s: %s" % (len(pictures), title, " ".join(name for name, _ in pictures)))
    shifts = []
    for strength in options.strengths:
        rows, other, of_png, upload = [], [], [], upload_of(options)
        for seed, (name, picture) in enumerate(pictures, options.seed):
            if upload:
                more = ["--growth", str(options.growth)] if options.growth else []
                picture, result, times = protected(options.ctl, options.weights, picture, strength, seed, folder, upload, more)
                png = protected(options.ctl, options.weights, picture, strength, seed, folder)
                of_png.append(shifts_of(png[0], png[1], encoders))
            else:
                picture, result, times = protected(options.ctl, options.weights, picture, strength, seed, folder)
            rows.append({"times": times, **figures_of(picture, result, encoders, folder)})
            if options.sheets:
                os.makedirs(options.sheets, exist_ok=True)
                Image.fromarray(picture).save(os.path.join(options.sheets, name[:-4] + ".png"))
                Image.fromarray(result).save(os.path.join(options.sheets, "%s-%s.png" % (name[:-4], strength)))
            if options.other:
                strong = protected(*options.other, picture, "low", seed, folder)[1].astype(float) - picture
                other.append(figures_of(picture, scaled_to(rows[-1]["b"], picture, strong, folder), encoders, folder))
        shifts.append([row["sana plain"] for row in rows])
        report(strength, rows, strength, title == "drawings")
        if upload:
            report_upload(rows, of_png)
        if other:
            report("  other engine", other, strength, title == "drawings")
    print("pictures that a higher strength moves less than a lower one: %d" % sum(
        1 for one in zip(*shifts) if list(one) != sorted(one)))


def bench_cost(options, folder):
    """Prints the CPU time of the command for 4 megapixels, minus the time for a picture of 64 x 64."""
    rng = numpy.random.default_rng(3)
    big, small = os.path.join(folder, "big.png"), os.path.join(folder, "small.png")
    base = Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=numpy.uint8))
    base.resize((2000, 2000), Image.BICUBIC).save(big)
    base.resize((64, 64)).save(small)
    seconds, start = (min(protect(options.ctl, options.weights, picture, os.path.join(folder, "o.png"), "standard", 1)
                          for _ in range(3)) for picture in (big, small))
    print("\nCPU of imgwardctl, PNG in and out, 4 MP: %.0f ms a megapixel; of it start %.0f ms in all"
          % (1000 * (seconds - start) / 4, 1000 * start))


def bench_growth(options, encoders, folder):
    """Prints by how many times whole drawings grow, and their shift. Development uses seeds below 1000."""
    from watermark_drawings import drawing
    for kind, how in (("png", {"optimize": True}), ("webp", {"lossless": True, "quality": 75})):
        times, shifts = [], {"plain": [], "JPEG 75": []}
        for seed in range(options.drawing_seed, options.drawing_seed + 16):
            name, picture = drawing(seed)
            height, width = (edge // 64 * 64 for edge in picture.shape[:2])
            picture, result, grown = protected(options.ctl, options.weights, picture[:height, :width], "standard", seed, folder, (kind, how))
            times.append((grown, name))
            for after, rows in shifts.items():
                rows.append(list(shifts_of(PROCESSING[after](picture), PROCESSING[after](result), encoders).values()))
        print("%s drawings grow %.2f times, at most: %s" % (kind, numpy.mean([one for one, _ in times]), ", ".join(
            "%.1f (%s)" % one for one in sorted(times, reverse=True)[:3])))
        print("%s drawings, shift of %s: %s" % (kind, ", ".join(encoders), "; ".join(
            "%s %s" % (after, " ".join("%.3f" % one for one in numpy.mean(rows, 0))) for after, rows in shifts.items())))


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ctl", default=os.path.join(os.environ.get("IMGWARD_BUILD", os.path.join(TOP, "build")), "imgwardctl"),
                        help="imgwardctl to judge")
    parser.add_argument("--weights", default=os.path.join(TOP, "data", "protect.weights"))
    parser.add_argument("--other", nargs=2, metavar=("CTL", "WEIGHTS"), help="another engine to compare with")
    parser.add_argument("--images", default=os.path.join(TOP, "tests", "bench", "pictures"))
    parser.add_argument("--held", default=os.path.join(TOP, "..", "shared", "training-images"),
                        help="training pictures, of which those kept from training are judged")
    parser.add_argument("--encoders", default=os.path.join(TOP, "..", "shared", "models"))
    parser.add_argument("--third", help="an encoder of tools/train/autoencoder.py")
    parser.add_argument("--jpeg", type=int, default=0, metavar="QUALITY", help="protect JPEG files of a quality instead of PNG")
    parser.add_argument("--sampling", default="4:2:0", help="of these JPEG files")
    parser.add_argument("--webp", type=int, default=0, metavar="QUALITY", help="protect lossy WebP files of a quality")
    parser.add_argument("--growth", type=int, metavar="PERCENT", help="of imgwardctl image protect")
    parser.add_argument("--photos", type=int, default=30, help="held-out photographs and paintings")
    parser.add_argument("--drawings", type=int, default=14)
    parser.add_argument("--drawing-seed", type=int, default=1000, help="of the first of 16 whole drawings")
    parser.add_argument("--side", type=int, default=384, help="px of the crops")
    parser.add_argument("--strengths", nargs="+", choices=STRENGTHS, default=STRENGTHS)
    parser.add_argument("--seed", type=int, default=0, help="of the first picture; the next one has the next")
    parser.add_argument("--sheets", help="a folder for the pictures: original, then each strength")
    return parser.parse_args()


def groups_of(options):
    own, (_, held) = list_pictures(options.images), split_pictures(list_pictures(options.held), 20261121)
    parts = [(options.images, own), (options.held, held)]
    photos = [list(crops(folder, [n for n in names if not n.startswith(DRAWINGS)], options.side)) for folder, names in parts]
    drawings = [one for folder, names in parts for one in crops(folder, [n for n in names if n.startswith(DRAWINGS)], options.side)]
    return {"photographs of the bench": photos[0], "other photographs": photos[1][:options.photos],
            "drawings": drawings[:options.drawings]}


def main():
    options = options_of()
    if not os.path.exists(options.ctl):
        skip("there is no %s (./dev build, or --ctl)" % options.ctl)
    if not all(os.path.exists(os.path.join(options.encoders, name)) for name in FILES.values()):
        skip("the surrogate encoders are not in %s" % options.encoders)
    if not os.path.isdir(options.images) or not os.path.isdir(options.held):
        skip("there are no pictures in %s or %s" % (options.images, options.held))
    torch.set_num_threads(1)
    encoders = {name: load_encoder(name, os.path.join(options.encoders, FILES[name])) for name in FILES}
    if options.third:
        encoders["third"] = load_autoencoder(options.third)
    with tempfile.TemporaryDirectory() as folder:
        for title, pictures in groups_of(options).items():
            if pictures:
                bench_group(options, encoders, title, pictures, folder)
        bench_growth(options, encoders, folder)
        bench_cost(options, folder)


if __name__ == "__main__":
    main()
