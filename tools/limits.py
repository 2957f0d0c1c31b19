"""What limits a perturbation while finish.py trains: measures of how far it is seen and what it costs.

Each is given per picture, so divided by the perturbation's power or amplitude that one bound holds at every
strength.  Pictures are YCbCr, 0..1; thresholds are round figures of contrast on a screen at 100 %.
"""

import io
import math

import torch
import torch.nn.functional as F
from PIL import Image

from pictures import blur

YCC = torch.tensor([[0.299, 0.587, 0.114], [-0.168736, -0.331264, 0.5], [0.5, -0.418688, -0.081312]])
SCALES = (0.0448, 0.2856, 0.3001, 0.3696)  # of MS-SSIM; the last has the weight of the two that a crop is too small for
WINDOW = torch.exp(-(torch.arange(11.0) - 5).square() / (2 * 1.5 ** 2))
C2 = 0.03 ** 2
JUST_SEEN = torch.tensor([  # contrast of Y, Cb and Cr that is just seen on flat ground, in bands an octave apart
    [0.008, 0.020, 0.020], [0.004, 0.010, 0.010], [0.003, 0.005, 0.005], [0.003, 0.004, 0.004]])
FLAT = 0.012  # spread of luma over 7x7 px under which a place is flat


def planes_of(rgb):
    return torch.einsum("ab,nbhw->nahw", YCC.to(rgb.device), rgb)


def windowed(x):
    kernel, planes = (WINDOW / WINDOW.sum()).to(x.device), x.shape[1]
    x = F.conv2d(x, kernel.view(1, 1, -1, 1).repeat(planes, 1, 1, 1), groups=planes)
    return F.conv2d(x, kernel.view(1, 1, 1, -1).repeat(planes, 1, 1, 1), groups=planes)


def ms_ssim(x, y):
    """Of each plane: Wang, Simoncelli, Bovik (2003), four scales, structure alone."""
    total = 1.0
    for weight in SCALES:
        mx, my = windowed(x), windowed(y)
        vx, vy, cov = windowed(x * x) - mx * mx, windowed(y * y) - my * my, windowed(x * y) - mx * my
        total = total * ((2 * cov + C2) / (vx + vy + C2)).mean((2, 3)).clamp_min(0.01) ** weight
        x, y = F.avg_pool2d(x, 2), F.avg_pool2d(y, 2)
    return total


def rooted_mean(x, side):
    """The mean of square roots, squared, over side x side places: one edge lifts it little."""
    reach = side // 2
    return F.avg_pool2d(F.pad((x.square() + 1e-7).sqrt().sqrt(), (reach,) * 4, mode="replicate"), side, 1).square()


def bands_of(x):
    """Four bands an octave apart, each at its own resolution."""
    bands = []
    for sigma in (1.0, 0.9, 0.9, 1.0):
        smooth = blur(x, sigma)
        bands.append(x - smooth)
        x = F.avg_pool2d(smooth, 2)
    return bands


def visibility(x, d):
    """Contrast of what is drawn over the contrast that the picture hides in the same band, the fourth power's mean."""
    total = 0
    for seen, ground, drawn in zip(JUST_SEEN.to(x.device), bands_of(x), bands_of(d)):
        hides = rooted_mean(ground, 7)
        hides = torch.cat([hides[:, :1], 0.5 * hides[:, 1:] + 0.15 * hides[:, :1]], 1)
        total = total + (drawn / (seen.view(1, 3, 1, 1) + hides)).pow(4).mean((2, 3)).sum(1)
    return (total + 1e-12) ** 0.25


def gratings(x, d):
    """How far a few frequencies outweigh the others in what is not hidden: lines, combs, hatching, stamps.

    The root mean square of its power spectrum, of which noise of the same power has the least.
    """
    hides = rooted_mean(x[:, :1] - blur(x[:, :1], 2.0), 9)
    shown = d / (torch.tensor([0.006, 0.009, 0.009], device=d.device).view(1, 3, 1, 1) + hides)
    spectrum = torch.fft.rfft2(shown).abs().square() / (d.shape[2] * d.shape[3])
    return (spectrum.square().mean((1, 2, 3)) + 1e-12).sqrt()


def luma_steps(quality):
    """libjpeg's quantisation of luma, in the order of the DCT."""
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "JPEG", quality=quality)
    return torch.tensor(Image.open(file).quantization[0], dtype=torch.float32)


def dct_8x8():
    n = torch.arange(8.0)
    one = torch.cos(math.pi * (2 * n[None] + 1) * n[:, None] / 16) * 0.5
    one[0] *= math.sqrt(0.5)
    return torch.einsum("ai,bj->abij", one, one).reshape(64, 1, 8, 8)


DCT, STEPS_85 = dct_8x8(), luma_steps(85)


def file_size(y):
    """About how many bits a JPEG 85 spends on each block of luma: a smooth stand-in for its entropy coder."""
    levels = F.conv2d(y[:, :1] * 255, DCT.to(y.device), stride=8) / STEPS_85.to(y.device).view(1, 64, 1, 1)
    return torch.log2(1 + 1.5 * levels[:, 1:].square()).sum(1).mean((1, 2))


@torch.no_grad()
def flat_places(x):
    spread = F.avg_pool2d((x[:, :1] - F.avg_pool2d(x[:, :1], 7, 1, 3)).square(), 7, 1, 3).sqrt()
    return (spread < FLAT).float()


def measures(x, y):
    """What LIMITS of finish.py bound, of RGB pictures x and what was made of them."""
    cx, cy = planes_of(x), planes_of(y)
    d, power = cy - cx, (y - x).square().mean((1, 2, 3)).detach() + 1e-9
    similar = ms_ssim(cx, cy)
    return {
        "ssim": (1 - similar[:, 0]) / power,
        "chroma": (1 - similar[:, 1:].mean(1)) / power,
        "growth": (file_size(cy) - file_size(cx)) / power.sqrt(),
        "visibility": visibility(cx, d) / power.sqrt(),
        "gratings": gratings(cx, d) / power,
        "flat": ((y - x).square().sum(1, keepdim=True) * flat_places(cx)).mean((1, 2, 3)) / power,
    }
