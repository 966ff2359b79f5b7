"""A program that reads what it wrote waits in between; others do not."""

from __future__ import annotations

import pytest
import torch

import helion
import helion.language as hl

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
BARRIER = "tl.debug_barrier()"


@helion.kernel(config=helion.Config(block_sizes=[32, 32]))
def reversed_twice(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    n = x.size(0)
    middle, out = torch.empty_like(x), torch.empty_like(x)
    for _ in hl.grid(1):
        for a in hl.tile(n):
            middle[n - 1 - a.index] = x[a]
        for a in hl.tile(n):
            out[a] = middle[n - 1 - a.index] + middle[a]
    return middle, out


@helion.kernel(config=helion.Config(block_sizes=[32]))
def through_a_view(x: torch.Tensor) -> torch.Tensor:
    n = x.size(0)
    flat = x.view(-1)
    out = torch.empty_like(x)
    for a in hl.tile(n):
        x[a, 0] = a.index.to(x.dtype)
        out[a, 0] = flat[n - 1 - a.index]
    return out


@helion.kernel(config=helion.Config(block_sizes=[]))
def fibonacci(x: torch.Tensor) -> torch.Tensor:
    for _ in hl.grid(1):
        for i in hl.grid(2, x.size(0)):
            x[i] = x[i - 1] + x[i - 2]
    return x


@helion.kernel(config=helion.Config(block_sizes=[8, 16]))
def in_place(x: torch.Tensor) -> torch.Tensor:
    for a in hl.tile(x.size(0)):
        for b in hl.tile(x.size(1)):
            x[a, b] = x[a, b] * 2
    return x


@helion.kernel(config=helion.Config(block_sizes=[32]))
def in_a_branch(x: torch.Tensor, flag: int) -> torch.Tensor:
    n = x.size(0)
    out = torch.empty_like(x)
    for a in hl.tile(n):
        if flag > 0:
            x[a] = x[a] + 1
        out[a] = x[n - 1 - a.index]
    return out


def code_of(kernel: helion.Kernel, *args) -> str:
    return kernel.bind(args).show("triton")


def test_between_loops():
    x = torch.arange(100.0, device=DEVICE)
    middle, out = reversed_twice(x)
    assert torch.equal(middle, x.flip(0))
    assert torch.equal(out, x + x.flip(0))
    assert code_of(reversed_twice, x).count(BARRIER) == 1


def test_a_view_is_the_tensor():
    x = torch.zeros(20, 1, device=DEVICE)
    assert torch.equal(through_a_view(x)[:, 0], torch.arange(20.0, device=DEVICE).flip(0))
    assert code_of(through_a_view, x).count(BARRIER) == 1


def test_from_one_iteration_to_the_next():
    x = torch.ones(12, dtype=torch.int64, device=DEVICE)
    assert fibonacci(x).tolist() == [1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144]
    assert code_of(fibonacci, x).count(BARRIER) == 1


def test_own_elements_need_no_barrier():
    x = torch.randn(20, 40, device=DEVICE)
    assert torch.equal(in_place(x.clone()), x * 2)
    assert BARRIER not in code_of(in_place, x)


@pytest.mark.parametrize("flag", [0, 1])
def test_after_a_branch(flag):
    x = torch.arange(30.0, device=DEVICE)
    assert torch.equal(in_a_branch(x.clone(), flag), (x + flag).flip(0))
    assert code_of(in_a_branch, x, flag).count(BARRIER) == 1
