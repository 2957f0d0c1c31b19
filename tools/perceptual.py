"""The network of the redesigned anti-AI engine, and the amplitude that a budget of visibility gives.

The network is a gated linear map of noise: a trunk looks at the picture and makes signed gates, and the noise passes through
linear layers between gates, as a gradient passes backwards through an encoder.  So the perturbation follows the picture, and
it is odd in the noise: it has no tint and no fixed pattern.  Layers are those of src/engine/protect/protect_conv.h.
"""

import torch
import torch.nn.functional as F
from torch import nn

from visibility import Visibility, filtered, gaussian

GRID = 32            # sides in multiples of it, px
NOISE = 32           # channels of noise, half of them at 1/32, half at 1/16 of the size
WIDTHS = (16, 48, 64, 64)  # channels at 1/2, 1/4, 1/8, 1/16
LEAK = 0.01
EVEN = gaussian(1.5)  # window of the equalised visibility, cells
GAIN_LEAST = 0.25     # of the learned share of the budget of a place
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

    def __init__(self, inputs, outputs):
        super().__init__()
        self.conv = Mix(inputs, outputs * 4)

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
        self.gate16 = Mix(last, last)
        self.gate8 = Mix(eighth, eighth)
        self.gate4 = Mix(quarter, quarter)
        self.gate2 = Mix(half, half)
        self.gain = Mix(eighth, 1)
        self.start = Mix(NOISE, last, bias=False)
        self.up8 = Up(last, eighth)
        self.draw8 = nn.Conv2d(eighth, eighth, 3, padding=1, bias=False)
        self.up4 = Up(eighth, quarter)
        self.draw4 = nn.Conv2d(quarter, quarter, 3, padding=1, bias=False)
        self.up2 = Up(quarter, half)
        self.up1 = Up(half, 3)
        for up in (self.up8, self.up4, self.up2, self.up1):
            nn.init.zeros_(up.conv.bias)
            up.conv.bias.requires_grad_(False)
        nn.init.zeros_(self.gain.weight)
        nn.init.constant_(self.gain.bias, 1.0)

    def noise(self, x, generator=None):
        n, _, height, width = x.shape
        coarse = torch.randn(n, NOISE // 2, height // 32 + 1, width // 32 + 1, generator=generator)
        coarse = F.interpolate(coarse, scale_factor=2, mode="bilinear", align_corners=True)[:, :, :height // 16, :width // 16]
        fine = torch.randn(n, NOISE // 2, height // 16, width // 16, generator=generator)
        z = torch.cat([coarse, fine], 1).to(x.device)
        return z / z.square().mean(1, keepdim=True).sqrt()

    def forward(self, x, z):
        """(perturbation of any scale, share of the budget of each cell of 8x8 px)."""
        p2 = leaky(self.down2(x * 2 - 1))
        p4 = leaky(self.look4(leaky(self.down4(p2))))
        p8 = leaky(self.look8(leaky(self.down8(p4))))
        p16 = leaky(self.look16(leaky(self.down16(p8))))
        s = self.start(z) * (1 + self.gate16(p16))
        s = self.draw8(self.up8(s)) * (1 + self.gate8(p8))
        s = self.draw4(self.up4(s)) * (1 + self.gate4(p4))
        s = self.up2(s) * (1 + self.gate2(p2))
        return self.up1(s), GAIN_LEAST + (1 - GAIN_LEAST) * torch.sigmoid(self.gain(p8))


def within(x, d):
    """A perturbation bounded by the headroom of each sample, alike up and down, so that clipping makes no tint."""
    room = torch.minimum(x, 1 - x).clamp_min(0) + SLACK
    return torch.maximum(torch.minimum(d, room), -room)


def scaled(x, d, gain, budget, seen=None):
    """The perturbation, its visibility made even over the picture but for the gain, at a budget (one a picture)."""
    seen = seen or Visibility(x)
    local = filtered(seen.local(d), EVEN)
    local = local + 0.05 * local.mean((2, 3), keepdim=True)
    shares = F.interpolate(gain / local, size=d.shape[2:], mode="bilinear", align_corners=False)
    d = d * shares
    d = d * (budget / seen.total(d)).view(-1, 1, 1, 1)
    return within(x, d)


def protected(network, picture, budget, seed):
    """A picture (N x 3 x H x W, any size) protected, rounded to levels; for the evaluation."""
    height, width = picture.shape[2:]
    x = F.pad(picture, (0, -width % GRID, 0, -height % GRID), mode="replicate")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        d, gain = network(x, network.noise(x, generator))
        d = d[:, :, :height, :width]
        gain = gain[:, :, :-(-height // 8), :-(-width // 8)]
        y = picture + scaled(picture, d, gain, torch.tensor([budget]))
    return (y.clamp(0, 1) * 255).round() / 255
