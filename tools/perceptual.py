"""The network of the redesigned anti-AI engine, and the amplitude that a budget of visibility gives.

The network is a pair of followers (Drawer of generator.py): small encoders whose gradients point as the surrogates' do.
The coarse one sees the picture at half of its size, the fine one all of it.

Each gradient becomes a step under the visibility model: its bands are multiplied by the squares of their thresholds.
This is the steepest ascent if visibility is the length of a step (the natural gradient; Amari: Neural Computation 10, 1998).
Then the visibility is made even over the picture and scaled to the budget.
"""

import torch
import torch.nn.functional as F
from torch import nn

from generator import ANSWERS, WIDTHS, Drawer
from visibility import LEVELS, YCC, Visibility, filtered, gaussian, opponent, pyramid

GRID = 32             # sides in multiples of it, px
EVEN = gaussian(1.0)  # window of the equalised visibility, cells
SLACK = 4 / 255       # a sample may be clipped by so much


class Perturber(nn.Module):
    def __init__(self):
        super().__init__()
        self.coarse, self.fine = Drawer(WIDTHS), Drawer(WIDTHS)
        self.shares = nn.Parameter(torch.zeros(2, LEVELS, 3))  # logarithms: of each follower's bands, of luma, blue and red

    def noise(self, x, generator=None):
        """-1..1, a sixteenth of the size of x."""
        shape = len(x), ANSWERS, x.shape[2] // 16, x.shape[3] // 16
        return (torch.rand(shape, generator=generator) * 2 - 1).to(x.device)

    def forward(self, x, noise, seen, budget):
        """A perturbation of any scale; budget: of the steps that the followers look at, one a picture."""
        small = F.avg_pool2d(x, 2)
        seen_small = Visibility(small)
        gates, before = self.coarse.look(small)
        d = scaled(small, step(self.coarse.draw(gates, noise), seen_small, self.shares[0]), budget, seen_small)
        d = step(self.coarse.moved(before, small + d), seen_small, self.shares[0])
        d = scaled(small, d, budget, seen_small)
        _, before = self.fine.look(x)
        d = self.fine.moved(before, x + F.interpolate(d, scale_factor=2, mode="bilinear", align_corners=False))
        return step(d, seen, self.shares[1])


def step(gradient, seen, shares):
    """A gradient as a step under the visibility model, of any scale."""
    total = 0
    bands = pyramid(opponent(gradient))[0][:LEVELS]
    for level in reversed(range(LEVELS)):
        band = bands[level] * seen.thresholds[level].detach().square() * shares[level].exp().view(1, 3, 1, 1)
        if torch.is_tensor(total):
            total = F.interpolate(total, size=band.shape[2:], mode="bilinear", align_corners=False)
        total = total + band
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
    local = local + 0.05 * local.mean((2, 3), keepdim=True) + 1e-12
    shares = F.interpolate(1 / local, size=d.shape[2:], mode="bilinear", align_corners=False)
    d = d * shares
    d = d * (budget / (seen.total(d) + 1e-12)).view(-1, 1, 1, 1)
    return within(x, d)


def protected(network, picture, budget, seed):
    """A picture (N x 3 x H x W, any size) protected, rounded to levels; for the evaluation."""
    height, width = picture.shape[2:]
    x = F.pad(picture, (0, -width % GRID, 0, -height % GRID), mode="replicate")
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        d = network(x, network.noise(x, generator), Visibility(x), torch.tensor([budget]))
        d = d[:, :, :height, :width]
        y = picture + scaled(picture, d, torch.tensor([budget]))
    return (y.clamp(0, 1) * 255).round() / 255
