#!/usr/bin/python3
"""Record the framework's output with the weights of the release, for tests/unit/test_protect.c.

The output is little-endian float32: the unit perturbations (before 8-bit rounding) of a test picture at each
strength, row by row, RGB.
"""

import argparse

import numpy
import torch

from export_weights import load
from generator import WAYS, shipped_perturbation

WIDTH, HEIGHT, SEED = 75, 58, 7
STRENGTHS = ("low", "standard", "high")


SMOOTH, SKY = 40, 24  # columns with a few levels; their upper rows are the grain of a sky, their lower rows skin
SKIN = (200, 145, 115)


def drawn_picture():
    """The picture of recorded_half_level() in the test."""
    y, x, c = numpy.meshgrid(numpy.arange(HEIGHT), numpy.arange(WIDTH), numpy.arange(3), indexing="ij")
    busy = (x * (3 + c) + y * (7 - 2 * c) + (x * y) // (5 + c) + (x * x * 13 + y * 31) % (17 + 6 * c)) % 256
    plain = numpy.where(y < SKY, 150 + busy % 5, numpy.array(SKIN)[c] + busy % 7)
    return numpy.where(x < SMOOTH, plain, busy).astype(numpy.uint8)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("weights")
    parser.add_argument("output")
    options = parser.parse_args()
    torch.set_num_threads(1)
    picture = torch.from_numpy(drawn_picture()).permute(2, 0, 1)[None].float() / 255
    nets, ways = load(options.weights), [WAYS[name] for name in STRENGTHS]
    with torch.no_grad():
        units = [shipped_perturbation(nets[way.network], picture, SEED, way)[0].permute(1, 2, 0) for way in ways]
    torch.stack(units).numpy().astype("<f4").tofile(options.output)


if __name__ == "__main__":
    main()
