"""A product for each of several groups of rows, as in a mixture of experts: one launch for all.

The rows of all groups lie one after the other, and a tensor on the device says where each begins.
So the bounds of the inner loops come from memory; the host need not wait to learn them.

    python examples/grouped_gemm.py      checks against torch; on a GPU it also compares the speed
"""

from __future__ import annotations

import itertools

import torch

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example


@helion.kernel(static_shapes=False)
def grouped_gemm(x: torch.Tensor, y: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    """`x[offsets[g] : offsets[g + 1]] @ y[g]` for each group g.

    Args:
        x: [M, K], the rows of all groups, any dtype that `hl.dot` takes.
        y: [G, K, N], of the dtype of `x`.
        offsets: [G + 1], int32 or int64, from 0 to M; a group may be empty.

    Returns:
        [M, N] of the dtype of `x`; products are summed in float32.
    """
    m, k = x.size()
    groups, k2, n = y.size()
    assert k == k2, f"x has {k} columns and matrices of y have {k2} rows"
    assert offsets.size(0) == groups + 1, f"{groups} groups need {groups + 1} offsets"
    out = torch.empty([m, n], dtype=x.dtype, device=x.device)
    for group in hl.grid(groups):
        begin, end = offsets[group], offsets[group + 1]
        if begin != end:
            for row, col in hl.tile([begin, 0], [end, n]):
                acc = hl.zeros([row, col], dtype=torch.float32)
                for mid in hl.tile(k):
                    acc = torch.addmm(acc, x[row, mid], y[group, mid, col])
                out[row, col] = acc.to(x.dtype)
    return out


@helion.kernel(static_shapes=False)
def grouped_gemm_persistent(
    x: torch.Tensor, y: torch.Tensor, offsets: torch.Tensor
) -> torch.Tensor:
    """As `grouped_gemm`, with as many programs as multiprocessors, which share all tiles evenly.

    Each program counts through the tiles of all groups, and takes one in as many as there are
    programs.
    """
    m, k = x.size()
    groups, k2, n = y.size()
    assert k == k2, f"x has {k} columns and matrices of y have {k2} rows"
    assert offsets.size(0) == groups + 1, f"{groups} groups need {groups + 1} offsets"
    out = torch.empty([m, n], dtype=x.dtype, device=x.device)
    programs = helion.runtime.get_num_sm(x.device)
    row_block, col_block = hl.register_block_size(m), hl.register_block_size(n)
    for program in hl.grid(programs):
        passed = 0
        for group in hl.grid(groups):
            begin, end = offsets[group], offsets[group + 1]
            columns = helion.cdiv(n, col_block)
            tiles = (end - begin + row_block - 1) // row_block * columns
            for number in hl.grid((program - passed) % programs, tiles, programs):
                row = begin + number // columns * row_block + hl.arange(row_block)
                col = number % columns * col_block + hl.arange(col_block)
                rows, cols = row[:, None] < end, col[None, :] < n
                acc = hl.zeros([row_block, col_block], dtype=torch.float32)
                for mid in hl.tile(k):
                    left = hl.load(x, [row, mid], extra_mask=rows)
                    right = hl.load(y, [group, mid, col], extra_mask=cols)
                    acc = torch.addmm(acc, left, right)
                hl.store(out, [row, col], acc.to(x.dtype), extra_mask=rows & cols)
            passed = passed + tiles
    return out


KERNELS = {"grouped_gemm": grouped_gemm, "persistent": grouped_gemm_persistent}


def torch_grouped_gemm(x: torch.Tensor, y: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    bounds = itertools.pairwise(offsets.tolist())
    return torch.cat([x[begin:end] @ y[g] for g, (begin, end) in enumerate(bounds)])


def operands(sizes: list[int], k: int, n: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """Arguments for groups of these numbers of rows."""
    offsets = torch.tensor([0, *itertools.accumulate(sizes)], device=DEVICE, dtype=torch.int32)
    x = torch.randn(sum(sizes), k, device=DEVICE).to(dtype)
    return x, torch.randn(len(sizes), k, n, device=DEVICE).to(dtype), offsets


def check(sizes: list[int], k: int, n: int, dtype: torch.dtype) -> None:
    args = operands(sizes, k, n, dtype)
    for kernel in KERNELS.values():
        # Products in TF32 on a GPU, and one rounding of the result.
        torch.testing.assert_close(kernel(*args), torch_grouped_gemm(*args), rtol=2e-2, atol=1e-1)
    print(f"ok  groups of {sizes} rows, [{k}, {n}] {dtype}: {', '.join(KERNELS)}")


def main() -> None:
    check([40, 0, 7, 65], 48, 64, torch.float32)
    check([1, 30], 33, 20, torch.float16)
    if DEVICE.type == "cuda":
        args = operands([1024, 200, 3000, 0, 64, 5000, 700, 2000], 2048, 2048, torch.bfloat16)
        run_example(KERNELS, torch_grouped_gemm, args, atol=1)  # products of 2048 terms


if __name__ == "__main__":
    main()
