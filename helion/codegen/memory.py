"""Addresses and masks of loads and stores."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch

from helion.codegen import expression as ex
from helion.codegen.expression import Expression, infix
from helion.codegen.masks import mask_of
from helion.ir.graph import Node, value_of
from helion.ir.symbols import Number, expr_of, known_int
from helion.ir.tiles import HostTensor, SliceItem, TileItem
from helion.language.indexing import joint_tensors, result_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    import sympy

    from helion.codegen.kernel import Kernel


@dataclasses.dataclass(frozen=True)
class Access:
    """Where a load or store goes: pointers, and which of them are real."""

    pointer: Expression
    mask: Expression | None


def access(kernel: Kernel, target: HostTensor, items: Sequence[Any], extra: Any) -> Access:
    """The address of each element, and the mask of those inside their range."""
    values = [value_of(i) if isinstance(i, Node) else i for i in items]
    rank = len(result_shape(values))
    offset: Expression | None = None
    mask: Expression | None = None
    dim = 0
    for place, index, inside in _items(kernel, items, values, rank, target.fake):
        stride = _stride(target.fake, dim) if place else 0
        dim += 1 if place else 0
        if index is not None and index.text != "0" and known_int(stride) != 0:
            term = index if known_int(stride) == 1 else _times(kernel, index, stride)
            offset = term if offset is None else infix("+", offset, term, ex.SUM, term.dtype)
        if inside is not None:
            mask = _both(mask, inside)
    if extra is not None:
        mask = _both(mask, kernel.operand(extra))
    if kernel.flat is not None:
        offset = kernel.flat.offset(kernel, target, items) or offset
    base = Expression(kernel.tensor(target), torch.int64)
    pointer = base if offset is None else _pointer(base, kernel.shared(offset, "offset"))
    return Access(pointer, None if mask is None else kernel.shared(mask, "mask"))


def _stride(tensor: torch.Tensor, dim: int) -> Any:
    """A stride. Torch's `max(1, n)` keeps strides of empty tensors from being 0: none is read."""
    stride = expr_of(tensor.stride(dim))
    size: Any = stride.replace(_at_least_one, lambda e: next(a for a in e.args if a != 1))
    return Number(size, int)


def _at_least_one(expr: sympy.Basic) -> bool:
    return type(expr).__name__ == "Max" and len(expr.args) == 2 and 1 in expr.args


def _pointer(base: Expression, offset: Expression) -> Expression:
    # `x + (a + b)`, and not `x + a + b`: sums of integers are cheaper than sums of pointers.
    inner = offset.text if offset.binds > ex.SUM or not offset.shape else f"({offset.text})"
    if offset.binds >= ex.ATOM or offset.binds == ex.PRODUCT:
        inner = offset.text
    return Expression(f"{base.text} + {inner}", torch.int64, offset.shape, ex.SUM)


def _times(kernel: Kernel, index: Expression, stride: Any) -> Expression:
    return infix("*", index, kernel.number(stride), ex.PRODUCT, index.dtype)


def _both(a: Expression | None, b: Expression) -> Expression:
    return b if a is None or a.text == b.text else infix("&", a, b, ex.BIT_AND, torch.bool)


def _items(
    kernel: Kernel, items: Sequence[Any], values: Sequence[Any], rank: int, tensor: torch.Tensor
) -> Any:
    """For each item: whether it consumes a dimension, its index, and its mask."""
    at = 0
    dim = 0
    together = joint_tensors(values)
    joint = result_shape([values[i] for i in together])
    joint_at = 0
    for i, (item, value) in enumerate(zip(items, values, strict=True)):
        if item is None:
            at += 1
            yield False, None, None
            continue
        size = tensor.shape[dim]
        dim += 1
        if isinstance(item, TileItem):
            yield True, *_tile(kernel, item, at, rank, size)
            at += 1
        elif isinstance(item, SliceItem):
            yield True, *_slice(kernel, item, at, rank)
            at += 1
        elif i in together:
            if i == together[0]:
                joint_at, at = at, at + len(joint)
            yield True, *_gather(kernel, item, value, joint_at, len(joint), rank)
        elif isinstance(value, torch.Tensor) and value.dim():
            yield True, *_gather(kernel, item, value, at, value.dim(), rank)
            at += value.dim()
        else:
            yield True, kernel.operand(item), None


def _tile(
    kernel: Kernel, item: TileItem, at: int, rank: int, size: Any
) -> tuple[Expression | None, Expression | None]:
    if known_int(size) == 1 and known_int(item.axis.end) != 1:
        # The one element stands for all that the tile covers.
        return None, None
    index = kernel.tile_index(item.axis)
    mask = kernel.tile_mask(item.axis)
    spread = kernel.unsqueeze(index, at, rank)
    inside = None if mask is None else kernel.unsqueeze(mask, at, rank)
    if expr_of(item.shift) != 0:
        back = (known_int(item.shift) or 0) < 0
        distance = -expr_of(item.shift) if back else expr_of(item.shift)
        by = kernel.number(Number(distance, int))
        spread = infix("-" if back else "+", spread, by, ex.SUM, spread.dtype)
        for bound in _bounds(kernel, item, spread, size):
            inside = _both(inside, bound)
    return spread, inside


def _bounds(kernel: Kernel, item: TileItem, index: Expression, size: Any) -> list[Expression]:
    """What keeps a shifted tile inside of its tensor, where that is not known."""
    begin, end, shift = (known_int(v) for v in (item.axis.begin, item.axis.end, item.shift))
    bounds: list[Expression] = []
    if begin is None or shift is None or begin + shift < 0:
        bounds.append(infix(">=", index, ex.literal(0), ex.COMPARE, torch.bool))
    length = known_int(size)
    if end is None or shift is None or length is None or end + shift > length:
        bounds.append(infix("<", index, kernel.number(size), ex.COMPARE, torch.bool))
    return bounds


def _slice(
    kernel: Kernel, item: SliceItem, at: int, rank: int
) -> tuple[Expression, Expression | None]:
    length = known_int(item.length)
    if length == 1:
        return kernel.number(item.start), None
    index, mask = kernel.whole_axis(item.length)
    spread = kernel.unsqueeze(index, at, rank)
    if item.step != 1:
        spread = infix("*", spread, ex.literal(item.step), ex.PRODUCT, spread.dtype)
    if not (isinstance(item.start, int) and item.start == 0):
        spread = infix("+", spread, kernel.number(item.start), ex.SUM, spread.dtype)
    return spread, None if mask is None else kernel.unsqueeze(mask, at, rank)


def _gather(
    kernel: Kernel, node: Any, value: torch.Tensor, at: int, width: int, rank: int
) -> tuple[Expression, Expression | None]:
    """An index tensor, right-aligned in the `width` dimensions that begin at `at`."""
    lead = at + width - value.dim()
    index = kernel.place(kernel.operand(node), value.dim(), lead, rank)
    mask = mask_of(kernel, node)
    return index, None if mask is None else kernel.place(mask, value.dim(), lead, rank)


def stored_value(kernel: Kernel, value: Any, pointer: Expression, dtype: torch.dtype) -> Expression:
    """A value as it is written through a pointer: its dtype, and no more dimensions."""
    result = kernel.operand(value)
    if result.dtype is not None and result.dtype is not dtype:
        result = ex.cast(result, dtype)
    if len(result.shape) > len(pointer.shape):
        shape = ", ".join(kernel.size_text(s) for s in pointer.shape)
        if not shape:
            return Expression(f"tl.sum(tl.reshape({result.text}, [1]), 0)", result.dtype)
        return Expression(f"tl.reshape({result.text}, [{shape}])", result.dtype, pointer.shape)
    if result.shape and len(result.shape) < len(pointer.shape):
        at = len(pointer.shape) - len(result.shape)
        return kernel.place(result, len(result.shape), at, len(pointer.shape))
    return result
