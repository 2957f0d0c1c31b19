#!/usr/bin/python3
"""Fits ADAPTATION and MASKING of visibility.py, and the budgets of the strengths, to butteraugli.

    masking_fit.py --images PICTURES --weights data/protect.weights

The perturbations are the engine's: their visibility is even over a picture by the model. Where the model is wrong, butteraugli is
not even. The constants with the smallest spread of butteraugli over tiles and pictures are the fit. The spread is the standard
deviation of the logarithm of the 3-norm. The pictures are photographs and paintings of the training part.

The last lines are the budgets within the bars of the strengths. The mean is that of photographs; the worst picture and the
largest peak can be drawings.
"""

import argparse
import itertools
import os
import random
import tempfile

import numpy
import torch
import torch.nn.functional as F

import export_weights
import visibility
from perceptual import MARGIN, colored_step, scaled
from pictures import list_pictures, load_picture, split_pictures

ADAPTATIONS, MASKINGS = (-0.3, -0.2, -0.1, 0.0, 0.2), (0.25, 0.35, 0.45, 0.6)
DRAWN = ("own", "tenniel")                                                   # file names that begin so
BARS = {"low": (0.8, 1.0, 2.5), "standard": (1.2, 1.5, 4.0), "high": (1.7, 2.1, 5.5)}  # butteraugli: mean, worst, peak
TILE, AROUND = 64, 16  # px


def tiles_of(x, y, folder):
    for top, left in itertools.product(range(0, x.shape[0], TILE), range(0, x.shape[1], TILE)):
        part = numpy.s_[max(0, top - AROUND):top + TILE + AROUND, max(0, left - AROUND):left + TILE + AROUND]
        yield visibility.butteraugli(numpy.ascontiguousarray(x[part]), numpy.ascontiguousarray(y[part]), folder)[0]


def results_of(network, pictures, gradients, budget):
    """Returns (original, result) for the constants that visibility has now."""
    for picture, gradient in zip(pictures, gradients):
        x = visibility.tensor_of(picture)
        seen = visibility.Visibility(x)
        d = scaled(x, colored_step(network, x, gradient, seen), torch.tensor([budget]), seen)
        yield picture, visibility.picture_of(x + d)


def middle(picture, side):
    top, left = (max(0, (edge - side) // 2) for edge in picture.shape[:2])
    picture = picture[top:top + side, left:left + side]
    return numpy.ascontiguousarray(picture[:picture.shape[0] // TILE * TILE, :picture.shape[1] // TILE * TILE])


def gradient_of(network, picture, seed):
    wide = F.pad(visibility.tensor_of(picture), (MARGIN,) * 4, mode="replicate")
    noise = network.noise(wide, torch.Generator().manual_seed(seed))
    return network.gradient(wide, noise)[:, :, MARGIN:-MARGIN, MARGIN:-MARGIN]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", required=True)
    parser.add_argument("--weights", required=True)
    parser.add_argument("--count", type=int, default=24, help="photographs")
    parser.add_argument("--drawings", type=int, default=12)
    parser.add_argument("--side", type=int, default=384, help="px of the crops, a multiple of 64")
    parser.add_argument("--budget", type=float, default=1.5)
    parser.add_argument("--budgets-only", action="store_true", help="keep the constants")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    network = export_weights.load(options.weights)
    names, _ = split_pictures(list_pictures(options.images), 20261121)
    rng = random.Random(5)
    chosen = (rng.sample([name for name in names if name.startswith(DRAWN) == is_drawn], count)
              for is_drawn, count in ((False, options.count), (True, options.drawings)))
    pictures = [middle(load_picture(os.path.join(options.images, name)), options.side) for part in chosen for name in part]
    gradients = [gradient_of(network, picture, seed) for seed, picture in enumerate(pictures)]
    photographs = pictures[:options.count]
    best = (numpy.inf, visibility.ADAPTATION, visibility.MASKING)
    with tempfile.TemporaryDirectory() as folder:
        for pair in () if options.budgets_only else itertools.product(ADAPTATIONS, MASKINGS):
            visibility.ADAPTATION, visibility.MASKING = pair
            norms = [norm for x, y in results_of(network, photographs, gradients, options.budget) for norm in tiles_of(x, y, folder)]
            spread = numpy.log(norms).std()
            best = min(best, (spread,) + pair)
            print("adaptation %5.2f masking %.2f: spread %.3f" % (pair + (spread,)), flush=True)
        _, visibility.ADAPTATION, visibility.MASKING = best
        print("ADAPTATION = %.2f, MASKING = %.2f" % best[1:])
        for strength, bars in BARS.items():
            budget = options.budget
            for _ in range(4):
                rows = numpy.array([visibility.butteraugli(x, y, folder)
                                    for x, y in results_of(network, pictures, gradients, budget)])
                found = rows[:options.count, 0].mean(), rows[:, 0].max(), rows[:, 1].max()
                last, budget = budget, budget * min(bar / value for bar, value in zip(bars, found))
            print("%-8s budget %.2f: butteraugli mean %.2f, worst %.2f, peak %.2f" % ((strength, last) + found), flush=True)


if __name__ == "__main__":
    main()
