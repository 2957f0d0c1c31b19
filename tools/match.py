#!/usr/bin/python3
"""Train a follower to step along the surrogates' own gradients. See README.md in this folder.

A follower of train.py predicts the surrogates' response to noise. Here the follower computes perturbations step by
step, as the network of the release does. At every step it learns the direction that shifts the surrogates' latents
most, unprocessed and after a crop, halving or blur.
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
LEVEL = 0.5     # root mean square of the drawn output times the mask, before the soft limit
KEPT = 0.9      # momentum of earlier steps
WIDE = 1.9      # sigma in px of the smooth part
WAYS = (-1, 0, 0, 1, 1, 2, 2, 3)  # number of steps before the gradient; -1: noise in the pixels instead
PROCESSING = ("crop", "crop", "crop", "half", "half", "blur")


def strongest(values, outgoing, count):
    """The channels with most effect on the next layer."""
    loud = values.std(dim=(0, 2, 3)) * outgoing.square().sum((0, 2, 3)).sqrt()
    return loud.topk(count).indices.sort().values


@torch.no_grad()
def narrowed(state, x, widths):
    """Reduce a wider follower to these widths; keep the strongest channels."""
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
    """Post-processing of the drawn output. Its linear part is in the last layer of the network of the release."""

    def __init__(self, smooth, less, colour):
        self.smooth, self.less, self.colour = smooth, less, colour

    def __call__(self, drawn, mask):
        smooth = blur(drawn, self.smooth)
        smooth = smooth - self.less * blur(smooth, WIDE)
        luma = luma_of(smooth)
        raw = normed((luma + self.colour * (smooth - luma)) * mask) * LEVEL
        return normed(raw * torch.rsqrt(1 + raw * raw) * mask)


def own_step(net, x, d, create_graph=False):
    """The direction in which the change of the follower's answer grows fastest."""
    moved = d.detach().requires_grad_(True)
    change = net(x + moved) - net(x)
    return torch.autograd.grad(0.5 * change.square().sum(), moved, create_graph=create_graph)[0]


def way(net, x, mask, shaping, rng, amplitude):
    """A perturbation as the network of the release computes it, after some of its steps."""
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
    """A picture as a third party may process it."""
    if kind == "crop":
        top, left = rng.randrange(1, 32), rng.randrange(1, 32)
        return lambda x: F.pad(x, (0, left, 0, top), mode="replicate")[:, :, top:, left:]
    if kind == "half":
        return lambda x: F.avg_pool2d(blur(x, 0.6), 2)
    return lambda x: blur(x, 1.0)


def teachers_step(encoders, weights, x, d, rng):
    """The direction in which the logarithms of the surrogates' shifts grow fastest. It covers the unprocessed picture
    and usually one kind of processing."""
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
    if "directions" in parts[0]:  # of train.py: the answers stand for more features of sana than they are
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
