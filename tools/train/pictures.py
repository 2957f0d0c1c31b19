"""Pictures for training and measurement: selection, crops and a blur."""

import math
import os
import random

import numpy
import torch
import torch.nn.functional as F
from PIL import Image


def list_pictures(folder):
    return sorted(name for name in os.listdir(folder) if name.lower().endswith((".jpg", ".png", ".webp")))


def split_pictures(names, seed, share=0.1):
    """Returns training and validation files. The split is by file, so that no picture has crops in both."""
    shuffled = names[:]
    random.Random(seed).shuffle(shuffled)
    count = int(len(shuffled) * share)
    return sorted(shuffled[count:]), sorted(shuffled[:count])


def load_picture(path):
    return numpy.array(Image.open(path).convert("RGB"))


def random_crop(picture, side, rng):
    """Returns a crop of side px; at random the picture is scaled down, mirrored or rotated."""
    if rng.random() < 0.3:
        factor = rng.uniform(max(0.5, side / min(picture.shape[:2])), 1)
        size = (max(side, int(picture.shape[1] * factor)), max(side, int(picture.shape[0] * factor)))
        picture = numpy.array(Image.fromarray(picture).resize(size, Image.BILINEAR))
    top = rng.randint(0, picture.shape[0] - side)
    left = rng.randint(0, picture.shape[1] - side)
    crop = picture[top:top + side, left:left + side]
    if rng.random() < 0.5:
        crop = crop[:, ::-1]
    return numpy.rot90(crop, rng.choice((0, 0, 0, 0, 1, 2, 3)))


def blur(x, sigma):
    """Applies a Gaussian, truncated at 2.5 sigma."""
    reach = max(1, int(math.ceil(2.5 * sigma)))
    offsets = torch.arange(-reach, reach + 1, dtype=torch.float32, device=x.device)
    kernel = torch.exp(-offsets.square() / (2 * sigma * sigma))
    kernel = kernel / kernel.sum()
    channels = x.shape[1]
    x = F.pad(x, (reach, reach, reach, reach), mode="replicate")
    x = F.conv2d(x, kernel.view(1, 1, -1, 1).repeat(channels, 1, 1, 1), groups=channels)
    return F.conv2d(x, kernel.view(1, 1, 1, -1).repeat(channels, 1, 1, 1), groups=channels)
