"""What limits a perturbation while finish.py trains: measures of how far it is seen and what it costs.

Each is given per picture, so divided by the perturbation's power or amplitude that one bound holds at every
strength.  Pictures are YCbCr, 0..1; thresholds are round figures of contrast on a screen at 100 %.
"""

import torch
import torch.nn.functional as F

from coding import file_size, planes_of
from devices import placed
from generator import luma_of, rooted_around, spread_of
from pictures import blur

SCALES = (0.0448, 0.2856, 0.3001, 0.3696)  # of MS-SSIM; the last has the weight of the two that a crop is too small for
WINDOW = torch.exp(-(torch.arange(11.0) - 5).square() / (2 * 1.5 ** 2))
WINDOW /= WINDOW.sum()
C2 = 0.03 ** 2
JUST_SEEN = torch.tensor([  # contrast of Y, Cb and Cr that is just seen on flat ground, in bands an octave apart
    [0.008, 0.050, 0.020], [0.004, 0.020, 0.010], [0.003, 0.006, 0.005], [0.003, 0.0035, 0.003]])
GRAIN_SEEN = torch.tensor([  # spread of Y, Cb and Cr that is seen where nothing hides it, in bands an octave apart
    [0.0035, 0.020, 0.008], [0.0016, 0.010, 0.004], [0.0008, 0.0035, 0.002], [0.0006, 0.0020, 0.0015]])
UNSEEN = 0.7  # of what is seen of grain, so much of a pattern is not
SMOOTH = 0.005  # where what hides is as much, a place counts for half as smooth
HIDDEN = torch.tensor([0.006, 0.024, 0.009]).view(1, 3, 1, 1)  # of Y, Cb and Cr, where nothing hides them
TINTED = torch.tensor([0.2, 1])  # what coarse Cb and Cr count for
WINDOW_PX = 32  # where power is looked at by frequency
LINED_LUMA, LINED_COLOUR = 2.5, 2  # what lines of any direction count for where it is told what is seen
LINED = 0.04  # where what hides is as much, lines count for half
SEEN_FLAT = torch.tensor([3, 0.4, 2.5]).view(1, 3, 1, 1)  # what power of Y, Cb and Cr counts for on flat places
SHAPED = 6  # how many times as much may hide where shapes still count
STROKED = 3.5 / 255  # the spread of luma around planes where strokes count for half
LINES, LINE_PX, ALONG, ACROSS, AROUND = 8, 21, 5.0, 0.8, 2.4  # directions, and the sigmas of lines and of what lies around them
FLAT = 0.012  # spread of luma over 7x7 px under which a place is flat


def windowed(*maps):
    """Each map under the window; all at once, for planes cost little beside others."""
    x = torch.cat(maps, 1)
    kernel, planes = placed(WINDOW, x.device), x.shape[1]
    x = F.conv2d(x, kernel.view(1, 1, -1, 1).repeat(planes, 1, 1, 1), groups=planes)
    x = F.conv2d(x, kernel.view(1, 1, 1, -1).repeat(planes, 1, 1, 1), groups=planes)
    return x.split([one.shape[1] for one in maps], 1)


def ms_ssim(x, y):
    """Of each plane: Wang, Simoncelli, Bovik (2003), four scales, structure alone."""
    total = 1.0
    for weight in SCALES:
        mx, my, squares, products = windowed(x, y, x * x + y * y, x * y)
        spread, cov = squares - mx * mx - my * my, products - mx * my
        total = total * ((2 * cov + C2) / (spread + C2)).mean((2, 3)).clamp_min(0.01) ** weight
        x, y = F.avg_pool2d(x, 2), F.avg_pool2d(y, 2)
    return total


def rooted_mean(x, side):
    """The mean of square roots, squared, over side x side places: one edge lifts it little."""
    reach = side // 2
    return F.avg_pool2d(F.pad((x.square() + 1e-7).sqrt().sqrt(), (reach,) * 4, mode="replicate"), side, 1).square()


def bands_of(x):
    """Four bands an octave apart, each at its own resolution."""
    bands = []
    for sigma in (1.0, 0.9, 0.9, 1.0):
        smooth = blur(x, sigma)
        bands.append(x - smooth)
        x = F.avg_pool2d(smooth, 2)
    return bands


def seen_in_light(planes):
    """What thresholds of colour are multiplied by: in the dark it is seen sooner."""
    luma = blur(planes[:, :1], 2.0)
    colour = ((luma + 0.1) / 0.6).clamp(0.25, 1.2)
    return torch.cat([torch.ones_like(luma), colour, colour], 1)


def visibility(x, d):
    """Contrast of what is drawn over the contrast that the picture hides in the same band, the fourth power's mean."""
    total, light = 0, seen_in_light(x)
    for seen, band in zip(placed(JUST_SEEN, x.device), bands_of(torch.cat([x, d], 1))):
        ground, drawn = band.split(3, 1)
        hides = rooted_mean(ground.detach(), 7)
        hides = torch.cat([hides[:, :1], 0.5 * hides[:, 1:] + 0.15 * hides[:, :1]], 1)
        total = total + (drawn / (seen.view(1, 3, 1, 1) * light + hides)).pow(4).mean((2, 3)).sum(1)
        light = F.avg_pool2d(light, 2)
    return (total + 1e-12) ** 0.25


def over_what_hides(d, hides):
    return d / (placed(HIDDEN, d.device) + hides)


def hidden_by(x):
    """How strong luma's own texture is around each place."""
    return rooted_mean(x[:, :1] - blur(x[:, :1], 2.0), 9)


def smooth(x, d):
    """How far what is drawn passes, where a picture is smooth, what is seen there: squares, planes and bands together.

    As it is, not per picture: in a sky or a blurred background anything that is seen is too much, and a picture whose
    37 dB find no other place is no excuse.  What is fine is seen least.
    """
    hides, light, total = hidden_by(x), seen_in_light(x), 0
    for seen, band in zip(placed(GRAIN_SEEN, d.device), bands_of(d)):
        drawn = F.avg_pool2d(band.square(), 7, 1, 3).add(1e-10).sqrt()
        over = (drawn / (seen.view(1, 3, 1, 1) * light + hides / 2) - UNSEEN).clamp_min(0)
        total = total + (over.square().sum(1, keepdim=True) / (1 + (hides / SMOOTH).pow(4))).mean((1, 2, 3))
        hides, light = F.avg_pool2d(hides, 2), F.avg_pool2d(light, 2)
    return total


def sameness(x, unit, other):
    """How far two perturbations of a picture, drawn from other noise each, are the same where it is smooth: 0 to 1.

    What is the same for every noise is the network's own lattice, and that is what is seen as rows of strokes and bricks.
    """
    planes = planes_of(x)
    hides = hidden_by(planes)
    is_smooth = 1 / (1 + (hides / (2 * SMOOTH)).pow(4))
    one, two = (over_what_hides(planes_of(z), hides) * is_smooth for z in (unit, other))
    return F.cosine_similarity(one.flatten(1), two.flatten(1)).square()


def rings():
    """For each ring of like frequencies of a window's transform: which bins are in it, and how many that stands for."""
    down, right = torch.fft.fftfreq(WINDOW_PX) * WINDOW_PX, torch.arange(WINDOW_PX // 2 + 1.0)
    radius = (down[:, None].square() + right.square()).sqrt().round().clamp_max(WINDOW_PX // 2 + 1)
    twice = torch.where((right > 0) & (right < WINDOW_PX // 2), 2.0, 1.0).expand_as(radius)
    return torch.stack([(radius == ring) * twice for ring in range(1, WINDOW_PX // 2 + 2)]).flatten(1)


RINGS = rings()
HANN = torch.hann_window(WINDOW_PX, periodic=False).view(-1, 1) * torch.hann_window(WINDOW_PX, periodic=False)
RING_SEEN = 1 / (1 + (torch.arange(1.0, WINDOW_PX // 2 + 2) / 8).square())  # the finer a ring, the less


def uneven(plane):
    """How unequally the power of a plane is shared by the frequencies of each ring: power that noise would not have."""
    windows = plane.unfold(2, WINDOW_PX, 16).unfold(3, WINDOW_PX, 16) * placed(HANN, plane.device)
    power = torch.view_as_real(torch.fft.rfft2(windows)).square().sum(-1).mean((1, 2, 3)).flatten(1) / WINDOW_PX ** 2
    ring, seen = placed(RINGS, plane.device), placed(RING_SEEN, plane.device)
    whole, squares = power @ ring.t(), power.square() @ ring.t()
    return ((squares * ring.sum(1) / (whole + 1e-9) - whole) * seen).sum(1)


def pattern(x, d):
    """How much of what is drawn, over what hides it, is no grain where the picture is smooth: strokes, level lines, combs,
    bricks and lattices are of some directions and pitches, and noise of none."""
    hides = hidden_by(x)
    is_smooth = 1 / (1 + (hides / (2 * SMOOTH)).pow(4))
    luma, blue = over_what_hides(d, hides)[:, :2].split(1, 1)
    return uneven(luma * is_smooth) + uneven(blue * is_smooth)


def shapes(x, d):
    """The same of luma, where much more hides as well: sand, petals and dark metal are neither smooth nor busy."""
    hides = hidden_by(x)
    return uneven(over_what_hides(d, hides)[:, :1] / (1 + (hides / (SHAPED * SMOOTH)).pow(4)))


def strokes(x, d):
    """How far luma that is drawn passes what planes leave of the picture around it, RGB: ticks beside an outline, too, which
    lifts no neighbourhood."""
    texture = rooted_around(spread_of(x))
    drawn = F.avg_pool2d(F.avg_pool2d(blur(luma_of(d), 1.2).square(), 4), 3, 1, 1).add(1e-10).sqrt()
    over = (drawn / (0.45 / 255 + 0.6 * texture) - 0.6).clamp_min(0).square()
    return (over / (1 + (texture / STROKED).pow(4))).mean((1, 2, 3))


def lines(x, d):
    """How much thin level lines stand out: the peaks of what a mean along 17 px keeps, over the power, of luma and of blue
    over what hides them; little where much hides."""
    hides = hidden_by(x)
    over = over_what_hides(d, hides)[:, :2] / (seen_in_light(x)[:, :2] * (1 + (hides / LINED).pow(4)))
    level = F.avg_pool2d(over, (1, 17), 1, (0, 8))
    thin = level - F.avg_pool2d(level, (7, 1), 1, (3, 0))
    return thin.pow(4).mean((1, 2, 3)).add(1e-12).sqrt() / (over.square().mean((1, 2, 3)) + 1e-4)


def tint(d):
    """What means over 16x16 px keep of the colour that is drawn, of blue a fifth: paper that turns green."""
    means = F.avg_pool2d(d[:, 1:], 16).square().mean((2, 3))
    return (means * placed(TINTED, d.device)).mean(1)


def seen_around(x, d):
    """How far what is drawn on a picture, RGB both, passes what is seen of it around each place of 32 px: coarse luma, over the
    picture's texture and the grain that is drawn; coarse colour, sooner in the dark; and level lines of either, which are what a
    mean along 33 px keeps, or shorter ones in any direction.  Squares of how many times what is seen."""
    texture, planes = 255 * rooted_around(spread_of(x)), 255 * planes_of(d)
    luma, light = planes[:, :1], ((F.avg_pool2d(luma_of(x), 4) + 0.1) / 0.6).clamp(0.4, 1.2)
    grain = spread_around(luma - blur(luma, 1.0)).detach()

    def over(plane, least, hides, share):
        return (spread_around(plane) / (least + hides) - share).clamp_min(0).square()

    strokes = 2 * over(blur(luma, 1.2), 0.45, 0.5 * texture + 0.15 * grain, 0.6) / (1 + (texture / (255 * STROKED)).pow(4))
    level = F.avg_pool2d(planes, (1, 33), 1, (0, 16), count_include_pad=False)
    level = level - F.avg_pool2d(level, (15, 1), 1, (7, 0), count_include_pad=False)
    hides, halves = 0.15 * texture + 0.1 * grain, F.avg_pool2d(planes, 2)
    rows = 8 * over(level[:, :1], 0.35, hides, 0.4)
    rows = rows + LINED_LUMA * over(lined_up(luma), 0.35, hides, 0.4).sum(1, keepdim=True)
    for plane, coarse, thin in ((1, 2.0, 0.7), (2, 1.5, 0.5)):
        strokes = strokes + over(blur(planes[:, plane:plane + 1], 1.5), coarse * light, 0.4 * texture, 0.5) / 2
        strokes = strokes + 1.5 * over(blur(planes[:, plane:plane + 1], 3.0), 0.5 * coarse * light, 0.1 * texture, 0.4)
        rows = rows + 4 * over(level[:, plane:plane + 1], thin * light, hides, 0.4)
        lines = spread_around(lined_up(halves[:, plane:plane + 1]), 2).square().sum(1, keepdim=True)
        rows = rows + LINED_COLOUR * ((lines + 1e-4).sqrt() / (thin * light + hides) - 0.4).clamp_min(0).square()
    return F.avg_pool2d(strokes + rows, 16, 8)


def spread_around(plane, side=4):
    """Root mean square around each block of side x side, levels."""
    return (F.avg_pool2d(F.avg_pool2d(plane.square(), side), 3, 1, 1) + 1e-4).sqrt()


def line_kernels():
    """What stands out from its surroundings as a line of some ten pixels, in each direction."""
    reach = torch.arange(LINE_PX) - LINE_PX // 2
    turns = torch.arange(LINES) * torch.pi / LINES
    along = reach * turns.cos().view(-1, 1, 1) + reach[:, None] * turns.sin().view(-1, 1, 1)
    across = reach[:, None] * turns.cos().view(-1, 1, 1) - reach * turns.sin().view(-1, 1, 1)
    narrow, wide = (torch.exp(-(along / ALONG).square() / 2 - (across / sigma).square() / 2) for sigma in (ACROSS, AROUND))
    return (narrow / narrow.sum((1, 2), keepdim=True) - wide / wide.sum((1, 2), keepdim=True))[:, None]


LINED_UP = line_kernels()


def lined_up(plane):
    """What of a plane is a line, direction by direction."""
    return F.conv2d(F.pad(plane, (LINE_PX // 2,) * 4, mode="replicate"), placed(LINED_UP, plane.device))


@torch.no_grad()
def flat_places(x):
    spread = F.avg_pool2d((x[:, :1] - F.avg_pool2d(x[:, :1], 7, 1, 3)).square(), 7, 1, 3).sqrt()
    return (spread < FLAT).float()


def unmasking(unit, mask):
    """How far the luma of what is drawn undoes its mask, less where it may draw more: 0 where it follows it, as log2."""
    luma = planes_of(unit)[:, :1]
    power, granted = luma.square().mean((1, 2, 3)), mask.square().mean((1, 2, 3))
    return torch.log2((luma / mask).square().mean((1, 2, 3)) * granted / (power + 1e-12) + 1e-3)


def measures(x, y, unit, stroke, mask):
    """What LIMITS of finish.py bound, of RGB pictures x, what was made of them, and what was drawn under a mask; stroke:
    that at the strength, without grain."""
    cx, cy, ds = planes_of(x), planes_of(y), planes_of(stroke)
    d, power = cy - cx, (y - x).square().mean((1, 2, 3)).detach() + 1e-9
    similar = ms_ssim(cx, cy)
    return {
        "ssim": (1 - similar[:, 0]) / power,
        "blue": (1 - similar[:, 1]) / power,
        "chroma": (1 - similar[:, 2]) / power,
        "growth": (file_size(cy) - file_size(cx)) / power.sqrt(),
        "flat": ((ds.square() * placed(SEEN_FLAT, d.device)).sum(1, keepdim=True) * flat_places(cx)).mean((1, 2, 3)) / power,
        "unmasking": unmasking(unit, mask),
        "tint": tint(ds) / power,
        "smooth": smooth(cx, ds),
        "lines": lines(cx, ds),
        "pattern": pattern(cx, ds),
        "shapes": shapes(cx, ds),
        "strokes": strokes(x, stroke),
        "worst": seen_around(x, y - x).square().mean((1, 2, 3)),
    }


def dear_measures(x, y, unit, stroke, other):
    """Those that cost most, for every few steps.  other: a perturbation of the first picture, drawn from other noise."""
    cx, power = planes_of(x), (y - x).square().mean((1, 2, 3)).detach() + 1e-9
    return {
        "visibility": visibility(cx, planes_of(stroke)) / power.sqrt(),
        "sameness": sameness(x[:1], unit[:1], other),
    }
