#!/usr/bin/python3
"""Train all layers of the turned network for latent shift, also after processing. See README.md in this folder.

Each measure of limits.py has a bound and a multiplier. The multiplier rises while the measure exceeds the bound and
falls otherwise. Without the bounds, training produces a few strong strokes, lines and gratings.
"""

import argparse
import json
import math
import time

import torch
import torch.nn.functional as F

from coding import coded, coded_through
from course import Course, add_encoder_options, add_options, encoders_of, mean_of, prepared
from devices import shortened
from encoders import latent_shift
from generator import (ANSWERS, FAINT, GRAIN_PX, GRAIN_STEP, NETWORKS, STRONG, WAYS, dithered, grain_of, grain_places, luma_of,
                       network_of, peaks, texture_mask, tinted)
from limits import dear_measures, measures
from patterns import WINDOW_PX, Grain, bands, coherent, moment_of, unequal
from pictures import batches, blur, is_drawing, patched

WHOLE_PX = 320  # crops that fill a square of this side share one scale, as one picture does
CLIP = 20.0  # limits only outlier gradients; a limit of 1 clips nearly all and cancels the weights of the shifts
DEAR = 4  # the period, in steps, of the most expensive measures
CUT_PX = 32  # a cut removes this much of each side
AHEAD = 8  # batches prepared in advance
GRAIN_RATE = 10  # learning rate of grain, relative to the rate
PROCESSING = ("none",) * 6 + ("cut",) * 7 + ("half",) * 6 + ("blurred",) * 5 + ("jpeg",) * 3 + ("webp",) * 6
STRENGTHS = {FAINT: ("low", "standard", "standard", "standard"), STRONG: ("high",)}  # each step uses one of them
CODECS = {"jpeg": (("JPEG", 50), ("JPEG", 50), ("JPEG", 75)), "webp": (("WEBP", 70), ("WEBP", 75), ("WEBP", 75))}
DRAWS = ("seed8", "up4", "draw4", "up2", "draw2", "draw1")
LIMITS = {  # bound, initial multiplier, rate of change
    "ssim": (76, 0.2, 0.03),
    "chroma": (22, 0.015, 0.02),
    "blue": (100, 0.002, 0.02),
    "growth": (400, 0.05, 0.04),
    "visibility": (85, 0.02, 0.04),
    "flat": (0.48, 0.001, 0.04),
    "unmasking": (1.95, 0.002, 0.03),
    "sameness": (0.25, 0.02, 0.015),
    "tint": (0.022, 0.01, 0.04),
    "pattern": (28, 0.1, 0.01),
    "smooth": (0.4, 0.02, 0.04),
    "lines": (0.105, 0.06, 0.02),
    "shapes": (64, 0.02, 0.02),
    "strokes": (0.31, 0.02, 0.02),
    "worst": (77, 0.06, 0.02),
    "places": (0.003, 0.05, 0.02),  # from here on: bounds of the grain, if it learns
    "directions": (0.01, 0.05, 0.02),
    "each": (0.06, 0.05, 0.02),
    "moment": (0.01, 0.02, 0.02),
    "coherent": (0.9, 0.05, 0.02),
    "energy": (1.3, 0.1, 0.02),
}
EASE = {  # factors of the bounds by strength: high allows more visibility; MS-SSIM is tightest at high and low
    "low": {"ssim": 0.757, "growth": 1.75},
    "high": {"ssim": 0.85, "visibility": 1.3, "smooth": 1.8, "flat": 1.2, "sameness": 1.4, "lines": 1.5, "pattern": 3,
             "worst": 2.5},
}
AIMS = {  # target shifts of crops, means over the strengths, equally far from the present values
    "sd15": {"none": 0.338, "cut": 0.276, "half": 0.240, "blurred": 0.262, "jpeg": 0.290, "webp": 0.276},
    "sana": {"none": 0.352, "cut": 0.378, "half": 0.225, "blurred": 0.260, "jpeg": 0.300, "webp": 0.300},
}
FIRST = {  # initial weights of the shifts
    "sd15": {"none": 1.0, "cut": 2.6, "half": 2.6, "blurred": 2.6, "jpeg": 0.05, "webp": 0.9},
    "sana": {"none": 1.8, "cut": 2.2, "half": 0.5, "blurred": 0.02, "jpeg": 0.02, "webp": 0.05},
}
KEEP = {  # with aims relative to the start: factors for shifts after processing that may fall slightly behind
    ("sd15", "jpeg"): 0.97, ("sana", "jpeg"): 0.97, ("sd15", "half"): 0.985, ("sana", "half"): 0.985, ("sana", "blurred"): 0.94,
    ("sana", "webp"): 0.95,
}
SHARES = {"webp": 0.25, "jpeg": 0.125, "cut": 0.25, "half": 0.1875, "blurred": 0.1875}  # of the pictures of a large step
CATCH_UP = 0.003  # growth rate of the weight of a shift below its aim
OF_FIELDS = ("places", "directions", "each", "moment", "coherent")  # bounds that do not depend on the initial grain


class Aims:
    """The weight of each shift; it grows with the distance to its aim. The mean weight is 1; held weights stay."""

    def __init__(self, weights, held):
        self.held = held
        self.aims = {(name, kind): aim for name in weights for kind, aim in AIMS[name].items()}
        self.weights = {(name, kind): weights[name] * FIRST[name][kind] for name, kind in self.aims}

    def of(self, key):
        return self.held.get(key, self.weights[key])

    def weigh(self, shifts):
        """shifts: the shifts of a step, by encoder and kind."""
        for (name, kind), shift in shifts.items():
            seldom = len(PROCESSING) / PROCESSING.count(kind) if len(shifts) < len(self.weights) else len(set(PROCESSING)) / 2
            behind = min(1, max(-1, math.log(self.aims[name, kind] / max(shift, 1e-3))))
            self.weights[name, kind] *= math.exp(CATCH_UP * seldom * behind)
        mean = sum(self.weights.values()) / len(self.weights)
        self.weights = {key: max(0.02, value / mean) for key, value in self.weights.items()}

    def figures(self):
        return {"%s %s" % key: round(value, 3) for key, value in self.weights.items()}


class Limits:
    """Lagrange multipliers in logarithms, for each strength: the charge for each measure as a share of its bound."""

    def __init__(self, scales, strengths):
        self.scales = scales
        self.bounds = {(strength, name): bound * self.scale(strength, name) * EASE.get(strength, {}).get(name, 1)
                       for name, (bound, _, _) in LIMITS.items() for strength in strengths}
        self.multipliers = {key: LIMITS[key[1]][1] for key in self.bounds}
        self.shares = {key: [] for key in self.bounds}

    def scale(self, strength, name):
        return self.scales.get("%s:%s" % (strength, name), self.scales.get(name, 1))

    def charge(self, strength, values):
        return sum(self.multipliers[strength, name] / self.bounds[strength, name] * value for name, value in values.items())

    def settle(self, strength, values):
        """Update the multipliers with the values of a step."""
        for name, value in values.items():
            key, share = (strength, name), value / self.bounds[strength, name]
            self.shares[key].append(share)
            moved = self.multipliers[key] * math.exp(LIMITS[name][2] * (min(10, share) - 1))
            self.multipliers[key] = min(30, max(0.001, moved))

    def figures(self):
        shares = {"%s %s" % key: round(sum(some) / max(1, len(some)), 3) for key, some in self.shares.items()}
        self.shares = {key: [] for key in self.shares}
        return dict(shares=shares, multipliers={"%s %s" % key: round(value, 4) for key, value in self.multipliers.items()})


class Begun:
    """Means of the measures over initial steps without learning. Bounds and aims are multiples of them."""

    def __init__(self, steps, aim):
        self.steps, self.aim, self.seen = steps, aim, {}

    def note(self, strength, measured, shifts):
        for key, value in list(((strength, name), value) for name, value in measured.items()) + list(shifts.items()):
            self.seen.setdefault(key, []).append(value)

    def set(self, aims, limits):
        means = {key: sum(some) / len(some) for key, some in self.seen.items()}
        limits.bounds.update({key: max(1e-6, means[key]) * limits.scale(*key)
                              for key in limits.bounds if key in means and key[1] not in OF_FIELDS})
        aims.aims.update({key: means[key] * self.aim * KEEP.get(key, 1) for key in aims.aims if key in means})


def take_over(log, aims, limits):
    """Read bounds, aims, weights and multipliers from the log of another run. --limit scales the bounds."""
    last = {}
    with open(log) as file:
        for line in file:
            last.update(json.loads(line))
    for theirs, ours in ((last["aims"], aims.aims), (last.get("weights", {}), aims.weights),
                         (last["bounds"], limits.bounds), (last.get("multipliers", {}), limits.multipliers)):
        scale = limits.scale if ours is limits.bounds else lambda *key: 1
        ours.update({key: theirs["%s %s" % key] * scale(*key) for key in ours if "%s %s" % key in theirs})


def passed_on(kind, x, y, rng):
    """Process both pictures as a third party may; return a function that waits for them, because codecs run in
    parallel."""
    side = x.shape[2]
    if kind == "none":
        return lambda: (x, y)
    if kind == "cut":  # offsets that fit an encoder's 8 px grid least
        top, left = rng.randrange(3, 6), rng.randrange(3, 6)
        return lambda: tuple(z[:, :, top:top + side - CUT_PX, left:left + side - CUT_PX] for z in (x, y))
    if kind == "half":
        whole = side // 64 * 64  # sana needs multiples of 32 px
        return lambda: tuple(F.interpolate(z[:, :, :whole, :whole], scale_factor=0.5, mode="bicubic", antialias=True) for z in (x, y))
    if kind == "blurred":
        return lambda: (blur(x, 1.0), blur(y, 1.0))
    how = rng.choice(CODECS[kind])
    before, after = coded(x, *how), coded_through(y, *how)
    return lambda: (before(), after())


def kinds_of(count, rng):
    """The kinds of processing of a step, each with its pictures. A small step has one kind; a large step has all
    pictures unprocessed and a part of them in each kind."""
    if count < len(PROCESSING) // 4:
        return [(rng.choice(PROCESSING), slice(0, count))]
    parts, first = [("none", slice(0, count))], 0
    for kind, share in SHARES.items():
        parts.append((kind, slice(first, first + max(1, round(share * count)))))
        first = parts[-1][1].stop
    return sorted(parts, key=lambda part: part[0] not in CODECS)  # codecs first: they run while the others are computed


def alike(count, side):
    """The number of crops of a step that share one scale."""
    return min(count, max(1, round((WHOLE_PX / side) ** 2)))


def together(values, count):
    """The mean over each group of count pictures, repeated for each picture."""
    return values.view(-1, count).mean(1).repeat_interleave(count).view(-1, 1, 1, 1)


def made_up(moved, most, amplitude, count):
    """The factor that restores the amplitude after values are clipped to most."""
    times = 1.0
    for _ in range(3):
        left = together((times * moved).clamp(-most, most).square().mean((1, 2, 3)), count)
        times = times * (amplitude / (left.sqrt() + 1e-6)).clamp_max(2)
    return times.clamp_max(4)


def protected(net, patterns, x, strength, rng, is_dear):
    """Pictures at a strength, rounded with straight-through gradients. Also return the means of the measures, which
    pictures have any perturbation, and the grain field."""
    way, (count, _, side, _) = WAYS[strength], x.shape
    noise = torch.rand(count, ANSWERS, side // 16, side // 16, device=x.device) * 2 - 1
    unit = net(x, noise, way)
    hashed = torch.randint(256, (count, grain_places(side), grain_places(side)), device=x.device)
    field = grain_of(patterns, hashed)
    whole = tinted(dithered(x, unit, field, way), x)
    as_one = alike(count, side)
    power = whole.square().mean((1, 2, 3))
    amplitude = 10 ** (-(way.psnr_db + rng.uniform(-0.5, 0.5)) / 20)
    most = F.interpolate(peaks(x, way), scale_factor=4, mode="nearest") / 255
    scale = (amplitude * torch.rsqrt(together(power, as_one) + 1e-9)).clamp_max(40)
    scale = scale * made_up(scale.detach() * whole.detach(), most, amplitude, as_one)
    y = x + (scale * whole).clamp(-most, most)
    y = y + ((y.clamp(0, 1) * 255).round() / 255 - y).detach()
    drawn = (scale * unit).clamp(-most, most)
    measured = measures(x, y, unit, drawn, texture_mask(x, way))
    if is_dear:
        measured.update(dear_measures(x, y, unit, drawn, net(x[:1], noise[1:2], way)))
    is_drawn = (power > 1e-6).float()
    return y, {name: (value * is_drawn).mean() for name, value in measured.items()}, is_drawn, field


def of_grain(patterns, field, filters):
    """Measures that limit grain: inequality of places and directions, creases, strips, and the energy of all colours
    relative to luma."""
    places, directions, each = unequal(patterns, filters[0])
    luma = luma_of(patterns).square().mean() * (GRAIN_PX / GRAIN_STEP) ** 2
    return {"places": places, "directions": directions, "each": each, "moment": moment_of(field[:8], filters[1]),
            "coherent": coherent(field[:8]).max(), "energy": 1 / luma}


def shifts_of(encoders, x, y):
    shifts = {}
    for name, encoder in encoders.items():
        with shortened(x.device):
            with torch.no_grad():
                before = encoder(x)
            after = encoder(y)
        shifts[name] = latent_shift(after.float(), before.float())
    return shifts


class Whole(torch.nn.Module):
    """A network and, if it learns, its grain."""

    def __init__(self, net, learns_grain):
        super().__init__()
        self.net, self.grain = net, Grain(net.grain.detach().clone()) if learns_grain else None

    def patterns(self):
        return self.net.grain if self.grain is None else self.grain.patterns()

    def kept(self):
        return {**self.net.state_dict(), "grain": self.patterns().detach()}

    def groups(self):
        """Parameter groups: each layer learns at a rate in proportion to its size. The drawing layers have no biases,
        because biases would draw a fixed pattern."""
        for _, drawer in self.net.drawers():
            for name in DRAWS:
                getattr(drawer, name).bias.requires_grad_(False)
        groups = [dict(params=[one], scale=max(1e-3, one.detach().square().mean().sqrt().item()))
                  for one in self.net.parameters() if one.requires_grad]
        return groups + [dict(params=[one], scale=GRAIN_RATE) for one in (self.grain.parameters() if self.grain else ())]


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, steps=6000, rate=2e-3, last_rate=1e-5, seed=20261122)
    add_encoder_options(parser, sana=1.0)
    parser.add_argument("--count", type=int, default=3, help="crops in a step")
    parser.add_argument("--side", type=int, default=160, help="px of a crop's side; a multiple of 32")
    parser.add_argument("--begun", type=int, default=0, metavar="STEPS",
                        help="steps without learning; their means times --limit and --aim are the bounds and aims")
    parser.add_argument("--like", metavar="LOG", help="take bounds, aims, weights and multipliers from the end of this log")
    parser.add_argument("--aim", type=float, default=1.1, help="factor of the aims relative to the means of --begun")
    parser.add_argument("--learn-grain", action="store_true", help="also learn the patterns of grain")
    parser.add_argument("--network", choices=NETWORKS, default=FAINT, help="the network to train")
    parser.add_argument("--grain", help="patterns of grain.py; default: those of the checkpoint (none after turn.py)")
    parser.add_argument("--limit", nargs=2, action="append", default=[], metavar=("NAME", "TIMES"),
                        help="factor of a bound of LIMITS; low:NAME for one strength only")
    parser.add_argument("--held", nargs=3, action="append", default=[], metavar=("ENCODER", "KIND", "WEIGHT"),
                        help="a constant weight of a shift; a negative weight reduces it in favour of the others")
    options = parser.parse_args()
    if options.side % 32 != 0 or options.side < 96:
        parser.error("--side: multiples of 32 px, from 96 on")
    if options.count < 1 or options.count % alike(options.count, options.side) != 0:
        parser.error("--count: crops of %d px are scaled %d together" % (options.side, alike(max(1, options.count), options.side)))
    for name, kind, _ in options.held:
        if kind not in FIRST.get(name, {}):
            parser.error("--held: there is no %s %s" % (name, kind))
    for name, _ in options.limit:
        if name.split(":")[-1] not in LIMITS:
            parser.error("--limit: there is no %s; there are %s" % (name, ", ".join(LIMITS)))
    return options


class Training:
    """One training run: the parameters, the encoders and the limits."""

    def __init__(self, options):
        self.options = options
        self.rng, self.device, pictures = prepared(options)
        self.encoders, weights = encoders_of(options, self.device)
        net = network_of(mean_of(options.start)[0])
        if options.grain:
            net.grain.copy_(torch.load(options.grain)["grain"])
        self.whole = Whole(net, options.learn_grain).to(self.device, memory_format=torch.channels_last)
        self.filters = [bands(2 * GRAIN_PX).to(self.device), bands(WINDOW_PX).to(self.device)]
        self.batches = batches([one for one in pictures if not is_drawing(one)], options.count, options.side, options.seed,
                               self.device, AHEAD)
        held = {(name, kind): float(weight) for name, kind, weight in options.held}
        self.aims = Aims({name: weights[name] for name in self.encoders}, held)
        self.limits = Limits({name: float(times) for name, times in options.limit}, sorted(set(STRENGTHS[options.network])))
        if options.like:
            take_over(options.like, self.aims, self.limits)
        self.begun, self.seen = Begun(options.begun, options.aim), {}
        clock = time.monotonic if self.device.type == "cuda" else time.process_time
        self.course = Course(self.whole, options, self.whole.groups(), CLIP, Whole.kept, clock, pictures=len(pictures),
                             device=self.device.type)

    def looked(self, step):
        """The loss of a step, its strength, and the measures and shifts as tensors."""
        whole, count, rng = self.whole, self.options.count, self.rng
        x = patched(next(self.batches), rng).contiguous(memory_format=torch.channels_last)
        strength, patterns = rng.choice(STRENGTHS[self.options.network]), whole.patterns()
        y, measured, drawn, field = protected(whole.net, patterns, x, strength, rng, step % DEAR == 0)
        if whole.grain is not None:
            measured.update(of_grain(patterns, field, self.filters))
        loss, shifts, parts = self.limits.charge(strength, measured), {}, kinds_of(count, rng)
        ahead = [(kind, part, passed_on(kind, x[part], y[part], rng)) for kind, part in parts]
        for kind, part, handed in sorted(ahead, key=lambda one: one[0] in CODECS):
            often = 1 if len(parts) == 1 else PROCESSING.count(kind) / len(PROCESSING)
            for name, shift in shifts_of(self.encoders, *handed()).items():
                shifts[name, kind] = (shift * drawn[part]).mean()
                loss = loss - often * self.aims.of((name, kind)) * torch.log(shifts[name, kind] + 1e-6)
        return loss, strength, measured, shifts

    def settle(self, strength, measured, shifts):
        """Update multipliers and weights for the next step. This is the only place that waits for the device."""
        values = torch.stack([one.detach().float() for one in (*measured.values(), *shifts.values())]).tolist()
        measured, shifts = dict(zip(measured, values)), dict(zip(shifts, values[len(measured):]))
        for key, shift in shifts.items():
            self.seen.setdefault("%s %s %s" % (strength, *key), []).append(shift)
        if self.begun.steps > 0:
            self.begun.note(strength, measured, shifts)
            return
        self.limits.settle(strength, measured)
        self.aims.weigh(shifts)

    def begin(self):
        """Measure the start without learning."""
        with torch.no_grad():
            for step in range(self.begun.steps):
                self.settle(*self.looked(step * DEAR)[1:])
        self.begun.set(self.aims, self.limits)
        self.begun.steps = 0
        self.note()

    def note(self):
        shift = {key: round(sum(some) / len(some), 4) for key, some in sorted(self.seen.items())}
        self.course.note_step(shift=shift, weights=self.aims.figures(), **self.limits.figures())
        self.seen = {}

    def run(self):
        if self.begun.steps:
            self.begin()
        self.course.note(event="bounds", aims={"%s %s" % key: round(aim, 4) for key, aim in self.aims.aims.items()},
                         bounds={"%s %s" % key: round(bound, 5) for key, bound in self.limits.bounds.items()})
        self.course.began = self.course.clock()
        while self.course.goes_on():
            loss, *looked = self.looked(self.course.step)
            self.course.learn(loss)
            self.settle(*looked)
            if self.course.is_noted():
                self.note()
                self.course.save()
        self.note()
        self.course.save()


if __name__ == "__main__":
    Training(options_of()).run()
