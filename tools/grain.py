#!/usr/bin/python3
"""Learn the patterns of grain, which replace strokes on smooth places. See README.md in this folder.

A step lays patterns at random, as the engine does, over smooth crops of training pictures, at the engine's amplitude.
The patterns learn to shift both encoders' latents, also after processing.

These measures limit visibility: MS-SSIM of luma, colour above its threshold of visibility, and the growth of a JPEG.
The power of all colours relative to luma is limited too; otherwise most of it becomes fine blue.

Four measures prevent a lattice, stripes and creases:
- Power is even over the places of a step, band by band.
- Power is even over directions, band by band.
- Gradients around a place are no more coherent than in noise of the same spectrum.
- The fourth moment of each band is that of noise.
"""

import argparse

import torch

from coding import file_size, planes_of
from course import Course, add_options, encoders_of, prepared
from devices import placed
from finish import passed_on, shifts_of
from generator import GRAIN_PX, GRAIN_STEP, grain_of, grain_places, luma_of, smoothness
from limits import GRAIN_SEEN, bands_of, ms_ssim, seen_in_light
from patterns import WINDOW_PX, Grain, bands, coherent, moment_of, unequal
from pictures import batch_of

SIDE, COUNT = 160, 3  # px of a crop; crops in a step
KINDS = 3  # kinds of processing in a step
SMOOTH = 0.9  # minimum mean smoothness of a crop
LEVELS = 1.2  # root mean square of the luma that is laid, in levels of 255
WEIGHTS = {  # of the logarithm of a shift
    "sd15": {"none": 11.0, "cut": 14.0, "half": 12.0, "blurred": 28.0, "jpeg": 8.0, "webp": 24.0},
    "sana": {"none": 8.0, "cut": 11.0, "half": 14.0, "blurred": 0.2, "jpeg": 2.0, "webp": 0.2},
}
EACH = 0.06  # maximum inequality of directions of a single pattern; noise has .04 to .11
COHERENT = 0.9  # maximum coherence of the field, relative to noise of its spectrum
CHARGES = {  # weights of the limits
    "ssim": 4.0, "colour": 0.01, "energy": 14.0, "growth": 2.0, "places": 25.0, "directions": 25.0, "each": 80.0, "moment": 30.0,
    "coherent": 60.0,
}


def colour_seen(x, d):
    """The power of the drawn colour relative to its threshold of visibility, band by band; planes."""
    total, light = 0, seen_in_light(x)
    for seen, band in zip(placed(GRAIN_SEEN, d.device), bands_of(d)):
        total = total + (band / (seen.view(1, 3, 1, 1) * light))[:, 1:].square().mean((0, 2, 3)).sum()
        light = torch.nn.functional.avg_pool2d(light, 2)
    return total


def smooth_crops(pictures, rng):
    """Smooth crops of training pictures."""
    crops = []
    while len(crops) < COUNT:
        x = batch_of(pictures, 1, SIDE, rng)
        if smoothness(x).mean() > SMOOTH and planes_of(x)[:, 0].std() > 0.004:
            crops.append(x)
    return torch.cat(crops)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_options(parser, steps=300, rate=5e-2, last_rate=1e-3, seed=20261124)
    parser.add_argument("--start", help="initial patterns, an output of this tool; default: noise")
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
        of_places, directions, each = unequal(patterns, of_pattern)
        measured = {"ssim": lacks.log(), "colour": (1 + colour).log(), "energy": -2 * luma.log(),
                    "growth": (file_size(drawn) - file_size(planes)).mean(), "places": of_places,
                    "directions": directions, "each": (each - EACH).clamp_min(0), "moment": moment_of(field, of_field),
                    "coherent": (coherent(field).max() - COHERENT).clamp_min(0)}
        loss = sum(CHARGES[name] * value for name, value in measured.items())
        for kind in rng.sample(sorted(WEIGHTS["sd15"]), KINDS):
            for name, shift in shifts_of(encoders, *passed_on(kind, x, y, rng)()).items():
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
