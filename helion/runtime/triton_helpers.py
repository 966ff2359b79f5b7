"""Triton functions that generated kernels call: what torch means where Triton means less."""

# What Triton passes to these at compile time has no Python type.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false
# pyright: reportGeneralTypeIssues=false
# pyright: reportOperatorIssue=false, reportUnnecessaryComparison=false

from __future__ import annotations

import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _smaller(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def max_nan(x, axis: tl.constexpr):
    """The maximum along an axis; NaN if any element is NaN, as in torch."""
    return tl.reduce(x, axis, _larger)


@triton.jit
def min_nan(x, axis: tl.constexpr):
    """The minimum along an axis; NaN if any element is NaN, as in torch."""
    return tl.reduce(x, axis, _smaller)


@triton.jit
def _times(a, b):
    return a * b


@triton.jit
def prod(x, axis: tl.constexpr):
    """The product along an axis."""
    return tl.reduce(x, axis, _times)


@triton.jit
def _first_larger(a, i, b, j):
    # NaN is larger than every number, and the first of equals wins.
    take = (a > b) | ((a != a) & (b == b)) | (((a == b) | ((a != a) & (b != b))) & (i < j))
    return tl.where(take, a, b), tl.where(take, i, j)


@triton.jit
def _first_smaller(a, i, b, j):
    take = (a < b) | ((a != a) & (b == b)) | (((a == b) | ((a != a) & (b != b))) & (i < j))
    return tl.where(take, a, b), tl.where(take, i, j)


@triton.jit
def max_with_index(x, index, axis: tl.constexpr):
    """The maximum along an axis, and its first index."""
    return tl.reduce((x, index), axis, _first_larger)


@triton.jit
def min_with_index(x, index, axis: tl.constexpr):
    """The minimum along an axis, and its first index."""
    return tl.reduce((x, index), axis, _first_smaller)


@triton.jit
def floor_divide(a, b):
    """The quotient of ints, rounded down as in Python and torch; Triton rounds toward zero."""
    inexact = (a % b != 0) & ((a < 0) != (b < 0))
    return tl.where(inexact, a // b - 1, a // b)


@triton.jit
def remainder(a, b):
    """The remainder of ints, with the sign of the divisor as in Python and torch."""
    rest = a % b
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


@triton.jit
def floor_divide_float(a, b):
    """The quotient of floats, rounded down: exact where `floor(a / b)` would round up first.

    Source: Python's `float.__floordiv__`, which torch follows.
    """
    rest = libdevice.fmod(a, b)
    # In float32 `/` is off by a bit or two, which is more than 1 where the quotient is large.
    quotient = tl.div_rn(a - rest, b) if a.dtype == tl.float32 else (a - rest) / b
    quotient = tl.where((rest != 0) & ((rest < 0) != (b < 0)), quotient - 1, quotient)
    # The quotient is a whole number but for the rounding of the division.
    whole = tl.floor(quotient)
    whole = tl.where(quotient - whole > 0.5, whole + 1, whole)
    return tl.where(b == 0, a / b, whole)


@triton.jit
def remainder_float(a, b):
    """The remainder of floats, with the sign of the divisor as in Python and torch."""
    rest = libdevice.fmod(a, b)
    return tl.where((rest != 0) & ((rest < 0) != (b < 0)), rest + b, rest)


@triton.jit
def pow_int(base, exponent):
    """A power of ints, modulo the size of the type; a negative exponent divides, rounding to 0."""
    left = tl.where(exponent < 0, 0, exponent)
    square = base
    result = left * 0 + 1 + base * 0
    for _ in range(exponent.dtype.primitive_bitwidth):
        result = tl.where(left & 1 != 0, result * square, result)
        square = square * square
        left = left >> 1
    inverse = tl.where(base == 1, 1, tl.where(base == -1, 1 - 2 * (exponent & 1), 0))
    return tl.where(exponent < 0, inverse, result)


@triton.jit
def gcd(a, b):
    """The greatest common divisor of ints, not negative; 0 of two zeros."""
    a, b = tl.abs(a) + b * 0, tl.abs(b) + a * 0
    while tl.max(b, keep_dims=False) != 0:
        rest = tl.where(b == 0, a, a % tl.where(b == 0, 1, b))
        a, b = tl.where(b == 0, a, b), tl.where(b == 0, b, rest)
    return a


@triton.jit
def shift_left(a, b):
    """`a << b`, 0 where all bits are shifted out."""
    bits: tl.constexpr = a.dtype.primitive_bitwidth
    return tl.where((b >= 0) & (b < bits), a << b, 0)


@triton.jit
def shift_right(a, b):
    """`a >> b`, the sign everywhere where all bits are shifted out."""
    bits: tl.constexpr = a.dtype.primitive_bitwidth
    inside = (b >= 0) & (b < bits)
    return tl.where(inside, a >> b, (a >> (bits - 1)) >> tl.where(a < 0, 0, 1))


@triton.jit
def nextafter(x, y):
    """The float after `x` on the way to `y`; libdevice's, as Triton links it, has no subnormals."""
    width: tl.constexpr = x.dtype.primitive_bitwidth
    least: tl.constexpr = 1 - 2 ** (width - 1)  # the bits of the first float below 0
    integer = tl.int16 if width == 16 else tl.int32 if width == 32 else tl.int64
    bits = x.to(integer, bitcast=True)
    # Of floats of one sign, the one with more bits set is farther from 0.
    step = tl.where((x < y) == (x > 0), 1, -1)
    bits = tl.where(x == 0, tl.where(y < 0, least, 1), bits + step).to(integer)
    after = bits.to(x.dtype, bitcast=True)
    after = tl.where(x == y, y, after)
    return tl.where((x != x) | (y != y), x + y, after)


@triton.jit
def digamma(x):
    """The derivative of `lgamma`.

    Source: Cephes `psi`, which torch follows: recurrence up to 10, then the asymptotic series.
    """
    # From below 0 by reflection: digamma(1 - x) - digamma(x) = pi / tan(pi * x).
    left = x < 0
    reflected = 3.141592653589793 / libdevice.tan(3.141592653589793 * (x - libdevice.trunc(x)))
    z = tl.where(left, 1 - x, x)
    result = tl.zeros_like(z)
    for _ in range(10):
        small = z < 10
        result = tl.where(small, result - 1 / z, result)
        z = tl.where(small, z + 1, z)
    w = 1 / (z * z)
    series = w * 8.33333333333333333333e-2 - 2.10927960927960927961e-2
    series = w * series + 7.57575757575757575758e-3
    series = w * series - 4.16666666666666666667e-3
    series = w * series + 3.96825396825396825397e-3
    series = w * series - 8.33333333333333333333e-3
    series = w * series + 8.33333333333333333333e-2
    result += tl.log(z) - 0.5 / z - w * series
    result = tl.where(left, result - reflected, result)
    # The sign of a zero tells from which side infinity is reached.
    result = tl.where(x == 0, -1 / x, result)
    return tl.where(left & (x == libdevice.trunc(x)), float("nan"), result)


@triton.jit
def _twice_the_terms(a, b):
    # Zeros between the terms: in the same places of both, so that each term meets its own.
    wide = tl.join(a, tl.zeros_like(a))
    tall = tl.join(b, tl.zeros_like(b))
    if len(a.shape) == 3:
        wide = tl.reshape(wide, [a.shape[0], a.shape[1], 2 * a.shape[2]])
        tall = tl.permute(tall, [0, 1, 3, 2])
        tall = tl.reshape(tall, [b.shape[0], 2 * b.shape[1], b.shape[2]])
    else:
        wide = tl.reshape(wide, [a.shape[0], 2 * a.shape[1]])
        tall = tl.reshape(tl.permute(tall, [0, 2, 1]), [2 * b.shape[0], b.shape[1]])
    return wide, tall


@triton.jit
def with_terms(a, b, terms: tl.constexpr):
    """The operands of a product with zeros added, so that sums have at least `terms` terms."""
    if a.shape[-1] < terms:
        a, b = _twice_the_terms(a, b)
    if a.shape[-1] < terms:
        a, b = _twice_the_terms(a, b)
    if a.shape[-1] < terms:
        a, b = _twice_the_terms(a, b)
    if a.shape[-1] < terms:
        a, b = _twice_the_terms(a, b)
    if a.shape[-1] < terms:
        a, b = _twice_the_terms(a, b)
    return a, b
