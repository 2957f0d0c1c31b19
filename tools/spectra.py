"""Adapt the spectrum of the drawn output to the masking spectrum of the picture, window by window.

A picture masks a perturbation with the size and amplitude of its texture. Grain masks grain but no row of equal
strokes, and a network of small kernels can't distinguish them. src/engine/protect/protect_spectra.c computes the
same; change both together.
"""

import functools
import math

import torch
import torch.nn.functional as F

from devices import placed

SIDE, BINS = 16, 8  # px of a window (windows overlap by half); frequencies in each direction
JUST_SEEN = 0.008  # threshold of a window's coefficients without masking: about half a level of 255
FINER = 36  # squared cycles a window at which the threshold doubles
KEPT = 15 / 16  # exponent of the amplitudes
NOTHING = 1e-7  # power below this counts as zero
RINGS, TURNS = (1.8, 3.2, 5.2), (30, 60)  # limits of the groups: cycles a window; degrees from upright strokes to level lines
GROUPS = (len(RINGS) + 1) * (len(TURNS) + 1)  # groups of frequencies that share a gain
FIELDS = ("blue", "red", "pale")  # gains of colours, and of the reduction of colour along rows
GAINS = GROUPS + len(FIELDS)
LIGHT = torch.tensor([0.05, 0.15, 0.35, 0.7])  # nodes of a table of gains: a window's mean luma,
HIDES = torch.tensor([0.02, 0.035, 0.07, 0.14]).log()  # root mean square of its masking,
DRAWN = torch.tensor([0.006, 0.03, 0.12, 0.4]).log()  # and of the drawn output, before the mask
CELLS = len(LIGHT) * len(HIDES) * len(DRAWN)  # of a table of gains, [gain, cell], in this order


def basis_of():
    """Cosines and sines of (k + 1/2) / 16 cycles a pixel under half a sine wave, orthonormal over windows that
    overlap by half. A constant is only in the lowest frequency."""
    place = torch.arange(SIDE, dtype=torch.float64) + 0.5
    phase = (torch.arange(BINS, dtype=torch.float64)[:, None] + 0.5) * (place - SIDE / 2) * (2 * math.pi / SIDE)
    waves = torch.cat([torch.cos(phase), torch.sin(phase)])
    return (waves * (2 / SIDE) ** 0.5 * torch.sin(math.pi * place / SIDE)).float()


def just_seen():
    cycles = torch.arange(BINS) + 0.5
    return JUST_SEEN * (1 + (cycles[:, None].square() + cycles.square()) / FINER)


@functools.lru_cache(maxsize=None)
def left_of(level):
    """The factor of each frequency: level for level lines (lowest frequency across, any but the lowest down),
    otherwise 1."""
    left = torch.ones(BINS, BINS)
    left[1:, 0] = level
    return left


def groups_of():
    """The group of each frequency: its radius, and within it upright strokes, slanting strokes or level lines."""
    cycles = torch.arange(BINS) + 0.5
    ring = torch.bucketize((cycles[:, None].square() + cycles.square()).sqrt(), torch.tensor(RINGS))
    turn = torch.rad2deg(torch.atan2(cycles[:, None].expand(BINS, BINS), cycles.expand(BINS, BINS)))
    return ring * (len(TURNS) + 1) + torch.bucketize(turn, torch.tensor(TURNS))


BASIS, SEEN, GROUP = basis_of(), just_seen(), groups_of()
BELL = (math.pi * (torch.arange(SIDE) + 0.5) / SIDE).sin().square()  # window weights; overlapping windows add up to 1


def spectra(plane):
    """The 16x16 coefficients of each window, cosines before sines."""
    around = F.pad(plane, (SIDE // 2,) * 4, mode="replicate")
    basis = placed(BASIS, plane.device)
    return basis @ around.unfold(2, SIDE, SIDE // 2).unfold(3, SIDE, SIDE // 2) @ basis.t()


def plane_of(coefficients):
    """The plane of these spectra."""
    basis = placed(BASIS, coefficients.device)
    windows = basis.t() @ coefficients @ basis
    _, _, rows, columns = windows.shape[:4]
    size, edge = ((rows + 1) * SIDE // 2, (columns + 1) * SIDE // 2), SIDE // 2
    plane = F.fold(windows.permute(0, 1, 4, 5, 2, 3).reshape(-1, SIDE * SIDE, rows * columns), size, SIDE, stride=edge)
    return plane[:, :, edge:-edge, edge:-edge]


def power(coefficients):
    """The power of each frequency, 8x8 a window. Cosines and sines are summed, so that the phase of a wave has no
    effect."""
    squares = coefficients.square()
    across = squares[..., :BINS] + squares[..., BINS:]
    return across[..., :BINS, :] + across[..., BINS:, :]


def hiding(luma):
    """The masking of each frequency: the mean amplitude of the picture there and at adjacent frequencies, plus the
    threshold of visibility."""
    own = power(spectra(luma))
    own[..., 0, 0] = 0  # the brightness of a window masks nothing
    near = F.avg_pool2d(F.pad(own.flatten(0, 3)[:, None], (1,) * 4, mode="replicate"), 3, 1)
    return near.view(own.shape).sqrt() + placed(SEEN, luma.device)


def between_windows(values):
    """Interpolate values of windows, [picture, 1, row, column], to a plane."""
    bell = placed(BELL, values.device)
    size = [(windows + 1) * SIDE // 2 for windows in values.shape[2:]]
    laid = values.flatten(1)[:, None] * (bell[:, None] * bell).flatten()[:, None]
    edge = SIDE // 2
    return F.fold(laid, size, SIDE, stride=edge)[:, :, edge:-edge, edge:-edge]


def shares_of(values, nodes):
    """The linear interpolation weight of each node at values; values beyond the ends are clamped."""
    nodes = placed(nodes, values.device)
    values = values.clamp(nodes[0], nodes[-1])
    above = torch.bucketize(values, nodes[1:-1].contiguous()) + 1
    share = (values - nodes[above - 1]) / (nodes[above] - nodes[above - 1])
    return (F.one_hot(above - 1, len(nodes)) * (1 - share)[..., None] + F.one_hot(above, len(nodes)) * share[..., None])


def cells_of(luma, hides, of_drawn):
    """The interpolation weight of each cell of a table of gains in each window."""
    light = F.avg_pool2d(F.pad(luma, (SIDE // 2,) * 4, mode="replicate"), SIDE, SIDE // 2)
    of_hides = (hides.square().mean((4, 5)) + NOTHING).log() / 2
    drawn = (of_drawn.mean((4, 5)) + NOTHING).log() / 2
    light, of_hides, drawn = shares_of(light, LIGHT), shares_of(of_hides, HIDES), shares_of(drawn, DRAWN)
    return torch.einsum("...l,...h,...d->...lhd", light, of_hides, drawn).flatten(-3)


def taken_apart(drawn, luma, level=1):
    """The spectra of the drawn output, and the weight of each cell of a table of gains.

    Each amplitude is taken to the power of KEPT; the masking amplitude supplies the remaining power. level scales
    level lines.
    """
    with torch.no_grad():
        hides = hiding(luma)
    coefficients = spectra(drawn)
    of_drawn = power(coefficients)
    gain = placed(left_of(level), luma.device) * (hides.square() / (of_drawn + NOTHING)) ** ((1 - KEPT) / 2)
    return coefficients * gain.repeat(1, 1, 1, 1, 2, 2), cells_of(luma, hides, of_drawn.detach())


def gained(coefficients, cells, table):
    """The plane of these spectra with the gain of each group of frequencies, and the fields, one plane each."""
    gains = cells @ table.t()
    of_frequencies = gains[..., placed(GROUP, gains.device)]
    fields = [between_windows(gains[..., GROUPS + i]) for i in range(len(FIELDS))]
    return plane_of(coefficients * of_frequencies.repeat(1, 1, 1, 1, 2, 2)), fields


def companded(drawn, luma, level, table):
    """The drawn output over luma, adapted to the masking spectrum and multiplied by gains, and the fields."""
    return gained(*taken_apart(drawn, luma, level), table)
