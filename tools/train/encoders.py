"""The two surrogate encoders, rebuilt from their layout; the weights come from an .npz file.

The encoders are third-party work. They serve training and measurement only and are never part of this project or its
releases.
"""

import numpy
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    """Three 3x3 convolutions with ReLU between them; the input is added before a final ReLU."""

    def __init__(self, width):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1))

    def forward(self, x):
        return F.relu(self.conv(x) + x)


def sana_net():
    """Returns a stand-in for DC-AE f32c32: pictures in multiples of 32 px, 32 latent channels at 1/32."""
    layers = [nn.Conv2d(3, 32, 3, 2, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(), Block(64)]
    for _ in range(3):
        layers.append(nn.Conv2d(64, 64, 3, 2, 1, bias=False))
        layers += [Block(64) for _ in range(3)]
    layers.append(nn.Conv2d(64, 32, 3, 1, 1))
    return nn.Sequential(*layers)


class SmallSd(nn.Module):
    """A stand-in for SD 1.5: pictures in multiples of 8 px, 4 latent channels at 1/8."""

    def __init__(self):
        super().__init__()
        self.cv1 = nn.Conv2d(3, 16, 2, 2)
        self.cv2 = nn.Conv2d(16, 32, 3, 1, 1)
        self.cv3 = nn.Conv2d(32, 32, 2, 2)
        self.cv4 = nn.Conv2d(32, 64, 3, 1, 1)
        self.cv5 = nn.Conv2d(64, 64, 2, 2)
        self.cv6 = nn.Conv2d(64, 4, 3, 1, 1)
        self.cv14 = nn.Conv2d(3, 64, 3, 1, 1)
        self.cv15 = nn.Conv2d(64, 64, 3, 1, 1)
        self.cv16 = nn.Conv2d(64, 64, 3, 1, 1)
        self.cv17 = nn.Conv2d(64, 128, 3, 1, 1)
        self.cv18 = nn.Conv2d(128, 4, 3, 1, 1)

    def forward(self, x):
        x = x * 2 - 1
        a = x
        for conv in (self.cv1, self.cv2, self.cv3, self.cv4, self.cv5):
            a = F.leaky_relu(conv(a), 0.01)
        b = F.avg_pool2d(x, 8)
        for conv in (self.cv14, self.cv15, self.cv16, self.cv17):
            b = F.leaky_relu(conv(b), 0.01)
        return self.cv6(a) + self.cv18(b)


KINDS = {"sana": sana_net, "sd15": SmallSd}
FILES = {"sana": "sana-encoder.npz", "sd15": "sd15-small-encoder.npz"}


def load_encoder(kind, path):
    """Returns the frozen encoder of a kind with the weights of an .npz file."""
    net = KINDS[kind]()
    arrays = numpy.load(path)
    state = {key: torch.from_numpy(numpy.array(arrays[key], dtype=numpy.float32))
             for key in arrays.files if ".norm" not in key and not key.startswith("norm")}
    net.load_state_dict(state, strict=True)
    net.eval()
    for parameter in net.parameters():
        parameter.requires_grad_(False)
    return net


def latent_shift(after, before):
    """Returns the relative latent shift of each picture: |E(y) - E(x)| / |E(x)|."""
    difference = (after - before).flatten(1).norm(dim=1)
    return difference / before.flatten(1).norm(dim=1).clamp_min(1e-6)
