"""Atomic operations: the addresses and masks of a store, and one step at each of them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch

from helion.codegen import expression as ex
from helion.codegen.expression import Expression
from helion.codegen.memory import Access, access, stored_value
from helion.ir.graph import Node, args_of, value_of
from helion.language import atomics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.codegen.operations import LoweringContext
    from helion.language._op import Op


def atomic(kernel: LoweringContext, node: Node) -> Expression | None:
    """Emit an atomic operation where it stands; its value has a name if anyone reads it."""
    op: Any = node.target
    target, items, values, sem = args_of(node)
    sizes = value_of(node).shape
    dtype = target.fake.dtype
    where = access(kernel, target, items, None)
    where = dataclasses.replace(where, pointer=_full(kernel, where.pointer, sizes))
    operands = [stored_value(kernel, v, where.pointer, dtype) for v in values]
    if op is atomics.atomic_cas:
        operands = [_operand(kernel, o, dtype, sizes) for o in operands]
        where, operands = _without_mask(kernel, where, operands, kernel.tensor(target))
    args = [where.pointer.text, *(o.text for o in operands)]
    if where.mask is not None:
        args.append(where.mask.text)
    return _emit(kernel, node, op, [*args, f"sem={sem!r}"], dtype, where.pointer.shape)


def _emit(
    kernel: LoweringContext,
    node: Node,
    op: Op,
    args: Sequence[str],
    dtype: torch.dtype,
    shape: tuple[Any, ...],
) -> Expression | None:
    text = f"tl.{op.name}({', '.join(args)})"
    if not node.users:
        kernel.body.line(text)
        return None
    return kernel.bind(node, Expression(text, dtype, shape), "old")


def _full(kernel: LoweringContext, value: Expression, sizes: Sequence[Any]) -> Expression:
    """A block of the index's shape: each lane is a step of its own, also at one address."""
    if tuple(value.shape) == tuple(sizes):
        return value
    shape = ", ".join(kernel.size_text(s) for s in sizes)
    return Expression(f"tl.broadcast_to({value.text}, [{shape}])", value.dtype, tuple(sizes))


def _operand(
    kernel: LoweringContext, value: Expression, dtype: torch.dtype, sizes: Sequence[Any]
) -> Expression:
    """An operand of `tl.atomic_cas`, which converts and broadcasts nothing."""
    if value.dtype is None and not sizes and dtype is torch.int32:
        return value  # a literal is an int32 by itself
    if value.dtype is None and sizes:
        shape = ", ".join(kernel.size_text(s) for s in sizes)
        text = f"tl.full([{shape}], {value.text}, {ex.TRITON_DTYPES[dtype]})"
        return Expression(text, dtype, tuple(sizes))
    return _full(kernel, ex.cast(value, dtype), sizes)


def _without_mask(
    kernel: LoweringContext, where: Access, operands: Sequence[Expression], first: str
) -> tuple[Access, list[Expression]]:
    """`tl.atomic_cas` takes no mask: lanes outside go to the first element, and leave it alone.

    They expect the value that they would write, so that whatever is there stays.
    """
    if where.mask is None:
        return where, list(operands)
    inside = _named(kernel, "inside", where.mask)
    new = _named(kernel, "new", operands[1])
    expected = ex.call("tl.where", [inside, operands[0], new], new.dtype)
    address = Expression(first, where.pointer.dtype)
    address = ex.call("tl.where", [inside, where.pointer, address], where.pointer.dtype)
    expected, address = _named(kernel, "expected", expected), _named(kernel, "address", address)
    return Access(address, None), [expected, new]


def _named(kernel: LoweringContext, wish: str, value: Expression) -> Expression:
    """The value under a name."""
    if value.text.isidentifier():
        return value
    name = kernel.names.fresh(wish)
    kernel.body.line(f"{name} = {value.text}")
    return dataclasses.replace(value, text=name, binds=ex.ATOM)
