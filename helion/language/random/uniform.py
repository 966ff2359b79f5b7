"""Uniform numbers: `rand`, `uniform`, `rand4x`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.ir.graph import Node, args_of, value_of
from helion.ir.symbols import is_number, kind_of
from helion.language import _philox
from helion.language._op import LowerCtx, TypeCtx, op
from helion.language.creation import check_device
from helion.language.random.draws import (
    Draw,
    broadcasts,
    check_offsets,
    check_seed,
    eager_offsets,
    eager_seed,
    seed_and_offset,
    typed_draw,
    warn_repeats,
)
from helion.language.random.packed import choose, eager_packed, packed_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.language._eager import EagerMode

FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


@op
def rand(
    shape: Sequence[Any],
    seed: Any,
    device: Any = None,
    offsets: Any = None,
    *,
    origin: Sequence[Any] | None = None,
    extents: Sequence[Any] | None = None,
    packed: bool = False,
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """Uniform numbers in [0, 1), one for each element of `shape`.

    A pure function of the seed and of the element's global index: block sizes, loop orders, grid
    and device do not matter. Element (i0, ..., ik) draws at the row-major linear index of its
    global indices: with extents (n0, ..., nk), `((i0 * n1 + i1) * n2 + i2) ...`. A tile axis
    counts with `tile.index` and the end of the range that it tiles, an int axis with
    `arange(size)` and its size. In NumPy: `rand(seed, np.arange(n0 * n1).reshape(n0, n1))`.

    Args:
        shape: list of tiles, ints and block sizes; `[]` draws one number, at offset 0.
        seed: int, or integer tensor: one element, or broadcastable to `shape`; read as an
            unsigned 64-bit number, so that -1 and 2**64 - 1 are one seed. Never specialized on.
        device: if given, must be the kernel's device.
        offsets: integer tensor of offsets to use instead of the implied ones; the result has its
            shape. Offsets are signed 64-bit numbers modulo 2**64.
        origin: what to add to each axis's index, where `shape` is a part of a larger tensor.
        extents: the sizes of that larger tensor, one for each axis of `shape`.
        packed: use all four words of a Philox call: four times as fast, other numbers. The order
            is described in `docs/random.md`; it needs no `offsets`.
        dtype: of the result. float16 and bfloat16 hold the float32 number rounded toward zero, so
            that 1.0 cannot occur. float64 has 53 bits of words 0 and 1, and is not packed.

    Returns:
        Tensor shaped like `shape`. 0.0 can occur, 1.0 cannot: keep with `r >= p`.

    Raises:
        SeedNotInteger: the seed is a float, a bool, or a tensor of such a dtype.
        SeedShapeMismatch: the seed is a tensor that does not broadcast to `shape`.
        ExtentsRequired: an axis after the first has bounds read from memory.

    Source: Philox4x32-10, Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011;
        key = seed, counter = (offset, 0, 0); float conversion as in `tl.rand`.

    Example: `keep = hl.rand([tile], seed=7) >= p`
    """
    raise exc.NotInsideKernel(api="hl.rand")


def check_float(ctx: TypeCtx, api: str, dtype: Any, packed: Any) -> None:
    """Real-valued operations have four dtypes; float64 takes two words a number."""
    if dtype not in FLOATS:
        names = ", ".join(str(d) for d in FLOATS)
        detail = f"dtype is one of {names}, not {dtype}"
        raise exc.InvalidRandArgument(ctx.span("dtype"), api=api, detail=detail)
    if packed is True and dtype is torch.float64:
        detail = "a packed number has 32 bits: draw float64 without `packed`"
        raise exc.InvalidRandArgument(ctx.span("packed"), api=api, detail=detail)


@rand.type_rule
def _(
    ctx: TypeCtx,
    shape: Any,
    seed: Any,
    device: Any,
    offsets: Any,
    *,
    origin: Any,
    extents: Any,
    packed: Any,
    dtype: Any,
) -> torch.Tensor:
    check_float(ctx, "hl.rand", dtype, packed)
    draw, sizes = typed_draw(ctx, "hl.rand", shape, seed, device, offsets, origin, extents, packed)
    return ctx.record(rand, (draw, dtype), ctx.fake(sizes, dtype))


@rand.lowering
def _(ctx: LowerCtx, node: Node) -> Any:
    draw, dtype = args_of(node)
    return rounded_down(ctx, unit_values(ctx, draw, value_of(node).shape, dtype), dtype)


def unit_values(ctx: LowerCtx, draw: Any, sizes: Sequence[Any], dtype: Any) -> Any:
    """Uniform numbers in [0, 1): in float64 if that is asked for, else in float32."""
    if draw.packed:
        return packed_values(ctx, draw, sizes, "tl.rand4x", torch.float32)
    arguments = seed_and_offset(ctx, draw)
    if dtype is not torch.float64:
        return ctx.call("tl.rand", arguments, torch.float32)
    drawn = ctx.call("tl.randint4x", arguments, torch.float64)
    w0, w1, _, _ = ctx.assign(["w0", "w1", "_", "_"], drawn.text)
    return ctx.value(unit64(w0, w1), torch.float64, drawn.shape, loose=True)


def unit64(high: str, low: str) -> str:
    """53 bits of two words, scaled to [0, 1)."""
    bits = f"({high}.to(tl.uint64) << 32 | {low}.to(tl.uint64)) >> 11"
    return f"({bits}).to(tl.float64) * {2.0**-53!r}"


def rounded_down(ctx: LowerCtx, value: Any, dtype: Any) -> Any:
    """A number in [0, 1) in a shorter format: rounding to nearest would reach 1.0."""
    if dtype in (torch.float16, torch.bfloat16):
        name = str(dtype).removeprefix("torch.")
        (named,) = ctx.assign(["unit"], value.text)
        text = f'{named}.to(tl.{name}, fp_downcast_rounding="rtz")'
        return ctx.value(text, dtype, value.shape)
    return value


@rand.reference
def _(
    mode: EagerMode,
    shape: Any,
    seed: Any,
    device: Any,
    offsets: Any,
    origin: Any,
    extents: Any,
    packed: bool,
    dtype: torch.dtype,
) -> torch.Tensor:
    del device
    unit = eager_unit(mode, shape, seed, offsets, origin, extents, packed, dtype)
    return eager_rounded_down(unit, dtype)


def eager_unit(
    mode: EagerMode,
    shape: Any,
    seed: Any,
    offsets: Any,
    origin: Any,
    extents: Any,
    packed: bool,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Uniform numbers in [0, 1): in float64 if that is asked for, else in float32."""
    if packed:
        words, number, _ = eager_packed(mode, shape, seed, origin, extents, 32)
        return _philox.uniform(choose(words, number))
    places = eager_offsets(mode, shape, offsets, origin, extents)
    words = _philox.philox4x32(eager_seed(seed), places)
    if dtype is torch.float64:
        return eager_unit64(words[0], words[1])
    return _philox.uniform(words[0])


def eager_unit64(high: torch.Tensor, low: torch.Tensor) -> torch.Tensor:
    """53 bits of two words, scaled to [0, 1)."""
    return (high * 2**21 + (low >> 11)).to(torch.float64) * 2.0**-53


def eager_rounded_down(value: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A number in [0, 1) in a shorter format, rounded toward zero."""
    near = value.to(dtype)
    if dtype not in (torch.float16, torch.bfloat16):
        return near
    beyond = near.to(value.dtype) > value
    return (near.view(torch.int16) - beyond.to(torch.int16)).view(dtype)


@op
def rand4x(
    seed: Any, offsets: Any, device: Any = None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Four uniform numbers in [0, 1) for each offset, of one Philox call; as `tl.rand4x`.

    Args:
        seed: as in `hl.rand`; a tensor broadcasts to `offsets`.
        offsets: integer tensor; signed 64-bit numbers modulo 2**64.
        device: if given, must be the kernel's device.

    Returns:
        Four float32 tensors shaped like `offsets`. The first is what `hl.rand` draws there.

    Raises:
        OffsetsNotInteger: the offsets are no integer tensor.
        SeedNotInteger: the seed is no integer.
    """
    raise exc.NotInsideKernel(api="hl.rand4x")


def four_values(
    ctx: TypeCtx, target: Any, seed: Any, offsets: Any, device: Any, dtype: torch.dtype
) -> Any:
    """The type of `rand4x` and its like: four tensors shaped like the offsets."""
    api = f"hl.{target.name}"
    check_device(ctx, device)
    offsets = check_offsets(ctx, api, offsets)
    sizes = list(offsets.shape)
    draw = Draw((), check_seed(ctx, api, seed, sizes), offsets)
    warn_repeats(ctx, api, (draw.seed, offsets))
    return ctx.record(target, (draw,), tuple(ctx.fake(sizes, dtype) for _ in range(4)))


@rand4x.type_rule
def _(ctx: TypeCtx, seed: Any, offsets: Any, device: Any) -> Any:
    return four_values(ctx, rand4x, seed, offsets, device, torch.float32)


def lower_four(
    ctx: LowerCtx, node: Node, function: str, drawn_as: torch.dtype, dtype: torch.dtype
) -> None:
    """Call a Triton function with four results."""
    (draw,) = args_of(node)
    drawn = ctx.call(function, seed_and_offset(ctx, draw), drawn_as)
    names = ctx.assign(["r0", "r1", "r2", "r3"], drawn.text)
    values = [ctx.value(name, drawn_as, drawn.shape) for name in names]
    ctx.set_results(node, [ctx.cast(value, dtype) for value in values])


@rand4x.lowering
def _(ctx: LowerCtx, node: Node) -> None:
    lower_four(ctx, node, "tl.rand4x", torch.float32, torch.float32)


@rand4x.reference
def _(mode: EagerMode, seed: Any, offsets: Any, device: Any) -> tuple[torch.Tensor, ...]:
    del device
    places = eager_offsets(mode, [], offsets, None, None)
    return tuple(_philox.uniform(w) for w in _philox.philox4x32(eager_seed(seed), places))


@op
def uniform(
    shape: Sequence[Any],
    low: Any,
    high: Any,
    seed: Any,
    device: Any = None,
    offsets: Any = None,
    *,
    origin: Sequence[Any] | None = None,
    extents: Sequence[Any] | None = None,
    packed: bool = False,
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """Uniform numbers in [low, high).

    `low + (high - low) * u`, with u as in `hl.rand` and one rounding (a fused multiply-add), then
    rounded to `dtype`; what rounding brings to `high` becomes the number below it.

    Args:
        shape: as in `hl.rand`.
        low: the smallest; a number, or a device tensor that broadcasts to `shape`.
        high: what is not reached; likewise.
        seed: as in `hl.rand`.
        device: as in `hl.rand`.
        offsets: as in `hl.rand`.
        origin: as in `hl.rand`.
        extents: as in `hl.rand`.
        packed: as in `hl.rand`.
        dtype: float32, float16, bfloat16 or float64.

    Raises:
        InvalidRandArgument: low >= high, where both are known.
    """
    raise exc.NotInsideKernel(api="hl.uniform")


@uniform.type_rule
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
    packed: Any,
    dtype: Any,
) -> torch.Tensor:
    check_float(ctx, "hl.uniform", dtype, packed)
    draw, sizes = typed_draw(
        ctx, "hl.uniform", shape, seed, device, offsets, origin, extents, packed
    )
    for name, bound in (("low", low), ("high", high)):
        if not is_real(ctx, bound, sizes):
            detail = f"`{name}` is a number, or a float tensor that broadcasts to the shape"
            raise exc.InvalidRandArgument(ctx.span(name), api="hl.uniform", detail=detail)
    if isinstance(low, (int, float)) and isinstance(high, (int, float)) and not low < high:
        detail = f"needs low < high, got low={low}, high={high}"
        raise exc.InvalidRandArgument(ctx.span("high"), api="hl.uniform", detail=detail)
    return ctx.record(uniform, (draw, low, high, dtype), ctx.fake(sizes, dtype))


def is_real(ctx: TypeCtx, value: Any, sizes: Sequence[Any]) -> bool:
    """Whether a parameter is a number, or a float device tensor that broadcasts to the shape."""
    if is_number(value):
        return kind_of(value) is not bool
    return ctx.is_device(value) and value.dtype.is_floating_point and broadcasts(value.shape, sizes)


@uniform.lowering
def _(ctx: LowerCtx, node: Node) -> Any:
    draw, low, high, dtype = args_of(node)
    sizes = value_of(node).shape
    work = torch.float64 if dtype is torch.float64 else torch.float32
    unit = unit_values(ctx, draw, sizes, dtype)
    begin, end = real(ctx, low, work, len(sizes)), real(ctx, high, work, len(sizes))
    width = ctx.sub(end, begin)
    value = ctx.cast(ctx.call("tl.fma", [unit, width, begin], work), dtype)
    (v,) = ctx.assign(["value"], value.text)
    name, integer = str(dtype).removeprefix("torch."), f"tl.int{dtype.itemsize * 8}"
    # Bits count upwards away from zero; what rounds up to zero is -0.0.
    (bits,) = ctx.assign(["bits"], f"{v}.to({integer}, bitcast=True)")
    text = f"tl.where({v} > 0, {bits} - 1, {bits} + 1).to(tl.{name}, bitcast=True)"
    (below,) = ctx.assign(["below"], text)
    return ctx.value(f"tl.where({v} < {end.text}, {v}, {below})", dtype, value.shape)


def real(ctx: LowerCtx, value: Any, dtype: torch.dtype, rank: int) -> Any:
    """A parameter of a distribution as a block of `rank` dimensions, or a scalar."""
    if isinstance(value, (int, float)):
        return ctx.value(repr(float(value)), dtype, (), loose=value < 0)
    expression = ctx.cast(ctx.operand(value), dtype)
    width = len(expression.shape)
    return ctx.place(expression, width, rank - width, rank)


@uniform.reference
def _(
    mode: EagerMode,
    shape: Any,
    low: Any,
    high: Any,
    seed: Any,
    device: Any,
    offsets: Any,
    origin: Any,
    extents: Any,
    packed: bool,
    dtype: torch.dtype,
) -> torch.Tensor:
    del device
    unit = eager_unit(mode, shape, seed, offsets, origin, extents, packed, dtype)
    low, high = (torch.as_tensor(v, device=mode.device).to(unit.dtype) for v in (low, high))
    exact = low.double() + unit.double() * (high - low).double()
    value = exact.to(unit.dtype).to(dtype)
    below = torch.nextafter(value, torch.full_like(value, -math.inf))
    return torch.where(value.to(unit.dtype) < high, value, below)
