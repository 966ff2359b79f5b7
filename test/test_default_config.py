"""The config without a config: good blocks for what a kernel does, on a GPU and without one."""

from __future__ import annotations

import math

import pytest
import torch

import helion
import helion.language as hl


@helion.kernel()
def rows(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for a in hl.tile(x.size(0)):
        out[a, :] = torch.softmax(x[a, :], -1)
    return out


@helion.kernel()
def two_loops(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    a_out, b_out = torch.empty_like(x), torch.empty_like(y)
    for a, b in hl.tile(x.size()):
        a_out[a, b] = x[a, b] + 1
    for c, d in hl.tile(y.size()):
        b_out[c, d] = y[c, d] + 1
    return a_out, b_out


@helion.kernel()
def matmul(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    m, k = x.size()
    n = y.size(1)
    out = torch.empty([m, n], dtype=x.dtype, device=x.device)
    for a, b in hl.tile([m, n]):
        acc = hl.zeros([a, b], dtype=torch.float32)
        for c in hl.tile(k):
            acc = torch.addmm(acc, x[a, c], y[c, b])
        out[a, b] = acc.to(x.dtype)
    return out


@helion.kernel()
def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    n, d = q.size(0), hl.specialize(q.size(1))
    out = torch.empty_like(q)
    for i in hl.tile(n):
        best = hl.full([i], float("-inf"))
        total = hl.zeros([i])
        acc = hl.zeros([i, d])
        for j in hl.tile(n):
            scores = hl.dot(q[i, :], k[j, :].T)
            new = torch.maximum(best, scores.amax(-1))
            p = torch.exp(scores - new[:, None])
            scale = torch.exp(best - new)
            total = total * scale + p.sum(-1)
            acc = hl.dot(p.to(v.dtype), v[j, :], acc=acc * scale[:, None])
            best = new
        out[i, :] = (acc / total[:, None]).to(out.dtype)
    return out


def default(kernel: helion.Kernel, *args: torch.Tensor, interpreted: bool = False) -> helion.Config:
    # Bound anew: what runs it here is not what runs it there.
    spec = helion.kernel(kernel.fn).bind(args).config_spec
    spec._interpreted = interpreted
    return spec.default_config()


def elements(config: helion.Config) -> int:
    return math.prod(config.block_sizes)


@pytest.mark.parametrize(
    ("length", "block", "warps", "chunk"),
    [(100, 8, 4, None), (4096, 1, 4, None), (16384, 1, 16, None), (131072, 1, 4, 4096)],
)
def test_rows(length, block, warps, chunk):
    config = default(rows, torch.empty(1000, length))
    assert config.block_sizes == [block]
    assert config.num_warps == warps
    assert config.reduction_loops == ([chunk] if chunk else [None] * len(config.reduction_loops))


def test_loops_do_not_take_from_each_other():
    x = torch.empty(1000, 3000)
    config = default(two_loops, x, x)
    assert config.block_sizes == [1, 1024, 1, 1024]


def test_the_contiguous_axis_comes_first_wherever_it_is_registered():
    @helion.kernel()
    def total(x: torch.Tensor) -> torch.Tensor:
        out = x.new_empty([x.size(0)])
        block = hl.register_block_size(x.size(1))
        for a in hl.tile(x.size(0)):
            acc = hl.zeros([a])
            for b in hl.tile(x.size(1), block_size=block):
                acc += x[a, b].sum(-1)
            out[a] = acc
        return out

    assert default(total, torch.empty(8192, 4096)).block_sizes == [1024, 1]


def test_a_loop_over_rows_is_shared_by_enough_programs():
    @helion.kernel()
    def sums(x: torch.Tensor) -> torch.Tensor:
        m, n = x.size()
        block = hl.register_block_size(m)
        out = x.new_empty([helion.cdiv(m, block), n])
        for rows in hl.tile(m, block_size=block):
            acc = hl.zeros([n])
            for a in hl.tile(rows.begin, rows.end):
                acc += x[a, :].sum(0)
            out[rows.id, :] = acc
        return out

    assert default(sums, torch.empty(8192, 4096)).block_sizes == [8, 1]
    assert default(sums, torch.empty(100, 4096)).block_sizes == [1, 1]


def test_in_the_interpreter_blocks_are_large():
    config = default(rows, torch.empty(1000, 100), interpreted=True)
    assert config.block_sizes == [1024]


PRODUCTS = [
    (torch.bfloat16, 4096, [128, 128, 64], 8),
    (torch.float32, 4096, [128, 128, 32], 8),
    (torch.bfloat16, 64, [64, 64, 64], 4),
    (torch.bfloat16, 5, [16, 16, 16], 4),
]


@pytest.mark.parametrize(("dtype", "size", "blocks", "warps"), PRODUCTS, ids=str)
def test_products(dtype, size, blocks, warps):
    x = torch.empty(size, size, dtype=dtype)
    config = default(matmul, x, x)
    assert config.block_sizes == blocks
    assert config.num_warps == warps
    # The stages in flight fit in the shared memory of a multiprocessor.
    m, n, k = blocks
    assert config.num_stages * (m * k + k * n) * dtype.itemsize <= 160 * 1024


def test_attention():
    q = torch.empty(4096, 128, dtype=torch.bfloat16)
    config = default(attention, q, q, q)
    assert config.block_sizes == [128, 64]
    assert config.num_warps == 8
