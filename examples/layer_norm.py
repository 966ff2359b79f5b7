"""Layer normalization with its gradients, and with an optional bias.

The backward pass shows how to sum over rows without atomics: each program adds up its share of the
rows in registers, and writes one row of partial sums, indexed by `tile.id`.

    python examples/layer_norm.py       checks against torch; on a GPU it also compares the speed
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.nn.functional as F

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example


@helion.kernel()
def layer_norm_fwd(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, eps: float = 1e-5
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normalize each row of `x` to mean 0 and variance 1, then scale and shift its columns.

    Args:
        x: floating-point tensor [m, n].
        weight: tensor [n].
        bias: tensor [n]; None adds nothing.
        eps: added to the variance.

    Returns:
        The result [m, n] in the dtype of `x`; the mean [m] of each row and the reciprocal of its
        standard deviation [m], float32, for the backward pass.
    """
    m, n = x.size()
    assert weight.size(0) == n
    assert bias is None or bias.size(0) == n
    out = torch.empty_like(x)
    mean = torch.empty([m], dtype=torch.float32, device=x.device)
    rstd = torch.empty([m], dtype=torch.float32, device=x.device)
    for row in hl.tile(m):
        values = x[row, :].to(torch.float32)
        variance, center = torch.var_mean(values, dim=-1, correction=0)
        scale = torch.rsqrt(variance + eps)
        result = (values - center[:, None]) * scale[:, None] * weight[:].to(torch.float32)
        if bias is not None:
            result = result + bias[:].to(torch.float32)
        out[row, :] = result
        mean[row] = center
        rstd[row] = scale
    return out, mean, rstd


@helion.kernel()
def layer_norm_bwd(
    grad_out: torch.Tensor,
    x: torch.Tensor,
    mean: torch.Tensor,
    rstd: torch.Tensor,
    weight: torch.Tensor,
    has_bias: hl.constexpr,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """The gradients by `x`, `weight` and `bias`, given that by the result.

    Args:
        grad_out: tensor [m, n].
        x: as in the forward pass.
        mean: from the forward pass.
        rstd: from the forward pass.
        weight: as in the forward pass.
        has_bias: whether there was a bias; if not, its gradient is None.
    """
    m, n = x.size()
    assert weight.size(0) == n
    assert grad_out.size() == x.size()
    grad_x = torch.empty_like(x)
    rows_per_program = hl.register_block_size(m)
    programs = helion.cdiv(m, rows_per_program)
    grad_weight = x.new_empty([programs, n], dtype=torch.float32)
    grad_bias = x.new_empty([programs, n], dtype=torch.float32) if has_bias else None
    for rows in hl.tile(m, block_size=rows_per_program):
        column_scale = weight[:].to(torch.float32)
        weight_sum = hl.zeros([n], dtype=torch.float32)
        bias_sum = hl.zeros([n], dtype=torch.float32)
        for row in hl.tile(rows.begin, rows.end):
            grad = grad_out[row, :].to(torch.float32)
            scale = rstd[row][:, None]
            normal = (x[row, :].to(torch.float32) - mean[row][:, None]) * scale
            weight_sum += (grad * normal).sum(0)
            bias_sum += grad.sum(0)
            grad = grad * column_scale
            along = (grad * normal).mean(-1, keepdim=True)
            grad_x[row, :] = (grad - grad.mean(-1, keepdim=True) - normal * along) * scale
        grad_weight[rows.id, :] = weight_sum
        if grad_bias is not None:
            grad_bias[rows.id, :] = bias_sum
    grad_weight = grad_weight.sum(0).to(weight.dtype)
    if grad_bias is not None:
        grad_bias = grad_bias.sum(0).to(weight.dtype)
    return grad_x, grad_weight, grad_bias


class LayerNormFunction(torch.autograd.Function):
    """`apply(x, weight, bias, eps)` is layer normalization of the rows of `x` with gradients."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, eps: float
    ) -> torch.Tensor:
        out, mean, rstd = layer_norm_fwd(x, weight, bias, eps)
        ctx.save_for_backward(x, mean, rstd, weight)
        ctx.has_bias = bias is not None
        return out

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_out: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        return *layer_norm_bwd(grad_out, *ctx.saved_tensors, ctx.has_bias), None


def layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, eps: float = 1e-5
) -> torch.Tensor:
    """`F.layer_norm(x, weight.shape, weight, bias, eps)` of a tensor [m, n]."""
    return LayerNormFunction.apply(x, weight, bias, eps)


def torch_layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, eps: float = 1e-5
) -> torch.Tensor:
    return F.layer_norm(x, weight.shape, weight, bias, eps)


def check(m: int, n: int, dtype: torch.dtype, has_bias: bool) -> None:
    x = torch.randn(m, n, device=DEVICE, dtype=dtype, requires_grad=True)
    columns = torch.randn(1 + has_bias, n, device=DEVICE, dtype=dtype).unbind()
    inputs: tuple[Any, ...] = (x, *(column.clone().requires_grad_() for column in columns))
    # Torch rounds at other places than we do.
    tolerance = 2e-2 if dtype.itemsize < 4 else 1e-4
    assert_close = functools.partial(torch.testing.assert_close, rtol=tolerance, atol=tolerance)
    out, expected = layer_norm(*inputs), torch_layer_norm(*inputs)
    assert_close(out, expected)
    grad_out = torch.randn_like(out)
    assert_close(
        torch.autograd.grad(out, inputs, grad_out),
        torch.autograd.grad(expected, inputs, grad_out),
    )
    print(f"ok  layer_norm and its gradients, {[m, n]} {dtype}, bias: {has_bias}")


def main() -> None:
    check(64, 200, torch.float32, has_bias=True)
    check(33, 100, torch.float16, has_bias=True)
    check(20, 64, torch.float32, has_bias=False)
    if DEVICE.type == "cuda":
        x = torch.randn(8192, 4096, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)
        weight, bias = torch.randn(2, 4096, device=DEVICE, dtype=torch.bfloat16).unbind()
        args = (x, weight.clone().requires_grad_(), bias.clone().requires_grad_())
        run_example(layer_norm, torch_layer_norm, args)
        run_example(layer_norm, torch_layer_norm, args, atol=1, bwd=True)


if __name__ == "__main__":
    main()
