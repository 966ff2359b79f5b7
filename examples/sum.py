"""Sums of rows: a full slice `:` takes a whole row, whatever its length.

python examples/sum.py      checks against torch; on a GPU it also compares the speed
"""

from __future__ import annotations

import torch

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example


@helion.kernel()
def sum_kernel(x: torch.Tensor) -> torch.Tensor:
    """The sum of each row.

    Args:
        x: tensor [m, n]; narrow floats are accumulated in float32.

    Returns:
        Tensor [m] of the dtype of `x`.
    """
    m, _ = x.size()
    out = torch.empty([m], dtype=x.dtype, device=x.device)
    for row in hl.tile(m):
        out[row] = x[row, :].sum(-1)
    return out


def check(x: torch.Tensor) -> None:
    torch.testing.assert_close(sum_kernel(x), x.sum(-1))
    print(f"ok  sum of rows, {list(x.shape)} {x.dtype}")


def main() -> None:
    check(torch.randn(100, 500, device=DEVICE))
    check(torch.randn(77, 130, device=DEVICE, dtype=torch.float16).T)
    if DEVICE.type == "cuda":
        x = torch.randn(8192, 4096, device=DEVICE)
        run_example(sum_kernel, lambda x: x.sum(-1), (x,))


if __name__ == "__main__":
    main()
