"""Batched matrix product: one tile of each axis, the batch included, and `torch.baddbmm`.

python examples/bmm.py      checks against torch; on a GPU it also compares the speed
"""

from __future__ import annotations

import torch

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example


@helion.kernel()
def bmm(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`torch.bmm(x, y)`.

    Args:
        x: [B, M, K], any dtype that `hl.dot` takes.
        y: [B, K, N], of the dtype of `x`.

    Returns:
        [B, M, N] of the dtype of `x`; products are summed in float32.
    """
    b, m, k = x.size()
    b2, k2, n = y.size()
    assert b == b2, f"x has {b} matrices and y has {b2}"
    assert k == k2, f"matrices of x have {k} columns and those of y {k2} rows"
    out = torch.empty([b, m, n], dtype=x.dtype, device=x.device)
    for batch, row, col in hl.tile([b, m, n]):
        acc = hl.zeros([batch, row, col], dtype=torch.float32)
        for mid in hl.tile(k):
            acc = torch.baddbmm(acc, x[batch, row, mid], y[batch, mid, col])
        out[batch, row, col] = acc.to(x.dtype)
    return out


def check(b: int, m: int, k: int, n: int, dtype: torch.dtype) -> None:
    x = torch.randn(b, m, k, device=DEVICE).to(dtype)
    y = torch.randn(b, k, n, device=DEVICE).to(dtype)
    # Products in TF32 on a GPU, and one rounding of the result.
    torch.testing.assert_close(bmm(x, y), torch.bmm(x, y), rtol=2e-2, atol=1e-1)
    print(f"ok  [{b}, {m}, {k}] @ [{b}, {k}, {n}] {dtype}")


def main() -> None:
    check(4, 64, 80, 48, torch.float32)
    check(3, 50, 33, 70, torch.float16)
    if DEVICE.type == "cuda":
        x, y = torch.randn(2, 16, 2048, 2048, device=DEVICE, dtype=torch.bfloat16)
        run_example(bmm, torch.bmm, (x, y), atol=1)  # products of 2048 terms


if __name__ == "__main__":
    main()
