"""Matrix products: `tl.dot`, with zeros where padding would add to a sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion.codegen import expression as ex
from helion.codegen.expression import Expression
from helion.codegen.lanes import product_operands
from helion.codegen.reductions import masked
from helion.ir.graph import Node, value_of
from helion.language.matmul import FP8

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.codegen.operations import LoweringContext

# What tensor cores multiply, and the fewest terms of a sum that Triton takes.
_TERMS = {
    torch.float64: 16,
    torch.float32: 16,
    torch.float16: 16,
    torch.bfloat16: 16,
    torch.int8: 32,
    **dict.fromkeys(FP8, 32),
}


def product(kernel: LoweringContext, node: Node) -> Expression:
    """`hl.dot`, and torch's products with and without an accumulator."""
    mat1, mat2, acc = product_operands(node)
    sizes, dtype = list(value_of(node).shape), kernel.dtype_of(node)
    left = masked(kernel, mat1, [value_of(mat1).dim() - 1], 0)
    right = masked(kernel, mat2, [value_of(mat2).dim() - 2], 0)
    start = None if acc is None else kernel.operand(acc)
    batch, matrix = sizes[:-2], sizes[-2:]
    if batch and kernel.known_size(batch[0]) == 1:
        # A batch of one is no batch: the fastest instructions multiply two matrices.
        left, right = (_without_batch(kernel, v) for v in (left, right))
        start = start and _without_batch(kernel, _full(kernel, start, sizes))
        flat = _multiply(kernel, left, right, start, matrix, dtype)
        # Not `[None, :, :]`: that would move a sum between threads before and after each product.
        return _reshaped(kernel, flat, sizes)
    if batch:
        left = _full(kernel, left, [*batch, *left.shape[-2:]])
        right = _full(kernel, right, [*batch, *right.shape[-2:]])
    return _multiply(kernel, left, right, start, sizes, dtype)


def _without_batch(kernel: LoweringContext, value: Expression) -> Expression:
    if len(value.shape) == 2:
        return value
    return _reshaped(kernel, value, value.shape[1:])


def _reshaped(kernel: LoweringContext, value: Expression, sizes: Sequence[Any]) -> Expression:
    text = ", ".join(map(kernel.size_text, sizes))
    return Expression(f"tl.reshape({value.text}, [{text}])", value.dtype, tuple(sizes))


def _full(kernel: LoweringContext, value: Expression, sizes: Sequence[Any]) -> Expression:
    """A value with all dimensions of a product; new ones come first."""
    width = len(value.shape)
    value = kernel.place(value, width, len(sizes) - width, len(sizes))
    return kernel.broadcast(value, sizes)


def _multiply(
    kernel: LoweringContext,
    left: Expression,
    right: Expression,
    start: Expression | None,
    sizes: Sequence[Any],
    dtype: torch.dtype,
) -> Expression:
    operand = _common(left.dtype, right.dtype)
    if operand not in FP8:
        left, right = ex.cast(left, operand), ex.cast(right, operand)
    wide = _wide(operand)
    if start is not None:
        start = _full(kernel, ex.cast(start, wide), sizes)
    if operand not in _TERMS:
        return ex.cast(_by_hand(left, right, start, wide, sizes), dtype)
    left, right = _with_enough_terms(kernel, left, right, _TERMS[operand])
    args = [left.text, right.text]
    if start is not None:
        args.append(start.text)
    if operand is torch.float32:
        args.append(f"input_precision={kernel.dot_precision!r}")
    if wide is not torch.float32:
        args.append(f"out_dtype={ex.TRITON_DTYPES[wide]}")
    return ex.cast(Expression(f"tl.dot({', '.join(args)})", wide, tuple(sizes)), dtype)


def _common(a: torch.dtype | None, b: torch.dtype | None) -> torch.dtype:
    assert a is not None
    assert b is not None
    return a if a == b or a in FP8 else torch.promote_types(a, b)


def _wide(operand: torch.dtype) -> torch.dtype:
    """The dtype that products of these operands are added in."""
    if operand is torch.float64 or (not operand.is_floating_point and operand.itemsize == 8):
        return operand
    return torch.float32 if operand.is_floating_point else torch.int32


def _with_enough_terms(
    kernel: LoweringContext, left: Expression, right: Expression, terms: int
) -> tuple[Expression, Expression]:
    """Operands with zeros between their terms, where they may have fewer than Triton takes."""
    length = kernel.size_text(left.shape[-1])
    known = int(length) if length.isdigit() else kernel.known_size(left.shape[-1])
    if known is not None and known >= terms:
        return left, right
    names = [kernel.names.fresh(wish) for wish in ("left", "right")]
    function = "triton_helpers.with_terms"
    kernel.body.line(f"{', '.join(names)} = {function}({left.text}, {right.text}, {terms})")
    return tuple(  # pyright: ignore[reportReturnType]
        Expression(name, value.dtype, value.shape)
        for name, value in zip(names, (left, right), strict=True)
    )


def _by_hand(
    left: Expression,
    right: Expression,
    start: Expression | None,
    wide: torch.dtype,
    sizes: Sequence[Any],
) -> Expression:
    """A product that tensor cores do not know, as a sum of products."""
    before = ":, " * (len(sizes) - 2)
    left, right = ex.cast(left, wide), ex.cast(right, wide)
    a = f"{left.within(ex.ATOM)}[{before}:, :, None]"
    b = f"{right.within(ex.ATOM)}[{before}None, :, :]"
    result = Expression(f"tl.sum({a} * {b}, {len(sizes) - 1})", wide, tuple(sizes))
    return result if start is None else ex.infix("+", start, result, ex.SUM, wide)
