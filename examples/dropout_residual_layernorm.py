"""Dropout, residual connection and layer normalization in one pass, and their gradients.

Each block of a transformer ends so: `summed = residual + dropout(x)`, `out = layer_norm(summed)`.
In one kernel it reads two tensors and writes two. No mask is stored: the backward kernel, which
walks over the rows in another way, draws the one of the forward kernel again.

    python examples/dropout_residual_layernorm.py       checks against torch, given the same mask
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.nn.functional as F

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example
from helion.random import bernoulli


@helion.kernel()
def dropout_residual_layernorm_fwd(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    p: float,
    seed: int,
    eps: float = 1e-5,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """`summed = residual + dropout(x)`, and the layer normalization of its rows.

    Args:
        x: floating-point tensor [m, n], of which elements are dropped.
        residual: tensor [m, n] of the same dtype.
        weight: tensor [n], the scale of each column.
        bias: tensor [n], added to each row.
        p: probability of dropping an element, from 0 to 1 inclusive.
        seed: int, or one-element integer tensor on the device; 64 bits.
        eps: added to the variance.

    Returns:
        The result [m, n] and the sum [m, n], in the dtype of `x`; the mean [m] of each row of the
        sum and the reciprocal of its standard deviation [m], float32, for the backward pass.
    """
    m, n = x.size()
    out, summed = torch.empty_like(x), torch.empty_like(x)
    mean = torch.empty([m], dtype=torch.float32, device=x.device)
    rstd = torch.empty([m], dtype=torch.float32, device=x.device)
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    for row in hl.tile(m):
        keep = hl.bernoulli([row, n], 1.0 - p, seed)
        added = torch.where(keep, x[row, :].to(torch.float32) * scale, 0.0)
        # Rounded first: the backward pass reads what was stored.
        total = (residual[row, :].to(torch.float32) + added).to(x.dtype)
        summed[row, :] = total
        values = total.to(torch.float32)
        variance, center = torch.var_mean(values, dim=-1, correction=0)
        rate = torch.rsqrt(variance + eps)
        normal = (values - center[:, None]) * rate[:, None]
        out[row, :] = normal * weight[:].to(torch.float32) + bias[:].to(torch.float32)
        mean[row] = center
        rstd[row] = rate
    return out, summed, mean, rstd


@helion.kernel()
def dropout_residual_layernorm_bwd(
    grad_out: torch.Tensor,
    grad_summed: torch.Tensor,
    summed: torch.Tensor,
    mean: torch.Tensor,
    rstd: torch.Tensor,
    weight: torch.Tensor,
    p: float,
    seed: int,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """The gradients by `x`, `residual`, `weight` and `bias`.

    Args:
        grad_out: the gradient by the result, [m, n].
        grad_summed: the gradient by the sum, where that is used too, [m, n].
        summed: from the forward pass.
        mean: from the forward pass.
        rstd: from the forward pass.
        weight: as in the forward pass.
        p: as in the forward pass.
        seed: as in the forward pass.
    """
    m, n = summed.size()
    grad_x, grad_residual = torch.empty_like(summed), torch.empty_like(summed)
    rows_per_program = hl.register_block_size(m)
    programs = helion.cdiv(m, rows_per_program)
    grad_weight = summed.new_empty([programs, n], dtype=torch.float32)
    grad_bias = summed.new_empty([programs, n], dtype=torch.float32)
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    for rows in hl.tile(m, block_size=rows_per_program):
        column_scale = weight[:].to(torch.float32)
        weight_sum = hl.zeros([n], dtype=torch.float32)
        bias_sum = hl.zeros([n], dtype=torch.float32)
        for row in hl.tile(rows.begin, rows.end):
            grad = grad_out[row, :].to(torch.float32)
            rate = rstd[row][:, None]
            normal = (summed[row, :].to(torch.float32) - mean[row][:, None]) * rate
            weight_sum += (grad * normal).sum(0)
            bias_sum += grad.sum(0)
            grad = grad * column_scale
            along = (grad * normal).mean(-1, keepdim=True)
            grad = (grad - grad.mean(-1, keepdim=True) - normal * along) * rate
            grad = grad + grad_summed[row, :].to(torch.float32)
            grad_residual[row, :] = grad
            keep = hl.bernoulli([row, n], 1.0 - p, seed)
            grad_x[row, :] = torch.where(keep, grad * scale, 0.0)
        grad_weight[rows.id, :] = weight_sum
        grad_bias[rows.id, :] = bias_sum
    return (
        grad_x,
        grad_residual,
        grad_weight.sum(0).to(weight.dtype),
        grad_bias.sum(0).to(weight.dtype),
    )


class DropoutResidualLayerNorm(torch.autograd.Function):
    """`apply(x, residual, weight, bias, p, seed)` gives `out, summed` with gradients."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        residual: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor,
        p: float,
        seed: int,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        out, summed, mean, rstd = dropout_residual_layernorm_fwd(x, residual, weight, bias, p, seed)
        ctx.save_for_backward(summed, mean, rstd, weight)
        ctx.p, ctx.seed = p, seed
        return out, summed

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_out: torch.Tensor, grad_summed: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        grads = dropout_residual_layernorm_bwd(
            grad_out, grad_summed, *ctx.saved_tensors, ctx.p, ctx.seed
        )
        return *grads, None, None


def dropout_residual_layernorm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    p: float,
    seed: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    """`F.layer_norm(summed, ...)` of `summed = residual + dropout(x)`, and `summed`; [m, n]."""
    return DropoutResidualLayerNorm.apply(x, residual, weight, bias, p, seed)


def torch_dropout_residual_layernorm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor,
    p: float,
    seed: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The same by torch: with the mask of our kernel for a seed, else with one of torch's."""
    if seed is None:
        summed = residual + F.dropout(x, p)
    else:
        keep = bernoulli(list(x.shape), 1 - p, seed, device=x.device)
        summed = residual + torch.where(keep, x * (1 / (1 - p)), 0)
    return F.layer_norm(summed, weight.shape, weight, bias), summed


def check(m: int, n: int, dtype: torch.dtype, p: float) -> None:
    shapes = ([m, n], [m, n], [n], [n])
    inputs: Any = [torch.randn(s, device=DEVICE).to(dtype).requires_grad_() for s in shapes]
    # Torch rounds the sum, the normalized sum and its gradients at other places than we do.
    tolerance = 5e-2 if dtype.itemsize < 4 else 1e-4
    assert_close = functools.partial(torch.testing.assert_close, rtol=tolerance, atol=tolerance)
    outs = dropout_residual_layernorm(*inputs, p=p, seed=42)
    expected = torch_dropout_residual_layernorm(*inputs, p=p, seed=42)
    assert_close(outs, expected)
    grads = [torch.randn_like(out) for out in outs]
    found = torch.autograd.grad(outs, inputs, grads)
    assert_close(found, torch.autograd.grad(expected, inputs, grads))
    keep = bernoulli([m, n], 1 - p, 42, device=DEVICE)
    assert not found[0][~keep].any()
    print(f"ok  result, sum and gradients, {[m, n]} {dtype}, {(~keep).sum():,} dropped")


def main() -> None:
    check(64, 200, torch.float32, p=0.25)
    check(33, 128, torch.bfloat16, p=0.5)
    if DEVICE.type == "cuda":
        shapes = ([16384, 8192], [16384, 8192], [8192], [8192])
        inputs: Any = [torch.randn(s, device=DEVICE, dtype=torch.bfloat16) for s in shapes]
        # With p = 0, where torch's own dropout computes the same.
        run_example(
            lambda *args: dropout_residual_layernorm(*args, seed=42),
            torch_dropout_residual_layernorm,
            (*inputs, 0.0),
        )


if __name__ == "__main__":
    main()
