#!/usr/bin/python3
"""Learns the patterns of grain: what is laid over smooth places instead of strokes.  See README.md here.

Patterns are laid at random, as the engine does, all over crops of training pictures that are smooth, at 37 dB, and learn to
move both encoders, as they are and after what others do to the result.  What is seen is limited four ways: by MS-SSIM of
luma; by how far its colour passes what is just seen; by how far the field's fourth moment passes that of a normal
distribution, so that no pattern stands out; and by how unequally each pattern's power is shared by directions, so that none
is a stroke.
"""

import argparse

import torch

from coding import planes_of
from course import Course, add_options, encoders_of, prepared
from finish import SIDE, passed_on, shifts_of
from generator import GRAIN_PX, GRAIN_STEP, GRAINS, STANDARD, grain_of, grain_places, smoothness
from limits import GRAIN_SEEN, bands_of, ms_ssim, seen_in_light
from pictures import batch_of

COUNT = 3  # crops a step
KINDS = 3  # of processing that a step looks at
SMOOTH = 0.9  # how smooth a crop is at least, as a mean
AMPLITUDE = 10 ** (-STANDARD.psnr_db / 20)
WEIGHTS = {  # of the logarithm of a shift
    "sd15": {"none": 5.0, "cut": 19.0, "half": 1.2, "blurred": 7.5, "jpeg": 1.0, "webp": 15.0},
    "sana": {"none": 0.05, "cut": 0.1, "half": 0.02, "blurred": 0.02, "jpeg": 0.02, "webp": 0.02},
}
SSIM, COLOUR, MOMENT, DIRECTION = 1.2, 0.01, 7.0, 2.5  # what the four limits weigh
NORMAL = 2.9  # of the fourth moment over the squared second
COLOURED = 0.5  # how far colours differ from green to begin with
PLANES = torch.tensor([1, 0.25, 0.67]).view(1, 3, 1, 1)  # what Y, Cb and Cr count for where shapes are seen
RINGS, SECTORS, RING = 13, 8, 0.04  # in which power is told apart, and the width of a ring, cycles a pixel
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


def cells():
    """Of each frequency of a pattern, padded to twice its size: which ring and sector it lies in."""
    y, x = torch.fft.fftfreq(2 * GRAIN_PX)[:, None], torch.fft.rfftfreq(2 * GRAIN_PX)[None]
    ring = ((y.square() + x.square()).sqrt() / RING).long().clamp_max(RINGS - 1)
    sector = ((torch.atan2(y.expand_as(ring), x.expand_as(ring)) / torch.pi + 0.5) * SECTORS).long().clamp(0, SECTORS - 1)
    return (ring * SECTORS + sector).flatten()


def colour_seen(x, d):
    """The power of the colour that is drawn, over what is just seen of it, band by band; planes."""
    total, light = 0, seen_in_light(x)
    for seen, band in zip(GRAIN_SEEN, bands_of(d)):
        total = total + (band / (seen.view(1, 3, 1, 1) * light))[:, 1:].square().mean((0, 2, 3)).sum()
        light = torch.nn.functional.avg_pool2d(light, 2)
    return total


def moment_of(field):
    """The fourth moment over the squared second, of each plane, and of all as much as is seen of them."""
    planes = planes_of(field) * PLANES
    second = planes.square().mean((0, 2, 3))
    return (planes.pow(4).mean((0, 2, 3)) / (second + 1e-9)).sum() / (second.sum() + 1e-9)


def direction(patterns, cell):
    """How unequally sectors share the power of a ring, of each plane of patterns: the squared deviation over the square."""
    planes = (planes_of(patterns) * PLANES).flatten(0, 1)
    power = torch.fft.rfft2(planes, s=(2 * GRAIN_PX,) * 2).abs().square().flatten(1)
    sums = torch.zeros(len(planes), RINGS * SECTORS).index_add(1, cell, power)
    counts = torch.zeros(RINGS * SECTORS).index_add(0, cell, torch.ones(power.shape[1]))
    mean, counts = (sums / counts.clamp_min(1)).view(-1, RINGS, SECTORS), counts.view(RINGS, SECTORS)
    ring = mean.mean(2, keepdim=True)
    return ((mean - ring).square() * counts).sum() / (ring.square() * counts).sum()


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
    add_options(parser, steps=400, rate=5e-2, last_rate=1e-3, seed=20261124)
    parser.add_argument("--start", help="patterns to go on from, as this writes them; otherwise noise")
    options = parser.parse_args()
    options.use, options.sana = "sd15,sana", 1.0
    rng, device, pictures = prepared(options)
    encoders, _ = encoders_of(options, device)
    grain, cell, seen = Grain(torch.load(options.start)["grain"] if options.start else None), cells(), {}
    course = Course(grain, options)
    while course.goes_on():
        x, patterns = smooth_crops(pictures, rng), grain.patterns()
        hashed = torch.randint(256, (COUNT, grain_places(SIDE), grain_places(SIDE)))
        field = grain_of(patterns, hashed)
        field = field * torch.rsqrt(field.square().mean((1, 2, 3), keepdim=True))
        y = x + AMPLITUDE * field
        similar, colour = ms_ssim(planes_of(x), planes_of(y))[:, 0], colour_seen(planes_of(x), planes_of(y - x))
        y = y + ((y.clamp(0, 1) * 255).round() / 255 - y).detach()
        moment, unequal = moment_of(field), direction(patterns, cell)
        loss = SSIM * torch.log(1 - similar.mean()) + COLOUR * torch.log(1 + colour)
        loss = loss + MOMENT * (moment - NORMAL).clamp_min(0) + DIRECTION * unequal
        for kind in rng.sample(sorted(WEIGHTS["sd15"]), KINDS):
            for name, shift in shifts_of(encoders, *passed_on(kind, x, y, rng)).items():
                loss = loss - WEIGHTS[name][kind] * torch.log(shift.mean() + 1e-6)
                seen.setdefault("%s %s" % (name, kind), []).append(shift.mean().item())
        course.learn(loss)
        if course.step % 60 == 0 or course.step == options.steps:
            course.note_step(shift={key: round(sum(some) / len(some), 3) for key, some in sorted(seen.items())},
                             similar=round(similar.mean().item(), 4), colour=round(colour.item(), 3),
                             moment=round(moment.item(), 2), unequal=round(unequal.item(), 3))
            seen = {}
    torch.save({"grain": course.mean.patterns().detach()}, options.out)


if __name__ == "__main__":
    main()
