"""The operations of a kernel, on numbers where Triton's interpreter computes on raw bits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import triton.language as tl

from helion.runtime.interpreter import libdevice
from helion.runtime.interpreter.formats import TORCH_FORMATS, fused, narrow, numbers, to_integer
from helion.runtime.interpreter.upstream import interpreter, lacks
from helion.runtime.interpreter.values import new_handle

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from helion.runtime.interpreter.upstream import Array, Function, Handle

HAS_DOT_SCALED = hasattr(interpreter.InterpreterBuilder, "create_dot_scaled")

# One bit wraps like any other integer; NumPy saturates, or refuses to subtract.
_ONE_BIT: dict[Function, Function] = {
    np.add: np.logical_xor,
    np.subtract: np.logical_xor,
    np.multiply: np.logical_and,
}
_REDUCE_KINDS: dict[str, Function] = {
    "ADD": np.add, "MIN": np.fmin, "MAX": np.fmax,
    "AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor,
}  # fmt: skip


class Builder(interpreter.InterpreterBuilder):
    """The interpreter's operations, on the numbers where it would compute on raw bits."""

    def cast_impl(self, src: Handle, dst_type: tl.dtype) -> Handle:
        """Conversions that saturate and round as the GPU does."""
        target, values = dst_type.scalar, numbers(src)
        if target.is_floating():
            return new_handle(narrow(values, target), target)
        if values.dtype.kind == "f" and not target.is_ptr():
            return new_handle(to_integer(values, interpreter._get_np_dtype(target)), target)
        return super().cast_impl(src, dst_type)

    def unary_op(self, arg: Handle, op: Function) -> Handle:
        """On the numbers, not on their bits."""
        dtype = arg.dtype.scalar
        return new_handle(narrow(op(numbers(arg)), dtype), dtype)

    def binary_op(self, lhs: Handle, rhs: Handle, op: Function) -> Handle:
        """On the numbers; a comparison gives one bit whatever it compares."""
        dtype = lhs.dtype.scalar
        if dtype in TORCH_FORMATS:
            result = op(numbers(lhs), numbers(rhs))
            if result.dtype != np.bool_:
                return new_handle(narrow(result, dtype), dtype)
        else:
            if lhs.data.dtype == np.bool_ and rhs.data.dtype == np.bool_:
                op = _ONE_BIT.get(op, op)
            handle = super().binary_op(lhs, rhs, op)
            if handle.data.dtype != np.bool_:
                return handle
            result = handle.data
        # A comparison that kept the type of its operands would be cast as if it were one of them.
        return new_handle(result, tl.int1)

    def ternary_op(self, lhs: Handle, rhs: Handle, other: Handle, op: Function) -> Handle:
        """On the numbers."""
        dtype = other.dtype.scalar
        if {rhs.data.dtype.kind, other.data.dtype.kind} == {"i", "u"}:
            # `tl.atomic_min` selects between both kinds; NumPy would make floats of 64-bit ones.
            other = new_handle(other.data.view(rhs.data.dtype), rhs.dtype.scalar)
        if op is np.where or dtype not in TORCH_FORMATS:
            return super().ternary_op(lhs, rhs, other, op)
        return new_handle(narrow(op(*map(numbers, (lhs, rhs, other))), dtype), dtype)

    def create_minnumf(self, lhs: Handle, rhs: Handle) -> Handle:
        """The other operand where one is NaN."""
        return self.binary_op(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: Handle, rhs: Handle) -> Handle:
        """The other operand where one is NaN."""
        return self.binary_op(lhs, rhs, np.fmax)

    def create_clampf(self, arg: Handle, lo: Handle, hi: Handle, propagate_nans: Any) -> Handle:
        """A NaN becomes `lo`, unless it is to be propagated."""
        if propagate_nans == interpreter._ir.PROPAGATE_NAN.NONE:
            return self.create_minnumf(self.create_maxnumf(arg, lo), hi)
        return self.ternary_op(arg, lo, hi, np.clip)

    def create_fma(self, x: Handle, y: Handle, z: Handle) -> Handle:
        """Rounded once."""
        dtype = z.dtype.scalar
        if dtype == tl.float64:
            return super().create_fma(x, y, z)
        return new_handle(narrow(fused(*map(numbers, (x, y, z))), dtype), dtype)

    def create_umulhi(self, lhs: Handle, rhs: Handle) -> Handle:
        """NumPy has no product of 128 bits."""
        high = libdevice.mulhi(libdevice.unsigned(lhs.data), libdevice.unsigned(rhs.data))
        return new_handle(high.view(lhs.data.dtype), lhs.dtype.scalar)

    def create_erf(self, arg: Handle) -> Handle:
        """Without a Python call for each element."""
        return new_handle(libdevice.erf(arg.data).astype(arg.data.dtype), arg.dtype.scalar)

    def create_dot(self, a: Handle, b: Handle, d: Handle, *_: Any) -> Handle:
        """A matrix product of the numbers."""
        left, right, acc, dtype = numbers(a), numbers(b), numbers(d), d.dtype.scalar
        if left.dtype.kind in "iu":
            # Matrix products of integers have no BLAS; in float64 they are exact, and fast.
            product = np.matmul(left.astype(np.float64), right.astype(np.float64))
            return new_handle((product.astype(np.int64) + acc).astype(acc.dtype), dtype)
        wide = np.result_type(left.dtype, np.float32)
        product = np.matmul(left.astype(wide, copy=False), right.astype(wide, copy=False))
        return new_handle(narrow(product + acc.astype(wide, copy=False), dtype), dtype)

    def create_dot_scaled(self, *args: Any, **kwargs: Any) -> Handle:
        """Not in every version."""
        if not HAS_DOT_SCALED:
            raise NotImplementedError(lacks("dot_scaled"))
        return super().create_dot_scaled(*args, **kwargs)

    def create_extern_elementwise(
        self, lib: str, path: str, symbol: str, args: Sequence[Handle], ret_type: Any, pure: bool
    ) -> Handle:
        """A function of `libdevice`."""
        dtype = ret_type.scalar
        function = libdevice.function(symbol)
        if function is None:
            raise NotImplementedError(lacks(f"libdevice function `{symbol}`"))
        data = function(*(arg.data for arg in args))
        return new_handle(data.astype(interpreter._get_np_dtype(dtype), copy=False), dtype)

    def create_atomic_rmw(
        self, op: Any, ptr: Handle, val: Handle, mask: Handle, sem: Any, scope: Any
    ) -> Handle:
        """The interpreter exchanges floats as integers, and cannot add bfloat16."""
        kind = interpreter._ir.ATOMIC_OP
        if op == kind.XCHG and val.dtype.is_floating():
            return self._update(ptr, val, mask, lambda before, after: after)
        if op == kind.FADD and val.dtype.scalar in TORCH_FORMATS:
            return self._update(ptr, val, mask, self.create_fadd)
        return super().create_atomic_rmw(op, ptr, val, mask, sem, scope)

    def create_descriptor_reduce(
        self, kind: Any, desc: Any, value: Handle, indices: Sequence[Handle]
    ) -> Handle:
        """Missing in the interpreter."""
        ptr, mask = desc.materialize_pointers(indices)
        mask = mask if isinstance(mask, interpreter.TensorHandle) else new_handle(mask, tl.int1)
        op = _REDUCE_KINDS[kind.name]
        return self._update(ptr, value, mask, lambda x, y: self.binary_op(x, y, op))

    def _update(self, ptr: Handle, val: Handle, mask: Handle, combine: Function) -> Handle:
        """An atomic operation, lane after lane where several have one address."""
        address, dtype = ptr.data.ravel(), val.dtype.scalar
        values = np.broadcast_to(val.data, ptr.data.shape).ravel()
        old = np.zeros(address.shape, values.dtype)
        for lanes in _rounds(address, np.broadcast_to(mask.data, ptr.data.shape).ravel()):
            every = np.ones(lanes.shape, np.bool_)
            before = interpreter._interpreter.load(address[lanes], every, old[lanes], values.dtype)
            after = combine(new_handle(before, dtype), new_handle(values[lanes], dtype))
            interpreter._interpreter.store(address[lanes], after.data, every)
            old[lanes] = before
        return new_handle(old.reshape(ptr.data.shape), dtype)

    def get_bf16(self, value: float) -> Handle:
        """The constant as a number, not as an integer."""
        return self.create_fp_trunc(self.get_fp32(value), tl.bfloat16)

    def get_all_ones_value(self, type: tl.dtype) -> Handle:
        """All bits set in an unsigned integer too, which has no -1."""
        dtype = interpreter._get_np_dtype(type)
        if dtype.kind != "u":
            return super().get_all_ones_value(type)
        return new_handle(np.full(1, np.iinfo(dtype).max, dtype), type.scalar)


def _rounds(address: Array, mask: Array) -> Iterator[Array]:
    """The lanes of `mask`, cut so that no address comes twice in a round, each in lane order."""
    lanes = np.flatnonzero(mask)
    lanes = lanes[np.argsort(address[lanes], kind="stable")]
    place = np.arange(lanes.size)
    first = np.append(True, address[lanes][1:] != address[lanes][:-1])[: lanes.size]
    rank = place - np.maximum.accumulate(np.where(first, place, 0))
    by_rank = np.argsort(rank, kind="stable")
    yield from np.split(lanes[by_rank], np.flatnonzero(np.diff(rank[by_rank])) + 1)
