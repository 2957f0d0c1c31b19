"""JPEG and WebP coding of pictures, and a differentiable approximation of it for training."""

import functools
import io
import math
import os
from concurrent.futures import ThreadPoolExecutor

import numpy
import torch
import torch.nn.functional as F
from PIL import Image


YCC = torch.tensor([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
RGB = torch.linalg.inv(YCC)
WORKERS = ThreadPoolExecutor(os.cpu_count())
AS_JPEG = {"WEBP": 60}  # quality of the JPEG whose quantisation steps replace another codec's; only in gradients


@functools.lru_cache(maxsize=None)
def placed(constant, device):
    """Returns a constant on a device. It is copied once, because each copy waits for all earlier work on the device."""
    return constant.to(device)


def planes_of(rgb):
    return torch.einsum("ab,nbhw->nahw", placed(YCC, rgb.device), rgb)


def rgb_of(planes):
    return torch.einsum("ab,nbhw->nahw", placed(RGB, planes.device), planes)


@functools.lru_cache(maxsize=None)
def steps_of(quality):
    """Returns libjpeg's quantisation steps of luma and of chroma, in DCT order, 0..1."""
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "JPEG", quality=quality)
    tables = Image.open(file).quantization
    return [torch.tensor(tables[i], dtype=torch.float32) / 255 for i in range(2)]


def dct_8x8():
    n = torch.arange(8.0)
    one = torch.cos(math.pi * (2 * n[None] + 1) * n[:, None] / 16) * 0.5
    one[0] *= math.sqrt(0.5)
    return torch.einsum("ai,bj->abij", one, one).reshape(64, 1, 8, 8)


BITS = 5.06  # bits of JPEG for each coefficient that is not 0
DCT, STEPS_85 = dct_8x8(), steps_of(85)


def levels_of(plane, steps):
    """Returns the DCT of 8x8 px, divided by the quantisation steps, not rounded."""
    return F.conv2d(plane, placed(DCT, plane.device), stride=8) / placed(steps, plane.device).view(1, 64, 1, 1)


def file_size(y):
    """Estimates the bits of a JPEG 85 for each block of luma and its share of chroma.

    The estimate is a constant for each coefficient that is not 0. It predicts the growth of a file to 4 % (twelve
    photographs, correlation .999). Gradients are those of a soft threshold.
    """
    def bits(levels):
        powers = (2 * levels[:, 1:]).square().square()
        soft = powers / (1 + powers)
        hard = (levels[:, 1:].detach().abs() > 0.5).float()
        return BITS * (soft + (hard - soft).detach()).sum(1).mean((1, 2))

    small = F.avg_pool2d(y[:, 1:], 2)
    colours = sum(bits(levels_of(small[:, i:i + 1], STEPS_85[1])) for i in range(2))
    return bits(levels_of(y[:, :1], STEPS_85[0])) + colours / 4


def recoded(picture, codec, quality, **options):
    file = io.BytesIO()
    Image.fromarray(picture).save(file, codec, quality=quality, **options)
    return numpy.array(Image.open(file))


def coded(pictures, codec, quality, **options):
    """Starts to code pictures on all processors; returns a function that waits for the result."""
    arrays = (pictures.detach().clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy()
    ahead = [WORKERS.submit(recoded, picture, codec, quality, **options) for picture in arrays]
    return lambda: torch.from_numpy(numpy.stack([one.result() for one in ahead])).to(pictures.device).permute(
        0, 3, 1, 2).float() / 255


def plane_quantised(plane, steps):
    """Quantises a plane with a soft, differentiable rounding: flat at the steps, steep between them."""
    levels = levels_of(plane, steps)
    levels = levels - torch.sin(2 * math.pi * levels) / (2 * math.pi)
    return F.conv_transpose2d(levels * placed(steps, plane.device).view(1, 64, 1, 1), placed(DCT, plane.device), stride=8)


def softly_coded(pictures, codec, quality):
    """Approximates a JPEG of the quality; sides are multiples of 16 px."""
    luma, chroma = steps_of(AS_JPEG.get(codec, quality))
    planes = planes_of(pictures)
    small = F.avg_pool2d(planes[:, 1:], 2)
    colours = [F.interpolate(plane_quantised(small[:, i:i + 1], chroma), scale_factor=2, mode="bilinear", align_corners=False)
               for i in range(2)]
    return rgb_of(torch.cat([plane_quantised(planes[:, :1], luma)] + colours, 1))


def coded_through(pictures, codec, quality):
    """Does the same as coded(), with the gradients of softly_coded()."""
    made = coded(pictures, codec, quality)
    soft = softly_coded(pictures, codec, quality)
    return lambda: soft + (made() - soft).detach()


def chosen(levels, least):
    """Returns levels as integers. A level moves away from 0 if more than `least` of a step is wanted. Gradients are those of a
    soft rounding with the same thresholds."""
    size = levels.abs()
    placed_size = torch.where(size < least, size * (0.5 / least), size + (0.5 - least))
    soft = placed_size - torch.sin(2 * math.pi * placed_size) / (2 * math.pi)
    return levels.sign() * (soft + (placed_size.round() - soft).detach())


def plane_kept(plane, change, steps, least):
    """Returns the part of a plane's change that coding keeps. If the plane was coded with the same steps, it begins at integers."""
    start = levels_of(plane, steps)
    start = start - start.round()
    levels = chosen(start + levels_of(change, steps), least) - start
    return F.conv_transpose2d(levels * placed(steps, plane.device).view(1, 64, 1, 1), placed(DCT, plane.device), stride=8)


def change_kept(x, d, quality, is_small, least):
    """Returns the part of a change d of x that a JPEG of the quality keeps; its chroma has the full or half the size."""
    steps, planes, changes = steps_of(quality), planes_of(x), planes_of(d)
    kept = [plane_kept(planes[:, :1], changes[:, :1], steps[0], least)]
    for i in (1, 2):
        plane, change = planes[:, i:i + 1], changes[:, i:i + 1]
        if is_small:
            small = plane_kept(F.avg_pool2d(plane, 2), F.avg_pool2d(change, 2), steps[1], least)
            kept.append(F.interpolate(small, scale_factor=2, mode="bilinear", align_corners=False))
        else:
            kept.append(plane_kept(plane, change, steps[1], least))
    return rgb_of(torch.cat(kept, 1))
