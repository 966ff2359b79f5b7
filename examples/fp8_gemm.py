"""Matrix product in 8-bit floats, with a scale for each row of one and each column of the other.

8 bits hold few sizes of numbers, so each row is divided by its largest element first. The scales
leave the sum of products, and are multiplied with it at the end.

    python examples/fp8_gemm.py      checks against torch; on a GPU it also compares the speed
"""

from __future__ import annotations

import torch

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example

FP8 = torch.float8_e4m3fn


@helion.kernel()
def fp8_gemm(
    x: torch.Tensor, y: torch.Tensor, scale_x: torch.Tensor, scale_y: torch.Tensor
) -> torch.Tensor:
    """`(x * scale_x) @ (y * scale_y)`.

    Args:
        x: [M, K], float8.
        y: [K, N], float8. Tensor cores read it fastest where it is the transpose of a contiguous
            [N, K].
        scale_x: [M, 1], float32.
        scale_y: [1, N], float32.

    Returns:
        [M, N], bfloat16; products are summed in float32.
    """
    m, k = x.size()
    k2, n = y.size()
    assert k == k2, f"x has {k} columns and y has {k2} rows"
    out = torch.empty([m, n], dtype=torch.bfloat16, device=x.device)
    for row, col in hl.tile([m, n]):
        acc = hl.zeros([row, col], dtype=torch.float32)
        for mid in hl.tile(k):
            acc = hl.dot(x[row, mid], y[mid, col], acc=acc)
        out[row, col] = acc * scale_x[row, :] * scale_y[:, col]
    return out


def quantized(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Each row of [M, K] in 8 bits, and the scales [M, 1] to multiply them with."""
    scale = x.abs().amax(-1, keepdim=True).float() / torch.finfo(FP8).max
    return (x / scale).to(FP8), scale


def operands(m: int, k: int, n: int) -> tuple[torch.Tensor, ...]:
    """Arguments of `fp8_gemm`."""
    x, scale_x = quantized(torch.randn(m, k, device=DEVICE))
    y, scale_y = quantized(torch.randn(n, k, device=DEVICE))
    return x, y.T, scale_x, scale_y.T


def torch_fp8_gemm(
    x: torch.Tensor, y: torch.Tensor, scale_x: torch.Tensor, scale_y: torch.Tensor
) -> torch.Tensor:
    if x.is_cuda and x.dtype is FP8:
        return torch._scaled_mm(  # pyright: ignore[reportPrivateUsage, reportPrivateImportUsage]
            x, y, scale_x, scale_y, out_dtype=torch.bfloat16
        )
    return ((x.float() @ y.float()) * scale_x * scale_y).bfloat16()


def check(m: int, k: int, n: int) -> None:
    args = operands(m, k, n)
    # Tensor cores keep 14 bits of a sum of products of 8-bit floats; then a rounding to 8.
    torch.testing.assert_close(fp8_gemm(*args), torch_fp8_gemm(*args), rtol=2e-2, atol=5e-2)
    print(f"ok  [{m}, {k}] @ [{k}, {n}]")


def main() -> None:
    check(64, 96, 80)
    check(48, 160, 32)
    if DEVICE.type == "cuda":
        run_example(fp8_gemm, torch_fp8_gemm, operands(4096, 4096, 4096), atol=1)


if __name__ == "__main__":
    main()
