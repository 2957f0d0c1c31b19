"""Learned grain patterns, for grain.py and finish.py, and the measures that keep a grain field without visible shape."""

import torch

from coding import planes_of
from devices import placed
from generator import GRAIN_PX, GRAIN_STEP, GRAINS, luma_of
from pictures import blur

OCTAVES, DIRECTIONS = (0.045, 0.09, 0.18, 0.36), 4  # bands of the power, in cycles a pixel
WINDOW_PX = 128  # of the field, for its fourth moment
AROUND = ((0, 3.0), (1.2, 4.0), (2.2, 6.0))  # sigma of a blur, and sigma of the neighbourhood of the gradients
COLOURED = 0.5  # initial difference of the colours from green
PLANES = torch.tensor([1, 0.25, 0.67]).view(1, 3, 1, 1)  # weights of Y, Cb and Cr in the visibility of shapes
EDGE = torch.sin(torch.pi * (torch.arange(GRAIN_PX) + 0.5) / GRAIN_PX)  # half a wave: patterns blend into each other


class Grain(torch.nn.Module):
    """The patterns, initialised from noise or from other patterns."""

    def __init__(self, start=None):
        super().__init__()
        drawn = self.noise() if start is None else start / (EDGE[:, None] * EDGE)
        self.drawn = torch.nn.Parameter(drawn / drawn.square().mean().sqrt())

    def noise(self):
        noise = torch.fft.rfft2(torch.randn(GRAINS, 3, 4 * GRAIN_PX, 4 * GRAIN_PX))
        cycles = (torch.fft.fftfreq(4 * GRAIN_PX)[:, None].square() + torch.fft.rfftfreq(4 * GRAIN_PX).square()).sqrt()
        drawn = torch.fft.irfft2(noise * ((cycles > 0.06) & (cycles < 0.16)))[..., :GRAIN_PX, :GRAIN_PX]
        return drawn[:, 1:2] + COLOURED * (drawn - drawn[:, 1:2])

    def patterns(self):
        """The patterns, scaled so that the field's root mean square is 1."""
        edge = placed(EDGE, self.drawn.device)
        patterns = self.drawn * edge[:, None] * edge
        return patterns / (patterns.square().mean().sqrt() * (GRAIN_PX / GRAIN_STEP))


def bands(side, directions=DIRECTIONS):
    """Filters of a transform of side px, for each octave and direction, on one half of the frequencies. The filtered
    plane is the band's envelope."""
    along = torch.fft.fftfreq(side)
    y, x = along[:, None].expand(side, side), along.expand(side, side)
    height, angle = (y.square() + x.square()).sqrt().clamp_min(1e-6), torch.atan2(y, x)
    filters = []
    for octave in OCTAVES:
        ring = torch.cos(torch.log2(height / octave).clamp(-1, 1) * torch.pi / 2)
        for i in range(directions):
            apart = torch.remainder(angle - i * torch.pi / directions + torch.pi, 2 * torch.pi) - torch.pi
            filters.append(ring * torch.cos((apart * directions / 2).clamp(-torch.pi / 2, torch.pi / 2)))
    return torch.stack(filters)


def power_of(planes, filters):
    """[picture, plane, band, y, x]"""
    return torch.fft.ifft2(torch.fft.fft2(planes, s=filters.shape[1:])[:, :, None] * filters).abs().square()


def moment_of(field, filters):
    """The excess of the fourth moment of each band's envelope over that of noise, weighted by the band's power."""
    planes = planes_of(field)[:, :, :WINDOW_PX, :WINDOW_PX] * placed(PLANES, field.device)
    power = power_of(planes, filters)
    second, fourth = power.mean((0, 3, 4)), power.square().mean((0, 3, 4))
    beyond = (fourth / (second.square() + 1e-12) / 2 - 1).clamp_min(0)
    return (beyond * second).sum() / second.sum()


def unequal(patterns, filters):
    """Three inequalities of power, as squared deviation over the square:
    - over the places of a step, band by band;
    - over the directions of an octave, of all patterns together;
    - over directions for each pattern, as a mean, because single-direction strips look like a parquet.

    Signs are random, so the power of a field is the sum of the power of its patterns.
    """
    each = power_of(planes_of(patterns) * placed(PLANES, patterns.device), filters)
    power = each.mean(0)
    steps = filters.shape[1] // GRAIN_STEP
    places = power.view(*power.shape[:2], steps, GRAIN_STEP, steps, GRAIN_STEP).sum((2, 4))
    mean = places.mean((2, 3), keepdim=True)
    whole = mean.sum()
    of_places = (places - mean).square().mean((2, 3), keepdim=True) / (mean + 0.01 * whole).square() * mean / whole
    return of_places.sum(), directed(mean.view(1, -1, len(filters))), directed(each.mean((3, 4)))


def directed(power):
    """The inequality of power over directions for [field, plane, band], as a mean over fields."""
    directions = power.view(*power.shape[:2], len(OCTAVES), -1)
    octave, whole = directions.mean(3, keepdim=True), power.sum((1, 2)).view(-1, 1, 1, 1)
    apart = (directions - octave).square().mean(3, keepdim=True) / (octave + 0.003 * whole).square()
    return (apart * octave * directions.shape[3] / whole).sum((1, 2, 3)).mean()


def coherence(plane, around):
    """The coherence of gradients around each place: the share of their power in one direction of the structure
    tensor, 0 to 1."""
    across = plane[..., 1:-1, 2:] - plane[..., 1:-1, :-2]
    down = plane[..., 2:, 1:-1] - plane[..., :-2, 1:-1]
    xx, yy, xy = blur(torch.cat([across * across, down * down, across * down], 1), around).split(1, 1)
    return ((xx - yy).square() + 4 * xy * xy + 1e-12).sqrt().mean() / (xx + yy).mean()


def coherent(field):
    """The coherence of a field's luma relative to noise of the same spectrum, at each of AROUND.

    Strips, ridges and mazes exceed 1, even where all patterns together have equal power in all directions. The blur
    is needed: without it fine noise would hide visible shapes from this measure.
    """
    luma = luma_of(field)
    with torch.no_grad():
        amplitude = torch.fft.fft2(luma).abs().square().mean((0, 1)).sqrt()
        noise = torch.fft.ifft2(torch.fft.fft2(torch.randn_like(luma)) * amplitude).real
        of_noise = [coherence(seen_at(noise, sigma), around) for sigma, around in AROUND]
    return torch.stack([coherence(seen_at(luma, sigma), around) / one for (sigma, around), one in zip(AROUND, of_noise)])


def seen_at(plane, sigma):
    return blur(plane, sigma) if sigma else plane
