#!/usr/bin/python3
"""Records the framework's output with the weights of the release, for tests/unit/engine/protect/test_protect.c.

The output is little-endian float32, row by row, RGB: the perturbation of a test picture at the strength standard in levels
of 255, before it is rounded.
"""

import argparse

import numpy
import torch

from export_weights import BUDGETS, load
from perceptual import scaled, unit

WIDTH, HEIGHT, SEED = 75, 58, 7
SMOOTH = 40  # columns with a few levels; the others are busy


def drawn_picture():
    """Draws the picture of recorded_half_level() in the test."""
    y, x, c = numpy.meshgrid(numpy.arange(HEIGHT), numpy.arange(WIDTH), numpy.arange(3), indexing="ij")
    busy = (x * (3 + c) + y * (7 - 2 * c) + (x * y) // (5 + c) + (x * x * 13 + y * 31) % (17 + 6 * c)) % 256
    return numpy.where(x < SMOOTH, 150 - 30 * c + busy % 5, 48 + busy % 160).astype(numpy.uint8)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights")
    parser.add_argument("output")
    options = parser.parse_args()
    torch.set_num_threads(1)
    picture = torch.from_numpy(drawn_picture()).permute(2, 0, 1)[None].float() / 255
    with torch.no_grad():
        x, d, seen = unit(load(options.weights), picture, SEED)
        moved = scaled(x, d, torch.tensor([BUDGETS["standard"]]), seen)[:, :, :HEIGHT, :WIDTH]
    (255 * moved[0].permute(1, 2, 0)).numpy().astype("<f4").tofile(options.output)


if __name__ == "__main__":
    main()
