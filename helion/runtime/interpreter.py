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
import dataclasses
import functools
import operator
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
import triton
import triton.language as tl
from triton.runtime import interpreter as _triton
from triton.runtime.jit import _normalize_ty

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

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
        bits = (
            _torch(short).to(_BITS[dtype]).view(getattr(torch, f"uint{dtype.primitive_bitwidth}"))
        )
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

    def create_umulhi(self, lhs: Handle, rhs: Handle) -> Handle:
        high = _mulhi(_unsigned(lhs.data), _unsigned(rhs.data))
        return _handle(high.view(lhs.data.dtype), lhs.dtype.scalar)

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
        if function is None:
            raise NotImplementedError(f"Triton's interpreter has no libdevice function `{symbol}`")
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
        values = np.broadcast_to(val.data, ptr.data.shape).ravel()
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


def _handle(data: Array, dtype: tl.dtype) -> Handle:
    return _triton.TensorHandle(data, dtype)


def _rounds(address: Array, mask: Array) -> Iterator[Array]:
    """The lanes of `mask`, cut so that no address comes twice in a round, each in lane order."""
    lanes = np.flatnonzero(mask)
    lanes = lanes[np.argsort(address[lanes], kind="stable")]
    place = np.arange(lanes.size)
    first = np.append(True, address[lanes][1:] != address[lanes][:-1])[: lanes.size]
    rank = place - np.maximum.accumulate(np.where(first, place, 0))
    by_rank = np.argsort(rank, kind="stable")
    yield from np.split(lanes[by_rank], np.flatnonzero(np.diff(rank[by_rank])) + 1)


# -- reductions and scans ------------------------------------------------------------------------


class _Columns:
    """What reductions and scans share: axes, and blocks made of arrays and back."""

    axis: Any
    combine_fn: Any

    def check_tensor(self, input: tuple[Any, ...]) -> None:
        axis = getattr(self.axis, "value", self.axis)
        rank = len(input[0].shape)
        self.axis = axis + rank if axis is not None and axis < 0 else axis
        super().check_tensor(input)  # pyright: ignore[reportAttributeAccessIssue]

    def to_tensor(self, ret: Any, dtype: tl.dtype) -> Any:
        data = np.asarray(ret)
        if data.dtype.kind == "f":
            data = _narrow(data, dtype)
        data = data.astype(_triton._get_np_dtype(dtype), copy=False)
        if data.ndim:
            return _block(data, dtype)
        return tl.tensor(_handle(data.reshape(1), dtype), dtype)

    def combine(
        self, left: Sequence[Array], right: Sequence[Array], like: Sequence[Any]
    ) -> list[Array]:
        """`combine_fn` on whole arrays at once."""
        dtypes = [arg.dtype for arg in like] * 2
        result = self.combine_fn(*map(_block, (*left, *right), dtypes))
        result = result if isinstance(result, tuple) else (result,)
        semantic = _triton.interpreter_semantic
        casts = [
            semantic.cast(semantic.to_tensor(r), d) for r, d in zip(result, dtypes, strict=False)
        ]
        return [np.broadcast_to(c.handle.data, left[0].shape) for c in casts]


class _Reduce(_Columns, _triton.ReduceOps):
    def apply_impl(self, input: tuple[Any, ...]) -> Any:
        std, fn, dtype = tl.standard, self.combine_fn, input[0].dtype
        along = {"axis": self.axis, "keepdims": self.keep_dims}
        values = _values(input[0].handle)
        if fn is std._sum_combine:
            return [self.to_tensor(np.sum(values, **along), dtype)]
        # NaN loses every comparison, as in the compiled code.
        if fn is std._elementwise_max:
            return [self.to_tensor(np.fmax.reduce(values, **along), dtype)]
        if fn is std._elementwise_min:
            return [self.to_tensor(np.fmin.reduce(values, **along), dtype)]
        return self.generic_reduce(input)

    def generic_reduce(self, input: tuple[Any, ...]) -> Any:
        try:
            return self._halves(input)
        except Exception:
            # A function that branches needs scalars; if it is at fault itself, it will say so here.
            return super().generic_reduce(input)

    def _halves(self, input: tuple[Any, ...]) -> list[Any]:
        arrays = [arg.handle.data for arg in input]
        axis, rank = self.axis, arrays[0].ndim
        if axis is None:
            arrays, axis = [array.ravel() for array in arrays], 0
        arrays = [np.moveaxis(array, axis, 0) for array in arrays]
        while len(arrays[0]) > 1:
            arrays = self.combine([a[0::2] for a in arrays], [a[1::2] for a in arrays], input)
        arrays = [array[0] for array in arrays]
        if self.keep_dims:
            axes = tuple(range(rank)) if self.axis is None else axis
            arrays = [np.expand_dims(array, axes) for array in arrays]
        return [self.to_tensor(array, arg.dtype) for array, arg in zip(arrays, input, strict=True)]


class _Scan(_Columns, _triton.ScanOps):
    def cumsum(self, input: Any) -> list[Any]:
        return [self.to_tensor(np.cumsum(_values(input.handle), axis=self.axis), input.dtype)]

    def cumprod(self, input: Any) -> list[Any]:
        return [self.to_tensor(np.cumprod(_values(input.handle), axis=self.axis), input.dtype)]

    def generic_scan(self, input: tuple[Any, ...]) -> Any:
        try:
            return self._doubling(input)
        except Exception:
            # As in `_Reduce.generic_reduce`.
            return super().generic_scan(input)

    def _doubling(self, input: tuple[Any, ...]) -> list[Any]:
        arrays = [np.moveaxis(arg.handle.data, self.axis, 0) for arg in input]
        reach = 1
        while reach < len(arrays[0]):
            before = [np.roll(array, reach, axis=0) for array in arrays]
            after = self.combine(before, arrays, input)
            arrays = [
                np.concatenate([a[:reach], b[reach:]]) for a, b in zip(arrays, after, strict=True)
            ]
            reach *= 2
        arrays = [np.moveaxis(array, 0, self.axis) for array in arrays]
        return [self.to_tensor(array, arg.dtype) for array, arg in zip(arrays, input, strict=True)]


def _block(data: Array, dtype: tl.dtype) -> Any:
    return tl.tensor(_handle(data, dtype), tl.block_type(dtype, list(data.shape)))


# -- arguments, loops and conditions -------------------------------------------------------------


def _fits(value: int, dtype: tl.dtype) -> bool:
    return -1 <= value >> (dtype.primitive_bitwidth - 1) <= 0


def _scalar(value: float, dtype: tl.dtype) -> Any:
    """A Python number as a scalar of the kernel."""
    if dtype.is_floating():
        data = _narrow(np.array([value], np.float64), dtype)
    elif not isinstance(value, int):
        raise TypeError(f"a kernel argument declared {dtype} got the float {value!r}")
    elif dtype == tl.int1:
        data = np.array([bool(value)])
    elif dtype.is_int_signed() and not _fits(value, dtype):
        raise OverflowError(f"a kernel argument of type {dtype} cannot hold {value}")
    else:
        data = np.array([value % 2**dtype.primitive_bitwidth], np.uint64).astype(
            _triton._get_np_dtype(dtype)
        )
    return tl.tensor(_handle(data, dtype), dtype)


_plain_argument = _triton._implicit_cvt


def _argument(arg: Any) -> Any:
    """A kernel argument, with the type that the compiler gives it."""
    if isinstance(arg, bool):
        return _scalar(arg, tl.int1)
    if isinstance(arg, int):
        fits = [d for d in (tl.int32, tl.int64) if _fits(arg, d)]
        if not fits and not 0 <= arg < 2**64:
            raise OverflowError(f"a kernel argument cannot hold {arg}")
        return _scalar(arg, (fits or [tl.uint64])[0])
    if isinstance(arg, float):
        return _scalar(arg, tl.float32)
    return _plain_argument(arg)


class _Grid(_triton.GridExecutor):
    def _init_args_hst(self, args_dev: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        args, named = super()._init_args_hst(args_dev, kwargs)
        # Where annotations are strings, a string that was written as one has quotes of its own.
        notes = {
            n: a.strip("'\"") if isinstance(a, str) else a
            for n, a in self.fn.__annotations__.items()
        }
        types = {name: _SCALARS.get(_normalize_ty(note)) for name, note in notes.items()}

        def declared(name: str, arg: Any) -> Any:
            dtype = types.get(name) if isinstance(arg, (bool, int, float)) else None
            return arg if dtype is None else _scalar(arg, dtype)

        args = [declared(name, arg) for name, arg in zip(self.arg_names, args, strict=False)]
        return args, {name: declared(name, arg) for name, arg in named.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        # A GPU raises no floating-point warnings.
        with np.errstate(all="ignore"):
            super().__call__(*args, **kwargs)


_plain_patch = _triton._patch_lang


def _patch_lang(fn: Function) -> Any:
    """Turns `triton.language` into the interpreter's for one launch; a call inside finds it done."""
    if not tl.core.is_builtin(tl.load):
        return _triton._LangPatchScope()
    scope = _plain_patch(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    for module in (tl, tl.core):
        scope.set_attr(module, "range", _range)
    scope.set_attr(tl.tensor, "__index__", lambda self: operator.index(self.handle.data.item()))
    return scope


def _range(start: Any, end: Any = None, step: Any = 1, **_: Any) -> Iterator[Any]:
    """The loop variable is a scalar of the bounds' type, as in compiled code, and no Python int."""
    bounds = (0, start, step) if end is None else (start, end, 1 if step is None else step)
    semantic = _triton.interpreter_semantic
    low, high, by = (semantic.to_tensor(bound) for bound in bounds)
    dtype = functools.reduce(semantic.integer_promote_impl, (x.dtype for x in (low, high, by)))
    for value in range(*map(operator.index, (low, high, by))):
        yield _scalar(value, dtype)


def _condition(value: Any) -> Any:
    if isinstance(value, tl.tensor) and value.handle.data.size != 1:
        raise TypeError(f"a condition must be a scalar, not a block of shape {value.shape}")
    return value


def _not(value: Any) -> Any:
    if isinstance(value, tl.tensor):
        return _triton.interpreter_semantic.not_(value)
    return not value


def _logical(every: bool, first: Any, *rest: Function) -> Any:
    """`and` (`every`) or `or`: scalars and blocks of the kernel are joined, never skipped."""
    semantic = _triton.interpreter_semantic
    join = semantic.logical_and if every else semantic.logical_or
    for later in rest:
        if isinstance(first, tl.tensor):
            first = join(first, semantic.to_tensor(later()))
        elif bool(first) != every:
            return first
        else:
            first = later()
    return first


class _Transformer(_triton.ASTTransformer):
    """Rewrites the Python that would silently treat a block as true, or count in Python ints."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        # Only some versions visit the value; none may visit it twice.
        value, node.value = node.value, ast.Constant(None)
        call = super().visit_Assign(node).value
        call.args[0] = self.visit(value)
        return node

    def _guard(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        node.test = _call("_condition", node.test)
        return node

    visit_If = visit_While = visit_IfExp = _guard

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        later = [ast.Lambda(args=none, body=value) for value in node.values[1:]]
        every = ast.Constant(isinstance(node.op, ast.And))
        return ast.copy_location(_call("_logical", every, node.values[0], *later), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        is_not = isinstance(node.op, ast.Not)
        return ast.copy_location(_call("_not", node.operand), node) if is_not else node

    def visit_For(self, node: ast.For) -> ast.AST:
        self.generic_visit(node)
        loop = node.iter
        if (
            isinstance(loop, ast.Call)
            and isinstance(loop.func, ast.Name)
            and loop.func.id == "range"
        ):
            loop.func.id = _NAME.format("_range")
        return node


# The interpreter copies the names of its own module into the globals of each kernel.
_NAME = "_helion{}"


def _call(name: str, *args: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(_NAME.format(name), ast.Load()), list(args), [])


# -- libdevice -----------------------------------------------------------------------------------


def _through_torch(function: Callable[[torch.Tensor], torch.Tensor]) -> Function:
    return lambda x: function(_torch(x.astype(np.float64, copy=False))).numpy()


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


def _tgamma(x: Array) -> Array:
    size = np.exp(_LIBDEVICE["lgamma"](x))
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


def _unsigned(x: Array) -> Array:
    return x.view(f"u{x.itemsize}")


def _bit_length(x: Array) -> Array:
    half = 4 * x.itemsize
    # A half fits into the significand of a float64, whose exponent then is the answer.
    high, low = (np.frexp(w.astype(np.float64))[1] for w in (x >> half, x & (1 << half) - 1))
    return np.where(high > 0, high + half, low)


def _popc(x: Array) -> Array:
    return np.unpackbits(np.ascontiguousarray(x)[..., None].view(np.uint8), axis=-1).sum(-1)


def _mulhi(x: Array, y: Array) -> Array:
    """The upper half of the product of integers, in the type of `x`."""
    if x.itemsize == 4:
        return (x.astype(f"{x.dtype.kind}8") * y >> 32).astype(x.dtype)
    a, b = _unsigned(x), _unsigned(y)
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
    "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh, "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "fabs": np.abs, "finite": np.isfinite, "floor": np.floor, "fmod": np.fmod,
    "hypot": np.hypot, "isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan,
    "llabs": np.abs,
    "ldexp": lambda x, n: np.ldexp(x, n.astype(np.int32)), "log": np.log, "log10": np.log10,
    "log1p": np.log1p, "log2": np.log2, "logb": _exponent, "nearbyint": np.rint, "pow": np.power,
    "powi": np.power, "remainder": _remainder, "rint": np.rint, "round": _round, "ilogb": _ilogb,
    "signbit": np.signbit, "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan,
    "tanh": np.tanh, "tgamma": _tgamma, "trunc": np.trunc,
    "exp10": lambda x: np.power(10.0, x), "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x), "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "fdividef": np.divide, "fdim": lambda x, y: np.where(x <= y, 0.0, x - y),
    "saturate": lambda x: np.fmin(np.fmax(x, 0.0), 1.0),
    "scalbn": lambda x, n: np.ldexp(x, n.astype(np.int32)),
    "llrint": lambda x: _to_integer(np.rint(x), np.dtype(np.int64)),
    "llround": lambda x: _to_integer(_round(x), np.dtype(np.int64)),
    "cyl_bessel_i0": _through_torch(torch.special.i0),
    "cyl_bessel_i1": _through_torch(torch.special.i1),
    "j0": _through_torch(torch.special.bessel_j0), "j1": _through_torch(torch.special.bessel_j1),
    "y0": _through_torch(torch.special.bessel_y0), "y1": _through_torch(torch.special.bessel_y1),
    "erf": _through_torch(torch.erf), "erfc": _through_torch(torch.erfc),
    "erfcx": _through_torch(torch.special.erfcx), "erfinv": _through_torch(torch.erfinv),
    "erfcinv": _through_torch(lambda x: torch.special.ndtri(x / 2) * -(0.5**0.5)),
    "lgamma": _through_torch(torch.lgamma), "normcdf": _through_torch(torch.special.ndtr),
    "normcdfinv": _through_torch(torch.special.ndtri),
}  # fmt: skip
# These look at the bits, or at the neighbours in their own type.
_OWN_TYPE: dict[str, Function] = {
    "clz": lambda x: 8 * x.itemsize - _bit_length(_unsigned(x)),
    "ffs": lambda x: _bit_length(_unsigned(x & -x)),
    "mul64hi": _mulhi, "mulhi": _mulhi, "nextafter": np.nextafter, "popc": _popc,
    "umul64hi": _mulhi, "umulhi": _mulhi,
}  # fmt: skip


def _libdevice_function(symbol: str) -> Function | None:
    """What `__nv_NAME` computes, on arrays."""
    name = symbol.removeprefix("__nv_").removeprefix("fast_")
    for known in (name, re.sub(r"(ll|[fd])$", "", name)):
        if known in _OWN_TYPE:
            return _OWN_TYPE[known]
        if function := _LIBDEVICE.get(known):
            return lambda *args: function(*(arg.astype(np.float64) for arg in args))
    return None


# -- installation --------------------------------------------------------------------------------

_HAS_DOT_SCALED = hasattr(_triton.InterpreterBuilder, "create_dot_scaled")
_REDUCE_KINDS: dict[str, Function] = {
    "ADD": np.add, "MIN": np.fmin, "MAX": np.fmax,
    "AND": np.bitwise_and, "OR": np.bitwise_or, "XOR": np.bitwise_xor,
}  # fmt: skip


def unsupported(feature: str) -> str | None:
    """Why a kernel that uses `feature` cannot run in the interpreter, or None if it can.

    Args:
        feature: a name of `triton.language`, such as `dot_scaled`, or `libdevice.NAME`.

    Returns:
        A sentence for a log or an error; None for everything else, and where it is off.
    """
    if not triton.knobs.runtime.interpret:
        return None
    missing = {
        "dot_scaled": not _HAS_DOT_SCALED,
        "make_block_ptr": not hasattr(_triton, "BlockPointerHandle"),
        "inline_asm_elementwise": True,
        "map_elementwise": True,
        "float8e4b15": True,
    }
    scope, _, name = feature.rpartition(".")
    if missing.get(feature, scope == "libdevice" and _libdevice_function(name) is None):
        return f"the interpreter of Triton {triton.__version__} has no {feature}"
    return None


def _bind(function: Function) -> Function:
    @functools.wraps(function)
    def interpreted(*args: Any, _semantic: Any = None) -> Any:
        return function(*args, _semantic=_triton.interpreter_semantic)

    return interpreted


def _install_libdevice() -> None:
    # Imported here because it takes time, which only the interpreter should spend.
    from triton.language.extra import libdevice
    from triton.language.extra.cuda import libdevice as cuda

    # The first module is stubs that the compiler exchanges for the second; outside it they give None.
    for name, function in vars(cuda).copy().items():
        if tl.core.is_builtin(function):
            for module in (libdevice, cuda):
                setattr(module, name, _bind(function))


def install() -> None:
    """Puts the classes of this file in the place of the interpreter's, once.

    Does nothing where the interpreter is off. Call it before the first launch: what has been
    launched keeps the Python that it was rewritten to.
    """
    if not triton.knobs.runtime.interpret or isinstance(_triton.interpreter_builder, _Builder):
        return
    builder = _triton.interpreter_builder
    builder.__class__ = _Builder
    # Integers wrap without a check at each operation, as in code compiled without `debug`.
    builder.options = dataclasses.replace(
        builder.options,
        sanitize_overflow=False,
        allowed_dot_input_precisions=("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
    )
    _triton.InterpreterBuilder = _Builder
    _triton.ReduceOps, _triton.ScanOps, _triton.GridExecutor = _Reduce, _Scan, _Grid
    _triton.FunctionRewriter.ast_transformer = _Transformer()
    _triton._convert_float, _triton._implicit_cvt = _convert_float, _argument
    _triton._patch_lang = _patch_lang
    for function in (_condition, _logical, _not, _range):
        setattr(_triton, _NAME.format(function.__name__), function)
    _install_libdevice()
