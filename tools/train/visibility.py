#!/usr/bin/python3
"""A visibility model of a picture's perturbation: one differentiable model for training and for the engine.

Visibility(pictures) takes pictures as N x 3 x H x W, sRGB 0..1.

    total(d)        one number a picture, linear in d: about the 3-norm of butteraugli
    local(d)        the most visible place of each cell of 8x8 px
    thresholds      of each band, colour and place.

It is a threshold model with masking.  Its parts and their sources:

- Colours and thresholds: BT.601 luma, blue and red differences, and wavelet thresholds in 8-bit levels,
  log t = log a + k (log f - log f0)^2.  Watson, Yang, Solomon, Villasenor: Visibility of wavelet quantization noise.
  IEEE Trans. Image Processing 6(8), 1997, table IV.
- Distance: 20 px a degree.  A 96-dpi screen at 57 cm has 40.  The picture is enlarged twice, because people zoom in.
- Luminance adaptation: thresholds follow the local luminance to a power.  Watson: DCTune, SID Digest 24, 1993, has .649 for
  luminances, which is 2.2 * .649 - 1.2 = .23 in levels of 8 bits.  ADAPTATION is fitted instead (masking_fit.py).
- Masking: thresholds grow with the activity a of the same band and colour, in thresholds, as (c^b + a^b)^(s/b).
  Legge, Foley: JOSA 70(12), 1980, have s = .6 for gratings; MASKING is fitted.  b = 4: Daly: The visible differences
  predictor, 1993.  c = .5 is set by eye: smooth places show strokes that butteraugli forgives.
- Activity is the squared mean of square roots over 4x4 samples.  An edge is sparse and masks less than texture.
  The reason: Watson, Borthwick, Taylor: Image quality and entropy masking, SPIE 3016, 1997.
- A threshold is the harmonic mean of 3x3 blocks, so that an edge next to smooth places does not mask.  Set by eye: dashes
  along outlines.
- Luma does not mask colour.  Switkes, Bradley, De Valois: JOSA A 5(7), 1988.  With such masking an optimiser hides
  coarse spots of colour in texture, and S-CIELAB and the eye see them.
- Lines: means of 9 samples of a luma band along four directions count LINE times.  Without it an optimiser draws wavy lines
  on skies.  Robson, Graham: Vision Research 21, 1981: eight cycles have about half of the threshold of one.
- FITTED_LUMA and FITTED_COLOUR are factors of the octaves, fitted to butteraugli and S-CIELAB together on held-out pictures.
  main() shows the fit.  Only the factor of the finest colour is not fitted: both metrics would let it be 2.5 times as strong.
  A network then draws a mesh of blue and yellow.
- Pooling: exponent 4 over bands, colours and places.  Quick: Kybernetik 16, 1974; Watson 1993.
- Pyramid: Burt, Adelson: The Laplacian pyramid as a compact image code, IEEE Trans. Communications 31(4), 1983.
"""

import argparse
import io
import math
import os
import subprocess
import tempfile

import numpy
import torch
import torch.nn.functional as F
from PIL import Image, ImageFilter

YCC = ((0.299, 0.587, 0.114), (-0.168736, -0.331264, 0.5), (0.5, -0.418688, -0.081312))  # luma, blue, red (BT.601)
WATSON = ((0.495, 0.466, 0.401), (1.633, 0.353, 0.209), (0.944, 0.521, 0.404))           # a, k, f0 of the same
PX_A_DEGREE = 20
PEAK_CYCLES = 0.3       # of the finest band, cycles a px: where the response of x - blurred x times the signal is centred
LEVELS = 4              # octaves; what remains has a sixteenth of the size
ADAPTATION, MEAN_LEVEL, DARK_LEVEL = -0.2, 128 / 255, 8 / 255
MASKING, KNEE, CALM = 0.35, 4, 0.5
FITTED_LUMA, FITTED_COLOUR = (1, 2.25, 2.25, 2.25, 1), (2.5, 2.5, 3, 3.4, 3)  # of the octaves
LINE, LINE_SAMPLES, LINE_LEVELS = 2, 9, 3  # the finest octaves
WINDOW = 4              # samples of a band, a side of the blocks of activity
POOLING = 4
CELL = 8                # px a side of the cells of local()


def threshold(channel, cycles_a_px):
    """Returns the amplitude of a just visible band, 0..1."""
    a, k, f0 = WATSON[channel]
    frequency = max(cycles_a_px * PX_A_DEGREE, f0)  # the lowest bands are not better hidden
    return a * 10 ** (k * math.log10(frequency / f0) ** 2) / 255


def base_threshold(level, channel):
    return threshold(channel, PEAK_CYCLES / 2 ** level) / (FITTED_COLOUR if channel else FITTED_LUMA)[level]


def filtered(x, kernel):
    taps = torch.tensor(kernel, dtype=x.dtype, device=x.device)
    reach, channels = len(kernel) // 2, x.shape[1]
    x = F.pad(x, (reach,) * 4, mode="replicate")
    x = F.conv2d(x, taps.view(1, 1, 1, -1).expand(channels, 1, 1, -1), groups=channels)
    return F.conv2d(x, taps.view(1, 1, -1, 1).expand(channels, 1, -1, 1), groups=channels)


BURT = (1 / 16, 4 / 16, 6 / 16, 4 / 16, 1 / 16)


def gaussian(sigma):
    reach = int(math.ceil(2.5 * sigma))
    taps = [math.exp(-i * i / (2 * sigma * sigma)) for i in range(-reach, reach + 1)]
    return tuple(tap / sum(taps) for tap in taps)



def pyramid(x):
    """Returns the bands from fine to coarse, each with the low-passed picture of its size, and the rest."""
    bands, lows = [], []
    for _ in range(LEVELS):
        low = filtered(x, BURT)
        bands.append(x - low)
        lows.append(low)
        x = low[:, :, ::2, ::2]
    return bands + [x], lows + [x]


def opponent(x):
    return torch.einsum("ab,nbhw->nahw", torch.tensor(YCC, dtype=x.dtype, device=x.device), x)


def along_lines(band):
    """Returns means along four directions, a channel each."""
    reach = LINE_SAMPLES // 2
    kernels = torch.zeros(4, 1, LINE_SAMPLES, LINE_SAMPLES, dtype=band.dtype, device=band.device)
    kernels[0, 0, reach] = kernels[1, 0, :, reach] = 1 / LINE_SAMPLES
    kernels[2, 0] = torch.eye(LINE_SAMPLES) / LINE_SAMPLES
    kernels[3, 0] = torch.eye(LINE_SAMPLES).flip(0) / LINE_SAMPLES
    return F.conv2d(F.pad(band, (reach,) * 4, mode="replicate"), kernels)


class Visibility:
    def __init__(self, x):
        """The sides of x are multiples of 32 px."""
        bands, lows = pyramid(opponent(x))
        self.thresholds = []
        for level, (band, low) in enumerate(zip(bands, lows)):
            base = torch.tensor([base_threshold(level, channel) for channel in range(3)], dtype=x.dtype, device=x.device)
            luma = low[:, :1] if level == LEVELS else F.avg_pool2d(low[:, :1], WINDOW)
            limit = base.view(1, 3, 1, 1) * ((luma.clamp_min(0) + DARK_LEVEL) / (MEAN_LEVEL + DARK_LEVEL)) ** ADAPTATION
            if level < LEVELS:
                activity = F.avg_pool2d(band.abs().sqrt(), WINDOW).square() / limit
                limit = limit * (CALM ** KNEE + activity ** KNEE) ** (MASKING / KNEE)
                limit = 1 / F.avg_pool2d(F.pad(1 / limit, (1,) * 4, mode="replicate"), 3, 1)
                limit = F.interpolate(limit, scale_factor=WINDOW, mode="bilinear", align_corners=False)
            self.thresholds.append(limit)

    def responses(self, d):
        """Returns each band of a perturbation in thresholds: luma, blue, red, then lines of luma."""
        result = []
        for level, (band, limit) in enumerate(zip(pyramid(opponent(d))[0], self.thresholds)):
            response = band / limit
            if level < LINE_LEVELS:
                response = torch.cat([response, LINE * along_lines(response[:, :1])], 1)
            result.append(response)
        return result

    def powers(self, d):
        return [response.square().square().sum(1, keepdim=True) for response in self.responses(d)]

    def total(self, d):
        return (sum(power.flatten(1).mean(1) for power in self.powers(d)) + 1e-20) ** (1 / POOLING)

    def cells(self, d):
        """Returns for each cell of 8x8 px the mean power, and the root of the largest power of each band."""
        means = peaks = 0
        for level, power in enumerate(self.powers(d)):
            cell = CELL >> level
            if cell >= 1:
                means, peaks = means + F.avg_pool2d(power, cell), peaks + F.max_pool2d(power, cell)
            else:
                power = F.interpolate(power, scale_factor=2 ** level // CELL, mode="nearest")
                means, peaks = means + power, peaks + power
        return means, (peaks + 1e-20) ** (1 / POOLING)

    def local(self, d):
        """Returns N x 1 x H/8 x W/8."""
        return self.cells(d)[1]


# ---- faults that a threshold model misses: lines of the spectrum, and a tint

def line_share(d):
    """Returns the largest share of a perturbation's energy in one line of its spectrum (a frequency and its negative)."""
    power = torch.fft.fft2(d - d.mean((2, 3), keepdim=True)).abs().square().sum(1)
    return 2 * power.flatten(1).max(1)[0] / power.flatten(1).sum(1).clamp_min(1e-20)


def tint(d):
    """Returns the largest mean of a colour, in levels."""
    return 255 * d.mean((2, 3)).abs().max(1)[0]


# ---- comparison

def butteraugli(x, y, folder):
    """Returns (3-norm, peak) by butteraugli_main of libjxl-devtools."""
    names = [os.path.join(folder, name) for name in ("a.png", "b.png")]
    for name, picture in zip(names, (x, y)):
        Image.fromarray(picture).save(name, compress_level=1)
    said = subprocess.run(["butteraugli_main"] + names, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True).stdout.split()
    return float(said[2]), float(said[0])


def scielab(x, y):
    """Returns (mean, 99th percentile) of CIEDE2000 after the blur of an eye at 60 px a degree."""
    from scipy.ndimage import gaussian_filter
    from skimage import color
    blurred = []
    for picture in (x, y):
        lab = color.rgb2lab(picture)
        blurred.append(numpy.stack([gaussian_filter(lab[..., i], sigma) for i, sigma in enumerate((1.0, 2.5, 4.0))], 2))
    difference = color.deltaE_ciede2000(*blurred)
    return difference.mean(), numpy.percentile(difference, 99)


def tensor_of(picture):
    return torch.from_numpy(numpy.array(picture)).permute(2, 0, 1)[None].float() / 255


def picture_of(tensor):
    return (tensor[0].clamp(0, 1) * 255).round().byte().permute(1, 2, 0).numpy()


def climbed(x, encoders, seen, budget, steps=8):
    """Returns a perturbation by gradients of the latent shift, of a budget of the model (seen) or of equal noise (None)."""
    torch.manual_seed(0)
    d = torch.randn_like(x) * 0.004
    before = [encoder(x) for encoder in encoders]
    for _ in range(steps):
        d = d.detach().requires_grad_()
        shift = sum(torch.log((encoder(x + d) - then).square().sum() / then.square().sum())
                    for encoder, then in zip(encoders, before))
        gradient = torch.autograd.grad(shift, d)[0]
        if seen is None:
            d = d.detach() + 0.004 * gradient / gradient.square().mean().sqrt()
            d = d * (budget / 255 / d.square().mean().sqrt())
        else:
            d = d.detach() + 0.004 * gradient / gradient.square().mean().sqrt()
            d = d / (seen.local(d).mean() / budget)
    return d.detach()


def recoded(picture, kind, quality):
    file = io.BytesIO()
    Image.fromarray(picture).save(file, kind, quality=quality)
    return numpy.array(Image.open(file).convert("RGB"))


def distortions(picture, seed, options, encoders, folder):
    """Yields (name, result) of ordinary processing, noise, the engine given, and gradients."""
    x, rng = tensor_of(picture), numpy.random.default_rng(seed)
    for quality in (90, 75, 50):
        yield "jpeg %d" % quality, recoded(picture, "JPEG", quality)
    yield "webp 75", recoded(picture, "WEBP", 75)
    for sigma in (0.5, 0.8):
        yield "blur %.1f" % sigma, numpy.array(Image.fromarray(picture).filter(ImageFilter.GaussianBlur(sigma)))
    noise = tensor_of(numpy.zeros_like(picture)) + torch.from_numpy(rng.normal(0, 1 / 255, x.shape)).float()
    for sigma in (1.5, 3, 6):
        yield "noise %.1f" % sigma, picture_of(x + sigma * noise)
    coarse = filtered(noise, gaussian(1.5))
    yield "coarse noise", picture_of(x + coarse * (2 / 255 / coarse.std()))
    grey = noise.mean(1, keepdim=True)
    yield "luma noise", picture_of(x + grey * (3 / 255 / grey.std()))
    colour = filtered(noise - noise.mean(1, keepdim=True), gaussian(1.0))
    yield "colour noise", picture_of(x + colour * (4 / 255 / colour.std()))
    if options.ctl:
        Image.fromarray(picture).save(os.path.join(folder, "in.png"))
        for strength in ("low", "standard", "high"):
            subprocess.run([options.ctl, "image", "protect", "--strength", strength, "--weights", options.weights,
                            os.path.join(folder, "in.png"), os.path.join(folder, "out.png")], check=True,
                           stdout=subprocess.DEVNULL)
            yield "engine " + strength, numpy.array(Image.open(os.path.join(folder, "out.png")).convert("RGB"))
    if encoders:
        seen = Visibility(x)
        for level in (1.5, 3):
            yield "gradient %.1f" % level, picture_of(x + climbed(x, encoders, None, level))
        for budget in (0.5, 1):
            yield "gradient, budget %.1f" % budget, picture_of(x + climbed(x, encoders, seen, budget))


def ranks(values):
    return numpy.argsort(numpy.argsort(values))


def rank_correlation(a, b):
    return numpy.corrcoef(ranks(a), ranks(b))[0, 1]


def main():
    parser = argparse.ArgumentParser(description="Compares the model with butteraugli and S-CIELAB.")
    parser.add_argument("--images", required=True)
    parser.add_argument("--encoders")
    parser.add_argument("--ctl", help="imgwardctl of the engine to measure")
    parser.add_argument("--weights")
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--side", type=int, default=384)
    parser.add_argument("--save", help="an .npz of pictures and figures")
    options = parser.parse_args()
    torch.set_num_threads(1)
    from encoders import FILES, load_encoder
    from pictures import list_pictures, load_picture, split_pictures
    encoders = options.encoders and [load_encoder(k, os.path.join(options.encoders, FILES[k])) for k in FILES]
    _, held = split_pictures(list_pictures(options.images), 20261121)
    names = held[::max(1, len(held) // options.count)][:options.count]
    rows, kept = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for seed, name in enumerate(names):
            picture = load_picture(os.path.join(options.images, name))
            top, left = ((side - options.side) // 2 for side in picture.shape[:2])
            picture = numpy.ascontiguousarray(picture[top:top + options.side, left:left + options.side])
            kept[name] = picture
            x = tensor_of(picture)
            seen = Visibility(x)
            for kind, result in distortions(picture, seed, options, encoders, folder):
                d = tensor_of(result) - x
                norm, peak = butteraugli(picture, result, folder)
                mean, p99 = scielab(picture, result)
                rows.setdefault(kind, []).append((seen.total(d).item(), seen.local(d).max().item(), norm, peak, mean, p99))
                kept["%s %s" % (name, kind)] = result
    if options.save:
        numpy.savez_compressed(options.save, table=numpy.array(list(rows.values())), kinds=list(rows), **kept)
    print("%d crops of %d px: %s" % (len(names), options.side, " ".join(names)))
    print("%-22s %6s %6s | %6s %6s | %6s %6s" % ("", "model", "peak", "b. 3", "b. peak", "S mean", "S p99"))
    for kind, values in rows.items():
        print("%-22s %6.2f %6.2f | %6.2f %6.2f | %6.2f %6.2f" % ((kind,) + tuple(numpy.mean(values, 0))))
    table = numpy.array([value for values in rows.values() for value in values])
    means = numpy.array([numpy.mean(values, 0) for values in rows.values()])
    within = numpy.mean([[rank_correlation(each[:, 0], each[:, i]) for i in (2, 5)]
                         for each in numpy.array(list(rows.values())).transpose(1, 0, 2)], 0)
    for i, metric in ((2, "butteraugli 3-norm"), (5, "S-CIELAB p99")):
        print("rank correlation with %s: all %.3f; of kinds %.3f; within a picture %.3f" % (
            metric, rank_correlation(table[:, 0], table[:, i]), rank_correlation(means[:, 0], means[:, i]), within[int(i == 5)]))
    print("of butteraugli with S-CIELAB p99: all %.3f" % rank_correlation(table[:, 2], table[:, 5]))


if __name__ == "__main__":
    main()
