"""Random integers of a range: `randint`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.ir.graph import Node, args_of
from helion.ir.symbols import is_number, kind_of, known_int
from helion.language import _philox
from helion.language._op import LowerCtx, TypeCtx, op
from helion.language.random.bits import eager_integer
from helion.language.random.draws import (
    INTEGERS,
    eager_offsets,
    eager_seed,
    seed_and_offset,
    typed_draw,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.language._eager import EagerMode


@op
def randint(
    shape: Sequence[Any],
    low: Any,
    high: Any,
    seed: Any,
    device: Any = None,
    offsets: Any = None,
    *,
    origin: Sequence[Any] | None = None,
    extents: Sequence[Any] | None = None,
    dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Integers in [low, high), each as likely as the next.

    With n = high - low and the words of a Philox call read as one number w, word 0 its upper end:

        n <= 2**32:  low + floor(n * w / 2**64),   w = word 0, word 1
        n > 2**32:   low + floor(n * w / 2**128),  w = words 0, 1, 2, 3

    No value is more than 2**-32 (2**-64 for large n) of its share likelier than another, which no
    experiment can see: no remainder that favours small numbers, no abs(INT_MIN).

    Args:
        shape: as in `hl.rand`.
        low: the smallest; an int, or a number of the host.
        high: one past the largest; likewise. Where a bound is known only at the launch,
            high - low is at most 2**32.
        seed: as in `hl.rand`.
        device: as in `hl.rand`.
        offsets: as in `hl.rand`.
        origin: as in `hl.rand`.
        extents: as in `hl.rand`.
        dtype: an integer dtype that holds the range; int32 if not given, int64 for constant bounds
            that need it.

    Raises:
        InvalidRandintRange: low >= high, or the dtype does not hold the range.

    Source: multiply-shift, Lemire, "Fast random integer generation in an interval", ACM TOMACS
        29(1), 2019; more bits in place of the rejection loop.

    Example: `token = hl.randint([tile], 0, 50257, seed)`
    """
    raise exc.NotInsideKernel(api="hl.randint")


@randint.type_rule
def _(
    ctx: TypeCtx,
    shape: Any,
    low: Any,
    high: Any,
    seed: Any,
    device: Any,
    offsets: Any,
    *,
    origin: Any,
    extents: Any,
    dtype: Any,
) -> torch.Tensor:
    api = "hl.randint"
    for name, bound in (("low", low), ("high", high)):
        if not is_number(bound) or kind_of(bound) is not int:
            detail = f"`{name}` is an int, or an int that the host computes"
            raise exc.InvalidRandArgument(ctx.span(name), api=api, detail=detail)
    known = _constants(low, high)
    if dtype is None:
        dtype = torch.int32 if known is None or _holds(torch.int32, known) else torch.int64
    if dtype not in INTEGERS:
        detail = f"dtype is an integer dtype, not {dtype}"
        raise exc.InvalidRandArgument(ctx.span("dtype"), api=api, detail=detail)
    if known is not None and not _holds(dtype, known):
        raise exc.InvalidRandintRange(ctx.span("high"), low=low, high=high, dtype=dtype)
    draw, sizes = typed_draw(ctx, api, shape, seed, device, offsets, origin, extents)
    return ctx.record(randint, (draw, low, high, dtype), ctx.fake(sizes, dtype))


def _constants(low: Any, high: Any) -> range | None:
    """The range, if both bounds are known."""
    first, end = known_int(low), known_int(high)
    return None if first is None or end is None else range(first, end)


def _holds(dtype: torch.dtype, numbers: range) -> bool:
    """Whether there are any numbers, and the dtype has them all."""
    info = torch.iinfo(dtype)
    return info.min <= numbers.start < numbers.stop <= info.max + 1


def checked_range(low: int, high: int, bits: int, signed: bool) -> int:
    """`high - low` of bounds that are known at the launch.

    Raises:
        InvalidRandintRange: low >= high, more than 2**32 numbers, or more than the dtype holds.
    """
    dtype = getattr(torch, f"{'' if signed else 'u'}int{bits}")
    if high - low > 2**32 or not _holds(dtype, range(low, high)):
        raise exc.InvalidRandintRange(low=low, high=high, dtype=dtype)
    return high - low


@randint.lowering
def _(ctx: LowerCtx, node: Node) -> Any:
    draw, low, high, dtype = args_of(node)
    known = _constants(low, high)
    drawn = ctx.call("tl.randint4x", seed_and_offset(ctx, draw), torch.uint64)
    if known is None:
        bits, signed = dtype.itemsize * 8, dtype.is_signed
        count = ctx.launch_number("count", "checked_range", low, high, bits, signed)
        begin = ctx.wide_number(low)
        text = _small(ctx, drawn.text, count.text)
    else:
        begin, n = ctx.number(known.start), known.stop - known.start
        text = _small(ctx, drawn.text, str(n)) if n <= 2**32 else _large(ctx, drawn.text, n)
    value = ctx.cast(ctx.value(text, torch.uint64, drawn.shape, loose=True), dtype)
    return ctx.cast(ctx.add(value, begin), dtype)


def _small(ctx: LowerCtx, call: str, count: str) -> str:
    """`floor(count * w / 2**64)` for a count of at most 2**32: no step passes 64 bits."""
    w0, w1, *_ = ctx.assign(["w0", "w1", "_", "_"], call)
    low = f"({w1}.to(tl.uint64) * {count} >> 32)"
    return f"{w0}.to(tl.uint64) * {count} + {low} >> 32"


def _large(ctx: LowerCtx, call: str, count: int) -> str:
    """`floor(count * w / 2**128)`."""
    w = ctx.assign(["w0", "w1", "w2", "w3"], call)
    (high,) = ctx.assign(["high"], f"{w[0]}.to(tl.uint64) << 32 | {w[1]}.to(tl.uint64)")
    if count == 2**64:
        return high
    (low,) = ctx.assign(["low"], f"{w[2]}.to(tl.uint64) << 32 | {w[3]}.to(tl.uint64)")
    (n,) = ctx.assign(["count"], f"tl.full([], {count}, tl.uint64)")
    (carried,) = ctx.assign(["carried"], f"tl.umulhi({low}, {n})")
    (rest,) = ctx.assign(["rest"], f"{high} * {n} + {carried}")
    return f"tl.umulhi({high}, {n}) + ({rest} < {carried}).to(tl.uint64)"


@randint.reference
def _(
    mode: EagerMode,
    shape: Any,
    low: int,
    high: int,
    seed: Any,
    device: Any,
    offsets: Any,
    origin: Any,
    extents: Any,
    dtype: torch.dtype | None,
) -> torch.Tensor:
    del device
    numbers = range(int(low), int(high))
    if dtype is None:
        dtype = torch.int32 if _holds(torch.int32, numbers) else torch.int64
    if not _holds(dtype, numbers):
        raise exc.InvalidRandintRange(low=low, high=high, dtype=dtype)
    places = eager_offsets(mode, shape, offsets, origin, extents)
    words = _philox.philox4x32(eager_seed(seed), places)
    count = numbers.stop - numbers.start
    value = _philox.scaled(words if count > 2**32 else words[:2], count)
    return eager_integer(value + _philox.wrap64(numbers.start), dtype)
