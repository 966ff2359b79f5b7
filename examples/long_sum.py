"""Sums of rows too long for the registers of one program, in three ways.

- `long_sum` says `x[row, :].sum(-1)`, and the config rolls it: `reduction_loops=[None]` keeps the
  row whole, a number makes it a loop over chunks of that many columns.
- `long_sum_tiled` writes that loop by hand, and adds up each chunk as it comes.
- `long_sum_lanes` has one accumulator for each lane of a chunk, and reduces them once at the end.

    python examples/long_sum.py     checks against torch; on a GPU it also compares the speed
"""

from __future__ import annotations

import torch

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example


@helion.kernel(config=helion.Config(block_sizes=[1], reduction_loops=[4096], num_warps=16))
def long_sum(x: torch.Tensor) -> torch.Tensor:
    """The sum of each row of a tensor [m, n]; the result [m] has its dtype."""
    m, _ = x.size()
    out = torch.empty([m], dtype=x.dtype, device=x.device)
    for row in hl.tile(m):
        out[row] = x[row, :].sum(-1)
    return out


@helion.kernel(config=helion.Config(block_sizes=[4096, 1], num_warps=16))
def long_sum_tiled(x: torch.Tensor) -> torch.Tensor:
    """As `long_sum`, with the loop over columns written out."""
    m, n = x.size()
    out = torch.empty([m], dtype=x.dtype, device=x.device)
    block = hl.register_block_size(n)
    for row in hl.tile(m):
        total = hl.zeros([row], dtype=torch.float32)
        for column in hl.tile(n, block_size=block):
            total += x[row, column].to(torch.float32).sum(-1)
        out[row] = total
    return out


@helion.kernel(config=helion.Config(block_sizes=[4096, 1], num_warps=16))
def long_sum_lanes(x: torch.Tensor) -> torch.Tensor:
    """As `long_sum_tiled`, with one reduction across the lanes in all, not one a chunk."""
    m, n = x.size()
    out = torch.empty([m], dtype=x.dtype, device=x.device)
    block = hl.register_block_size(n)
    for row in hl.tile(m):
        lanes = hl.zeros([row, block], dtype=torch.float32)
        for column in hl.tile(n, block_size=block):
            lanes += x[row, column]
        out[row] = lanes.sum(-1)
    return out


KERNELS = {"long_sum": long_sum, "tiled": long_sum_tiled, "lanes": long_sum_lanes}


def check(x: torch.Tensor) -> None:
    for kernel in KERNELS.values():
        # Torch adds in another order: rounding errors grow with the root of the row's length.
        torch.testing.assert_close(kernel(x), x.sum(-1), rtol=1e-3, atol=1e-3)
    print(f"ok  {', '.join(KERNELS)} of {list(x.shape)} {x.dtype}")


def main() -> None:
    check(torch.randn(4, 30000, device=DEVICE))
    check(torch.randn(3, 10007, device=DEVICE, dtype=torch.float16))
    if DEVICE.type == "cuda":
        x = torch.randn(256, 1 << 18, device=DEVICE)
        run_example(KERNELS, lambda x: x.sum(-1), (x,))


if __name__ == "__main__":
    main()
