#!/usr/bin/python3
"""Turns a checkpoint, or the mean of several of one run, into the weights file that is shipped.

The file, little endian: magic "IWPROTEC", u32 version, u32 layers; per layer 32 bytes
(name of 16 bytes padded with zeros, u16 inputs, outputs, kernel, stride, u32 offset, u32
values); the numbers as binary32: the slopes of the five gates of the coarse drawer and of the fine
one, the gains of noise, coarse and fine drawer, and the two shares; then per layer its weights
[output][input][row][column] and its biases as binary16; then the SHA-256 of all before.
A checkpoint is a dict with "mean" (the averaged state, preferred) or "net".
"""

import argparse
import hashlib
import struct

import numpy
import torch

from generator import Generator, network_of

MAGIC = b"IWPROTEC"
VERSION = 5
SLOPES = 5
NUMBERS = 2 * SLOPES + 5


def numbers_of(net):
    """What the file keeps in 32 bits, as tensors of the network in its order."""
    return [net.coarse.beta, net.fine.beta, net.noise_gain, net.coarse.gain, net.fine.gain, net.shares.data]


def pack(net):
    layers = net.layers()
    offset = 16 + 32 * len(layers) + 4 * NUMBERS
    table, data = b"", b""
    for name, layer in layers:
        values = torch.cat([layer.weight.detach().flatten(), layer.bias.detach()]).numpy().astype("<f2")
        if not numpy.isfinite(values).all():
            raise SystemExit("layer %s does not fit 16 bits" % name)
        table += struct.pack("<16sHHHHII", name.encode(), layer.in_channels, layer.out_channels,
                             layer.kernel_size[0], layer.stride[0], offset, values.size)
        data += values.tobytes()
        offset += values.size * 2
    numbers = torch.cat([one.flatten() for one in numbers_of(net)]).numpy().astype("<f4").tobytes()
    body = MAGIC + struct.pack("<II", VERSION, len(layers)) + table + numbers + data
    return body + hashlib.sha256(body).digest()


def load(path):
    """A Generator with the weights of a file."""
    with open(path, "rb") as file:
        blob = file.read()
    if blob[:8] != MAGIC or hashlib.sha256(blob[:-32]).digest() != blob[-32:]:
        raise SystemExit("%s is not a weights file" % path)
    net = Generator()
    if struct.unpack_from("<II", blob, 8) != (VERSION, len(net.layers())):
        raise SystemExit("%s is a weights file of another version" % path)
    offset = 16 + 32 * len(net.layers())
    numbers = torch.from_numpy(numpy.frombuffer(blob, "<f4", NUMBERS, offset).astype(numpy.float32))
    for one, values in zip(numbers_of(net), numbers.split([one.numel() for one in numbers_of(net)])):
        one.copy_(values.view_as(one))
    offset += 4 * NUMBERS
    for _, layer in net.layers():
        count = layer.weight.numel() + layer.bias.numel()
        values = torch.from_numpy(numpy.frombuffer(blob, "<f2", count, offset).astype(numpy.float32))
        layer.weight.data = values[:layer.weight.numel()].view_as(layer.weight)
        layer.bias.data = values[layer.weight.numel():]
        offset += count * 2
    return net.eval()


def state_of(path):
    checkpoint = torch.load(path, map_location="cpu")
    return checkpoint["mean"] if "mean" in checkpoint else checkpoint["net"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", nargs="+")
    parser.add_argument("weights")
    options = parser.parse_args()
    states = [state_of(name) for name in options.checkpoint]
    blob = pack(network_of({key: sum(state[key] for state in states) / len(states) for key in states[0]}))
    with open(options.weights, "wb") as out:
        out.write(blob)
    print("%d bytes, SHA-256 of the file %s" % (len(blob), hashlib.sha256(blob).hexdigest()))


if __name__ == "__main__":
    main()
