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

FP8 = (torch.float8_e4m3fn, torch.float8_e5m2)
_INPUTS = (torch.float16, torch.bfloat16, torch.float32, torch.int8, *FP8)


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
            raise exc.InvalidDotDtype(ctx.span(name), detail=f"`{type_name(value)}`")
        if value.dtype not in _INPUTS:
            raise exc.InvalidDotDtype(ctx.span(name), detail=str(value.dtype))
    if not _mix(mat1.dtype, mat2.dtype):
        detail = f"{mat1.dtype} and {mat2.dtype} together"
        raise exc.InvalidDotDtype(ctx.span(), detail=detail)
    shape = _product_shape(ctx, mat1, mat2)
    if acc is not None:
        _check_accumulator(ctx, acc, shape, mat1.dtype)
    if out_dtype is not None and not isinstance(out_dtype, torch.dtype):
        raise exc.InvalidDotDtype(ctx.span("out_dtype"), detail=f"out_dtype={out_dtype!r}")
    dtype = acc.dtype if acc is not None else out_dtype
    dtype = dtype or (torch.int32 if mat1.dtype is torch.int8 else torch.float32)
    return ctx.record(dot, (mat1, mat2, acc), ctx.fake(shape, dtype))


def _mix(a: torch.dtype, b: torch.dtype) -> bool:
    """Whether operands of two dtypes have a product: both float8, or both wider floats."""
    if a == b:
        return True
    return (a in FP8) == (b in FP8) and torch.int8 not in (a, b)


def _check_accumulator(ctx: TypeCtx, acc: Any, shape: Sequence[Any], operand: torch.dtype) -> None:
    if not ctx.is_device(acc):
        raise exc.InvalidDotDtype(ctx.span("acc"), detail=f"`{type_name(acc)}` as `acc`")
    legal = (torch.int32,) if operand is torch.int8 else (torch.float32, torch.float16)
    if acc.dtype not in legal:
        detail = f"an accumulator of {acc.dtype} for operands of {operand}"
        raise exc.InvalidDotDtype(ctx.span("acc"), detail=detail)
    if not _same_sizes(acc.shape, shape):
        detail = f"acc has shape {ctx.show(acc.shape)}, the product {ctx.show(shape)}"
        raise exc.InvalidDotShape(ctx.span("acc"), detail=detail)


def _product_shape(ctx: TypeCtx, mat1: Any, mat2: Any) -> list[Any]:
    if mat1.dim() not in (2, 3) or mat2.dim() not in (2, 3):
        raise exc.InvalidDotShape(ctx.span(), detail="operands have 2 or 3 dimensions")
    if not same(mat1.shape[-1], mat2.shape[-2]):
        detail = f"{ctx.show(mat1.shape)} and {ctx.show(mat2.shape)} do not fit together"
        raise exc.InvalidDotShape(ctx.span(), detail=detail)
    batches = [m.shape[0] for m in (mat1, mat2) if m.dim() == 3]
    if len(batches) == 2 and not same(*batches) and 1 not in map(known_int, batches):
        lhs, rhs = (ctx.show([b])[1:-1] for b in batches)
        raise exc.DotBatchDimensionMismatch(ctx.span(), lhs=lhs, rhs=rhs)
    batch = [next((b for b in batches if known_int(b) != 1), 1)] if batches else []
    return [*batch, mat1.shape[-2], mat2.shape[-1]]


def _same_sizes(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))


# Every node that is a product of matrices.
PRODUCTS = frozenset(
    {
        dot,
        torch.ops.aten.mm.default,
        torch.ops.aten.bmm.default,
        torch.ops.aten.addmm.default,
        torch.ops.aten.baddbmm.default,
    }
)


@dot.reference
def _(mode: EagerMode, mat1: Any, mat2: Any, acc: Any, out_dtype: Any) -> torch.Tensor:
    del mode
    product = _multiply(mat1, mat2)
    if acc is not None:
        return (acc.to(product.dtype) + product).to(acc.dtype)
    return product.to(out_dtype or product.dtype)


def _multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """A product in the dtype that it is accumulated in."""
    if a.is_floating_point():
        wide = torch.float64 if a.dtype is torch.float64 else torch.float32
        return torch.matmul(a.to(wide), b.to(wide))
    # Torch multiplies matrices of integers on the CPU only.
    wide = torch.int64 if a.itemsize == 8 else torch.int32
    return torch.matmul(a.to("cpu", wide), b.to("cpu", wide)).to(a.device)


def _add_product(acc: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1) -> torch.Tensor:
    """`torch.addmm`, `torch.baddbmm`: the accumulator may be wider than the operands."""
    return (beta * acc.to(torch.float64) + alpha * _multiply(a, b)).to(acc.dtype)


def _widened(a: Any, b: Any, out_dtype: torch.dtype | None = None) -> torch.Tensor:
    """`torch.mm`, `torch.bmm` with `out_dtype`, which torch has on GPUs only."""
    return _multiply(a, b).to(out_dtype or a.dtype)


def _matmul(a: Any, other: Any) -> torch.Tensor:
    """`torch.matmul`, of integers too."""
    return _multiply(a, other).to(a.dtype)


# Torch's products as kernels have them, for the eager mode.
EAGER_PRODUCTS = {
    torch.addmm: _add_product,
    torch.baddbmm: _add_product,
    torch.Tensor.addmm: _add_product,
    torch.Tensor.baddbmm: _add_product,
    torch.mm: _widened,
    torch.bmm: _widened,
    torch.Tensor.mm: _widened,
    torch.Tensor.bmm: _widened,
    torch.matmul: _matmul,
    torch.Tensor.matmul: _matmul,
}
