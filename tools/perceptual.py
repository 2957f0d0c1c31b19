"""The network of the redesigned anti-AI engine, and the amplitude that a budget of visibility gives.

The network is a gated linear map of noise: a trunk looks at the picture and makes signed gates, and the noise passes through
linear layers between gates, as a gradient passes backwards through an encoder.  It answers with the bands of a pyramid in
thresholds of the visibility model: each band is multiplied by the threshold of its place, so masking shapes the perturbation
before it is summed.  It is odd in the noise: no tint, no fixed pattern.  Layers are those of
src/engine/protect/protect_conv.h.
"""

import torch
import torch.nn.functional as F
from torch import nn

from visibility import BURT, YCC, Visibility, filtered, gaussian

GRID = 32            # sides in multiples of it, px
NOISE = 32           # channels of noise, half of them blurred by 6 px, half by 13 px
WIDTHS = (16, 48, 64, 64)  # channels at 1/2, 1/4, 1/8, 1/16
LEAK = 0.01
EVEN = gaussian(1.0)  # window of the equalised visibility, cells
SLACK = 4 / 255       # that a sample may be clipped by


def leaky(x):
    return F.leaky_relu(x, LEAK)


class Mix(nn.Conv2d):
    """A convolution of 1x1, with zeros to both sides: torch 1.13 has no fast kernel for 1x1 on one thread."""

    def __init__(self, inputs, outputs, bias=True):
        super().__init__(inputs, outputs, 1, bias=bias)

    def forward(self, x):
        return F.conv2d(x, F.pad(self.weight, (1, 1)), self.bias, padding=(0, 1))


class Up(nn.Module):
    """1x1, each column becomes 2x2."""

    def __init__(self, inputs, outputs, bias=True):
        super().__init__()
        self.conv = Mix(inputs, outputs * 4, bias)

    def forward(self, x):
        return F.pixel_shuffle(self.conv(x), 2)


class Perturber(nn.Module):
    def __init__(self):
        super().__init__()
        half, quarter, eighth, last = WIDTHS
        self.down2 = nn.Conv2d(3, half, 2, 2)
        self.down4 = nn.Conv2d(half, quarter, 2, 2)
        self.look4 = nn.Conv2d(quarter, quarter, 3, padding=1)
        self.down8 = nn.Conv2d(quarter, eighth, 2, 2)
        self.look8 = nn.Conv2d(eighth, eighth, 3, padding=1)
        self.down16 = nn.Conv2d(eighth, last, 2, 2)
        self.look16 = nn.Conv2d(last, last, 3, padding=1)
        self.around8 = Up(last, eighth)
        self.begin8 = Mix(eighth, eighth)
        self.gate8 = Mix(eighth, eighth)
        self.gate4 = Mix(quarter, quarter)
        self.gate2 = Mix(half, half)
        self.start = Mix(NOISE, eighth, bias=False)
        self.draw8 = nn.Conv2d(eighth, eighth, 3, padding=1, bias=False)
        self.up4 = Up(eighth, quarter, bias=False)
        self.draw4 = nn.Conv2d(quarter, quarter, 3, padding=1, bias=False)
        self.up2 = Up(quarter, half, bias=False)
        self.up1 = Up(half, 3, bias=False)
        self.bands = nn.ModuleList([Mix(half, 3, bias=False), Mix(quarter, 3, bias=False), Mix(eighth, 3, bias=False)])

    def noise(self, x, generator=None):
        """Two octaves of noise at an eighth of the size, alike at every place of the grid; root mean square 1 in each."""
        n, _, height, width = x.shape
        white = torch.randn(n, NOISE, height // 8, width // 8, generator=generator).to(x.device)
        fine = filtered(white[:, :NOISE // 2], gaussian(0.8))
        z = torch.cat([fine, filtered(white[:, NOISE // 2:], gaussian(1.6)) * 2], 1)
        return z / z.square().mean(1, keepdim=True).sqrt()

    def forward(self, x, z, seen):
        """A perturbation of any scale."""
        p2 = leaky(self.down2(x * 2 - 1))
        p4 = leaky(self.look4(leaky(self.down4(p2))))
        p8 = leaky(self.look8(leaky(self.down8(p4))))
        p8 = p8 + self.around8(leaky(self.look16(leaky(self.down16(p8)))))
        s8 = self.draw8(self.start(z) * (1 + self.begin8(p8))) * (1 + self.gate8(p8))
        s4 = self.draw4(self.up4(s8)) * (1 + self.gate4(p4))
        s2 = self.up2(s4) * (1 + self.gate2(p2))
        bands = [self.up1(s2)] + [mix(s) for mix, s in zip(self.bands, (s2, s4, s8))]
        return synthesised(bands, seen)


def synthesised(bands, seen):
    """Bands of luma, blue and red in thresholds to RGB; of each its upper octave, so that nothing is coarser than the last."""
    total = 0
    for band, limit in reversed(list(zip(bands, seen.thresholds))):
        if torch.is_tensor(total):
            total = F.interpolate(total, scale_factor=2, mode="bilinear", align_corners=False)
        total = total + (band - filtered(band, BURT)) * limit.detach()
    inverse = torch.linalg.inv(torch.tensor(YCC)).to(total.device)
    return torch.einsum("ab,nbhw->nahw", inverse, total)


def within(x, d):
    """A perturbation bounded by the headroom of each sample, alike up and down, so that clipping makes no tint."""
    room = torch.minimum(x, 1 - x).clamp_min(0) + SLACK
    return torch.maximum(torch.minimum(d, room), -room)


def scaled(x, d, budget, seen=None):
    """The perturbation, its visibility made even over the picture, at a budget (one a picture)."""
    seen = seen or Visibility(x)
    local = filtered(seen.local(d), EVEN)
    local = local + 0.05 * local.mean((2, 3), keepdim=True)
    shares = F.interpolate(1 / local, size=d.shape[2:], mode="bilinear", align_corners=False)
    d = d * shares
    d = d * (budget / seen.total(d)).view(-1, 1, 1, 1)
    return within(x, d)


def protected(network, picture, budget, seed):
    """A picture (N x 3 x H x W, any size) protected, rounded to levels; for the evaluation."""
    height, width = picture.shape[2:]
    x = F.pad(picture, (0, -width % GRID, 0, -height % GRID), mode="replicate")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        d = network(x, network.noise(x, generator), Visibility(x))
        d = d[:, :, :height, :width]
        y = picture + scaled(picture, d, torch.tensor([budget]))
    return (y.clamp(0, 1) * 255).round() / 255
