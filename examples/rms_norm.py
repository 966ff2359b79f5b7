"""Normalization by the root mean square of each row, with its gradients.

The backward pass shows how to sum over rows without atomics: each program adds up its share of the
rows in registers, and writes one row of partial sums, indexed by `tile.id`.

    python examples/rms_norm.py     checks against torch; on a GPU it also compares the speed

Source: Zhang and Sennrich, "Root mean square layer normalization", 2019.
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
def rms_norm_fwd(
    x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-5
) -> tuple[torch.Tensor, torch.Tensor]:
    """Divide each row of `x` by its root mean square, then scale its columns.

    Args:
        x: floating-point tensor [m, n].
        weight: tensor [n].
        eps: added to the mean square.

    Returns:
        The result [m, n] in the dtype of `x`; the reciprocal of each row's root mean square [m],
        float32, for the backward pass.
    """
    m, n = x.size()
    assert weight.size(0) == n
    out = torch.empty_like(x)
    rrms = torch.empty([m], dtype=torch.float32, device=x.device)
    for row in hl.tile(m):
        values = x[row, :].to(torch.float32)
        scale = torch.rsqrt(values.square().mean(-1) + eps)
        out[row, :] = values * scale[:, None] * weight[:].to(torch.float32)
        rrms[row] = scale
    return out, rrms


@helion.kernel()
def rms_norm_bwd(
    grad_out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, rrms: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients by `x` [m, n] and `weight` [n], given that by the result [m, n]."""
    m, n = x.size()
    assert weight.size(0) == n
    assert grad_out.size() == x.size()
    grad_x = torch.empty_like(x)
    rows_per_program = hl.register_block_size(m)
    partial = x.new_empty([helion.cdiv(m, rows_per_program), n], dtype=torch.float32)
    for rows in hl.tile(m, block_size=rows_per_program):
        column_scale = weight[:].to(torch.float32)
        weight_sum = hl.zeros([n], dtype=torch.float32)
        for row in hl.tile(rows.begin, rows.end):
            grad = grad_out[row, :].to(torch.float32)
            scale = rrms[row][:, None]
            normal = x[row, :].to(torch.float32) * scale
            weight_sum += (grad * normal).sum(0)
            grad = grad * column_scale
            grad_x[row, :] = (grad - normal * (grad * normal).mean(-1, keepdim=True)) * scale
        partial[rows.id, :] = weight_sum
    return grad_x, partial.sum(0).to(weight.dtype)


class RMSNormFunction(torch.autograd.Function):
    """`apply(x, weight, eps)` is RMS normalization of the rows of `x` with gradients."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
        out, rrms = rms_norm_fwd(x, weight, eps)
        ctx.save_for_backward(x, weight, rrms)
        return out

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_out: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        return *rms_norm_bwd(grad_out, *ctx.saved_tensors), None


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """`F.rms_norm(x, weight.shape, weight, eps)` of a tensor [m, n]."""
    return RMSNormFunction.apply(x, weight, eps)


def torch_rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    return F.rms_norm(x, weight.shape, weight, eps)


def check(m: int, n: int, dtype: torch.dtype) -> None:
    x = torch.randn(m, n, device=DEVICE, dtype=dtype, requires_grad=True)
    weight = torch.randn(n, device=DEVICE, dtype=dtype, requires_grad=True)
    # Torch rounds at other places than we do.
    tolerance = 2e-2 if dtype.itemsize < 4 else 1e-4
    assert_close = functools.partial(torch.testing.assert_close, rtol=tolerance, atol=tolerance)
    out, expected = rms_norm(x, weight), torch_rms_norm(x, weight)
    assert_close(out, expected)
    grad_out = torch.randn_like(out)
    assert_close(
        torch.autograd.grad(out, (x, weight), grad_out),
        torch.autograd.grad(expected, (x, weight), grad_out),
    )
    print(f"ok  rms_norm and its gradients, {[m, n]} {dtype}")


def main() -> None:
    check(64, 200, torch.float32)
    check(33, 100, torch.float16)
    if DEVICE.type == "cuda":
        x = torch.randn(8192, 4096, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)
        weight = torch.randn(4096, device=DEVICE, dtype=torch.bfloat16, requires_grad=True)
        run_example(rms_norm, torch_rms_norm, (x, weight))
        run_example(rms_norm, torch_rms_norm, (x, weight), atol=1, bwd=True)


if __name__ == "__main__":
    main()
