"""Element-wise addition: one tile over a shape of any rank, with torch's broadcasting and dtypes.

python examples/add.py      checks against torch; on a GPU it also compares the speed
"""

from __future__ import annotations

import torch

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example


@helion.kernel()
def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """`x + y`.

    Args:
        x: tensor of any shape, strides and dtype.
        y: tensor that broadcasts with `x`.

    Returns:
        Tensor of the broadcast shape, in the dtype to which torch promotes both.
    """
    x, y = torch.broadcast_tensors(x, y)
    dtype = torch.promote_types(x.dtype, y.dtype)
    out = torch.empty(x.shape, dtype=dtype, device=x.device)
    for tile in hl.tile(out.size()):
        out[tile] = x[tile] + y[tile]
    return out


def check(x: torch.Tensor, y: torch.Tensor) -> None:
    torch.testing.assert_close(add(x, y), x + y)
    print(f"ok  add of {list(x.shape)} {x.dtype} and {list(y.shape)} {y.dtype}")


def main() -> None:
    x = torch.randn(300, 500, device=DEVICE)
    check(x, torch.randn(300, 500, device=DEVICE))
    check(x, torch.randn(500, device=DEVICE, dtype=torch.bfloat16))
    check(x[:, :1], torch.arange(12, device=DEVICE).view(3, 4, 1, 1))
    if DEVICE.type == "cuda":
        x, y = torch.randn(2, 8192, 8192, device=DEVICE)
        run_example(add, torch.add, (x, y))


if __name__ == "__main__":
    main()
