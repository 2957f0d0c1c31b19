#!/usr/bin/python3
"""Trains the network of the anti-AI engine.  See README.md in this folder."""

import argparse
import io
import json
import math
import os
import random
import time

import numpy
import torch
import torch.nn.functional as F
from PIL import Image

from encoders import FILES, latent_shift, load_encoder
from generator import Generator, apply_at_psnr, luma_of, perturbation, texture_mask

CROP = 160
MARGIN = 32


# ---- pictures

def list_pictures(folder):
    return sorted(name for name in os.listdir(folder) if name.lower().endswith((".jpg", ".png", ".webp")))


def split_pictures(names, seed, share=0.1):
    """Training and validation files; by file, never by crop."""
    shuffled = names[:]
    random.Random(seed).shuffle(shuffled)
    count = int(len(shuffled) * share)
    return sorted(shuffled[count:]), sorted(shuffled[:count])


def load_picture(path):
    return numpy.array(Image.open(path).convert("RGB"))


def random_crop(picture, side, rng):
    """A crop of side px, sometimes of the picture made smaller, mirrored or turned."""
    if rng.random() < 0.3:
        factor = rng.uniform(max(0.5, side / min(picture.shape[:2])), 1)
        size = (max(side, int(picture.shape[1] * factor)), max(side, int(picture.shape[0] * factor)))
        picture = numpy.array(Image.fromarray(picture).resize(size, Image.BILINEAR))
    top = rng.randint(0, picture.shape[0] - side)
    left = rng.randint(0, picture.shape[1] - side)
    crop = picture[top:top + side, left:left + side]
    if rng.random() < 0.5:
        crop = crop[:, ::-1]
    return numpy.rot90(crop, rng.choice((0, 0, 0, 0, 1, 2, 3)))


def batch_of(pictures, count, side, rng):
    crops = [random_crop(rng.choice(pictures), side, rng) for _ in range(count)]
    return torch.from_numpy(numpy.ascontiguousarray(numpy.stack(crops))).permute(0, 3, 1, 2).float() / 255


# ---- what happens to a picture between the generator and the encoder

def jpeg(x, quality, subsampling):
    """A real JPEG round trip, its gradient taken as one."""
    out = []
    for one in (x.detach().clamp(0, 1) * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy():
        buffer = io.BytesIO()
        Image.fromarray(one).save(buffer, "JPEG", quality=quality, subsampling=subsampling)
        out.append(numpy.array(Image.open(buffer)))
    result = torch.from_numpy(numpy.stack(out)).permute(0, 3, 1, 2).float().to(x.device) / 255
    return x + (result - x.detach())


def blur(x, sigma):
    reach = max(1, int(math.ceil(2.5 * sigma)))
    offsets = torch.arange(-reach, reach + 1, dtype=torch.float32, device=x.device)
    kernel = torch.exp(-offsets.square() / (2 * sigma * sigma))
    kernel = kernel / kernel.sum()
    channels = x.shape[1]
    x = F.pad(x, (reach, reach, reach, reach), mode="replicate")
    x = F.conv2d(x, kernel.view(1, 1, -1, 1).repeat(channels, 1, 1, 1), groups=channels)
    return F.conv2d(x, kernel.view(1, 1, 1, -1).repeat(channels, 1, 1, 1), groups=channels)


def attack(x, y, rng, generator):
    """The same processing of the original and the protected picture, drawn at random."""
    draw = rng.random()
    both = torch.cat([x, y])
    if draw < 0.20:
        pass
    elif draw < 0.45:
        both = jpeg(both, rng.randint(40, 92), rng.choice((0, 2)))
    elif draw < 0.70:
        side = int(round(both.shape[2] * rng.uniform(0.4, 0.9) / 32)) * 32
        both = F.interpolate(both, size=(side, side), mode=rng.choice(("bilinear", "bicubic")),
                             align_corners=False, antialias=True)
    elif draw < 0.85:
        both = blur(both, rng.uniform(0.5, 1.3))
    else:
        noise = torch.randn(x.shape, generator=generator).to(x.device) * rng.uniform(0.004, 0.02)
        both = jpeg(both + torch.cat([noise, noise]), rng.randint(60, 92), 2)
    return both.chunk(2)


# ---- losses

def perceptual_power(d, mask, luma_weight, chroma_weight):
    """What a perturbation costs: its mean square and the mean square of what the mask does
    not cover, half each; smooth luma and smooth chroma of the uncovered counted again."""
    mean_mask = mask.square().mean(dim=(1, 2, 3), keepdim=True)
    bare = d * mean_mask.sqrt() / mask
    luma = luma_of(bare)
    chroma = torch.cat([0.564 * (bare[:, 2:3] - luma), 0.713 * (bare[:, 0:1] - luma)], dim=1)
    plain = d.square().mean(dim=(1, 2, 3))
    base = 0.5 * plain + 0.5 * bare.square().mean(dim=(1, 2, 3))
    smooth_luma = blur(luma, 1.5).square().mean(dim=(1, 2, 3))
    smooth_chroma = blur(chroma, 1.5).square().mean(dim=(1, 2, 3)) * 2
    return base + luma_weight * smooth_luma + chroma_weight * smooth_chroma, plain, smooth_luma, smooth_chroma


def peakiness(d):
    """How much of the spectrum's power sits in few lines, over windows of 32 px: 2 for
    noise of a flat spectrum, hundreds for a comb."""
    side = 32
    count = d.shape[2] // side
    windows = luma_of(d)[:, 0, :count * side, :count * side]
    windows = windows.unfold(1, side, side).unfold(2, side, side).flatten(1, 2)
    taper = torch.hann_window(side, device=d.device)
    power = torch.fft.rfft2(windows * taper * taper[:, None]).abs().square().flatten(2)
    return (power.square().mean(dim=2) / power.mean(dim=2).square().clamp_min(1e-14)).mean(dim=1)


def folded(d):
    """The share of power that repeats every 8 px within windows of 64 px (1/64 for noise)."""
    count = d.shape[2] // 32 - 1
    share = 0
    for i in range(count):
        for j in range(count):
            window = d[:, :, 32 * i:32 * i + 64, 32 * j:32 * j + 64]
            cells = window.unfold(2, 8, 8).unfold(3, 8, 8).mean(dim=(2, 3))
            share = share + cells.square().mean(dim=(1, 2, 3)) / window.square().mean(dim=(1, 2, 3)).clamp_min(1e-12)
    return share / (count * count)


def sparseness(u):
    """0 for a texture of even strength and Gaussian values; grows with dots, lines and patches."""
    power = u.square().mean(dim=1, keepdim=True)
    kurtosis = u.pow(4).mean(dim=(1, 2, 3)) / u.square().mean(dim=(1, 2, 3)).square().clamp_min(1e-14)
    near = blur(power, 3)
    patches = near.square().mean(dim=(1, 2, 3)) / near.mean(dim=(1, 2, 3)).square().clamp_min(1e-14)
    return torch.log(kurtosis.clamp_min(3) / 3) + torch.log(patches)


def shaken(net, amount):
    """Multiplies every weight by 1 + noise and returns what undoes it: no single
    encoder's accidents should be learned."""
    kept = []
    for parameter in net.parameters():
        kept.append((parameter, parameter.data))
        parameter.data = parameter.data * (1 + amount * torch.randn_like(parameter))
    return kept


def shift_loss(encoder, x, y, amount):
    kept = shaken(encoder, amount) if amount > 0 else []
    with torch.no_grad():
        before = encoder(x)
    after = encoder(y)
    for parameter, data in kept:
        parameter.data = data
    plain = latent_shift(after, before)
    pooled = latent_shift(F.avg_pool2d(after, 2), F.avg_pool2d(before, 2))
    loss = -2 * torch.log(plain + 1e-3).mean() - 0.3 * 2 * torch.log(pooled + 1e-3).mean()
    return loss, plain.detach().mean().item()


def step_loss(net, encoders, x, options, rng, generator):
    unit = perturbation(net, x, [rng.getrandbits(64) for _ in range(x.shape[0])])
    mask = texture_mask(x)
    power, plain, luma, chroma = perceptual_power(unit, mask, options.luma, options.chroma)
    psnr = rng.uniform(34, 39)
    scale = 10 ** (-psnr / 20) * torch.rsqrt(power + 1e-12)
    y = (x + scale.view(-1, 1, 1, 1) * unit).clamp(0, 1)
    y = y + torch.rand(y.shape, generator=generator).to(x.device).sub(0.5) / 255
    top, left = rng.randint(0, MARGIN - 1), rng.randint(0, MARGIN - 1)
    side = CROP - MARGIN + options.grow
    cut = (slice(None), slice(None), slice(top, top + side), slice(left, left + side))
    before, after = attack(x[cut], y[cut], rng, generator)
    loss = 0
    figures = {"psnr": psnr}
    for name, encoder in encoders.items():
        amount = options.shake if rng.random() < 0.5 else 0
        part, figures[name] = shift_loss(encoder, before, after, amount)
        loss = loss + options.balance.get(name, 1) * part
    comb = torch.log(peakiness(unit)).mean()
    fold = folded(unit).mean()
    sparse = sparseness(unit / mask).mean()
    level = plain.mean().sqrt()
    loss = loss + options.comb * comb + options.fold * fold + options.sparse * sparse + 0.2 * torch.log(level / 0.2).square()
    figures.update(luma=(luma / plain).mean().item(), chroma=(chroma / plain).mean().item(),
                   comb=comb.item(), fold=fold.item(), sparse=sparse.item(), level=level.item())
    return loss, figures


# ---- the run

def validate(net, encoders, pictures):
    """Mean shift over validation crops at 37 dB, plain and after JPEG 75."""
    out = {}
    with torch.no_grad():
        x = pictures
        y = apply_at_psnr(x, perturbation(net, x, range(x.shape[0])), 37)
        xj, yj = jpeg(x, 75, 2), jpeg(y, 75, 2)
        for name, encoder in encoders.items():
            out[name] = round(latent_shift(encoder(y), encoder(x)).mean().item(), 4)
            out[name + "_jpeg75"] = round(latent_shift(encoder(yj), encoder(xj)).mean().item(), 4)
            out[name + "_crop3"] = round(latent_shift(encoder(y[:, :, 3:-29, 3:-29]),
                                                      encoder(x[:, :, 3:-29, 3:-29])).mean().item(), 4)
    return out


def rate_at(done, options):
    """Cosine from the first to the last rate; done is the share of the run, 0..1."""
    return options.last_rate + (options.rate - options.last_rate) * 0.5 * (1 + math.cos(math.pi * min(1, done)))


def options_of():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", required=True, help="folder of training pictures")
    parser.add_argument("--encoders", required=True, help="folder of the encoders' .npz files")
    parser.add_argument("--use", default="sana,sd15", help="encoders to train against")
    parser.add_argument("--balance", type=json.loads, default={"sd15": 2}, help="weights of encoders' losses, JSON")
    parser.add_argument("--out", required=True, help="folder of log and checkpoints")
    parser.add_argument("--minutes", type=float, default=0, help="end after this time, the schedule follows the clock")
    parser.add_argument("--steps", type=int, default=20000, help="steps of the schedule when --minutes is 0")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--grow", type=int, default=0, help="px added to the 128-px crop the encoders see")
    parser.add_argument("--seed", type=int, default=20261121)
    parser.add_argument("--rate", type=float, default=3e-3)
    parser.add_argument("--last-rate", type=float, default=6e-5)
    parser.add_argument("--luma", type=float, default=3)
    parser.add_argument("--chroma", type=float, default=1)
    parser.add_argument("--comb", type=float, default=0, help="weight against spectral lines")
    parser.add_argument("--fold", type=float, default=8, help="weight against what repeats every 8 px")
    parser.add_argument("--sparse", type=float, default=1, help="weight against dots, lines and patches")
    parser.add_argument("--shake", type=float, default=0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--every", type=int, default=200, help="steps between validations and checkpoints")
    parser.add_argument("--limit", type=int, default=0, help="use only so many pictures (quick trials)")
    parser.add_argument("--start", help="checkpoint whose weights to begin with")
    return parser.parse_args()


def note(log, **figures):
    log.write(json.dumps(figures) + "\n")
    log.flush()


def resume(net, optimiser, path):
    """Weights, optimiser and the share of the run that is done; the rest starts new."""
    if not os.path.exists(path):
        return 0, 0.0
    state = torch.load(path, map_location="cpu")
    net.load_state_dict(state["net"])
    optimiser.load_state_dict(state["optimiser"])
    return state["step"], state["done"]


def main():
    options = options_of()
    torch.set_num_threads(options.threads)
    os.makedirs(options.out, exist_ok=True)
    names = list_pictures(options.images)
    train, held = split_pictures(names, options.seed)
    if options.limit:
        train = train[::max(1, len(train) // options.limit)]
    pictures = [load_picture(os.path.join(options.images, name)) for name in train]
    held_pictures = [load_picture(os.path.join(options.images, name)) for name in held]
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    encoders = {name: load_encoder(name, os.path.join(options.encoders, FILES[name])).to(device) for name in FILES}
    used = {name: encoders[name] for name in options.use.split(",")}

    torch.manual_seed(options.seed)
    net = Generator()
    if options.start:
        net.load_state_dict(torch.load(options.start, map_location="cpu")["net"])
    net.to(device)
    optimiser = torch.optim.Adam(net.parameters(), lr=options.rate)
    checkpoint = os.path.join(options.out, "checkpoint.pt")
    step, offset = resume(net, optimiser, checkpoint)
    rng = random.Random(options.seed + step)
    generator = torch.Generator().manual_seed(options.seed + step)
    torch.manual_seed(options.seed + step)
    held_rng = random.Random(options.seed)
    held_crops = torch.cat([torch.from_numpy(numpy.ascontiguousarray(picture[
        (top := held_rng.randint(0, picture.shape[0] - 256)):top + 256,
        (left := held_rng.randint(0, picture.shape[1] - 256)):left + 256])).permute(2, 0, 1)[None].float() / 255
        for picture in held_pictures[:24]]).to(device)

    log = open(os.path.join(options.out, "log.jsonl"), "a")
    note(log, event="start", step=step, options=vars(options), train=len(train), held=held, device=device.type,
         parameters=sum(p.numel() for p in net.parameters()))
    began = time.monotonic()
    sums, count = {}, 0
    done = offset
    while done < 1:
        if options.minutes:
            done = offset + (1 - offset) * (time.monotonic() - began) / (60 * options.minutes)
        else:
            done = (step + 1) / options.steps
        for group in optimiser.param_groups:
            group["lr"] = rate_at(done, options)
        x = batch_of(pictures, options.batch, CROP + options.grow, rng).to(device)
        loss, figures = step_loss(net, used, x, options, rng, generator)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimiser.step()
        step += 1
        figures["loss"] = loss.item()
        for key, value in figures.items():
            sums[key] = sums.get(key, 0) + value
        count += 1
        if step % 50 == 0 or done >= 1:
            note(log, event="step", step=step, done=round(done, 4), rate=round(rate_at(done, options), 7),
                 seconds=round(time.monotonic() - began, 1),
                 **{key: round(value / count, 4) for key, value in sums.items()})
            sums, count = {}, 0
        if step % options.every == 0 or done >= 1:
            note(log, event="validation", step=step, **validate(net, encoders, held_crops))
            torch.save({"net": net.state_dict(), "optimiser": optimiser.state_dict(), "step": step, "done": done},
                       checkpoint + ".new")
            os.replace(checkpoint + ".new", checkpoint)
    torch.save({"net": net.state_dict(), "step": step}, os.path.join(options.out, "final.pt"))


if __name__ == "__main__":
    main()
