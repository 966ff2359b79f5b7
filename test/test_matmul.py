"""Matrix products against torch: dtypes, ragged and small sizes, accumulators, batches."""

import pytest
import torch

import helion
import helion.language as hl
from helion import exc

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
HALVES = [torch.float16, torch.bfloat16]
FP8 = [torch.float8_e4m3fn, torch.float8_e5m2]
# Ragged, smaller than tensor cores take, single rows, columns and terms.
SIZES = [(33, 40, 18), (5, 7, 3), (1, 17, 20), (20, 17, 1), (20, 1, 17), (16, 16, 16)]


def compiled(function, *blocks, **settings):
    config = helion.Config(block_sizes=list(blocks))
    return helion.kernel(function, config=config, **{"dot_precision": "ieee", **settings})


def eager(function):
    return helion.kernel(function, ref_mode=helion.RefMode.EAGER)


def values(*shape, dtype=torch.float32):
    """Small whole numbers: sums of their products are exact in every dtype."""
    return torch.randint(-3, 4, shape, device=DEVICE).to(dtype)


def multiply(a, b, wide=torch.float32):
    """The exact product; on the CPU, where torch multiplies in every dtype."""
    return torch.matmul(a.to("cpu", torch.float64), b.to("cpu", torch.float64)).to(DEVICE, wide)


def tiled(a, b, out, accumulate):
    m, k = a.size()
    n = b.size(1)
    for i, j in hl.tile([m, n]):
        acc = hl.zeros([i, j], dtype=torch.float32)
        for t in hl.tile(k):
            acc = accumulate(acc, a[i, t], b[t, j])
        out[i, j] = acc.to(out.dtype)


def by_dot(acc, a, b):
    return hl.dot(a, b, acc=acc)


def by_addmm(acc, a, b):
    return torch.addmm(acc, a, b)


def by_matmul(acc, a, b):
    return acc + torch.matmul(a, b).to(torch.float32)


def by_operator(acc, a, b):
    return acc + (a @ b)


def by_mm(acc, a, b):
    return torch.mm(a, b) + acc


def by_out_dtype(acc, a, b):
    return acc + torch.mm(a, b, out_dtype=torch.float32)


def by_scaled_addmm(acc, a, b):
    return torch.addmm(acc, a, b, beta=1.0, alpha=2.0) / 2 + acc / 2


WAYS = [by_dot, by_addmm, by_matmul, by_operator, by_mm, by_out_dtype, by_scaled_addmm]


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_multiply(way):
    for dtype in (torch.float32, torch.bfloat16):
        a, b = values(33, 40, dtype=dtype), values(40, 18, dtype=dtype)
        out, again = (torch.zeros(33, 18, device=DEVICE) for _ in range(2))
        compiled(tiled, 16, 16, 16)(a, b, out, way)
        assert torch.equal(out, multiply(a, b))
        if dtype is torch.float32 or way is not by_out_dtype:
            eager(tiled)(a, b, again, way)
            assert torch.equal(again, out)


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("size", SIZES, ids=lambda s: "x".join(map(str, s)))
def test_sizes(size, static):
    m, k, n = size
    for dtype in (torch.float32, torch.float16) if static else (torch.float16,):
        a, b = values(m, k, dtype=dtype), values(k, n, dtype=dtype)
        out = torch.zeros(m, n, device=DEVICE)
        compiled(tiled, 16, 32, 16, static_shapes=static)(a, b, out, by_dot)
        assert torch.equal(out, multiply(a, b))


# -- whole axes ----------------------------------------------------------------------------------


def whole(a, b, out):
    assert a.size(1) == b.size(0)
    assert b.size(1) == out.size(1)
    for i in hl.tile(a.size(0)):
        out[i, :] = (a[i, :] @ b[:, :]).to(out.dtype)


def whole_after_change(a, b, out):
    assert a.size(1) == b.size(0)
    assert b.size(1) == out.size(1)
    for i in hl.tile(a.size(0)):
        out[i, :] = hl.dot(a[i, :] + 1, b[:, :] - 1).to(out.dtype)


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("size", SIZES, ids=lambda s: "x".join(map(str, s)))
def test_whole_axes(size, static):
    m, k, n = size
    others = (torch.bfloat16, torch.float64, torch.int32) if k == 7 else ()
    for dtype in (torch.float32, *others):
        a, b = values(m, k, dtype=dtype), values(k, n, dtype=dtype)
        out = torch.zeros(m, n, device=DEVICE, dtype=torch.float64)
        compiled(whole, 16, static_shapes=static)(a, b, out)
        assert torch.equal(out, multiply(a, b, dtype).double())
    a, b = values(m, k), values(k, n)
    out = torch.zeros(m, n, device=DEVICE)
    compiled(whole_after_change, 16, static_shapes=static)(a, b, out)
    assert torch.equal(out, multiply(a + 1, b - 1))


# -- dtypes --------------------------------------------------------------------------------------


def once(a, b, out):
    for i, j in hl.tile([a.size(0), b.size(1)]):
        out[i, j] = hl.dot(a[i, :], b[:, j])


def once_narrow(a, b, out):
    for i, j in hl.tile([a.size(0), b.size(1)]):
        v = hl.dot(a[i, :], b[:, j], out_dtype=torch.float16)
        out[i, j] = v if v.dtype == torch.float16 else v - v


def onto(a, b, out):
    for i, j in hl.tile([a.size(0), b.size(1)]):
        out[i, j] = hl.dot(a[i, :], b[:, j], acc=out[i, j])


PAIRS = [
    *[(d, d, torch.float32) for d in [torch.float32, *HALVES, *FP8]],
    (torch.int8, torch.int8, torch.int32),
    (FP8[0], FP8[1], torch.float32),
    (torch.float16, torch.bfloat16, torch.float32),
    (torch.bfloat16, torch.float32, torch.float32),
]


@pytest.mark.parametrize(("left", "right", "wide"), PAIRS, ids=str)
def test_dot_dtypes(left, right, wide):
    for k in (40, 9):
        a, b = values(17, k).to(left), values(k, 18).to(right)
        out = torch.zeros(17, 18, device=DEVICE, dtype=wide)
        compiled(once, 16, 16)(a, b, out)
        assert torch.equal(out, multiply(a.float(), b.float(), wide))
        compiled(onto, 16, 16)(a, b, out)
        assert torch.equal(out, 2 * multiply(a.float(), b.float(), wide))
        again = torch.zeros_like(out)
        eager(once)(a, b, again)
        assert torch.equal(again * 2, out)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_narrow_results(dtype):
    a, b = values(17, 40, dtype=dtype), values(40, 18, dtype=dtype)
    half = torch.zeros(17, 18, device=DEVICE, dtype=torch.float16)
    compiled(onto, 16, 16)(a, b, half)
    assert torch.equal(half, multiply(a, b, torch.float16))
    compiled(once_narrow, 16, 16)(a, b, half)
    assert torch.equal(half, multiply(a, b, torch.float16))


def rounded(a, b, out):
    for i, j in hl.tile([a.size(0), b.size(1)]):
        out[i, j] = (a[i, :] @ b[:, j]).to(torch.float32)


@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_torch_products_have_the_dtype_of_their_operands(dtype):
    a = torch.randn(17, 40, device=DEVICE).to(dtype)
    b = torch.randn(40, 18, device=DEVICE).to(dtype)
    out = torch.zeros(17, 18, device=DEVICE)
    compiled(rounded, 16, 16)(a, b, out)
    # One rounding to the dtype, either way where the sum is near the middle.
    torch.testing.assert_close(out, (a @ b).float(), rtol=torch.finfo(dtype).eps, atol=1e-2)


@pytest.mark.parametrize("precision", ["tf32", "tf32x3", "ieee"])
def test_precision_of_float32(precision):
    a, b = torch.randn(20, 40, device=DEVICE), torch.randn(40, 24, device=DEVICE)
    out = torch.zeros(20, 24, device=DEVICE)
    kernel = compiled(once, 16, 16, dot_precision=precision)
    kernel(a, b, out)
    # TF32 keeps 10 bits of each operand.
    tolerance = 2e-2 if precision == "tf32" else 1e-5
    torch.testing.assert_close(out, multiply(a, b), rtol=tolerance, atol=tolerance)
    assert f"input_precision={precision!r}" in kernel.bind((a, b, out)).to_triton_code()


# -- batches -------------------------------------------------------------------------------------


def batched(a, b, out, accumulate):
    for g, i, j in hl.tile([out.size(0), a.size(1), b.size(2)]):
        acc = hl.zeros([g, i, j], dtype=torch.float32)
        for t in hl.tile(a.size(2)):
            acc = accumulate(acc, a[g, i, t], b[g, t, j])
        out[g, i, j] = acc


def by_baddbmm(acc, a, b):
    return torch.baddbmm(acc, a, b)


def by_bmm(acc, a, b):
    return acc + torch.bmm(a, b, out_dtype=torch.float32)


def by_positional_bmm(acc, a, b):
    return acc + torch.bmm(a, b, torch.float32)


@pytest.mark.parametrize("way", [by_dot, by_baddbmm, by_bmm, by_positional_bmm, by_operator])
@pytest.mark.parametrize("block", [1, 2])
def test_batches(way, block):
    a, b = values(3, 17, 40, dtype=torch.bfloat16), values(3, 40, 18, dtype=torch.bfloat16)
    out = torch.zeros(3, 17, 18, device=DEVICE)
    compiled(batched, block, 16, 16, 16)(a, b, out, way)
    assert torch.equal(out, multiply(a, b))


def one_matrix_for_all(a, b, out):
    for g, i in hl.tile([a.size(0), a.size(1)]):
        out[g, i, :] = hl.dot(a[g, i, :], b[:, :])


def one_batch_for_all(a, b, out):
    for g, i in hl.tile([a.size(0), a.size(1)]):
        out[g, i, :] = hl.dot(a[g, i, :], b[None, :, :])


def folded(a, b, out):
    for g, i in hl.tile([a.size(0), a.size(1)]):
        out[g, i, :] = torch.matmul(a[g, i, :], b[:, :])


@pytest.mark.parametrize("kernel", [one_matrix_for_all, one_batch_for_all, folded])
@pytest.mark.parametrize("block", [1, 2])
def test_a_matrix_meets_a_batch(kernel, block):
    a, b = values(3, 17, 40), values(40, 18)
    out = torch.zeros(3, 17, 18, device=DEVICE)
    compiled(kernel, block, 16)(a, b, out)
    assert torch.equal(out, multiply(a, b))


def own_transpose(a, out):
    for i in hl.tile(a.size(0), block_size=64):
        v = a[i, :] + 1
        out[:, :] = v.T @ v


def test_masked_lanes_of_a_tile_are_no_terms():
    a, out = values(33, 20), torch.zeros(20, 20, device=DEVICE)
    compiled(own_transpose)(a, out)
    assert torch.equal(out, multiply((a + 1).T, a + 1))


# -- errors --------------------------------------------------------------------------------------


def bad_shape(a, b):
    for i in hl.tile(a.size(0)):
        a[i, :] = hl.dot(a[i, :], b[:, :])


def bad_acc(a, b):
    for i in hl.tile(a.size(0)):
        a[i, :] = hl.dot(a[i, :], b[:, :], acc=hl.zeros([i, 4]))


def half_acc(a, b):
    for i in hl.tile(a.size(0)):
        acc = hl.zeros([i, b.size(1)], dtype=torch.bfloat16)
        a[i, :] = hl.dot(a[i, :], b[:, :], acc=acc)


def unlike(a, b):
    for i in hl.tile(a.size(0)):
        a[i, :] = a[i, :] @ b[:, :].to(torch.float16)


def float8(a, b):
    for i in hl.tile(a.size(0)):
        a[i, :] = a[i, :].to(torch.float8_e5m2) @ b[:, :].to(torch.float8_e5m2)


def integers(a, b):
    for i in hl.tile(a.size(0)):
        a[i, :] = hl.dot(a[i, :].to(torch.int32), b[:, :].to(torch.int32))


def batches(a, b):
    for i in hl.tile(a.size(0)):
        v = a[i, :][None].expand(2, i, 20)
        w = b[:, :][None].expand(3, 20, 20)
        a[i, :] = hl.dot(v, w).sum(0)


@pytest.mark.parametrize(
    ("kernel", "terms", "error", "text"),
    [
        (bad_shape, 18, ValueError, "do not fit together"),
        (bad_acc, 20, ValueError, "acc has shape [i, 4]"),
        (half_acc, 20, TypeError, "accumulator of torch.bfloat16"),
        (unlike, 20, TypeError, "torch.float32 and torch.float16"),
        (float8, 20, TypeError, "`hl.dot` does"),
        (integers, 20, TypeError, "torch.int32"),
        (batches, 20, exc.DotBatchDimensionMismatch, "2 from LHS tensor vs. 3 from RHS tensor"),
    ],
)
def test_errors(kernel, terms, error, text):
    with pytest.raises(error) as caught:
        compiled(kernel, 16).bind((values(33, 20), values(terms, 20)))
    assert text in str(caught.value)
