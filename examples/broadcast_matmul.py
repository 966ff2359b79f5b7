"""Matrices of a batch, each multiplied with one and the same matrix: `[B, M, K] @ [K, N]`.

The rows of all of the batch are those of one tall matrix, so views in the host part make it a plain
product. Its tiles need not end where a matrix of the batch does.

    python examples/broadcast_matmul.py    checks against torch; on a GPU it also compares the speed
"""

from __future__ import annotations

import torch

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example


@helion.kernel()
def broadcast_matmul(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`x @ y`.

    Args:
        x: [B, M, K], any dtype that `hl.dot` takes.
        y: [K, N], of the dtype of `x`.

    Returns:
        [B, M, N] of the dtype of `x`; products are summed in float32.
    """
    b, m, k = x.size()
    k2, n = y.size()
    assert k == k2, f"matrices of x have {k} columns and y has {k2} rows"
    rows = x.reshape(b * m, k)
    out = torch.empty([b * m, n], dtype=x.dtype, device=x.device)
    for row, col in hl.tile([b * m, n]):
        acc = hl.zeros([row, col], dtype=torch.float32)
        for mid in hl.tile(k):
            acc = torch.addmm(acc, rows[row, mid], y[mid, col])
        out[row, col] = acc.to(x.dtype)
    return out.view(b, m, n)


def check(b: int, m: int, k: int, n: int, dtype: torch.dtype) -> None:
    x = torch.randn(b, m, k, device=DEVICE).to(dtype)
    y = torch.randn(k, n, device=DEVICE).to(dtype)
    # Products in TF32 on a GPU, and one rounding of the result.
    torch.testing.assert_close(broadcast_matmul(x, y), x @ y, rtol=2e-2, atol=1e-1)
    print(f"ok  [{b}, {m}, {k}] @ [{k}, {n}] {dtype}")


def main() -> None:
    check(3, 40, 64, 48, torch.float32)
    check(5, 7, 33, 50, torch.float16)
    if DEVICE.type == "cuda":
        x = torch.randn(16, 512, 2048, device=DEVICE, dtype=torch.bfloat16)
        y = torch.randn(2048, 2048, device=DEVICE, dtype=torch.bfloat16)
        run_example(broadcast_matmul, torch.matmul, (x, y), atol=1)  # products of 2048 terms


if __name__ == "__main__":
    main()
