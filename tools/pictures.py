"""Pictures for training and measurement: selection, crops and a blur."""

import collections
import itertools
import math
import os
import random
from concurrent.futures import ThreadPoolExecutor

import numpy
import torch
import torch.nn.functional as F
from PIL import Image

DRAWN = 0.5  # minimum share of one-colour blocks in a drawing; the bench's photographs have at most 0.3, on a black ground


def list_pictures(folder):
    return sorted(name for name in os.listdir(folder) if name.lower().endswith((".jpg", ".png", ".webp")))


def split_pictures(names, seed, share=0.1):
    """Training and validation files. The split is by file, so that no picture has crops in both."""
    shuffled = names[:]
    random.Random(seed).shuffle(shuffled)
    count = int(len(shuffled) * share)
    return sorted(shuffled[count:]), sorted(shuffled[:count])


def load_picture(path):
    return numpy.array(Image.open(path).convert("RGB"))


def random_crop(picture, side, rng):
    """A crop of side px; at random the picture is scaled down, mirrored or rotated."""
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


def crops_of(pictures, count, side, rng):
    """count crops, each of any picture, as bytes."""
    return numpy.ascontiguousarray(numpy.stack([random_crop(rng.choice(pictures), side, rng) for _ in range(count)]))


def levels_of(crops, device="cpu"):
    return torch.from_numpy(crops).to(device).permute(0, 3, 1, 2).float() / 255


def batch_of(pictures, count, side, rng):
    return levels_of(crops_of(pictures, count, side, rng))


def batches(pictures, count, side, seed, device, ahead):
    """Endless batches; threads prepare a number of them ahead."""
    def cut(i):
        return crops_of(pictures, count, side, random.Random(seed * 1000003 + i))

    with ThreadPoolExecutor(max(1, ahead // 2)) as workers:
        waiting = collections.deque(workers.submit(cut, i) for i in range(ahead))
        for i in itertools.count(ahead):
            yield levels_of(waiting.popleft().result(), device)
            waiting.append(workers.submit(cut, i))


def is_drawing(picture):
    """Whether most blocks of 4x4 px have one colour. A drawing masks almost nothing and gets less than its strength."""
    height, width = (side // 4 for side in picture.shape[:2])
    blocks = picture[:height * 4, :width * 4].reshape(height, 4, width, 4, 3)
    return (numpy.ptp(blocks, axis=(1, 3)).max(2) == 0).mean() > DRAWN


def patched(x, rng, share=0.25):
    """Replace one side of some pictures by a colour or by noise around it. Such pictures are rare in photographs."""
    x, (height, width) = x.clone(), x.shape[2:]
    for picture in x:
        if rng.random() < share:
            cell, contrast = rng.choice((1, 1, 2, 4)), rng.choice((0, 0, rng.uniform(0.1, 1)))
            noise = torch.rand(1, 3, height // cell, width // cell, device=x.device) - 0.5
            filled = (torch.rand(3, 1, 1, device=x.device) + contrast * F.interpolate(noise, scale_factor=cell)[0]).clamp(0, 1)
            top, left = rng.choice(((0, rng.randrange(40, width - 40)), (rng.randrange(40, height - 40), 0)))
            picture[:, top:, left:] = (filled[:, top:, left:] * 255).round() / 255
    return x


def blur(x, sigma):
    """A Gaussian, truncated at 2.5 sigma."""
    reach = max(1, int(math.ceil(2.5 * sigma)))
    offsets = torch.arange(-reach, reach + 1, dtype=torch.float32, device=x.device)
    kernel = torch.exp(-offsets.square() / (2 * sigma * sigma))
    kernel = kernel / kernel.sum()
    channels = x.shape[1]
    x = F.pad(x, (reach, reach, reach, reach), mode="replicate")
    x = F.conv2d(x, kernel.view(1, 1, -1, 1).repeat(channels, 1, 1, 1), groups=channels)
    return F.conv2d(x, kernel.view(1, 1, 1, -1).repeat(channels, 1, 1, 1), groups=channels)
