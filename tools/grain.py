#!/usr/bin/python3
"""Learns the patterns of grain: what is laid over smooth places instead of strokes.  See README.md here.

Patterns are laid at random, as the engine does, all over crops of training pictures that are smooth, as high as they are laid
there, and learn to move both encoders, as they are and after what others do to the result.  What is seen is limited by MS-SSIM
of luma, by how far its colour passes what is just seen, by how much power all colours have over luma's, for else most of it
becomes fine blue, by what a JPEG grows by, and by what keeps the field without a lattice, stripes or creases: power is even
over the places of a step and over directions, band by band, and the fourth moment of each band is that of noise.
"""

import argparse

import torch

from coding import file_size, planes_of
from course import Course, add_options, encoders_of, prepared
from finish import SIDE, passed_on, shifts_of
from generator import GRAIN_PX, GRAIN_STEP, GRAINS, grain_of, grain_places, luma_of, smoothness
from limits import GRAIN_SEEN, bands_of, ms_ssim, seen_in_light
from pictures import batch_of

COUNT = 3  # crops a step
KINDS = 3  # of processing that a step looks at
SMOOTH = 0.9  # how smooth a crop is at least, as a mean
LEVELS = 1.2  # root mean square of the luma that is laid, of 255
WEIGHTS = {  # of the logarithm of a shift
    "sd15": {"none": 11.0, "cut": 14.0, "half": 12.0, "blurred": 28.0, "jpeg": 8.0, "webp": 24.0},
    "sana": {"none": 8.0, "cut": 11.0, "half": 14.0, "blurred": 0.2, "jpeg": 2.0, "webp": 0.2},
}
CHARGES = {  # what the limits weigh
    "ssim": 4.0, "colour": 0.01, "energy": 14.0, "growth": 2.0, "places": 25.0, "directions": 25.0, "moment": 30.0,
}
OCTAVES, DIRECTIONS = (0.045, 0.09, 0.18, 0.36), 4  # in which power is told apart, cycles a pixel
WINDOW_PX = 128  # of the field in which its fourth moment is taken
COLOURED = 0.5  # how far colours differ from green to begin with
PLANES = torch.tensor([1, 0.25, 0.67]).view(1, 3, 1, 1)  # what Y, Cb and Cr count for where shapes are seen
EDGE = torch.sin(torch.pi * (torch.arange(GRAIN_PX) + 0.5) / GRAIN_PX)  # half a wave: patterns go over into one another


class Grain(torch.nn.Module):
    """The patterns, from noise or from others."""

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
        """Those that are laid; the field's root mean square is 1."""
        patterns = self.drawn * EDGE[:, None] * EDGE
        return patterns / (patterns.square().mean().sqrt() * (GRAIN_PX / GRAIN_STEP))


def bands(side):
    """Filters of a transform of side px, for each octave and direction, of one half of all frequencies: what they leave is
    the band's envelope."""
    along = torch.fft.fftfreq(side)
    y, x = along[:, None].expand(side, side), along.expand(side, side)
    height, angle = (y.square() + x.square()).sqrt().clamp_min(1e-6), torch.atan2(y, x)
    filters = []
    for octave in OCTAVES:
        ring = torch.cos(torch.log2(height / octave).clamp(-1, 1) * torch.pi / 2)
        for i in range(DIRECTIONS):
            apart = torch.remainder(angle - i * torch.pi / DIRECTIONS + torch.pi, 2 * torch.pi) - torch.pi
            filters.append(ring * torch.cos((apart * DIRECTIONS / 2).clamp(-torch.pi / 2, torch.pi / 2)))
    return torch.stack(filters)


def power_of(planes, filters):
    """[picture, plane, band, y, x]"""
    return torch.fft.ifft2(torch.fft.fft2(planes, s=filters.shape[1:])[:, :, None] * filters).abs().square()


def moment_of(field, filters):
    """How far the fourth moment passes that of noise, of the envelope of each band, which counts for as much as its power."""
    planes = planes_of(field)[:, :, :WINDOW_PX, :WINDOW_PX] * PLANES
    power = power_of(planes, filters)
    second, fourth = power.mean((0, 3, 4)), power.square().mean((0, 3, 4))
    beyond = (fourth / (second.square() + 1e-12) / 2 - 1).clamp_min(0)
    return (beyond * second).sum() / second.sum()


def unequal(patterns, filters):
    """How unequally the places of a step share the power of each band, and directions that of each octave: squared deviation
    over the square.  Signs are random, so the power of a field is the sum of that of its patterns."""
    power = power_of(planes_of(patterns) * PLANES, filters).mean(0)
    steps = filters.shape[1] // GRAIN_STEP
    places = power.view(*power.shape[:2], steps, GRAIN_STEP, steps, GRAIN_STEP).sum((2, 4))
    mean = places.mean((2, 3), keepdim=True)
    whole = mean.sum()
    of_places = (places - mean).square().mean((2, 3), keepdim=True) / (mean + 0.01 * whole).square() * mean / whole
    directions = mean.view(-1, len(OCTAVES), DIRECTIONS)
    octave = directions.mean(2, keepdim=True)
    apart = (directions - octave).square().mean(2, keepdim=True) / (octave + 0.003 * whole).square()
    return of_places.sum(), (apart * octave * DIRECTIONS / whole).sum()


def colour_seen(x, d):
    """The power of the colour that is drawn, over what is just seen of it, band by band; planes."""
    total, light = 0, seen_in_light(x)
    for seen, band in zip(GRAIN_SEEN, bands_of(d)):
        total = total + (band / (seen.view(1, 3, 1, 1) * light))[:, 1:].square().mean((0, 2, 3)).sum()
        light = torch.nn.functional.avg_pool2d(light, 2)
    return total


def smooth_crops(pictures, rng):
    """Crops of training pictures that are smooth."""
    crops = []
    while len(crops) < COUNT:
        x = batch_of(pictures, 1, SIDE, rng)
        if smoothness(x).mean() > SMOOTH and planes_of(x)[:, 0].std() > 0.004:
            crops.append(x)
    return torch.cat(crops)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, steps=300, rate=5e-2, last_rate=1e-3, seed=20261124)
    parser.add_argument("--start", help="patterns to go on from, as this writes them; otherwise noise")
    options = parser.parse_args()
    options.use, options.sana = "sd15,sana", 1.0
    rng, device, pictures = prepared(options)
    encoders, _ = encoders_of(options, device)
    grain, seen = Grain(torch.load(options.start)["grain"] if options.start else None), {}
    of_field, of_pattern = bands(WINDOW_PX), bands(2 * GRAIN_PX)
    course = Course(grain, options)
    while course.goes_on():
        x, patterns = smooth_crops(pictures, rng), grain.patterns()
        hashed = torch.randint(256, (COUNT, grain_places(SIDE), grain_places(SIDE)))
        field = grain_of(patterns, hashed)
        luma = luma_of(patterns).square().mean().sqrt() * (GRAIN_PX / GRAIN_STEP)
        y = x + LEVELS / 255 * field / luma
        planes, drawn = planes_of(x), planes_of(y)
        lacks, colour = 1 - ms_ssim(planes, drawn)[:, 0].mean(), colour_seen(planes, drawn - planes)
        y = y + ((y.clamp(0, 1) * 255).round() / 255 - y).detach()
        of_places, directions = unequal(patterns, of_pattern)
        measured = {"ssim": lacks.log(), "colour": (1 + colour).log(), "energy": -2 * luma.log(),
                    "growth": (file_size(drawn) - file_size(planes)).mean(), "places": of_places,
                    "directions": directions, "moment": moment_of(field, of_field)}
        loss = sum(CHARGES[name] * value for name, value in measured.items())
        for kind in rng.sample(sorted(WEIGHTS["sd15"]), KINDS):
            for name, shift in shifts_of(encoders, *passed_on(kind, x, y, rng)).items():
                loss = loss - WEIGHTS[name][kind] * torch.log(shift.mean() + 1e-6)
                seen.setdefault("%s %s" % (name, kind), []).append(shift.mean().item())
        course.learn(loss)
        if course.step % 60 == 0 or course.step == options.steps:
            course.note_step(shift={key: round(sum(some) / len(some), 3) for key, some in sorted(seen.items())},
                             **{name: round(value.item(), 4) for name, value in measured.items()})
            seen = {}
    torch.save({"grain": course.mean.patterns().detach()}, options.out)


if __name__ == "__main__":
    main()
