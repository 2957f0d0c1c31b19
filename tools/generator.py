"""The networks of the release, their texture mask, and the scaling of a perturbation.

src/engine/protect/protect_*.c computes the same; change both together.
"""

import numpy
import torch
import torch.nn.functional as F
from torch import nn

from devices import placed
from spectra import CELLS, GAINS, companded

# Channels of the look layers: two at a half, two at a quarter, one at an eighth of the resolution.
WIDTHS = (16, 16, 32, 32, 64)
LOOKS = ("down2", "look2", "down4", "look4", "down8")  # the layers of those widths
ANSWERS = 32  # channels of the answer at an eighth, and of the noise
LEAK = 0.01
LUMA = (0.299, 0.587, 0.114)
CB, CR = 0.564, 0.713  # YCbCr factors of blue and red, minus luma
GREEN_OF_BLUE = -LUMA[2] / LUMA[1]  # change of green that keeps luma when blue changes,
GREEN_OF_RED = -LUMA[0] / LUMA[1]  # and when red changes
GOLDEN = 0x9E3779B97F4A7C15
OWN = 2  # maximum of the neighbourhood's spread, as a multiple of the block's own
COARSE = 0.42  # factor of the spread at a quarter of the resolution
OWN_GRAIN = 0.42  # minimum factor of a block's own spread next to a smooth block
BESIDE_OWN = 4  # maximum of a neighbour's mask, as a multiple of the block's own
PALED_PX = 8  # px of a row whose mean colour is reduced
ROWS = 0.3  # soft limit of the part that remains, as root of its squares, before its share is applied
GRAINY = (0.0011, 0.0006)  # distance of luma from planes: minimum for any grain, and further distance to full grain
BESIDE = (0.0003, 0.0003)  # the same for the flattest neighbour
CALM_WIDTH = 0.1  # further smooth share of a picture at which its mild places count fully
PHOTOGRAPHED = (0.05, 0.05)  # share of a picture that is smooth and not flat: minimum, and width of the ramp
RED = (0.025, 0.035), (0.36, 0.08)  # of skin: rising and falling ramps of red over light,
YELLOW = (0.25, 0.15), (1.7, 0.6)  # of yellow over red,
LIT = (0.08, 0.08)  # and a ramp of light
LIGHT = (0.3, 0.2)  # luma of a light block: start and width of the ramp
SKIN_BUSY = 0.012  # masking at which a block counts half as skin
SKIN_BLOCKS, SKINNY = 5, (0.3, 0.4)  # neighbourhood in blocks; its minimum share of skin, and width of the ramp
TAKEN = (0.06, 0.06)  # non-flat share of the plain part of a photograph (not a drawing): minimum, and width of the ramp
CLEAR = (0.25, 0.25)  # the same for pictures whose flat places are a clear sky and get grain,
CLEAR_BLOCKS, CLEARED = 9, (0.02, 0.08)  # if so many blocks around have this share of grain (minimum, width of the ramp),
BLACK, WHITE = (0.02, 0.02), (0.96, 0.02)  # and if luma lies between the ramps at black and at white
PLAIN_LESS = 0.7  # reduction of the peaks where a drawing is plain but not flat
COLOURED = (0.005, 0.01)  # mean distance of blocks from grey: minimum for any colour, and width of the ramp
GRAINS, GRAIN_PX, GRAIN_STEP = 16, 32, 16  # grain patterns, their side, and the distance between their places
SIDES = torch.tensor(((0.375, 0.125, 0, 0), (0.625, 0.875, 0.875, 0.625), (0, 0, 0.125, 0.375)))
BETWEEN = torch.einsum("ay,bx->abyx", SIDES, SIDES).reshape(9, 1, 4, 4)  # interpolation weights of neighbours
PLACES = (torch.arange(PALED_PX) + 0.5) / PALED_PX
SPLINE = torch.cat([PLACES ** 2 / 2, 0.5 + PLACES * (1 - PLACES), (1 - PLACES) ** 2 / 2]).repeat(3, 1, 1, 1)  # weights of a mean
MARGIN = 256  # px of edge repetition around a picture


class Way:
    """The numbers of a strength.
    - psnr_db: PSNR in dB.
    - network: which of NETWORKS.
    - floor, knee, grain: parameters of the mask.
    - amplitude: weight of the first perturbation in the input of the next pass, where the mask is 1.
    - blue: factor of blue against yellow where the mask is low.
    - smooth, calm, dither: distance of luma from planes at which a block is half smooth; reduction there; amplitude
      of its grain.
    - mild, eased, calm_from: the same distance for mild blocks, which mask a little more; reduction there; smooth
      share of a picture from which mild blocks count.
    - skin: reduction on skin.
    - plain: masking at which a block is half plain; the reduction there is eased.
    - light_plain, light_eased: plain and eased in light blocks.
    - least, times, most: peak in levels of 255 in a flat block; its growth per spread; its maximum.
    - level, pale: share of level lines that remains; reduction of colour along rows.
    - table: index of the network's table of gains.
    """

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


FAINT, STRONG = NETWORKS = ("faint", "strong")  # of the same architecture: invisible perturbations; visible strokes allowed
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
    """A 1x1 convolution and a pixel shuffle of 2. On the CPU it is a 3x3 with zeros, because torch 1.13 takes twice
    as long for 1x1 on one thread."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs * 4, 1)

    def forward(self, x):
        wide = F.conv2d(x, self.weight, self.bias) if x.is_cuda else F.conv2d(x, F.pad(self.weight, (1, 1, 1, 1)), self.bias, padding=1)
        return F.pixel_shuffle(wide, 2)


class Encoder(nn.Module):
    """Maps RGB 0..1 to an answer at an eighth of the resolution. train.py trains it."""

    def __init__(self, widths=WIDTHS):
        super().__init__()
        half, half2, quarter, quarter2, eighth = widths
        self.down2, self.look2 = down(3, half), conv(half, half2)
        self.down4, self.look4 = down(half2, quarter), conv(quarter, quarter2)
        self.down8, self.answer8 = down(quarter2, eighth), conv(eighth, ANSWERS)

    def see(self, x):
        """The layers' outputs before the leaky ReLU, and the answer."""
        seen, a = [], x * 2 - 1
        for layer in (self.down2, self.look2, self.down4, self.look4, self.down8):
            seen.append(layer(a))
            a = F.leaky_relu(seen[-1], LEAK)
        return seen, self.answer8(a)


class Drawer(Encoder):
    """An encoder and its approximate transpose, at one scale.

    The encoder maps the picture to an answer at an eighth of the resolution. The drawing layers map the answer to a
    perturbation. At every resolution, gates from the encoder's outputs multiply the drawing layers.
    """

    def __init__(self, widths=WIDTHS):
        super().__init__(widths)
        half, half2, quarter, quarter2, eighth = widths
        self.seed8 = conv(ANSWERS, eighth)
        self.up4, self.draw4 = Up(eighth, quarter2), conv(quarter2, quarter)
        self.up2, self.draw2 = Up(quarter, half2), conv(half2, half)
        self.draw1 = conv(half, 12)
        # Slopes of the gates of down2, look2, down4, look4 and down8.
        self.register_buffer("beta", torch.ones(5))
        # Factor of the change of the answer.
        self.register_buffer("gain", torch.ones(()))

    def layers(self):
        """The convolutions in the order of the weights file."""
        names = ("down2", "look2", "down4", "look4", "down8", "answer8", "seed8", "up4", "draw4", "up2", "draw2",
                 "draw1")
        return [(name, getattr(self, name)) for name in names]

    def look(self, x):
        """The gates and the answer."""
        seen, answer = self.see(x)
        return [(0.5 + slope * one).clamp(LEAK, 1) for slope, one in zip(self.beta, seen)], answer

    def draw(self, gates, h):
        h = self.up4(self.seed8(h) * gates[4]) * gates[3]
        h = self.up2(self.draw4(h) * gates[2]) * gates[1]
        return F.pixel_shuffle(self.draw1(self.draw2(h) * gates[0]), 2)

    def moved(self, before, y):
        """The drawn output for y: the input is the change of the answer from before to y."""
        gates, after = self.look(y)
        return self.draw(gates, (after - before) * self.gain)


class Generator(nn.Module):
    """Maps RGB 0..1 (sides in multiples of 16 px) to a bounded unit perturbation of the same size.

    The coarse drawer gets the picture at half its size. It draws from seeded noise first. It then draws from the
    change of its answer that this perturbation causes. The fine drawer gets the full picture. It draws from the
    change of its answer that the coarse perturbation causes.
    """

    def __init__(self, widths=WIDTHS):
        super().__init__()
        self.coarse, self.fine = Drawer(widths), Drawer(widths)
        # Factor of the noise.
        self.register_buffer("noise_gain", torch.ones(()))
        # Share of the coarse perturbation in the fine drawer's input.
        self.shown = nn.Parameter(torch.tensor(0.5))
        # Gains of windows at each strength, by light, masking and drawn amplitude (gains.py).
        self.register_buffer("gains", torch.ones(len(WAYS), GAINS, CELLS))
        # Patterns for smooth places.
        self.register_buffer("grain", torch.zeros(GRAINS, 3, GRAIN_PX, GRAIN_PX))

    def drawers(self):
        return [("coarse", self.coarse), ("fine", self.fine)]

    def layers(self):
        return [(name + "." + layer, one) for name, drawer in self.drawers() for layer, one in drawer.layers()]

    def forward(self, x, noise, way=STANDARD, beyond=0):
        """noise: -1..1, a sixteenth of x's size. beyond: px at the edges of x that are not part of the picture."""
        mask = texture_mask(x, way)
        drawn = self.drawn(x, noise, mask, way)
        luma = companded(luma_of(drawn), luma_of(x), way.level, self.gains[way.table])
        return laid(drawn, luma, mask, way) * (1 - between_blocks(calmed(x, way, beyond)))

    def drawn(self, x, noise, mask, way):
        """The drawn output before its spectrum is adapted to the masking."""
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
    """Apply the mask before and after the soft limit, for soft edges where the mask opens."""
    return soft(raw * mask) * mask


def blued(drawn, mask, blue):
    """Multiply blue against yellow, which is least visible, by up to blue where the mask is low; luma stays."""
    more = (drawn[:, 2:] - luma_of(drawn)) * ((blue - 1) * (1 - mask) / (1 + (blue - 1) * mask))
    return drawn + torch.cat([0 * more, GREEN_OF_BLUE * more, more], 1)


def paled(drawn, pale):
    """Reduce the colour that runs along rows: the mean of every eight pixels, interpolated by a quadratic spline.

    Level lines of violet are visible on dark cloth, on leaves and in a sky. Strong ones are reduced further;
    otherwise training would compensate with larger amplitudes. pale: a plane.
    """
    means = F.pad(F.avg_pool2d(drawn - luma_of(drawn), (1, PALED_PX)), (1, 1, 0, 0), mode="replicate")
    bounded = means * torch.rsqrt(1 + means.square().sum(1, keepdim=True) / ROWS ** 2)
    return drawn - splined(means) + (1 - pale).clamp_min(0) * splined(bounded)


def splined(means):
    """Interpolate means of eight pixels along rows; the means include one before the first and one after the last."""
    between = F.conv_transpose2d(means, placed(SPLINE, means.device), stride=(1, PALED_PX), groups=3)
    return between[..., 2 * PALED_PX:-2 * PALED_PX]


def coloured(drawn, blue, red):
    """Only the colour of the drawn output, with factors of blue and red; luma is 0."""
    colours = drawn - luma_of(drawn)
    red, blue = red * colours[:, :1], blue * colours[:, 2:]
    return torch.cat([red, GREEN_OF_RED * red + GREEN_OF_BLUE * blue, blue], 1)


def laid(drawn, companded_luma, mask, way):
    """The drawn output under the mask, with the companded luma; the fields scale the colour and its reduction along
    rows."""
    luma, (blue, red, pale) = companded_luma
    return blued(coloured(paled(drawn, way.pale * pale), blue, red) + luma, mask, way.blue) * mask


def most_around(blocks):
    return F.max_pool2d(F.pad(blocks, (1, 1, 1, 1), mode="replicate"), 3, 1)


def rooted_around(blocks):
    """The fourth power of the mean of fourth roots over 3x3; a single edge or star barely raises it."""
    return F.avg_pool2d(F.pad(blocks.sqrt().sqrt(), (1, 1, 1, 1), mode="replicate"), 3, 1).square().square()


def ramp(spread, begin, width):
    return ((spread - begin) / width).clamp(0, 1)


def grained(x, way=STANDARD, beyond=0):
    """The amount of grain of each block. It is equal on smooth, mild, skin and plain blocks. It is zero on flat
    blocks and gradients, and next to flat blocks, such as outlines of drawings."""
    hides = torch.maximum(sum(smooth_and_mild(x, way, beyond)), torch.maximum(*skin_and_plain(x, way, beyond)))
    return cleared(x, way, beyond) * hides


def grainy(x):
    """The maximum grain of each block: none where it or a neighbour is flat."""
    spread = spread_of(x)
    return ramp(rooted_around(spread), *GRAINY) * ramp(-most_around(-spread), *BESIDE)


def cleared(x, way, beyond):
    """As grainy(), but flat blocks among others get grain in photographs. A clear sky between two levels of 255 has
    flat spots, and grain that omits them makes them visible."""
    own, luma = grainy(x), luma_of(F.avg_pool2d(x, 4))
    around = F.avg_pool2d(F.pad(own, (CLEAR_BLOCKS // 2,) * 4, mode="replicate"), CLEAR_BLOCKS, 1)
    clear = ramp(taken_share(x, way, beyond), *CLEAR) * ramp(around, *CLEARED) * between(luma, (BLACK, WHITE))
    return own + (1 - own) * clear


def calmed(x, way, beyond=0):
    """The reduction of the drawn output in each block: largest where it is smooth, smaller where it is mild, skin or
    plain."""
    smooth, mild = smooth_and_mild(x, way, beyond)
    skin, plain = skin_and_plain(x, way, beyond)
    eased = way.eased + lightness(x) * (way.light_eased - way.eased)
    return 1 - (1 - way.calm * smooth - way.eased * mild) * (1 - torch.maximum(way.skin * skin, eased * plain))


def skin_and_plain(x, way, beyond):
    """How much each block is skin, and how much it is plain. A plain block masks little; light blocks mask less.

    Drawings have a mostly flat plain part. In them no block is skin, and plain excludes smooth blocks: it covers a
    shaded leaf and the surroundings of outlines.
    """
    near, taken = spread_near(x), taken_of(x, way, beyond)
    half = way.plain + lightness(x) * (way.light_plain - way.plain)
    counted = taken + (1 - taken) * (1 - smoothness(x, way.smooth))
    return taken * warmth(x) * near_planes(near, SKIN_BUSY), counted * near_planes(near, half)


def taken_of(x, way, beyond):
    """How much pictures count as photographs: 0 for drawings."""
    return ramp(taken_share(x, way, beyond), *TAKEN)


def taken_share(x, way, beyond):
    """The share of the plain part of a picture that is not flat: large in photographs, almost zero in drawings."""
    plain = near_planes(spread_near(x), way.plain)
    return mean_within(plain * grainy(x), beyond) / (mean_within(plain, beyond) + 1e-6)


def lightness(x):
    """How light each block is: a sky, a sea by day, a wall. Strokes are most visible there."""
    return ramp(luma_of(F.avg_pool2d(x, 4)), *LIGHT)


def tinted(drawn, x, beyond=0):
    """The perturbation without colour where the picture has none: violet and green are most visible on grey."""
    luma = luma_of(drawn)
    return luma + colourfulness(x, beyond) * (drawn - luma)


def colourfulness(x, beyond):
    """How coloured pictures are: 0 for grey stored as RGB, for example a scan or a page of text."""
    mean = F.avg_pool2d(x, 4)
    luma = luma_of(mean)
    red, blue = CR * (mean[:, :1] - luma), CB * (mean[:, 2:] - luma)
    return ramp(mean_within((red.square() + blue.square()).sqrt(), beyond), *COLOURED)


def warmth(x):
    """How much each block and its neighbourhood have the colour of skin: warm, between red and yellow, neither grey
    nor bright red. Wood, sand and evening skies are similar and count as skin."""
    mean = F.avg_pool2d(x, 4)
    luma = luma_of(mean)
    red, yellow = CR * (mean[:, :1] - luma), CB * (luma - mean[:, 2:])
    much, hue = red / (luma + 0.06), yellow / red.clamp_min(0.004)
    warm = between(much, RED) * between(hue, YELLOW) * ramp(luma, *LIT)
    around = F.avg_pool2d(F.pad(warm, (SKIN_BLOCKS // 2,) * 4, mode="replicate"), SKIN_BLOCKS, 1)
    return ramp(around, *SKINNY)


def between(value, ends):
    """1 between the inner ends of a rising and a falling ramp, 0 outside them."""
    (low, rise), (high, fall) = ends
    return ramp(value, low, rise) * ramp(-value, -high - fall, fall)


def smooth_and_mild(x, way, beyond):
    """How smooth each block is, and how mild if it is not smooth. Mild counts only where much of the picture is
    smooth and not flat, as drawings are."""
    smooth, mild = smoothness(x, way.smooth), smoothness(x, way.mild) - smoothness(x, way.smooth)
    if not way.calm_from:
        return smooth, mild
    much = ramp(mean_within(smooth, beyond), way.calm_from, CALM_WIDTH)
    return smooth, much * ramp(mean_within(smooth * grainy(x), beyond), *PHOTOGRAPHED) * mild


def mean_within(blocks, beyond):
    """The mean of the blocks of pictures, without the px beyond the picture."""
    beyond = beyond // 4
    return blocks[:, :, beyond:blocks.shape[2] - beyond, beyond:blocks.shape[3] - beyond].mean((1, 2, 3), keepdim=True)


def smoothness(x, half=STANDARD.smooth):
    """How smooth each block of 4x4 is: 1 where luma is close to planes, a half at the distance half, 0 on busy
    blocks.

    The spread at a quarter of the resolution separates film grain, which is a quarter as strong there, from texture,
    which is as strong. Next to an outline that spread is not reliable. There the smoothest neighbour counts, limited
    by the block's own grain.
    """
    own, coarse = spread_of(x), COARSE * spread_of(F.avg_pool2d(x, 4))
    beside = -F.max_pool2d(F.pad(-coarse, (1, 1, 1, 1), mode="replicate"), 3, 1)
    coarse, beside = (F.interpolate(blocks, scale_factor=4, mode="nearest") for blocks in (coarse, beside))
    least = torch.minimum(torch.minimum(own, coarse), torch.maximum(beside, OWN_GRAIN * own))
    spread = torch.minimum(rooted_around(least), OWN * least)
    return near_planes(spread, half)


def near_planes(spread, half):
    """1 where a block is closer to planes than half, 0 where it is further."""
    return 1 / (1 + (spread / half).pow(8))


def dithered(x, drawn, grain, way, beyond=0):
    """Add grain where the picture is smooth but not flat. Its amplitude is in proportion to the share of the picture
    that gets grain, because a mostly smooth picture gets little else. The share excludes px beyond the picture."""
    granted = grained(x, way, beyond)
    share = mean_within(granted, beyond)
    return drawn + way.dither * share * between_blocks(granted) * grain


def grain_of(patterns, hashed):
    """Grain of root mean square 1: at every step a pattern with a sign overlaps its neighbours. In hashed [picture,
    row, column], the low bits select the pattern and the next bit the sign."""
    count = len(patterns)
    signs = 1.0 - 2 * (hashed // count % 2)
    chosen = F.one_hot(hashed % count, count).permute(0, 3, 1, 2) * signs[:, None]
    laid, beyond = F.conv_transpose2d(chosen, patterns, stride=GRAIN_STEP), GRAIN_PX - GRAIN_STEP
    return laid[:, :, beyond:-beyond, beyond:-beyond]


def grain_places(px):
    """The number of patterns along a side of px pixels."""
    return px // GRAIN_STEP + GRAIN_PX // GRAIN_STEP - 1


def luma_of(x):
    return LUMA[0] * x[:, 0:1] + LUMA[1] * x[:, 1:2] + LUMA[2] * x[:, 2:3]


def around_planes(y):
    """The mean squared deviation of each 4x4 block from its best fitting plane."""
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
    """The masking of each 4x4 block, floor / knee (flat) .. 1, from the spread of luma around a plane. A gradient,
    such as a sky or a blurred background, masks no more than a constant colour.

    The neighbourhood counts as the fourth power of its mean of fourth roots. One edge next to a flat area thus does
    not raise the mask. A block's value is limited to twice its own spread, so that a flat block next to an edge stays
    low. A spread of way.grain counts half.
    """
    return hiding(spread_near(x), way)


def spread_near(x):
    spread = spread_of(x)
    return torch.minimum(rooted_around(spread), OWN * spread)


def peaks(x, way, beyond=0):
    """The peak of the samples of each block, in whole levels of 255; lower where a drawing is plain but not flat."""
    near = spread_near(x)
    less = PLAIN_LESS * (1 - taken_of(x, way, beyond)) * ramp(near, *GRAINY) * near_planes(near, way.plain)
    return ((way.least + way.times * 255 * near).clamp_max(way.most) * (1 - less)).add(0.5).floor()


def between_blocks(blocks):
    return F.interpolate(blocks, scale_factor=4, mode="bilinear", align_corners=False)


def texture_mask(x, way=STANDARD):
    """Interpolate the block mask as between_blocks() does, but limit each neighbour to BESIDE_OWN times the block
    itself. A flat block next to a busy one thus gets no perturbation."""
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
    """The noise channels for a picture of rows x columns places of 16x16 px: four hashes of the place, eight bytes
    each, as -1..1."""
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
    """Hashes for the pattern places of a picture of height x width px."""
    with numpy.errstate(over="ignore"):
        y = numpy.arange(grain_places(height), dtype=numpy.uint64)[:, None]
        x = numpy.arange(grain_places(width), dtype=numpy.uint64)[None, :]
        key = mixed(numpy.array([seed], dtype=numpy.uint64) + numpy.uint64(3) * numpy.uint64(GOLDEN))
        hashed = mixed(((y << numpy.uint64(32)) | x) * numpy.uint64(GOLDEN) + key)
    return torch.from_numpy((hashed & numpy.uint64(255)).astype(numpy.int64))[None]


def seeded_grain(patterns, seed, height, width):
    """The grain of a picture of height x width px from its hashes."""
    return grain_of(patterns, grain_hashes(seed, height, width))


def grid_offset(seed):
    """The offset of the picture on the grid: left and top, 0 or 16 px."""
    with numpy.errstate(over="ignore"):
        place = int(mixed(numpy.array([seed], dtype=numpy.uint64) + numpy.uint64(2) * numpy.uint64(GOLDEN))[0])
    return (place & 1) * 16, (place >> 1 & 1) * 16


def perturbation(net, x, seeds, way=STANDARD, beyond=0):
    """The unit perturbation of a batch with a seed for each picture, before it is scaled to a strength. beyond: px at
    the edges of x that are not part of the picture."""
    noise = torch.cat([seeded_noise(seed, x.shape[2] // 16, x.shape[3] // 16) for seed in seeds])
    grain = torch.cat([seeded_grain(net.grain, seed, x.shape[2], x.shape[3]) for seed in seeds])
    return tinted(dithered(x, net(x, noise.to(x.device), way, beyond), grain, way, beyond), x, beyond)


def shipped_perturbation(net, x, seed, way=STANDARD):
    """The unit perturbation as the C engine computes it: one picture of any size, with repeated edges and a grid
    offset from the seed."""
    left, top = grid_offset(seed)
    height, width = x.shape[2:]
    right, bottom = MARGIN + -(width + left) % 16, MARGIN + -(height + top) % 16
    padded = F.pad(x, (MARGIN + left, right, MARGIN + top, bottom), mode="replicate")
    unit = perturbation(net, padded, [seed], way, MARGIN)
    return unit[:, :, MARGIN + top:MARGIN + top + height, MARGIN + left:MARGIN + left + width]
