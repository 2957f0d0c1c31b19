"""What is drawn, brought nearer to the spectrum of what hides it, window by window.

A picture hides what is of the size and height of its own texture: grain hides grain but no row of equal strokes, and a
network of small kernels can't tell them apart.  src/engine/protect_spectra.c computes the same; change both together.
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


BASIS, SEEN = basis_of(), just_seen()
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


def companded(drawn, luma, level=1, ceiling=math.inf):
    """Of what is drawn, every amplitude to the power of KEPT, the rest given by what hides it; of level lines level.  And what
    all of it has to be multiplied by, so that nowhere much more than the ceiling is left of its root mean square."""
    with torch.no_grad():
        hides = hiding(luma)
    coefficients = spectra(drawn)
    of_drawn = power(coefficients)
    gain = placed(left_of(level), luma.device) * (hides.square() / (of_drawn + NOTHING)) ** ((1 - KEPT) / 2)
    mean = of_drawn.sum((4, 5)) / (SIDE // 2) ** 2
    return plane_of(coefficients * gain.repeat(1, 1, 1, 1, 2, 2)), between_windows((1 + mean / ceiling ** 2).rsqrt())
