#!/usr/bin/python3
"""Teaches a follower to step where the surrogates' own gradients point.  See README.md in this folder.

train.py teaches it to answer noise as the surrogates do; here it walks its own way into pictures, as the network
that is shipped will, and at every place that it comes to it learns which way the surrogates' latents would move
furthest from there: as they are, and cut, halved or blurred.
"""

import argparse
import math
import random

import torch
import torch.nn.functional as F

from course import Course, add_encoder_options, add_options, encoders_of, mean_of, prepared
from generator import LEAK, LOOKS, WIDTHS, luma_of, texture_mask, widths_of
from pictures import batch_of, blur
from train import SD15, Follower, normed

SIDE = 128
LEVEL = 0.5     # root mean square of what is drawn, times the mask, before it is bounded
KEPT = 0.9      # of the steps before, on the way into a picture
WIDE = 1.9      # sigma in px of what is smooth
WAYS = (-1, 0, 0, 1, 1, 2, 2, 3)  # how many steps to walk first; -1: noise in the pixels instead
PROCESSING = ("crop", "crop", "crop", "half", "half", "blur")


def strongest(values, outgoing, count):
    """The channels that what comes next hears most of."""
    loud = values.std(dim=(0, 2, 3)) * outgoing.square().sum((0, 2, 3)).sqrt()
    return loud.topk(count).indices.sort().values


@torch.no_grad()
def narrowed(state, x, widths):
    """Keeps the strongest channels of a wider follower where it has more than widths."""
    wide = Follower(widths_of(state))
    wide.load_state_dict(state)
    values, state = x * 2 - 1, dict(state)
    names = LOOKS + ("answer8",)
    for place, count in enumerate(widths):
        values = F.leaky_relu(getattr(wide, names[place])(values), LEAK)
        if values.shape[1] > count:
            keep = strongest(values, getattr(wide, names[place + 1]).weight, count)
            for part in (".weight", ".bias"):
                state[names[place] + part] = state[names[place] + part][keep]
            state[names[place + 1] + ".weight"] = state[names[place + 1] + ".weight"][:, keep]
    return state


class Shaping:
    """What becomes of what is drawn: the linear part stands in the last layer of the network that is shipped."""

    def __init__(self, smooth, less, colour):
        self.smooth, self.less, self.colour = smooth, less, colour

    def __call__(self, drawn, mask):
        smooth = blur(drawn, self.smooth)
        smooth = smooth - self.less * blur(smooth, WIDE)
        luma = luma_of(smooth)
        raw = normed((luma + self.colour * (smooth - luma)) * mask) * LEVEL
        return normed(raw * torch.rsqrt(1 + raw * raw) * mask)


def own_step(net, x, d, create_graph=False):
    """Which way the change of the follower's answers grows fastest."""
    moved = d.detach().requires_grad_(True)
    change = net(x + moved) - net(x)
    return torch.autograd.grad(0.5 * change.square().sum(), moved, create_graph=create_graph)[0]


def way(net, x, mask, shaping, rng, amplitude):
    """A perturbation as the network that is shipped comes by it, after some of its steps."""
    steps = rng.choice(WAYS)
    if steps < 0:
        return steps, shaping(torch.randn_like(x), mask)
    start = x.clone().requires_grad_(True)
    answer = net(start)
    drawn = torch.autograd.grad((answer * (torch.rand_like(answer) * 2 - 1)).sum(), start)[0]
    d, gathered = shaping(drawn, mask), 0
    for _ in range(steps):
        gathered = KEPT * gathered + normed(own_step(net, x, d * amplitude))
        d = shaping(gathered, mask)
    return steps, d


def processed(kind, rng):
    """A picture as somebody may hand it on."""
    if kind == "crop":
        top, left = rng.randrange(1, 32), rng.randrange(1, 32)
        return lambda x: F.pad(x, (0, left, 0, top), mode="replicate")[:, :, top:, left:]
    if kind == "half":
        return lambda x: F.avg_pool2d(blur(x, 0.6), 2)
    return lambda x: blur(x, 1.0)


def teachers_step(encoders, weights, x, d, rng):
    """Which way the logarithms of the surrogates' shifts grow fastest, plain and mostly after one processing, too."""
    moved = d.detach().requires_grad_(True)
    kinds = [(lambda x: x, 1.0)]
    if rng.random() < 0.9:
        kinds.append((processed(rng.choice(PROCESSING), rng), 0.9))
    total = 0
    for process, share in kinds:
        before, after = process(x), process(x + moved)
        for name, encoder in encoders.items():
            with torch.no_grad():
                latents = encoder(before)
            shift = (encoder(after) - latents).flatten(1).square().sum(1)
            total = total + share * weights[name] * torch.log(shift + 1e-9).sum()
    return torch.autograd.grad(total, moved)[0]


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, steps=8000, rate=2e-3, last_rate=2e-5, seed=20261122)
    add_encoder_options(parser, sana=0.5)
    parser.add_argument("--smooth", type=float, default=0.6, help="as for turn.py")
    parser.add_argument("--less", type=float, default=1.1, help="as for turn.py")
    parser.add_argument("--colour", type=float, default=0.7, help="as for turn.py")
    return parser.parse_args()


def started(options, pictures, device):
    state, parts = mean_of(options.start)
    if "directions" in parts[0]:  # of train.py: as many answers like sana's as are wanted stand for more than they are
        loud = torch.full((state["answer8.bias"].shape[0],), math.sqrt(2.5))
        loud[:SD15] = 1
        state["answer8.weight"] = state["answer8.weight"] * loud[:, None, None, None]
        state["answer8.bias"] = state["answer8.bias"] * loud
    net = Follower()
    net.load_state_dict(narrowed(state, batch_of(pictures, 32, SIDE, random.Random(1)), WIDTHS))
    return net.to(device, memory_format=torch.channels_last)


def main():
    options = options_of()
    rng, device, pictures = prepared(options)
    encoders, weights = encoders_of(options, device)
    shaping = Shaping(options.smooth, options.less, options.colour)
    net = started(options, pictures, device)
    course = Course(net, options, pictures=len(pictures), device=device.type)
    cosines = {steps: [] for steps in WAYS}
    while course.goes_on():
        x = batch_of(pictures, 5, SIDE, rng).to(device).contiguous(memory_format=torch.channels_last)
        mask, amplitude = texture_mask(x), 10 ** (-rng.uniform(33, 41) / 20)
        steps, d = way(course.mean, x, mask, shaping, rng, amplitude)
        wanted = shaping(teachers_step(encoders, weights, x, d * amplitude, rng), mask)
        own = shaping(own_step(net, x, d * amplitude, create_graph=True), mask)
        cosine = (own * wanted).mean()
        course.learn(1 - cosine)
        cosines[steps].append(cosine.item())
        if course.is_noted():
            course.note_step(cosine={steps: round(sum(some) / max(1, len(some)), 3) for steps, some in cosines.items()})
            cosines = {steps: [] for steps in WAYS}
    course.save()


if __name__ == "__main__":
    main()
