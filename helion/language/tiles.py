"""Tile attributes: `tile.index`, `tile.begin` and their like, and the same as functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from helion import exc
from helion.ir.describe import type_name
from helion.ir.symbols import AxisNumber
from helion.ir.tiles import TileAxis
from helion.language._op import Op, TypeCtx, op

if TYPE_CHECKING:
    import torch


@op
def tile_index(tile: Any) -> torch.Tensor:
    """The global indices of a tile's elements: int tensor `[block_size]`, `tile.begin + 0, 1, ...`.

    Lanes past the end of the range carry out-of-range values; they are masked where they are used.
    The same as `tile.index`.
    """
    raise exc.NotInsideKernel(api="hl.tile_index")


@tile_index.type_rule
def _(ctx: TypeCtx, tile: Any) -> torch.Tensor:
    axis = _check_tile(ctx, tile)
    return ctx.record(tile_index, (axis,), ctx.fake([axis.size], ctx.index_dtype))


@op
def tile_begin(tile: Any) -> int:
    """The index of a tile's first element. The same as `tile.begin`."""
    raise exc.NotInsideKernel(api="hl.tile_begin")


@op
def tile_end(tile: Any) -> int:
    """One past the index of a tile's last element, `min(begin + block_size, loop end)`.

    The same as `tile.end`.
    """
    raise exc.NotInsideKernel(api="hl.tile_end")


@op
def tile_id(tile: Any) -> int:
    """The ordinal of a tile, `begin // block_size`. The same as `tile.id`."""
    raise exc.NotInsideKernel(api="hl.tile_id")


@op
def tile_count(tile: Any) -> int:
    """How many tiles the loop has. The same as `tile.count`."""
    raise exc.NotInsideKernel(api="hl.tile_count")


@op
def tile_block_size(tile: Any) -> int:
    """How many elements a full tile has; known to the compiler. The same as `tile.block_size`."""
    raise exc.NotInsideKernel(api="hl.tile_block_size")


@tile_block_size.type_rule
def _(ctx: TypeCtx, tile: Any) -> Any:
    return _check_tile(ctx, tile).size


def _number_rule(what: str) -> Any:
    def rule(ctx: TypeCtx, tile: Any) -> Any:
        axis = _check_tile(ctx, tile)
        return ctx.symbols.of(AxisNumber(axis, what))

    return rule


for _name, _op in {
    "begin": tile_begin,
    "end": tile_end,
    "id": tile_id,
    "count": tile_count,
}.items():
    _op.type_rule(_number_rule(_name))

ATTRIBUTES: dict[str, Op] = {
    "index": tile_index,
    "begin": tile_begin,
    "end": tile_end,
    "id": tile_id,
    "count": tile_count,
    "block_size": tile_block_size,
}


def attribute(ctx: TypeCtx, tile: TileAxis, name: str) -> Any:
    """`tile.name`."""
    function = ATTRIBUTES.get(name)
    if function is None or function.type_rule_fn is None:
        detail = f"a tile has no attribute `{name}`; it has {', '.join(ATTRIBUTES)}"
        raise exc.TypeInferenceError(ctx.span(), detail=detail)
    return function.type_rule_fn(ctx, tile)


def _check_tile(ctx: TypeCtx, tile: Any) -> TileAxis:
    if isinstance(tile, TileAxis) and tile.block is not None:
        return tile
    raise exc.IncorrectTileUsage(ctx.span("tile"), detail=f"`{type_name(tile)}` is no tile")


def _reference(name: str) -> Any:
    def reference(mode: Any, tile: Any) -> Any:
        del mode
        return getattr(tile, name)

    return reference


for _name, _op in ATTRIBUTES.items():
    _op.reference(_reference(_name))
