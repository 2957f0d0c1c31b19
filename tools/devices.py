"""What devices are good at: constants are carried to one once, for each carrying waits until it has done all before, and
numbers are shortened where that is faster."""

import functools

import torch


@functools.lru_cache(maxsize=None)
def placed(constant, device):
    return constant.to(device)


@functools.lru_cache(maxsize=None)
def is_short_faster(kind):
    """Whether a kind of device takes less time for bfloat16; CPUs that have no arithmetic of it take two to three times as much."""
    if kind != "cpu":
        return True
    with open("/proc/cpuinfo") as file:
        return "avx512_bf16" in file.read()


def shortened(device):
    """In here networks compute with bfloat16, which is fine enough for shifts of this size, where that is faster."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=is_short_faster(device.type))
