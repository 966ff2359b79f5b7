"""`libdevice`, of which the interpreter has nothing, in NumPy."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import torch

from helion.runtime.interpreter.formats import as_torch, to_integer

if TYPE_CHECKING:
    from collections.abc import Callable

    from helion.runtime.interpreter.upstream import Array, Function


def _through_torch(function: Callable[[torch.Tensor], torch.Tensor]) -> Function:
    return lambda x: function(as_torch(x.astype(np.float64, copy=False))).numpy()


erf = _through_torch(torch.erf)
_lgamma = _through_torch(torch.lgamma)


def _remainder(x: Array, y: Array) -> Array:
    """IEEE 754 remainder: the quotient is rounded to the nearest integer, ties to even."""
    size = np.abs(y)
    rest = np.fmod(np.abs(x), 2 * size)
    rest = np.where(2 * rest > size, rest - size, rest)
    rest = np.where(2 * rest >= size, rest - size, rest)
    return np.where(np.isinf(y) & np.isfinite(x), x, np.where(np.signbit(x), -rest, rest))


def _round(x: Array) -> Array:
    """Halfway cases away from zero, unlike NumPy's."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1.0, x), whole)


def _sinpi(x: Array) -> Array:
    """sin(pi * x), zero at the integers; a whole turn is dropped before the product rounds."""
    turn = np.fmod(x, 2.0)
    return np.where(turn == np.trunc(turn), np.copysign(0.0, x), np.sin(np.pi * turn))


def _cospi(x: Array) -> Array:
    return np.cos(np.pi * np.fmod(x, 2.0))


def _tgamma(x: Array) -> Array:
    size = np.exp(_lgamma(x))
    odd = (x < 0) & (np.fmod(np.floor(x), 2) != 0)
    pole = ((x < 0) & (x == np.floor(x))) | np.isnan(x)
    return np.where(pole, np.nan, np.where(odd | ((x == 0) & np.signbit(x)), -size, size))


def _exponent(x: Array) -> Array:
    """floor(log2(abs(x))) as a float."""
    found = np.frexp(x)[1] - 1.0
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), found, np.abs(x)))


def _ilogb(x: Array) -> Array:
    least, most = np.iinfo(np.int32).min, np.iinfo(np.int32).max
    found = np.where(np.isfinite(x) & (x != 0), _exponent(x), least)
    return np.where(np.isinf(x), most, found).astype(np.int32)


def unsigned(x: Array) -> Array:
    """The bits of integers as unsigned integers."""
    return x.view(f"u{x.itemsize}")


def _bit_length(x: Array) -> Array:
    half = 4 * x.itemsize
    # A half fits into the significand of a float64, whose exponent then is the answer.
    high, low = (np.frexp(w.astype(np.float64))[1] for w in (x >> half, x & (1 << half) - 1))
    return np.where(high > 0, high + half, low)


def _popc(x: Array) -> Array:
    return np.unpackbits(np.ascontiguousarray(x)[..., None].view(np.uint8), axis=-1).sum(-1)


def mulhi(x: Array, y: Array) -> Array:
    """The upper half of the product of integers, in the type of `x`."""
    if x.itemsize == 4:
        return (x.astype(f"{x.dtype.kind}8") * y >> 32).astype(x.dtype)
    a, b = unsigned(x), unsigned(y)
    low, half = np.uint64(2**32 - 1), np.uint64(32)
    a1, a0, b1, b0 = a >> half, a & low, b >> half, b & low
    middle = a1 * b0 + (a0 * b0 >> half)
    high = a1 * b1 + (middle >> half) + ((middle & low) + a0 * b1 >> half)
    if x.dtype.kind == "i":
        high = high - np.where(x < 0, b, np.uint64(0)) - np.where(y < 0, a, np.uint64(0))
    return high.view(x.dtype)


# Computed in float64 and rounded once; the name is that of libdevice without its suffix for a type.
_LIBDEVICE: dict[str, Function] = {
    "abs": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil,
    "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh, "cospi": _cospi,
    "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "fabs": np.abs, "finite": np.isfinite, "floor": np.floor, "fmod": np.fmod,
    "hypot": np.hypot, "isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan,
    "llabs": np.abs,
    "ldexp": lambda x, n: np.ldexp(x, n.astype(np.int32)), "log": np.log, "log10": np.log10,
    "log1p": np.log1p, "log2": np.log2, "logb": _exponent, "nearbyint": np.rint, "pow": np.power,
    "powi": np.power, "remainder": _remainder, "rint": np.rint, "round": _round, "ilogb": _ilogb,
    "signbit": np.signbit, "sin": np.sin, "sinh": np.sinh, "sinpi": _sinpi,
    "sqrt": np.sqrt, "tan": np.tan,
    "tanh": np.tanh, "tgamma": _tgamma, "trunc": np.trunc,
    "exp10": lambda x: np.power(10.0, x), "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x), "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "fdividef": np.divide, "fdim": lambda x, y: np.where(x <= y, 0.0, x - y),
    "saturate": lambda x: np.fmin(np.fmax(x, 0.0), 1.0),
    "scalbn": lambda x, n: np.ldexp(x, n.astype(np.int32)),
    "llrint": lambda x: to_integer(np.rint(x), np.dtype(np.int64)),
    "llround": lambda x: to_integer(_round(x), np.dtype(np.int64)),
    "cyl_bessel_i0": _through_torch(torch.special.i0),
    "cyl_bessel_i1": _through_torch(torch.special.i1),
    "j0": _through_torch(torch.special.bessel_j0), "j1": _through_torch(torch.special.bessel_j1),
    "y0": _through_torch(torch.special.bessel_y0), "y1": _through_torch(torch.special.bessel_y1),
    "erf": erf, "erfc": _through_torch(torch.erfc),
    "erfcx": _through_torch(torch.special.erfcx), "erfinv": _through_torch(torch.erfinv),
    "erfcinv": _through_torch(lambda x: torch.special.ndtri(x / 2) * -(0.5**0.5)),
    "lgamma": _lgamma, "normcdf": _through_torch(torch.special.ndtr),
    "normcdfinv": _through_torch(torch.special.ndtri),
}  # fmt: skip
# These look at the bits, or at the neighbours in their own type.
_OWN_TYPE: dict[str, Function] = {
    "clz": lambda x: 8 * x.itemsize - _bit_length(unsigned(x)),
    "ffs": lambda x: _bit_length(unsigned(x & -x)),
    "mul64hi": mulhi, "mulhi": mulhi, "nextafter": np.nextafter, "popc": _popc,
    "umul64hi": mulhi, "umulhi": mulhi,
}  # fmt: skip


def function(symbol: str) -> Function | None:
    """What `__nv_NAME` computes, on arrays."""
    name = symbol.removeprefix("__nv_").removeprefix("fast_")
    for known in (name, re.sub(r"(ll|[fd])$", "", name)):
        if known in _OWN_TYPE:
            return _OWN_TYPE[known]
        if computed := _LIBDEVICE.get(known):
            return lambda *args: computed(*(arg.astype(np.float64) for arg in args))
    return None
