"""`while` on the device: conditions that are known, numbers, and tensors."""

from __future__ import annotations

import pytest
import torch

import helion
import helion.language as hl
from helion import exc

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@helion.kernel(config=helion.Config(block_sizes=[16]))
def collatz(x: torch.Tensor, limit: int) -> torch.Tensor:
    out = torch.empty_like(x)
    for a in hl.tile(x.size(0)):
        v = x[a]
        steps = torch.zeros_like(v)
        n = 0
        while (v != 1).any() & (n < limit):
            done = v == 1
            v = torch.where(done, v, torch.where(v % 2 == 1, 3 * v + 1, v // 2))
            steps = torch.where(done, steps, steps + 1)
            n += 1
        out[a] = steps
    return out


@helion.kernel(config=helion.Config(block_sizes=[16]))
def spin(x: torch.Tensor, lock: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    for a in hl.tile(x.size(0)):
        part = x[a].sum()
        while hl.atomic_cas(lock, [0], 0, 1, sem="acquire") != 0:
            pass
        total[0] = total[0] + part
        hl.atomic_xchg(lock, [0], 0, sem="release")
    return total


@helion.kernel(config=helion.Config(block_sizes=[16]))
def counted(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for a in hl.tile(x.size(0)):
        v, n = x[a], 0
        while n < 3:
            v, n = v * 2, n + 1
        out[a] = v
    return out


@helion.kernel(config=helion.Config(block_sizes=[16]))
def endless(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for a in hl.tile(x.size(0)):
        v = x[a]
        while x.size(0) > 0:
            v = v + 1
        out[a] = v
    return out


def collatz_steps(n: int) -> int:
    steps = 0
    while n != 1:
        n, steps = 3 * n + 1 if n % 2 else n // 2, steps + 1
    return steps


def test_condition_on_a_tensor():
    x = torch.arange(1, 41, device=DEVICE)
    assert collatz(x, 1000).tolist() == [collatz_steps(int(i)) for i in x]


def test_condition_on_a_number():
    x = torch.arange(1, 41, device=DEVICE)
    assert collatz(x, 5).tolist() == [min(collatz_steps(int(i)), 5) for i in x]


def test_a_lock():
    x = torch.randint(0, 9, (100,), device=DEVICE, dtype=torch.float32)
    lock = torch.zeros(1, dtype=torch.int32, device=DEVICE)
    assert spin(x, lock, torch.zeros(1, device=DEVICE)) == x.sum()
    assert lock == 0


def test_a_known_condition_is_unrolled():
    x = torch.randn(20, device=DEVICE)
    assert torch.equal(counted(x), x * 8)
    assert "    while" not in counted.bind((x,)).show("triton")


def test_a_condition_that_always_holds():
    with pytest.raises(exc.NotAllowedOnDevice, match="known to hold 1024 times"):
        endless(torch.randn(20, device=DEVICE))
