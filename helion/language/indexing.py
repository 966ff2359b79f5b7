"""Subscripts of host tensors: what each index item is, and the shape of the result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.ir.describe import type_name
from helion.ir.symbols import Number, expr_of, is_number, kind_of, known_int
from helion.ir.tiles import HostTensor, SliceItem, TileAxis, TileItem
from helion.language.tiles import tile_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.exc import Span
    from helion.language._op import TypeCtx

_ADD = torch.ops.prims.add.default
_SUB = torch.ops.prims.sub.default
_INDEX_DTYPES = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8)


def normalize(ctx: TypeCtx, index: Sequence[Any], tensor: torch.Tensor) -> tuple[Any, ...]:
    """The items of a subscript, one for each dimension of `tensor`, and `None` for new ones.

    Tiles become `TileItem`, slices become `SliceItem`, a missing end means `:`; ints, scalars and
    integer tensors stay.
    """
    check_list(ctx, index)
    given = _flatten(index)
    for position, item in enumerate(given):
        _check_item(ctx, item, position)
    items = expand_ellipsis(given, tensor.dim(), ctx.span())
    result: list[Any] = []
    dim = 0
    for item in items:
        if item is None:
            result.append(None)
            continue
        _check_range(ctx, item, tensor.shape[dim], dim)
        result.append(_item(ctx, item, tensor.shape[dim]))
        dim += 1
    return tuple(result)


def _check_range(ctx: TypeCtx, item: Any, size: Any, dim: int) -> None:
    """Whether an index that is a known number lies in a dimension of a known size."""
    index, known = known_int(item), known_int(size)
    if index is not None and known is not None and not -known <= index < known:
        raise exc.IndexOutOfRange(ctx.span("index"), index=index, dim=dim, size=known)


def check_list(ctx: TypeCtx, index: Any) -> None:
    """Whether an index has items."""
    if not isinstance(index, (tuple, list)):
        detail = f"the index must be a list: `[tile]`, not `{type_name(index)}`"
        raise exc.InvalidAPIUsage(ctx.span("index"), detail=detail)


def result_shape(items: Sequence[Any]) -> list[Any]:
    """The shape of a load with these items.

    One-dimensional tensors each keep a dimension of their own (an outer product, unlike torch).
    Neighbouring tensors of which one has more dimensions broadcast together and stand at the first.
    """
    together = joint_tensors(items)
    shape: list[Any] = []
    for i, item in enumerate(items):
        if item is None:
            shape.append(1)
        elif isinstance(item, TileItem):
            shape.append(item.axis.size)
        elif isinstance(item, SliceItem):
            shape.append(item.length)
        elif isinstance(item, torch.Tensor) and item.dim():
            if i not in together:
                shape.extend(item.shape)
            elif i == together[0]:
                shape.extend(torch.broadcast_shapes(*(items[t].shape for t in together)))
    return shape


def joint_tensors(items: Sequence[Any]) -> list[int]:
    """Positions of the index tensors that broadcast together; none if each stands for itself."""
    tensors = [i for i, item in enumerate(items) if isinstance(item, torch.Tensor) and item.dim()]
    if len(tensors) < 2 or all(items[i].dim() == 1 for i in tensors):
        return []
    return tensors if tensors == list(range(tensors[0], tensors[-1] + 1)) else []


def _flatten(index: Sequence[Any]) -> list[Any]:
    """The items; the tuple of tiles that `hl.tile([m, n])` yields counts as its tiles."""
    if len(index) == 1 and _is_sequence(index[0]):
        return list(index[0])
    return [i[0] if _is_sequence(i) and len(i) == 1 else i for i in index]


def _is_sequence(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and not isinstance(value, (TileItem, SliceItem))


def expand_ellipsis(items: list[Any], rank: int, span: Span) -> list[Any]:
    """The items with one for each of the `rank` dimensions: `:` where none was given."""
    given = sum(i is not None and i is not Ellipsis for i in items)
    missing = rank - given
    if missing < 0:
        raise exc.RankMismatch(span, expected=rank, got=given)
    dots = [k for k, i in enumerate(items) if i is Ellipsis]
    if len(dots) > 1:
        raise exc.TypeInferenceError(span, detail="an index can only have a single ellipsis")
    at = dots[0] if dots else len(items)
    return [*items[:at], *[slice(None)] * missing, *items[at + len(dots) :]]


def _check_item(ctx: TypeCtx, item: Any, position: int) -> None:
    """Whether something may stand in a subscript; a tensor must hold integers."""
    if item is None or item is Ellipsis or isinstance(item, (TileAxis, TileItem, SliceItem)):
        return
    if isinstance(item, slice):
        for part in (item.start, item.stop, item.step):
            if part is not None and not (is_number(part) and kind_of(part) is int):
                got = f"a slice of {type_name(part)}"
                raise exc.InvalidIndexingType(ctx.item_span(position), got=got)
        return
    if isinstance(item, torch.Tensor):
        if item.dtype is torch.bool:
            span = ctx.item_span(position)
            raise exc.DataDependentOutputShapeNotSupported(span, api="indexing with a bool tensor")
        if item.dtype in _INDEX_DTYPES:
            return
    elif isinstance(item, HostTensor):
        raise exc.HostTensorDirectUsage(ctx.item_span(position), name=item.text)
    elif isinstance(item, (tuple, list)):
        raise exc.OverpackedTile(ctx.item_span(position), count=len(item))
    elif is_number(item) and kind_of(item) is int:
        return
    span = ctx.item_span(position)
    raise exc.InvalidIndexingType(span, got=type_name(item), related=ctx.cause(item))


def _item(ctx: TypeCtx, item: Any, size: Any) -> Any:
    if isinstance(item, TileAxis):
        return TileItem(item) if item.block else item
    if isinstance(item, (TileItem, SliceItem)):
        return item
    if isinstance(item, slice):
        return _slice(item, size)
    if isinstance(item, int) and not isinstance(item, bool):
        return item if item >= 0 else size + item
    if isinstance(item, torch.Tensor):
        return _as_tile_item(ctx.node_of(item)) or item
    return item


def _as_tile_item(node: Any) -> TileItem | None:
    """`tile.index + k` is the contiguous block `tile + k`."""
    if node.op != "call_function":
        return None
    if node.target is tile_index:
        return TileItem(node.args[0])
    if node.target in (_ADD, _SUB):
        inner, shift = node.args[0], node.args[1]
        item = _as_tile_item(inner) if isinstance(inner, torch.fx.Node) else None
        if item is not None and is_number(shift):
            sign = 1 if node.target is _ADD else -1
            return TileItem(item.axis, Number(expr_of(item.shift) + sign * expr_of(shift), int))
    return None


def _slice(item: slice, size: Any) -> SliceItem:
    step = 1 if item.step is None else item.step
    start = _bound(item.start, size, 0)
    stop = _bound(item.stop, size, size)
    return SliceItem(start, (stop - start + step - 1) // step, step)


def _bound(value: Any, size: Any, default: Any) -> Any:
    if value is None:
        return default
    if isinstance(value, int) and value < 0:
        return size + value
    if isinstance(value, int) and isinstance(size, int):
        return min(value, size)
    return value
