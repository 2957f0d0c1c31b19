#!/usr/bin/python3
"""Trains the turned network as a whole on what counts: the shift itself, also after processing.  See README.md here.

What is seen of it is limited: every measure of limits.py has a bound, and a multiplier that rises while the bound is
passed and falls while it is not.  Without them this training draws few and strong strokes, lines and gratings.
"""

import argparse
import math

import torch
import torch.nn.functional as F

from coding import coded, coded_through
from course import Course, add_encoder_options, add_options, encoders_of, mean_of, prepared
from encoders import latent_shift
from generator import ANSWERS, FAINT, NETWORKS, STRONG, WAYS, dithered, grain_of, grain_places, network_of, peaks, texture_mask
from limits import dear_measures, measures
from pictures import batch_of, blur, patched

SIDE = 160
COUNT = 3  # crops a step
CLIP = 20.0  # against gradients that are wild; at 1 nearly all are clipped, and what a shift weighs no longer counts
DEAR = 4  # in every so many steps what costs most is measured, too
SEEN = 128  # px of a crop that is left when a picture was cut
PROCESSING = ("none",) * 6 + ("cut",) * 7 + ("half",) * 6 + ("blurred",) * 5 + ("jpeg",) * 3 + ("webp",) * 6
STRENGTHS = {FAINT: ("low", "standard", "standard", "standard"), STRONG: ("high",)}  # a step takes one of them
CODECS = {"jpeg": (("JPEG", 50), ("JPEG", 50), ("JPEG", 75)), "webp": (("WEBP", 70), ("WEBP", 75), ("WEBP", 75))}
DRAWS = ("seed8", "up4", "draw4", "up2", "draw2", "draw1")
LIMITS = {  # bound, multiplier to begin with, its pace
    "ssim": (76, 0.2, 0.03),
    "chroma": (22, 0.015, 0.02),
    "blue": (100, 0.002, 0.02),
    "growth": (245, 0.05, 0.04),
    "visibility": (85, 0.02, 0.04),
    "flat": (0.48, 0.001, 0.04),
    "unmasking": (1.95, 0.002, 0.03),
    "sameness": (0.25, 0.02, 0.015),
    "tint": (0.022, 0.01, 0.04),
    "pattern": (28, 0.1, 0.01),
    "smooth": (0.4, 0.02, 0.04),
    "lines": (0.105, 0.06, 0.02),
}
EASE = {  # at a strength, what a bound is multiplied by: more may be seen at high; MS-SSIM has least room there and at low
    "low": {"ssim": 0.757},
    "high": {"ssim": 0.85, "visibility": 1.3, "smooth": 1.8, "flat": 1.2, "sameness": 1.4, "lines": 1.5, "pattern": 3},
}
AIMS = {  # shifts of crops, means over the strengths, each as far off as the others
    "sd15": {"none": 0.338, "cut": 0.276, "half": 0.240, "blurred": 0.262, "jpeg": 0.290, "webp": 0.276},
    "sana": {"none": 0.352, "cut": 0.378, "half": 0.225, "blurred": 0.260, "jpeg": 0.300, "webp": 0.300},
}
FIRST = {  # what a shift weighs to begin with
    "sd15": {"none": 1.0, "cut": 2.6, "half": 2.6, "blurred": 2.6, "jpeg": 0.05, "webp": 0.9},
    "sana": {"none": 1.8, "cut": 2.2, "half": 0.5, "blurred": 0.02, "jpeg": 0.02, "webp": 0.05},
}
CATCH_UP = 0.003  # how fast the weight of one that stays behind grows


class Aims:
    """How much each shift weighs: the more, the further it stays behind its aim; 1 on the average.  Held ones stay."""

    def __init__(self, weights, held):
        self.held = held
        self.weights = {(name, kind): weights[name] * FIRST[name][kind] for name in weights for kind in AIMS[name]}

    def weigh(self, name, kind, shift):
        seldom = len(PROCESSING) / PROCESSING.count(kind)
        behind = min(1, max(-1, math.log(AIMS[name][kind] / max(shift, 1e-3))))
        self.weights[name, kind] *= math.exp(CATCH_UP * seldom * behind)
        mean = sum(self.weights.values()) / len(self.weights)
        self.weights = {key: max(0.02, value / mean) for key, value in self.weights.items()}
        return self.held.get((name, kind), self.weights[name, kind])

    def figures(self):
        return {"%s %s" % key: round(value, 3) for key, value in self.weights.items()}


class Limits:
    """Lagrange multipliers in logarithms: what is charged for each measure, as a share of its bound."""

    def __init__(self, scales):
        self.bounds = {name: bound * scales.get(name, 1) for name, (bound, _, _) in LIMITS.items()}
        self.multipliers = {name: first for name, (_, first, _) in LIMITS.items()}
        self.shares = {name: [] for name in LIMITS}

    def charge(self, values, drawn):
        """drawn: 1 for pictures that anything could be drawn on, else 0."""
        total = 0
        for name, value in values.items():
            share = (value * drawn).mean() / self.bounds[name]
            total = total + self.multipliers[name] * share
            self.shares[name].append(share.item())
            moved = self.multipliers[name] * math.exp(LIMITS[name][2] * (min(10, share.item()) - 1))
            self.multipliers[name] = min(30, max(0.001, moved))
        return total

    def figures(self):
        shares = {name: round(sum(some) / max(1, len(some)), 3) for name, some in self.shares.items()}
        self.shares = {name: [] for name in LIMITS}
        return dict(shares=shares, multipliers={name: round(value, 4) for name, value in self.multipliers.items()})


def passed_on(kind, x, y, rng):
    """Both pictures as somebody may hand them on."""
    if kind == "none":
        return x, y
    if kind == "cut":  # from where an encoder's grid of 8 px fits least
        top, left = rng.randrange(3, 6), rng.randrange(3, 6)
        return x[:, :, top:top + SEEN, left:left + SEEN], y[:, :, top:top + SEEN, left:left + SEEN]
    if kind == "half":
        whole = (x[:, :, :SEEN, :SEEN], y[:, :, :SEEN, :SEEN])  # sana takes multiples of 32 px
        return tuple(F.interpolate(z, scale_factor=0.5, mode="bicubic", antialias=True) for z in whole)
    if kind == "blurred":
        return blur(x, 1.0), blur(y, 1.0)
    how = rng.choice(CODECS[kind])
    return coded(x, *how), coded_through(y, *how)


def made_up(moved, most, amplitude):
    """How many times as strong all has to be where what moves furthest is cut off."""
    times = 1.0
    for _ in range(3):
        times *= (amplitude / ((times * moved).clamp(-most, most).square().mean().sqrt() + 1e-6)).clamp_max(2).item()
    return min(times, 4)


def protected(net, x, strength, rng, is_dear):
    """Pictures at a strength, rounded with gradients straight through; what is seen of it; and on which of
    them anything was drawn."""
    way, ease = WAYS[strength], EASE.get(strength, {})
    noise = torch.rand(x.shape[0], ANSWERS, SIDE // 16, SIDE // 16, device=x.device) * 2 - 1
    unit = net(x, noise, way)
    hashed = torch.randint(256, (x.shape[0], grain_places(SIDE), grain_places(SIDE)), device=x.device)
    whole = dithered(x, unit, grain_of(net.grain, hashed), way)
    power = whole.square().mean((1, 2, 3), keepdim=True)
    amplitude = 10 ** (-(way.psnr_db + rng.uniform(-0.5, 0.5)) / 20)
    most = F.interpolate(peaks(x, way), scale_factor=4, mode="nearest") / 255
    scale = (amplitude * torch.rsqrt(power.mean() + 1e-9)).clamp_max(40)
    scale = scale * made_up(scale.detach() * whole.detach(), most, amplitude)
    y = x + (scale * whole).clamp(-most, most)
    y = y + ((y.clamp(0, 1) * 255).round() / 255 - y).detach()
    drawn = (scale * unit).clamp(-most, most)
    measured = measures(x, y, unit, drawn, texture_mask(x, way))
    if is_dear:
        measured.update(dear_measures(x, y, unit, drawn, net(x[:1], noise[1:2], way)))
    return y, {name: value / ease.get(name, 1) for name, value in measured.items()}, (power.flatten() > 1e-6).float()


def shifts_of(encoders, x, y):
    """In bfloat16, which takes half the time and is fine enough for shifts of this size."""
    shifts = {}
    for name, encoder in encoders.items():
        with torch.autocast(x.device.type, dtype=torch.bfloat16):
            with torch.no_grad():
                before = encoder(x)
            after = encoder(y)
        shifts[name] = latent_shift(after.float(), before.float())
    return shifts


def groups_of(net):
    """Each layer learns at a rate that goes with its size.  What draws has no biases: they would be stamps."""
    for _, drawer in net.drawers():
        for name in DRAWS:
            getattr(drawer, name).bias.requires_grad_(False)
    return [dict(params=[one], scale=max(1e-3, one.detach().square().mean().sqrt().item()))
            for one in net.parameters() if one.requires_grad]


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, steps=6000, rate=2e-3, last_rate=1e-5, seed=20261122)
    add_encoder_options(parser, sana=1.0)
    parser.add_argument("--network", choices=NETWORKS, default=FAINT, help="which of the two it will be")
    parser.add_argument("--grain", help="the patterns that grain.py learned; otherwise those of the checkpoint, none after turn.py")
    parser.add_argument("--limit", nargs=2, action="append", default=[], metavar=("NAME", "TIMES"),
                        help="a bound of LIMITS, times this")
    parser.add_argument("--held", nargs=3, action="append", default=[], metavar=("ENCODER", "KIND", "WEIGHT"),
                        help="a weight of FIRST that stays as it is; less than 0, and of what was moved the others keep more")
    options = parser.parse_args()
    for name, kind, _ in options.held:
        if kind not in FIRST.get(name, {}):
            parser.error("--held: there is no %s %s" % (name, kind))
    for name, _ in options.limit:
        if name not in LIMITS:
            parser.error("--limit: there is no %s; there are %s" % (name, ", ".join(LIMITS)))
    return options


def main():
    options = options_of()
    rng, device, pictures = prepared(options)
    encoders, weights = encoders_of(options, device)
    state, _ = mean_of(options.start)
    net = network_of(state)
    if options.grain:
        net.grain.copy_(torch.load(options.grain)["grain"])
    net.to(device, memory_format=torch.channels_last)
    course = Course(net, options, groups_of(net), CLIP, pictures=len(pictures), device=device.type)
    held = {(name, kind): float(weight) for name, kind, weight in options.held}
    aims = Aims({name: weights[name] for name in encoders}, held)
    limits, seen = Limits({name: float(times) for name, times in options.limit}), {}
    while course.goes_on():
        x = patched(batch_of(pictures, COUNT, SIDE, rng).to(device), rng).contiguous(memory_format=torch.channels_last)
        y, measured, drawn = protected(net, x, rng.choice(STRENGTHS[options.network]), rng, course.step % DEAR == 0)
        kind = rng.choice(PROCESSING)
        loss = limits.charge(measured, drawn)
        for name, shift in shifts_of(encoders, *passed_on(kind, x, y, rng)).items():
            loss = loss - aims.weigh(name, kind, shift.mean().item()) * torch.log((shift * drawn).mean() + 1e-6)
            seen.setdefault("%s %s" % (name, kind), []).append(shift.mean().item())
        course.learn(loss)
        if course.is_noted():
            shift = {key: round(sum(some) / len(some), 3) for key, some in sorted(seen.items())}
            course.note_step(shift=shift, weights=aims.figures(), **limits.figures())
            course.save()
            seen = {}
    course.save()


if __name__ == "__main__":
    main()
