#!/usr/bin/python3
"""A third encoder, that no training of the engine uses: it measures the transfer of the protection to an unknown encoder.

    autoencoder.py --images PICTURES --out third.pt --minutes 10

It is a convolutional autoencoder like those of latent diffusion models (Rombach et al.: High-resolution image synthesis with
latent diffusion models, CVPR 2022), but smaller: an eighth of the size, four channels. The loss is the mean absolute error.
"""

import argparse
import math
import os
import random
import time

import numpy
import torch
import torch.nn.functional as F
from torch import nn

from pictures import list_pictures, load_picture, random_crop, split_pictures

SIDE, COUNT, RATE = 128, 6, 1e-3  # px of a crop, crops a step, learning rate
WIDTHS, LATENTS = (24, 48, 96), 4


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one, self.two = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.GroupNorm(8, width)

    def forward(self, x):
        return x + self.two(F.silu(self.one(F.silu(self.norm(x)))))


def encoder_net():
    """Maps RGB -1..1 in multiples of 8 px to four channels."""
    layers, before = [], 3
    for width in WIDTHS:
        layers += [nn.Conv2d(before, width, 3, 2, 1), Residual(width)]
        before = width
    return nn.Sequential(*layers, nn.Conv2d(before, LATENTS, 3, padding=1))


def decoder_net():
    layers, before = [nn.Conv2d(LATENTS, WIDTHS[-1], 3, padding=1)], WIDTHS[-1]
    for width in reversed((WIDTHS[0],) + WIDTHS[:-1]):
        layers += [Residual(before), nn.Conv2d(before, width * 4, 3, padding=1), nn.PixelShuffle(2)]
        before = width
    return nn.Sequential(*layers, nn.Conv2d(before, 3, 3, padding=1))


def load_autoencoder(path):
    """Returns the frozen encoder of RGB 0..1. An older file contains the encoder only."""
    state, encoder = torch.load(path), encoder_net()
    encoder.load_state_dict(state.get("encoder", state))
    encoder.eval().requires_grad_(False)
    return lambda x: encoder(x * 2 - 1)


def has_decoder(path):
    return "decoder" in torch.load(path)


def load_autodecoder(path):
    """Returns the frozen decoder to RGB 0..1."""
    decoder = decoder_net()
    decoder.load_state_dict(torch.load(path)["decoder"])
    decoder.eval().requires_grad_(False)
    return lambda z: decoder(z) / 2 + 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--minutes", type=float, default=10, help="of processor time")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rng, begun, step = random.Random(1), time.process_time(), 0
    names, _ = split_pictures(list_pictures(options.images), 20261121)
    encoder, decoder = encoder_net(), decoder_net()
    parameters = list(encoder.parameters()) + list(decoder.parameters())
    adam = torch.optim.Adam(parameters, RATE)
    share = 0.0
    while share < 1:
        crops = [random_crop(load_picture(os.path.join(options.images, rng.choice(names))), SIDE, rng) for _ in range(COUNT)]
        x = torch.from_numpy(numpy.ascontiguousarray(numpy.stack(crops))).permute(0, 3, 1, 2).float() / 255
        adam.param_groups[0]["lr"] = RATE * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * share)))
        error = (decoder(encoder(x * 2 - 1)) - (x * 2 - 1)).abs().mean()
        adam.zero_grad()
        error.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        adam.step()
        step, share = step + 1, (time.process_time() - begun) / 60 / options.minutes
        if step % 100 == 0:
            print("%d steps, %.0f s: error %.4f" % (step, time.process_time() - begun, error.item()), flush=True)
    torch.save({"encoder": encoder.state_dict(), "decoder": decoder.state_dict()}, options.out)


if __name__ == "__main__":
    main()
