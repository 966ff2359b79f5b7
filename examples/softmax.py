"""Softmax of rows, in two forms.

- `softmax` takes whole rows and calls torch's own function.
- `softmax_two_pass` walks along the row twice: once for its maximum and the sum of exponentials,
  corrected whenever the maximum grows, and once for the result. No row is too long for it. Both
  loops share a registered block size, so one config entry sets it.

    python examples/softmax.py      checks against torch; on a GPU it also compares the speed

Source of the second: Milakov and Gimelshein, "Online normalizer calculation for softmax", 2018.
"""

from __future__ import annotations

import torch

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example

# Not -inf: the difference of two infinities, in a chunk that is masked out, would be no number.
LOWEST = torch.finfo(torch.float32).min


@helion.kernel()
def softmax(x: torch.Tensor) -> torch.Tensor:
    """Softmax of each row of a floating-point tensor [m, n]; the result has its dtype."""
    m, _ = x.size()
    out = torch.empty_like(x)
    for row in hl.tile(m):
        out[row, :] = torch.softmax(x[row, :], dim=-1)
    return out


@helion.kernel()
def softmax_two_pass(x: torch.Tensor) -> torch.Tensor:
    """As `softmax`, with a few columns at a time in registers."""
    m, n = x.size()
    out = torch.empty_like(x)
    block = hl.register_block_size(n)
    for row in hl.tile(m):
        peak = hl.full([row], LOWEST, dtype=torch.float32)
        total = hl.zeros([row], dtype=torch.float32)
        for column in hl.tile(n, block_size=block):
            values = x[row, column].to(torch.float32)
            higher = torch.maximum(peak, values.amax(-1))
            total = total * torch.exp(peak - higher) + torch.exp(values - higher[:, None]).sum(-1)
            peak = higher
        for column in hl.tile(n, block_size=block):
            values = x[row, column].to(torch.float32)
            out[row, column] = torch.exp(values - peak[:, None]) / total[:, None]
    return out


KERNELS = {"softmax": softmax, "two_pass": softmax_two_pass}


def check(x: torch.Tensor) -> None:
    for kernel in KERNELS.values():
        torch.testing.assert_close(kernel(x), torch.softmax(x, -1))
    print(f"ok  {', '.join(KERNELS)} of {list(x.shape)} {x.dtype}")


def main() -> None:
    check(torch.randn(64, 500, device=DEVICE))
    check(torch.randn(33, 129, device=DEVICE, dtype=torch.bfloat16).T)
    check(torch.randn(8, 300, device=DEVICE) * 1000)  # exp alone would overflow
    masked = torch.randn(8, 300, device=DEVICE)
    masked[:, :200] = float("-inf")
    check(masked)
    if DEVICE.type == "cuda":
        x = torch.randn(8192, 4096, device=DEVICE, dtype=torch.bfloat16)
        run_example(KERNELS, lambda x: torch.softmax(x, -1), (x,))


if __name__ == "__main__":
    main()
