"""`tl.rand` and its like against Philox in NumPy and the published vectors, bit for bit."""

from __future__ import annotations

import time

import numpy as np
import philox
import pytest
import torch
import triton
import triton.language as tl
from interpreted import needs_interpreter, same

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@triton.jit
def dropout(x, out, seed, n, p, BLOCK: tl.constexpr):
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offset, mask=offset < n)
    kept = tl.where(tl.rand(seed, offset) >= p, value / (1 - p), 0.0)
    tl.store(out + offset, kept, mask=offset < n)


VECTORS = [
    (
        "00000000 00000000",
        "00000000 00000000 00000000 00000000",
        "6627e8d5 e169c58d bc57ac4c 9b00dbd8",
    ),
    (
        "ffffffff ffffffff",
        "ffffffff ffffffff ffffffff ffffffff",
        "408f276d 41c83b0e a20bc7c6 6d5451fd",
    ),
    (
        "a4093822 299f31d0",
        "243f6a88 85a308d3 13198a2e 03707344",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]
SEEDS = [
    0,
    1,
    7,
    -1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**32 + 5,
    -(2**31) - 1,
    -(2**63),
    2**63,
    2**64 - 1,
]
STARTS = [0, 2**31 - 8, 2**32 - 8, 2**40 + 3, -8, 2**63 - 16]


def words(text):
    return [int(word, 16) for word in text.split()]


@triton.jit
def philox_kernel(out, seed, c0, c1, c2, c3):
    lane = tl.arange(0, 1)
    w0, w1, w2, w3 = tl.philox(seed, lane + c0, lane + c1, lane + c2, lane + c3)
    tl.store(out + lane, w0)
    tl.store(out + 1 + lane, w1)
    tl.store(out + 2 + lane, w2)
    tl.store(out + 3 + lane, w3)


@triton.jit
def rand_kernel(out, whole, seed: tl.int64, start: tl.int64, N: tl.constexpr):
    lane = tl.arange(0, N)
    offset = lane + start
    _, r1, r2, r3 = tl.rand4x(seed, offset)
    tl.store(out + lane, tl.rand(seed, offset))
    tl.store(out + N + lane, r1)
    tl.store(out + 2 * N + lane, r2)
    tl.store(out + 3 * N + lane, r3)
    i0, _, _, i3 = tl.randint4x(seed, offset)
    tl.store(whole + lane, i0)
    tl.store(whole + N + lane, tl.randint(seed, offset) ^ i3)


@pytest.mark.parametrize(("key", "counter", "want"), VECTORS)
def test_published_vectors(key, counter, want):
    low, high = words(key)
    got = philox.philox(low + (high << 32), tuple(words(counter)))
    assert [int(word) for word in got] == words(want)
    out = torch.zeros(4, dtype=torch.int32, device=DEVICE)
    signed = [(c + 2**31) % 2**32 - 2**31 for c in words(counter)]
    philox_kernel[(1,)](out, low + (high << 32), *signed)
    assert out.view(torch.uint32).tolist() == words(want)


def signed64(value):
    return (value + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_rand_equals_the_oracle(seed, start):
    offsets = np.array([start + i for i in range(16)], dtype=object)
    out = torch.zeros(4, 16, device=DEVICE)
    whole = torch.zeros(2, 16, dtype=torch.int32, device=DEVICE)
    rand_kernel[(1,)](out, whole, signed64(seed), signed64(start), 16)
    np.testing.assert_array_equal(out.cpu(), np.stack(philox.rand4x(seed, offsets)))
    w = philox.philox(seed, offsets)
    got = whole.cpu().view(torch.uint32)
    np.testing.assert_array_equal(got, np.stack([w[0], w[0] ^ w[3]]))


def test_seeds_of_every_kind():
    @triton.jit
    def kernel(out, seeds, seed, N: tl.constexpr, CONST: tl.constexpr):
        lane = tl.arange(0, N)
        tl.store(out + lane, tl.rand(seed, lane))
        tl.store(out + N + lane, tl.rand(CONST, lane))
        tl.store(out + 2 * N + lane, tl.rand(-3, lane))
        tl.store(out + 3 * N + lane, tl.rand(0xFFFFFFFFFFFFFFFF, lane))
        tl.store(out + 4 * N + lane, tl.rand(tl.load(seeds), lane))
        tl.store(out + 5 * N + lane, tl.rand(tl.load(seeds + lane), lane))
        tl.store(out + 6 * N + lane, tl.rand(tl.cast(seed, tl.int64) * 1000003 + 1, lane))
        tl.store(out + 7 * N + lane, tl.rand(seed, lane - 5))

    seeds, lane = torch.arange(16) * 7 - 20, np.arange(16)
    out = torch.zeros(8, 16, device=DEVICE)
    kernel[(1,)](out, seeds.to(DEVICE), -(2**20), 16, 2**40)
    want = [
        philox.rand(s, lane)
        for s in (-(2**20), 2**40, -3, 2**64 - 1, -20, seeds.numpy(), -(2**20) * 1000003 + 1)
    ]
    # A 32-bit offset is not sign-extended: the upper half of its counter is zero.
    want.append(philox.rand(-(2**20), (lane - 5).astype(np.uint32)))
    np.testing.assert_array_equal(out.cpu(), np.stack(want))


def test_the_oracle_takes_any_integer_and_stays_below_one():
    np.testing.assert_array_equal(philox.rand(-1, -1), philox.rand(2**64 - 1, 2**64 - 1))
    np.testing.assert_array_equal(
        philox.rand_full(3, 4, 5), philox.rand(3, np.arange(20)).reshape(4, 5)
    )
    edges = philox.uniform(np.array([0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], np.uint32))
    assert edges.tolist() == [0.0, 1 - 2**-24, 1 - 2**-24, 0.0]
    with pytest.raises(TypeError, match="integers"):
        philox.rand(1.5, 0)


@needs_interpreter
def test_a_million_elements_take_less_than_a_second():
    n, block = 2**20, 2**14
    x, out = torch.randn(n).to(torch.bfloat16), torch.empty(n, dtype=torch.bfloat16)
    dropout[(n // block,)](x, out, 0, n, 0.25, block)
    seconds = []
    for _ in range(3):
        began = time.process_time()
        dropout[(n // block,)](x, out, 7, n, 0.25, block)
        seconds.append(time.process_time() - began)
    keep = torch.from_numpy(philox.rand(7, np.arange(n)) >= 0.25)
    same(out, torch.where(keep, x.float() / 0.75, 0.0).to(torch.bfloat16))
    assert min(seconds) < 1
