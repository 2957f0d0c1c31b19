"""The networks that are shipped, their texture mask, and how a perturbation is scaled.

src/engine/protect_*.c computes the same; change both together.
"""

import numpy
import torch
import torch.nn.functional as F
from torch import nn

from devices import placed
from spectra import CELLS, GAINS, companded

# Channels of what is looked at: at a half twice, at a quarter twice, at an eighth.
WIDTHS = (16, 16, 32, 32, 64)
LOOKS = ("down2", "look2", "down4", "look4", "down8")  # the layers of those widths
ANSWERS = 32  # channels of what is answered at an eighth, and of the noise
LEAK = 0.01
LUMA = (0.299, 0.587, 0.114)
CB, CR = 0.564, 0.713  # of YCbCr: what blue and red are multiplied by, less luma
GREEN_OF_BLUE = -LUMA[2] / LUMA[1]  # what keeps luma where blue changes,
GREEN_OF_RED = -LUMA[0] / LUMA[1]  # and where red does
GOLDEN = 0x9E3779B97F4A7C15
OWN = 2  # how many times a block's own spread its neighbourhood may count for
COARSE = 0.42  # how many times the spread of a quarter of the picture counts
OWN_GRAIN = 0.42  # how many times a block's own spread counts, at least, beside what is smooth
BESIDE_OWN = 4  # how many times a block's own mask that of one beside it may count for
PALED_PX = 8  # of a row, whose mean colour is left out
ROWS = 0.3  # how strong what is kept of that may be, before the share is taken: the root of its squares
GRAINY = (0.0011, 0.0006)  # how far luma has to lie from planes for any grain, and how much further for all of it
BESIDE = (0.0003, 0.0003)  # the same of the flattest block beside it
CALM_WIDTH = 0.1  # how much more of a picture is smooth where its mild places count whole
PHOTOGRAPHED = (0.05, 0.05)  # which share of a picture is smooth and not flat, at least, and how much more where they do
RED = (0.025, 0.035), (0.36, 0.08)  # of skin: ramps up and down of red over light,
YELLOW = (0.25, 0.15), (1.7, 0.6)  # of yellow over red,
LIT = (0.08, 0.08)  # and of light
LIGHT = (0.3, 0.2)  # from what luma on a block is light, and how much more where it is all
SKIN_BUSY = 0.012  # where a block hides as much, it counts for half as skin
SKIN_BLOCKS, SKINNY = 5, (0.3, 0.4)  # blocks around, which share of them is skin's, at least, and how much more where all count
TAKEN = (0.06, 0.06)  # which share of what is plain is not flat, at least, and how much more where a picture was taken, not drawn
CLEAR = (0.25, 0.25)  # the same where what is flat in it is a clear sky's and gets grain, too,
CLEAR_BLOCKS, CLEARED = 9, (0.02, 0.08)  # if of so many blocks around such a share is not flat, at least, and how much more for all,
BLACK, WHITE = (0.02, 0.02), (0.96, 0.02)  # and if it lies between ramps from black and to white
PLAIN_LESS = 0.7  # where a drawing is plain but not flat: the share that is left out of how far samples may move
COLOURED = (0.005, 0.01)  # how far blocks are from grey in the mean, at least, and how much more where a picture gets all of its colour
GRAINS, GRAIN_PX, GRAIN_STEP = 16, 32, 16  # patterns of grain, their side, and how far apart they are laid
SIDES = torch.tensor(((0.375, 0.125, 0, 0), (0.625, 0.875, 0.875, 0.625), (0, 0, 0.125, 0.375)))
BETWEEN = torch.einsum("ay,bx->abyx", SIDES, SIDES).reshape(9, 1, 4, 4)  # shares of the blocks around in each pixel of one
PLACES = (torch.arange(PALED_PX) + 0.5) / PALED_PX
SPLINE = torch.cat([PLACES ** 2 / 2, 0.5 + PLACES * (1 - PLACES), (1 - PLACES) ** 2 / 2]).repeat(3, 1, 1, 1)  # a mean's share of pixels
MARGIN = 256  # of repeated pixels around a picture


class Way:
    """What a strength asks for: PSNR in dB; which of the networks; floor, knee and grain of the mask; how far what is
    drawn first moves what the next pass looks at, where the mask is 1; how many times as much is drawn of blue
    against yellow where the mask is low; and of smooth places: how far luma lies from planes where a block counts for
    half as smooth, which share of what is drawn is left out there, and how much grain comes instead; and of mild places,
    which hide somewhat more: where a block counts for half as mild, the share that is left out there, and of a picture the
    share that is smooth from which on its mild places count; the share that is left out on skin; and how little hides where
    a block counts for half as plain, of which as much is left out as of mild ones; and both where it is light.  And how far
    samples may move, in levels of 255: in a flat block, how many times its spread further, and at most.  And how much is
    left of level lines, and left out of colour along rows.  And which of a network's tables of gains
    it takes."""

    def __init__(self, psnr_db, network, floor, knee, grain, amplitude, blue, smooth, calm, dither, least, times, most, level,
                 pale, table, mild, eased, calm_from, skin, plain, light_plain, light_eased):
        self.psnr_db, self.network, self.amplitude, self.blue = psnr_db, network, amplitude, blue
        self.floor, self.knee, self.grain = floor, knee, grain
        self.smooth, self.calm, self.dither = smooth, calm, dither
        self.least, self.times, self.most = least, times, most
        self.level, self.pale, self.table = level, pale, table
        self.mild, self.eased, self.calm_from = mild, eased, calm_from
        self.skin, self.plain = skin, plain
        self.light_plain, self.light_eased = light_plain, light_eased


FAINT, STRONG = NETWORKS = ("faint", "strong")  # of the same form: nothing may be seen of it; strokes may
WAYS = {
    "low": Way(40, FAINT, 0.00015, 0.118, 0.0012, 0.0185, 1.75, 0.0022, 0.985, 0.0093, 6, 1.5, 11, 0.41, 0.96, 0, 0.0022, 0.83,
               0, 0.8, 0.0085, 0.02, 0.97),
    "standard": Way(37, FAINT, 0.00009, 0.0895, 0.001, 0.0132, 2.8, 0.00101, 0.975, 0.0109, 9.5, 2.33, 16, 0.79, 0.95, 1,
                    0.004, 0.8, 0.25, 0.8, 0.0046, 0.0113, 0.97),
    "high": Way(34, STRONG, 0.00008, 0.1796, 0.0014, 0.055, 1.5, 0.00085, 0.97, 0.0108, 22, 0, 22, 0.66, 0.85, 2, 0.002, 0.15, 0,
                0.6, 0.006, 0.012, 0.85),
}
STANDARD = WAYS["standard"]


def widths_of(state, drawer=""):
    return tuple(state[drawer + name + ".weight"].shape[0] for name in LOOKS)


def conv(inputs, outputs):
    return nn.Conv2d(inputs, outputs, 3, 1, 1)


def down(inputs, outputs):
    return nn.Conv2d(inputs, outputs, 2, 2)


class Up(nn.Conv2d):
    """1x1 and a pixel shuffle of 2.  With zeros around, as 3x3: on one thread torch 1.13 takes twice as long for 1x1."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs * 4, 1)

    def forward(self, x):
        wide = F.conv2d(x, self.weight, self.bias) if x.is_cuda else F.conv2d(x, F.pad(self.weight, (1, 1, 1, 1)), self.bias, padding=1)
        return F.pixel_shuffle(wide, 2)


class Encoder(nn.Module):
    """Looks at RGB 0..1 down to an eighth of the resolution and answers there.  train.py teaches it."""

    def __init__(self, widths=WIDTHS):
        super().__init__()
        half, half2, quarter, quarter2, eighth = widths
        self.down2, self.look2 = down(3, half), conv(half, half2)
        self.down4, self.look4 = down(half2, quarter), conv(quarter, quarter2)
        self.down8, self.answer8 = down(quarter2, eighth), conv(eighth, ANSWERS)

    def see(self, x):
        """What its layers saw, before the leaky ReLU, and the answer."""
        seen, a = [], x * 2 - 1
        for layer in (self.down2, self.look2, self.down4, self.look4, self.down8):
            seen.append(layer(a))
            a = F.leaky_relu(seen[-1], LEAK)
        return seen, self.answer8(a)


class Drawer(Encoder):
    """An encoder and much the same layers turned round, at one scale.

    Down to an eighth of the resolution it looks at the picture and answers with what an encoder
    would make of it, and up again it draws.  What is drawn passes, at every resolution, gates
    that what was seen there opens and shuts.
    """

    def __init__(self, widths=WIDTHS):
        super().__init__(widths)
        half, half2, quarter, quarter2, eighth = widths
        self.seed8 = conv(ANSWERS, eighth)
        self.up4, self.draw4 = Up(eighth, quarter2), conv(quarter2, quarter)
        self.up2, self.draw2 = Up(quarter, half2), conv(half2, half)
        self.draw1 = conv(half, 12)
        # How steep the gates of down2, look2, down4, look4 and down8 are.
        self.register_buffer("beta", torch.ones(5))
        # How loud the change of the answer is.
        self.register_buffer("gain", torch.ones(()))

    def layers(self):
        """The convolutions in the order of the weights file."""
        names = ("down2", "look2", "down4", "look4", "down8", "answer8", "seed8", "up4", "draw4", "up2", "draw2",
                 "draw1")
        return [(name, getattr(self, name)) for name in names]

    def look(self, x):
        """The gates of what is seen, and the answer."""
        seen, answer = self.see(x)
        return [(0.5 + slope * one).clamp(LEAK, 1) for slope, one in zip(self.beta, seen)], answer

    def draw(self, gates, h):
        h = self.up4(self.seed8(h) * gates[4]) * gates[3]
        h = self.up2(self.draw4(h) * gates[2]) * gates[1]
        return F.pixel_shuffle(self.draw1(self.draw2(h) * gates[0]), 2)

    def moved(self, before, y):
        """What it draws on y of how far y moves its answer from what it was before."""
        gates, after = self.look(y)
        return self.draw(gates, (after - before) * self.gain)


class Generator(nn.Module):
    """RGB 0..1, sides in multiples of 16 px, to a bounded unit perturbation of the same size.

    The coarse drawer sees the picture at half of its size.  First it draws from seeded noise; then
    it looks at the picture with that laid over it, and draws from how far its answer moved.  The
    fine one looks at the whole picture with what the coarse one drew laid over it, and draws from how
    far that moved its answer.
    """

    def __init__(self, widths=WIDTHS):
        super().__init__()
        self.coarse, self.fine = Drawer(widths), Drawer(widths)
        # How loud the noise is.
        self.register_buffer("noise_gain", torch.ones(()))
        # How much of what was drawn before the fine one looks at.
        self.shown = nn.Parameter(torch.tensor(0.5))
        # What windows are multiplied by at each strength, by how light they are, what hides in them and what is drawn: gains.py.
        self.register_buffer("gains", torch.ones(len(WAYS), GAINS, CELLS))
        # What is laid over places that are smooth.
        self.register_buffer("grain", torch.zeros(GRAINS, 3, GRAIN_PX, GRAIN_PX))

    def drawers(self):
        return [("coarse", self.coarse), ("fine", self.fine)]

    def layers(self):
        return [(name + "." + layer, one) for name, drawer in self.drawers() for layer, one in drawer.layers()]

    def forward(self, x, noise, way=STANDARD, beyond=0):
        """noise: -1..1, a sixteenth of x's size.  So many px of x are no picture."""
        mask = texture_mask(x, way)
        drawn = self.drawn(x, noise, mask, way)
        luma = companded(luma_of(drawn), luma_of(x), way.level, self.gains[way.table])
        return laid(drawn, luma, mask, way) * (1 - between_blocks(calmed(x, way, beyond)))

    def drawn(self, x, noise, mask, way):
        """What is drawn before it is brought nearer to what hides it."""
        small, hides = F.avg_pool2d(x, 2), F.avg_pool2d(mask, 2)
        gates, before = self.coarse.look(small)
        unit = bounded(self.coarse.draw(gates, noise * self.noise_gain), hides)
        raw = self.coarse.moved(before, small + way.amplitude * unit) * hides
        _, before = self.fine.look(x)
        raw = self.fine.moved(before, x + way.amplitude * self.shown * soft(doubled(raw)) * mask)
        return soft(blued(raw, mask, way.blue) * mask)


def network_of(state):
    """The network of a checkpoint's state."""
    net = Generator(widths_of(state, "fine."))
    net.load_state_dict(state)
    return net


def doubled(x):
    return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)


def soft(raw):
    return raw * torch.rsqrt(1 + raw * raw)


def bounded(raw, mask):
    """The mask once before and once after what bounds: soft edges where it opens."""
    return soft(raw * mask) * mask


def blued(drawn, mask, blue):
    """Of blue against yellow, which is hardly seen, blue times as much where the mask is low; luma stays."""
    more = (drawn[:, 2:] - luma_of(drawn)) * ((blue - 1) * (1 - mask) / (1 + (blue - 1) * mask))
    return drawn + torch.cat([0 * more, GREEN_OF_BLUE * more, more], 1)


def paled(drawn, pale):
    """Without a share of the colour that runs along rows: the mean of every eight pixels of one, between them a quadratic
    spline.  Level lines of violet are seen on dark cloth, on leaves, and in a sky; so of strong ones more is left out, too, or
    what learns would draw them as many times stronger.  pale: a plane."""
    means = F.pad(F.avg_pool2d(drawn - luma_of(drawn), (1, PALED_PX)), (1, 1, 0, 0), mode="replicate")
    bounded = means * torch.rsqrt(1 + means.square().sum(1, keepdim=True) / ROWS ** 2)
    return drawn - splined(means) + (1 - pale).clamp_min(0) * splined(bounded)


def splined(means):
    """Between means of every eight pixels of rows, from the one before the first to the one after the last."""
    between = F.conv_transpose2d(means, placed(SPLINE, means.device), stride=(1, PALED_PX), groups=3)
    return between[..., 2 * PALED_PX:-2 * PALED_PX]


def coloured(drawn, blue, red):
    """The colour of what is drawn alone, blue and red times as much; luma is 0."""
    colours = drawn - luma_of(drawn)
    red, blue = red * colours[:, :1], blue * colours[:, 2:]
    return torch.cat([red, GREEN_OF_RED * red + GREEN_OF_BLUE * blue, blue], 1)


def laid(drawn, companded_luma, mask, way):
    """What is drawn under the mask, with luma as it is companded, and its colour paled and multiplied by the fields."""
    luma, (blue, red, pale) = companded_luma
    return blued(coloured(paled(drawn, way.pale * pale), blue, red) + luma, mask, way.blue) * mask


def most_around(blocks):
    return F.max_pool2d(F.pad(blocks, (1, 1, 1, 1), mode="replicate"), 3, 1)


def rooted_around(blocks):
    """The mean of fourth roots over 3x3, to the fourth, which one edge or one star hardly lifts."""
    return F.avg_pool2d(F.pad(blocks.sqrt().sqrt(), (1, 1, 1, 1), mode="replicate"), 3, 1).square().square()


def ramp(spread, begin, width):
    return ((spread - begin) / width).clamp(0, 1)


def grained(x, way=STANDARD, beyond=0):
    """How much grain each block gets: the same wherever it is smooth or mild or skin, but none where it is flat or only grows lighter,
    nor beside something flat, as outlines of drawings are."""
    hides = torch.maximum(sum(smooth_and_mild(x, way, beyond)), torch.maximum(*skin_and_plain(x, way, beyond)))
    return cleared(x, way, beyond) * hides


def grainy(x):
    """How much grain each block may get: none where it is flat, or beside something flat."""
    spread = spread_of(x)
    return ramp(rooted_around(spread), *GRAINY) * ramp(-most_around(-spread), *BESIDE)


def cleared(x, way, beyond):
    """The same, but that in photographs what is flat among what is not gets as much: between two levels of 255 a clear sky has
    flat spots, and grain that leaves them out shows where they are."""
    own, luma = grainy(x), luma_of(F.avg_pool2d(x, 4))
    around = F.avg_pool2d(F.pad(own, (CLEAR_BLOCKS // 2,) * 4, mode="replicate"), CLEAR_BLOCKS, 1)
    clear = ramp(taken_share(x, way, beyond), *CLEAR) * ramp(around, *CLEARED) * between(luma, (BLACK, WHITE))
    return own + (1 - own) * clear


def calmed(x, way, beyond=0):
    """Which share of what is drawn is left out of each block: most where it is smooth, and some where it is mild or skin."""
    smooth, mild = smooth_and_mild(x, way, beyond)
    skin, plain = skin_and_plain(x, way, beyond)
    eased = way.eased + lightness(x) * (way.light_eased - way.eased)
    return 1 - (1 - way.calm * smooth - way.eased * mild) * (1 - torch.maximum(way.skin * skin, eased * plain))


def skin_and_plain(x, way, beyond):
    """How far each block is skin, and how far it is plain: what hides in it is little, and in the light less is hidden.  In
    drawings, where most of that is flat, nothing is skin, and plain is what is not smooth: a shaded leaf, and next to outlines."""
    near, taken = spread_near(x), taken_of(x, way, beyond)
    half = way.plain + lightness(x) * (way.light_plain - way.plain)
    counted = taken + (1 - taken) * (1 - smoothness(x, way.smooth))
    return taken * warmth(x) * near_planes(near, SKIN_BUSY), counted * near_planes(near, half)


def taken_of(x, way, beyond):
    """How far pictures count as taken with a camera: 0 where they are drawings."""
    return ramp(taken_share(x, way, beyond), *TAKEN)


def taken_share(x, way, beyond):
    """Which share of what is plain in pictures is not flat: most in photographs, next to nothing in drawings."""
    plain = near_planes(spread_near(x), way.plain)
    return mean_within(plain * grainy(x), beyond) / (mean_within(plain, beyond) + 1e-6)


def lightness(x):
    """How far each block is light: a sky, a sea by day, a wall, where strokes are seen first."""
    return ramp(luma_of(F.avg_pool2d(x, 4)), *LIGHT)


def tinted(drawn, x, beyond=0):
    """What is drawn, without its colour where a picture has none itself: violet and green are seen first in what is grey."""
    luma = luma_of(drawn)
    return luma + colourfulness(x, beyond) * (drawn - luma)


def colourfulness(x, beyond):
    """How far pictures are coloured: 0 where what is stored as RGB is grey, a scan or a page of text."""
    mean = F.avg_pool2d(x, 4)
    luma = luma_of(mean)
    red, blue = CR * (mean[:, :1] - luma), CB * (mean[:, 2:] - luma)
    return ramp(mean_within((red.square() + blue.square()).sqrt(), beyond), *COLOURED)


def warmth(x):
    """How far each block is coloured as skin is: warm, between red and yellow, neither grey nor bright red; and those around it
    are, too.  Wood, sand and evening skies are much the same, and are drawn on as skin is."""
    mean = F.avg_pool2d(x, 4)
    luma = luma_of(mean)
    red, yellow = CR * (mean[:, :1] - luma), CB * (luma - mean[:, 2:])
    much, hue = red / (luma + 0.06), yellow / red.clamp_min(0.004)
    warm = between(much, RED) * between(hue, YELLOW) * ramp(luma, *LIT)
    around = F.avg_pool2d(F.pad(warm, (SKIN_BLOCKS // 2,) * 4, mode="replicate"), SKIN_BLOCKS, 1)
    return ramp(around, *SKINNY)


def between(value, ends):
    """1 between the inner ends of two ramps, up and down, 0 beyond them."""
    (low, rise), (high, fall) = ends
    return ramp(value, low, rise) * ramp(-value, -high - fall, fall)


def smooth_and_mild(x, way, beyond):
    """How smooth each block is, and how mild where it is not smooth; the latter where much of the picture is smooth, and
    not flat, as drawings are."""
    smooth, mild = smoothness(x, way.smooth), smoothness(x, way.mild) - smoothness(x, way.smooth)
    if not way.calm_from:
        return smooth, mild
    much = ramp(mean_within(smooth, beyond), way.calm_from, CALM_WIDTH)
    return smooth, much * ramp(mean_within(smooth * grainy(x), beyond), *PHOTOGRAPHED) * mild


def mean_within(blocks, beyond):
    """The mean of the blocks of pictures, without so many px beyond."""
    beyond = beyond // 4
    return blocks[:, :, beyond:blocks.shape[2] - beyond, beyond:blocks.shape[3] - beyond].mean((1, 2, 3), keepdim=True)


def smoothness(x, half=STANDARD.smooth):
    """How smooth each block of 4x4 is: 1 where luma lies near planes, a half where it lies half from them, 0 on what is busy.

    A quarter of the picture tells film grain, which is a quarter as strong there, from texture, which is as strong.  Beside
    an outline its blocks tell nothing; there the smoothest of those around counts, for as much as the block's own grain allows.
    """
    own, coarse = spread_of(x), COARSE * spread_of(F.avg_pool2d(x, 4))
    beside = -F.max_pool2d(F.pad(-coarse, (1, 1, 1, 1), mode="replicate"), 3, 1)
    coarse, beside = (F.interpolate(blocks, scale_factor=4, mode="nearest") for blocks in (coarse, beside))
    least = torch.minimum(torch.minimum(own, coarse), torch.maximum(beside, OWN_GRAIN * own))
    spread = torch.minimum(rooted_around(least), OWN * least)
    return near_planes(spread, half)


def near_planes(spread, half):
    """1 where a block lies nearer to planes than what counts for half, 0 further."""
    return 1 / (1 + (spread / half).pow(8))


def dithered(x, drawn, grain, way, beyond=0):
    """What is drawn and grain where the picture is smooth, but not where it is flat; as strong as the share of the picture,
    without so many px beyond it, that gets any: what is smooth nearly all over takes little else."""
    granted = grained(x, way, beyond)
    share = mean_within(granted, beyond)
    return drawn + way.dither * share * between_blocks(granted) * grain


def grain_of(patterns, hashed):
    """Grain of root mean square 1: at every step one of the patterns, up or down, laid over its neighbours; low bits of
    each place's number, [picture, row, column], are its pattern, the next its sign."""
    count = len(patterns)
    signs = 1.0 - 2 * (hashed // count % 2)
    chosen = F.one_hot(hashed % count, count).permute(0, 3, 1, 2) * signs[:, None]
    laid, beyond = F.conv_transpose2d(chosen, patterns, stride=GRAIN_STEP), GRAIN_PX - GRAIN_STEP
    return laid[:, :, beyond:-beyond, beyond:-beyond]


def grain_places(px):
    """How many patterns a side of so many px takes."""
    return px // GRAIN_STEP + GRAIN_PX // GRAIN_STEP - 1


def luma_of(x):
    return LUMA[0] * x[:, 0:1] + LUMA[1] * x[:, 1:2] + LUMA[2] * x[:, 2:3]


def around_planes(y):
    """The mean square, in 4x4 blocks, of how far values lie from the plane that fits them best."""
    apart = y - F.interpolate(F.avg_pool2d(y, 4), scale_factor=4, mode="nearest")
    across = (torch.arange(4, device=y.device, dtype=y.dtype) - 1.5).expand(4, 4) / 20 ** 0.5
    slopes = F.conv2d(apart, torch.stack([across, across.t()])[:, None], stride=4)
    return (F.avg_pool2d(apart.square(), 4) - slopes.square().sum(1, keepdim=True) / 16).clamp_min(0)


def spread_of(x):
    return around_planes(luma_of(x)).add(1e-8).sqrt()


def hiding(spread, way):
    texture = spread.pow(3) / (spread.square() + way.grain ** 2)
    return (texture + way.floor) / (texture + way.knee)


def block_mask(x, way):
    """How much each block of 4x4 hides, floor / knee (flat) .. 1: from the spread of luma in 4x4 blocks around a plane,
    so that what only grows lighter, a sky or what is out of focus, hides no more than one colour does.

    The neighbourhood takes the mean of fourth roots, to the fourth, so that one edge beside a
    flat area does not lift the mask there; and no block takes more than twice its own
    spread allows, so that a flat one beside an edge takes nothing.  A spread of way.grain counts for half.
    """
    return hiding(spread_near(x), way)


def spread_near(x):
    spread = spread_of(x)
    return torch.minimum(rooted_around(spread), OWN * spread)


def peaks(x, way, beyond=0):
    """How far samples of each block may move, in whole levels of 255; less where a drawing is plain but not flat."""
    near = spread_near(x)
    less = PLAIN_LESS * (1 - taken_of(x, way, beyond)) * ramp(near, *GRAINY) * near_planes(near, way.plain)
    return ((way.least + way.times * 255 * near).clamp_max(way.most) * (1 - less)).add(0.5).floor()


def between_blocks(blocks):
    return F.interpolate(blocks, scale_factor=4, mode="bilinear", align_corners=False)


def texture_mask(x, way=STANDARD):
    """Between blocks, as between_blocks does it, but that no neighbour of a block counts for more than BESIDE_OWN times the
    block itself: so that nothing is drawn in one that is flat beside one that is busy."""
    own = block_mask(x, way)
    height, width = own.shape[2:]
    around = F.pad(own, (1, 1, 1, 1), mode="replicate")
    beside = [torch.minimum(around[:, :, row:row + height, column:column + width], BESIDE_OWN * own)
            for row in range(3) for column in range(3)]
    return F.conv_transpose2d(torch.cat(beside, 1), placed(BETWEEN, own.device), stride=4)


def mixed(value):
    """The finaliser of SplitMix64 (Steele, Lea, Flood 2014) on an array of uint64."""
    value = (value ^ (value >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    return value ^ (value >> numpy.uint64(31))


def seeded_noise(seed, rows, columns):
    """The noise channels for a picture of rows x columns places of 16x16 px: four hashes of the
    place, eight bytes each, -1..1."""
    with numpy.errstate(over="ignore"):
        y = numpy.arange(rows, dtype=numpy.uint64)[:, None]
        x = numpy.arange(columns, dtype=numpy.uint64)[None, :]
        place = ((y << numpy.uint64(32)) | x) * numpy.uint64(ANSWERS // 8)
        key = mixed(numpy.array([seed], dtype=numpy.uint64) + numpy.uint64(GOLDEN))
        values = [mixed((place + numpy.uint64(i)) * numpy.uint64(GOLDEN) + key) for i in range(ANSWERS // 8)]
    channels = [((values[i // 8] >> numpy.uint64(8 * (i % 8))) & numpy.uint64(255)).astype(numpy.float32)
                for i in range(ANSWERS)]
    return torch.from_numpy((numpy.stack(channels) - 127.5) / 127.5)[None]


def grain_hashes(seed, height, width):
    """Of the places of patterns in a picture of height x width px."""
    with numpy.errstate(over="ignore"):
        y = numpy.arange(grain_places(height), dtype=numpy.uint64)[:, None]
        x = numpy.arange(grain_places(width), dtype=numpy.uint64)[None, :]
        key = mixed(numpy.array([seed], dtype=numpy.uint64) + numpy.uint64(3) * numpy.uint64(GOLDEN))
        hashed = mixed(((y << numpy.uint64(32)) | x) * numpy.uint64(GOLDEN) + key)
    return torch.from_numpy((hashed & numpy.uint64(255)).astype(numpy.int64))[None]


def seeded_grain(patterns, seed, height, width):
    """The grain of a picture of height x width px, by hashes of the places of patterns."""
    return grain_of(patterns, grain_hashes(seed, height, width))


def grid_offset(seed):
    """Where the picture begins on the grid: left and top, 0 or 16 px."""
    with numpy.errstate(over="ignore"):
        place = int(mixed(numpy.array([seed], dtype=numpy.uint64) + numpy.uint64(2) * numpy.uint64(GOLDEN))[0])
    return (place & 1) * 16, (place >> 1 & 1) * 16


def perturbation(net, x, seeds, way=STANDARD, beyond=0):
    """The unit perturbation of a batch, one seed each, before it is scaled to a strength; so many px of x are no picture."""
    noise = torch.cat([seeded_noise(seed, x.shape[2] // 16, x.shape[3] // 16) for seed in seeds])
    grain = torch.cat([seeded_grain(net.grain, seed, x.shape[2], x.shape[3]) for seed in seeds])
    return tinted(dithered(x, net(x, noise.to(x.device), way, beyond), grain, way, beyond), x, beyond)


def shipped_perturbation(net, x, seed, way=STANDARD):
    """The unit perturbation as the C engine computes it: one picture of any size, moved on
    the grid by its seed, its edges repeated."""
    left, top = grid_offset(seed)
    height, width = x.shape[2:]
    right, bottom = MARGIN + -(width + left) % 16, MARGIN + -(height + top) % 16
    padded = F.pad(x, (MARGIN + left, right, MARGIN + top, bottom), mode="replicate")
    unit = perturbation(net, padded, [seed], way, MARGIN)
    return unit[:, :, MARGIN + top:MARGIN + top + height, MARGIN + left:MARGIN + left + width]
