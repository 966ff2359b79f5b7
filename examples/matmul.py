"""Matrix product with an epilogue that the caller passes in as a function.

The epilogue gets the accumulator in float32 and the tiles that it covers, so it can add a bias or
apply an activation before the result is rounded and stored. What it closes over (here the bias)
becomes an argument of the kernel; a call with another function compiles another kernel.

    python examples/matmul.py      checks against torch; on a GPU it also compares the speed
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example

Epilogue = Callable[[torch.Tensor, tuple[hl.Tile, hl.Tile]], torch.Tensor]


def nothing(acc: torch.Tensor, tiles: tuple[hl.Tile, hl.Tile]) -> torch.Tensor:
    """The epilogue that leaves the product as it is."""
    return acc


@helion.kernel()
def matmul(x: torch.Tensor, y: torch.Tensor, epilogue: Epilogue = nothing) -> torch.Tensor:
    """`epilogue(x @ y)`, by tiles.

    Args:
        x: [M, K], any dtype that `hl.dot` takes.
        y: [K, N], of the dtype of `x`.
        epilogue: from a float32 tile of the product, and its two tiles, to a tile of that shape.

    Returns:
        [M, N] of the dtype of `x`; products are summed in float32.
    """
    m, k = x.size()
    k2, n = y.size()
    assert k == k2, f"x has {k} columns and y has {k2} rows"
    out = torch.empty([m, n], dtype=x.dtype, device=x.device)
    for row, col in hl.tile([m, n]):
        acc = hl.zeros([row, col], dtype=torch.float32)
        for mid in hl.tile(k):
            acc = torch.addmm(acc, x[row, mid], y[mid, col])
        out[row, col] = epilogue(acc, (row, col)).to(x.dtype)
    return out


@helion.kernel()
def matmul_bwd(
    grad: torch.Tensor, x: torch.Tensor, y: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of `x @ y` by `x` and by `y`: two loops, which run side by side in one launch.

    Args:
        grad: [M, N], the gradient by the product.
        x: [M, K].
        y: [K, N].

    Returns:
        `grad @ y.T` of shape [M, K], and `x.T @ grad` of shape [K, N].
    """
    m, k = x.size()
    n = y.size(1)
    grad_x, grad_y = torch.empty_like(x), torch.empty_like(y)
    for row, mid in hl.tile([m, k]):
        acc = hl.zeros([row, mid], dtype=torch.float32)
        for col in hl.tile(n):
            acc = torch.addmm(acc, grad[row, col], y[mid, col].T)
        grad_x[row, mid] = acc.to(x.dtype)
    for mid, col in hl.tile([k, n]):
        acc = hl.zeros([mid, col], dtype=torch.float32)
        for row in hl.tile(m):
            acc = torch.addmm(acc, x[row, mid].T, grad[row, col])
        grad_y[mid, col] = acc.to(y.dtype)
    return grad_x, grad_y


class MatMul(torch.autograd.Function):
    """`MatMul.apply(x, y)` is `x @ y` with gradients, forward and backward by the kernels above."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x, y)
        return matmul(x, y)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return matmul_bwd(grad, *ctx.saved_tensors)


def linear_relu(x: torch.Tensor, y: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """`relu(x @ y + bias)` in one kernel; `bias` is [N]."""
    return matmul(x, y, lambda acc, tiles: torch.relu(acc + bias[tiles[1]]))


def addmm(bias: torch.Tensor, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`torch.addmm(bias, x, y)` in one kernel; `bias` broadcasts to [M, N]."""
    bias = bias.expand(x.size(0), y.size(1))
    return matmul(x, y, lambda acc, tiles: acc + bias[tiles[0], tiles[1]])


def check(m: int, k: int, n: int, dtype: torch.dtype) -> None:
    x = torch.randn(m, k, device=DEVICE).to(dtype)
    y = torch.randn(k, n, device=DEVICE).to(dtype)
    bias = torch.randn(n, device=DEVICE).to(dtype)
    close = functools.partial(torch.testing.assert_close, rtol=2e-2, atol=1e-1)  # TF32 on a GPU
    close(matmul(x, y), x @ y)
    close(linear_relu(x, y, bias), torch.relu(x @ y + bias))
    close(addmm(bias, x, y), torch.addmm(bias, x, y))
    args, grad = (x.requires_grad_(), y.requires_grad_()), torch.randn(m, n, device=DEVICE)
    found, expected = (
        torch.autograd.grad(product(*args), args, grad.to(dtype))
        for product in (MatMul.apply, torch.matmul)
    )
    close(found, expected)
    print(f"ok  [{m}, {k}] @ [{k}, {n}] {dtype}: product, two epilogues, gradients")


def main() -> None:
    check(64, 80, 112, torch.float32)
    check(96, 33, 50, torch.bfloat16)
    if DEVICE.type == "cuda":
        x, y = torch.randn(2, 4096, 4096, device=DEVICE, dtype=torch.bfloat16)
        bias = torch.randn(4096, device=DEVICE, dtype=torch.bfloat16)
        run_example(matmul, torch.matmul, (x, y), atol=1)  # products of 4096 terms
        run_example(linear_relu, lambda x, y, b: torch.relu(x @ y + b), (x, y, bias), atol=1)
        args = x.requires_grad_(), y.requires_grad_()
        run_example(MatMul.apply, torch.matmul, args, bwd=True, atol=1)


if __name__ == "__main__":
    main()
