"""`hl.rand` bit for bit: against Philox in NumPy, Random123's vectors, and `tl.rand` by hand."""

import numpy as np
import philox
import pytest
import torch

import helion  # before Triton, so that it can turn the interpreter on
import helion.language as hl
from helion import exc
from helion._testing import DEVICE
from helion.language import _philox
from helion.runtime import interpreter

# isort: split
import triton
import triton.language as tl

interpreter.install()
SEEDS = [0, 1, -1, 2**31, 2**32 + 1, 2**63 - 1, -(2**63)]
FACTOR = 1000003

# counter, key, result: the lines `philox4x32 10` of Random123's `kat_vectors`.
RANDOM123 = [
    ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
    ([2**32 - 1] * 4, [2**32 - 1] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


def empty(*shape, dtype=torch.float32):
    return torch.full(shape, -1, dtype=dtype, device=DEVICE)


def bits(values):
    """The bits of float32 numbers: equal floats are not enough, 0.0 is not -0.0."""
    if isinstance(values, torch.Tensor):
        values = values.cpu().numpy()
    assert values.dtype == np.float32
    return np.ascontiguousarray(values).view(np.uint32)


def assert_same(got, want):
    np.testing.assert_array_equal(bits(got), bits(want))


def compiled(function, blocks=None, **settings):
    config = None if blocks is None else helion.Config(block_sizes=blocks)
    return helion.kernel(function, config=config, autotune_effort="none", **settings)


# -- the oracle ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("counter", "key", "want"), RANDOM123)
def test_oracles_make_the_published_words(counter, key, want):
    seed = key[0] + (key[1] << 32)
    assert [int(w) for w in philox.philox(seed, tuple(counter))] == want
    offset = torch.tensor(_philox.wrap64(counter[0] + (counter[1] << 32)))
    if counter[2:] == [0, 0]:
        assert [int(w) for w in _philox.philox4x32(seed, offset)] == want


def test_kernel_draws_the_published_word():
    word = RANDOM123[0][2][0]
    got = compiled(line)(empty(1), 0)
    assert_same(got, philox.uniform(np.array([word], np.uint32)))


# -- shapes --------------------------------------------------------------------------------------


def line(out, seed: int):
    for t in hl.tile(out.size(0)):
        out[t] = hl.rand([t], seed=seed)
    return out


def plane(out, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.rand([i, j], seed=seed)
    return out


def cube(out, seed: int):
    for i, j, k in hl.tile(out.size()):
        out[i, j, k] = hl.rand([i, j, k], seed=seed)
    return out


def nested(out, seed: int):
    for i in hl.tile(out.size(0)):
        for j in hl.tile(out.size(1)):
            out[i, j] = hl.rand([i, j], seed=seed)
    return out


def tile_by_int(out, seed: int):
    n = hl.specialize(out.size(1))
    for i in hl.tile(out.size(0)):
        out[i, :] = hl.rand([i, n], seed=seed)
    return out


def int_by_tile(out, seed: int):
    m = hl.specialize(out.size(0))
    for j in hl.tile(out.size(1)):
        out[:, j] = hl.rand([m, j], seed=seed)
    return out


def int_between_tiles(out, seed: int):
    n = hl.specialize(out.size(1))
    for i, k in hl.tile([out.size(0), out.size(2)]):
        out[i, :, k] = hl.rand([i, n, k], seed=seed)
    return out


def ints_only(out, seed: int):
    m, n = hl.specialize(out.size())
    for _ in hl.grid(1):
        out[:, :] = hl.rand([m, n], seed=seed)
    return out


def grid_by_tile(out, seed: int):
    m, n = out.size()
    for r in hl.grid(m):
        for j in hl.tile(n):
            drawn = hl.rand([1, j], seed=seed, origin=[r, 0], extents=[m, n])
            out[r, j] = drawn.sum(0)
    return out


def grid_of_offsets(out, seed: int):
    m, n = out.size()
    for r in hl.grid(m):
        for j in hl.tile(n):
            out[r, j] = hl.rand([j], seed=seed, offsets=r * n + j.index)
    return out


def two_loops(out, other, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.rand([i, j], seed=seed)
    for j, i in hl.tile([other.size(1), other.size(0)]):
        other[i, j] = hl.rand([i, j], seed=seed)


SHAPES = [
    (line, [1], [[1], [16]]),
    (line, [97], [[16], [32], [128]]),
    (line, [0], [[16]]),
    (plane, [1, 1], [[4, 4]]),
    (plane, [7, 13], [[1, 16], [4, 2], [8, 16]]),
    (plane, [5, 0], [[4, 4]]),
    (plane, [1, 33], [[1, 8], [4, 64]]),
    (plane, [33, 1], [[16, 1], [8, 2]]),
    (cube, [3, 5, 7], [[1, 2, 8], [4, 8, 4], [2, 1, 1]]),
    (cube, [2, 1, 11], [[2, 4, 4]]),
    (nested, [7, 13], [[4, 8], [2, 16]]),
    (tile_by_int, [7, 13], [[2], [8]]),
    (tile_by_int, [7, 1], [[4]]),
    (int_by_tile, [7, 13], [[4], [16]]),
    (int_between_tiles, [3, 5, 7], [[2, 4], [4, 8]]),
    (ints_only, [7, 13], [None]),
    (ints_only, [1, 1], [None]),
    (grid_by_tile, [5, 13], [[4], [16]]),
    (grid_of_offsets, [5, 13], [[4], [16]]),
]


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("index_dtype", [torch.int32, torch.int64], ids=["int32", "int64"])
@pytest.mark.parametrize(
    ("function", "shape", "blocks"),
    [(f, s, b) for f, s, many in SHAPES for b in many],
    ids=lambda v: getattr(v, "__name__", "x".join(map(str, v or [])) if not callable(v) else ""),
)
def test_every_shape_and_block_size(function, shape, blocks, static, index_dtype):
    kernel = compiled(function, blocks, static_shapes=static, index_dtype=index_dtype)
    for seed in (7, 2**40 + 3):
        assert_same(kernel(empty(*shape), seed), philox.rand_full(seed, *shape))


@pytest.mark.parametrize(
    "config",
    [
        helion.Config(block_sizes=[4, 8], loop_orders=[[1, 0]]),
        helion.Config(block_sizes=[4, 8], l2_groupings=[2]),
        helion.Config(block_sizes=[4, 8], num_warps=1, num_stages=3),
        helion.Config(block_sizes=[4, 8], flatten_loops=[True]),
        helion.Config(block_sizes=[4, 8], pid_type="persistent_blocked"),
        helion.Config(block_sizes=[4, 8], pid_type="persistent_interleaved"),
        helion.Config(block_sizes=[4, 8], pid_type="xyz"),
    ],
    ids=["order", "grouping", "warps", "flattened", "blocked", "interleaved", "xyz"],
)
def test_every_order(config):
    kernel = helion.kernel(plane, config=config)
    assert_same(kernel(empty(7, 13), 5), philox.rand_full(5, 7, 13))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_every_seed(seed, static):
    kernel = compiled(plane, [4, 8], static_shapes=static)
    assert_same(kernel(empty(7, 13), seed), philox.rand_full(seed, 7, 13))


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_several_top_level_loops(static):
    one, other = empty(7, 13), empty(5, 13)
    compiled(two_loops, [2, 4, 8, 4], static_shapes=static)(one, other, 3)
    assert_same(one, philox.rand_full(3, 7, 13))
    assert_same(other, philox.rand_full(3, 5, 13))


def part(out, begin: int, seed: int):
    for i, j in hl.tile([begin, 2], [out.size(0), out.size(1)]):
        out[i, j] = hl.rand([i, j], seed=seed)
    return out


@pytest.mark.parametrize("begin", [0, 3, 6])
def test_a_range_draws_what_the_whole_axis_draws_there(begin):
    want = philox.rand_full(9, 7, 13)
    want[:begin] = want[:, :2] = -1
    assert_same(compiled(part, [2, 4])(empty(7, 13), begin, 9), want)


def transposed(out, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.rand([j, i], seed=seed).t()
    return out


def test_the_listed_order_counts():
    assert_same(compiled(transposed, [4, 8])(empty(7, 13), 3), philox.rand_full(3, 13, 7).T)


def scalar(out, seed: int):
    for t in hl.tile(out.size(0)):
        out[t] = hl.rand([], seed=seed) + hl.zeros([t])
    return out


def test_an_empty_shape_draws_the_number_at_offset_zero():
    assert_same(compiled(scalar, [8])(empty(20), 7), np.full(20, philox.rand(7, 0)))


# -- the ends of the range -----------------------------------------------------------------------


def test_zero_can_occur_and_one_cannot():
    kernel = compiled(line, [64])
    assert kernel(empty(64), 65551043)[27] == 0.0
    largest = kernel(empty(64), 63156050)[38].item()
    assert largest == np.nextafter(np.float32(1), np.float32(0))


# -- offsets -------------------------------------------------------------------------------------


def by_offsets(out, offsets, seed: int):
    for t in hl.tile(out.size(0)):
        out[t] = hl.rand([t], seed=seed, offsets=offsets[t])
    return out


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.int16, torch.uint8])
def test_offsets_by_hand(dtype):
    info = torch.iinfo(dtype)
    values = [0, 1, info.max, info.min, -1 if info.min else 5, info.max // 3]
    if dtype is torch.int64:
        values += [2**32, 2**32 + 5, 2**40 + 7]
    offsets = torch.tensor(values, dtype=dtype, device=DEVICE)
    got = compiled(by_offsets, [8])(empty(len(values)), offsets, 3)
    assert_same(got, philox.rand(3, np.array(values)))


def far(out, first: int, n: int, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.rand([i, j], seed=seed, origin=[first, 5], extents=[1, n])
    return out


def test_offsets_pass_2_to_the_32():
    first, n = 2**21, 4099
    rows, columns = first + np.arange(3)[:, None], 5 + np.arange(9)
    got = compiled(far, [2, 4])(empty(3, 9), first, n, 11)
    assert_same(got, philox.rand(11, rows * n + columns))


@triton.jit
def tl_rand(out, offsets, seed, N: tl.constexpr):
    lane = tl.arange(0, N)
    tl.store(out + lane, tl.rand(seed, tl.load(offsets + lane)))


def test_equals_tl_rand_by_hand():
    offsets = torch.arange(64, device=DEVICE) * 2**27
    want = empty(64)
    tl_rand[(1,)](want, offsets, 2**33 + 1, 64)
    assert_same(compiled(by_offsets, [16])(empty(64), offsets, 2**33 + 1), want)


# -- shards --------------------------------------------------------------------------------------


def shard(out, row: int, column: int, m: int, n: int, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.rand([i, j], seed=seed, origin=[row, column], extents=[m, n])
    return out


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_shards_equal_the_whole(static):
    kernel = compiled(shard, [2, 8], static_shapes=static)
    whole = empty(7, 13)
    for rows in (slice(0, 3), slice(3, 7)):
        for columns in (slice(0, 6), slice(6, 13)):
            kernel(whole[rows, columns], rows.start, columns.start, 7, 13, 4)
    assert_same(whole, philox.rand_full(4, 7, 13))


def jagged(out, ends, seed: int):
    for i in hl.tile(out.size(0)):
        for j in hl.tile(0, ends[0]):
            out[i, j] = hl.rand([i, j], seed=seed, extents=[1, out.size(1)])
    return out


def test_bounds_from_memory_need_extents():
    want = philox.rand_full(4, 7, 13)
    want[:, 9:] = -1
    ends = torch.tensor([9], device=DEVICE)
    assert_same(compiled(jagged, [4, 4])(empty(7, 13), ends, 4), want)


# -- seeds ---------------------------------------------------------------------------------------


def tensor_seed(out, seed):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.rand([i, j], seed=seed)
    return out


def row_seeds(out, seeds):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.rand([i, j], seed=seeds[i, None])
    return out


def element_seeds(out, seeds):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.rand([i, j], seed=seeds[i, j])
    return out


def test_a_seed_in_memory_is_read_at_each_launch():
    kernel = compiled(tensor_seed, [4, 8])
    seed = torch.tensor([5], device=DEVICE)
    assert_same(kernel(empty(7, 13), seed), philox.rand_full(5, 7, 13))
    seed.fill_(-6)
    assert_same(kernel(empty(7, 13), seed), philox.rand_full(-6, 7, 13))
    assert_same(kernel(empty(7, 13), torch.tensor([-6], device=DEVICE)), kernel(empty(7, 13), seed))


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_a_seed_in_memory_has_one_element(static):
    kernel = compiled(tensor_seed, [4, 8], static_shapes=static)
    for shape in ([], [1], [1, 1]):
        seed = torch.full(shape, 5, device=DEVICE)
        assert_same(kernel(empty(7, 13), seed), philox.rand_full(5, 7, 13))
    with pytest.raises(exc.SeedShapeMismatch):
        kernel(empty(7, 13), torch.tensor([5, 6], device=DEVICE))


@pytest.mark.gpu
def test_a_graph_replays_with_the_seed_that_is_in_memory():
    kernel = compiled(tensor_seed, [4, 8])
    out, seed = empty(7, 13), torch.tensor([5], device=DEVICE)
    kernel(out, seed)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(out, seed)
    for value in (6, -1, 2**40):
        seed.fill_(value)
        graph.replay()
        assert_same(out, philox.rand_full(value, 7, 13))


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
@pytest.mark.parametrize("function", [row_seeds, element_seeds])
def test_a_seed_for_each_row_or_element(function, dtype):
    m, n = 7, 13
    shape = (m,) if function is row_seeds else (m, n)
    seeds = torch.arange(m * n, dtype=dtype, device=DEVICE)[: np.prod(shape)].reshape(shape)
    seeds[0] = torch.iinfo(dtype).max
    key = seeds.cpu().numpy()
    want = philox.rand(key[:, None] if key.ndim == 1 else key, np.arange(m * n).reshape(m, n))
    assert_same(compiled(function, [2, 8])(empty(m, n), seeds), want)


def host_expression(out, seed: int):
    layer = seed * FACTOR + 1
    for r in hl.grid(out.size(0)):
        for t in hl.tile(out.size(1)):
            out[r, t] = hl.rand([t], seed=layer + r)
    return out


def device_expression(out, seed: int):
    for r in hl.grid(out.size(0)):
        for t in hl.tile(out.size(1)):
            out[r, t] = hl.rand([t], seed=seed * FACTOR + r + 1)
    return out


def rebound_seed(out, seed: int):
    seed = seed * FACTOR + 1
    for r in hl.grid(out.size(0)):
        for t in hl.tile(out.size(1)):
            out[r, t] = hl.rand([t], seed=seed + r)
    return out


def carried_seed(out, seed: int):
    n = hl.specialize(out.size(1))
    for _ in hl.grid(1):
        own = 0
        for r in hl.grid(out.size(0)):
            if r == 0:
                own = seed * FACTOR + 1
            out[r, :] = hl.rand([n], seed=own)
            own = own + 1
    return out


@pytest.mark.parametrize("seed", [*SEEDS, 2**31 - 1])
@pytest.mark.parametrize(
    "function", [host_expression, device_expression, rebound_seed, carried_seed]
)
def test_seed_arithmetic_is_exact_modulo_2_to_the_64(function, seed):
    kernel = compiled(function)
    want = np.stack([philox.rand_full(seed * FACTOR + r + 1, 9) for r in range(3)])
    assert_same(kernel(empty(3, 9), seed), want)


def seed_expressions(out, seed: int):
    n = hl.specialize(out.size(1))
    for r in hl.grid(3, 4):
        out[0, :] = hl.rand([n], seed ^ r)
        out[1, :] = hl.rand([n], seed << 32 | r)
        out[2, :] = hl.rand([n], seed & 0xFFFF)
        out[3, :] = hl.rand([n], -seed)
        out[4, :] = hl.rand([n], seed // 1000)
        out[5, :] = hl.rand([n], seed % 1000)
        out[6, :] = hl.rand([n], seed >> 1)
        out[7, :] = hl.rand([n], abs(seed) + 2**63)
        out[8, :] = hl.rand([n], (seed + r) * (seed - r) * 2**40)
    return out


EXPRESSIONS = [
    lambda s: s ^ 3, lambda s: s << 32 | 3, lambda s: s & 0xFFFF, lambda s: -s,
    lambda s: s // 1000, lambda s: s % 1000, lambda s: s >> 1, lambda s: abs(s) + 2**63,
    lambda s: (s + 3) * (s - 3) * 2**40,
]  # fmt: skip


@pytest.mark.parametrize("seed", [5, -7, -1000, 2**40 + 3, -(2**62) - 1, 2**31 - 1])
def test_seed_arithmetic_is_pythons_modulo_2_to_the_64(seed):
    got = compiled(seed_expressions)(empty(len(EXPRESSIONS), 9), seed)
    assert_same(got, np.stack([philox.rand_full(e(seed), 9) for e in EXPRESSIONS]))


def constant_seed(out):
    for t in hl.tile(out.size(0)):
        out[t] = hl.rand([t], seed=SEED)  # noqa: F821  the test sets it
    return out


@pytest.mark.parametrize("seed", [*SEEDS, 2**64 - 1])
def test_a_constant_seed(seed, monkeypatch):
    monkeypatch.setitem(constant_seed.__globals__, "SEED", seed)
    assert_same(compiled(constant_seed, [8])(empty(20)), philox.rand_full(seed, 20))


def on_a_device(out, seed: int):
    for t in hl.tile(out.size(0)):
        out[t] = hl.rand([t], seed, out.device)
    return out


def test_device_argument():
    assert_same(compiled(on_a_device, [8])(empty(20), 3), philox.rand_full(3, 20))


# -- what a seed does not do ---------------------------------------------------------------------


@pytest.mark.parametrize("function", [plane, host_expression, device_expression])
def test_no_new_seed_compiles_again(function):
    kernel = compiled(function, static_shapes=False)
    bound = {id(kernel.bind((empty(3, 9), seed))) for seed in SEEDS}
    assert len(bound) == 1
    code = kernel.bind((empty(3, 9), 1)).to_triton_code()
    # Triton's cache looks at the type and, unless told otherwise, at 1 and multiples of 16.
    assert "do_not_specialize=['seed']" in code
    assert "seed: tl.int64" in code


@pytest.mark.gpu
@pytest.mark.parametrize("function", [plane, host_expression, device_expression])
def test_no_new_seed_compiles_again_in_triton(function):
    kernel = compiled(function, static_shapes=False)
    for seed in SEEDS:
        kernel(empty(3, 9), seed)
    module = kernel.bind((empty(3, 9), 1)).compile_config().__globals__
    (cache, *_) = module[f"_helion_{function.__name__}"].device_caches[DEVICE.index or 0]
    assert len(cache) == 1


# -- modes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "shape"),
    [(f, s) for f, s, _ in SHAPES if f is not ints_only],
    ids=lambda v: getattr(v, "__name__", "x".join(map(str, v)) if isinstance(v, list) else ""),
)
def test_the_reference_mode_draws_the_same(function, shape):
    kernel = compiled(function, ref_mode=helion.RefMode.EAGER)
    for seed in (3, -1):
        assert_same(kernel(empty(*shape), seed), philox.rand_full(seed, *shape))


def test_the_reference_mode_knows_origins_offsets_and_seeds_of_rows():
    whole = empty(7, 13)
    eager = helion.RefMode.EAGER
    compiled(shard, ref_mode=eager)(whole[3:, 6:], 3, 6, 7, 13, 4)
    assert_same(whole[3:, 6:], philox.rand_full(4, 7, 13)[3:, 6:])
    offsets = torch.tensor([-1, 2**40], device=DEVICE)
    got = compiled(by_offsets, ref_mode=eager)(empty(2), offsets, 5)
    assert_same(got, philox.rand(5, np.array([-1, 2**40])))
    seeds = torch.arange(7, device=DEVICE)
    got = compiled(row_seeds, ref_mode=eager)(empty(7, 13), seeds)
    assert_same(got, philox.rand(np.arange(7)[:, None], np.arange(91).reshape(7, 13)))


def test_forward_and_backward_may_tile_differently():
    one = compiled(nested, [2, 8], static_shapes=True)(empty(7, 13), 5)
    other = compiled(plane, [8, 4], static_shapes=False, index_dtype=torch.int64)(empty(7, 13), 5)
    assert_same(one, other)


# -- warnings ------------------------------------------------------------------------------------


def repeats(out, seed: int):
    for i in hl.tile(out.size(0)):
        for j in hl.tile(out.size(1)):
            row = hl.rand([i], seed=seed)  # the same for each j
            out[i, j] = row[:, None] + hl.zeros([i, j])
    return out


def test_repeated_numbers_are_warned_about_once(capsys):
    kernel = compiled(repeats, [4, 4])
    got = kernel(empty(7, 13), 5)
    kernel(empty(7, 13), 6)
    text = capsys.readouterr().err
    assert text.count("WARNING[RepeatedRandomNumbers]") == 1
    assert "the loop over `j`" in text
    assert "row = hl.rand([i], seed=seed)" in text
    assert_same(got, np.broadcast_to(philox.rand_full(5, 7)[:, None], (7, 13)))


def test_the_warning_can_be_silenced(capsys):
    compiled(repeats, [4, 4], ignore_warnings=[exc.RepeatedRandomNumbers])(empty(7, 13), 5)
    assert capsys.readouterr().err == ""


def test_a_seed_that_does_not_fit_is_refused_before_anything_is_written():
    out = empty(20)
    with pytest.raises(exc.SeedOutOfRange, match="64 bits"):
        compiled(line, [8])(out, 2**64)
    assert bool((out == -1).all())
