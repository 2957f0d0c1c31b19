#!/usr/bin/python3
"""Writes the weights file of the engine from a checkpoint, and reads one as a checkpoint.

The file is little endian.  It has these parts, in this order:
- The header: magic "IWPROTEC", u32 version, u32 layers, u32 bytes of the numbers and layers.
- The table of layers.  An entry has 32 bytes: name of 16 bytes padded with zeros, u16 inputs, outputs, kernel, stride,
  u32 offset in the bytes, u32 values.
- Numbers, binary32: those of NUMBERS, in this order.
- For each layer: weights [output][input][row][column] and biases, binary16.
- The SHA-256 of all bytes before it.
"""

import argparse
import hashlib
import struct

import numpy
import torch

import visibility
from perceptual import SHOWN, SLACK, STEP_UNIT, Perturber

MAGIC, VERSION, HEADER_BYTES = b"IWPROTEC", 10, 20
BUDGETS = {"low": 0.90, "standard": 1.39, "high": 1.97}  # of the visibility model: masking_fit.py, less a margin for drawings


def thresholds():
    """Returns [octave][luma, blue, red], 0..1, of the visibility model."""
    return torch.tensor([[visibility.base_threshold(level, channel) for channel in range(3)]
                         for level in range(visibility.LEVELS + 1)])


def numbers_of(network):
    """Returns (name, values) of all parameters of the engine except layers."""
    v = visibility
    return [("gate slopes", torch.cat([network.coarse.beta, network.fine.beta])),
            ("gains of the answers", torch.stack([network.coarse.gain, network.fine.gain])),
            ("gains of the coarse gradients", network.gains.detach().exp()),
            ("shares of bands", network.shares.detach().exp() / STEP_UNIT ** 2),
            ("perturbation that a follower sees", torch.tensor([SHOWN])),
            ("thresholds", thresholds()),
            ("adaptation, light, darkness, exponent of masking, calm, line",
             torch.tensor([v.ADAPTATION, v.MEAN_LEVEL, v.DARK_LEVEL, v.MASKING / v.KNEE, v.CALM ** v.KNEE, v.LINE])),
            ("budgets", torch.tensor(list(BUDGETS.values()))),
            ("slack", torch.tensor([SLACK]))]


def layers_of(network):
    return [("%s.%s" % (drawer, name), layer) for drawer in ("coarse", "fine") for name, layer in getattr(network, drawer).layers()]


def data_of(name, layer):
    values = torch.cat([layer.weight.detach().flatten(), layer.bias.detach()]).numpy().astype("<f2")
    if not numpy.isfinite(values).all():
        raise SystemExit("layer %s does not fit 16 bits" % name)
    return values.tobytes()


def pack(network):
    numbers = torch.cat([values.flatten() for _, values in numbers_of(network)]).numpy().astype("<f4").tobytes()
    table, body = b"", numbers
    for name, layer in layers_of(network):
        data = data_of(name, layer)
        table += struct.pack("<16sHHHHII", name.encode(), layer.in_channels, layer.out_channels, layer.kernel_size[0],
                             layer.stride[0], len(body), len(data) // 2)
        body += data
    blob = MAGIC + struct.pack("<III", VERSION, len(layers_of(network)), len(body)) + table + body
    return blob + hashlib.sha256(blob).digest()


def load(path):
    """Returns the network of a weights file."""
    with open(path, "rb") as file:
        blob = file.read()
    if blob[:8] != MAGIC or hashlib.sha256(blob[:-32]).digest() != blob[-32:]:
        raise SystemExit("%s is not a weights file" % path)
    network = Perturber()
    table = HEADER_BYTES + 32 * len(layers_of(network))
    if len(pack(network)) != len(blob) or struct.unpack_from("<I", blob, 8)[0] != VERSION:
        raise SystemExit("%s is a weights file of another version" % path)
    offset, read = table, {}
    for name, values in numbers_of(network):
        read[name] = torch.from_numpy(numpy.frombuffer(blob, "<f4", values.numel(), offset).copy()).view(values.shape)
        offset += 4 * values.numel()
    for drawer, slopes, gain in zip((network.coarse, network.fine), read["gate slopes"].split(5), read["gains of the answers"]):
        drawer.beta.copy_(slopes)
        drawer.gain.copy_(gain)
    network.gains.data = read["gains of the coarse gradients"].log()
    network.shares.data = (read["shares of bands"] * STEP_UNIT ** 2).log()
    for _, layer in layers_of(network):
        count = layer.weight.numel() + layer.bias.numel()
        values = torch.from_numpy(numpy.frombuffer(blob, "<f2", count, offset).astype(numpy.float32))
        layer.weight.data, layer.bias.data = values[:layer.weight.numel()].view_as(layer.weight), values[layer.weight.numel():]
        offset += 2 * count
    return network.eval()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("output", help="the weights file")
    options = parser.parse_args()
    network = Perturber()
    network.load_state_dict(torch.load(options.checkpoint))
    blob = pack(network)
    with open(options.output, "wb") as out:
        out.write(blob)
    print("%d bytes, SHA-256 %s" % (len(blob), hashlib.sha256(blob).hexdigest()))


if __name__ == "__main__":
    main()
