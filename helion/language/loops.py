"""Loops over tiles and indices."""

from __future__ import annotations

import dataclasses
from typing import Any

from helion import exc
from helion.ir.symbols import AxisNumber, BlockSymbol, is_number, known_int
from helion.ir.tiles import BlockSize, TileAxis
from helion.language._op import TypeCtx, op


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
    begin, end = (0, begin_or_end) if end is None else (begin_or_end, end)
    if not isinstance(end, (tuple, list)):
        if isinstance(begin, (tuple, list)):
            raise exc.IncorrectTileUsage(ctx.span(), got=f"{api} with a list next to a number")
        begin, end = [begin], [end]
    elif begin == 0:
        begin = [0] * len(end)
    if len(begin) != len(end):
        raise exc.IncorrectTileUsage(ctx.span(), got=f"{api} with lists of different lengths")
    for b, e in zip(begin, end, strict=True):
        if isinstance(b, TileAxis) or isinstance(e, TileAxis):
            raise exc.TileOfTile(ctx.span())
        low, high = (known_int(v) if is_number(v) else None for v in (b, e))
        if low is not None and high is not None and low > high:
            raise exc.InvalidTileRange(ctx.span(), begin=low, end=high)
    return list(begin), list(end)


def block_symbol(ctx: TypeCtx, block: BlockSize) -> Any:
    """The size of a block: a number where it is fixed, else a symbol for the config to fill."""
    known = known_int(block.fixed) if block.fixed is not None else None
    return known if known is not None else ctx.symbols.size(BlockSymbol(block))


def grid_index(ctx: TypeCtx, axis: TileAxis) -> Any:
    """The scalar that a grid axis yields."""
    return ctx.symbols.number(int, AxisNumber(axis, "index"))
