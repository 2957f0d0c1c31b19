#!/usr/bin/python3
"""Train a small encoder, the follower, to answer noise as the surrogates do. See README.md in this folder.

For each picture it learns the difference of the answers to `x` and `x + d`, where d is small. Then turn.py converts
it to the network of the release.
"""

import argparse
import math
import random

import torch
import torch.nn.functional as F
from torch import nn

from course import NOTED, Course, add_options, mean_of, prepared
from devices import shortened
from encoders import FILES, load_encoder
from generator import ANSWERS, LEAK, WIDTHS, Encoder, luma_of, texture_mask
from pictures import batch_of, blur

TAUGHT = (16, 32, 32, 64, 64)  # widths of the follower; match.py keeps the strongest channels
SD15 = 4        # answers that match the latents of sd15; the others match sana's features at an eighth
SANA_DEPTH = 9  # layers of sana down to an eighth
NAMES = ("sd15", "sana")
INSIDE = (slice(None), slice(None), slice(1, -1), slice(1, -1))


class Follower(Encoder):
    """The encoder without the drawer, with random initial weights."""

    def __init__(self, widths=WIDTHS):
        super().__init__(widths)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, LEAK)
                nn.init.zeros_(layer.bias)

    def forward(self, x):
        return self.see(x)[1]


class Teachers:
    """The target answers of the follower: sd15's latents, and the principal directions of sana's features at an
    eighth under noise. Each is scaled to a change of about one."""

    def __init__(self, folder, device):
        self.sd15 = load_encoder("sd15", "%s/%s" % (folder, FILES["sd15"])).to(device, memory_format=torch.channels_last)
        sana = load_encoder("sana", "%s/%s" % (folder, FILES["sana"]))[:SANA_DEPTH]
        self.sana = sana.to(device, memory_format=torch.channels_last)
        self.directions, self.scales = None, None

    @torch.no_grad()
    def prepare(self, pictures, rng, device):
        """Find directions and scales with shaped noise of 35 dB."""
        total, powers = 0, [0.0, 0.0]
        for _ in range(30):
            x = batch_of(pictures, 8, 96, rng).to(device)
            y = x + shaped(torch.randn_like(x), texture_mask(x)) * 10 ** (-35 / 20)
            moved = (self.sana(y) - self.sana(x))[INSIDE].permute(1, 0, 2, 3).flatten(1)
            total = total + moved @ moved.t()
            powers[0] += (self.sd15(y) - self.sd15(x))[INSIDE].square().sum(1).mean().item() / 30
            powers[1] += moved.square().sum(0).mean().item() / 30
        _, vectors = torch.linalg.eigh(total)
        self.directions = vectors.flip(1)[:, :ANSWERS - SD15].t().contiguous()[:, :, None, None]
        self.scales = [1 / math.sqrt(power) for power in powers]

    @torch.no_grad()
    def __call__(self, x):
        with shortened(x.device):
            deep = self.sana(x)
        return torch.cat([self.sd15(x) * self.scales[0], F.conv2d(deep.float(), self.directions) * self.scales[1]], 1)


def normed(d):
    return d / d.square().mean(dim=(1, 2, 3), keepdim=True).sqrt().clamp_min(1e-12)


def shaped(d, mask):
    """A direction shaped as a masked attack: under the mask, band-limited luma, reduced colour."""
    d = d * mask
    luma = luma_of(d)
    chroma = d - luma
    luma = luma - 0.6 * blur(luma, 2.25)
    chroma = (chroma - 0.9 * blur(chroma, 2.2)) * 0.7
    return normed(blur(luma + chroma, 0.7) * mask)


def steepest(net, x, d):
    """The direction of d in which |net(x + d) - net(x)| grows fastest."""
    moved = d.detach().requires_grad_(True)
    apart = net(x + moved) - net(x)
    gradient, = torch.autograd.grad(0.5 * torch.log(apart.flatten(1).square().sum(1) + 1e-9).sum(), moved)
    return gradient


def amplitude(rng):
    return 10 ** (-rng.uniform(30, 40) / 20)


def perturbed(net, x, rng):
    """Add noise: half of it shaped, half smoothed at random. In three of ten cases the follower's own step replaces
    it."""
    mask = texture_mask(x)
    d = torch.randn_like(x)
    d = shaped(d, mask) if rng.random() < 0.5 else normed(blur(d, rng.uniform(0.4, 1.5)))
    d = d * amplitude(rng)
    if rng.random() < 0.3:
        d = shaped(steepest(net, x, d), mask) * amplitude(rng)
    return x + d


def mismatch(own, wanted):
    """The error as a share of the target. Cells are weighted by the inverse root of their size, so that the largest
    cells do not dominate."""
    weight = 1 / (wanted.square().mean(1, keepdim=True) + 0.1 * wanted.square().mean()).sqrt()
    return ((own - wanted).square() * weight).mean() / (wanted.square() * weight).mean()


def losses_of(net, teachers, x, y):
    both = torch.cat([x, y])
    before, after = teachers(both).chunk(2)
    own_before, own_after = net(both).chunk(2)
    own, wanted = (own_after - own_before)[INSIDE], (after - before)[INSIDE]
    return mismatch(own[:, :SD15], wanted[:, :SD15]), mismatch(own[:, SD15:], wanted[:, SD15:])


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, steps=30000, rate=3e-3, last_rate=3e-5, seed=20261121)
    parser.add_argument("--use", default="sd15,sana", help="encoders to learn from; both are measured")
    parser.add_argument("--start", nargs="+", help="checkpoints; training starts from their mean")
    return parser.parse_args()


def started(options, teachers, pictures, device):
    """The initial network. It also sets the teachers' directions and scales, from the checkpoints or computed from
    pictures."""
    net = Follower(TAUGHT)
    if options.start:
        state, parts = mean_of(options.start)
        net.load_state_dict(state)
        teachers.directions, teachers.scales = parts[0]["directions"].to(device), parts[0]["scales"]
    else:
        teachers.prepare(pictures, random.Random(20261121), device)
    return net.to(device, memory_format=torch.channels_last)


def main():
    options = options_of()
    rng, device, pictures = prepared(options)
    teachers = Teachers(options.encoders, device)
    net = started(options, teachers, pictures, device)
    course = Course(net, options, pictures=len(pictures), device=device.type,
                    parameters=sum(p.numel() for p in net.parameters()))
    totals = dict.fromkeys(NAMES, 0.0)
    while course.goes_on():
        x = batch_of(pictures, 8, 96, rng).to(device).contiguous(memory_format=torch.channels_last)
        losses = dict(zip(NAMES, losses_of(net, teachers, x, perturbed(net, x, rng))))
        course.learn(sum(losses[name] for name in options.use.split(",")))
        for name in NAMES:
            totals[name] += losses[name].item() / NOTED
        if course.is_noted():
            course.note_step(**{"mismatch_" + name: round(total, 4) for name, total in totals.items()})
            totals = dict.fromkeys(NAMES, 0.0)
    course.save(directions=teachers.directions.cpu(), scales=teachers.scales)


if __name__ == "__main__":
    main()
