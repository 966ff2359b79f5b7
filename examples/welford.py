"""Layer normalization that reads a row once for both its mean and its variance.

The running count, mean and sum of squared deviations are carried through the loop and merged with
those of each chunk of columns. That is as accurate as two passes; `E[x**2] - E[x]**2` is not.

    python examples/welford.py      checks against torch; on a GPU it also compares the speed

Source: Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
variances", 1979, after Welford, 1962.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example


@helion.kernel()
def welford(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    """Normalize each row of `x` to mean 0 and variance 1, then scale and shift its columns.

    Args:
        x: floating-point tensor [m, n].
        weight: tensor [n].
        bias: tensor [n].
        eps: added to the variance.

    Returns:
        Tensor [m, n] of the dtype of `x`.
    """
    m, n = x.size()
    out = torch.empty_like(x)
    block = hl.register_block_size(n)
    for row in hl.tile(m):
        count = 0.0
        mean = hl.zeros([row], dtype=torch.float32)
        squares = hl.zeros([row], dtype=torch.float32)
        for column in hl.tile(n, block_size=block):
            values = x[row, column].to(torch.float32)
            size = column.end - column.begin
            center = values.sum(-1) / size
            distance = (values - center[:, None]).square().sum(-1)
            delta = center - mean
            share = size / (count + size)
            mean = mean + delta * share
            squares = squares + distance + delta.square() * count * share
            count = count + size
        scale = torch.rsqrt(squares / n + eps)
        for column in hl.tile(n, block_size=block):
            normal = (x[row, column].to(torch.float32) - mean[:, None]) * scale[:, None]
            out[row, column] = normal * weight[column].to(torch.float32) + bias[column]
    return out


def torch_layer_norm(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5
) -> torch.Tensor:
    return F.layer_norm(x, weight.shape, weight, bias, eps)


def check(m: int, n: int, dtype: torch.dtype, offset: float = 0.0) -> None:
    x = (torch.randn(m, n, device=DEVICE) + offset).to(dtype)
    weight, bias = torch.randn(2, n, device=DEVICE).to(dtype)
    # Torch's own mean is off by a few ulps of the offset.
    tolerance = 1e-2 if dtype.itemsize < 4 else 1e-4 + 1e-6 * offset
    expected = torch_layer_norm(x, weight, bias)
    torch.testing.assert_close(welford(x, weight, bias), expected, rtol=tolerance, atol=tolerance)
    print(f"ok  welford, {[m, n]} {dtype}, mean {offset:g}")


def main() -> None:
    check(32, 500, torch.float32)
    check(17, 129, torch.float16)
    check(32, 500, torch.float32, offset=1000.0)
    if DEVICE.type == "cuda":
        x = torch.randn(8192, 16384, device=DEVICE, dtype=torch.bfloat16)
        weight, bias = torch.randn(2, 16384, device=DEVICE, dtype=torch.bfloat16).unbind()
        run_example(welford, torch_layer_norm, (x, weight, bias))


if __name__ == "__main__":
    main()
