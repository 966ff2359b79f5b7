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
    size = np.ldexp((exponent > 0) + fraction, np.maximum(exponent, 1) - (1 << exponent_bits - 1) + 1)
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
        table = np.unique(np.concatenate([table[:600], table[::37], table[-600:], table[31000:34000]]))
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
    bits = torch.arange(len(want)).to(U8 if len(want) == 256 else torch.int32).to(
        U8 if len(want) == 256 else U16
    )
    got = apply(lambda v: v.to(tl.float32), bits.view(source), dtype=F32)
    np.testing.assert_array_equal(got.numpy(), want.astype(np.float32))
