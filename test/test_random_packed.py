"""The packed order and its masks: bits against NumPy, over configs, backends and shards."""

import numpy as np
import philox
import pytest
import torch
from test_rng import DEVICE, compiled, empty

import helion
import helion.language as hl

EAGER = helion.RefMode.EAGER
# Shapes, and blocks of the last axis: groups of every width, of some, of none.
BLOCKS = {
    (7, 13): [64, 16, 8, 1],
    (3, 64): [64, 32, 8],
    (5, 200): [64, 32, 16],
    (1, 1): [64, 1],
    (2, 3, 70): [64, 16],
}
SHAPES = list(BLOCKS)
CASES = [(shape, block) for shape, blocks in BLOCKS.items() for block in blocks]


def numpy(tensor):
    tensor = tensor.detach().cpu()
    if tensor.dtype in (torch.bfloat16, torch.float16):
        tensor = tensor.float()
    return tensor.numpy()


def assert_equal(got, want):
    np.testing.assert_array_equal(numpy(got), want)


# -- the packed order ----------------------------------------------------------------------------


def packed_rand(out, seed: int):
    for t in hl.tile(out.size()):
        out[t] = hl.rand(t, seed=seed, packed=True)
    return out


def mask(out, p: float, seed: int, bits: hl.constexpr):
    for t in hl.tile(out.size()):
        out[t] = hl.bernoulli(t, p, seed, bits=bits)
    return out


def blocks_for(shape, last):
    return [min(2, n) for n in shape[:-1]] + [last]


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize(("shape", "block"), CASES, ids=str)
def test_packed_rand(shape, block, static):
    kernel = compiled(packed_rand, blocks_for(shape, block), static_shapes=static)
    want = philox.uniform(philox.packed_full(2**40 + 3, shape, 32))
    assert_equal(kernel(empty(*shape), 2**40 + 3), want)


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize(("shape", "block"), CASES, ids=str)
def test_bernoulli(shape, block, bits):
    kernel = compiled(mask, blocks_for(shape, block), static_shapes=block % 32 == 0)
    out = torch.zeros(shape, dtype=torch.bool, device=DEVICE)
    assert_equal(kernel(out, 0.3, -5, bits), philox.bernoulli(-5, 0.3, shape, bits))


def line_mask(out, p: float, seed: int):
    for t in hl.tile(out.size(0)):
        out[t] = hl.bernoulli([t], p, seed)
    return out


def test_a_line_in_one_and_in_several_blocks():
    want = philox.bernoulli(9, 0.5, (300,))
    for block in (512, 64, 32, 4):
        out = torch.zeros(300, dtype=torch.bool, device=DEVICE)
        assert_equal(compiled(line_mask, [block])(out, 0.5, 9), want)


def int_mask(out, seed: int):
    n = hl.specialize(out.size(1))
    for i in hl.tile(out.size(0)):
        out[i, :] = hl.bernoulli([i, n], 0.5, seed)
    return out


@pytest.mark.parametrize("n", [1, 13, 32, 100])
def test_an_int_axis(n):
    out = torch.zeros(5, n, dtype=torch.bool, device=DEVICE)
    assert_equal(compiled(int_mask, [2])(out, 4), philox.bernoulli(4, 0.5, (5, n)))


def scalar_mask(out, p: float, seed: int):
    for t in hl.tile(out.size(0)):
        out[t] = hl.bernoulli([], p, seed).to(torch.int32) + hl.zeros([t], torch.int32)
    return out


@pytest.mark.parametrize("seed", range(4))
def test_a_scalar_takes_value_0_of_counter_0(seed):
    out = torch.zeros(5, dtype=torch.int32, device=DEVICE)
    want = int(philox.philox(seed, 0)[0]) & 0xFFFF < 2**15
    assert_equal(compiled(scalar_mask, [4])(out, 0.5, seed), np.full(5, want, np.int32))


def packed_part(out, begin: int, seed: int):
    for i, j in hl.tile([0, begin], out.size()):
        out[i, j] = hl.rand([i, j], seed=seed, packed=True)
    return out


def constant_part(out, seed: int):
    for i, j in hl.tile([0, 32], out.size()):
        out[i, j] = hl.rand([i, j], seed=seed, packed=True)
    return out


@pytest.mark.parametrize("block", [32, 8])
def test_a_range_is_packed_like_the_whole_axis(block):
    want = philox.uniform(philox.packed_full(4, (3, 100), 32))
    want[:, :32] = -1
    assert_equal(compiled(packed_part, [2, block])(empty(3, 100), 32, 4), want)
    assert_equal(compiled(constant_part, [2, block])(empty(3, 100), 4), want)


def shard_mask(out, row: int, column: int, m: int, n: int, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.bernoulli([i, j], 0.5, seed, origin=[row, column], extents=[m, n])
    return out


def aligned_shard_mask(out, row: int, m: int, n: int, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.bernoulli([i, j], 0.5, seed, origin=[row, 64], extents=[m, n])
    return out


def test_shards_of_a_mask_equal_the_whole():
    want = philox.bernoulli(6, 0.5, (7, 130))
    whole = torch.zeros(7, 130, dtype=torch.bool, device=DEVICE)
    kernel = compiled(shard_mask, [2, 32])
    for rows in (slice(0, 3), slice(3, 7)):
        for columns in (slice(0, 51), slice(51, 130)):
            kernel(whole[rows, columns], rows.start, columns.start, 7, 130, 6)
    assert_equal(whole, want)
    part = torch.zeros(4, 66, dtype=torch.bool, device=DEVICE)
    kernel = compiled(aligned_shard_mask, [2, 32])
    assert "tl.permute" in kernel.bind((part, 3, 7, 130, 6)).to_triton_code()
    assert_equal(kernel(part, 3, 7, 130, 6), want[3:, 64:])


def far_mask(out, first: int, n: int, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.bernoulli([i, j], 0.5, seed, bits=32, origin=[first, 0], extents=[1, n])
    return out


def test_counters_pass_2_to_the_32():
    first, n = 2**30, 4099
    indices = np.meshgrid(first + np.arange(2), np.arange(70), indexing="ij")
    want = philox.packed(5, tuple(indices), (1, n), 32).astype(np.int64) < 2**31
    for block in (64, 8):
        out = torch.zeros(2, 70, dtype=torch.bool, device=DEVICE)
        assert_equal(compiled(far_mask, [2, block])(out, first, n, 5), want)


def row_seed_mask(out, seeds):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.bernoulli([i, j], 0.5, seeds[i, None])
    return out


def element_seed_mask(out, seeds):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.bernoulli([i, j], 0.5, seeds[i, j])
    return out


@pytest.mark.parametrize("block", [32, 8])
def test_seeds_of_rows_and_of_elements(block):
    seeds = torch.arange(5 * 40, device=DEVICE).reshape(5, 40)
    for function, own in ((row_seed_mask, seeds[:, 0]), (element_seed_mask, seeds)):
        out = torch.zeros(5, 40, dtype=torch.bool, device=DEVICE)
        key = numpy(own if own.dim() == 2 else own[:, None]) + np.zeros((1, 40), np.int64)
        want = philox.packed(key, tuple(np.indices((5, 40))), (5, 40), 16) < 2**15
        assert_equal(compiled(function, [2, block])(out, own.contiguous()), want)


# -- probabilities -------------------------------------------------------------------------------


def tensor_p(out, p, seed: int, bits: hl.constexpr):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.bernoulli([i, j], p, seed, bits=bits)
    return out


def row_p(out, p, seed: int, bits: hl.constexpr):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.bernoulli([i, j], p[i, None], seed, bits=bits)
    return out


def element_p(out, p, seed: int, bits: hl.constexpr):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.bernoulli([i, j], p[i, j], seed, bits=bits)
    return out


@pytest.mark.parametrize("block", [64, 8])
@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("function", [tensor_p, row_p, element_p])
def test_probabilities_in_memory(function, bits, block):
    p = torch.linspace(-0.1, 1.1, 5 * 64, device=DEVICE).reshape(5, 64)
    p[0, 0], p[1, 0] = 0, 1
    p = {tensor_p: p[2, :1], row_p: p[:, 0], element_p: p}[function].contiguous()
    share = numpy(p)[:, None] if function is row_p else numpy(p)
    limit = np.round(share.astype(np.float64) * 2**bits)
    want = philox.packed_full(3, (5, 64), bits) < limit
    kernel = compiled(function, [2, block])
    assert_equal(kernel(torch.zeros(5, 64, dtype=torch.bool, device=DEVICE), p, 3, bits), want)
    kernel = compiled(function, ref_mode=EAGER)
    assert_equal(kernel(torch.zeros(5, 64, dtype=torch.bool, device=DEVICE), p, 3, bits), want)


@pytest.mark.parametrize("bits", [8, 16, 32])
@pytest.mark.parametrize("block", [64, 8])
def test_never_and_always(bits, block):
    kernel = compiled(mask, [2, block])
    for p in (0, 1, 0.0, 1.0):
        out = torch.zeros(3, 70, dtype=torch.bool, device=DEVICE)
        assert_equal(kernel(out, p, 8, bits), np.full((3, 70), bool(p)))


def constant_p(out, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.bernoulli([i, j], 0.1, seed, bits=32)
    return out


def test_a_constant_probability_is_exact_to_the_last_bit():
    out = torch.zeros(4, 70, dtype=torch.bool, device=DEVICE)
    kernel = compiled(constant_p, [2, 64])
    assert f"< {round(0.1 * 2**32)}" in kernel.bind((out, 1)).to_triton_code()
    assert_equal(kernel(out, 1), philox.bernoulli(1, 0.1, (4, 70), 32))


# -- the same in every mode ----------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_the_reference_mode_packs_the_same(shape):
    kernel = compiled(packed_rand, ref_mode=EAGER)
    want = philox.uniform(philox.packed_full(3, shape, 32))
    assert_equal(kernel(empty(*shape), 3), want)
    for bits in (8, 16, 32):
        out = torch.zeros(shape, dtype=torch.bool, device=DEVICE)
        got = compiled(mask, ref_mode=EAGER)(out, 0.3, 3, bits)
        assert_equal(got, philox.bernoulli(3, 0.3, shape, bits))


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize(
    "config",
    [
        helion.Config(block_sizes=[2, 64], loop_orders=[[1, 0]]),
        helion.Config(block_sizes=[4, 32], l2_groupings=[2]),
        helion.Config(block_sizes=[1, 128], num_warps=1),
        helion.Config(block_sizes=[2, 64], flatten_loops=[True]),
        helion.Config(block_sizes=[2, 64], pid_type="persistent_blocked"),
        helion.Config(block_sizes=[2, 64], pid_type="persistent_interleaved"),
        helion.Config(block_sizes=[2, 64], pid_type="xyz"),
    ],
    ids=["order", "grouping", "warps", "flattened", "blocked", "interleaved", "xyz"],
)
def test_every_order(config, static):
    kernel = helion.kernel(mask, config=config, static_shapes=static)
    out = torch.zeros(7, 200, dtype=torch.bool, device=DEVICE)
    assert_equal(kernel(out, 0.25, 5, 16), philox.bernoulli(5, 0.25, (7, 200)))


def count_kept(out, width: hl.constexpr, seed: int):
    for i in hl.tile(out.size(0)):
        out[i] = hl.bernoulli([i, width], 0.5, seed).to(torch.int32).sum(1)
    return out


@pytest.mark.parametrize("chunk", [None, 64, 32, 8])
def test_a_row_in_chunks_is_the_whole_row(chunk):
    kernel = helion.kernel(count_kept, config={"block_sizes": [2], "reduction_loops": [chunk]})
    got = kernel(torch.zeros(5, dtype=torch.int32, device=DEVICE), 200, 3)
    assert_equal(got, philox.bernoulli(3, 0.5, (5, 200)).sum(1, dtype=np.int32))
