"""Reductions and scans: whole arrays at a time, with the result that compiled code has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import triton.language as tl

from helion.runtime.interpreter.formats import narrow, numbers
from helion.runtime.interpreter.upstream import interpreter
from helion.runtime.interpreter.values import new_block, new_handle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.runtime.interpreter.upstream import Array


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
            data = narrow(data, dtype)
        data = data.astype(interpreter._get_np_dtype(dtype), copy=False)
        if data.ndim:
            return new_block(data, dtype)
        return tl.tensor(new_handle(data.reshape(1), dtype), dtype)

    def combine(
        self, left: Sequence[Array], right: Sequence[Array], like: Sequence[Any]
    ) -> list[Array]:
        """`combine_fn` on whole arrays at once."""
        dtypes = [arg.dtype for arg in like] * 2
        result = self.combine_fn(*map(new_block, (*left, *right), dtypes))
        result = result if isinstance(result, tuple) else (result,)
        semantic = interpreter.interpreter_semantic
        casts = [
            semantic.cast(semantic.to_tensor(r), d) for r, d in zip(result, dtypes, strict=False)
        ]
        return [np.broadcast_to(c.handle.data, left[0].shape) for c in casts]


class Reduce(_Columns, interpreter.ReduceOps):
    """A reduction; the interpreter visits element after element."""

    def apply_impl(self, input: tuple[Any, ...]) -> Any:
        """The named reductions, then those by a function."""
        std, fn, dtype = tl.standard, self.combine_fn, input[0].dtype
        along = {"axis": self.axis, "keepdims": self.keep_dims}
        values = numbers(input[0].handle)
        if fn is std._sum_combine:
            return [self.to_tensor(np.sum(values, **along), dtype)]
        # NaN loses every comparison, as in the compiled code.
        if fn is std._elementwise_max:
            return [self.to_tensor(np.fmax.reduce(values, **along), dtype)]
        if fn is std._elementwise_min:
            return [self.to_tensor(np.fmin.reduce(values, **along), dtype)]
        return self.generic_reduce(input)

    def generic_reduce(self, input: tuple[Any, ...]) -> Any:
        """By a function: half against half, until one element is left."""
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


class Scan(_Columns, interpreter.ScanOps):
    """A scan; the interpreter visits element after element."""

    def cumsum(self, input: Any) -> list[Any]:
        """Of the numbers."""
        return [self.to_tensor(np.cumsum(numbers(input.handle), axis=self.axis), input.dtype)]

    def cumprod(self, input: Any) -> list[Any]:
        """Of the numbers."""
        return [self.to_tensor(np.cumprod(numbers(input.handle), axis=self.axis), input.dtype)]

    def generic_scan(self, input: tuple[Any, ...]) -> Any:
        """By a function: with what stands 1, 2, 4 ... places before."""
        try:
            return self._doubling(input)
        except Exception:
            # As in `Reduce.generic_reduce`.
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
