"""The followers: small encoders with the gradient directions of the surrogates, and the seeded noise from which they begin.

src/engine/protect/net.c and canvas.c compute the same, so change both together.
"""

import numpy
import torch
import torch.nn.functional as F
from torch import nn

# Channels of the look layers: two at a half, two at a quarter, one at an eighth of the resolution.
WIDTHS = (16, 16, 32, 32, 64)
ANSWERS = 32  # channels of the answer at an eighth, and of the noise
LEAK = 0.01
GOLDEN = 0x9E3779B97F4A7C15


def conv(inputs, outputs):
    return nn.Conv2d(inputs, outputs, 3, 1, 1)


def down(inputs, outputs):
    return nn.Conv2d(inputs, outputs, 2, 2)


class Up(nn.Conv2d):
    """A 1x1 convolution and a pixel shuffle of 2. On the CPU it is a 3x3 with zeros, because torch 1.13 takes twice
    as long for 1x1 on one thread."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs * 4, 1)

    def forward(self, x):
        wide = F.conv2d(x, self.weight, self.bias) if x.is_cuda else F.conv2d(x, F.pad(self.weight, (1, 1, 1, 1)), self.bias, padding=1)
        return F.pixel_shuffle(wide, 2)


class Encoder(nn.Module):
    """Maps RGB 0..1 to an answer at an eighth of the resolution."""

    def __init__(self, widths=WIDTHS):
        super().__init__()
        half, half2, quarter, quarter2, eighth = widths
        self.down2, self.look2 = down(3, half), conv(half, half2)
        self.down4, self.look4 = down(half2, quarter), conv(quarter, quarter2)
        self.down8, self.answer8 = down(quarter2, eighth), conv(eighth, ANSWERS)

    def see(self, x):
        """Returns the layers' outputs before the leaky ReLU, and the answer."""
        seen, a = [], x * 2 - 1
        for layer in (self.down2, self.look2, self.down4, self.look4, self.down8):
            seen.append(layer(a))
            a = F.leaky_relu(seen[-1], LEAK)
        return seen, self.answer8(a)


class Drawer(Encoder):
    """An encoder and its approximate transpose, at one scale.

    The encoder maps the picture to an answer at an eighth of the resolution. The drawing layers map the answer to a
    perturbation. At every resolution, gates from the encoder's outputs multiply the drawing layers.
    """

    def __init__(self, widths=WIDTHS):
        super().__init__(widths)
        half, half2, quarter, quarter2, eighth = widths
        self.seed8 = conv(ANSWERS, eighth)
        self.up4, self.draw4 = Up(eighth, quarter2), conv(quarter2, quarter)
        self.up2, self.draw2 = Up(quarter, half2), conv(half2, half)
        self.draw1 = conv(half, 12)
        # Slopes of the gates of down2, look2, down4, look4 and down8.
        self.register_buffer("beta", torch.ones(5))
        # Factor of the change of the answer.
        self.register_buffer("gain", torch.ones(()))

    def layers(self):
        """Returns the convolutions in the order of the weights file."""
        names = ("down2", "look2", "down4", "look4", "down8", "answer8", "seed8", "up4", "draw4", "up2", "draw2",
                 "draw1")
        return [(name, getattr(self, name)) for name in names]

    def look(self, x):
        """Returns the gates and the answer."""
        seen, answer = self.see(x)
        return [(0.5 + slope * one).clamp(LEAK, 1) for slope, one in zip(self.beta, seen)], answer

    def draw(self, gates, h):
        h = self.up4(self.seed8(h) * gates[4]) * gates[3]
        h = self.up2(self.draw4(h) * gates[2]) * gates[1]
        return F.pixel_shuffle(self.draw1(self.draw2(h) * gates[0]), 2)

    def moved(self, before, y):
        """Returns the drawn output for y. The input is the change of the answer from before to y."""
        gates, after = self.look(y)
        return self.draw(gates, (after - before) * self.gain)


def doubled(x):
    return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


def soft(raw):
    return raw * torch.rsqrt(1 + raw * raw)


def mixed(value):
    """Applies the finaliser of SplitMix64 (Steele, Lea, Flood 2014) to an array of uint64."""
    value = (value ^ (value >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return value ^ (value >> numpy.uint64(31))


def seeded_noise(seed, rows, columns):
    """Returns the noise channels for a picture of rows x columns places of 16x16 px: four hashes of the place, eight bytes
    each, as -1..1."""
    with numpy.errstate(over="ignore"):
        y = numpy.arange(rows, dtype=numpy.uint64)[:, None]
        x = numpy.arange(columns, dtype=numpy.uint64)[None, :]
        place = ((y << numpy.uint64(32)) | x) * numpy.uint64(ANSWERS // 8)
        key = mixed(numpy.array([seed], dtype=numpy.uint64) + numpy.uint64(GOLDEN))
        values = [mixed((place + numpy.uint64(i)) * numpy.uint64(GOLDEN) + key) for i in range(ANSWERS // 8)]
    channels = [((values[i // 8] >> numpy.uint64(8 * (i % 8))) & numpy.uint64(255)).astype(numpy.float32)
                for i in range(ANSWERS)]
    return torch.from_numpy((numpy.stack(channels) - 127.5) / 127.5)[None]
