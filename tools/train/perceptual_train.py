#!/usr/bin/python3
"""Trains the network of perceptual.py: the largest shift of the surrogates' latents at a budget of visibility.

    perceptual_train.py --images PICTURES --encoders ENCODERS --out network.pt --minutes 20
"""

import argparse
import math
import os
import random
import time

import numpy
import torch
import torch.nn.functional as F
from PIL import Image, ImageDraw, ImageFont

import export_weights
from coding import change_kept, coded, coded_through, file_size, planes_of
from encoders import FILES, latent_shift, load_encoder
from perceptual import Perturber, scaled
from pictures import blur, list_pictures, load_picture, random_crop, split_pictures
from visibility import Visibility, tint

SIDE, SHIFTED = 160, 32   # px of a crop; the encoders see a part of it, so many px smaller, at a random place
LINES_MOST = 0.003        # share of energy in one line of a crop's spectrum
AXIS_MOST = 0.05          # share of energy in waves along one axis, within a bin
GROWTH_MOST = 0.08        # of a JPEG 85
GRID_PERIOD, MESH_MOST = 16, 0.02  # px: of the noise; share of energy that repeats with it (noise has .01)
DIRECTIONS, DIRECTION_MOST = 8, 0.18  # and of waves along one of so many directions; alike in all it is an eighth
PEAK_MOST, PEAK_SHARE = 1.6, 0.02  # budgets that the most visible cells may have in the mean, and their share
OCTAVES = 3              # the finest, whose luma must have no direction
COHERENT, COHERENT_MOST = 3.0, 0.17  # sigma of the window of a local orientation, samples; its strength (noise has .14)
WEIGHTS = {"sana": 1, "sd15": 1.5}  # of the logarithms of the shifts
CODED_WEIGHTS = {"sana": 1, "sd15": 2.5}  # and after a codec, which takes more of sd15's
CODECS = ("jpeg", "webp", "upload")
UPLOADS, FINER, LEAST = 0.3, 0.6, 0.3  # share of steps with a JPEG upload; of these with finer tables; a step's share that moves
AFTER = {"none": 4, "jpeg": 20, "webp": 12, "half": 56, "blur": 8}  # per cent of the processing of a PNG
AFTER_UPLOAD = {"none": 40, "jpeg": 15, "webp": 5, "half": 35, "blur": 5}
HALVES = 0.9             # of the smaller sizes: a half; else smaller and back
MEAN_STEP = 0.01         # of the running mean of the weights, which is saved
PENALTY = {"peak": 1, "mesh": 20, "line": 20, "axis": 10, "direction": 20, "coherent": 6, "tint": 0.5, "growth": 4}
FONTS = "/usr/share/fonts/truetype/dejavu"


# ---- drawings

def random_color(rng):
    return tuple(rng.randrange(256) for _ in range(3))


def drawn_page(rng, side):
    """Draws lines of words in one font on paper."""
    paper, ink = ((255, 255, 255), (0, 0, 0)) if rng.random() < 0.6 else (random_color(rng), random_color(rng))
    page = Image.new("RGB", (side, side), paper)
    pen, size = ImageDraw.Draw(page), rng.randint(9, 28)
    names = [name for name in os.listdir(FONTS)] if os.path.isdir(FONTS) else []
    font = ImageFont.truetype(os.path.join(FONTS, rng.choice(names)), size) if names else ImageFont.load_default()
    for top in range(rng.randint(2, 20), side, int(size * rng.uniform(1.1, 1.8))):
        words = " ".join("".join(rng.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(rng.randint(1, 10))) for _ in range(12))
        pen.text((rng.randint(2, 12), top), words.capitalize(), ink, font)
    return page


def drawn_shapes(rng, side):
    """Draws flat or shaded shapes with or without outlines, twice as large and then reduced, so that edges are smooth."""
    large = side * 2
    page = Image.new("RGB", (large, large), random_color(rng))
    if rng.random() < 0.4:
        corner = Image.new("RGB", (2, 2))
        corner.putdata([random_color(rng) for _ in range(4)])
        page = corner.resize((large, large), Image.BICUBIC)
    pen, outline = ImageDraw.Draw(page), rng.choice((None, (0, 0, 0), (30, 20, 40)))
    for _ in range(rng.randint(3, 25)):
        middle, reach = [rng.uniform(0, large) for _ in range(2)], rng.uniform(0.03, 0.4) * large
        points = [(middle[0] + reach * rng.uniform(.4, 1) * math.cos(a), middle[1] + reach * rng.uniform(.4, 1) * math.sin(a))
                  for a in sorted(rng.uniform(0, 2 * math.pi) for _ in range(rng.randint(3, 9)))]
        if rng.random() < 0.5:
            pen.polygon(points, random_color(rng))
            if outline:
                pen.line(points + points[:1], outline, rng.randint(2, 8))
        elif rng.random() < 0.5:
            box = [middle[0] - reach, middle[1] - reach * .7, middle[0] + reach, middle[1] + reach * .7]
            pen.ellipse(box, random_color(rng), outline, rng.randint(2, 8))
        else:
            pen.line(points, random_color(rng), rng.randint(1, 8))
    return page.resize((side, side), Image.BOX)


def batch_of(pictures, count, rng):
    crops = []
    for i in range(count):
        if rng.random() < 0.25:
            crops.append(numpy.array(rng.choice((drawn_page, drawn_shapes))(rng, SIDE)))
        else:
            crops.append(random_crop(load_picture(rng.choice(pictures)), SIDE, rng))
    crops = numpy.ascontiguousarray(numpy.stack(crops))
    return torch.from_numpy(crops).permute(0, 3, 1, 2).float() / 255


# ---- processing between the perturbation and the encoders

def resized(x, side, rng):
    return F.interpolate(x, size=(side, side), mode=rng.choice(("bilinear", "bicubic")), align_corners=False, antialias=True)


def half_or_back(both, rng):
    side = both.shape[2]
    if rng.random() < HALVES:
        return resized(both, side // 64 * 32, rng)
    return resized(resized(both, int(side * rng.uniform(0.5, 0.9)), rng), side, rng)


PROCESSES = {
    "none": lambda both, rng: both,
    "jpeg": lambda both, rng: coded_through(both, "JPEG", rng.randint(65, 88))(),
    "webp": lambda both, rng: coded_through(both, "WEBP", rng.randint(60, 88))(),
    "half": half_or_back,
    "blur": lambda both, rng: blur(both, rng.uniform(0.5, 1.2)),
}


class Upload:
    """A JPEG that a client uploads, and the coding of its result: with the same tables, where a change of LEAST of a step moves a
    coefficient, or with finer tables."""

    def __init__(self, rng):
        self.quality, self.is_small = rng.randint(75, 95), rng.random() < 0.7
        self.is_finer = rng.random() < FINER
        self.finer = (max(self.quality, rng.randint(88, 95)), rng.random() < 0.4)

    def opened(self, x):
        return coded(x, "JPEG", self.quality, subsampling=2 if self.is_small else 0)()

    def kept(self, x, d):
        if self.is_finer:
            return change_kept(x, d, *self.finer, 0.5)
        return change_kept(x, d, self.quality, self.is_small, LEAST)


def processed(both, rng, is_upload):
    """Processes originals and results alike."""
    kinds, shares = zip(*(AFTER_UPLOAD if is_upload else AFTER).items())
    kind = rng.choices(kinds, shares)[0]
    return kind, PROCESSES[kind](both, rng)


# ---- penalties

def spectrum_limits(d):
    """Returns shares of each picture's energy: (strongest line, waves along the stronger axis, waves along the strongest direction)."""
    power = torch.fft.fft2(d - d.mean((2, 3), keepdim=True)).abs().square().sum(1)
    total = power.sum((1, 2)).clamp_min(1e-20)
    line = 2 * power.flatten(1).max(1)[0] / total
    axes = torch.stack([power[:, :, (0, 1, -1)].sum((1, 2)), power[:, (0, 1, -1)].sum((1, 2))]) / total
    height, width = d.shape[2:]
    angle = torch.atan2(torch.fft.fftfreq(height)[:, None], torch.fft.fftfreq(width)[None]) % math.pi
    sectors = ((angle * DIRECTIONS / math.pi + 0.5).long() % DIRECTIONS).flatten()
    directions = torch.zeros(len(d), DIRECTIONS).index_add(1, sectors, power.flatten(1)) / total[:, None]
    return line, axes.max(0)[0], directions.max(1)[0]


def mesh(response, period):
    """Returns the share of a band's energy that repeats with a period, samples, in both directions; for noise 1 / the periods in it."""
    count, planes, height, width = response.shape
    rows, columns = height // period, width // period
    cells = response[:, :, :rows * period, :columns * period].view(count, planes, rows, period, columns, period)
    return cells.mean((2, 4)).square().mean((1, 2, 3)) / cells.square().mean((1, 2, 3, 4, 5)).clamp_min(1e-9)


def coherence(response):
    """Returns the strength of the local orientation, 0..1, in the mean of the energy. Bigun, Granlund: Optimal orientation
    detection of linear symmetry, ICCV 1987. The gradient is that of Roberts: its two differences share no sample, so that noise
    has no orientation."""
    one, two = response[:, :, 1:, 1:] - response[:, :, :-1, :-1], response[:, :, 1:, :-1] - response[:, :, :-1, 1:]
    tensor = [blur(product, COHERENT) for product in (one.square(), two.square(), one * two)]
    size = tensor[0] + tensor[1] + 1e-9
    strength = ((tensor[0] - tensor[1]).square() + 4 * tensor[2].square() + 1e-12).sqrt() / size
    weight = size.sqrt()
    return (strength * weight).mean((2, 3)) / weight.mean((2, 3))


def penalties(x, d, kept, seen, budget):
    responses = seen.responses(d)
    line, axis, _ = spectrum_limits(kept)
    direction = torch.stack([spectrum_limits(response[:, :1])[2] for response in responses[:OCTAVES]])
    growth = file_size(planes_of(x + d)) / file_size(planes_of(x)).clamp_min(1) - 1
    local = seen.local(d).flatten(1) / budget[:, None]
    peaks = local.topk(max(1, int(PEAK_SHARE * local.shape[1])), 1)[0].mean(1)
    coherent = torch.stack([coherence(response[:, :3]) for response in responses[:OCTAVES]])
    meshes = torch.stack([mesh(response[:, :3], GRID_PERIOD >> level) for level, response in enumerate(responses[:OCTAVES])])
    return {"mesh": F.relu(meshes - MESH_MOST).mean(), "line": F.relu(line - LINES_MOST).mean() / LINES_MOST / 10, "axis": F.relu(axis - AXIS_MOST).mean(),
            "peak": F.relu(peaks - PEAK_MOST).mean(), "coherent": F.relu(coherent - COHERENT_MOST).mean(),
            "direction": F.relu(direction - DIRECTION_MOST).mean(), "tint": F.relu(tint(kept) - 0.3).mean(),
            "growth": F.relu(growth.clamp_max(1) - GROWTH_MOST).mean()}


# ---- training

def shifts(encoders, x, y, rng, is_upload):
    """Returns the kind of one processing, and each encoder's shift after it."""
    side = SIDE - SHIFTED
    top, left = rng.randint(0, SHIFTED), rng.randint(0, SHIFTED)
    kind, both = processed(torch.cat([x, y])[:, :, top:top + side, left:left + side], rng, is_upload)
    before, after = both[:len(x)].detach(), both[len(x):]
    result = {}
    for name, encoder in encoders.items():
        with torch.no_grad():
            then = encoder(before)
        result[name] = latent_shift(encoder(after), then)
    return "upload" if is_upload and kind == "none" else kind, result


def state_of(path):
    with open(path, "rb") as file:
        is_exported = file.read(8) == export_weights.MAGIC
    return export_weights.load(path).state_dict() if is_exported else torch.load(path)


def train(options):
    rng = random.Random(options.seed)
    torch.manual_seed(options.seed)
    encoders = {name: load_encoder(name, os.path.join(options.encoders, FILES[name])) for name in FILES}
    names, _ = split_pictures(list_pictures(options.images), 20261121)
    pictures = [os.path.join(options.images, name) for name in names]
    network = Perturber()
    if options.start:
        network.load_state_dict(state_of(options.start))
    few = [network.shares, network.gains]
    parameters = [p for p in network.parameters() if all(p is not one for one in few)]
    print("%d parameters, %d pictures" % (sum(p.numel() for p in network.parameters()), len(pictures)), flush=True)
    groups = [{"params": parameters, "scale": 1}, {"params": few, "scale": 20}]
    adam = torch.optim.Adam(groups, options.rate, betas=(0.9, 0.98))
    begun, begun_wall, means = time.process_time(), time.time(), {}
    step, share, mean = 0, 0.0, {name: value.clone() for name, value in network.state_dict().items()}
    while share < 1:
        for group in adam.param_groups:
            warm = min(1, (step + 1) / 20)
            group["lr"] = group["scale"] * options.rate * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * share)))
        x = batch_of(pictures, options.count, rng)
        upload = Upload(rng) if rng.random() < UPLOADS else None
        x = upload.opened(x) if upload else x
        budget = torch.tensor([math.exp(rng.uniform(math.log(options.budgets[0]), math.log(options.budgets[1]))) for _ in x])
        seen = Visibility(x)
        d = network(x, network.noise(x), seen)
        d = scaled(x, d, budget, seen)
        kept = upload.kept(x, d) if upload else d
        spent = torch.maximum(budget, seen.total(kept)) if upload else budget
        kind, moved = shifts(encoders, x, (x + kept).clamp(0, 1), rng, upload is not None)
        limits = penalties(x, d, kept, seen, budget)
        weights = CODED_WEIGHTS if kind in CODECS else WEIGHTS
        gained = sum(weights[name] * torch.log(value / spent + 1e-4).mean() for name, value in moved.items())
        loss = -gained + sum(PENALTY[name] * value for name, value in limits.items())
        adam.zero_grad()
        loss.backward()
        nn_norm = torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        if torch.isfinite(nn_norm):
            adam.step()
            for name, value in network.state_dict().items():
                mean[name].lerp_(value, max(MEAN_STEP, 1 / (step + 1)))
        step += 1
        share = (time.process_time() - begun) / 60 / options.minutes if options.minutes else step / options.steps
        share = max(share, (time.time() - begun_wall) / 60 / options.wall)
        figures = {**{"%s %s" % (kind, k): (v / spent).mean().item() for k, v in moved.items()}, **{k: v.item() for k, v in limits.items()}}
        for name, value in figures.items():
            means[name] = means.get(name, value) * 0.96 + value * 0.04
        if step % 20 == 0:
            print(step, "%.0f s" % (time.process_time() - begun), ", ".join("%s %.4f" % i for i in sorted(means.items())), flush=True)
        if step % 40 == 0 or share >= 1:
            torch.save(mean, options.out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", required=True)
    parser.add_argument("--encoders", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--start", help="a checkpoint or a weights file")
    parser.add_argument("--minutes", type=float, default=20, help="of processor time; 0: --steps")
    parser.add_argument("--wall", type=float, default=1e6, help="minutes on the clock, if the end comes sooner")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--count", type=int, default=4, help="crops a step")
    parser.add_argument("--rate", type=float, default=3e-4)
    parser.add_argument("--budgets", type=float, nargs=2, default=(0.8, 2.6))
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    train(options)


if __name__ == "__main__":
    main()
