"""Matrix product of few rows and columns but many terms: programs share the terms of one tile.

With a small result there are too few tiles for all multiprocessors. So the terms are split into
`split_k` parts, a number that the config chooses, and each part adds its share with `atomic_add`.

    python examples/matmul_split_k.py      checks against torch; on a GPU it also compares the speed
"""

from __future__ import annotations

import torch

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example
from helion.autotuner import PowerOfTwoFragment


@helion.kernel()
def matmul_split_k(x: torch.Tensor, y: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """`x @ y + bias`. The order of additions, and so the last bits, differ from call to call.

    Args:
        x: [M, K], any dtype that `hl.dot` takes.
        y: [K, N], of the dtype of `x`.
        bias: [N].

    Returns:
        [M, N] of the dtype of `x`; all is summed in float32.
    """
    m, k = x.size()
    k2, n = y.size()
    assert k == k2, f"x has {k} columns and y has {k2} rows"
    total = torch.zeros([m, n], dtype=torch.float32, device=x.device)
    split_k = hl.register_tunable("split_k", PowerOfTwoFragment(1, 256, 64))
    part_size = helion.next_power_of_2(helion.cdiv(k, split_k))
    for row, col, part in hl.tile([m, n, k], block_size=[None, None, part_size]):
        acc = hl.zeros([row, col], dtype=torch.float32)
        for mid in hl.tile(part.begin, part.end):
            acc = torch.addmm(acc, x[row, mid], y[mid, col])
        if part.begin == 0:
            acc = acc + bias[col]
        hl.atomic_add(total, [row, col], acc)
    return total.to(x.dtype)


def torch_matmul_bias(x: torch.Tensor, y: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return torch.addmm(bias, x, y)


def check(m: int, k: int, n: int, dtype: torch.dtype) -> None:
    x = torch.randn(m, k, device=DEVICE).to(dtype)
    y = torch.randn(k, n, device=DEVICE).to(dtype)
    bias = torch.randn(n, device=DEVICE).to(dtype)
    expected = torch_matmul_bias(x, y, bias)
    # Products in TF32 on a GPU, and one rounding of the result.
    torch.testing.assert_close(matmul_split_k(x, y, bias), expected, rtol=2e-2, atol=2e-1)
    print(f"ok  [{m}, {k}] @ [{k}, {n}] {dtype}")


def main() -> None:
    check(32, 1024, 48, torch.float32)
    check(17, 700, 33, torch.float16)
    if DEVICE.type == "cuda":
        x = torch.randn(64, 32768, device=DEVICE, dtype=torch.bfloat16)
        y = torch.randn(32768, 64, device=DEVICE, dtype=torch.bfloat16)
        bias = torch.randn(64, device=DEVICE, dtype=torch.bfloat16)
        run_example(matmul_split_k, torch_matmul_bias, (x, y, bias), atol=4)  # 32768 terms


if __name__ == "__main__":
    main()
