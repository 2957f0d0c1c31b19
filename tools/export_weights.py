#!/usr/bin/python3
"""Convert checkpoints to the weights file of the release. Each network is the mean of one or several checkpoints of a
run.

The file is little endian. It has these parts, in this order:
- The header: magic "IWPROTEC", u32 version, u32 networks, u32 layers of each, u32 bytes of each.
- The table of layers, whose shapes all networks share. An entry has 32 bytes: name of 16 bytes padded with zeros, u16
  inputs, outputs, kernel, stride, u32 offset in a network's bytes, u32 values.
- For each network, binary32 numbers: five gate slopes of the coarse drawer and five of the fine drawer. The gains of
  noise, coarse drawer and fine drawer follow, then the value of "shown".
- After the numbers of a network, for each layer: weights [output][input][row][column] and biases, as binary16.
- The grain patterns [pattern][row][column][colour] as binary16.
- The tables of gains [strength][gain][light][masking][drawn] as binary16.
- The SHA-256 of all bytes before it.

A checkpoint is a dict with "mean" (the averaged state, preferred) or "net". A weights file is also accepted, so
training can continue from a release at 16-bit precision.
"""

import argparse
import hashlib
import struct

import numpy
import torch

from generator import FAINT, GRAIN_PX, GRAIN_STEP, GRAINS, NETWORKS, WAYS, Generator, network_of

MAGIC = b"IWPROTEC"
VERSION = 9
HEADER_BYTES = 24
SLOPES = 5
NUMBERS = 2 * SLOPES + 4


def numbers_of(net):
    """The binary32 numbers of the file, as tensors of the network in file order."""
    return [net.coarse.beta, net.fine.beta, net.noise_gain, net.coarse.gain, net.fine.gain, net.shown.data]


def data_of(layer):
    return torch.cat([layer.weight.detach().flatten(), layer.bias.detach()]).numpy().astype("<f2")


def table_of(net):
    """The table of the layers, and the size of a network in bytes."""
    offset, table = 4 * NUMBERS, b""
    for name, layer in net.layers():
        values = layer.weight.numel() + layer.bias.numel()
        table += struct.pack("<16sHHHHII", name.encode(), layer.in_channels, layer.out_channels,
                             layer.kernel_size[0], layer.stride[0], offset, values)
        offset += values * 2
    return table, offset


def block_of(net):
    """The numbers and layers of a network, as bytes."""
    numbers = torch.cat([one.flatten() for one in numbers_of(net)]).numpy().astype("<f4").tobytes()
    layers = [(name, data_of(layer)) for name, layer in net.layers()]
    for name, values in layers:
        if not numpy.isfinite(values).all():
            raise SystemExit("layer %s does not fit 16 bits" % name)
    return numbers + b"".join(values.tobytes() for _, values in layers)


def pack(nets):
    table, size = table_of(nets[0])
    body = MAGIC + struct.pack("<IIII", VERSION, len(nets), len(nets[0].layers()), size) + table
    grain = nets[0].grain.permute(0, 2, 3, 1).contiguous()
    body += b"".join(block_of(net) for net in nets) + grain.numpy().astype("<f2").tobytes()
    body += b"".join(nets[NETWORKS.index(way.network)].gains[way.table].numpy().astype("<f2").tobytes() for way in WAYS.values())
    return body + hashlib.sha256(body).digest()


def network_at(blob, offset):
    """A Generator with the numbers and layers of the network at this offset."""
    net = Generator()
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


def load(path):
    """The networks of a weights file, by name."""
    with open(path, "rb") as file:
        blob = file.read()
    if blob[:8] != MAGIC or hashlib.sha256(blob[:-32]).digest() != blob[-32:]:
        raise SystemExit("%s is not a weights file" % path)
    table, size = table_of(Generator())
    if struct.unpack_from("<IIII", blob, 8) != (VERSION, len(NETWORKS), len(Generator().layers()), size):
        raise SystemExit("%s is a weights file of another version" % path)
    begin = HEADER_BYTES + len(table)
    nets = {name: network_at(blob, begin + i * size) for i, name in enumerate(NETWORKS)}
    shared = torch.from_numpy(numpy.frombuffer(blob[begin + len(nets) * size:-32], "<f2").astype(numpy.float32))
    for net in nets.values():
        grain, gains = shared.split([net.grain.numel(), net.gains.numel()])
        net.grain.copy_(grain.view(GRAINS, GRAIN_PX, GRAIN_PX, 3).permute(0, 3, 1, 2))
        net.gains.copy_(gains.view_as(net.gains))
    return nets


def is_shipped(path):
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def state_of(path, network=FAINT):
    """The state of a checkpoint, or of a network in a weights file."""
    if is_shipped(path):
        return load(path)[network].state_dict()
    checkpoint = torch.load(path, map_location="cpu")
    return checkpoint["mean"] if "mean" in checkpoint else checkpoint["net"]


def grain_at(path):
    """The patterns of grain.py or of a checkpoint, scaled so that the field's root mean square is 1."""
    saved = {} if is_shipped(path) else torch.load(path, map_location="cpu")
    patterns = saved["grain"] if "grain" in saved else state_of(path)["grain"]
    height = patterns.square().mean().sqrt() * GRAIN_PX / GRAIN_STEP
    if abs(height - 1) > 0.001:
        print("grain is %.4f high: what it was searched with is that times dither" % height)
    return patterns / height


def mean_net(names, network):
    states = [state_of(name, network) for name in names]
    return network_of({key: sum(state[key] for state in states) / len(states) for key in states[0]})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in NETWORKS:
        parser.add_argument("--" + name, nargs="+", required=True, metavar="CHECKPOINT")
    parser.add_argument("--grain", required=True, help="the patterns of grain.py, or a checkpoint of gains.py")
    parser.add_argument("--out", required=True, help="the weights file")
    options = parser.parse_args()
    nets = [mean_net(getattr(options, name), name) for name in NETWORKS]
    nets[0].grain.copy_(grain_at(options.grain))
    blob = pack(nets)
    with open(options.out, "wb") as out:
        out.write(blob)
    print("%d bytes, SHA-256 of the file %s" % (len(blob), hashlib.sha256(blob).hexdigest()))


if __name__ == "__main__":
    main()
