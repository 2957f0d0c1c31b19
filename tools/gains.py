#!/usr/bin/python3
"""Search the table of gains of a strength that minimises visibility while every row of the bar keeps its value.

The network is fixed, so the part of each picture before the gains is computed once. The grain patterns and the
network's weights can be searched as well.

A round computes the gradients of visibility and of every row of ./dev bench protect, as means over pictures. The
variables are the logarithm of each gain, and optionally each weight and each pixel of a pattern.

The step minimises visibility under two constraints: no row falls below its floor, and no gain moves by more than the
reach. A step that does not improve the merit is repeated with half the reach. With new noise in each round, every
step is kept.

Rows are those of the bench's photographs and of some training photographs, so that the result generalises beyond
twelve pictures. Floors are the rows at the start, or less where a row has more than it needs. They are written to
OUT.floors, so that a later search can continue.
"""

import argparse
import functools
import json
import math
import multiprocessing
import os
import sys

import numpy
import torch
import torch.nn.functional as F
from scipy.optimize import minimize
from torch.nn.utils.stateless import functional_call

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests", "bench"))
import protect as bench  # noqa: E402

import generator  # noqa: E402
from coding import coded, coded_through, file_size, planes_of  # noqa: E402
from export_weights import grain_at, state_of  # noqa: E402
from generator import WAYS, between_blocks, dithered, grain_hashes, grain_of, grid_offset, luma_of, network_of  # noqa: E402
from generator import peaks, seeded_noise, texture_mask  # noqa: E402
from limits import seen_around  # noqa: E402
from patterns import EDGE, WINDOW_PX, bands, coherent, moment_of, unequal  # noqa: E402
from pictures import blur, list_pictures, split_pictures  # noqa: E402
from spectra import CELLS, FIELDS, GAINS, GROUPS, LIGHT, gained, taken_apart  # noqa: E402

MARGIN = 64  # px around a picture
LEAD = (generator.MARGIN - MARGIN) // 16  # places of noise and grain that the engine has beyond that margin
BENCH, TRAINING, GRAIN = "bench", "training", "grain"  # sources of a row: photographs of either, or patterns
PRICE = 60  # of a missing hundredth of a row, in units of the "seen" row
LEAST, MOST = -1.6, 1.0  # limits of the logarithms of gains,
PALED, COLOURED = 0.9, 1.5  # except the minimum of pale and the maximum of blue and red: against rows of violet or pink
DAYLIGHT, PALED_LIGHT = 2, 1.0  # and the minimum of pale from this node of light on: against green and rose bands on wet sand
REACH, WEIGHTS_REACH = {"table": 1, "grain": 1}, 0.05  # factors of the reach, by kind of variable
LENGTH = 3  # unconstrained length of the steepest steps, in reaches
# Rows with a large reserve: check them with ./dev bench protect after a long search.
SPARED = {("jpeg 75", "sd15"), ("jpeg 50", "sana"), ("webp", "sana"), ("blur", "sana")}
SPARE = {"sana": 0.7, "jpeg 50 sd15": 0.7}  # floors of rows that have more than they need
FINER = 8  # directions in which the power of all patterns is compared; with four, one-directional ticks pass
SHAPELESS = {"places": 0.001, "directions": 0.1, "each": 0.06, "moment": 0.03}  # maxima for the patterns,
COHERENT = 0.9  # and the maximum of their coherence
TENTHS = 10  # scale of a row of patterns: distance below the maximum
SLACK = 0.2  # allowed loss of rows of training photographs,
SLACK_SPARE = 1.5  # and of those in SPARE


# ---- processing of pictures

def cut(z):
    return z[:, :, 3:-29, 3:-29]


def halved(z):
    return F.interpolate(z, scale_factor=0.5, mode="bicubic", antialias=True)


def through(codec, quality, z):
    return (coded_through if z.requires_grad else coded)(z, codec, quality)()


CODECS = {"jpeg 75": ("JPEG", 75), "jpeg 50": ("JPEG", 50), "webp": ("WEBP", 75)}
ATTACKS = {"none": lambda z: z, "crop": cut, "resize": halved, "blur": functools.partial(blur, sigma=1.0),
           **{name: functools.partial(through, *codec) for name, codec in CODECS.items()}}
# The bench's names of them.
LEFT = {"resize": "resize 0.5", "blur": "blur 1", "jpeg 75": "jpeg 75", "jpeg 50": "jpeg 50", "webp": "webp 75"}


def attacks_of(strength, source):
    if strength != "standard":
        return ["none"]
    return [name for name in ATTACKS if source == BENCH or name not in CODECS]


# ---- variables of the search

def bounds():
    """The limits of the logarithms of a table's gains."""
    least, most = torch.full((GAINS, CELLS), LEAST), torch.full((GAINS, CELLS), MOST)
    least[GROUPS + FIELDS.index("pale")] = math.log(PALED)
    least.view(GAINS, len(LIGHT), -1)[GROUPS + FIELDS.index("pale"), DAYLIGHT:] = math.log(PALED_LIGHT)
    for colour in ("blue", "red"):
        most[GROUPS + FIELDS.index(colour)] = math.log(COLOURED)
    return least, most


class Searched:
    """The variables of the search as one vector.

    It holds the logarithms of a table's gains and, optionally, the patterns and the network's weights. Patterns are
    stored without the half-wave edge window, divided by their root mean square at the start. Weights are divided by
    the root mean square of their layer.
    """

    def __init__(self, state, table, of_grain, of_network):
        self.net, self.of_grain, self.of_network = Drawing(network_of(state).eval()), of_grain, of_network
        self.least, self.most = bounds()
        self.table, self.patterns = state["gains"][table].clone().clamp(self.least.exp(), self.most.exp()), state["grain"].clone()
        edge = EDGE[:, None] * EDGE
        learned = {name: one.detach().clone() for name, one in self.net.named_parameters() if name.endswith("weight")}
        parts = [("table", self.table.log(), 1)]
        parts += [("grain", self.patterns / edge, edge)] * of_grain
        parts += [(name, one, 1) for name, one in learned.items()] * of_network
        rms = [one.square().mean().sqrt() if name != "table" else 1 for name, one, _ in parts]
        self.names, self.shapes = [name for name, _, _ in parts], [one.shape for _, one, _ in parts]
        self.units = [unit * edged for unit, (_, _, edged) in zip(rms, parts)]
        self.start = torch.cat([(one / unit).flatten() for (_, one, _), unit in zip(parts, rms)])
        self.sizes = [one.numel() for _, one, _ in parts]

    def parts(self, vector):
        """The table, the patterns and the weights of a vector."""
        values = {name: one.view(shape) * unit for name, one, shape, unit
                  in zip(self.names, vector.split(self.sizes), self.shapes, self.units)}
        return values.pop("table").exp(), values.pop("grain", self.patterns), values

    def drawing(self, weights, *args):
        return functional_call(self.net, weights or {}, args)

    def limits(self, vector, reach):
        """The lower and upper limit of each number's step."""
        high = numpy.repeat([reach * REACH.get(name, WEIGHTS_REACH) for name in self.names], self.sizes)
        low, gains = -high, slice(0, self.sizes[0])
        low[gains] = numpy.maximum(low[gains], self.least.flatten().numpy() - vector[gains])
        high[gains] = numpy.minimum(high[gains], self.most.flatten().numpy() - vector[gains])
        return low, high

    def even(self, steep, weight, reach):
        """The step size of each number relative to its slope. It also moves numbers that affect few windows or
        pixels."""
        ends = numpy.cumsum(self.sizes)[:-1]
        parts = []
        for name, one, of in zip(self.names, numpy.split(steep, ends), numpy.split(weight, ends)):
            even = 1 / (one + 0.1 * one.mean() + 1e-12)
            parts.append(LENGTH * reach * REACH.get(name, WEIGHTS_REACH) * even / (even * of).mean())
        return numpy.concatenate(parts)


# ---- a picture

class Drawing(torch.nn.Module):
    """A network's drawn output, callable with other weights."""

    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, *args):
        return self.net.drawn(*args)


class Picture:
    """A photograph and the parts of its perturbation that do not depend on gains."""

    def __init__(self, photo, seed, source, strength, encoders):
        self.x, self.source, self.way, self.strength = bench.tensor(photo), source, WAYS[strength], strength
        self.encoders, self.before = encoders, {}
        self.sow(seed)

    def sow(self, seed):
        """Compute everything that depends on the seed."""
        self.seed = seed
        height, width = self.x.shape[2:]
        left, top = grid_offset(seed)
        around = (MARGIN + left, MARGIN + -(width + left) % 16, MARGIN + top, MARGIN + -(height + top) % 16)
        self.place = slice(around[2], around[2] + height), slice(around[0], around[0] + width)
        self.prepare(F.pad(self.x, around, mode="replicate"), seed)
        self.drawn = None
        if not searched.of_network:
            self.drawn = self.drawn_by(None)

    def prepare(self, x, seed):
        height, width = x.shape[2] + 2 * 16 * LEAD, x.shape[3] + 2 * 16 * LEAD
        self.around, self.noise = x, seeded_noise(seed, height // 16, width // 16)[:, :, LEAD:-LEAD, LEAD:-LEAD]
        self.mask = texture_mask(x, self.way)
        self.calm = 1 - between_blocks(generator.calmed(x, self.way, MARGIN))
        self.field = dithered(x, torch.zeros_like(x), torch.ones_like(x), self.way, MARGIN)
        self.hashed = grain_hashes(seed, height, width)[:, LEAD:-LEAD, LEAD:-LEAD]
        most = F.interpolate(peaks(x, self.way, MARGIN), scale_factor=4, mode="nearest") / 255
        self.most = most[:, :, self.place[0], self.place[1]]

    def drawn_by(self, weights):
        """The output and the spectra of a network with these weights."""
        drawn = searched.drawing(weights, self.around, self.noise, self.mask, self.way)
        return drawn, taken_apart(luma_of(drawn), luma_of(self.around), self.way.level)

    def unit(self, table, patterns, weights):
        drawn, taken = self.drawn or self.drawn_by(weights)
        drawn = generator.laid(drawn, gained(*taken, table), self.mask, self.way)
        unit = (drawn * self.calm + self.field * grain_of(patterns, self.hashed))[:, :, self.place[0], self.place[1]]
        return generator.tinted(unit, self.x)

    def protected(self, unit):
        """The picture at the strength, rounded with straight-through gradients."""
        amplitude, times = 10 ** (-self.way.psnr_db / 20), 1.0
        strokes = amplitude * unit * unit.square().mean().rsqrt()
        with torch.no_grad():
            for _ in range(8):
                moved = (self.x + (times * strokes).clamp(-self.most, self.most)).clamp(0, 1) - self.x
                times *= amplitude / moved.square().mean().sqrt().item()
        y = (self.x + (times * strokes).clamp(-self.most, self.most)).clamp(0, 1)
        return y + ((y * 255).round() / 255 - y).detach()

    def moved(self, attack, name, y):
        """The shift of an encoder's latents. It is computed lazily: codecs have threads, which must not exist before
        the fork."""
        encoder, key = self.encoders[name], (attack, name)
        if key not in self.before:
            self.before[key] = encoder(ATTACKS[attack](self.x))
        return (encoder(ATTACKS[attack](y)) - self.before[key]).flatten(1).norm(dim=1).sum() / self.before[key].norm()

    def figures(self):
        """The measures of the picture, as functions of the protected picture."""
        yield "seen", lambda y: seen_around(self.x, y - self.x).pow(3).mean()
        yield "luma", lambda y: 1 - bench.similarity(255 * luma_of(self.x), 255 * luma_of(y))
        yield "size", lambda y: file_size(planes_of(y)).sum()
        for attack in attacks_of(self.strength, self.source):
            for name in (name for name in self.encoders if (attack, name) not in SPARED):
                yield (attack, name), functools.partial(self.moved, attack, name)


def measured(i, vector, seed):
    """The measures of a picture, its file size before, and the gradient of each measure by the vector."""
    picture, at = pictures[i], vector.clone().requires_grad_()
    if picture.seed != seed:
        with torch.no_grad():
            picture.sow(seed)
    y, values, gradients = picture.protected(picture.unit(*searched.parts(at))), {}, {}
    for name, figure in picture.figures():
        seen = y.detach().requires_grad_()
        value = figure(seen)
        values[name] = value.item()
        gradients[name] = torch.autograd.grad(y, at, torch.autograd.grad(value, seen), retain_graph=True)[0].numpy()
    values["size before"] = file_size(planes_of(picture.x)).item()
    return values, gradients


# ---- rows of the bar

def mean_of(dicts):
    return {key: sum(one[key] for one in dicts) / len(dicts) for key in dicts[0]}


def rows_of(strength, source, some):
    """Each row's distance to the bar in hundredths, and the visibility, with their gradients."""
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


def shapeless(vector):
    """The distance of the patterns to each limit that keeps them without visible shape."""
    at = vector.clone().requires_grad_()
    patterns = searched.parts(at)[1]
    torch.manual_seed(1)
    field = grain_of(patterns / (patterns.square().mean().sqrt() * 2), grain_hashes(1, 512, 512))
    (places, _, each), (_, directions, _) = unequal(patterns, bands(64)), unequal(patterns, bands(64, FINER))
    figures = {"places": places, "directions": directions, "each": each, "moment": moment_of(field, bands(WINDOW_PX))}
    rows = {name: TENTHS * (1 - figures[name] / most) for name, most in SHAPELESS.items()}
    rows.update({"coherent %d" % i: TENTHS * (1 - one / COHERENT) for i, one in enumerate(coherent(field))})
    return {(GRAIN, name): (row.item(), torch.autograd.grad(row, at, retain_graph=True)[0].numpy()) for name, row in rows.items()}


def looked(pool, strength, vector, sown):
    """Rows and their gradients at a vector, of both sources and of patterns. sown: the number of earlier changes of
    the seeds."""
    count = len(pictures)
    some = pool.starmap(measured, [(i, vector, i + sown * count) for i in range(count)], chunksize=1)
    rows = shapeless(vector) if searched.of_grain else {}
    for source in (BENCH, TRAINING):
        of_source = [one for one, picture in zip(some, pictures) if picture.source == source]
        rows.update(rows_of(strength, source, of_source) if of_source else {})
    return rows


def floors_of(rows):
    floors = {}
    for (source, name), (value, _) in rows.items():
        if source == BENCH:
            floors[source, name] = min(value, SPARE.get(name, value))
        elif source == GRAIN:
            floors[source, name] = min(value, 0)
        else:
            floors[source, name] = value - (SLACK_SPARE if name in SPARE else SLACK)
    return {key: floor for key, floor in floors.items() if key[1] != "seen"}


def seen_of(rows):
    return sum(value for (_, name), (value, _) in rows.items() if name == "seen")


def merit(rows, floors):
    return seen_of(rows) + PRICE * sum(max(0, floor - rows[key][0]) for key, floor in floors.items())


# ---- a step

def best_step(rows, floors, vector, reach):
    """The step of the vector, and its predicted merit."""
    of_seen = sum(slope for (_, name), (_, slope) in rows.items() if name == "seen").astype(float)
    of_rows = numpy.stack([rows[key][1] for key in floors]).astype(float)
    short = numpy.array([floor - rows[key][0] for key, floor in floors.items()])
    steep, weight = abs(of_seen) + abs(of_rows).mean(0), abs(of_seen) + 0.3 * PRICE * abs(of_rows).sum(0)
    even = searched.even(steep, weight, reach)
    low, high = searched.limits(vector, reach)

    def step(prices):
        return numpy.clip(even * (prices @ of_rows - of_seen), low, high)

    def dual(prices):
        by = step(prices)
        missing = short - of_rows @ by
        return -(of_seen @ by + (by * by / (2 * even)).sum() + prices @ missing), -missing

    prices = minimize(dual, numpy.full(len(short), 0.5), jac=True, method="L-BFGS-B", bounds=[(0, PRICE)] * len(short)).x
    by = step(prices)
    return by, seen_of(rows) + of_seen @ by + PRICE * numpy.maximum(0, short - of_rows @ by).sum()


def noted(out, **figures):
    """Write a line to the log of the checkpoint and to standard output."""
    line = json.dumps(figures)
    with open(out + ".jsonl", "a") as file:
        file.write(line + "\n")
    print(line, flush=True)


def named(some):
    return {"%s: %s" % key: round(float(value), 3) for key, value in some.items()}


def values_of(rows):
    return named({key: value for key, (value, _) in rows.items()})


def kept(state, options, vector):
    table, patterns, weights = searched.parts(vector)
    state["gains"][WAYS[options.strength].table], state["grain"] = table, patterns
    state.update({name[len("net."):]: one for name, one in weights.items()})
    torch.save({"mean": state, "net": state}, options.out)


def search(pool, options, state):
    vector, reach = searched.start, options.reach
    rows = looked(pool, options.strength, vector, options.sown)
    floors = floors_of(rows)
    if options.floors:
        with open(options.floors) as file:
            earlier = {tuple(key.split(": ")): floor for key, floor in json.load(file).items()}
        floors.update({key: floor for key, floor in earlier.items() if key in rows})
    floors.update({(BENCH, name): float(floor) for name, floor in options.floor})
    with open(options.out + ".floors", "w") as file:
        json.dump(named(floors), file)
    noted(options.out, event="start", rows=values_of(rows), floors=named(floors), options=vars(options))
    for number in range(options.rounds):
        by, promised = best_step(rows, floors, vector.numpy(), reach)
        there = vector + torch.from_numpy(by).float()
        found = looked(pool, options.strength, there, options.sown + (number + 1) * options.reseed)
        gain, due = merit(rows, floors) - merit(found, floors), merit(rows, floors) - promised
        noted(options.out, event="round", round=number, reach=round(reach, 4), merit=round(merit(rows, floors), 3),
              promised=round(promised, 3), found=round(merit(found, floors), 3), rows=values_of(found))
        if gain > 0 or options.reseed:
            vector, rows = there, found
            kept(state, options, vector)
        if options.reseed:
            continue
        reach *= 0.5 if gain <= 0 else 1.3 if gain > 0.6 * due else 0.8 if gain < 0.3 * due else 1


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", required=True, help="checkpoint or weights file with the initial network and gains")
    parser.add_argument("--strength", choices=sorted(WAYS), default="standard")
    parser.add_argument("--images", required=True, help="folder of the bench's photographs")
    parser.add_argument("--held", required=True, help="folder of training pictures; only the validation part is used")
    parser.add_argument("--encoders", required=True, help="folder of the encoders' .npz files")
    parser.add_argument("--photos", type=int, default=12, help="number of the bench's photographs")
    parser.add_argument("--training", type=int, default=18, metavar="PHOTOS", help="number of training photographs")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--reach", type=float, default=0.1)
    parser.add_argument("--grain", action="store_true", help="search the grain patterns as well")
    parser.add_argument("--patterns", metavar="CHECKPOINT", help="initial grain patterns, instead of those of --start")
    parser.add_argument("--network", action="store_true", help="search the weights of the network as well")
    parser.add_argument("--reseed", action="store_true", help="new noise and grain places in each round; keep every step")
    parser.add_argument("--sown", type=int, default=0, metavar="TIMES", help="number of earlier changes of the seeds")
    parser.add_argument("--way", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"), help="set a number of the strength")
    parser.add_argument("--floors", metavar="FILE", help="the OUT.floors file of an earlier search")
    parser.add_argument("--floor", nargs=2, action="append", default=[], metavar=("ROW", "HUNDREDTHS"),
                        help="change the floor of a row of the bench's photographs")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--out", required=True, help="the resulting checkpoint")
    return parser.parse_args()


def photos_of(options):
    """Photographs of the bench and of training, each with its source."""
    learned, _ = split_pictures(list_pictures(options.held), 20261121)
    training = [photo for _, photo in bench.crops_of(options.held, learned)] if options.training else []
    training = training[::max(1, len(training) // max(1, options.training))][:options.training]
    return [(photo, BENCH) for _, photo in bench.photos_of(options)] + [(photo, TRAINING) for photo in training]


def main():
    """Fill the globals that the worker processes read before the fork."""
    global pictures, searched
    options = options_of()
    torch.set_num_threads(1)
    encoders = {name: bench.load_encoder(name, os.path.join(options.encoders, file)) for name, file in bench.FILES.items()}
    state = state_of(options.start, WAYS[options.strength].network)
    if options.patterns:
        state["grain"] = grain_at(options.patterns)
    searched = Searched(state, WAYS[options.strength].table, options.grain, options.network)
    for name, value in options.way:
        setattr(WAYS[options.strength], name, float(value))
    with torch.no_grad():
        pictures = [Picture(photo, seed, source, options.strength, encoders)
                    for seed, (photo, source) in enumerate(photos_of(options))]
    with multiprocessing.get_context("fork").Pool(options.processes) as pool:
        search(pool, options, state)


if __name__ == "__main__":
    main()
