"""Reductions against torch: whole axes and tiles, every dtype, whatever the masked lanes hold."""

import pytest
import torch
from torch.nn import functional as F

import helion
import helion.language as hl

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
SHAPES = [(5, 7), (4, 8), (3, 1), (1, 13)]


def compiled(function, *blocks, **settings):
    config = helion.Config(block_sizes=list(blocks))
    return helion.kernel(function, config=config, **settings)


def eager(function):
    return helion.kernel(function, ref_mode=helion.RefMode.EAGER)


def values(*shape, dtype=torch.float32):
    """Numbers that differ; for integers with repetitions, and few enough that products fit."""
    if dtype is torch.bool:
        return torch.rand(shape, device=DEVICE) < 0.7
    if not dtype.is_floating_point:
        return torch.randint(0 if dtype is torch.uint8 else -2, 3, shape, device=DEVICE).to(dtype)
    return torch.randn(shape, device=DEVICE, dtype=torch.float64).to(dtype)


def assert_close(got, want):
    assert got.dtype == want.dtype
    # Sums have another order than torch's. A half-precision result may be rounded the other way.
    eps = torch.finfo(want.dtype).eps if want.is_floating_point() else 0
    torch.testing.assert_close(got, want, rtol=8 * eps, atol=8 * eps, equal_nan=True)


# -- a whole axis --------------------------------------------------------------------------------


def rows(x, out, reduction):
    for t in hl.tile(x.size(0)):
        out[t] = reduction(x[t, :])


def total(v):
    return v.sum(-1)


def mean(v):
    return v.mean(1)


def product(v):
    return v.prod(-1)


def largest(v):
    return v.amax(-1)


def smallest(v):
    return torch.amin(v, 1)


def any_of(v):
    return v.any(-1)


def all_of(v):
    return torch.all(v, dim=1)


def largest_index(v):
    return v.argmax(-1)


def smallest_index(v):
    return torch.argmin(v, 1)


def max_value(v):
    return v.max(1).values


def max_index(v):
    return torch.max(v, -1)[1]


def min_pair(v):
    low, place = v.min(-1)
    return low + place


def kept(v):
    return v.sum(-1, keepdim=True) - v.amax(1, keepdim=True)


def kept_index(v):
    return v.argmax(1, keepdim=True) + v.min(1, keepdim=True)[1]


def variance(v):
    return v.var(-1)


def population_variance(v):
    return torch.var(v, 1, correction=0)


def deviation(v):
    return v.std(1)


def biased_deviation(v):
    return v.std(-1, unbiased=False, keepdim=True)


def moments(v):
    spread, center = torch.var_mean(v, 1)
    return spread - center


def deviation_and_mean(v):
    spread, center = torch.std_mean(v, -1, correction=0)
    return spread * center


def log_sum_exp(v):
    return torch.logsumexp(v, 1)


def softmax(v):
    return torch.softmax(v, -1)


def log_softmax(v):
    return F.log_softmax(v, dim=1)


def softmin(v):
    return F.softmin(v, dim=1)


def norm(v):
    return torch.linalg.vector_norm(v, dim=1)


def frobenius(v):
    return v.norm(dim=-1)


def norm_one(v):
    return torch.norm(v, p=1, dim=1)


def norm_inf(v):
    return torch.linalg.vector_norm(v, float("inf"), dim=1)


def layer_norm(v):
    return F.layer_norm(v, [v.size(1)])


def rms_norm(v):
    return F.rms_norm(v, [v.size(1)], eps=1e-5)


def normalize(v):
    return F.normalize(v, dim=1)


def listed_dim(v):
    return v.sum([1]) + v.amax(dim=(-1,))


def wide_sum(v):
    return v.sum(1, dtype=torch.float32)


def nonzero_count(v):
    return torch.count_nonzero(v, dim=1)


ON_FLOATS = [
    total, mean, product, largest, smallest, any_of, all_of, largest_index, smallest_index,
    max_value, max_index, min_pair, kept, kept_index, variance, population_variance, deviation,
    biased_deviation, moments, deviation_and_mean, log_sum_exp, softmax, log_softmax, softmin, norm,
    frobenius, norm_one, norm_inf, layer_norm, rms_norm, normalize, listed_dim, wide_sum,
    nonzero_count,
]  # fmt: skip
ON_INTEGERS = [
    total, product, largest, smallest, any_of, all_of, largest_index, smallest_index,
    max_value, max_index, min_pair, kept, wide_sum, nonzero_count,
]  # fmt: skip
# One element has no spread: torch warns, and gives NaN.
NEEDS_TWO = {variance, deviation, moments}


def check(reduction, x, block=2, **settings):
    want = reduction(x)
    out = torch.zeros_like(want)
    compiled(rows, block, **settings)(x, out, reduction)
    assert_close(out, want)


@pytest.mark.parametrize("reduction", ON_FLOATS)
def test_float_rows(reduction):
    check(reduction, values(5, 7))
    if reduction not in NEEDS_TWO:
        check(reduction, values(3, 1))


@pytest.mark.parametrize("reduction", ON_FLOATS)
def test_bfloat16(reduction):
    check(reduction, values(5, 7, dtype=torch.bfloat16))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16], ids=str)
@pytest.mark.parametrize("reduction", [total, mean, product, largest_index, variance, softmax])
def test_float_dtypes(reduction, dtype):
    check(reduction, values(5, 7, dtype=dtype))


@pytest.mark.parametrize("reduction", ON_INTEGERS)
def test_integers(reduction):
    check(reduction, values(5, 7, dtype=torch.int64))


@pytest.mark.parametrize("dtype", INTEGERS[1:], ids=str)
@pytest.mark.parametrize("reduction", [total, product, largest, smallest_index])
def test_integer_dtypes(reduction, dtype):
    check(reduction, values(5, 7, dtype=dtype))


@pytest.mark.parametrize("reduction", [total, product, any_of, all_of, largest, nonzero_count])
def test_bools(reduction):
    check(reduction, values(9, 3, dtype=torch.bool))


def beside_the_row(x, out, reduction):
    assert x.size(1) == out.size(1)
    for t in hl.tile(x.size(0)):
        v = x[t, :]
        r = reduction(v)
        out[t, :] = v + (r[:, None] if r.ndim == 1 else r)


@pytest.mark.parametrize(
    "reduction",
    [total, mean, largest_index, min_pair, variance, log_sum_exp, softmax, norm_inf, layer_norm],
)
def test_an_axis_of_any_length(reduction):
    kernel = compiled(beside_the_row, 2, static_shapes=False)
    for shape in SHAPES:
        if shape[1] > 1 or reduction not in NEEDS_TWO:
            x = values(*shape)
            r = reduction(x)
            out = torch.zeros_like(x)
            kernel(x, out, reduction)
            assert_close(out, x + (r[:, None] if r.dim() == 1 else r))


# -- masked lanes --------------------------------------------------------------------------------


def plus_one(v):
    return v + 1


def exponential(v):
    return torch.exp(v)


def below(v):
    return -v - 3


def above(v):
    return v.abs() + 3


def reciprocal(v):
    return 1 / v


def chosen(v):
    return torch.where(v == 0, 5.0, v)


def equal_to_zero(v):
    return (v == 0).to(torch.float32)


CHANGES = [plus_one, exponential, below, above, reciprocal, chosen, equal_to_zero]
SENSITIVE = [total, product, largest, smallest, any_of, all_of, largest_index, mean, variance]


def changed_rows(x, out, change, reduction):
    for t in hl.tile(x.size(0)):
        out[t] = reduction(change(x[t, :]))


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("reduction", SENSITIVE)
def test_masked_lanes_hold_anything(reduction, change):
    x = values(5, 7) + 0.25
    want = reduction(change(x))
    out = torch.zeros_like(want)
    compiled(changed_rows, 2)(x, out, change, reduction)
    assert_close(out, want)


# -- tiles ---------------------------------------------------------------------------------------


def columns_of_tiles(x, out, change, reduction):
    for i, j in hl.tile(x.size()):
        out[i.id, j] = reduction(change(x[i, j]).T)


def all_of_tiles(x, out, change):
    for i, j in hl.tile(x.size()):
        v = change(x[i, j])
        out[i.id, j.id] = v.sum() + v.amax() * v.mean() - v.amin([0, 1]) + v.var() + v.std(0).sum()


@pytest.mark.parametrize("change", [exponential, below])
@pytest.mark.parametrize("reduction", [*SENSITIVE, log_sum_exp, norm, moments])
def test_a_tile_counts_its_own_elements(reduction, change):
    x = values(7, 5)
    parts = [reduction(change(p).T) for p in (x[:4], x[4:])]
    want = torch.stack(parts)
    out = torch.zeros_like(want)
    compiled(columns_of_tiles, 4, 2)(x, out, change, reduction)
    assert_close(out, want)


def test_reduces_all_dimensions():
    x = values(7, 6)
    want, out = torch.zeros(2, 2, device=DEVICE), torch.zeros(2, 2, device=DEVICE)
    for i in range(2):
        for j in range(2):
            own = torch.zeros(1, 1, device=DEVICE)
            eager(all_of_tiles)(x[4 * i : 4 * i + 4, 4 * j : 4 * j + 4].contiguous(), own, above)
            want[i, j] = own
    compiled(all_of_tiles, 4, 4)(x, out, above)
    torch.testing.assert_close(out, want, rtol=1e-5, atol=1e-5)


def cubes(x, out):
    for t in hl.tile(x.size(0)):
        v = x[t, :, :] + 1
        out[t, 0] = v.sum([1, 2])
        out[t, 1] = v.amax((-1, -2))
        out[t, 2] = v.mean([-1, 1])
        out[t, 3] = v.var([1, 2], correction=0)
        out[t, 4] = v.sum(2).amin(1)
        out[t, 5] = v.sum(1).mean(1)


def test_several_dimensions():
    x, out = values(5, 3, 6), torch.zeros(5, 6, device=DEVICE)
    compiled(cubes, 2)(x, out)
    v = x + 1
    want = [
        v.sum([1, 2]), v.amax((-1, -2)), v.mean([-1, 1]), v.var([1, 2], correction=0),
        v.sum(2).amin(1), v.sum(1).mean(1),
    ]  # fmt: skip
    torch.testing.assert_close(out, torch.stack(want, 1), rtol=1e-5, atol=1e-5)


# -- NaN, infinity, ties -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize(
    "reduction",
    [total, product, largest, smallest, largest_index, smallest_index, max_index, softmax, any_of,
     log_sum_exp, norm_inf],
)  # fmt: skip
def test_nan_and_infinity(reduction, dtype):
    x = values(6, 7, dtype=dtype)
    x[0, 3] = x[1, 0] = x[2, 6] = x[5, 1] = x[5, 4] = float("nan")
    x[3, 2] = x[5, 0] = float("inf")
    x[4, :] = float("-inf")
    check(reduction, x)


def test_the_first_of_equals():
    x = torch.tensor([[1, 3, 3, 0, 0], [2, 2, 2, 2, 2]], device=DEVICE)
    for reduction in (largest_index, smallest_index, max_index):
        check(reduction, x)
        check(reduction, x.float())


# -- in loops ------------------------------------------------------------------------------------


def online_softmax(x):
    out = torch.empty_like(x)
    block = hl.register_block_size(x.size(1))
    for i in hl.tile(x.size(0)):
        peak = hl.full([i], float("-inf"))
        weight = hl.zeros([i])
        for j in hl.tile(x.size(1), block_size=block):
            v = x[i, j]
            higher = torch.maximum(peak, v.amax(1))
            weight = weight * torch.exp(peak - higher) + torch.exp(v - higher[:, None]).sum(1)
            peak = higher
        for j in hl.tile(x.size(1), block_size=block):
            out[i, j] = torch.exp(x[i, j] - peak[:, None]) / weight[:, None]
    return out


@pytest.mark.parametrize("shape", SHAPES)
def test_online_softmax(shape):
    x = values(*shape)
    for static in (True, False):
        kernel = compiled(online_softmax, 4, 2, static_shapes=static)
        torch.testing.assert_close(kernel(x), torch.softmax(x, 1))


def wide_sum_of(x, change):
    out = torch.empty_like(x[:, 0])
    block = hl.register_block_size(x.size(1))
    for i in hl.tile(x.size(0)):
        acc = hl.zeros([i, block])
        for j in hl.tile(x.size(1), block_size=block):
            acc = acc + change(x[i, j])
        out[i] = acc.sum(1)
    return out


def wide_maximum_of(x, change):
    out = torch.empty_like(x[:, 0])
    block = hl.register_block_size(x.size(1))
    for i in hl.tile(x.size(0)):
        acc = hl.full([i, block], float("-inf"))
        for j in hl.tile(x.size(1), block_size=block):
            acc = torch.maximum(acc, change(x[i, j]))
        out[i] = acc.amax(1)
    return out


def unchanged(v):
    return v


@pytest.mark.parametrize("change", [unchanged, plus_one, below])
def test_an_accumulator_as_wide_as_a_tile(change):
    # The last tile has three of four columns: the fourth lane must keep what it has.
    x = -values(5, 11).abs() - 1
    got = compiled(wide_sum_of, 4, 4)(x, change)
    torch.testing.assert_close(got, change(x).sum(1), rtol=1e-6, atol=1e-5)
    assert torch.equal(compiled(wide_maximum_of, 4, 4)(x, change), change(x).amax(1))


def products(x, y):
    out = torch.empty_like(x[:, 0])
    for i in hl.tile(x.size(0)):
        out[i] = (x[i, :] * y[i, :] * 2).sum(1) + (x[i, 0][:, None] * y[i, :]).sum(1)
    return out


def test_zeros_need_no_mask_and_broadcasts_do():
    x, y = values(5, 7), values(5, 7)
    x[2, 0] = float("inf")
    kernel = compiled(products, 2)
    want = (x * y * 2).sum(1) + (x[:, :1] * y).sum(1)
    torch.testing.assert_close(kernel(x, y), want, rtol=1e-5, atol=1e-5, equal_nan=True)
    assert kernel.bind((x, y)).to_triton_code().count("tl.where") == 1
