#!/usr/bin/python3
"""Search shares of checkpoints, and the numbers of a strength, that minimise visibility while the bar is met.

A network is the start plus shares of the differences between other checkpoints and the start. A share may be
negative. Look layers, draw layers, coarse drawer and grain have separate shares.

A round measures the effect of a small change of each number on every row of ./dev bench protect. A linear programme
minimises visibility within small changes while all rows keep their room. The round takes the full or the half change,
whichever scores better. If neither helps, the changes are halved.

Rows are measured on the bench's photographs with a smaller margin and, where that is faster, in bfloat16. ROOM
compensates for both.
"""

import argparse
import functools
import json
import math
import multiprocessing
import os
import sys

import torch
import torch.nn.functional as F
from scipy.optimize import linprog

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(TOP, "tests", "bench"))
import protect as bench  # noqa: E402

import generator  # noqa: E402
from devices import shortened  # noqa: E402
from export_weights import state_of  # noqa: E402
from generator import WAYS, Way, network_of, shipped_perturbation  # noqa: E402
from limits import seen_around  # noqa: E402

AT_PEAK = {"low": 0.05, "standard": 0.04, "high": 0.1}  # share of the perturbation that may reach its peak,
BUSY = 8  # plus a term of the picture's masking, as in protect.c
MARGIN = 64  # px around a picture
SCALE_MOST = 60000
DRAWING = ("seed8", "up4", "draw4", "up2", "draw2", "draw1", "shown", "gain")  # parts of the name of a drawing layer
PARTS = ("look", "draw", "coarse", "grain")
SHARE_STEP = 0.25
NUMBERS = {  # of a strength: step of the logarithm, minimum, maximum
    "knee": (0.1, 0.05, 0.4), "amplitude": (0.08, 0.015, 0.06), "blue": (0.05, 1.2, 2.4),
    "smooth": (0.08, 0.0005, 0.012), "calm": (0.03, 0.1, 0.997), "dither": (0.12, 0.0005, 0.03),
    "least": (0.1, 2, 14), "times": (0.1, 1, 4), "level": (0.1, 0.3, 1), "pale": (0.1, 0.2, 1),
}
REACH = 1.1  # maximum change in a round, in steps
PRICE = 3  # of a missing hundredth of a row, in hundredths of visibility
ROOM = {  # reserve of a row in hundredths; 0.5 for rows not listed
    "sd15": -0.45, "sana": 0.15, "crop sana": 0.2, "crop sd15": 0.45, "webp sd15": 0.35, "blur sd15": 0.25, "blur sana": 0.3,
    "resize sd15": -0.2, "resize sana": -0.2, "jpeg sd15": 0.3, "growth": 0.1, "luma": -0.6,
}


# ---- networks and ways

def part_of(key):
    if key.startswith("coarse") or key in ("grain", "gains"):
        return key.partition(".")[0]
    return "draw" if any(name in key for name in DRAWING) else "look"


def rms(x):
    return x.square().mean().sqrt().clamp_min(1e-9)


def differs(end, part):
    """Whether a part of a checkpoint differs from the start."""
    return any(part_of(key) == part and not torch.equal(value, ends["start"][key]) for key, value in ends[end].items())


def network_at(point):
    """The network with the shares of a point."""
    state = dict(ends["start"])
    for name, share in point.items():
        end, _, part = name.partition(" ")
        if part and share:
            for key in state:
                if part_of(key) == part:
                    state[key] = state[key] + share * (ends[end][key] - ends["start"][key])
    state["grain"] = state["grain"] / rms(state["grain"]) * rms(ends["start"]["grain"])
    return network_of(state).eval()


def way_at(point, strength):
    way = WAYS[strength]
    return Way(way.psnr_db, way.network, way.floor, point["knee"], way.grain, point["amplitude"], point["blue"],
               point["smooth"], point["calm"], point["dither"], point["least"], point["times"], way.most,
               point["level"], point["pale"], way.table, way.mild, way.eased, way.calm_from, way.skin,
               way.plain, way.light_plain, way.light_eased)


def moved(point, change):
    """The point after changes of shares and of the logarithms of numbers."""
    new = dict(point)
    for name, by in change.items():
        if name in NUMBERS:
            _, least, most = NUMBERS[name]
            new[name] = min(most, max(least, new[name] * math.exp(by)))
        else:
            new[name] += by
    return new


# ---- measures of one picture

def peaks_of(x, way):
    """The peak of each sample, by rows of pixels, and the mean masking of the picture."""
    height, width = x.shape[2:]
    padded = F.pad(x, (16, 16 + -width % 16, 16, 16 + -height % 16), mode="replicate")
    most = F.interpolate(generator.peaks(padded, way, 16), scale_factor=4, mode="nearest")[0, 0, 16:16 + height, 16:16 + width]
    return most.numpy()[:, :, None], generator.block_mask(padded, way)[:, :, 4:-4, 4:-4].mean().item()


def scaled(photo, unit, way, share):
    """The photograph with the perturbation at the strength, rounded. Samples stay within their peaks, and the share
    of samples at their peak is limited."""
    x = bench.numpy.asarray(photo, dtype="float32")
    unit, low, high = unit[0].permute(1, 2, 0).numpy(), 0.0, SCALE_MOST
    most, hides = peaks_of(bench.tensor(photo), way)
    roots = bench.numpy.sqrt(abs(unit))
    for _ in range(30):
        middle = (low + high) / 2
        y = (x + (unit * middle).clip(-most, most)).round().clip(0, 255)
        at_peak = roots[abs(unit) * middle > most - 0.5].sum() / roots.sum()
        is_too_much = bench.psnr_of(x, y) < way.psnr_db or at_peak > share + hides * (1 + BUSY * hides)
        low, high = (low, middle) if is_too_much else (middle, high)
    return bench.Image.fromarray((x + (unit * low).clip(-most, most)).round().clip(0, 255).astype("uint8"))


def seen(x, d):
    """The visibility of d: the mean of cubes, because viewers look at the worst places."""
    return seen_around(x, d).pow(3).mean().item()


def latents(picture):
    with torch.no_grad(), shortened(torch.device("cpu")):
        return {name: encoder(bench.tensor(picture)).float() for name, encoder in encoders.items()}


@functools.lru_cache(maxsize=None)
def latents_before(i, attack):
    return latents(bench.ATTACKS[attack](photos[i]))


def attacks_of(strength):
    names = [name for name in bench.ATTACKS if name in bench.SURVIVES or name.startswith(("none", "crop"))]
    return names if strength == "standard" else ["none"]


def figures_of(point, strength, i):
    photo = photos[i]
    x = bench.tensor(photo)
    way = way_at(point, strength)
    with torch.no_grad():
        unit = shipped_perturbation(network_at(point), x, i, way)
    result = scaled(photo, unit, way, AT_PEAK[strength])
    similar = [bench.ms_ssim(a, b) for a, b in zip(bench.planes(photo), bench.planes(result))]
    row = {"seen": seen(x, bench.tensor(result) - x), "luma": similar[0], "chroma": sum(similar[1:]) / 2}
    for picture, name in ((photo, "size"), (result, "result size")):
        row[name] = len(bench.encoded(picture, "JPEG", quality=85).getvalue())
    for attack in attacks_of(strength):
        before, after = latents_before(i, attack), latents(bench.ATTACKS[attack](result))
        for name in encoders:
            row[attack, name] = bench.latent_shift(after[name], before[name]).item()
    return row


# ---- rows of the bar

def rows_of(strength, figures):
    """Each row's distance to the bar in hundredths, and the visibility."""
    mean = bench.mean_of(figures)
    _, luma, chroma, least, _, _ = bench.BAR[strength]
    rows = {"seen": 20 * mean["seen"] ** (1 / 3), "growth": 10 - 100 * (mean["result size"] / mean["size"] - 1),
            "luma": 100 * ((1 - luma) / (1 - mean["luma"]) - 1), "chroma": 100 * ((1 - chroma) / (1 - mean["chroma"]) - 1)}
    for name in encoders:
        plain = mean["none", name]
        rows[name] = 100 * (plain / least[name] - 1)
        for attack in attacks_of(strength)[1:]:
            above = mean[attack, name] / plain - bench.SURVIVES[attack] if attack in bench.SURVIVES \
                else mean[attack, name] / bench.CROP3[name] - 1
            rows["%s %s" % (attack.split()[0] if attack != "jpeg 50" else attack, name)] = 100 * above
    return rows


def measured(pool, strength, points):
    count = len(photos)
    figures = pool.starmap(figures_of, [(point, strength, i) for point in points for i in range(count)], chunksize=1)
    return [rows_of(strength, figures[first:first + count]) for first in range(0, len(figures), count)]


def missing(name, value):
    return max(0, ROOM.get(name, 0.5) - value)


def merit(rows):
    return rows["seen"] + PRICE * sum(missing(name, value) for name, value in rows.items() if name != "seen")


# ---- a round

def best_change(rows, steps, slopes):
    """The change of each number by the linear programme: slopes[row][number]."""
    names, bars = list(steps), [name for name in rows if name != "seen"]
    cost = [slopes["seen"][name] for name in names] + [PRICE] * len(bars)
    above = [[-slopes[bar][name] for name in names] + [-float(bar == other) for other in bars] for bar in bars]
    room = [rows[bar] - ROOM.get(bar, 0.5) for bar in bars]
    reach = [(-REACH * abs(steps[name]), REACH * abs(steps[name])) for name in names]
    answer = linprog(cost, above, room, bounds=reach + [(0, None)] * len(bars), method="highs")
    return dict(zip(names, answer.x[:len(names)]))


def a_round(pool, strength, point, rows, steps):
    """The better point and its rows, or None."""
    changes = {name: {name: step} for name, step in steps.items()}
    around = dict(zip(steps, measured(pool, strength, [moved(point, change) for change in changes.values()])))
    slopes = {row: {name: (around[name][row] - rows[row]) / steps[name] for name in steps} for row in rows}
    change = best_change(rows, steps, slopes)
    points = [moved(point, {name: by * share for name, by in change.items()}) for share in (1, 0.5)]
    found = min(zip(points, measured(pool, strength, points)), key=lambda one: merit(one[1]))
    return found if merit(found[1]) < merit(rows) else None


def shown(point, rows):
    print("  ".join("%s %.5g" % one for one in point.items()))
    print("    " + "  ".join("%s %+.2f" % one for one in rows.items()), flush=True)


def searched(pool, options):
    way = vars(WAYS[options.strength])
    point = {"%s %s" % (end, part): 0.0 for end in ends for part in PARTS if differs(end, part)}
    steps = {name: SHARE_STEP for name in point}
    point.update({name: way[name] for name in NUMBERS})
    steps.update({name: step for name, (step, _, _) in NUMBERS.items()})
    rows, = measured(pool, options.strength, [point])
    shown(point, rows)
    for _ in range(options.rounds):
        found = a_round(pool, options.strength, point, rows, steps)
        if found is None:
            steps = {name: step / 2 for name, step in steps.items()}
            continue
        point, rows = found
        shown(point, rows)
        state = network_at(point).state_dict()
        torch.save({"mean": state, "net": state}, options.out)
        with open(options.out + ".json", "w") as file:
            json.dump({"point": point, "rows": rows}, file)


def options_of():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", required=True, help="the checkpoint to start from")
    parser.add_argument("--toward", nargs="*", default=[], metavar="CHECKPOINT", help="others; default: search only the way")
    parser.add_argument("--strength", choices=sorted(WAYS), default="standard")
    parser.add_argument("--images", required=True, help="folder of the bench's photographs")
    parser.add_argument("--held", required=True, help="folder of training pictures; only the validation part is used")
    parser.add_argument("--encoders", required=True, help="folder of the encoders' .npz files")
    parser.add_argument("--photos", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--out", required=True, help="the resulting checkpoint; its numbers are written to OUT.json")
    return parser.parse_args()


def main():
    """Fill the globals that the worker processes read before the fork."""
    global ends, photos, encoders
    options = options_of()
    torch.set_num_threads(1)
    generator.MARGIN = MARGIN
    ends = {"start": state_of(options.start)}
    ends.update({"%d" % (i + 1): state_of(name) for i, name in enumerate(options.toward)})
    photos = [photo for _, photo in bench.photos_of(options)]
    encoders = {name: bench.load_encoder(name, os.path.join(options.encoders, file)) for name, file in bench.FILES.items()}
    with multiprocessing.get_context("fork").Pool(options.processes) as pool:
        searched(pool, options)


if __name__ == "__main__":
    main()
