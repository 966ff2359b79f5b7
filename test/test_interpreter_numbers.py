"""What Triton's interpreter computes of numbers, against their definitions, torch and NumPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import triton
import triton.language as tl
from interpreted import (
    BF16,
    E4M3,
    E5M2,
    F16,
    F32,
    F64,
    I8,
    I16,
    I32,
    I64,
    TL,
    U8,
    U16,
    U32,
    U64,
    apply,
    needs_interpreter,
    same,
)
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.runtime.errors import InterpreterError

pytestmark = needs_interpreter

# -- formats ---------------------------------------------------------------------------------------


FORMATS = {F16: (5, 10), BF16: (8, 7), E4M3: (4, 3), E5M2: (5, 2)}  # exponent and fraction bits
SAT = {E4M3, E5M2}


def numbers(dtype):
    """What every bit pattern of a format means, from the definition alone."""
    exponent_bits, fraction_bits = FORMATS[dtype]
    bits = np.arange(2 ** (1 + exponent_bits + fraction_bits))
    exponent = bits >> fraction_bits & (1 << exponent_bits) - 1
    fraction = (bits & (1 << fraction_bits) - 1) / (1 << fraction_bits)
    size = np.ldexp(
        (exponent > 0) + fraction, np.maximum(exponent, 1) - (1 << exponent_bits - 1) + 1
    )
    if dtype == E4M3:
        size[exponent * 8 + fraction * 8 == 127] = np.nan
    else:
        top = exponent == (1 << exponent_bits) - 1
        size[top] = np.where(fraction[top] == 0, np.inf, np.nan)
    return np.where(bits >> exponent_bits + fraction_bits, -size, size)


def nearest(values, dtype):
    """The nearest number of a format, ties to the even bit pattern; float8 saturates."""
    table = numbers(dtype)[: len(numbers(dtype)) // 2]
    table = table[np.isfinite(table)]
    step = table[-1] - table[-2]
    grid = np.append(table, table[-1] + step)
    size = np.abs(values)
    below = np.clip(np.searchsorted(grid, size, side="right") - 1, 0, len(grid) - 2)
    low, high = grid[below], grid[below + 1]
    up = (size - low > high - size) | ((size - low == high - size) & (below % 2 == 1))
    result = np.where(up, high, low)
    if dtype in SAT:
        result = np.minimum(result, table[-1])
    else:
        result = np.where((result > table[-1]) | (size >= grid[-1]), np.inf, result)
    return np.where(np.isnan(values), np.nan, np.copysign(result, values))


def samples(dtype, source):
    """Every number of the format, every midpoint, their neighbours, and what lies beyond."""
    table = numbers(dtype)
    table = np.unique(table[np.isfinite(table)])
    if len(table) > 5000:
        table = np.unique(
            np.concatenate([table[:600], table[::37], table[-600:], table[31000:34000]])
        )
    points = np.concatenate([table, (table[1:] + table[:-1]) / 2, table * 1.5, table * 4])
    points = np.concatenate([points, [0.0, -0.0, np.inf, -np.inf, np.nan, 1e30, -1e-30, 1e-45]])
    exact = torch.from_numpy(points).to(source)
    if source == F64:
        return exact
    width = {F32: I32, F16: I16, BF16: I16}[source]
    bits = exact.view(width)
    return torch.cat([exact, (bits + 1).view(source), (bits - 1).view(source)])


@pytest.mark.parametrize("target", FORMATS, ids=str)
@pytest.mark.parametrize("source", [F64, F32, F16, BF16], ids=str)
def test_narrowing_rounds_to_nearest_even(source, target):
    if source == target:
        pytest.skip("nothing to convert")
    x = samples(target, source)
    to = TL[target]
    got = apply(lambda v: v.to(to), x, dtype=target).to(F64).numpy()
    np.testing.assert_array_equal(got, nearest(x.to(F64).numpy(), target))
    assert (np.signbit(got) == np.signbit(x.to(F64).numpy()))[~np.isnan(got)].all()


@pytest.mark.parametrize("source", FORMATS, ids=str)
def test_widening_is_exact(source):
    want = numbers(source)
    bits = torch.arange(len(want)).to(U8 if len(want) == 256 else U16)
    got = apply(lambda v: v.to(tl.float32), bits.view(source), dtype=F32)
    np.testing.assert_array_equal(got.numpy(), want.astype(np.float32))


def test_wide_numbers_round_once():
    # By way of float32 each would land on a tie, and then on the wrong neighbour.
    x = torch.tensor([1 + 2**-8 + 2**-40, 1 + 3 * 2**-8 - 2**-40, 1 + 2**-8], dtype=F64)
    same(
        apply(lambda v: v.to(tl.bfloat16), x, dtype=BF16),
        torch.tensor([1 + 2**-7] * 2 + [1.0], dtype=BF16),
    )
    n = torch.tensor([2**30 + 2**22 + 1, -(2**30) - 2**22 - 1, 2**30 + 2**22], dtype=I32)
    want = torch.tensor([2**30 + 2**23, -(2**30) - 2**23, 2**30], dtype=F32).to(BF16)
    same(apply(lambda v: v.to(tl.bfloat16), n, dtype=BF16), want)
    same(apply(lambda v: v.to(tl.bfloat16), n.to(I64), dtype=BF16), want)


def test_rounding_toward_zero():
    x = torch.tensor([1.9999999, -1.9999999, 70000.0, -3e38, 1e-30, math.inf, math.nan])
    got = apply(lambda v: v.to(tl.float16, fp_downcast_rounding="rtz"), x, dtype=F16)
    same(
        got,
        torch.tensor(
            [1.9990234375, -1.9990234375, 65504, -65504, 0, math.inf, math.nan], dtype=F16
        ),
    )
    got = apply(lambda v: v.to(tl.bfloat16, fp_downcast_rounding="rtz"), x, dtype=BF16)
    same(got[:2].float(), torch.tensor([1.9921875, -1.9921875]))


@pytest.mark.parametrize("source", [F32, F64, BF16], ids=str)
@pytest.mark.parametrize("target", [I8, U8, I16, I32, U32, I64, U64], ids=str)
def test_floats_become_integers_toward_zero_and_saturate(source, target):
    x = torch.tensor(
        [0.0, 1.9, -1.9, -0.5, 3e4, -3e4, 1e20, -1e20, math.inf, -math.inf], dtype=source
    )
    wide = {I8: I16, U8: U16}.get(target, target)
    low, high = torch.iinfo(wide).min, torch.iinfo(wide).max
    want = [
        int(min(max(int(v) if math.isfinite(v) else math.copysign(10**30, v), low), high))
        for v in x.tolist()
    ]
    bits = torch.iinfo(target).bits
    to, got = TL[target], None
    got = apply(lambda v: v.to(to), x, dtype=target)
    assert [int(v) % 2**bits for v in got.tolist()] == [v % 2**bits for v in want]


# -- arithmetic ------------------------------------------------------------------------------------


VALUES = torch.tensor(
    [1.5, -2.25, 0.0, -0.0, 3e38, 1e-30, math.inf, -math.inf, math.nan, 7, -7, 100.5]
)


def pairs(dtype):
    x, y = torch.meshgrid(VALUES, VALUES, indexing="ij")
    return x.reshape(-1).to(dtype), y.reshape(-1).to(dtype)


ALL = tl.PropagateNan.ALL
OPERATIONS = {
    "add": (lambda x, y: x + y, torch.add),
    "sub": (lambda x, y: x - y, torch.sub),
    "mul": (lambda x, y: x * y, torch.mul),
    "div": (lambda x, y: x / y, lambda x, y: x.float() / y.float()),
    "mod": (lambda x, y: x % y, lambda x, y: torch.fmod(x.double(), y.double()).float()),
    "neg": (lambda x, y: -x + y, lambda x, y: y - x),
    "abs": (lambda x, y: tl.abs(x), lambda x, y: x.abs()),
    "less": (lambda x, y: x < y, torch.lt),
    "greater_equal": (lambda x, y: x >= y, torch.ge),
    "equal": (lambda x, y: x == y, torch.eq),
    "not_equal": (lambda x, y: x != y, torch.ne),
    "minimum": (lambda x, y: tl.minimum(x, y), torch.fmin),
    "maximum": (lambda x, y: tl.maximum(x, y), torch.fmax),
    "minimum_nan": (lambda x, y: tl.minimum(x, y, propagate_nan=ALL), torch.minimum),
    "maximum_nan": (lambda x, y: tl.maximum(x, y, propagate_nan=ALL), torch.maximum),
    "where": (lambda x, y: tl.where(x > y, x, y), lambda x, y: torch.where(x > y, x, y)),
    "select_by_sum": (
        lambda x, y: tl.where(x + y > 1, x, 0.0),
        lambda x, y: torch.where(x + y > 1, x, 0.0),
    ),
    "compare_then_cast": (lambda x, y: (x > y).to(tl.float32), lambda x, y: (x > y).float()),
    "literal": (lambda x, y: x * 1.1 + 3, lambda x, y: x * torch.tensor(1.1, dtype=x.dtype) + 3),
    "clamp": (
        lambda x, y: tl.clamp(x, -1.0, 2.0),
        lambda x, y: torch.fmin(torch.fmax(x, x.new_tensor(-1.0)), x.new_tensor(2.0)),
    ),
    "sqrt_rn": (lambda x, y: tl.sqrt_rn(x.to(tl.float32)), lambda x, y: x.double().sqrt().float()),
    "div_rn": (
        lambda x, y: tl.div_rn(x.to(tl.float32), y.to(tl.float32)),
        lambda x, y: x.float() / y.float(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_arithmetic(name, dtype):
    operation, reference = OPERATIONS[name]
    x, y = pairs(dtype)
    want = reference(x, y)
    same(apply(operation, x, y, dtype=want.dtype), want)


@pytest.mark.parametrize("dtype", [BF16, F16, F32], ids=str)
def test_fma_rounds_once(dtype):
    generator = torch.Generator().manual_seed(0)
    # z nearly cancels the product, so that a rounded product would be far off.
    x, y = (torch.randn(4096, generator=generator).to(dtype) for _ in range(2))
    z = (
        -(x.double() * y.double()) * (1 + 2**-9 * torch.rand(4096, generator=generator).double())
    ).to(dtype)
    exact = x.double() * y.double() + z.double()
    same(apply(tl_fma, x, y, z), exact.to(F32).to(dtype) if dtype != F32 else exact.float())


@triton.jit
def tl_fma(x, y, z):
    return tl.fma(x, y, z)


def test_fma_of_a_tie():
    # 1 + 2**-24 is a tie, and the last bit of z decides it; float64 alone would lose that bit.
    x, y = torch.tensor([1 + 2**-12]), torch.tensor([1 + 2**-12])
    z = torch.tensor([2.0**-80])
    same(apply(tl_fma, x, y, z), torch.tensor([1 + 2**-11 + 2**-23]))


def test_exp2():
    x = torch.linspace(-140, 127, 1000)
    torch.testing.assert_close(apply(lambda v: tl.exp2(v), x), torch.exp2(x), rtol=1e-6, atol=1e-44)


INTEGERS = torch.tensor([0, 1, -1, 2, -2, 7, -7, 100, -100, 2**31 - 1, -(2**31)])


@pytest.mark.parametrize("dtype", [I32, I64], ids=str)
def test_integer_division_is_that_of_c(dtype):
    x, y = torch.meshgrid(INTEGERS, INTEGERS, indexing="ij")
    keep = (y != 0) & ~((x == -(2**31)) & (y == -1))
    x, y = x[keep].to(dtype), y[keep].to(dtype)
    same(apply(lambda a, b: a // b, x, y), torch.div(x, y, rounding_mode="trunc"))
    same(apply(lambda a, b: a % b, x, y), torch.fmod(x, y))


def test_integers_wrap_shift_and_invert():
    x = INTEGERS.to(I32)
    same(apply(lambda v: v * 1000003 + 17, x), (x.long() * 1000003 + 17).to(I32))
    same(apply(lambda v: v >> 3, x), x >> 3)
    same(apply(lambda v: v << 3, x), x << 3)
    unsigned = x.view(U32)
    shifted = torch.tensor([v >> 3 for v in unsigned.tolist()], dtype=U32)
    same(apply(lambda v: v >> 3, unsigned), shifted)
    same(apply(lambda v: ~v, unsigned), (~x).view(U32))
    same(apply(lambda v: ~v, x > 0), x <= 0)
    same(apply(lambda v, w: v + w, x > 0, x > 1), (x > 0) ^ (x > 1))


@pytest.mark.parametrize("dtype", [I32, U32, I64, U64], ids=str)
@pytest.mark.parametrize("signed", [False, True], ids=["umulhi", "mulhi"])
def test_high_half_of_a_product(dtype, signed):
    bits = torch.iinfo(dtype).bits
    words = [
        0,
        1,
        2**bits - 1,
        2 ** (bits - 1),
        0xD2511F53,
        0xCD9E8D57,
        0x123456789ABCDEF % 2**bits,
    ]
    if signed and torch.iinfo(dtype).min:
        words = [(w + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1) for w in words]
    grid = [(a, b) for a in words for b in words]
    want = [(a * b >> bits) % 2**bits for a, b in grid]
    unsigned = U32 if bits == 32 else U64
    x, y = (
        torch.tensor([p[i] % 2**bits for p in grid], dtype=unsigned).view(dtype) for i in (0, 1)
    )
    got = apply(libdevice.mulhi if signed else lambda a, b: tl.umulhi(a, b), x, y)
    assert [int(v) % 2**bits for v in got.tolist()] == want


# -- libdevice -------------------------------------------------------------------------------------


UNIT = torch.linspace(-0.99, 0.99, 64)
LINE = torch.linspace(-6.3, 6.3, 64)
POSITIVE = torch.linspace(0.01, 20, 64)
HALVES = torch.tensor([-2.5, -1.5, -0.5, -0.0, 0.0, 0.5, 1.5, 2.5, 0.49999997, 8388609.0])
SPECIAL = torch.tensor([0.0, -0.0, 1.0, math.inf, -math.inf, math.nan, 1e-45])


def elementwise(function):
    return lambda *xs: torch.tensor(
        [function(*v) for v in zip(*(x.tolist() for x in xs), strict=True)], dtype=F64
    )


def cuda_round(v):
    return (
        math.copysign(math.floor(abs(v) + 0.5), v)
        if abs(v) < 2**22 and abs(v) != 0.49999997019767761
        else math.trunc(v)
    )


FUNCTIONS = {
    "erf": (torch.erf, LINE),
    "erfc": (torch.erfc, LINE),
    "erfinv": (torch.erfinv, UNIT),
    "erfcinv": (lambda x: torch.erfinv(1 - x), POSITIVE / 11),
    "erfcx": (torch.special.erfcx, LINE),
    "lgamma": (torch.lgamma, LINE),
    "tgamma": (elementwise(math.gamma), torch.cat([LINE, POSITIVE])),
    "tan": (torch.tan, UNIT),
    "asin": (torch.asin, UNIT),
    "acos": (torch.acos, UNIT),
    "atan": (torch.atan, LINE),
    "sinh": (torch.sinh, LINE),
    "cosh": (torch.cosh, LINE),
    "tanh": (torch.tanh, LINE),
    "asinh": (torch.asinh, LINE),
    "acosh": (torch.acosh, POSITIVE + 1),
    "atanh": (torch.atanh, UNIT),
    "expm1": (torch.expm1, LINE),
    "log1p": (torch.log1p, POSITIVE),
    "log10": (torch.log10, POSITIVE),
    "log2": (torch.log2, POSITIVE),
    "log": (torch.log, POSITIVE),
    "exp": (torch.exp, LINE),
    "exp2": (torch.exp2, LINE),
    "exp10": (lambda x: 10.0**x, LINE),
    "cbrt": (lambda x: x.sign() * x.abs() ** (1 / 3), LINE),
    "rcbrt": (lambda x: x ** (-1 / 3), POSITIVE),
    "floor": (torch.floor, LINE),
    "ceil": (torch.ceil, LINE),
    "trunc": (torch.trunc, HALVES),
    "round": (elementwise(cuda_round), HALVES),
    "rint": (torch.round, HALVES),
    "nearbyint": (torch.round, HALVES),
    "rsqrt": (torch.rsqrt, POSITIVE),
    "sqrt": (torch.sqrt, POSITIVE),
    "sin": (torch.sin, LINE),
    "cos": (torch.cos, LINE),
    "abs": (torch.abs, HALVES),
    "sinpi": (lambda x: torch.sin(math.pi * x), LINE),
    "cospi": (lambda x: torch.cos(math.pi * x), LINE),
    "j0": (torch.special.bessel_j0, LINE),
    "j1": (torch.special.bessel_j1, LINE),
    "y0": (torch.special.bessel_y0, POSITIVE),
    "y1": (torch.special.bessel_y1, POSITIVE),
    "cyl_bessel_i0": (torch.special.i0, LINE),
    "cyl_bessel_i1": (torch.special.i1, LINE),
    "normcdf": (torch.special.ndtr, LINE),
    "normcdfinv": (torch.special.ndtri, POSITIVE / 21),
    "logb": (elementwise(lambda v: math.frexp(v)[1] - 1.0), POSITIVE),
    "pow": (torch.pow, POSITIVE, LINE),
    "atan2": (torch.atan2, LINE, LINE.flip(0) - 1),
    "fmod": (torch.fmod, LINE * 7, LINE),
    "remainder": (elementwise(math.remainder), LINE * 7, LINE),
    "hypot": (torch.hypot, LINE, POSITIVE),
    "copysign": (torch.copysign, POSITIVE, LINE),
    "fdim": (lambda x, y: (x - y).clamp(min=0), LINE, LINE.flip(0)),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_libdevice(name, dtype):
    reference, *args = FUNCTIONS[name]
    args = [arg.to(dtype) for arg in args]
    got = apply(getattr(libdevice, name), *args)
    want = reference(*(arg.to(F64) for arg in args))
    # One float32 rounding; in float64 the references themselves differ by a few units.
    tolerance = {"rtol": 2e-7, "atol": 1e-14} if dtype == F32 else {"rtol": 1e-11, "atol": 1e-14}
    torch.testing.assert_close(got.to(F64), want, equal_nan=True, **tolerance)


@pytest.mark.parametrize("name", ["isnan", "isinf", "signbit", "finitef"])
def test_libdevice_classifies(name):
    reference = {"finitef": torch.isfinite}.get(name) or getattr(torch, name)
    same(apply(getattr(libdevice, name), SPECIAL, dtype=torch.bool), reference(SPECIAL))


def test_libdevice_looks_at_bits():
    x = torch.tensor([0, 1, 2, 3, 2**20, -1, -(2**31), 12], dtype=I32)
    words = [v % 2**32 for v in x.tolist()]
    counts = {
        "popc": [bin(w).count("1") for w in words],
        "clz": [32 - w.bit_length() for w in words],
        "ffs": [(w & -w).bit_length() for w in words],
    }
    for name, want in counts.items():
        assert apply(getattr(libdevice, name), x).tolist() == want
    wide = torch.tensor([0, 1, 2**40, -1, -(2**63)], dtype=I64)
    assert apply(libdevice.clz, wide, dtype=I32).tolist() == [64, 63, 23, 0, 0]
    assert apply(libdevice.popc, wide, dtype=I32).tolist() == [0, 1, 1, 64, 1]
    same(
        apply(libdevice.nextafter, SPECIAL, SPECIAL * 0 + 2),
        torch.nextafter(SPECIAL, SPECIAL * 0 + 2),
    )
    n = torch.tensor([0, 1, -1, 3, 4, 5, -149], dtype=I32)
    same(apply(libdevice.ldexp, SPECIAL, n), torch.ldexp(SPECIAL.double(), n).float())
    x = torch.tensor([1.0, 0.75, 1e-45, 3e38, -8.0, 0.0, math.inf])
    assert apply(libdevice.ilogb, x, dtype=I32).tolist() == [
        0,
        -1,
        -149,
        127,
        3,
        -(2**31),
        2**31 - 1,
    ]


def test_libdevice_by_its_cuda_name_and_beyond_what_it_has():
    torch.testing.assert_close(apply(cuda_libdevice.erf, LINE), torch.erf(LINE))
    with pytest.raises(InterpreterError, match="no libdevice function"):
        apply(libdevice.jn, HALVES.to(I32), HALVES)
    with pytest.raises(InterpreterError):  # as in compiled code: libdevice has no bfloat16
        apply(libdevice.erf, LINE.to(BF16))
