"""Number formats: what bits mean, and how a number is rounded to them.

Triton's interpreter keeps the formats that NumPy lacks as unsigned integers, and computes on these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import triton.language as tl

from helion.runtime.interpreter.upstream import interpreter, lacks

if TYPE_CHECKING:
    from helion.runtime.interpreter.upstream import Array, Handle

# Formats that NumPy lacks, and that the interpreter therefore keeps as unsigned integers.
TORCH_FORMATS = {
    tl.bfloat16: torch.bfloat16,
    tl.float8e4nv: torch.float8_e4m3fn,
    tl.float8e5: torch.float8_e5m2,
    tl.float8e4b8: torch.float8_e4m3fnuz,
    tl.float8e5b16: torch.float8_e5m2fnuz,
}


def as_torch(array: Array) -> torch.Tensor:
    """The array as a tensor; it shares memory if the array is contiguous."""
    return torch.from_numpy(np.require(array, requirements=("C", "W")))


def widen(data: Array, dtype: tl.dtype) -> Array:
    """The numbers that `data` holds: float32 for a format that NumPy lacks, else `data` itself."""
    if dtype == tl.float8e4b15:
        raise NotImplementedError(lacks("float8e4b15"))
    if dtype in TORCH_FORMATS:
        return as_torch(data).view(TORCH_FORMATS[dtype]).to(torch.float32).numpy()
    return data


def numbers(handle: Handle) -> Array:
    """The numbers of a block or a scalar."""
    return widen(handle.data, handle.dtype.scalar)


def _round_to_odd(near: Array, error: Array) -> Array:
    """Of the two floats around `near + error` the odd one: rounding it on is rounding once.

    Source: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms
    using rounding to odd", IEEE Transactions on Computers 57(4), 2008.
    """
    even = near.view(f"i{near.itemsize}") & 1 == 0
    other = np.nextafter(near, np.copysign(np.inf, error).astype(near.dtype))
    return np.where(even & (error != 0) & ~np.isnan(error), other, near)


def _shorten(values: Array) -> Array:
    """`values` as float32 that still round to a shorter format as `values` do."""
    if values.dtype.kind == "f" and values.itemsize <= 4:
        return values.astype(np.float32, copy=False)
    wide = values.astype(np.float64)
    near = wide.astype(np.float32)
    return _round_to_odd(near, wide - near)


def narrow(values: Array, dtype: tl.dtype, toward_zero: bool = False) -> Array:
    """`values` in the format `dtype`, as the interpreter stores it; ties go to even."""
    if dtype == tl.float8e4b15:
        raise NotImplementedError(lacks("float8e4b15"))
    if dtype not in TORCH_FORMATS:
        data = values.astype(interpreter._get_np_dtype(dtype), copy=False)
    else:
        short = _shorten(values)
        if dtype.primitive_bitwidth == 8:
            # The GPU's conversion saturates (`cvt.rn.satfinite`); torch's makes NaN or infinity.
            limit = torch.finfo(TORCH_FORMATS[dtype]).max
            short = np.clip(short, -limit, limit)
        bits = (
            as_torch(short)
            .to(TORCH_FORMATS[dtype])
            .view(getattr(torch, f"uint{dtype.primitive_bitwidth}"))
        )
        data = bits.numpy()
    if toward_zero:
        beyond = np.abs(widen(data, dtype).astype(np.float64)) > np.abs(values)
        unsigned = data.view(f"u{data.itemsize}")
        # The magnitude is in the low bits, so one less is the next float toward zero.
        data = (unsigned - beyond.astype(unsigned.dtype)).view(data.dtype)
    return data


def to_integer(values: Array, dtype: np.dtype[Any]) -> Array:
    """Floats to integers as `cvt.rzi` does: toward zero, saturated.

    To 8 bits there is no such instruction: it goes through 16 bits and drops the upper half. NaN
    gives 0, or the top bit alone where 64 bits are involved (PTX ISA, `cvt`).
    """
    wide = np.dtype(f"{dtype.kind}{max(dtype.itemsize, 2)}")
    least, most = np.iinfo(wide).min, np.iinfo(wide).max
    whole = np.trunc(values.astype(np.float64))
    low, high, nan = whole < least, whole >= float(most) + 1, np.isnan(whole)
    outside = low | high | nan
    if not outside.any():
        return whole.astype(dtype)
    top_bit = least or 1 << (8 * wide.itemsize - 1)
    for_nan = top_bit if 8 in (values.itemsize, wide.itemsize) else 0
    fixed = np.where(outside, 0, whole).astype(wide)
    for where, value in ((low, least), (high, most), (nan, for_nan)):
        fixed = np.where(where, wide.type(value), fixed)
    return fixed.astype(dtype)


def convert_float(data: Array, source: tl.dtype, target: tl.dtype, rounding: Any) -> Array:
    """Replaces the interpreter's conversion, which loses carries; returns the bits."""
    values = widen(data, source)
    if values.dtype.kind != "f":
        values = values.view(interpreter._get_np_dtype(source))
    result = narrow(values, target, rounding == interpreter._ir.ROUNDING_MODE.RTZ)
    return result.view(f"u{result.itemsize}")


def fused(x: Array, y: Array, z: Array) -> Array:
    """`x * y + z` in float64, rounded to odd: exact once rounded to 32 bits or fewer.

    The product of two 24-bit significands is exact in float64; the rest is Knuth's two-sum.
    """
    product, z = x.astype(np.float64) * y, z.astype(np.float64)
    total = product + z
    shadow = total - product
    return _round_to_odd(total, (product - (total - shadow)) + (z - shadow))
