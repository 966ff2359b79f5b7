"""Dropout by torch, and by hand in Triton: what our kernels are measured against.

Each function takes `(p, x)` and gives the call to time: it returns dropout of `x`, with a gradient
if `x` asks for one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

import helion  # noqa: F401 - without a GPU it turns Triton's interpreter on

# isort: split
import triton
import triton.language as tl

Call = Callable[[], torch.Tensor]

# A program of the interpreter takes milliseconds, whatever its block.
BLOCK = 1024 if torch.cuda.is_available() else 1 << 16
SEED = 123


@triton.jit
def masked_kernel(x, out, n, p, keep, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    value = tl.load(x + index, inside)
    kept = tl.load(keep + index, inside)
    tl.store(out + index, tl.where(kept, value / (1 - p), 0.0), inside)


@triton.jit
def seeded_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    index = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = index < n
    value = tl.load(x + index, inside)
    kept = tl.rand(seed, index) >= p
    tl.store(out + index, tl.where(kept, value / (1 - p), 0.0), inside)


@triton.jit
def quarter(x, out, n, p, index, drawn):
    value = tl.load(x + index, index < n)
    tl.store(out + index, tl.where(drawn >= p, value / (1 - p), 0.0), index < n)


@triton.jit
def seeded4x_kernel(x, out, n, p, seed, BLOCK: tl.constexpr):
    # Philox makes four numbers at once: one for the same place in each quarter of the block.
    LANES: tl.constexpr = BLOCK // 4
    pid = tl.program_id(0)
    index = pid * BLOCK + tl.arange(0, LANES)
    counter = pid * LANES + tl.arange(0, LANES)
    r0, r1, r2, r3 = tl.rand4x(seed, counter)  # pyright: ignore[reportGeneralTypeIssues]
    quarter(x, out, n, p, index, r0)
    quarter(x, out, n, p, index + LANES, r1)
    quarter(x, out, n, p, index + 2 * LANES, r2)
    quarter(x, out, n, p, index + 3 * LANES, r3)


def launch(kernel: Any, p: float, x: torch.Tensor, chosen: Any) -> torch.Tensor:
    """Run one of the kernels above; `chosen` is its mask or its seed."""
    out = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), BLOCK),)](x, out, x.numel(), p, chosen, BLOCK=BLOCK)
    return out


class Dropout(torch.autograd.Function):
    """`apply(kernel, p, x, chosen)`: the gradient drops what the result dropped."""

    @staticmethod
    def forward(ctx: Any, kernel: Any, p: float, x: torch.Tensor, chosen: Any) -> torch.Tensor:
        ctx.kernel, ctx.p, ctx.chosen = kernel, p, chosen
        return launch(kernel, p, x, chosen)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_y: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        return None, None, launch(ctx.kernel, ctx.p, grad_y.contiguous(), ctx.chosen), None


def by_hand(kernel: Any, p: float, x: torch.Tensor, chosen: Any) -> Call:
    run: Any = Dropout.apply if x.requires_grad else launch
    return lambda: run(kernel, p, x, chosen)


def triton_dropout(p: float, x: torch.Tensor) -> Call:
    """The mask is drawn beforehand, and read from memory."""
    return by_hand(masked_kernel, p, x, torch.rand(x.shape, device=x.device) >= p)


def seeded_dropout(p: float, x: torch.Tensor) -> Call:
    """The mask is drawn in the kernel, one Philox call for each element."""
    return by_hand(seeded_kernel, p, x, SEED)


def seeded4x_dropout(p: float, x: torch.Tensor) -> Call:
    """The mask is drawn in the kernel, one Philox call for four elements."""
    return by_hand(seeded4x_kernel, p, x, SEED)


def torch_dropout(p: float, x: torch.Tensor) -> Call:
    """`F.dropout`."""
    return lambda: F.dropout(x, p)


@functools.cache
def compiled_dropout() -> Callable[..., torch.Tensor]:
    from torch._dynamo import config  # seconds, which only this needs

    # For each size by itself: with a symbolic size it is slower.
    config.recompile_limit = 64
    return torch.compile(F.dropout, dynamic=False)


def torch_compile_dropout(p: float, x: torch.Tensor) -> Call:
    """`torch.compile` of `F.dropout`."""
    compiled = compiled_dropout()
    return lambda: compiled(x, p)
