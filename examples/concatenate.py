"""Concatenation along the columns: `extra_mask` keeps each load inside its own tensor.

python examples/concatenate.py      checks against torch; on a GPU it also compares the speed
"""

from __future__ import annotations

import torch

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example


@helion.kernel()
def concatenate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`torch.cat([x, y], dim=1)` of tensors [m, n1] and [m, n2] of one dtype."""
    m, left = x.size()
    assert y.size(0) == m
    n = left + y.size(1)
    out = torch.empty([m, n], dtype=x.dtype, device=x.device)
    for row, column in hl.tile([m, n]):
        in_left = (column.index < left)[None, :]
        from_x = hl.load(x, [row, column], extra_mask=in_left)
        from_y = hl.load(y, [row, column.index - left], extra_mask=~in_left)
        out[row, column] = torch.where(in_left, from_x, from_y)
    return out


def torch_concatenate(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.cat([x, y], dim=1)


def check(m: int, left: int, right: int, dtype: torch.dtype) -> None:
    x, y = (torch.randn(m, n, device=DEVICE, dtype=dtype) for n in (left, right))
    assert torch.equal(concatenate(x, y), torch_concatenate(x, y))
    print(f"ok  concatenate, {[m, left]} and {[m, right]} {dtype}")


def main() -> None:
    check(30, 64, 128, torch.float32)
    check(7, 33, 1, torch.float16)
    if DEVICE.type == "cuda":
        x, y = (torch.randn(8192, n, device=DEVICE, dtype=torch.bfloat16) for n in (4096, 8192))
        run_example(concatenate, torch_concatenate, (x, y))


if __name__ == "__main__":
    main()
