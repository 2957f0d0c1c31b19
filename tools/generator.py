"""The network that is shipped, its texture mask, and how a perturbation is scaled.

src/engine/protect_net.c and src/engine/protect.c compute the same; change both together.
"""

import struct

import numpy
import torch
import torch.nn.functional as F
from torch import nn

WIDTH = 32
NOISE = 8
BLOCKS = 3
LUMA = (0.299, 0.587, 0.114)
GOLDEN = 0x9E3779B97F4A7C15
MASK_FLOOR = 0.01
MASK_KNEE = 0.05


def conv(inputs, outputs, stride=1):
    return nn.Conv2d(inputs, outputs, 3, stride, 1)


class Generator(nn.Module):
    """RGB 0..1, sides in multiples of 8 px, to a bounded unit perturbation of the same size.

    All convolutions run at a quarter of the resolution but the two of the context
    branch, which run at an eighth.  Eight channels of seeded noise join the picture: in a
    flat area a convolutional network without them can only repeat one pattern.
    """

    def __init__(self):
        super().__init__()
        self.head = conv(48 + NOISE, WIDTH)
        self.first = nn.ModuleList(conv(WIDTH, WIDTH) for _ in range(BLOCKS))
        self.second = nn.ModuleList(conv(WIDTH, WIDTH) for _ in range(BLOCKS))
        self.down = conv(WIDTH, WIDTH, 2)
        self.context = conv(WIDTH, WIDTH)
        self.tail = conv(WIDTH, 48)
        with torch.no_grad():
            self.tail.bias.zero_()
            self.head.weight[:, 48:].mul_(3)

    def layers(self):
        """The convolutions in the order of the weights file."""
        order = [("head", self.head), ("down", self.down), ("context", self.context)]
        for i in range(BLOCKS):
            order += [("first%d" % i, self.first[i]), ("second%d" % i, self.second[i])]
        return order + [("tail", self.tail)]

    def raw(self, x, noise):
        """The network's output before it is bounded.  noise: -1..1, a quarter of x's size."""
        h = F.relu(self.head(torch.cat([F.pixel_unshuffle(x - 0.5, 4), noise], dim=1)))
        wide = F.relu(self.context(F.relu(self.down(h))))
        wide = F.interpolate(wide, scale_factor=2, mode="nearest")
        for i in range(BLOCKS):
            h = F.relu(h + self.second[i](F.relu(self.first[i](h))))
            if i == 0:
                h = h + wide
        return F.pixel_shuffle(self.tail(h), 4)

    def forward(self, x, noise):
        raw = self.raw(x, noise)
        return raw * torch.rsqrt(1 + raw * raw)


def luma_of(x):
    return LUMA[0] * x[:, 0:1] + LUMA[1] * x[:, 1:2] + LUMA[2] * x[:, 2:3]


def texture_mask(x):
    """How much each place hides, 0.2 (flat) .. 1: from the spread of luma in 4x4 blocks.

    The neighbourhood takes the mean of square roots, squared, so that one edge beside a
    flat area does not lift the mask there.
    """
    y = luma_of(x)
    mean = F.avg_pool2d(y, 4)
    centred = y - F.interpolate(mean, scale_factor=4, mode="nearest")
    spread = F.avg_pool2d(centred.square(), 4).add(1e-8).sqrt()
    root = F.pad(spread.sqrt(), (1, 1, 1, 1), mode="replicate")
    near = F.avg_pool2d(root, 3, 1).square()
    mask = (near + MASK_FLOOR) / (near + MASK_KNEE)
    return F.interpolate(mask, scale_factor=4, mode="bilinear", align_corners=False)


def mixed(value):
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014) on an array of uint64."""
    value = (value ^ (value >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return value ^ (value >> numpy.uint64(31))


def seeded_noise(seed, rows, columns):
    """The noise channels for a picture of rows x columns blocks: eight bytes of a hash of
    the block's place, -1..1."""
    with numpy.errstate(over="ignore"):
        y = numpy.arange(rows, dtype=numpy.uint64)[:, None]
        x = numpy.arange(columns, dtype=numpy.uint64)[None, :]
        place = (y << numpy.uint64(32)) | x
        key = mixed(numpy.array([seed], dtype=numpy.uint64) + numpy.uint64(GOLDEN))
        value = mixed(place * numpy.uint64(GOLDEN) + key)
    channels = [((value >> numpy.uint64(8 * i)) & numpy.uint64(255)).astype(numpy.float32) for i in range(NOISE)]
    return torch.from_numpy((numpy.stack(channels) - 127.5) / 127.5)[None]


def grid_offset(seed):
    """Where the picture begins on the grid: left and top, 0..31 px."""
    with numpy.errstate(over="ignore"):
        place = int(mixed(numpy.array([seed], dtype=numpy.uint64) + numpy.uint64(2) * numpy.uint64(GOLDEN))[0])
    return place & 31, place >> 5 & 31


def perturbation(net, x, seeds):
    """The unit perturbation of a batch, one seed each, before it is scaled to a strength."""
    noise = torch.cat([seeded_noise(seed, x.shape[2] // 4, x.shape[3] // 4) for seed in seeds])
    return net(x, noise.to(x.device)) * texture_mask(x)


def shipped_perturbation(net, x, seed):
    """The unit perturbation as the C engine computes it: one picture of any size, moved on
    the grid by its seed, its edges repeated."""
    left, top = grid_offset(seed)
    height, width = x.shape[2:]
    right, bottom = 64 + -(width + left) % 8, 64 + -(height + top) % 8
    padded = F.pad(x, (64 + left, right, 64 + top, bottom), mode="replicate")
    unit = perturbation(net, padded, [seed])
    return unit[:, :, 64 + top:64 + top + height, 64 + left:64 + left + width]


def apply_at_psnr(x, unit, psnr_db, steps=14):
    """x + scale * unit on 8 bits, the scale bisected so that the rounded result has the PSNR."""
    target = 10 ** (-psnr_db / 10)
    low = torch.zeros(x.shape[0], device=x.device)
    high = torch.full((x.shape[0],), 4.0, device=x.device)
    for _ in range(steps):
        middle = (low + high) / 2
        y = ((x + middle.view(-1, 1, 1, 1) * unit).clamp(0, 1) * 255).round() / 255
        over = (y - x).square().mean(dim=(1, 2, 3)) > target
        high = torch.where(over, middle, high)
        low = torch.where(over, low, middle)
    return ((x + low.view(-1, 1, 1, 1) * unit).clamp(0, 1) * 255).round() / 255
