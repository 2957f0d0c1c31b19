#!/usr/bin/python3
"""./dev bench protect: effect and cost of the protection engine, next to the required values.

It runs imgwardctl image protect on 512-px crops of photographs. On the surrogate encoders it measures the relative
latent shift |E(y) - E(x)| / |E(x)|, directly and after the same processing of x and y. Gaussian noise of the same
PSNR is the reference. Costs are PSNR, MS-SSIM of luma and chroma, file growth and CPU time.
"""

import argparse
import io
import os
import resource
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SIDE = 512
BAR = {  # strength: PSNR, MS-SSIM luma and chroma, least shift, target, factor to noise
    "low": (40, .990, .985, {"sana": .38, "sd15": .33}, {"sana": .45, "sd15": .40}, 4),
    "standard": (37, .980, .980, {"sana": .50, "sd15": .45}, {"sana": .60, "sd15": .55}, 3.5),
    "high": (34, .965, .970, {"sana": .62, "sd15": .58}, {"sana": .75, "sd15": .75}, 3),
}
SURVIVES = {"jpeg 75": .95, "jpeg 50": .90, "webp 75": .90, "resize 0.5": .75, "blur 1": .80}
CROP3 = {"sana": .50, "sd15": .35}
ILLUSTRATIONS = ("clip_", "own-", "tenniel-")  # prefixes of file names that are not photographs


def skip(word):
    print("bench protect: skipped: %s" % word)
    sys.exit(0)


try:
    import numpy
    import torch
    import torch.nn.functional as F
    from PIL import Image, ImageFilter
except ImportError as missing:
    skip("%s is not installed (./dev deps bench)" % missing.name)

sys.path.insert(0, os.path.join(TOP, "tools"))
from encoders import FILES, latent_shift, load_encoder  # noqa: E402
from pictures import is_drawing, list_pictures, split_pictures  # noqa: E402


# ---- pictures

def crops_of(folder, names):
    """One 512-px crop from the middle of each photograph that is large enough."""
    for name in names:
        if name.startswith(ILLUSTRATIONS):
            continue
        picture = Image.open(os.path.join(folder, name)).convert("RGB")
        if min(picture.size) >= SIDE:
            left, top = (picture.width - SIDE) // 2, (picture.height - SIDE) // 2
            crop = picture.crop((left, top, left + SIDE, top + SIDE))
            if not is_drawing(numpy.asarray(crop)):
                yield name, crop


def tensor(picture):
    return torch.from_numpy(numpy.array(picture)).permute(2, 0, 1)[None].float() / 255


def encoded(picture, kind, **how):
    buffer = io.BytesIO()
    picture.save(buffer, kind, **how)
    return buffer


ATTACKS = {
    "none": lambda p: p,
    "jpeg 75": lambda p: Image.open(encoded(p, "JPEG", quality=75)).convert("RGB"),
    "jpeg 50": lambda p: Image.open(encoded(p, "JPEG", quality=50)).convert("RGB"),
    "webp 75": lambda p: Image.open(encoded(p, "WEBP", quality=75)).convert("RGB"),
    "resize 0.5": lambda p: p.resize((p.width // 2, p.height // 2), Image.LANCZOS),
    "blur 1": lambda p: p.filter(ImageFilter.GaussianBlur(1)),
    "crop 3 px": lambda p: p.crop((3, 3, p.width - 29, p.height - 29)),
    "noise 3": lambda p: noisy(p, 3),
}


def noisy(picture, sigma):
    values = numpy.asarray(picture, dtype=numpy.float32)
    noise = numpy.random.default_rng(1).normal(0, sigma, values.shape)
    return Image.fromarray((values + noise).round().clip(0, 255).astype(numpy.uint8))


def noise_at(picture, psnr):
    """The picture with Gaussian noise, such that the rounded result has this PSNR."""
    values = numpy.asarray(picture, dtype=numpy.float32)
    noise = numpy.random.default_rng(2).normal(0, 1, values.shape)
    low, high = 0.0, 64.0
    for _ in range(20):
        middle = (low + high) / 2
        moved = (values + middle * noise).round().clip(0, 255)
        if 10 * numpy.log10(255 ** 2 / max(1e-9, ((moved - values) ** 2).mean())) < psnr:
            high = middle
        else:
            low = middle
    return Image.fromarray((values + low * noise).round().clip(0, 255).astype(numpy.uint8))


# ---- quality

def planes(picture):
    ycc = numpy.asarray(picture.convert("YCbCr"), dtype=numpy.float64)
    return [torch.from_numpy(ycc[:, :, i].copy())[None, None] for i in range(3)]


def similarity(x, y):
    """Wang, Simoncelli, Bovik: Multi-scale structural similarity (2003), 5 scales, for 8-bit planes."""
    weights = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
    places = torch.arange(11, dtype=x.dtype) - 5
    window = torch.exp(-places ** 2 / (2 * 1.5 ** 2))
    window = (window / window.sum())[None, None]
    c1, c2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2

    def smooth(z):
        return F.conv2d(F.conv2d(z, window[..., None, :]), window[..., :, None])

    total = 1.0
    for scale, weight in enumerate(weights):
        mx, my = smooth(x), smooth(y)
        vx, vy, cov = smooth(x * x) - mx * mx, smooth(y * y) - my * my, smooth(x * y) - mx * my
        structure = (2 * cov + c2) / (vx + vy + c2)
        if scale == len(weights) - 1:
            structure = structure * (2 * mx * my + c1) / (mx * mx + my * my + c1)
        total = total * structure.mean().clamp_min(0) ** weight
        x, y = F.avg_pool2d(x, 2), F.avg_pool2d(y, 2)
    return total


def ms_ssim(x, y):
    return similarity(x, y).item()


def psnr_of(x, y):
    error = ((numpy.asarray(x, float) - numpy.asarray(y, float)) ** 2).mean()
    return 10 * numpy.log10(255 ** 2 / max(error, 1e-9))


# ---- the engine

def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def protect(options, source, result, strength, seed):
    command = [options.ctl, "image", "protect", "--strength", strength, "--seed", str(seed),
               "--weights", options.weights]
    before = cpu_seconds()
    said = subprocess.run(command + [source, result], check=True, stdout=subprocess.PIPE, text=True).stdout
    return cpu_seconds() - before, "hides no more" in said


def protect_crop(options, folder, picture, strength, seed):
    source, result = os.path.join(folder, "in.png"), os.path.join(folder, "out.png")
    picture.save(source)
    _, hides_no_more = protect(options, source, result, strength, seed)
    return Image.open(result).convert("RGB"), hides_no_more


# ---- tables

def verdict(value, least, aim=None):
    if value < least:
        return "below"
    return "aim" if aim is not None and value >= aim else "ok"


def shifts_of(encoders, before, after, attack):
    with torch.no_grad():
        x, y = tensor(ATTACKS[attack](before)), tensor(ATTACKS[attack](after))
        return {name: latent_shift(encoder(y), encoder(x)).item() for name, encoder in encoders.items()}


def mean_of(rows):
    return {key: sum(row[key] for row in rows) / len(rows) for key in rows[0]}


def bench_strength(options, encoders, photos, strength, folder):
    db, luma_bar, chroma_bar, least, aim, times_aim = BAR[strength]
    protected, hides_no_more = zip(*(protect_crop(options, folder, photo, strength, seed)
                                     for seed, (_, photo) in enumerate(photos, options.seed)))
    noisy_ones = [noise_at(photo, db) for _, photo in photos]
    psnrs = [psnr_of(photo, after) for (_, photo), after in zip(photos, protected)]
    less = [value for value, no_more in zip(psnrs, hides_no_more) if no_more]
    worst = max((abs(value - db) for value, no_more in zip(psnrs, hides_no_more) if not no_more), default=0)
    print("\n%s: PSNR mean %.2f dB, at most %.2f dB from %d (bar 0.3: %s)%s"
          % (strength, sum(psnrs) / len(psnrs), worst, db, "ok" if worst <= 0.3 else "missed",
             "".join("; %.2f dB of one that hides no more, as imgwardctl says" % value for value in less)))
    similar = [[ms_ssim(a, b) for a, b in zip(planes(photo), planes(after))]
               for (_, photo), after in zip(photos, protected)]
    luma = sum(row[0] for row in similar) / len(similar)
    chroma = sum((row[1] + row[2]) / 2 for row in similar) / len(similar)
    print("  MS-SSIM luma %.4f (bar %.3f: %s), chroma %.4f (bar %.3f: %s)"
          % (luma, luma_bar, verdict(luma, luma_bar), chroma, chroma_bar, verdict(chroma, chroma_bar)))
    plain = mean_of([shifts_of(encoders, photo, after, "none") for (_, photo), after in zip(photos, protected)])
    noise = mean_of([shifts_of(encoders, photo, after, "none") for (_, photo), after in zip(photos, noisy_ones)])
    for name in encoders:
        print("  %-5s shift %.3f (at least %.2f, aim %.2f: %s); noise %.3f, so %.2f times noise (aim %.1f)"
              % (name, plain[name], least[name], aim[name], verdict(plain[name], least[name], aim[name]),
                 noise[name], plain[name] / noise[name], times_aim))
    return protected, plain


def bench_attacks(encoders, photos, protected, plain):
    print("\nafter processing, at standard: shift, share of the plain shift")
    for attack in ATTACKS:
        if attack == "none":
            continue
        rows = mean_of([shifts_of(encoders, photo, after, attack) for (_, photo), after in zip(photos, protected)])
        cells = []
        for name in encoders:
            share = rows[name] / plain[name]
            if attack in SURVIVES:
                word = verdict(share, SURVIVES[attack])
            else:
                word = verdict(rows[name], CROP3[name]) if attack.startswith("crop") else "no bar"
            cells.append("%s %.3f %3.0f %% (%s)" % (name, rows[name], 100 * share, word))
        print("  %-10s  %s" % (attack, "   ".join(cells)))


def bench_growth(photos, protected):
    def size(picture):
        return len(encoded(picture, "JPEG", quality=85).getvalue())

    growth = sum(size(after) for after in protected) / sum(size(photo) for _, photo in photos) - 1
    print("\nfile growth at standard, JPEG 85: %.1f %% (bar 10: %s)" % (100 * growth, "ok" if growth <= .1 else "missed"))


def bench_cost(options, folder):
    """CPU time of the command for 4 megapixels, minus that for a picture of 64 x 64."""
    rng = numpy.random.default_rng(3)
    big, small = os.path.join(folder, "big.png"), os.path.join(folder, "small.png")
    base = Image.fromarray(rng.integers(0, 255, (64, 64, 3), dtype=numpy.uint8))
    base.resize((2000, 2000), Image.BICUBIC).save(big)
    base.resize((64, 64)).save(small)
    seconds, start = (min(protect(options, picture, os.path.join(folder, "o.png"), "standard", 1)[0] for _ in range(3))
                      for picture in (big, small))
    print("CPU of imgwardctl, PNG in and out, 4 MP: %.0f ms a megapixel; of it start %.0f ms in all"
          % (1000 * (seconds - start) / 4, 1000 * start))


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ctl", default=os.path.join(os.environ.get("IMGWARD_BUILD", os.path.join(TOP, "build")), "imgwardctl"),
                        help="imgwardctl to judge")
    parser.add_argument("--weights", default=os.path.join(TOP, "data", "protect.weights"))
    parser.add_argument("--images", default=os.path.join(TOP, "..", "shared", "images"))
    parser.add_argument("--held", default=os.path.join(TOP, "..", "shared", "training-images"),
                        help="training pictures, of which those kept from training are judged too")
    parser.add_argument("--encoders", default=os.path.join(TOP, "..", "shared", "models"))
    parser.add_argument("--photos", type=int, default=12)
    parser.add_argument("--seed", type=int, default=0, help="of the first photograph; the next one has the next")
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def photos_of(options):
    photos = list(crops_of(options.images, list_pictures(options.images)))
    if os.path.isdir(options.held):
        _, held = split_pictures(list_pictures(options.held), 20261121)
        photos += list(crops_of(options.held, held))
    return photos[:options.photos]


def main():
    options = options_of()
    if not os.path.exists(options.ctl):
        skip("there is no %s (./dev build, or --ctl)" % options.ctl)
    if not all(os.path.exists(os.path.join(options.encoders, name)) for name in FILES.values()):
        skip("the surrogate encoders are not in %s" % options.encoders)
    if not os.path.isdir(options.images):
        skip("there are no pictures in %s" % options.images)
    torch.set_num_threads(options.threads)
    encoders = {name: load_encoder(name, os.path.join(options.encoders, FILES[name])) for name in FILES}
    photos = photos_of(options)
    print("%d photographs of %d px: %s" % (len(photos), SIDE, " ".join(name for name, _ in photos)))
    with tempfile.TemporaryDirectory() as folder:
        for strength in BAR:
            protected, plain = bench_strength(options, encoders, photos, strength, folder)
            if strength == "standard":
                standard = protected, plain
        bench_attacks(encoders, photos, *standard)
        bench_growth(photos, standard[0])
        bench_cost(options, folder)


if __name__ == "__main__":
    main()
