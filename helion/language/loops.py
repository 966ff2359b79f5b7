"""Loops over tiles and indices."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.ir.describe import type_name
from helion.ir.symbols import AxisNumber, BlockSymbol, is_number, kind_of, known_int
from helion.ir.tiles import BlockSize, HostTensor, TileAxis
from helion.language._eager import EagerMode, EagerTile
from helion.language._op import Op, TypeCtx, op

if TYPE_CHECKING:
    from collections.abc import Sequence

_ALIKE = "give begin and end both as numbers, or both as lists of one length"
_INTEGERS = "use integers: `//` divides without a fraction, `helion.cdiv(a, b)` rounds up"


@dataclasses.dataclass(frozen=True)
class LoopSpec:
    """What a `for` runs over.

    Attributes:
        axes: one axis for each dimension.
        scalar: whether the loop yields one tile, rather than a tuple of them.
    """

    axes: tuple[TileAxis, ...]
    scalar: bool


@op
def tile(begin_or_end: Any, end: Any = None, block_size: Any = None) -> Any:
    """Split an index range into tiles; every index is covered exactly once.

    At the top level of a kernel the loop becomes the launch grid; inside of it a sequential loop.

    Args:
        begin_or_end: the end; or the begin, where `end` is given. An int, a size, a 0-d integer
            tensor, or a list of these for several dimensions.
        end: one past the last index.
        block_size: int, size, registered block size, or a list of these; None lets the config
            choose.

    Returns:
        Yields a tile, or for a list a tuple of tiles.

    Raises:
        IncorrectTileUsage: a list next to a number, or lists of different lengths.
        InvalidTileRange: begin is known to be after end.

    Example: `for rows, columns in hl.tile([m, n]): out[rows, columns] = x[rows, columns] * 2`
    """
    raise exc.NotInsideKernel(api="hl.tile")


@op
def grid(begin_or_end: Any, end: Any = None, step: Any = None) -> Any:
    """Run over single indices: as `hl.tile` with blocks of one, but yields scalars.

    Args:
        begin_or_end: the end; or the begin, where `end` is given; or lists of these.
        end: one past the last index.
        step: distance between two indices.

    Returns:
        Yields an int scalar, or for a list a tuple of them.
    """
    raise exc.NotInsideKernel(api="hl.grid")


def bounds(ctx: TypeCtx, begin_or_end: Any, end: Any, api: str) -> tuple[list[Any], list[Any]]:
    """Begins and ends, one for each dimension."""
    begin: Any = 0 if end is None else begin_or_end
    end = begin_or_end if end is None else end
    several = isinstance(end, (tuple, list))
    if several and known_int(begin) == 0:
        begin = [0] * len(end)
    elif not several and not isinstance(begin, (tuple, list)):
        begin, end = [begin], [end]
    elif not several or not isinstance(begin, (tuple, list)):
        detail = f"`{api}` got a list next to a number"
        raise exc.IncorrectTileUsage(ctx.span(), detail=detail, advice=_ALIKE)
    if len(begin) != len(end):
        detail = f"`{api}` got {len(begin)} begins and {len(end)} ends"
        raise exc.IncorrectTileUsage(ctx.span(), detail=detail, advice=_ALIKE)
    for b, e in zip(begin, end, strict=True):
        for bound in (b, e):
            if isinstance(bound, TileAxis):
                raise exc.TileOfTile(ctx.span(), api=api)
            if not _is_bound(bound):
                detail = f"`{api}` needs integer bounds, got `{type_name(bound)}`"
                raise exc.IncorrectTileUsage(ctx.span(), detail=detail, advice=_INTEGERS)
        low, high = (known_int(v) if is_number(v) else None for v in (b, e))
        if low is not None and high is not None and low > high:
            raise exc.InvalidTileRange(ctx.span(), api=api, begin=low, end=high)
    return list(begin), list(end)


def _is_bound(value: Any) -> bool:
    """Whether a value counts as a bound: an int, or an integer tensor of one element."""
    if isinstance(value, HostTensor):
        value = value.fake
    if isinstance(value, torch.Tensor):
        return not value.dtype.is_floating_point and known_int(value.numel()) in (1, None)
    return is_number(value) and kind_of(value) is int


def block_symbol(ctx: TypeCtx, block: BlockSize) -> Any:
    """The size of a block: a number where it is fixed, else a symbol for the config to fill."""
    known = known_int(block.fixed) if block.fixed is not None else None
    return known if known is not None else ctx.symbols.size(BlockSymbol(block))


def grid_index(ctx: TypeCtx, axis: TileAxis) -> Any:
    """The scalar that a grid axis yields."""
    return ctx.symbols.of(AxisNumber(axis, "index"))


tile.is_loop = True
grid.is_loop = True


def as_loop(
    ctx: TypeCtx, function: Any, args: Sequence[Any], kwargs: Any, names: Sequence[str]
) -> LoopSpec | None:
    """The loop that a call in `for names in function(args)` means.

    None if it is no loop over tiles or indices. `range` is `hl.grid`, whatever its bounds:
    `hl.static_range` unrolls.
    """
    if isinstance(function, Op):
        if not function.is_loop:
            return None
        begin, end, step = bind_call(ctx, function, args, kwargs)
        return make_axes(ctx, function, begin, end, step, names)
    if function is range:
        begin, end, step = _range_arguments(ctx, args, kwargs)
        return make_axes(ctx, grid, begin, end, step, names)
    return None


def make_axes(
    ctx: TypeCtx, function: Op, begin_or_end: Any, end: Any, third: Any, names: Sequence[str]
) -> LoopSpec:
    """The axes of a call of `hl.tile` (third: block sizes) or `hl.grid` (third: steps)."""
    scalar = not isinstance(begin_or_end if end is None else end, (tuple, list))
    begins, ends = bounds(ctx, begin_or_end, end, f"hl.{function.name}")
    thirds = list(third) if isinstance(third, (tuple, list)) else [third] * len(ends)
    if len(thirds) != len(ends):
        raise exc.IncorrectTileUsage(ctx.span(), detail="one entry for each dimension is needed")
    if len(names) != len(ends):
        # `for t in hl.tile([m, n])` has one name for several axes.
        names = [f"{names[0] if names else 'tile'}_{i}" for i in range(len(ends))]
    make = _grid_axis if function is grid else _tile_axis
    axes = [
        make(ctx, name, b, e, third)
        for name, b, e, third in zip(names, begins, ends, thirds, strict=True)
    ]
    return LoopSpec(tuple(axes), scalar)


def _grid_axis(ctx: TypeCtx, name: str, begin: Any, end: Any, step: Any) -> TileAxis:
    if step is None:
        return TileAxis(name, None, 1, begin, end)
    _check_int(ctx, step, "step")
    if known_int(step) == 0:
        raise exc.IncorrectTileUsage(ctx.span("step"), detail="the step must not be 0", advice="")
    return TileAxis(name, None, 1, begin, end, step)


def _check_int(ctx: TypeCtx, value: Any, argument: str) -> None:
    if not is_number(value) or kind_of(value) is not int:
        detail = f"`{argument}` must be an integer, not `{type_name(value)}`"
        raise exc.IncorrectTileUsage(ctx.span(argument), detail=detail, advice=_INTEGERS)


def _tile_axis(ctx: TypeCtx, name: str, begin: Any, end: Any, block_size: Any) -> TileAxis:
    if block_size is None:
        block = ctx.new_block(name, extent=end if is_number(end) else None)
        return TileAxis(name, block, block_symbol(ctx, block), begin, end)
    if isinstance(block_size, TileAxis):
        block_size = block_size.size
    _check_int(ctx, block_size, "block_size")
    known = known_int(block_size)
    if known is not None and known < 1:
        detail = f"a block has at least one element, not {known}"
        raise exc.IncorrectTileUsage(ctx.span("block_size"), detail=detail, advice="")
    origin = ctx.symbols.origin(block_size)
    if isinstance(origin, BlockSymbol):
        return TileAxis(name, origin.block, block_size, begin, end)
    block = BlockSize(name, None, fixed=block_size)
    return TileAxis(name, block, block_size, begin, end)


def loop_target(ctx: TypeCtx, axes: Sequence[TileAxis], scalar: bool) -> Any:
    """What the loop variable is: tiles, or scalar indices for a grid."""
    values = [a if a.block is not None else grid_index(ctx, a) for a in axes]
    return values[0] if scalar else tuple(values)


def _range_arguments(ctx: TypeCtx, args: Sequence[Any], kwargs: Any) -> tuple[Any, Any, Any]:
    if kwargs or not 1 <= len(args) <= 3:
        detail = f"`range` takes one to three positional arguments, got {len(args) + len(kwargs)}"
        raise exc.TypeInferenceError(ctx.span(), detail=detail)
    if len(args) == 1:
        return 0, args[0], None
    return args[0], args[1], args[2] if len(args) > 2 else None


def bind_call(ctx: TypeCtx, function: Op, args: Sequence[Any], kwargs: Any) -> tuple[Any, ...]:
    """The arguments of a call, with defaults."""
    return function.bind(ctx.span(), args, kwargs).args


@op
def static_range(begin_or_end: int, end: int | None = None, step: int = 1) -> Any:
    """Unroll a loop: the index is a number known at compile time.

    Args:
        begin_or_end: the end; or the begin, where `end` is given; known at compile time.
        end: one past the last index.
        step: distance between two indices.
    """
    raise exc.NotInsideKernel(api="hl.static_range")


@static_range.type_rule
def _(ctx: TypeCtx, begin_or_end: Any, end: Any, step: Any) -> range:
    begin, end = (0, begin_or_end) if end is None else (begin_or_end, end)
    numbers = [known_int(v) for v in (begin, end, step)]
    if None in numbers:
        detail = "the bounds must be known at compile time: use `hl.specialize` or `hl.constexpr`"
        raise static_range.misuse(ctx.span(), detail)
    if known_int(step) == 0:
        raise static_range.misuse(ctx.span("step"), "the step must not be 0")
    return range(*(n for n in numbers if n is not None))


@op
def register_block_size(min_or_max: Any, max_or_none: Any = None) -> Any:
    """A block size that several loops and shapes share; one entry of `Config.block_sizes`.

    Args:
        min_or_max: the largest useful size, an int or a size; the smallest, where both are given.
        max_or_none: the largest useful size.

    Returns:
        A symbolic power of two, for `block_size=`, shapes and arithmetic.
    """
    raise exc.NotInsideKernel(api="hl.register_block_size")


@register_block_size.host_rule
def _(ctx: TypeCtx, min_or_max: Any, max_or_none: Any) -> Any:
    low, high = (1, min_or_max) if max_or_none is None else (min_or_max, max_or_none)
    if not is_number(high) or kind_of(high) is not int or known_int(low) is None:
        detail = "`hl.register_block_size` needs integers; the smallest known at compile time"
        raise exc.IncorrectTileUsage(ctx.span(), detail=detail, advice=_INTEGERS)
    least, most = known_int(low) or 0, known_int(high)
    if least < 1 or least & (least - 1) or (most is not None and most < 1):
        detail = "a block size is at least 1, and the smallest one is a power of two"
        raise exc.IncorrectTileUsage(ctx.span(), detail=detail, advice="")
    name = ctx.target() or "block"
    block = ctx.new_block(name, extent=high, minimum=least)
    return block_symbol(ctx, block)


def _axis_lists(
    begin_or_end: Any, end: Any, third: Any
) -> tuple[list[Any], list[Any], list[Any], bool]:
    begin, end = (0, begin_or_end) if end is None else (begin_or_end, end)
    scalar = not isinstance(end, (tuple, list))
    ends = [end] if scalar else list(end)
    begins = list(begin) if isinstance(begin, (tuple, list)) else [begin] * len(ends)
    thirds = list(third) if isinstance(third, (tuple, list)) else [third] * len(ends)
    return begins, ends, thirds, scalar


@tile.reference
def _(mode: EagerMode, begin_or_end: Any, end: Any, block_size: Any) -> Any:
    begins, ends, sizes, scalar = _axis_lists(begin_or_end, end, block_size)
    axes: list[list[EagerTile]] = []
    for begin, stop, size in zip(begins, ends, sizes, strict=True):
        low, high = int(begin), int(stop)
        block = int(size) if size is not None else max(high - low, 1)
        axes.append(
            [
                EagerTile(mode, i, min(i + block, high), block, low, high, is_free=size is None)
                for i in range(low, high, block)
            ]
        )
    return mode.loop(axes[0] if scalar else itertools.product(*axes))


@grid.reference
def _(mode: EagerMode, begin_or_end: Any, end: Any, step: Any) -> Any:
    begins, ends, steps, scalar = _axis_lists(begin_or_end, end, step)
    axes = [
        range(int(b), int(e), 1 if s is None else int(s))
        for b, e, s in zip(begins, ends, steps, strict=True)
    ]
    return mode.loop(axes[0] if scalar else itertools.product(*axes))


@static_range.reference
def _(mode: EagerMode, begin_or_end: int, end: int | None, step: int) -> range:
    del mode
    return range(0, begin_or_end, step) if end is None else range(begin_or_end, end, step)


@register_block_size.reference
def _(mode: EagerMode, min_or_max: Any, max_or_none: Any) -> int:
    mode.ignore_block_sizes()
    return int(min_or_max if max_or_none is None else max_or_none)
