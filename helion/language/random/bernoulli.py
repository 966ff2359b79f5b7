"""Masks: `bernoulli`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.ir.graph import Node, args_of, value_of
from helion.ir.symbols import is_number
from helion.ir.tiles import HostTensor
from helion.language._op import LowerCtx, TypeCtx, op
from helion.language.random.draws import typed_draw
from helion.language.random.packed import eager_packed, packed_values
from helion.language.random.uniform import is_real

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.language._eager import EagerMode

# Beyond this share of p or of 1 - p, the error of a rounded probability is worth a warning.
_TOLERANCE = 0.01


@op
def bernoulli(
    shape: Sequence[Any],
    p: Any,
    seed: Any,
    bits: int = 16,
    device: Any = None,
    *,
    origin: Sequence[Any] | None = None,
    extents: Sequence[Any] | None = None,
) -> torch.Tensor:
    """A mask that is True with probability `p`, of the fewest random bits that will do.

    A Philox call makes 4 masks of 32 bits, 8 of 16, or 16 of 8, in the packed order of
    `docs/random.md`. An element is True where its bits, an unsigned number, are below
    T = round(p * 2**bits), ties to even: p = 0 is never, p = 1 always, and the probability is
    within 2**-(bits + 1) of p. Same values for every config, as in `hl.rand`.

    Args:
        shape: as in `hl.rand`; `[]` draws one mask for all.
        p: probability of True, from 0 to 1: a number, a one-element float tensor, or a float tensor
            that broadcasts to `shape`. On the device, what is outside of [0, 1] is clamped.
        seed: as in `hl.rand`.
        bits: 8, 16 or 32.
        device: if given, must be the kernel's device.
        origin: as in `hl.rand`.
        extents: as in `hl.rand`.

    Returns:
        bool tensor shaped like `shape`.

    Raises:
        ProbabilityOutOfRange: p is a number outside of [0, 1].
        InvalidRandArgument: `bits` is none of 8, 16, 32.

    Example: `keep = hl.bernoulli([rows, columns], 1 - p, seed)`
    """
    raise exc.NotInsideKernel(api="hl.bernoulli")


@bernoulli.type_rule
def _(
    ctx: TypeCtx,
    shape: Any,
    p: Any,
    seed: Any,
    bits: Any,
    device: Any,
    *,
    origin: Any,
    extents: Any,
) -> torch.Tensor:
    api = "hl.bernoulli"
    if not isinstance(bits, int) or bits not in (8, 16, 32):
        detail = f"bits is 8, 16 or 32, known at compile time, not {bits}"
        raise exc.InvalidRandArgument(ctx.span("bits"), api=api, detail=detail)
    draw, sizes = typed_draw(ctx, api, shape, seed, device, None, origin, extents, packed=True)
    if isinstance(p, HostTensor) and ctx.specialize(p.fake.numel()) == 1:
        p = ctx.load(p, [0] * p.fake.dim())
    if not is_real(ctx, p, sizes):
        detail = "p is a number, or a float tensor that broadcasts to the shape"
        raise exc.InvalidRandArgument(ctx.span("p"), api=api, detail=detail)
    if isinstance(p, (int, float)):
        _check_probability(ctx, p, bits)
    return ctx.record(bernoulli, (draw, p, bits), ctx.fake(sizes, torch.bool))


def _check_probability(ctx: TypeCtx, p: float, bits: int) -> None:
    if not 0 <= p <= 1:
        raise exc.ProbabilityOutOfRange(ctx.span("p"), p=p)
    near = threshold(p, bits) / 2**bits
    if abs(near - p) > _TOLERANCE * min(p, 1 - p):
        ctx.warn(exc.InexactProbability(p=p, bits=bits, near=near))


def threshold(p: float, bits: int) -> int:
    """What an unsigned number of some bits must be below, to be so with probability p."""
    if not 0 <= p <= 1:
        raise exc.ProbabilityOutOfRange(p=p)
    return round(p * 2**bits)


@bernoulli.lowering
def _(ctx: LowerCtx, node: Node) -> Any:
    draw, p, bits = args_of(node)
    sizes = value_of(node).shape
    limit = _limit(ctx, p, bits, len(sizes))
    if not limit.shape:

        def test(value: str) -> str:
            return f"{value} < {limit.text}"

        return packed_values(ctx, draw, sizes, "tl.randint4x", torch.bool, bits, test)
    unsigned = getattr(torch, f"uint{bits}")
    value = packed_values(ctx, draw, sizes, "tl.randint4x", unsigned, bits)
    return ctx.less(ctx.cast(value, limit.dtype), limit)


def _limit(ctx: LowerCtx, p: Any, bits: int, rank: int) -> Any:
    """The threshold: a literal, a number that the host computes, or one for each element."""
    # 2**32 itself is a threshold, so that 32 bits are compared in 64.
    dtype = torch.int64 if bits == 32 else torch.int32
    if isinstance(p, (int, float)):
        return ctx.number(threshold(p, bits))
    if is_number(p) and ctx.is_host_number(p):
        return ctx.cast(ctx.launch_number("threshold", "threshold", p, bits), dtype)
    value = ctx.operand(p)
    if value.dtype is not torch.float64:
        value = ctx.cast(value, torch.float32)
    width = len(value.shape)
    value = ctx.place(value, width, rank - width, rank)
    scaled = f"libdevice.nearbyint({value.text} * {float(2**bits)!r})"
    clamped = f"tl.maximum({scaled}, 0.0)"
    (name,) = ctx.assign(
        ["threshold"], ctx.cast(ctx.value(clamped, value.dtype, value.shape), dtype).text
    )
    return ctx.value(name, dtype, value.shape)


@bernoulli.reference
def _(
    mode: EagerMode,
    shape: Any,
    p: Any,
    seed: Any,
    bits: int,
    device: Any,
    origin: Any,
    extents: Any,
) -> torch.Tensor:
    del device
    value = eager_packed(mode, shape, seed, origin, extents, bits)[2]
    if not isinstance(p, torch.Tensor):
        return value < threshold(p, bits)
    p = p.reshape([]) if p.numel() == 1 else p
    scaled = (p if p.dtype is torch.float64 else p.float()) * 2**bits
    return value < scaled.round().clamp(min=0).nan_to_num(0).to(torch.int64)
