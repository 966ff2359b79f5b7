"""Closes the gaps of Triton's interpreter, so that a kernel computes there what a GPU computes.

Without an accelerator the generated kernels run under Triton's interpreter, in NumPy. It keeps the
formats that NumPy lacks as raw bits and computes on the bits, returns None from `libdevice`, and
differs from compiled code in arguments, loops, conditions and reductions. `install` puts subclasses
of the interpreter's own classes in their place; what a version already does right stays as it is.

What remains different: `tl.dot` does not shorten float32 operands to TF32, accumulates in float32
also where the accumulator is float16, and reductions round 16-bit floats once, at the end.
"""

from __future__ import annotations

import ast
import functools
import operator
import re
from collections.abc import Callable, Iterator, Sequence
from types import SimpleNamespace
from typing import Any, TypeAlias

import numpy as np
import torch
import triton
import triton.language as tl
from triton.runtime import interpreter as _triton
from triton.runtime.jit import _normalize_ty

__all__ = ["install", "unsupported"]

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Handle: TypeAlias = Any  # the interpreter's TensorHandle, which has no types
Function: TypeAlias = "Callable[..., Any]"

# Formats that NumPy lacks, and that the interpreter therefore keeps as unsigned integers.
_BITS = {
    tl.bfloat16: torch.bfloat16,
    tl.float8e4nv: torch.float8_e4m3fn,
    tl.float8e5: torch.float8_e5m2,
    tl.float8e4b8: torch.float8_e4m3fnuz,
    tl.float8e5b16: torch.float8_e5m2fnuz,
}
_SCALARS = {
    "i1": tl.int1, "u1": tl.int1, "i8": tl.int8, "i16": tl.int16, "i32": tl.int32, "i64": tl.int64,
    "u8": tl.uint8, "u16": tl.uint16, "u32": tl.uint32, "u64": tl.uint64,
    "fp16": tl.float16, "bf16": tl.bfloat16, "fp32": tl.float32, "fp64": tl.float64,
}  # fmt: skip


# -- formats -------------------------------------------------------------------------------------


def _torch(array: Array) -> torch.Tensor:
    return torch.from_numpy(np.require(array, requirements=("C", "W")))


def _widen(data: Array, dtype: tl.dtype) -> Array:
    """The numbers that `data` holds: float32 for a format that NumPy lacks, else `data` itself."""
    if dtype == tl.float8e4b15:
        raise NotImplementedError(unsupported("float8e4b15"))
    if dtype in _BITS:
        return _torch(data).view(_BITS[dtype]).to(torch.float32).numpy()
    return data


def _values(handle: Handle) -> Array:
    return _widen(handle.data, handle.dtype.scalar)


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


def _narrow(values: Array, dtype: tl.dtype, toward_zero: bool = False) -> Array:
    """`values` in the format `dtype`, as the interpreter stores it; ties go to even."""
    if dtype == tl.float8e4b15:
        raise NotImplementedError(unsupported("float8e4b15"))
    if dtype not in _BITS:
        data = values.astype(_triton._get_np_dtype(dtype), copy=False)
    else:
        short = _shorten(values)
        if dtype.primitive_bitwidth == 8:
            # The GPU's conversion saturates (`cvt.rn.satfinite`); torch's makes NaN or infinity.
            limit = torch.finfo(_BITS[dtype]).max
            short = np.clip(short, -limit, limit)
        bits = _torch(short).to(_BITS[dtype]).view(getattr(torch, f"uint{dtype.primitive_bitwidth}"))
        data = bits.numpy()
    if toward_zero:
        beyond = np.abs(_widen(data, dtype).astype(np.float64)) > np.abs(values)
        unsigned = data.view(f"u{data.itemsize}")
        # The magnitude is in the low bits, so one less is the next float toward zero.
        data = (unsigned - beyond.astype(unsigned.dtype)).view(data.dtype)
    return data


def _to_integer(values: Array, dtype: np.dtype[Any]) -> Array:
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


def _convert_float(data: Array, source: tl.dtype, target: tl.dtype, rounding: Any) -> Array:
    """Replaces the interpreter's conversion, which loses carries; returns the bits."""
    values = _widen(data, source)
    if values.dtype.kind != "f":
        values = values.view(_triton._get_np_dtype(source))
    result = _narrow(values, target, rounding == _triton._ir.ROUNDING_MODE.RTZ)
    return result.view(f"u{result.itemsize}")


def _fused(x: Array, y: Array, z: Array) -> Array:
    """`x * y + z` in float64, rounded to odd: exact once rounded to 32 bits or fewer.

    The product of two 24-bit significands is exact in float64; the rest is Knuth's two-sum.
    """
    product, z = x.astype(np.float64) * y, z.astype(np.float64)
    total = product + z
    shadow = total - product
    return _round_to_odd(total, (product - (total - shadow)) + (z - shadow))


# -- operations ----------------------------------------------------------------------------------

# One bit wraps like any other integer; NumPy saturates, or refuses to subtract.
_ONE_BIT: dict[Function, Function] = {
    np.add: np.logical_xor,
    np.subtract: np.logical_xor,
    np.multiply: np.logical_and,
}


class _Builder(_triton.InterpreterBuilder):
    """The interpreter's operations, on the numbers where it would compute on raw bits."""

    def __init__(self) -> None:
        super().__init__()
        self.options = _options(self.options)

    def cast_impl(self, src: Handle, dst_type: tl.dtype) -> Handle:
        target, values = dst_type.scalar, _values(src)
        if target.is_floating():
            return _handle(_narrow(values, target), target)
        if values.dtype.kind == "f" and not target.is_ptr():
            return _handle(_to_integer(values, _triton._get_np_dtype(target)), target)
        return super().cast_impl(src, dst_type)

    def unary_op(self, arg: Handle, op: Function) -> Handle:
        dtype = arg.dtype.scalar
        return _handle(_narrow(op(_values(arg)), dtype), dtype)

    def binary_op(self, lhs: Handle, rhs: Handle, op: Function) -> Handle:
        dtype = lhs.dtype.scalar
        if dtype in _BITS:
            result = op(_values(lhs), _values(rhs))
            if result.dtype != np.bool_:
                return _handle(_narrow(result, dtype), dtype)
        else:
            if lhs.data.dtype == np.bool_ and rhs.data.dtype == np.bool_:
                op = _ONE_BIT.get(op, op)
            handle = super().binary_op(lhs, rhs, op)
            if handle.data.dtype != np.bool_:
                return handle
            result = handle.data
        # A comparison that kept the type of its operands would be cast as if it were one of them.
        return _handle(result, tl.int1)

    def ternary_op(self, lhs: Handle, rhs: Handle, other: Handle, op: Function) -> Handle:
        dtype = other.dtype.scalar
        if dtype not in _BITS or op is np.where:
            return super().ternary_op(lhs, rhs, other, op)
        return _handle(_narrow(op(*map(_values, (lhs, rhs, other))), dtype), dtype)

    def create_minnumf(self, lhs: Handle, rhs: Handle) -> Handle:
        return self.binary_op(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: Handle, rhs: Handle) -> Handle:
        return self.binary_op(lhs, rhs, np.fmax)

    def create_clampf(self, arg: Handle, lo: Handle, hi: Handle, propagate_nans: Any) -> Handle:
        if propagate_nans == _triton._ir.PROPAGATE_NAN.NONE:
            return self.create_minnumf(self.create_maxnumf(arg, lo), hi)
        return self.ternary_op(arg, lo, hi, np.clip)

    def create_fma(self, x: Handle, y: Handle, z: Handle) -> Handle:
        dtype = z.dtype.scalar
        if dtype == tl.float64:
            return super().create_fma(x, y, z)
        return _handle(_narrow(_fused(*map(_values, (x, y, z))), dtype), dtype)

    def create_erf(self, arg: Handle) -> Handle:
        return _handle(_LIBDEVICE["erf"](arg.data).astype(arg.data.dtype), arg.dtype.scalar)

    def create_dot(self, a: Handle, b: Handle, d: Handle, *_: Any) -> Handle:
        left, right, acc, dtype = _values(a), _values(b), _values(d), d.dtype.scalar
        if left.dtype.kind in "iu":
            # Matrix products of integers have no BLAS; in float64 they are exact, and fast.
            product = np.matmul(left.astype(np.float64), right.astype(np.float64))
            return _handle((product.astype(np.int64) + acc).astype(acc.dtype), dtype)
        wide = np.result_type(left.dtype, np.float32)
        product = np.matmul(left.astype(wide, copy=False), right.astype(wide, copy=False))
        return _handle(_narrow(product + acc.astype(wide, copy=False), dtype), dtype)

    def create_dot_scaled(self, *args: Any, **kwargs: Any) -> Handle:
        if reason := unsupported("dot_scaled"):
            raise NotImplementedError(reason)
        return super().create_dot_scaled(*args, **kwargs)

    def create_extern_elementwise(
        self, lib: str, path: str, symbol: str, args: Sequence[Handle], ret_type: Any, pure: bool
    ) -> Handle:
        dtype = ret_type.scalar
        function = _libdevice_function(symbol)
        data = function(*(arg.data for arg in args))
        return _handle(data.astype(_triton._get_np_dtype(dtype), copy=False), dtype)

    def create_atomic_rmw(
        self, op: Any, ptr: Handle, val: Handle, mask: Handle, sem: Any, scope: Any
    ) -> Handle:
        kind = _triton._ir.ATOMIC_OP
        if op == kind.XCHG and val.dtype.is_floating():
            return self._update(ptr, val, mask, lambda before, after: after)
        if op == kind.FADD and val.dtype.scalar in _BITS:
            return self._update(ptr, val, mask, self.create_fadd)
        return super().create_atomic_rmw(op, ptr, val, mask, sem, scope)

    def create_descriptor_reduce(
        self, kind: Any, desc: Any, value: Handle, indices: Sequence[Handle]
    ) -> Handle:
        ptr, mask = desc.materialize_pointers(indices)
        mask = mask if isinstance(mask, _triton.TensorHandle) else _handle(mask, tl.int1)
        op = _REDUCE_KINDS[kind.name]
        return self._update(ptr, value, mask, lambda x, y: self.binary_op(x, y, op))

    def _update(self, ptr: Handle, val: Handle, mask: Handle, combine: Function) -> Handle:
        """An atomic operation, lane after lane where several have one address."""
        address, dtype = ptr.data.ravel(), val.dtype.scalar
        values, old = np.broadcast_to(val.data, ptr.data.shape).ravel(), np.zeros_like(val.data)
        old = np.zeros(address.shape, values.dtype)
        for lanes in _rounds(address, np.broadcast_to(mask.data, ptr.data.shape).ravel()):
            every = np.ones(lanes.shape, np.bool_)
            before = _triton._interpreter.load(address[lanes], every, old[lanes], values.dtype)
            after = combine(_handle(before, dtype), _handle(values[lanes], dtype))
            _triton._interpreter.store(address[lanes], after.data, every)
            old[lanes] = before
        return _handle(old.reshape(ptr.data.shape), dtype)

    def get_bf16(self, value: float) -> Handle:
        return self.create_fp_trunc(self.get_fp32(value), tl.bfloat16)

    def get_all_ones_value(self, type: tl.dtype) -> Handle:
        dtype = _triton._get_np_dtype(type)
        if dtype.kind != "u":
            return super().get_all_ones_value(type)
        return _handle(np.full(1, np.iinfo(dtype).max, dtype), type.scalar)


