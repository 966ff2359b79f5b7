"""What generated host functions call."""

from __future__ import annotations

import functools

import torch

from helion import exc
from helion.language.random.bernoulli import threshold
from helion.language.random.integers import checked_range
from helion.runtime.launch import default_launcher

__all__ = [
    "cdiv",
    "checked_range",
    "default_launcher",
    "draw_seed",
    "get_num_sm",
    "seed64",
    "set_triton_allocator",
    "threshold",
    "wrap64",
]


def cdiv(a: int, b: int) -> int:
    """The quotient rounded up; `triton.cdiv`, made for the compiler, is 20 times as slow."""
    return (a + b - 1) // b


def seed64(value: int) -> int:
    """A seed argument as the signed 64-bit number that a kernel takes; -1 and 2**64 - 1 are one.

    Raises:
        SeedOutOfRange: it does not fit in 64 bits.
    """
    if not -(2**63) <= value < 2**64:
        raise exc.SeedOutOfRange(value=value)
    return value if value < 2**63 else value - 2**64


def wrap64(value: int) -> int:
    """A computed seed modulo 2**64, as a signed number."""
    return (value + 2**63) % 2**64 - 2**63


def draw_seed(call: int) -> int:
    """A seed from torch's default generator, for one of torch's random calls in a kernel.

    Raises:
        UnsupportedOperation: a CUDA graph is being captured, and would repeat the seed.
    """
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        detail = "every replay would draw the same numbers: pass `hl.rand` a seed in memory"
        raise exc.UnsupportedOperation(api=f"random call {call} in a CUDA graph", detail=detail)
    return int(torch.randint(-(2**63), 2**63 - 1, ()))


def get_num_sm(device: torch.device, *, reserved_sms: int = 0) -> int:
    """The number of multiprocessors of a device, less the reserved ones; at least 1."""
    if device.type != "cuda":
        return 1
    return max(1, _multiprocessors(device) - reserved_sms)


@functools.cache
def _multiprocessors(device: torch.device) -> int:
    # A persistent kernel asks at every launch.
    return torch.cuda.get_device_properties(device).multi_processor_count


def set_triton_allocator(device: torch.device) -> None:
    """Let Triton allocate scratch memory of its kernels through torch."""
    import triton  # heavy, and of no use to most kernels

    def allocate(size: int, alignment: int, stream: int | None) -> torch.Tensor:
        del alignment, stream
        return torch.empty(size, dtype=torch.int8, device=device)

    triton.set_allocator(allocate)
