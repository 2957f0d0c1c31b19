#!/usr/bin/python3
"""Searches a strength's table of gains that leaves least to be seen while every row of the bar keeps what it has.

The network stays as it is, so of each picture all that comes before the gains is worked out once.  Each round takes the
gradients of what is seen and of every row of ./dev bench protect by the logarithm of each gain, means over pictures, and
goes where what is seen falls most for the length of the step while no row falls below its floor, no gain by more than the
reach; where that did not help, half as far.  Rows are those of the bench's photographs and of some photographs of training,
so that what is found holds for more than twelve pictures.  Floors are what rows have at the start, less where that is more
than they need; they are written beside the checkpoint found, for a search that goes on.
"""

import argparse
import functools
import json
import multiprocessing
import os
import sys

import numpy
import torch
import torch.nn.functional as F
from scipy.optimize import minimize

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests", "bench"))
import protect as bench  # noqa: E402

import generator  # noqa: E402
from coding import coded, coded_through, file_size, planes_of  # noqa: E402
from export_weights import state_of  # noqa: E402
from generator import WAYS, between_blocks, dithered, grid_offset, luma_of, network_of, peaks  # noqa: E402
from generator import seeded_grain, seeded_noise, smoothness, texture_mask  # noqa: E402
from limits import seen_around  # noqa: E402
from pictures import blur, list_pictures, split_pictures  # noqa: E402
from spectra import gained, taken_apart  # noqa: E402

MARGIN = 64  # px around a picture
BENCH, TRAINING = "bench", "training"  # where a picture is from
PRICE = 60  # of a hundredth that is missing of a row, in what seen figures count
LEAST, MOST = -1.6, 1.0  # between what logarithms of gains stay
LENGTH = 3  # how many times the reach the steepest gains would go, were they not held
SPARE = {"jpeg 50 sana": 1, "webp sana": 1, "blur sana": 1, "sana": 0.7, "jpeg 50 sd15": 0.7}  # floors of rows that have more
SLACK = 0.2  # how far rows of training photographs may fall,
SLACK_SPARE = 1.5  # and those of SPARE


# ---- what is done to pictures

def cut(z):
    return z[:, :, 3:-29, 3:-29]


def halved(z):
    return F.interpolate(z, scale_factor=0.5, mode="bicubic", antialias=True)


def through(codec, quality, z):
    return (coded_through if z.requires_grad else coded)(z, codec, quality)()


ATTACKS = {"none": lambda z: z, "crop": cut, "resize": halved, "blur": functools.partial(blur, sigma=1.0),
           "jpeg 50": functools.partial(through, "JPEG", 50), "webp": functools.partial(through, "WEBP", 75)}
LEFT = {"resize": "resize 0.5", "blur": "blur 1", "jpeg 50": "jpeg 50", "webp": "webp 75"}  # what the bench calls them


def attacks_of(strength, source):
    if strength != "standard":
        return ["none"]
    return [name for name in ATTACKS if source == BENCH or name not in ("jpeg 50", "webp")]


# ---- a picture

class Picture:
    """A photograph, and all of what is drawn on it that does not depend on gains."""

    def __init__(self, photo, seed, source, net, strength, encoders):
        self.x, self.source, self.way, self.strength = bench.tensor(photo), source, WAYS[strength], strength
        self.encoders = encoders
        height, width = self.x.shape[2:]
        left, top = grid_offset(seed)
        around = (MARGIN + left, MARGIN + -(width + left) % 16, MARGIN + top, MARGIN + -(height + top) % 16)
        self.place = slice(around[2], around[2] + height), slice(around[0], around[0] + width)
        self.prepare(net, F.pad(self.x, around, mode="replicate"), seed)
        self.before = {}

    def prepare(self, net, x, seed):
        noise = seeded_noise(seed, x.shape[2] // 16, x.shape[3] // 16)
        self.mask = texture_mask(x, self.way)
        self.drawn = net.drawn(x, noise, self.mask, self.way)
        self.taken = taken_apart(luma_of(self.drawn), luma_of(x), self.way.level)
        self.calm = 1 - self.way.calm * between_blocks(smoothness(x, self.way))
        grain = seeded_grain(net.grain, seed, x.shape[2], x.shape[3])
        self.grain = dithered(x, torch.zeros_like(x), grain, self.way, MARGIN)
        most = F.interpolate(peaks(x, self.way), scale_factor=4, mode="nearest") / 255
        self.most = most[:, :, self.place[0], self.place[1]]

    def unit(self, table):
        drawn = generator.laid(self.drawn, gained(*self.taken, table), self.mask, self.way)
        return (drawn * self.calm + self.grain)[:, :, self.place[0], self.place[1]]

    def protected(self, unit):
        """At the strength, rounded with gradients straight through."""
        amplitude, times = 10 ** (-self.way.psnr_db / 20), 1.0
        strokes = amplitude * unit * unit.square().mean().rsqrt()
        with torch.no_grad():
            for _ in range(8):
                moved = (self.x + (times * strokes).clamp(-self.most, self.most)).clamp(0, 1) - self.x
                times *= amplitude / moved.square().mean().sqrt().item()
        y = (self.x + (times * strokes).clamp(-self.most, self.most)).clamp(0, 1)
        return y + ((y * 255).round() / 255 - y).detach()

    def moved(self, attack, name, y):
        """How far an encoder is moved.  Codecs have threads, which must not be there before processes part."""
        encoder, key = self.encoders[name], (attack, name)
        if key not in self.before:
            self.before[key] = encoder(ATTACKS[attack](self.x))
        return (encoder(ATTACKS[attack](y)) - self.before[key]).flatten(1).norm(dim=1).sum() / self.before[key].norm()

    def figures(self):
        """What is measured of it: functions of what it became."""
        yield "seen", lambda y: seen_around(self.x, y - self.x).pow(3).mean()
        yield "luma", lambda y: 1 - bench.similarity(255 * luma_of(self.x), 255 * luma_of(y))
        yield "size", lambda y: file_size(planes_of(y)).sum()
        for attack in attacks_of(self.strength, self.source):
            for name in self.encoders:
                yield (attack, name), functools.partial(self.moved, attack, name)


def measured(i, table):
    """The figures of a picture and size of its file before, and the gradient of each by the logarithms of gains."""
    picture, logs = pictures[i], table.log().requires_grad_()
    y, values, gradients = picture.protected(picture.unit(logs.exp())), {}, {}
    for name, figure in picture.figures():
        at = y.detach().requires_grad_()
        value = figure(at)
        values[name] = value.item()
        gradients[name] = torch.autograd.grad(y, logs, torch.autograd.grad(value, at), retain_graph=True)[0].flatten().numpy()
    values["size before"] = file_size(planes_of(picture.x)).item()
    return values, gradients


# ---- rows of the bar

def mean_of(dicts):
    return {key: sum(one[key] for one in dicts) / len(dicts) for key in dicts[0]}


def rows_of(strength, source, some):
    """How far each row is above the bar, in hundredths, and what is seen; and their gradients."""
    mean, slope = mean_of([values for values, _ in some]), mean_of([gradients for _, gradients in some])
    _, luma, _, least, _, _ = bench.BAR[strength]
    rows = {"seen": (20 * mean["seen"] ** (1 / 3), slope["seen"] * 20 / 3 * (mean["seen"] + 1e-9) ** (-2 / 3)),
            "growth": (10 - 100 * (mean["size"] / mean["size before"] - 1), slope["size"] * -100 / mean["size before"]),
            "luma": (100 * ((1 - luma) / mean["luma"] - 1), slope["luma"] * -100 * (1 - luma) / mean["luma"] ** 2)}
    for attack, name in (key for key in mean if isinstance(key, tuple)):
        moved, plain, of_moved, of_plain = (one[key] for one in (mean, slope) for key in ((attack, name), ("none", name)))
        if attack in LEFT:
            row = (100 * (moved / plain - bench.SURVIVES[LEFT[attack]]), 100 * (of_moved / plain - of_plain * moved / plain ** 2))
        else:
            bar = least[name] if attack == "none" else bench.CROP3[name]
            row = (100 * (moved / bar - 1), 100 * of_moved / bar)
        rows[name if attack == "none" else attack + " " + name] = row
    return {(source, name): row for name, row in rows.items()}


def looked(pool, strength, table):
    """Rows and their gradients at a table, of both sources."""
    some = pool.starmap(measured, [(i, table) for i in range(len(pictures))], chunksize=1)
    rows = {}
    for source in (BENCH, TRAINING):
        of_source = [one for one, picture in zip(some, pictures) if picture.source == source]
        rows.update(rows_of(strength, source, of_source) if of_source else {})
    return rows


def floors_of(rows):
    floors = {}
    for (source, name), (value, _) in rows.items():
        if source == BENCH:
            floors[source, name] = min(value, SPARE.get(name, value))
        else:
            floors[source, name] = value - (SLACK_SPARE if name in SPARE else SLACK)
    return {key: floor for key, floor in floors.items() if key[1] != "seen"}


def seen_of(rows):
    return sum(value for (_, name), (value, _) in rows.items() if name == "seen")


def merit(rows, floors):
    return seen_of(rows) + PRICE * sum(max(0, floor - rows[key][0]) for key, floor in floors.items())


# ---- a step

def best_step(rows, floors, logs, reach):
    """The step of logarithms, and the merit it promises."""
    of_seen = sum(slope for (_, name), (_, slope) in rows.items() if name == "seen").astype(float)
    of_rows = numpy.stack([rows[key][1] for key in floors]).astype(float)
    short = numpy.array([floor - rows[key][0] for key, floor in floors.items()])
    steep = abs(of_seen) + abs(of_rows).mean(0)
    even = 1 / (steep + 0.1 * steep.mean())  # so that gains that few windows have move, too
    length = LENGTH * reach / (even * (abs(of_seen) + 0.3 * PRICE * abs(of_rows).sum(0))).mean()
    low, high = numpy.maximum(-reach, LEAST - logs), numpy.minimum(reach, MOST - logs)

    def step(prices):
        return numpy.clip(length * even * (prices @ of_rows - of_seen), low, high)

    def dual(prices):
        by = step(prices)
        missing = short - of_rows @ by
        return -(of_seen @ by + (by * by / (2 * length * even)).sum() + prices @ missing), -missing

    prices = minimize(dual, numpy.full(len(short), 0.5), jac=True, method="L-BFGS-B", bounds=[(0, PRICE)] * len(short)).x
    by = step(prices)
    return by, seen_of(rows) + of_seen @ by + PRICE * numpy.maximum(0, short - of_rows @ by).sum()


def noted(out, **figures):
    """A line of the log beside the checkpoint, and of what is printed."""
    line = json.dumps(figures)
    with open(out + ".jsonl", "a") as file:
        file.write(line + "\n")
    print(line, flush=True)


def named(some):
    return {"%s: %s" % key: round(float(value), 3) for key, value in some.items()}


def values_of(rows):
    return named({key: value for key, (value, _) in rows.items()})


def kept(state, options, table, floors):
    state["gains"][WAYS[options.strength].table] = table
    torch.save({"mean": state, "net": state}, options.out)
    with open(options.out + ".floors", "w") as file:
        json.dump(named(floors), file)


def searched(pool, options, state):
    table, reach = state["gains"][WAYS[options.strength].table].clone(), options.reach
    rows = looked(pool, options.strength, table)
    floors = floors_of(rows)
    if options.floors:
        with open(options.floors) as file:
            floors.update({tuple(key.split(": ")): floor for key, floor in json.load(file).items()})
    floors.update({(BENCH, name): float(floor) for name, floor in options.floor})
    noted(options.out, event="start", rows=values_of(rows), floors=named(floors), options=vars(options))
    for number in range(options.rounds):
        by, promised = best_step(rows, floors, table.log().flatten().numpy(), reach)
        there = table * torch.from_numpy(by).float().exp().view(table.shape)
        found = looked(pool, options.strength, there)
        gain, due = merit(rows, floors) - merit(found, floors), merit(rows, floors) - promised
        noted(options.out, event="round", round=number, reach=round(reach, 4), merit=round(merit(rows, floors), 3),
              promised=round(promised, 3), found=round(merit(found, floors), 3), rows=values_of(found))
        if gain > 0:
            table, rows = there, found
            kept(state, options, table, floors)
        reach *= 0.5 if gain <= 0 else 1.3 if gain > 0.6 * due else 0.8 if gain < 0.3 * due else 1


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", required=True, help="the checkpoint whose network and gains the search begins with")
    parser.add_argument("--strength", choices=sorted(WAYS), default="standard")
    parser.add_argument("--images", required=True, help="folder of the bench's photographs")
    parser.add_argument("--held", required=True, help="folder of training pictures, of which those kept from training count")
    parser.add_argument("--encoders", required=True, help="folder of the encoders' .npz files")
    parser.add_argument("--photos", type=int, default=12, help="of the bench")
    parser.add_argument("--training", type=int, default=18, metavar="PHOTOS", help="photographs of training")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--reach", type=float, default=0.1)
    parser.add_argument("--floors", metavar="FILE", help="what an earlier search wrote beside its checkpoint")
    parser.add_argument("--floor", nargs=2, action="append", default=[], metavar=("ROW", "HUNDREDTHS"),
                        help="another floor of a row of the bench's photographs")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--out", required=True, help="the checkpoint found")
    return parser.parse_args()


def photos_of(options):
    """Photographs of the bench and of training, each with where it is from."""
    learned, _ = split_pictures(list_pictures(options.held), 20261121)
    training = [photo for _, photo in bench.crops_of(options.held, learned)] if options.training else []
    training = training[::max(1, len(training) // max(1, options.training))][:options.training]
    return [(photo, BENCH) for _, photo in bench.photos_of(options)] + [(photo, TRAINING) for photo in training]


def main():
    """Fills what all processes read before they part: pictures."""
    global pictures
    options = options_of()
    torch.set_num_threads(1)
    encoders = {name: bench.load_encoder(name, os.path.join(options.encoders, file)) for name, file in bench.FILES.items()}
    state = state_of(options.start)
    net = network_of(state).eval()
    with torch.no_grad():
        pictures = [Picture(photo, seed, source, net, options.strength, encoders)
                    for seed, (photo, source) in enumerate(photos_of(options))]
    with multiprocessing.get_context("fork").Pool(options.processes) as pool:
        searched(pool, options, state)


if __name__ == "__main__":
    main()
