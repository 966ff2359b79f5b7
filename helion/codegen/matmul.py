"""Matrix products: `tl.dot`, with zeros where padding would add to a sum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion.codegen import expression as ex
from helion.codegen.expression import Expression
from helion.codegen.reductions import masked
from helion.ir.graph import Node, args_of, value_of

if TYPE_CHECKING:
    from helion.codegen.operations import LoweringContext

aten = torch.ops.aten


def dot(kernel: LoweringContext, node: Node) -> Expression:
    """`hl.dot(mat1, mat2, acc)`."""
    mat1, mat2, acc = args_of(node)[:3]
    return _product(kernel, mat1, mat2, acc, kernel.dtype_of(node), value_of(node).shape)


def matmul(kernel: LoweringContext, node: Node) -> Expression:
    """`mm`, `bmm`: the operands' dtype, accumulated in float32."""
    mat1, mat2 = args_of(node)[:2]
    return _product(kernel, mat1, mat2, None, kernel.dtype_of(node), value_of(node).shape)


def addmm(kernel: LoweringContext, node: Node) -> Expression:
    """`addmm`, `baddbmm`: the dtype of the accumulator."""
    acc, mat1, mat2 = args_of(node)[:3]
    return _product(kernel, mat1, mat2, acc, kernel.dtype_of(node), value_of(node).shape)


def _product(
    kernel: LoweringContext, mat1: Any, mat2: Any, acc: Any, dtype: torch.dtype, sizes: Any
) -> Expression:
    terms = [value_of(mat1).dim() - 1, value_of(mat2).dim() - 2]
    left = masked(kernel, mat1, [terms[0]], 0)
    right = masked(kernel, mat2, [terms[1]], 0)
    integers = kernel.dtype_of(mat1) is torch.int8
    wide = torch.int32 if integers else torch.float32
    args = [left.text, right.text]
    if acc is not None:
        start = kernel.broadcast(ex.cast(kernel.operand(acc), wide), sizes)
        args.append(start.text)
    if kernel.dtype_of(mat1) is torch.float32:
        args.append(f"input_precision={kernel.dot_precision!r}")
    elif integers:
        args.append("out_dtype=tl.int32")
    return ex.cast(Expression(f"tl.dot({', '.join(args)})", wide, tuple(sizes)), dtype)
