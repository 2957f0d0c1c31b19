#!/usr/bin/python3
"""Decoders for the surrogate encoders, to see what a model reads from a picture: the picture after encoder and decoder.

    roundtrip.py --kind sana --images PICTURES --encoders ENCODERS --out sana.pt --minutes 15

A generative model redraws a picture from its latent code (image to image; Rombach et al.: High-resolution image synthesis with
latent diffusion models, CVPR 2022).  With no noise added this is the round trip.  A decoder is a base, one layer of random
features whose linear output has the least square error, and residual blocks, which are trained for the minutes given.  It is
small and sees few pictures, so it draws softly.  The decoders are made for doc/protection.md and never ship.
"""

import argparse
import functools
import math
import os
import random
import time

import numpy
import torch
import torch.nn.functional as F
from torch import nn

from autoencoder import has_decoder, load_autodecoder, load_autoencoder
from encoders import FILES, Block, load_encoder
from pictures import list_pictures, load_picture, random_crop, split_pictures

RATE, EDGES = 7e-4, 0.5  # learning rate; weight of the error of differences between neighbours
SIDE, WIDTH, RIDGE = 256, 32, 1e-4  # px of the crops of the base; channels of the blocks; share of the mean feature's square
KINDS = {  # latent channels, px of a cell, random features, cells a feature sees, crops a picture, px of a training crop, crops a step
    "sana": (32, 32, 1200, 3, 5, 160, 3),
    "sd15": (4, 8, 1000, 5, 2, 128, 4),
}


class Decoder(nn.Module):
    """Maps a latent code to RGB 0..1."""

    def __init__(self, kind):
        super().__init__()
        latents, cell, features, sees = KINDS[kind][:4]
        self.normal = nn.BatchNorm2d(latents, affine=False, momentum=None)
        self.features = nn.Conv2d(latents, features, sees, padding=sees // 2, padding_mode="replicate")
        nn.init.normal_(self.features.weight, std=(latents * sees * sees) ** -0.5)
        nn.init.normal_(self.features.bias)
        self.output, self.cell = nn.Conv2d(features, 3 * cell * cell, 1), cell
        self.blocks = nn.Sequential(nn.Conv2d(12, WIDTH, 3, padding=1), nn.ReLU(), Block(WIDTH), Block(WIDTH),
                                    nn.Conv2d(WIDTH, 12, 3, padding=1))
        for layer in (self.blocks[-1].weight, self.blocks[-1].bias):
            nn.init.zeros_(layer)

    def base(self, z):
        return F.pixel_shuffle(self.output(self.features(self.normal(z)).relu()), self.cell)

    def forward(self, z):
        x = self.base(z)
        return x + F.pixel_shuffle(self.blocks(F.pixel_unshuffle(x, 2)), 2)


def load_decoder(kind, path):
    decoder = Decoder(kind)
    decoder.load_state_dict(torch.load(path))
    return decoder.eval().requires_grad_(False)


def read_by(encoder, decoder, picture):
    """Returns a picture (H x W x 3, levels) after encoder and decoder."""
    height, width = picture.shape[:2]
    x = torch.from_numpy(picture).permute(2, 0, 1)[None].float() / 255
    with torch.no_grad():
        drawn = decoder(encoder(F.pad(x, (0, -width % 32, 0, -height % 32), mode="replicate")))[0, :, :height, :width]
    return (drawn.clamp(0, 1) * 255).round().permute(1, 2, 0).numpy().astype(numpy.uint8)


def load_models(encoders, decoders, third):
    """Returns {name: function from a picture to the picture as the model reads it}, if the decoder exists."""
    pairs = {kind: (load_encoder(kind, os.path.join(encoders, FILES[kind])), load_decoder(kind, path))
             for kind in KINDS for path in (os.path.join(decoders, kind + ".pt"),) if os.path.exists(path)}
    if third and has_decoder(third):
        pairs["third"] = load_autoencoder(third), load_autodecoder(third)
    return {name: functools.partial(read_by, *pair) for name, pair in pairs.items()}


def batch(pictures, side, rng):
    crops = [random_crop(picture, side, rng) for picture in pictures]
    return torch.from_numpy(numpy.ascontiguousarray(numpy.stack(crops))).permute(0, 3, 1, 2).float() / 255


@torch.no_grad()
def fit_base(decoder, encoder, kind, pictures, rng):
    """Sets the output of the base to the least square error over crops of all pictures."""
    pairs = [(encoder(x), x) for _ in range(KINDS[kind][4]) for picture in pictures for x in (batch([picture], SIDE, rng),)]
    for z, _ in pairs:
        decoder.normal(z)
    decoder.eval()
    square = cross = 0
    for z, x in pairs:
        f = decoder.features(decoder.normal(z)).relu().flatten(2)[0].T
        f = torch.cat([f, torch.ones(len(f), 1)], 1)
        square, cross = square + f.T @ f, cross + f.T @ F.pixel_unshuffle(x, decoder.cell).flatten(2)[0].T
    square.diagonal().add_(RIDGE * square.diagonal().mean())
    solved = torch.linalg.solve(square.double(), cross.double()).float()
    decoder.output.weight.copy_(solved[:-1].T[:, :, None, None])
    decoder.output.bias.copy_(solved[-1])


def error_of(drawn, x):
    """Returns the mean absolute error of samples and of differences between neighbours."""
    d = drawn - x
    return d.abs().mean() + EDGES * sum(d.diff(dim=dim).abs().mean() for dim in (2, 3))


def train(decoder, encoder, options, pictures, rng):
    """Trains the blocks, with a checkpoint every 100 steps."""
    side, count = KINDS[options.kind][5:]
    parameters = list(decoder.blocks.parameters())
    adam = torch.optim.Adam(parameters, RATE)
    begun, opened, step, share, mean = time.process_time(), time.time(), 0, 0.0, 0.0
    while share < 1:
        x = batch(rng.choices(pictures, k=count), side, rng)
        with torch.no_grad():
            base = decoder.base(encoder(x))
        adam.param_groups[0]["lr"] = RATE * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * share)))
        error = error_of(base + F.pixel_shuffle(decoder.blocks(F.pixel_unshuffle(base, 2)), 2), x)
        adam.zero_grad()
        error.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)
        adam.step()
        step, mean = step + 1, mean * 0.99 + error.item() * 0.01
        share = max((time.process_time() - begun) / 60 / options.minutes, (time.time() - opened) / 60 / options.wall)
        if step % 100 == 0:
            print("%d steps, %.0f s: error %.4f" % (step, time.process_time() - begun, mean / (1 - 0.99 ** step)), flush=True)
            torch.save(decoder.state_dict(), options.out)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", required=True, choices=KINDS)
    parser.add_argument("--images", required=True)
    parser.add_argument("--encoders", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--minutes", type=float, default=15, help="of processor time, for the blocks")
    parser.add_argument("--wall", type=float, default=math.inf, help="minutes on the clock, if they end first")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    rng = random.Random(1)
    names, _ = split_pictures(list_pictures(options.images), 20261121)
    pictures = [load_picture(os.path.join(options.images, name)) for name in names]
    encoder, decoder = load_encoder(options.kind, os.path.join(options.encoders, FILES[options.kind])), Decoder(options.kind)
    fit_base(decoder, encoder, options.kind, pictures, rng)
    torch.save(decoder.state_dict(), options.out)
    print("base: %.0f s" % time.process_time(), flush=True)
    train(decoder, encoder, options, pictures, rng)
    torch.save(decoder.state_dict(), options.out)


if __name__ == "__main__":
    main()
