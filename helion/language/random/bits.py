"""Random bits: `random_bits`, `randint4x`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.ir.graph import Node, args_of, value_of
from helion.language import _philox
from helion.language._op import LowerCtx, TypeCtx, op
from helion.language.random.draws import (
    INTEGERS,
    eager_offsets,
    eager_seed,
    seed_and_offset,
    typed_draw,
)
from helion.language.random.packed import eager_packed, packed_values
from helion.language.random.uniform import four_values, lower_four

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.language._eager import EagerMode


@op
def random_bits(
    shape: Sequence[Any],
    seed: Any,
    dtype: torch.dtype = torch.uint32,
    device: Any = None,
    offsets: Any = None,
    *,
    origin: Sequence[Any] | None = None,
    extents: Sequence[Any] | None = None,
    packed: bool = False,
) -> torch.Tensor:
    """Integers of which every bit is random.

    32 bits are word 0 of the Philox call at the element's offset, 64 bits are word 0 (low) and
    word 1 (high), fewer are the low bits of word 0. With `packed`, all words are cut into 32, 16
    or 8 bits, in the order of `docs/random.md`.

    Args:
        shape: as in `hl.rand`.
        seed: as in `hl.rand`.
        dtype: an integer dtype, signed or not.
        device: as in `hl.rand`.
        offsets: as in `hl.rand`.
        origin: as in `hl.rand`.
        extents: as in `hl.rand`.
        packed: use all of a Philox call; for dtypes of 32, 16 and 8 bits.
    """
    raise exc.NotInsideKernel(api="hl.random_bits")


@random_bits.type_rule
def _(
    ctx: TypeCtx,
    shape: Any,
    seed: Any,
    dtype: Any,
    device: Any,
    offsets: Any,
    *,
    origin: Any,
    extents: Any,
    packed: Any,
) -> torch.Tensor:
    api = "hl.random_bits"
    if dtype not in INTEGERS:
        detail = f"dtype is an integer dtype, not {dtype}"
        raise exc.InvalidRandArgument(ctx.span("dtype"), api=api, detail=detail)
    if packed is True and dtype.itemsize == 8:
        detail = "a packed number has 32, 16 or 8 bits: draw 64 bits without `packed`"
        raise exc.InvalidRandArgument(ctx.span("packed"), api=api, detail=detail)
    draw, sizes = typed_draw(ctx, api, shape, seed, device, offsets, origin, extents, packed)
    return ctx.record(random_bits, (draw, dtype), ctx.fake(sizes, dtype))


@random_bits.lowering
def _(ctx: LowerCtx, node: Node) -> Any:
    draw, dtype = args_of(node)
    sizes = value_of(node).shape
    bits = dtype.itemsize * 8
    if draw.packed:
        unsigned = getattr(torch, f"uint{bits}")
        value = packed_values(ctx, draw, sizes, "tl.randint4x", unsigned, bits)
        return ctx.cast(value, dtype)
    drawn = ctx.call("tl.randint4x", seed_and_offset(ctx, draw), torch.uint32)
    if bits < 64:
        (w0, *_) = ctx.assign(["w0", "_", "_", "_"], drawn.text)
        return ctx.cast(ctx.value(w0, torch.uint32, drawn.shape), dtype)
    w0, w1, *_ = ctx.assign(["w0", "w1", "_", "_"], drawn.text)
    text = join64(low=w0, high=w1)
    return ctx.cast(ctx.value(text, torch.uint64, drawn.shape, loose=True), dtype)


def join64(low: str, high: str) -> str:
    """Two words as one 64-bit number."""
    return f"{high}.to(tl.uint64) << 32 | {low}.to(tl.uint64)"


@random_bits.reference
def _(
    mode: EagerMode,
    shape: Any,
    seed: Any,
    dtype: torch.dtype,
    device: Any,
    offsets: Any,
    origin: Any,
    extents: Any,
    packed: bool,
) -> torch.Tensor:
    del device
    if packed:
        bits = eager_packed(mode, shape, seed, origin, extents, dtype.itemsize * 8)[2]
        return eager_integer(bits, dtype)
    places = eager_offsets(mode, shape, offsets, origin, extents)
    words = _philox.philox4x32(eager_seed(seed), places)
    return eager_integer(words[0] | words[1] << 32, dtype)


def eager_integer(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The low bits of int64 numbers, as an integer dtype: torch converts few unsigned ones."""
    signed = {8: torch.int8, 16: torch.int16, 32: torch.int32, 64: torch.int64}[dtype.itemsize * 8]
    return value.to(signed).view(dtype)


@op
def randint4x(
    seed: Any, offsets: Any, device: Any = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The four words of one Philox call for each offset; as `tl.randint4x`.

    Args:
        seed: as in `hl.rand`; a tensor broadcasts to `offsets`.
        offsets: integer tensor; signed 64-bit numbers modulo 2**64.
        device: if given, must be the kernel's device.

    Returns:
        Four int32 tensors shaped like `offsets`; every bit is random, the sign's too.

    Raises:
        OffsetsNotInteger: the offsets are no integer tensor.
        SeedNotInteger: the seed is no integer.
    """
    raise exc.NotInsideKernel(api="hl.randint4x")


@randint4x.type_rule
def _(ctx: TypeCtx, seed: Any, offsets: Any, device: Any) -> Any:
    return four_values(ctx, randint4x, seed, offsets, device, torch.int32)


@randint4x.lowering
def _(ctx: LowerCtx, node: Node) -> None:
    lower_four(ctx, node, "tl.randint4x", torch.uint32, torch.int32)


@randint4x.reference
def _(mode: EagerMode, seed: Any, offsets: Any, device: Any) -> tuple[torch.Tensor, ...]:
    del device
    places = eager_offsets(mode, [], offsets, None, None)
    words = _philox.philox4x32(eager_seed(seed), places)
    return tuple(eager_integer(w, torch.int32) for w in words)
