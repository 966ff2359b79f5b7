"""Matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.ir.describe import type_name
from helion.ir.symbols import known_int, same
from helion.language._op import TypeCtx, op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.language._eager import EagerMode

_FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)
_INPUTS = (torch.float16, torch.bfloat16, torch.float32, torch.int8, *_FP8)
# Tensor cores multiply blocks of at least this many rows, columns and terms.
MINIMUM_BLOCK = 16


@op
def dot(
    mat1: torch.Tensor,
    mat2: torch.Tensor,
    acc: torch.Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """A matrix product of tiles, accumulated in float32 (int32 for int8).

    Args:
        mat1: [m, k] or [batch, m, k]; float16, bfloat16, float32, int8 or float8.
        mat2: [k, n] or [batch, k, n].
        acc: added to the product; its shape and dtype are the result's.
        out_dtype: dtype of the result without `acc`; float32, or int32 for int8.

    Returns:
        [m, n] or [batch, m, n].

    Raises:
        InvalidDotDtype: a dtype that tensor cores do not multiply.
        InvalidDotShape: the shapes do not fit.
    """
    raise exc.NotInsideKernel(api="hl.dot")


@dot.type_rule
def _(ctx: TypeCtx, mat1: Any, mat2: Any, acc: Any = None, out_dtype: Any = None) -> torch.Tensor:
    for name, value in (("mat1", mat1), ("mat2", mat2)):
        if not ctx.is_device(value):
            raise exc.InvalidDotDtype(ctx.span(name), detail=f"a `{type_name(value)}`")
        if value.dtype not in _INPUTS:
            raise exc.InvalidDotDtype(ctx.span(name), detail=str(value.dtype))
    shape = _product_shape(ctx, mat1, mat2)
    integers = mat1.dtype is torch.int8
    dtype = acc.dtype if acc is not None else out_dtype
    dtype = dtype or (torch.int32 if integers else torch.float32)
    if acc is not None and not _same_sizes(acc.shape, shape):
        detail = f"acc has shape {ctx.show(acc.shape)}, the product {ctx.show(shape)}"
        raise exc.InvalidDotShape(ctx.span("acc"), detail=detail)
    return ctx.record(dot, (mat1, mat2, acc), ctx.fake(shape, dtype))


def _product_shape(ctx: TypeCtx, mat1: Any, mat2: Any) -> list[Any]:
    if mat1.dim() not in (2, 3) or mat2.dim() not in (2, 3):
        raise exc.InvalidDotShape(ctx.span(), detail="operands have 2 or 3 dimensions")
    if not same(mat1.shape[-1], mat2.shape[-2]):
        detail = f"{ctx.show(mat1.shape)} and {ctx.show(mat2.shape)} do not fit together"
        raise exc.InvalidDotShape(ctx.span(), detail=detail)
    batches = [m.shape[0] for m in (mat1, mat2) if m.dim() == 3]
    if len(batches) == 2 and not same(*batches) and 1 not in map(known_int, batches):
        lhs, rhs = ctx.show(batches[:1]), ctx.show(batches[1:])
        raise exc.DotBatchDimensionMismatch(ctx.span(), lhs=lhs, rhs=rhs)
    batch = [next((b for b in batches if known_int(b) != 1), 1)] if batches else []
    return [*batch, mat1.shape[-2], mat2.shape[-1]]


def _same_sizes(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))


@dot.reference
def _(mode: EagerMode, mat1: Any, mat2: Any, acc: Any, out_dtype: Any) -> torch.Tensor:
    del mode
    wide, exact = torch.float32, torch.float32
    if mat1.dtype is torch.int8:
        wide, exact = torch.int32, torch.float64  # torch multiplies no integer matrices on a GPU
    product = torch.matmul(mat1.to(exact), mat2.to(exact)).to(wide)
    if acc is not None:
        return (acc.to(wide) + product).to(acc.dtype)
    return product.to(out_dtype or wide)
