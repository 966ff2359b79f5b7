"""What generated kernels compute under Triton's interpreter, against torch, NumPy and Philox's vectors."""

from __future__ import annotations

import math
import time

import numpy as np
import philox
import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.runtime.errors import InterpreterError
from triton.tools.tensor_descriptor import TensorDescriptor

import helion  # noqa: F401  turns the interpreter on where there is no accelerator
from helion.runtime import interpreter

pytestmark = pytest.mark.skipif(not triton.knobs.runtime.interpret, reason="needs the interpreter")
interpreter.install()

BF16, F16, F32, F64 = torch.bfloat16, torch.float16, torch.float32, torch.float64
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
I8, U8, I16, U16 = torch.int8, torch.uint8, torch.int16, torch.uint16
I32, U32, I64, U64 = torch.int32, torch.uint32, torch.int64, torch.uint64
TL = {
    BF16: tl.bfloat16, F16: tl.float16, F32: tl.float32, F64: tl.float64, E4M3: tl.float8e4nv,
    E5M2: tl.float8e5, I8: tl.int8, U8: tl.uint8, I16: tl.int16, U16: tl.uint16, I32: tl.int32,
    U32: tl.uint32, I64: tl.int64, U64: tl.uint64, torch.bool: tl.int1,
}  # fmt: skip


@triton.jit
def map_kernel(x, y, z, out, N: tl.constexpr, ARGS: tl.constexpr, OP: tl.constexpr):
    lane = tl.arange(0, N)
    if ARGS == 1:
        value = OP(tl.load(x + lane))
    elif ARGS == 2:
        value = OP(tl.load(x + lane), tl.load(y + lane))
    else:
        value = OP(tl.load(x + lane), tl.load(y + lane), tl.load(z + lane))
    tl.store(out + lane, value)


def apply(op, *args, dtype=None):
    """`op` on whole tensors, one block; they are padded to a power of two."""
    size = triton.next_power_of_2(args[0].numel())
    padded = []
    for arg in args:
        whole = torch.zeros(size, dtype=arg.dtype)
        whole[: arg.numel()] = arg.reshape(-1)
        padded.append(whole)
    out = torch.zeros(size, dtype=dtype or args[0].dtype)
    map_kernel[(1,)](*(padded * 3)[:3], out, size, len(args), op)
    return out[: args[0].numel()].reshape(args[0].shape)


def same(got, want):
    """Equal bit for bit, except that every NaN equals every other."""
    assert got.dtype == want.dtype
    torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)


# -- formats -------------------------------------------------------------------------------------

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


# -- arithmetic ----------------------------------------------------------------------------------

VALUES = torch.tensor(
    [1.5, -2.25, 0.0, -0.0, 3e38, 1e-30, math.inf, -math.inf, math.nan, 7, -7, 100.5]
)


def pairs(dtype):
    x, y = torch.meshgrid(VALUES, VALUES, indexing="ij")
    return x.reshape(-1).to(dtype), y.reshape(-1).to(dtype)


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
    "minimum_nan": (lambda x, y: tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL), torch.minimum),
    "maximum_nan": (lambda x, y: tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL), torch.maximum),
    "where": (lambda x, y: tl.where(x > y, x, y), lambda x, y: torch.where(x > y, x, y)),
    "select_by_sum": (lambda x, y: tl.where(x + y > 1, x, 0.0), lambda x, y: torch.where(x + y > 1, x, 0.0)),
    "compare_then_cast": (lambda x, y: (x > y).to(tl.float32), lambda x, y: (x > y).float()),
    "literal": (lambda x, y: x * 1.1 + 3, lambda x, y: x * torch.tensor(1.1, dtype=x.dtype) + 3),
    "clamp": (lambda x, y: tl.clamp(x, -1.0, 2.0), lambda x, y: torch.fmin(torch.fmax(x, torch.tensor(-1.0).to(x)), torch.tensor(2.0).to(x))),
    "sqrt_rn": (lambda x, y: tl.sqrt_rn(x.to(tl.float32)), lambda x, y: x.double().sqrt().float()),
    "div_rn": (lambda x, y: tl.div_rn(x.to(tl.float32), y.to(tl.float32)), lambda x, y: x.float() / y.float()),
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


# -- libdevice -----------------------------------------------------------------------------------

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
    "erf": (torch.erf, LINE), "erfc": (torch.erfc, LINE), "erfinv": (torch.erfinv, UNIT),
    "erfcinv": (lambda x: torch.erfinv(1 - x), POSITIVE / 11), "erfcx": (torch.special.erfcx, LINE),
    "lgamma": (torch.lgamma, LINE), "tgamma": (elementwise(math.gamma), torch.cat([LINE, POSITIVE])),
    "tan": (torch.tan, UNIT), "asin": (torch.asin, UNIT), "acos": (torch.acos, UNIT),
    "atan": (torch.atan, LINE), "sinh": (torch.sinh, LINE), "cosh": (torch.cosh, LINE),
    "tanh": (torch.tanh, LINE), "asinh": (torch.asinh, LINE), "acosh": (torch.acosh, POSITIVE + 1),
    "atanh": (torch.atanh, UNIT), "expm1": (torch.expm1, LINE), "log1p": (torch.log1p, POSITIVE),
    "log10": (torch.log10, POSITIVE), "log2": (torch.log2, POSITIVE), "log": (torch.log, POSITIVE),
    "exp": (torch.exp, LINE), "exp2": (torch.exp2, LINE), "exp10": (lambda x: 10.0**x, LINE),
    "cbrt": (lambda x: x.sign() * x.abs() ** (1 / 3), LINE), "rcbrt": (lambda x: x ** (-1 / 3), POSITIVE),
    "floor": (torch.floor, LINE), "ceil": (torch.ceil, LINE), "trunc": (torch.trunc, HALVES),
    "round": (elementwise(cuda_round), HALVES), "rint": (torch.round, HALVES),
    "nearbyint": (torch.round, HALVES), "rsqrt": (torch.rsqrt, POSITIVE), "sqrt": (torch.sqrt, POSITIVE),
    "sin": (torch.sin, LINE), "cos": (torch.cos, LINE), "abs": (torch.abs, HALVES),
    "sinpi": (lambda x: torch.sin(math.pi * x), LINE), "cospi": (lambda x: torch.cos(math.pi * x), LINE),
    "j0": (torch.special.bessel_j0, LINE), "j1": (torch.special.bessel_j1, LINE),
    "y0": (torch.special.bessel_y0, POSITIVE), "y1": (torch.special.bessel_y1, POSITIVE),
    "cyl_bessel_i0": (torch.special.i0, LINE), "cyl_bessel_i1": (torch.special.i1, LINE),
    "normcdf": (torch.special.ndtr, LINE), "normcdfinv": (torch.special.ndtri, POSITIVE / 21),
    "logb": (elementwise(lambda v: math.frexp(v)[1] - 1.0), POSITIVE),
    "pow": (torch.pow, POSITIVE, LINE), "atan2": (torch.atan2, LINE, LINE.flip(0) - 1),
    "fmod": (torch.fmod, LINE * 7, LINE), "remainder": (elementwise(math.remainder), LINE * 7, LINE),
    "hypot": (torch.hypot, LINE, POSITIVE), "copysign": (torch.copysign, POSITIVE, LINE),
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


# -- reductions, scans, shapes -------------------------------------------------------------------


@triton.jit
def block_kernel(x, out, M: tl.constexpr, N: tl.constexpr, OP: tl.constexpr):
    """`OP` on a block of M x N; whatever block it makes is stored in row-major order."""
    value = OP(tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]))
    flat = tl.reshape(value, [value.numel])
    tl.store(out + tl.arange(0, value.numel), flat)


def on_block(op, x, shape, dtype=None):
    out = torch.zeros(shape, dtype=dtype or x.dtype)
    block_kernel[(1,)](x, out, *x.shape, op)
    return out


def table(dtype, m=8, n=32):
    generator = torch.Generator().manual_seed(1)
    x = torch.randperm(m * n, generator=generator).reshape(m, n) - m * n // 2
    return (x.to(F32) / (1 if dtype == I32 else 8)).to(dtype)


@pytest.mark.parametrize("dtype", [BF16, F16, F32, I32], ids=str)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_reductions(dtype, axis):
    x = table(dtype)
    shape = (x.sum(axis)).shape
    same(on_block(lambda v: tl.sum(v, axis), x, shape), x.to(F64).sum(axis).to(dtype))
    for name, reference in (("max", torch.amax), ("min", torch.amin)):
        same(
            on_block(lambda v, f=getattr(tl, name): f(v, axis).to(v.dtype), x, shape),
            reference(x, axis),
        )
    for name in ("argmax", "argmin"):
        got = on_block(lambda v, f=getattr(tl, name): f(v, axis), x, shape, I32)
        same(got, getattr(torch, name)(x, axis).to(I32))
        got = on_block(
            lambda v, f=getattr(tl, name): f(v, axis, tie_break_left=False), x, shape, I32
        )
        same(got, getattr(torch, name)(x, axis).to(I32))


def test_maximum_of_a_block_leaves_nan_out():
    x = table(F32)
    x[:, 3] = math.nan
    x[2] = math.nan
    got = on_block(lambda v: tl.max(v, 1), x, (8,))
    same(got, torch.where(x.isnan(), -math.inf, x).amax(1).where(torch.arange(8) != 2, math.nan))


@triton.jit
def product_then_last(a, i, b, j):
    return a * b, tl.where(j > i, j, i)


@triton.jit
def larger_by_branch(a, b):
    if a > b:
        c = a
    else:
        c = b
    return c


@triton.jit
def larger_by_words(a, i, b, j):
    first = a > b or (a == b and i < j)
    return tl.where(first, a, b), tl.where(first, i, j)


@triton.jit
def affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def reduce_with_indices(v):
    index = tl.broadcast_to(tl.arange(0, 32)[None, :] * 10, [8, 32])
    best, where = tl.reduce((v, index), 1, larger_by_words)
    return where


@triton.jit
def scan_affine(v):
    a, b = tl.associative_scan((v * 0 + 0.5, v), 1, affine)
    return b


@triton.jit
def add(a, b):
    return a + b


@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
def test_reduction_by_a_function(dtype):
    x = table(dtype)
    same(on_block(lambda v: tl.reduce(v, 1, larger_by_branch), x, (8,)), x.amax(1))
    same(on_block(lambda v: tl.reduce(v, -2, larger_by_branch), x, (32,)), x.amax(0))
    same(
        on_block(lambda v: tl.reduce(v, 1, larger_by_branch, keep_dims=True), x, (8, 1)),
        x.amax(1, True),
    )
    same(on_block(reduce_with_indices, x, (8,), I32), (x.argmax(1) * 10).to(I32))
    total = on_block(lambda v: tl.reduce(v, 0, add), x.clamp(-4, 4), (32,))
    torch.testing.assert_close(total, x.clamp(-4, 4).sum(0), rtol=1e-2, atol=1e-1)


def test_reduction_to_a_scalar():
    @triton.jit
    def kernel(x, out, N: tl.constexpr):
        v = tl.load(x + tl.arange(0, N))
        p, last = tl.reduce((v, tl.arange(0, N)), 0, product_then_last)
        tl.store(out, p + last)
        tl.store(out + 1, tl.reduce(v, None, add))
        tl.store(out + 2, tl.sum(v))

    out = torch.zeros(3)
    kernel[(1,)](torch.full((16,), 2.0), out, 16)
    assert out.tolist() == [2.0**16 + 15, 32, 32]


@pytest.mark.parametrize("dtype", [BF16, F16, F32, I32], ids=str)
def test_scans(dtype):
    x = table(dtype, 4, 16).clamp(-3, 3)
    wide = x.to(F64)
    same(on_block(lambda v: tl.cumsum(v, 1), x, x.shape), wide.cumsum(1).to(dtype))
    same(
        on_block(lambda v: tl.cumsum(v, 0, reverse=True), x, x.shape),
        wide.flip(0).cumsum(0).flip(0).to(dtype),
    )
    same(on_block(lambda v: tl.cumprod(v, 0), x, x.shape), wide.cumprod(0).to(dtype))
    for op in (add, larger_by_branch):
        got = on_block(lambda v, f=op: tl.associative_scan(v, 1, f), x, x.shape)
        want = wide.cumsum(1) if op is add else wide.cummax(1).values
        same(got, want.to(dtype))


def test_scan_of_pairs():
    x = table(F32)
    want, carry = torch.zeros_like(x), torch.zeros(8)
    for column in range(32):
        want[:, column] = carry = carry * 0.5 + x[:, column]
    torch.testing.assert_close(on_block(scan_affine, x, x.shape), want)


@triton.jit
def join_split(v):
    left, right = tl.split(tl.reshape(v, [v.shape[0], v.shape[1] // 2, 2]))
    return tl.join(right, left)


@pytest.mark.parametrize("dtype", [BF16, F32, I32, E4M3], ids=str)
def test_shapes(dtype):
    x = table(F32, 4, 16).to(dtype)
    swapped = (
        x.reshape(4, 8, 2)[..., [1, 0]]
        if dtype != E4M3
        else x.view(U8).reshape(4, 8, 2)[..., [1, 0]].view(E4M3)
    )
    same(on_block(join_split, x, (4, 8, 2)).view(U8), swapped.contiguous().view(U8))
    for op in (lambda v: tl.trans(v), lambda v: v.T, lambda v: tl.permute(v, [1, 0])):
        same(on_block(op, x, (16, 4)).view(U8), x.t().contiguous().view(U8))
    got = on_block(lambda v: tl.permute(tl.reshape(v, [4, 2, 8]), [2, 0, 1]), x, (8, 4, 2))
    same(got.view(U8), x.reshape(4, 2, 8).permute(2, 0, 1).contiguous().view(U8))


@pytest.mark.parametrize("dtype", [BF16, F16, F32, I32], ids=str)
def test_sort_and_gather(dtype):
    x = table(dtype)
    same(on_block(lambda v: tl.sort(v, 1), x, x.shape), x.sort(1).values)
    same(on_block(lambda v: tl.sort(v, 1, descending=True), x, x.shape), x.sort(1, True).values)
    got = on_block(
        lambda v: tl.gather(v, tl.broadcast_to(31 - tl.arange(0, 32)[None, :], [8, 32]), 1),
        x,
        x.shape,
    )
    same(got, x.flip(1))


# -- tl.dot --------------------------------------------------------------------------------------


@triton.jit
def dot_kernel(x, y, acc, out, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
               ACC: tl.constexpr, PRECISION: tl.constexpr, OUT: tl.constexpr):  # fmt: skip
    b, m, n, k = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(x + (b[:, None, None] * M + m[None, :, None]) * K + k[None, None, :])
    right = tl.load(y + (b[:, None, None] * K + k[None, :, None]) * N + n[None, None, :])
    at = (b[:, None, None] * M + m[None, :, None]) * N + n[None, None, :]
    if B == 1:
        left, right = tl.reshape(left, [M, K]), tl.reshape(right, [K, N])
        at = tl.reshape(at, [M, N])
    if ACC:
        value = tl.dot(left, right, tl.load(acc + at), input_precision=PRECISION, out_dtype=OUT)
    else:
        value = tl.dot(left, right, input_precision=PRECISION, out_dtype=OUT)
    tl.store(out + at, value)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("with_acc", [False, True])
@pytest.mark.parametrize(
    ("dtype", "out_dtype", "precision"),
    [(F16, F32, None), (F16, F16, None), (BF16, F32, None), (F32, F32, "ieee"), (F32, F32, "tf32"),
     (F32, F32, "tf32x3"), (F64, F64, None), (I8, I32, None), (E4M3, F32, None), (E5M2, F32, None)],
    ids=str,
)  # fmt: skip
def test_dot(dtype, out_dtype, precision, with_acc, batch):
    generator = torch.Generator().manual_seed(2)
    x, y, acc = (
        torch.randint(-5, 6, (batch, *shape), generator=generator).to(F32)
        / (1 if dtype == I8 else 8)
        for shape in ((16, 32), (32, 16), (16, 16))
    )
    x, y, acc = x.to(dtype), y.to(dtype), acc.to(out_dtype)
    out = torch.zeros_like(acc)
    dot_kernel[(1,)](x, y, acc, out, batch, 16, 16, 32, with_acc, precision, TL[out_dtype])
    # The operands are small multiples of 1/8: every product and every sum is exact.
    same(out, (x.to(F64) @ y.to(F64) + (acc.to(F64) if with_acc else 0)).to(out_dtype))


# -- memory --------------------------------------------------------------------------------------


@triton.jit
def atomic_kernel(
    target, where, value, before, N: tl.constexpr, LIMIT: tl.constexpr, OP: tl.constexpr
):
    lane = tl.arange(0, N)
    old = OP(target + tl.load(where + lane), tl.load(value + lane), mask=lane < LIMIT)
    tl.store(before + lane, old, mask=lane < LIMIT)


def atomic(op, target, value, limit=13):
    where = torch.tensor([0, 1, 1, 1, 3, 3, 0, 2, 2, 2, 2, 1, 5, 5, 5, 5])
    before = torch.zeros_like(value)
    atomic_kernel[(1,)](target, where, value, before, 16, limit, op)
    return where[:limit], before[:limit]


ATOMICS = {
    "atomic_add": (lambda a, b: a + b, [F32, F64, F16, BF16, I32, I64, U32]),
    "atomic_max": (torch.maximum, [F32, I32, I64]),
    "atomic_min": (torch.minimum, [F32, I32, I64]),
    "atomic_and": (torch.bitwise_and, [I32, I64]),
    "atomic_or": (torch.bitwise_or, [I32]),
    "atomic_xor": (torch.bitwise_xor, [I32]),
    "atomic_xchg": (lambda a, b: b, [I32, I64, F32, F64]),
}


@pytest.mark.parametrize(
    ("name", "dtype"), [(n, d) for n, (_, ds) in ATOMICS.items() for d in ds], ids=str
)
def test_atomics_take_lanes_in_turn(name, dtype):
    combine = ATOMICS[name][0]
    target, value = torch.arange(8).to(dtype), (torch.arange(16) * 3 % 7 + 1).to(dtype)
    if dtype.is_floating_point:
        value = value + torch.tensor(0.125, dtype=dtype)
    want, seen = target.clone(), []
    where, before = atomic(lambda *args, **kw: getattr(tl, name)(*args, **kw), target, value)
    for lane, place in enumerate(where.tolist()):
        seen.append(want[place].clone())
        wide = I64 if dtype == U32 else dtype  # torch adds no unsigned integers
        want[place] = combine(want[place].to(wide), value[lane].to(wide)).to(dtype)
    same(target, want)
    same(before, torch.stack(seen))


def test_compare_and_swap():
    @triton.jit
    def kernel(lock, out, N: tl.constexpr):
        tl.store(out, tl.atomic_cas(lock, 0, 1, sem="acquire"))
        tl.store(out + 1, tl.atomic_cas(lock, 0, 1, sem="acquire"))
        while tl.atomic_cas(lock, 1, 0) != 1:
            pass
        lane = tl.arange(0, N)
        tl.store(out + 2 + lane, tl.atomic_cas(lock + lane, lane, lane + 10))

    lock, out = torch.tensor([0, 5, 2, 3], dtype=I32), torch.full((6,), -1, dtype=I32)
    kernel[(1,)](lock, out, 4)
    assert out.tolist() == [0, 1, 0, 5, 2, 3]
    assert lock.tolist() == [10, 5, 12, 13]


@triton.jit
def descriptor_kernel(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [M, N])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [M, N])
    row = tl.program_id(0) * M
    value = tl.load_tensor_descriptor(source, [row, 0])
    target.store([row, 0], value + value)
    target.store([row, N], source.load([row, N]))


@triton.jit
def host_descriptor_kernel(source, out, M: tl.constexpr, N: tl.constexpr):
    value = source.load([tl.program_id(0) * M, 0])
    out.atomic_add([0, 0], value)


@pytest.mark.parametrize("dtype", [F32, BF16, I32], ids=str)
def test_tensor_descriptors(dtype):
    x = torch.arange(10 * 24).reshape(10, 24).remainder(17).to(dtype)
    out = torch.zeros_like(x)
    descriptor_kernel[(3,)](x, out, 10, 24, 4, 16)
    same(out, torch.cat([x[:, :16] * 2, x[:, 16:]], 1))
    total = torch.ones(4, 24, dtype=dtype)
    blocks = [TensorDescriptor.from_tensor(t, [4, 8]) for t in (x, total)]
    host_descriptor_kernel[(3,)](*blocks, 4, 8)
    want = torch.ones(12, 24, dtype=dtype)
    want[:10, :8] += x[:, :8]
    want = want.reshape(3, 4, 24).sum(0) - 2
    same(total, want.to(dtype))


@pytest.mark.skipif(
    interpreter.unsupported("make_block_ptr") is not None, reason="this Triton has none"
)
@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
def test_block_pointers(dtype):
    @triton.jit
    def kernel(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
        source = tl.make_block_ptr(x, (rows, columns), (columns, 1), (0, 0), (M, N), (1, 0))
        target = tl.make_block_ptr(out, (rows, columns), (columns, 1), (0, 0), (M, N), (1, 0))
        for _ in range(0, rows, M):
            value = tl.load(source, boundary_check=(0, 1), padding_option="zero")
            tl.store(target, value * 2, boundary_check=(0, 1))
            source, target = tl.advance(source, (M, 0)), tl.advance(target, (M, 0))

    x = torch.arange(10 * 12).reshape(10, 12).to(dtype)
    out = torch.zeros_like(x)
    kernel[(1,)](x, out, 10, 12, 4, 16)
    same(out, x * 2)


# -- arguments, loops, conditions ----------------------------------------------------------------


@triton.jit
def bits_kernel(n, out, CAST: tl.constexpr):
    tl.store(out, tl.cast(n, tl.int64))
    tl.store(out + 1, tl.cast(n + n, tl.int64))
    tl.store(out + 2, n.dtype.primitive_bitwidth)
    tl.store(out + 3, n.dtype.is_int_unsigned())


@pytest.mark.parametrize(
    ("n", "bits"),
    [(0, 32), (-1, 32), (2**31 - 1, 32), (2**31, 64), (2**32 - 1, 64), (2**32, 64), (-(2**31) - 1, 64),
     (2**63 - 1, 64), (-(2**63), 64), (2**63, 64), (2**64 - 1, 64)],
)  # fmt: skip
def test_python_ints_have_the_type_that_the_compiler_gives_them(n, bits):
    out = torch.zeros(4, dtype=I64)
    bits_kernel[(1,)](n, out, True)

    def wrap(value, width):
        return (value + 2 ** (width - 1)) % 2**width - 2 ** (width - 1)

    assert out.tolist() == [wrap(n, 64), wrap(2 * n, bits), bits, n >= 2**63]


def test_declared_and_undeclared_argument_types():
    @triton.jit
    def kernel(x, out, a: tl.int64, b: i64, c: tl.float64, d: tl.float32, e, f, g: tl.bfloat16):  # noqa: F821
        tl.static_assert(a.dtype == tl.int64 and b.dtype == tl.int64 and c.dtype == tl.float64)
        tl.static_assert(e.dtype == tl.float32 and f.dtype == tl.int1 and d.dtype == tl.float32)
        tl.static_assert(g.dtype == tl.bfloat16)
        tl.static_assert((tl.load(x) * e).dtype == tl.float32)
        if f:
            tl.store(out, a * 4294967296 + b + c + d + g)

    out = torch.zeros(1, dtype=F64)
    kernel[(1,)](torch.ones(1, dtype=BF16), out, 3, -5, 0.1, 2, 1.5, True, g=1.00390625)
    assert out.item() == 3 * 2**32 - 5 + 0.1 + 2 + 1
    with pytest.raises(OverflowError, match="cannot hold"):
        kernel[(1,)](torch.ones(1, dtype=BF16), out, 2**63, 0, 0.0, 0.0, 0.0, False, 0.0)
    with pytest.raises(TypeError, match="float"):
        kernel[(1,)](torch.ones(1, dtype=BF16), out, 1.5, 0, 0.0, 0.0, 0.0, False, 0.0)


def test_loops_count_in_scalars_of_the_kernel():
    @triton.jit
    def kernel(bounds, out, n, wide: tl.int64, N: tl.constexpr):
        total = 0
        for i in range(n):
            tl.static_assert(i.dtype == tl.int32)
            total += i
        for i in tl.range(tl.load(bounds), tl.load(bounds + 1), 3, num_stages=2):
            total += i.to(tl.int64) * 1000
        for i in tl.range(wide, step=2, loop_unroll_factor=2):
            tl.static_assert(i.dtype == tl.int64)
            total += i * 4294967296
        for i in tl.static_range(N):
            total += (1, 2, 3, 4)[i] * 100000
        for i in range(3, 0, -1):
            total += i * 10000000
        tl.store(out, total)

    out = torch.zeros(1, dtype=I64)
    kernel[(1,)](torch.tensor([2, 9], dtype=I32), out, 5, 5, 4, num_warps=8, num_stages=3)
    assert out.item() == 10 + (2 + 5 + 8) * 1000 + (0 + 2 + 4) * 2**32 + 10 * 100000 + 6 * 10000000


def test_conditions_on_blocks():
    @triton.jit
    def kernel(x, out, FAULT: tl.constexpr, N: tl.constexpr):
        lane = tl.arange(0, N)
        v = tl.load(x + lane)
        inside = (v > -1 and not v > 1) or lane == 0
        tl.store(out + lane, inside)
        scalar = tl.load(x)
        if scalar < 0 and N > 4:
            tl.store(out + 1, True)
        if FAULT and v > 0:
            tl.store(out, False)

    x = torch.tensor([-5, -0.5, 0.5, 1, 1.5, 2, 0, math.nan])
    out = torch.zeros(8, dtype=torch.bool)
    kernel[(1,)](x, out, False, 8)
    assert out.tolist() == [True, True, True, True, False, False, True, False]
    with pytest.raises(InterpreterError, match="a condition must be a scalar"):
        kernel[(1,)](x, out, True, 8)


def test_print_and_assert(capsys):
    @triton.jit
    def kernel(x, N: tl.constexpr):
        tl.device_print("values", tl.load(x + tl.arange(0, N)).to(tl.float32))
        tl.static_assert(N == 4, "four")

    kernel[(1,)](torch.arange(4).to(BF16), 4)
    assert "values:  [0. 1. 2. 3.]" in capsys.readouterr().out
    with pytest.raises(InterpreterError, match="four"):
        kernel[(1,)](torch.arange(8).to(BF16), 8)


def test_unsupported_features_are_named():
    for feature in ("inline_asm_elementwise", "map_elementwise", "float8e4b15"):
        assert feature in interpreter.unsupported(feature)
    assert interpreter.unsupported("rand") is None


def test_install_changes_nothing_the_second_time():
    before = dict(vars(triton.runtime.interpreter)), libdevice.erf
    interpreter.install()
    assert (dict(vars(triton.runtime.interpreter)), libdevice.erf) == before


def test_a_million_elements_take_less_than_a_second():
    n, block = 2**20, 2**14
    x, out = torch.randn(n).to(BF16), torch.empty(n, dtype=BF16)
    dropout[(n // block,)](x, out, 0, n, 0.25, block)
    seconds = []
    for _ in range(3):
        began = time.process_time()
        dropout[(n // block,)](x, out, 7, n, 0.25, block)
        seconds.append(time.process_time() - began)
    keep = torch.from_numpy(philox.rand(7, np.arange(n)) >= 0.25)
    same(out, torch.where(keep, x.float() / 0.75, 0.0).to(BF16))
    assert min(seconds) < 1


# -- random numbers ------------------------------------------------------------------------------


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
    r0, r1, r2, r3 = tl.rand4x(seed, offset)
    tl.store(out + lane, tl.rand(seed, offset))
    tl.store(out + N + lane, r1)
    tl.store(out + 2 * N + lane, r2)
    tl.store(out + 3 * N + lane, r3)
    i0, i1, i2, i3 = tl.randint4x(seed, offset)
    tl.store(whole + lane, i0)
    tl.store(whole + N + lane, tl.randint(seed, offset) ^ i3)


@pytest.mark.parametrize(("key", "counter", "want"), VECTORS)
def test_published_vectors(key, counter, want):
    low, high = words(key)
    got = philox.philox(low + (high << 32), tuple(words(counter)))
    assert [int(word) for word in got] == words(want)
    out = torch.zeros(4, dtype=I32)
    signed = [(c + 2**31) % 2**32 - 2**31 for c in words(counter)]
    philox_kernel[(1,)](out, low + (high << 32), *signed)
    assert out.view(U32).tolist() == words(want)


def signed64(value):
    return (value + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_rand_equals_the_oracle(seed, start):
    offsets = np.array([start + i for i in range(16)], dtype=object)
    out, whole = torch.zeros(4, 16), torch.zeros(2, 16, dtype=I32)
    rand_kernel[(1,)](out, whole, signed64(seed), signed64(start), 16)
    np.testing.assert_array_equal(out.numpy(), np.stack(philox.rand4x(seed, offsets)))
    w = philox.philox(seed, offsets)
    np.testing.assert_array_equal(whole.view(U32).numpy(), np.stack([w[0], w[0] ^ w[3]]))


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
    out = torch.zeros(8, 16)
    kernel[(1,)](out, seeds, -(2**20), 16, 2**40)
    want = [
        philox.rand(s, lane)
        for s in (-(2**20), 2**40, -3, 2**64 - 1, -20, seeds.numpy(), -(2**20) * 1000003 + 1)
    ]
    # A 32-bit offset is not sign-extended: the upper half of its counter is zero.
    want.append(philox.rand(-(2**20), (lane - 5).astype(np.uint32)))
    np.testing.assert_array_equal(out.numpy(), np.stack(want))


def test_the_oracle_takes_any_integer_and_stays_below_one():
    np.testing.assert_array_equal(philox.rand(-1, -1), philox.rand(2**64 - 1, 2**64 - 1))
    np.testing.assert_array_equal(
        philox.rand_full(3, 4, 5), philox.rand(3, np.arange(20)).reshape(4, 5)
    )
    edges = philox.uniform(np.array([0, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF], np.uint32))
    assert edges.tolist() == [0.0, 1 - 2**-24, 1 - 2**-24, 0.0]
    with pytest.raises(TypeError, match="integers"):
        philox.rand(1.5, 0)
