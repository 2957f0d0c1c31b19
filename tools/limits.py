"""Measures of the visibility and the cost of a perturbation; they limit it while finish.py trains.

Each is given per picture, divided by the perturbation's power or amplitude so that one bound holds at every strength.
Pictures are YCbCr, 0..1; thresholds are round figures of contrast on a screen at 100 %.
"""

import torch
import torch.nn.functional as F

from coding import file_size, planes_of
from devices import placed
from generator import luma_of, rooted_around, spread_of
from pictures import blur

SCALES = (0.0448, 0.2856, 0.3001, 0.3696)  # of MS-SSIM; the last includes the fifth, for which a crop is too small
WINDOW = torch.exp(-(torch.arange(11.0) - 5).square() / (2 * 1.5 ** 2))
WINDOW /= WINDOW.sum()
C2 = 0.03 ** 2
JUST_SEEN = torch.tensor([  # contrast threshold of Y, Cb and Cr on flat ground, in octave bands
    [0.008, 0.050, 0.020], [0.004, 0.020, 0.010], [0.003, 0.006, 0.005], [0.003, 0.0035, 0.003]])
GRAIN_SEEN = torch.tensor([  # visible spread of Y, Cb and Cr without masking, in octave bands
    [0.0035, 0.020, 0.008], [0.0016, 0.010, 0.004], [0.0008, 0.0035, 0.002], [0.0006, 0.0020, 0.0015]])
UNSEEN = 0.7  # a pattern is invisible below this share of the threshold of grain
SMOOTH = 0.005  # masking at which a place counts as half smooth
HIDDEN = torch.tensor([0.006, 0.024, 0.009]).view(1, 3, 1, 1)  # of Y, Cb and Cr, without masking
TINTED = torch.tensor([0.2, 1])  # weights of coarse Cb and Cr
WINDOW_PX = 32  # side of the windows of the power spectrum
LINED_LUMA, LINED_COLOUR = 2.5, 2  # weights of lines of any direction in seen_around()
LINED = 0.04  # masking at which lines count half
SEEN_FLAT = torch.tensor([3, 0.4, 2.5]).view(1, 3, 1, 1)  # weights of the power of Y, Cb and Cr on flat places
SHAPED = 6  # masking up to which shapes count, as a multiple of SMOOTH
STROKED = 3.5 / 255  # spread of luma around planes at which strokes count half
LINES, LINE_PX, ALONG, ACROSS, AROUND = 8, 21, 5.0, 0.8, 2.4  # directions; px of a kernel; sigmas of lines and surroundings
FLAT = 0.012  # spread of luma over 7x7 px under which a place is flat


def windowed(*maps):
    """Apply the window to each map, in one convolution: additional planes cost little."""
    x = torch.cat(maps, 1)
    kernel, planes = placed(WINDOW, x.device), x.shape[1]
    x = F.conv2d(x, kernel.view(1, 1, -1, 1).repeat(planes, 1, 1, 1), groups=planes)
    x = F.conv2d(x, kernel.view(1, 1, 1, -1).repeat(planes, 1, 1, 1), groups=planes)
    return x.split([one.shape[1] for one in maps], 1)


def ms_ssim(x, y):
    """MS-SSIM of each plane: Wang, Simoncelli, Bovik (2003), four scales, only the structure term."""
    total = 1.0
    for weight in SCALES:
        mx, my, squares, products = windowed(x, y, x * x + y * y, x * y)
        spread, cov = squares - mx * mx - my * my, products - mx * my
        total = total * ((2 * cov + C2) / (spread + C2)).mean((2, 3)).clamp_min(0.01) ** weight
        x, y = F.avg_pool2d(x, 2), F.avg_pool2d(y, 2)
    return total


def rooted_mean(x, side):
    """The mean of square roots, squared, over side x side places: a single edge raises it little."""
    reach = side // 2
    return F.avg_pool2d(F.pad((x.square() + 1e-7).sqrt().sqrt(), (reach,) * 4, mode="replicate"), side, 1).square()


def bands_of(x):
    """Four octave bands, each at its own resolution."""
    bands = []
    for sigma in (1.0, 0.9, 0.9, 1.0):
        smooth = blur(x, sigma)
        bands.append(x - smooth)
        x = F.avg_pool2d(smooth, 2)
    return bands


def seen_in_light(planes):
    """The factor of colour thresholds: they are lower in the dark."""
    luma = blur(planes[:, :1], 2.0)
    colour = ((luma + 0.1) / 0.6).clamp(0.25, 1.2)
    return torch.cat([torch.ones_like(luma), colour, colour], 1)


def visibility(x, d):
    """Contrast of the perturbation relative to the masking contrast of the same band, as a mean of fourth powers."""
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
    """The local strength of luma's texture."""
    return rooted_mean(x[:, :1] - blur(x[:, :1], 2.0), 9)


def smooth(x, d):
    """Visibility of the perturbation above the threshold on smooth places: squares, over planes and bands.

    It is absolute, not relative to the power of the picture. In a sky or a blurred background any visible
    perturbation is too much, even when 37 dB fits nowhere else. Fine structure is least visible.
    """
    hides, light, total = hidden_by(x), seen_in_light(x), 0
    for seen, band in zip(placed(GRAIN_SEEN, d.device), bands_of(d)):
        drawn = F.avg_pool2d(band.square(), 7, 1, 3).add(1e-10).sqrt()
        over = (drawn / (seen.view(1, 3, 1, 1) * light + hides / 2) - UNSEEN).clamp_min(0)
        total = total + (over.square().sum(1, keepdim=True) / (1 + (hides / SMOOTH).pow(4))).mean((1, 2, 3))
        hides, light = F.avg_pool2d(hides, 2), F.avg_pool2d(light, 2)
    return total


def sameness(x, unit, other):
    """Similarity of two perturbations of a picture from different noise, on smooth places: 0 to 1.

    A part that is equal for all noise is a fixed lattice of the network. It is visible as rows of strokes and bricks.
    """
    planes = planes_of(x)
    hides = hidden_by(planes)
    is_smooth = 1 / (1 + (hides / (2 * SMOOTH)).pow(4))
    one, two = (over_what_hides(planes_of(z), hides) * is_smooth for z in (unit, other))
    return F.cosine_similarity(one.flatten(1), two.flatten(1)).square()


def rings():
    """For each radius of the transform of a window: a mask of its bins, which counts the bins of the omitted half."""
    down, right = torch.fft.fftfreq(WINDOW_PX) * WINDOW_PX, torch.arange(WINDOW_PX // 2 + 1.0)
    radius = (down[:, None].square() + right.square()).sqrt().round().clamp_max(WINDOW_PX // 2 + 1)
    twice = torch.where((right > 0) & (right < WINDOW_PX // 2), 2.0, 1.0).expand_as(radius)
    return torch.stack([(radius == ring) * twice for ring in range(1, WINDOW_PX // 2 + 2)]).flatten(1)


RINGS = rings()
HANN = torch.hann_window(WINDOW_PX, periodic=False).view(-1, 1) * torch.hann_window(WINDOW_PX, periodic=False)
RING_SEEN = 1 / (1 + (torch.arange(1.0, WINDOW_PX // 2 + 2) / 8).square())  # the finer the frequency, the lower the weight


def uneven(plane):
    """The inequality of power among the frequencies of each radius: power beyond that of noise."""
    windows = plane.unfold(2, WINDOW_PX, 16).unfold(3, WINDOW_PX, 16) * placed(HANN, plane.device)
    power = torch.view_as_real(torch.fft.rfft2(windows)).square().sum(-1).mean((1, 2, 3)).flatten(1) / WINDOW_PX ** 2
    ring, seen = placed(RINGS, plane.device), placed(RING_SEEN, plane.device)
    whole, squares = power @ ring.t(), power.square() @ ring.t()
    return ((squares * ring.sum(1) / (whole + 1e-9) - whole) * seen).sum(1)


def pattern(x, d):
    """The part of the perturbation on smooth places, relative to masking, that is not grain. Strokes, level lines,
    combs, bricks and lattices have preferred directions and pitches; noise has none."""
    hides = hidden_by(x)
    is_smooth = 1 / (1 + (hides / (2 * SMOOTH)).pow(4))
    luma, blue = over_what_hides(d, hides)[:, :2].split(1, 1)
    return uneven(luma * is_smooth) + uneven(blue * is_smooth)


def shapes(x, d):
    """The same for luma at much more masking: sand, petals and dark metal are neither smooth nor busy."""
    hides = hidden_by(x)
    return uneven(over_what_hides(d, hides)[:, :1] / (1 + (hides / (SHAPED * SMOOTH)).pow(4)))


def strokes(x, d):
    """The luma of the perturbation above the picture's own deviation from planes; x is RGB. It includes ticks next to
    an outline, which do not raise the local mean."""
    texture = rooted_around(spread_of(x))
    drawn = F.avg_pool2d(F.avg_pool2d(blur(luma_of(d), 1.2).square(), 4), 3, 1, 1).add(1e-10).sqrt()
    over = (drawn / (0.45 / 255 + 0.6 * texture) - 0.6).clamp_min(0).square()
    return (over / (1 + (texture / STROKED).pow(4))).mean((1, 2, 3))


def lines(x, d):
    """The contrast of thin level lines: peaks of a mean along 17 px, relative to the power. It covers luma and blue
    relative to masking and is small where masking is strong."""
    hides = hidden_by(x)
    over = over_what_hides(d, hides)[:, :2] / (seen_in_light(x)[:, :2] * (1 + (hides / LINED).pow(4)))
    level = F.avg_pool2d(over, (1, 17), 1, (0, 8))
    thin = level - F.avg_pool2d(level, (7, 1), 1, (3, 0))
    return thin.pow(4).mean((1, 2, 3)).add(1e-12).sqrt() / (over.square().mean((1, 2, 3)) + 1e-4)


def tint(d):
    """The mean colour of the perturbation over 16x16 px, with a fifth of blue: it prevents green paper."""
    means = F.avg_pool2d(d[:, 1:], 16).square().mean((2, 3))
    return (means * placed(TINTED, d.device)).mean(1)


def seen_around(x, d):
    """Visibility of the perturbation around each place of 32 px, as squared multiples of the threshold. Both
    arguments are RGB.

    It covers coarse luma relative to the picture's texture and the drawn grain, and coarse colour, with a lower
    threshold in the dark. It covers level lines of both too, measured by a mean along 33 px, and shorter lines in any
    direction.
    """
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
    """Kernels that detect lines of about ten pixels, one for each direction."""
    reach = torch.arange(LINE_PX) - LINE_PX // 2
    turns = torch.arange(LINES) * torch.pi / LINES
    along = reach * turns.cos().view(-1, 1, 1) + reach[:, None] * turns.sin().view(-1, 1, 1)
    across = reach[:, None] * turns.cos().view(-1, 1, 1) - reach * turns.sin().view(-1, 1, 1)
    narrow, wide = (torch.exp(-(along / ALONG).square() / 2 - (across / sigma).square() / 2) for sigma in (ACROSS, AROUND))
    return (narrow / narrow.sum((1, 2), keepdim=True) - wide / wide.sum((1, 2), keepdim=True))[:, None]


LINED_UP = line_kernels()


def lined_up(plane):
    """The response of a plane to each line kernel."""
    return F.conv2d(F.pad(plane, (LINE_PX // 2,) * 4, mode="replicate"), placed(LINED_UP, plane.device))


@torch.no_grad()
def flat_places(x):
    spread = F.avg_pool2d((x[:, :1] - F.avg_pool2d(x[:, :1], 7, 1, 3)).square(), 7, 1, 3).sqrt()
    return (spread < FLAT).float()


def unmasking(unit, mask):
    """The log2 of how far the perturbation's luma exceeds its mask: 0 where it follows the mask, less where more is
    allowed."""
    luma = planes_of(unit)[:, :1]
    power, granted = luma.square().mean((1, 2, 3)), mask.square().mean((1, 2, 3))
    return torch.log2((luma / mask).square().mean((1, 2, 3)) * granted / (power + 1e-12) + 1e-3)


def measures(x, y, unit, stroke, mask):
    """The measures that LIMITS of finish.py bounds, for RGB pictures x, results y and a perturbation unit under a
    mask. stroke: the perturbation at the strength, without grain."""
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
    """The most expensive measures, computed every few steps. other: a perturbation of the first picture from
    different noise."""
    cx, power = planes_of(x), (y - x).square().mean((1, 2, 3)).detach() + 1e-9
    return {
        "visibility": visibility(cx, planes_of(stroke)) / power.sqrt(),
        "sameness": sameness(x[:1], unit[:1], other),
    }
