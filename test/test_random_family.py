"""The members of the random family beside `hl.rand` and masks: values, seeds, mistakes."""

import numpy as np
import philox
import pytest
import torch
from test_random_packed import EAGER, assert_equal, mask, numpy
from test_rng import DEVICE, compiled, empty

import helion
import helion.language as hl
import helion.random
from helion import exc

# -- values --------------------------------------------------------------------------------------

FUNCTIONS = {
    name: getattr(helion.random, name)
    for name in ("rand", "uniform", "randn", "exponential", "gumbel", "randint", "random_bits")
}


def draw_rand(out, dtype: hl.constexpr, packed: hl.constexpr, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.rand([i, j], seed, dtype=dtype, packed=packed)
    return out


def draw_randn(out, dtype: hl.constexpr, packed: hl.constexpr, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.randn([i, j], seed, dtype=dtype, packed=packed)
    return out


def draw_exponential(out, dtype: hl.constexpr, packed: hl.constexpr, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.exponential([i, j], seed, dtype=dtype, packed=packed)
    return out


def draw_gumbel(out, dtype: hl.constexpr, packed: hl.constexpr, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.gumbel([i, j], seed, dtype=dtype, packed=packed)
    return out


def draw_uniform(out, dtype: hl.constexpr, packed: hl.constexpr, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.uniform([i, j], -1.5, 3, seed, dtype=dtype, packed=packed)
    return out


def draw_bits(out, dtype: hl.constexpr, packed: hl.constexpr, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.random_bits([i, j], seed, dtype, packed=packed)
    return out


M, N = 5, 72
OFFSETS = philox.offsets_of(M, N)
SEED = 2**33 + 5


def wanted_unit(packed, dtype):
    words = philox.philox(SEED, OFFSETS)
    if dtype is torch.float64:
        return philox.unit64(words[0], words[1])
    return philox.uniform(philox.packed_full(SEED, (M, N), 32) if packed else words[0])


def wanted_normal(packed, dtype):
    def pair(u0, u1, least):
        radius = np.sqrt(-2 * np.log(np.maximum(u0.astype(np.float64), least)))
        angle = 2 * np.pi * u1.astype(np.float64)
        return radius * np.cos(angle), radius * np.sin(angle)

    words = philox.philox(SEED, OFFSETS)
    if dtype is torch.float64:
        halves = philox.unit64(*words[:2]), philox.unit64(*words[2:])
        return pair(*halves, 2.0**-54)[0]
    if not packed:
        return pair(*map(philox.uniform, words[:2]), 1e-7)[0]
    # Value j of a group: cosine and sine of one pair, then of the other.
    row, c = np.indices((M, N))
    counter = row * (128 // 4) + c // 16 * 4 + c % 8 // 2
    u = [philox.uniform(w) for w in philox.philox(SEED, counter)]
    values = [*pair(u[0], u[1], 1e-7), *pair(u[2], u[3], 1e-7)]
    return np.choose(c % 16 // 8 * 2 + c % 2, values)


def wanted_exponential(packed, dtype):
    least = 2.0**-54 if dtype is torch.float64 else 2.0**-32
    return -np.log(np.maximum(wanted_unit(packed, dtype).astype(np.float64), least))


REAL = {
    draw_rand: wanted_unit,
    draw_uniform: lambda packed, dtype: wanted_unit(packed, dtype).astype(np.float64) * 4.5 - 1.5,
    draw_randn: wanted_normal,
    draw_exponential: wanted_exponential,
    draw_gumbel: lambda packed, dtype: -np.log(wanted_exponential(packed, dtype)),
}
# One rounding to the dtype; float32's logarithms and cosines may err by a few units in the last
# place (and the cosine of 2 pi u by the rounding of its argument: 4e-7).
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}


@pytest.mark.parametrize("mode", ["compiled", "eager"])
@pytest.mark.parametrize(
    ("dtype", "packed"),
    [(d, k) for d in TOLERANCE for k in (False, True) if not (k and d is torch.float64)],
    ids=str,
)
@pytest.mark.parametrize("function", list(REAL), ids=lambda f: f.__name__)
def test_real_numbers(function, dtype, packed, mode):
    kernel = compiled(function, [4, 64], ref_mode=EAGER if mode == "eager" else helion.RefMode.OFF)
    got = kernel(empty(M, N, dtype=dtype), dtype, packed, SEED)
    want = REAL[function](packed, dtype)
    within = TOLERANCE[dtype]
    np.testing.assert_allclose(numpy(got), want, rtol=within, atol=within)
    assert torch.isfinite(got).all()


@pytest.mark.parametrize("packed", [False, True])
def test_short_uniforms_are_rounded_down(packed):
    for dtype, mantissa in ((torch.float16, 11), (torch.bfloat16, 8)):
        got = compiled(draw_rand, [4, 64])(empty(M, N, dtype=dtype), dtype, packed, SEED)
        want = philox.rounded_down(wanted_unit(packed, dtype), mantissa)
        if dtype is torch.float16:  # below 2**-14 float16 has a fixed step of 2**-24
            small = want < 2.0**-14
            want = np.where(small, np.floor(wanted_unit(packed, dtype) * 2.0**24) / 2**24, want)
        assert_equal(got, want.astype(np.float32))


def test_uniforms_that_round_to_nearest_would_reach_one():
    seed, index = 63156050, 38  # float32 draws the largest number below 1 there
    for dtype in (torch.float16, torch.bfloat16):
        got = helion.random.rand([64], seed, dtype=dtype)
        assert got[index].float() < 1
        assert got[index] == torch.nextafter(
            torch.ones((), dtype=dtype), torch.zeros((), dtype=dtype)
        )
        got = helion.random.uniform([64], 0, 2, seed, dtype=dtype)
        assert (got < 2).all()
        got = compiled(line_uniform, [64])(empty(64, dtype=dtype), dtype, seed)
        assert (got < 2).all()


def line_uniform(out, dtype: hl.constexpr, seed: int):
    for t in hl.tile(out.size(0)):
        out[t] = hl.uniform([t], 0, 2, seed, dtype=dtype)
    return out


def test_the_ends_of_the_range_stay_finite():
    at_zero, at_one = (65551043, 27), (63156050, 38)
    for seed, index in (at_zero, at_one):
        for name in ("exponential", "gumbel", "randn"):
            assert torch.isfinite(FUNCTIONS[name]([64], seed)).all()
        assert FUNCTIONS["exponential"]([64], seed)[index] > 0
    assert FUNCTIONS["exponential"]([64], at_zero[0])[27].item() == pytest.approx(32 * np.log(2))


INTEGERS = [torch.uint8, torch.int16, torch.uint32, torch.int32, torch.uint64, torch.int64]


@pytest.mark.parametrize("mode", ["compiled", "eager"])
@pytest.mark.parametrize(
    ("dtype", "packed"),
    [(d, k) for d in INTEGERS for k in (False, True) if not (k and d.itemsize == 8)],
    ids=str,
)
def test_random_bits(dtype, packed, mode):
    width = dtype.itemsize * 8
    kernel = compiled(draw_bits, [4, 64], ref_mode=EAGER if mode == "eager" else helion.RefMode.OFF)
    out = torch.zeros(M, N, dtype=dtype, device=DEVICE)
    words = philox.philox(SEED, OFFSETS)
    want = words[0].astype(np.uint64) | words[1].astype(np.uint64) << np.uint64(32)
    if packed:
        want = philox.packed_full(SEED, (M, N), width)
    name = str(dtype).removeprefix("torch.")
    assert_equal(kernel(out, dtype, packed, SEED), want.astype(f"uint{width}").astype(name))


def draw_randint(out, low: hl.constexpr, high: hl.constexpr, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.randint([i, j], low, high, seed, dtype=out.dtype)
    return out


RANGES = [
    (0, 1, torch.int32),
    (0, 10, torch.int32),
    (-7, 5, torch.int8),
    (0, 2**31, torch.int64),
    (-(2**31), 2**31, torch.int32),
    (0, 3 * 2**30, torch.uint32),
    (5, 2**32 + 5, torch.int64),
    (0, 2**32 + 1, torch.int64),
    (-(2**62), 2**62 + 12345, torch.int64),
    (-(2**63), 2**63, torch.int64),
    (0, 2**63, torch.int64),
]


@pytest.mark.parametrize("mode", ["compiled", "eager"])
@pytest.mark.parametrize(("low", "high", "dtype"), RANGES, ids=str)
def test_randint(low, high, dtype, mode):
    kernel = compiled(
        draw_randint, [4, 64], ref_mode=EAGER if mode == "eager" else helion.RefMode.OFF
    )
    got = kernel(torch.zeros(M, N, dtype=dtype, device=DEVICE), low, high, SEED)
    want = philox.randint(SEED, low, high, OFFSETS)
    assert [int(v) for v in numpy(got).flat] == want
    assert min(want) >= low
    assert max(want) < high


def randint_to_size(out, low: int, seed: int):
    n = out.size(0)
    for t in hl.tile(n):
        out[t] = hl.randint([t], low, n, seed)
    return out


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_randint_with_bounds_of_the_launch(static):
    kernel = compiled(randint_to_size, [64], static_shapes=static)
    for low, n in ((0, 50), (-3, 70)):
        out = torch.zeros(n, dtype=torch.int32, device=DEVICE)
        got = [int(v) for v in kernel(out, low, 9)]
        assert got == philox.randint(9, low, n, np.arange(n))
    with pytest.raises(exc.InvalidRandintRange, match="low=70, high=70"):
        kernel(torch.zeros(70, dtype=torch.int32, device=DEVICE), 70, 9)


def four(out, words, offsets, seed: int):
    for t in hl.tile(offsets.size(0)):
        u0, u1, u2, u3 = hl.rand4x(seed, offsets[t])
        out[0, t] = u0
        out[1, t] = u1
        out[2, t] = u2
        out[3, t] = u3
        w0, w1, w2, w3 = hl.randint4x(seed, offsets[t])
        words[0, t] = w0
        words[1, t] = w1
        words[2, t] = w2
        words[3, t] = w3
    return out, words


@pytest.mark.parametrize("mode", [EAGER, helion.RefMode.OFF], ids=["eager", "compiled"])
def test_four_words_for_each_offset(mode):
    offsets = torch.tensor([0, 1, -1, 2**32, 2**40 + 7], device=DEVICE)
    words = torch.zeros(4, 5, dtype=torch.int32, device=DEVICE)
    got, words = compiled(four, [8], ref_mode=mode)(empty(4, 5), words, offsets, SEED)
    want = np.stack(philox.philox(SEED, numpy(offsets)))
    assert_equal(got, philox.uniform(want))
    assert_equal(words, want.view(np.int32))


# -- seeds from seeds ----------------------------------------------------------------------------


def folded(out, seed: int, layer: int):
    for i in hl.grid(out.size(0)):
        for j in hl.tile(out.size(1)):
            out[i, j] = hl.rand([j], hl.fold_in(hl.fold_in(seed, layer), i))
    return out


def folded_rows(out, seeds, layer: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.rand([i, j], hl.fold_in(seeds[i, None], layer))
    return out


def splits(out, seed: int):
    for t in hl.tile(out.size(1)):
        one, two = hl.split_seed(seed, 2)
        out[0, t] = hl.rand([t], one)
        out[1, t] = hl.rand([t], two)
    return out


@pytest.mark.parametrize("mode", [EAGER, helion.RefMode.OFF], ids=["eager", "compiled"])
@pytest.mark.parametrize(("seed", "layer"), [(0, 0), (-1, 2**40), (2**63 - 1, -3)])
def test_derived_seeds(seed, layer, mode):
    whole = philox.fold_in(seed, layer)
    want = np.stack([philox.rand_full(philox.fold_in(whole, i), 20) for i in range(3)])
    assert_equal(compiled(folded, [32], ref_mode=mode)(empty(3, 20), seed, layer), want)
    seeds = torch.tensor([seed, 5, 6], device=DEVICE)
    keys = np.array([philox.fold_in(int(s), layer) for s in seeds])
    want = philox.rand(keys[:, None], philox.offsets_of(3, 20))
    assert_equal(compiled(folded_rows, [2, 32], ref_mode=mode)(empty(3, 20), seeds, layer), want)
    want = np.stack([philox.rand_full(s, 20) for s in philox.split_seed(seed, 2)])
    assert_equal(compiled(splits, [32], ref_mode=mode)(empty(2, 20), seed), want)
    assert helion.random.fold_in(seed, layer) == whole
    assert helion.random.split_seed(seed, 3) == tuple(philox.split_seed(seed, 3))


def folded_on_the_host(out, seed: int, layer: int):
    own = helion.random.fold_in(seed, layer)
    one, two = helion.random.split_seed(own, 2)
    for t in hl.tile(out.size(1)):
        out[0, t] = hl.rand([t], one)
        out[1, t] = hl.rand([t], two + own)
    return out


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_seeds_derived_in_the_host_part(static):
    kernel = compiled(folded_on_the_host, [32], static_shapes=static)
    for seed, layer in ((3, 5), (-1, 2**40), (3, 6)):
        own = philox.fold_in(seed, layer)
        one, two = philox.split_seed(own, 2)
        want = np.stack([philox.rand_full(one, 20), philox.rand_full(two + own, 20)])
        assert_equal(kernel(empty(2, 20), seed, layer), want)


# -- on the host ---------------------------------------------------------------------------------


def test_the_host_draws_the_same():
    shape = (5, 70)
    draws = helion.random
    assert_equal(draws.rand(shape, SEED), philox.rand_full(SEED, *shape))
    packed = philox.uniform(philox.packed_full(SEED, shape, 32))
    assert_equal(draws.rand(shape, SEED, packed=True), packed)
    assert_equal(draws.bernoulli(shape, 0.3, SEED, bits=8), philox.bernoulli(SEED, 0.3, shape, 8))
    whole = draws.randint(shape, 0, 7, SEED)
    part = draws.randint([2, 10], 0, 7, SEED, origin=[3, 60], extents=shape)
    assert torch.equal(part, whole[3:, 60:])
    seeds = torch.arange(5)[:, None]
    assert_equal(draws.rand(shape, seeds), philox.rand(seeds.numpy(), philox.offsets_of(*shape)))
    words = draws.philox(SEED, torch.arange(9))
    assert_equal(torch.stack(words), np.stack(philox.philox(SEED, np.arange(9))).astype(np.int64))
    with pytest.raises(exc.SeedNotInteger):
        draws.rand(shape, 0.5)
    with pytest.raises(exc.SeedOutOfRange):
        draws.rand(shape, 2**64)


# -- what is refused, and what is warned about ---------------------------------------------------


def percent(out, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.bernoulli([i, j], 10, seed)


def wrong_bits(out, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.bernoulli([i, j], 0.5, seed, bits=12)


def run_time_bits(out, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.bernoulli([i, j], 0.5, seed, bits=seed)


def whole_tensor_of_probabilities(out, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.bernoulli([i, j], out, seed)


def empty_range(out, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.randint([i, j], 5, 5, seed)


def wide_range(out, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.randint([i, j], 0, 300, seed, dtype=torch.uint8)


def upside_down(out, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.uniform([i, j], 1.0, 0.0, seed)


def packed_double(out, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.rand([i, j], seed, packed=True, dtype=torch.float64)


def packed_offsets(out, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.rand([i, j], seed, offsets=i.index[:, None] + j.index, packed=True)


def float_offsets(out, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.rand4x(seed, out[i, j])[0]


def float_seed(out, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.bernoulli([i, j], 0.5, 0.5)


@pytest.mark.parametrize(
    ("function", "error", "text"),
    [
        (percent, exc.ProbabilityOutOfRange, "from 0 to 1, got 10"),
        (wrong_bits, exc.InvalidRandArgument, "8, 16 or 32, known at compile time, not 12"),
        (run_time_bits, exc.InvalidRandArgument, "known at compile time"),
        (whole_tensor_of_probabilities, exc.InvalidRandArgument, "p is a number"),
        (empty_range, exc.InvalidRandintRange, "low=5, high=5"),
        (wide_range, exc.InvalidRandintRange, "uint8"),
        (upside_down, exc.InvalidRandArgument, "low < high"),
        (packed_double, exc.InvalidRandArgument, "without `packed`"),
        (packed_offsets, exc.InvalidRandArgument, "leave `offsets` out"),
        (float_offsets, exc.OffsetsNotInteger, "`hl.rand4x` needs an integer tensor"),
        (float_seed, exc.SeedNotInteger, "`hl.bernoulli` needs an integer seed"),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)
def test_mistakes_are_told_at_their_line(function, error, text):
    with pytest.raises(error, match=text) as caught:
        compiled(function, [4, 64])(empty(M, N), 3)
    assert function.__code__.co_filename.rpartition("/")[2] in str(caught.value)


def test_a_wrong_probability_is_refused_before_anything_is_written():
    out = torch.ones(4, 64, dtype=torch.bool, device=DEVICE)
    with pytest.raises(exc.ProbabilityOutOfRange, match=r"got 1\.5"):
        compiled(mask, [2, 64])(out, 1.5, 3, 16)
    assert bool(out.all())


def rare(out, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.bernoulli([i, j], 0.001, seed, bits=8)


def test_bits_too_few_for_a_probability_are_warned_about(capsys):
    compiled(rare, [2, 64])(torch.zeros(4, 64, dtype=torch.bool, device=DEVICE), 3)
    text = capsys.readouterr().err
    assert "WARNING[InexactProbability]" in text
    assert "with bits=8 makes the probability 0.0, not 0.001" in text
