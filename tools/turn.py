#!/usr/bin/python3
"""Convert a follower to the network of the release: its layers, and their transposes for the way up, at two scales.

This tool learns nothing. It measures slopes and gains on pictures. Smoothing, colour reduction and the weights of the
answers are linear and become part of the layers. See README.md in this folder.
"""

import argparse
import random

import torch
import torch.nn.functional as F

from course import mean_of
from generator import (ANSWERS, LOOKS, LUMA, STANDARD, Generator, bounded, doubled, perturbation, soft, texture_mask,
                       widths_of)
from pictures import batch_of, list_pictures, load_picture, split_pictures
from train import SD15

STEEP = 10       # slope of a gate times the spread of its input: nearly a step function
WIDE = 1.6       # sigma in px of the smooth part
LEVELS = (0.5, 0.18, 0.18)  # root mean squares of the drawn output times the mask, before the soft limit


def turned_2x2(weight):
    """The transpose of a 2x2 convolution of stride 2, as a 1x1 before a pixel shuffle."""
    outputs, inputs = weight.shape[:2]
    return weight.permute(1, 2, 3, 0).reshape(inputs * 4, outputs, 1, 1)


def turned_3x3(weight):
    return weight.flip(2, 3).transpose(0, 1)


def turned_last(weight, sigma, less):
    """The transpose of the first 2x2, smoothed, minus a share of its mean over about 6x6 px, as a 3x3 before a pixel
    shuffle."""
    reach = torch.arange(-2, 3).float()
    kernel = torch.exp(-reach.square() / (2 * sigma * sigma))
    kernel = kernel / kernel.sum()
    outputs = weight.shape[0]
    smooth = F.conv2d(F.pad(weight.reshape(outputs * 3, 1, 2, 2), (4, 4, 4, 4)),
                      (kernel[:, None] * kernel[None])[None, None]).reshape(outputs, 3, 6, 6)
    place = torch.arange(6) - 2.5
    wide = torch.exp(-place.square() / (2 * WIDE * WIDE))
    wide = (wide[:, None] * wide[None]) / wide.sum().square()
    smooth = smooth - less * smooth.sum((2, 3), keepdim=True) * wide
    out = torch.zeros(3, 2, 2, outputs, 3, 3)
    for i in range(2):
        for j in range(2):
            for dy in (-1, 0, 1):
                for dx in (-1, 0, 1):
                    out[:, i, j, :, dy + 1, dx + 1] = smooth[:, :, i - 2 * dy + 2, j - 2 * dx + 2].t()
    return out.reshape(12, outputs, 3, 3)


def less_colour(weight, colour):
    """Keep the luma of the output and scale its colour."""
    luma = torch.tensor(LUMA)
    mix = colour * torch.eye(3) + (1 - colour) * luma[None].expand(3, 3)
    return torch.einsum("ab,bkoij->akoij", mix, weight.reshape(3, 4, *weight.shape[1:])).reshape_as(weight)


@torch.no_grad()
def turn(drawer, follower, x, options):
    """Convert a follower to a drawer, for pictures like x."""
    for name in LOOKS + ("answer8",):
        getattr(drawer, name).weight.copy_(follower[name + ".weight"])
        getattr(drawer, name).bias.copy_(follower[name + ".bias"])
    drawer.up4.weight.copy_(turned_2x2(drawer.down8.weight))
    drawer.draw4.weight.copy_(turned_3x3(drawer.look4.weight))
    drawer.up2.weight.copy_(turned_2x2(drawer.down4.weight))
    drawer.draw2.weight.copy_(turned_3x3(drawer.look2.weight))
    drawer.draw1.weight.copy_(less_colour(turned_last(drawer.down2.weight, options.smooth, options.less), options.colour))
    seeds = turned_3x3(drawer.answer8.weight).clone()
    seeds[:, :SD15] *= options.sd15
    seeds[:, SD15:] *= options.sana
    drawer.seed8.weight.copy_(seeds)
    for name in ("seed8", "up4", "draw4", "up2", "draw2", "draw1"):
        getattr(drawer, name).bias.zero_()
    for i, seen in enumerate(drawer.see(x)[0]):
        drawer.beta[i] = options.steep / seen.std()


def gain_of(level, drawn, mask):
    return level / (drawn * mask).square().mean().sqrt()


@torch.no_grad()
def measure_gains(net, x):
    """Set each gain so that the drawn output has its level; later gains depend on earlier ones."""
    small, mask = F.avg_pool2d(x, 2), texture_mask(x)
    hides = F.avg_pool2d(mask, 2)
    noise = torch.rand(x.shape[0], ANSWERS, x.shape[2] // 16, x.shape[3] // 16) * 2 - 1
    gates, before = net.coarse.look(small)
    net.noise_gain.copy_(gain_of(LEVELS[0], net.coarse.draw(gates, noise), hides))
    moved = small + STANDARD.amplitude * bounded(net.coarse.draw(gates, noise * net.noise_gain), hides)
    net.coarse.gain.copy_(gain_of(LEVELS[1], net.coarse.moved(before, moved), hides))
    wide = soft(doubled(net.coarse.moved(before, moved) * hides)) * mask
    moved = x + STANDARD.amplitude * net.shown * wide
    _, before = net.fine.look(x)
    net.fine.gain.copy_(gain_of(LEVELS[2], net.fine.moved(before, moved), mask))


def turned(follower, x, options):
    net = Generator(widths_of(follower))
    turn(net.coarse, follower, F.avg_pool2d(x, 2), options)
    turn(net.fine, follower, x, options)
    measure_gains(net, x)
    return net


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("follower", nargs="+", help="checkpoints of train.py; the network is made of their mean")
    parser.add_argument("out")
    parser.add_argument("--images", required=True)
    parser.add_argument("--smooth", type=float, default=0.575, help="sigma in px")
    parser.add_argument("--less", type=float, default=1.18, help="share of the smooth part that is subtracted")
    parser.add_argument("--colour", type=float, default=0.9)
    parser.add_argument("--sd15", type=float, default=1.0, help="weight of the answers that match sd15")
    parser.add_argument("--sana", type=float, default=0.47, help="weight of the answers that match sana")
    parser.add_argument("--steep", type=float, default=STEEP, help="slope of the gates; 3 before finish.py")
    options = parser.parse_args()
    torch.manual_seed(20261122)
    names, _ = split_pictures(list_pictures(options.images), 20261121)
    rng = random.Random(20261122)
    pictures = [load_picture("%s/%s" % (options.images, name)) for name in rng.sample(names, 40)]
    mean, _ = mean_of(options.follower)
    net = turned(mean, batch_of(pictures, 48, 160, rng), options)
    unit = perturbation(net, batch_of(pictures, 8, 160, rng), range(8))
    print("gains %.3g %.3g %.3g, level of the result %.3f" % (net.noise_gain, net.coarse.gain, net.fine.gain, unit.square().mean().sqrt()))
    torch.save({"mean": net.state_dict()}, options.out)


if __name__ == "__main__":
    main()
