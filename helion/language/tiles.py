"""Tile attributes: `tile.index`, `tile.begin` and their like, and the same as functions."""

from __future__ import annotations

from typing import Any

import torch

from helion import exc
from helion.ir.symbols import AxisNumber
from helion.ir.tiles import TileAxis
from helion.language._op import TypeCtx, op


@op
def tile_index(tile: Any) -> torch.Tensor:
    """The global indices of a tile's elements: int tensor `[block_size]`, `tile.begin + 0, 1, ...`.

    Lanes past the end of the range carry out-of-range values; they are masked where they are used.
    """
    raise exc.NotInsideKernel(api="hl.tile_index")


@tile_index.type_rule
def _(ctx: TypeCtx, tile: Any) -> torch.Tensor:
    axis = check_tile(ctx, tile)
    return ctx.record(tile_index, (axis,), ctx.fake([axis.size], torch.int32))


def check_tile(ctx: TypeCtx, tile: Any) -> TileAxis:
    """The axis of a tile, or an error that says what was given instead."""
    if isinstance(tile, TileAxis) and tile.block is not None:
        return tile
    raise exc.IncorrectTileUsage(ctx.span(), got=type(tile).__name__)


def axis_number(ctx: TypeCtx, axis: TileAxis, what: str) -> Any:
    """A scalar attribute of an axis; the same symbol each time it is asked for."""
    for symbol, origin in ctx.symbols.origins.items():
        if isinstance(origin, AxisNumber) and origin.axis is axis and origin.what == what:
            return ctx.symbols.value(symbol)
    return ctx.symbols.number(int, AxisNumber(axis, what))
