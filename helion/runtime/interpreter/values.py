"""Blocks and scalars as a kernel sees them while the interpreter runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import triton.language as tl

from helion.runtime.interpreter.formats import narrow
from helion.runtime.interpreter.upstream import interpreter

if TYPE_CHECKING:
    from helion.runtime.interpreter.upstream import Array, Handle


def new_handle(data: Array, dtype: tl.dtype) -> Handle:
    """What the operations of a kernel take and return."""
    return interpreter.TensorHandle(data, dtype)


def new_block(data: Array, dtype: tl.dtype) -> Any:
    """An array as a block of the kernel."""
    return tl.tensor(new_handle(data, dtype), tl.block_type(dtype, list(data.shape)))


def fits(value: int, dtype: tl.dtype) -> bool:
    """Whether a signed integer type holds `value`."""
    return -1 <= value >> (dtype.primitive_bitwidth - 1) <= 0


def new_scalar(value: float, dtype: tl.dtype) -> Any:
    """A Python number as a scalar of the kernel."""
    if dtype.is_floating():
        data = narrow(np.array([value], np.float64), dtype)
    elif not isinstance(value, int):
        raise TypeError(f"a kernel argument declared {dtype} got the float {value!r}")
    elif dtype == tl.int1:
        data = np.array([bool(value)])
    elif dtype.is_int_signed() and not fits(value, dtype):
        raise OverflowError(f"a kernel argument of type {dtype} cannot hold {value}")
    else:
        data = np.array([value % 2**dtype.primitive_bitwidth], np.uint64).astype(
            interpreter._get_np_dtype(dtype)
        )
    return tl.tensor(new_handle(data, dtype), dtype)
