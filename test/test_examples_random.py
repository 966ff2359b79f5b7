"""The examples that draw numbers: what their own checks do not see."""

from __future__ import annotations

import pytest
import torch

from examples import sharded_dropout
from helion._testing import DEVICE
from helion.random import bernoulli

# -- dropout of a tensor in parts ----------------------------------------------------------------


@pytest.mark.parametrize("seed", [5, -1, 2**40 + 3])
@pytest.mark.parametrize(("dim", "ranks"), [(0, 3), (1, 2), (1, 5)])
def test_parts_drop_what_the_host_draws_for_the_whole(dim, ranks, seed):
    whole = (9, 150)
    x = torch.arange(1.0, 1 + 9 * 150, device=DEVICE).reshape(whole)
    expected = torch.where(bernoulli(whole, 0.5, seed, device=DEVICE), x * 2, 0)
    for rank in range(ranks):
        part = sharded_dropout.shard(whole, dim, rank, ranks)
        found = sharded_dropout.sharded_dropout(part.of(x), 0.5, seed, part)
        assert torch.equal(found, part.of(expected))


def test_two_processes_compute_what_one_computes():
    results = sharded_dropout.across_processes(2)
    assert len(results) == 2  # split by rows, and by columns
    for seed, found in results:
        x = sharded_dropout.inputs(DEVICE)
        keep = bernoulli(sharded_dropout.SHAPE, 1 - sharded_dropout.P, seed, device=DEVICE)
        scale = torch.tensor(1 / (1 - sharded_dropout.P), device=DEVICE)
        y = torch.where(keep, x * scale, 0)
        gradient = torch.where(keep, 2 * y * scale, 0)
        assert torch.equal(found, torch.stack([y, gradient]).cpu())
