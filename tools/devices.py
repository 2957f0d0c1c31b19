"""Device-specific optimisations.

Constants are copied to a device once, because each copy waits for all earlier work there. Networks use bfloat16 where
that is faster.
"""

import functools

import torch


@functools.lru_cache(maxsize=None)
def placed(constant, device):
    return constant.to(device)


@functools.lru_cache(maxsize=None)
def is_short_faster(kind):
    """Whether a kind of device computes faster in bfloat16. CPUs without bfloat16 instructions take two to three
    times as long."""
    if kind != "cpu":
        return True
    with open("/proc/cpuinfo") as file:
        return "avx512_bf16" in file.read()


def shortened(device):
    """A context in which networks compute in bfloat16 where that is faster. The precision suffices for shifts of this
    size."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=is_short_faster(device.type))
