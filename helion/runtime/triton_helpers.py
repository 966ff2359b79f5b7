"""Triton functions that generated kernels call: what torch means where Triton means less."""

# What Triton passes to these at compile time has no Python type.
# pyright: reportMissingParameterType=false, reportUnknownParameterType=false

from __future__ import annotations

import triton
import triton.language as tl


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
