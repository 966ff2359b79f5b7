"""Dropout of more than 2**32 elements, forward and backward: offsets that need 33 bits."""

from __future__ import annotations

import math

import numpy as np
import philox
import pytest
import torch

from examples.low_mem_dropout import LowMemDropout, dropout, low_mem_dropout, low_mem_dropout_bwd

P = 0.25
SEED = 123
# Not a multiple of any block; the last elements are 2**20 beyond what 32 bits count.
N = 2**32 + 2**20 + 7
# 8 GiB of bfloat16: input, output, and what comparing them needs.
pytestmark = pytest.mark.large(gib=48)


@pytest.fixture(scope="module")
def kept() -> torch.Tensor:
    """The mask of the forward pass, a byte for each element."""
    x = torch.ones(N, dtype=torch.bfloat16, device="cuda")
    return low_mem_dropout(P, x, SEED).ne_(0).to(torch.bool)


def test_backward_drops_the_same(kept):
    grad_y = torch.full((N,), 3.0, dtype=torch.bfloat16, device="cuda")
    grad_x = low_mem_dropout_bwd(P, grad_y, SEED)
    assert torch.equal(grad_x != 0, kept)
    assert torch.equal(grad_x, kept.bfloat16().mul_(4))


def test_drop_rate(kept):
    # The rate overall, and in each stretch of 2**26 elements: five standard deviations.
    for part in (kept, *kept.split(2**26)):
        rate = 1 - part.count_nonzero().item() / part.numel()
        assert abs(rate - P) < 5 * math.sqrt(P * (1 - P) / part.numel())


def test_no_stretch_comes_again(kept):
    # An offset that lost bits repeats at a power of two. Independent masks agree in 1 - 2p(1 - p).
    chunk = 2**20
    for distance in [2**k for k in range(20, 33)]:
        for begin in (0, N - distance - chunk):
            one, other = (kept[at : at + chunk] for at in (begin, begin + distance))
            agreed = (one == other).count_nonzero().item() / chunk
            assert abs(agreed - (1 - 2 * P * (1 - P))) < 0.005, (begin, distance)


@pytest.mark.parametrize(
    "begin", [0, 2**31 - 500, 2**32 - 500, 2**32 + 1000, N - 1000], ids=lambda b: f"{b:#x}"
)
def test_bits_equal_the_oracle(kept, begin):
    offsets = np.arange(begin, begin + 1000, dtype=np.int64)
    expected = philox.rand(SEED, offsets) >= np.float32(P)
    assert torch.equal(kept[begin : begin + 1000].cpu(), torch.from_numpy(np.asarray(expected)))


def test_rows_and_columns_count_as_one_axis(kept):
    # Sizes that fit in 32 bits, with a product that does not.
    x = torch.ones(2**16 + 1, 2**16 + 8, dtype=torch.bfloat16, device="cuda")
    assert 2**32 < x.numel() <= N
    mask = low_mem_dropout(P, x, SEED).ne_(0).to(torch.bool)
    assert torch.equal(mask.view(-1), kept[: x.numel()])


def test_a_strided_view_reaches_beyond_32_bits(kept):
    x = torch.ones(2, N // 2, dtype=torch.bfloat16, device="cuda")[:, ::2]
    mask = low_mem_dropout(P, x, SEED) != 0
    assert torch.equal(mask.view(-1), kept[: x.numel()])


def test_training_step_holds_no_mask():
    x = torch.ones(N, dtype=torch.bfloat16, device="cuda", requires_grad=True)
    before = torch.cuda.memory_allocated()
    y = LowMemDropout(P)(x)
    # The allocator hands out multiples of 512 bytes: one for the seed, and what rounds up `y`.
    assert torch.cuda.memory_allocated() - before - y.nbytes <= 2 * 512
    y.backward(torch.ones_like(y))
    assert x.grad is not None
    assert torch.equal(x.grad, y)


def test_input_between_31_and_32_bits():
    x = torch.ones(2**31 + 1000, dtype=torch.bfloat16, device="cuda", requires_grad=True)
    y = dropout(x, P, seed=SEED)
    (grad,) = torch.autograd.grad(y, x, torch.ones_like(y))
    assert torch.equal(grad, y)
    offsets = np.arange(2**31 - 1000, 2**31 + 1000, dtype=np.int64)
    expected = philox.rand(SEED, offsets) >= np.float32(P)
    assert torch.equal((y[-2000:] != 0).cpu(), torch.from_numpy(np.asarray(expected)))
