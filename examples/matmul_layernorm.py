"""Matrix product and layer norm of its rows, in one kernel: the product is never in memory.

A program computes whole rows of the product, so `:` is a dimension of the accumulator, and its mean
and variance are reductions over a value in registers.

    python examples/matmul_layernorm.py    checks against torch; on a GPU it also compares the speed
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example

EPS = 1e-5


@helion.kernel()
def matmul_layernorm(
    x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    """`layer_norm(x @ y)`, over the rows of the product.

    Args:
        x: [M, K], any dtype that `hl.dot` takes.
        y: [K, N], of the dtype of `x`; N is compiled in.
        weight: [N].
        bias: [N].

    Returns:
        [M, N] of the dtype of `x`; products, mean and variance are computed in float32.
    """
    m, k = x.size()
    assert k == y.size(0), f"x has {k} columns and y has {y.size(0)} rows"
    n = hl.specialize(y.size(1))
    out = torch.empty([m, n], dtype=x.dtype, device=x.device)
    for row in hl.tile(m):
        acc = hl.zeros([row, n], dtype=torch.float32)
        for mid in hl.tile(k):
            acc = torch.addmm(acc, x[row, mid], y[mid, :])
        var, mean = torch.var_mean(acc, -1, keepdim=True, correction=0)
        normal = (acc - mean) * torch.rsqrt(var + EPS)
        out[row, :] = (normal * weight[:] + bias[:]).to(x.dtype)
    return out


def torch_matmul_layernorm(
    x: torch.Tensor, y: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor
) -> torch.Tensor:
    return F.layer_norm(x @ y, [y.size(1)], weight, bias, EPS)


def check(m: int, k: int, n: int, dtype: torch.dtype) -> None:
    sizes = [m, k], [k, n], [n], [n]
    args = [torch.randn(size, device=DEVICE).to(dtype) for size in sizes]
    expected = torch_matmul_layernorm(*args)
    # Products in TF32 on a GPU, and torch rounds the product before it takes the norm.
    torch.testing.assert_close(matmul_layernorm(*args), expected, rtol=2e-2, atol=2e-2)
    print(f"ok  [{m}, {k}] @ [{k}, {n}] {dtype}")


def main() -> None:
    check(64, 48, 128, torch.float32)
    check(33, 70, 100, torch.float16)  # N is padded to 128, which the mean must not see
    if DEVICE.type == "cuda":
        sizes = [8192, 4096], [4096, 256], [256], [256]
        args = tuple(torch.randn(size, device=DEVICE, dtype=torch.bfloat16) for size in sizes)
        run_example(matmul_layernorm, torch_matmul_layernorm, args)


if __name__ == "__main__":
    main()
