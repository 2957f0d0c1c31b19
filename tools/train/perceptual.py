"""The network of the redesigned anti-AI engine, and the amplitude that a budget of visibility gives.

The network is a pair of followers (Drawer of followers.py): small encoders with the gradient directions of the surrogates.
The coarse follower reads the picture at half of its size, the fine follower at full size.

Each gradient becomes a step under the visibility model: its bands are multiplied by the squares of their thresholds.
This is the steepest ascent if visibility is the length of a step (the natural gradient; Amari: Neural Computation 10, 1998).
Then the visibility is made even over the picture and scaled to the budget.
"""

import torch
import torch.nn.functional as F
from torch import nn

from followers import ANSWERS, WIDTHS, Drawer, doubled, seeded_noise, soft
from visibility import CELL, LEVELS, POOLING, YCC, Visibility, filtered, gaussian, opponent, pyramid

GRID = 32             # sides in multiples of it, px
MARGIN = 256          # px of edge repetition around a picture, as in the engine
COLORED = 1.5 / 255   # mean difference of blue and red from luma: JPEG and scanners alter grey by less
EVEN = gaussian(1.0)  # window of the equalised visibility, cells
SHOWN = 6 / 255       # the largest perturbation that a follower looks at
STEP_UNIT = 4 / 255   # thresholds count in it, so that steps are near 1
SLACK = 2 / 255       # most by which a sample may be clipped; 4 / 255 left a tint of .8 levels in a half black picture


class Perturber(nn.Module):
    def __init__(self):
        super().__init__()
        self.coarse, self.fine = Drawer(WIDTHS), Drawer(WIDTHS)
        self.gains = nn.Parameter(torch.zeros(2))           # logarithms: of the first and second coarse gradient
        self.shares = nn.Parameter(torch.zeros(LEVELS, 3))     # logarithms: of the bands of luma, blue and red

    def noise(self, x, generator=None):
        """Returns noise of -1..1, at a sixteenth of the size of x."""
        shape = len(x), ANSWERS, x.shape[2] // 16, x.shape[3] // 16
        return (torch.rand(shape, generator=generator) * 2 - 1).to(x.device)

    def gradient(self, x, noise):
        """Returns the gradient of the fine follower for x."""
        small = F.avg_pool2d(x, 2)
        gates, before = self.coarse.look(small)
        d = SHOWN * soft(self.coarse.draw(gates, noise) * self.gains[0].exp())
        d = SHOWN * soft(doubled(self.coarse.moved(before, small + d) * self.gains[1].exp()))
        _, before = self.fine.look(x)
        return self.fine.moved(before, x + d)

    def forward(self, x, noise, seen):
        """Returns a perturbation of any scale."""
        return step(self.gradient(x, noise), seen, self.shares)


def doubled_even(x):
    """Doubles the size; samples at even places stay."""
    for dim in (2, 3):
        last = x.narrow(dim, x.shape[dim] - 1, 1)
        between = (x + torch.cat([x.narrow(dim, 1, x.shape[dim] - 1), last], dim)) / 2
        x = torch.stack([x, between], dim + 1).flatten(dim, dim + 1)
    return x


def step(gradient, seen, shares):
    """Returns a gradient as a step under the visibility model, of any scale."""
    total = 0
    bands = pyramid(opponent(gradient))[0][:LEVELS]
    for level in reversed(range(LEVELS)):
        band = bands[level] * (seen.thresholds[level].detach() / STEP_UNIT).square() * shares[level].exp().view(1, 3, 1, 1)
        total = band + (doubled_even(total) if torch.is_tensor(total) else 0)
    inverse = torch.linalg.inv(torch.tensor(YCC)).to(total.device)
    return torch.einsum("ab,nbhw->nahw", inverse, total)


def within(x, d):
    """Bounds a perturbation by the headroom of each sample, alike up and down, so that clipping makes no tint."""
    room = torch.minimum(x, 1 - x).clamp_min(0) + SLACK
    return torch.maximum(torch.minimum(d, room), -room)


def scaled(x, d, budget, seen):
    """Makes the visibility of the perturbation even over the picture, and scales it to a budget (one a picture)."""
    means, peaks = seen.cells(d)
    local = filtered(peaks, EVEN)
    shares = 1 / (local + 0.05 * local.mean((2, 3), keepdim=True) + 1e-12)
    total = (means * shares ** POOLING).mean((1, 2, 3)) ** (1 / POOLING)
    d = d * F.interpolate(shares, scale_factor=CELL, mode="bilinear", align_corners=False)
    return within(x, d * (budget / (total + 1e-12)).view(-1, 1, 1, 1))


def is_colored(x):
    """Returns whether pictures have any colour; other pictures get a change of luma only."""
    return (opponent(x)[:, 1:].abs().mean((1, 2, 3)) >= COLORED).float().view(-1, 1, 1, 1)


def colored_step(network, x, gradient, seen):
    """Returns the step of a gradient for x, of luma only if x has no colour."""
    d = step(gradient, seen, network.shares)
    luma = opponent(d)[:, :1]
    return luma + is_colored(x) * (d - luma)


def unit(network, picture, seed):
    """Returns the step of a picture (1 x 3 x H x W, any size) as the engine computes it, the picture and its visibility. All
    are padded to the grid."""
    height, width = picture.shape[2:]
    x = F.pad(picture, (0, -width % GRID, 0, -height % GRID), mode="replicate")
    wide = F.pad(x, (MARGIN,) * 4, mode="replicate")
    noise = seeded_noise(seed, wide.shape[2] // 16, wide.shape[3] // 16)
    gradient = network.gradient(wide, noise)[:, :, MARGIN:-MARGIN, MARGIN:-MARGIN]
    seen = Visibility(x)
    return x, colored_step(network, x, gradient, seen), seen


def protected(network, picture, budget, seed):
    """Returns the protected picture, rounded to levels."""
    height, width = picture.shape[2:]
    with torch.no_grad():
        x, d, seen = unit(network, picture, seed)
        y = (x + scaled(x, d, torch.tensor([budget]), seen))[:, :, :height, :width]
    return (y.clamp(0, 1) * 255).round() / 255
