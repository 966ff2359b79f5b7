"""Masks: the bounds that the lanes of a value have, as Triton expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.codegen import expression as ex
from helion.codegen.expression import Expression
from helion.codegen.lanes import InParts, InSize, InTile, mentions
from helion.ir.graph import Node, value_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from helion.codegen.kernel import Kernel
    from helion.codegen.lanes import Bound
    from helion.ir.tiles import TileAxis


def mask_of(kernel: Kernel, node: Node, dims: Iterable[int] | None = None) -> Expression | None:
    """Which elements of a value are real, along some or all of its dimensions; None if all are."""
    lanes = kernel.lanes_of(node)
    chosen = range(len(lanes)) if dims is None else dims
    return _together(kernel, [lanes[d] if d in chosen else frozenset() for d in range(len(lanes))])


def mask_of_axes(kernel: Kernel, node: Node, axes: Sequence[TileAxis]) -> Expression | None:
    """Which elements of a value are inside the ranges of some loops; None if all are."""
    lanes = kernel.lanes_of(node)
    return _together(
        kernel, [frozenset(b for b in bounds if mentions(b, axes)) for bounds in lanes]
    )


def _together(kernel: Kernel, lanes: Sequence[frozenset[Bound]]) -> Expression | None:
    mask: Expression | None = None
    for dim, bounds in enumerate(lanes):
        for row in sorted(filter(None, (_row(kernel, b) for b in bounds)), key=lambda r: r.text):
            inside = kernel.place(row, 1, dim, len(lanes))
            mask = inside if mask is None else ex.infix("&", mask, inside, ex.BIT_AND, torch.bool)
    return mask


def _row(kernel: Kernel, bound: Bound) -> Expression | None:
    """The lanes of one dimension that are inside a bound."""
    if isinstance(bound, InTile):
        return kernel.tile_mask(bound.axis) if bound.axis in kernel.axes else None
    if isinstance(bound, InSize):
        return kernel.whole_axis(bound.size)[1]
    if isinstance(bound, InParts):
        return _merged(kernel, bound)
    detail = "a reduction over a part of a tile that a reshape has split"
    raise exc.BackendUnsupported(backend="triton", detail=detail)


def _merged(kernel: Kernel, bound: InParts) -> Expression | None:
    mask = _together(kernel, bound.parts)
    if mask is None:
        return None
    mask = kernel.broadcast(mask, bound.sizes)
    text = f"tl.reshape({mask.text}, [{kernel.product_text(bound.sizes)}])"
    name = kernel.names.fresh("inside")
    kernel.body.line(f"{name} = {text}")
    return Expression(name, torch.bool, (None,))


def count(kernel: Kernel, node: Node, dims: Sequence[int]) -> Expression:
    """How many real elements of a value share one element of a reduction over `dims`."""
    lanes, sizes = kernel.lanes_of(node), value_of(node).shape
    factors = [_length(kernel, lanes[d], sizes[d]) for d in dims]
    factors = [f for f in factors if f.text != "1"] or [ex.literal(1)]
    result = factors[0]
    for factor in factors[1:]:
        result = ex.infix("*", result, factor, ex.PRODUCT, None)
    return result


def _length(kernel: Kernel, bounds: frozenset[Bound], size: Any) -> Expression:
    lengths = [_bound_length(kernel, b) for b in bounds]
    if not lengths:
        return kernel.number(size)
    lengths.sort(key=lambda e: e.text)
    shortest = lengths[0]
    for other in lengths[1:]:
        shortest = ex.call("tl.minimum", [shortest, other], shortest.dtype)
    return shortest


def _bound_length(kernel: Kernel, bound: Bound) -> Expression:
    if isinstance(bound, InTile):
        return kernel.tile_length(bound.axis)
    if isinstance(bound, InSize):
        return kernel.number(bound.size)
    if isinstance(bound, InParts):
        lengths = [_length(kernel, p, s) for p, s in zip(bound.parts, bound.sizes, strict=True)]
        result = lengths[0]
        for factor in lengths[1:]:
            result = ex.infix("*", result, factor, ex.PRODUCT, None)
        return result
    detail = "a reduction over a part of a tile that a reshape has split"
    raise exc.BackendUnsupported(backend="triton", detail=detail)
