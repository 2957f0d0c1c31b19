"""What is drawn, brought nearer to the spectrum of what hides it, window by window.

A picture hides what is of the size and height of its own texture: grain hides grain but no row of equal strokes, and a
network of small kernels can't tell them apart.  src/engine/protect/protect_spectra.c computes the same; change both together.
"""

import functools
import math

import torch
import torch.nn.functional as F

from devices import placed

SIDE, BINS = 16, 8  # px of a window, every half of which another begins; frequencies it is taken apart into, each way
JUST_SEEN = 0.008  # of a window's coefficients, where it holds nothing else: some half a level of 255
FINER = 36  # cycles a window, squared, at which twice as much is just seen
KEPT = 15 / 16  # to what power amplitudes are taken
NOTHING = 1e-7  # power that is not told apart from none
RINGS, TURNS = (1.8, 3.2, 5.2), (30, 60)  # cycles a window, and degrees from upright strokes to level lines, between groups
GROUPS = (len(RINGS) + 1) * (len(TURNS) + 1)  # of frequencies that have a gain in common
FIELDS = ("blue", "red", "pale")  # of colours, and of how much of their rows is left out
GAINS = GROUPS + len(FIELDS)
LIGHT = torch.tensor([0.05, 0.15, 0.35, 0.7])  # nodes of a table of gains: a window's mean luma,
HIDES = torch.tensor([0.02, 0.035, 0.07, 0.14]).log()  # the root mean square of what hides in it,
DRAWN = torch.tensor([0.006, 0.03, 0.12, 0.4]).log()  # and of what is drawn, before the mask
CELLS = len(LIGHT) * len(HIDES) * len(DRAWN)  # of a table of gains, [gain, cell], in this order


def basis_of():
    """Cosines and sines of (k + 1/2) / 16 cycles a pixel under a half wave of a sine, orthonormal over windows that
    overlap by half: what has one colour is of the lowest frequency alone."""
    place = torch.arange(SIDE, dtype=torch.float64) + 0.5
    phase = (torch.arange(BINS, dtype=torch.float64)[:, None] + 0.5) * (place - SIDE / 2) * (2 * math.pi / SIDE)
    waves = torch.cat([torch.cos(phase), torch.sin(phase)])
    return (waves * (2 / SIDE) ** 0.5 * torch.sin(math.pi * place / SIDE)).float()


def just_seen():
    cycles = torch.arange(BINS) + 0.5
    return JUST_SEEN * (1 + (cycles[:, None].square() + cycles.square()) / FINER)


@functools.lru_cache(maxsize=None)
def left_of(level):
    """How much of each frequency is left: of what is level, of the lowest across and any but the lowest down, level."""
    left = torch.ones(BINS, BINS)
    left[1:, 0] = level
    return left


def groups_of():
    """Which group each frequency is in: rings, and in each upright strokes, slanting ones, level lines."""
    cycles = torch.arange(BINS) + 0.5
    ring = torch.bucketize((cycles[:, None].square() + cycles.square()).sqrt(), torch.tensor(RINGS))
    turn = torch.rad2deg(torch.atan2(cycles[:, None].expand(BINS, BINS), cycles.expand(BINS, BINS)))
    return ring * (len(TURNS) + 1) + torch.bucketize(turn, torch.tensor(TURNS))


BASIS, SEEN, GROUP = basis_of(), just_seen(), groups_of()
BELL = (math.pi * (torch.arange(SIDE) + 0.5) / SIDE).sin().square()  # of a window, as what overlaps adds up to 1


def spectra(plane):
    """Of windows: 16x16 coefficients, cosines before sines."""
    around = F.pad(plane, (SIDE // 2,) * 4, mode="replicate")
    basis = placed(BASIS, plane.device)
    return basis @ around.unfold(2, SIDE, SIDE // 2).unfold(3, SIDE, SIDE // 2) @ basis.t()


def plane_of(coefficients):
    """The plane of which these are the spectra."""
    basis = placed(BASIS, coefficients.device)
    windows = basis.t() @ coefficients @ basis
    _, _, rows, columns = windows.shape[:4]
    size, edge = ((rows + 1) * SIDE // 2, (columns + 1) * SIDE // 2), SIDE // 2
    plane = F.fold(windows.permute(0, 1, 4, 5, 2, 3).reshape(-1, SIDE * SIDE, rows * columns), size, SIDE, stride=edge)
    return plane[:, :, edge:-edge, edge:-edge]


def power(coefficients):
    """Of each frequency, 8x8 a window: cosines and sines together, so that it does not matter where a wave lies."""
    squares = coefficients.square()
    across = squares[..., :BINS] + squares[..., BINS:]
    return across[..., :BINS, :] + across[..., BINS:, :]


def hiding(luma):
    """How much of each frequency is hidden: the mean of what the picture has there and beside it, and what is just seen."""
    own = power(spectra(luma))
    own[..., 0, 0] = 0  # how bright a window is hides nothing
    near = F.avg_pool2d(F.pad(own.flatten(0, 3)[:, None], (1,) * 4, mode="replicate"), 3, 1)
    return near.view(own.shape).sqrt() + placed(SEEN, luma.device)


def between_windows(values):
    """A plane of what windows have, [picture, 1, row, column], one going over into the next as they overlap."""
    bell = placed(BELL, values.device)
    size = [(windows + 1) * SIDE // 2 for windows in values.shape[2:]]
    laid = values.flatten(1)[:, None] * (bell[:, None] * bell).flatten()[:, None]
    edge = SIDE // 2
    return F.fold(laid, size, SIDE, stride=edge)[:, :, edge:-edge, edge:-edge]


def shares_of(values, nodes):
    """Of each node, how much it counts for at values: linear between two, as at the last beyond it."""
    nodes = placed(nodes, values.device)
    values = values.clamp(nodes[0], nodes[-1])
    above = torch.bucketize(values, nodes[1:-1].contiguous()) + 1
    share = (values - nodes[above - 1]) / (nodes[above] - nodes[above - 1])
    return (F.one_hot(above - 1, len(nodes)) * (1 - share)[..., None] + F.one_hot(above, len(nodes)) * share[..., None])


def cells_of(luma, hides, of_drawn):
    """How much each cell of a table of gains counts for in each window."""
    light = F.avg_pool2d(F.pad(luma, (SIDE // 2,) * 4, mode="replicate"), SIDE, SIDE // 2)
    of_hides = (hides.square().mean((4, 5)) + NOTHING).log() / 2
    drawn = (of_drawn.mean((4, 5)) + NOTHING).log() / 2
    light, of_hides, drawn = shares_of(light, LIGHT), shares_of(of_hides, HIDES), shares_of(drawn, DRAWN)
    return torch.einsum("...l,...h,...d->...lhd", light, of_hides, drawn).flatten(-3)


def taken_apart(drawn, luma, level=1):
    """The spectra of what is drawn, every amplitude to the power of KEPT, the rest given by what hides it, of level lines
    level; and how much each cell of a table of gains counts for."""
    with torch.no_grad():
        hides = hiding(luma)
    coefficients = spectra(drawn)
    of_drawn = power(coefficients)
    gain = placed(left_of(level), luma.device) * (hides.square() / (of_drawn + NOTHING)) ** ((1 - KEPT) / 2)
    return coefficients * gain.repeat(1, 1, 1, 1, 2, 2), cells_of(luma, hides, of_drawn.detach())


def gained(coefficients, cells, table):
    """The plane of these spectra, each group of frequencies times its gain; and the fields, one plane each."""
    gains = cells @ table.t()
    of_frequencies = gains[..., placed(GROUP, gains.device)]
    fields = [between_windows(gains[..., GROUPS + i]) for i in range(len(FIELDS))]
    return plane_of(coefficients * of_frequencies.repeat(1, 1, 1, 1, 2, 2)), fields


def companded(drawn, luma, level, table):
    """What is drawn over luma, brought nearer to the spectrum of what hides it and multiplied by gains; and the fields."""
    return gained(*taken_apart(drawn, luma, level), table)
