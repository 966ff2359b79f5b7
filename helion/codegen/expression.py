"""Triton expressions under construction: text that knows its dtype, shape and binding strength."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import torch

from helion.ir.dtypes import TRITON_DTYPES as TRITON_DTYPES

# Python's precedence, loosest first; a higher number binds tighter.
(COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, UNARY, ATOM) = range(9)


@dataclasses.dataclass(frozen=True)
class Expression:
    """A Triton expression.

    Attributes:
        text: the expression.
        dtype: its dtype in Triton; None for a literal, which takes the dtype of what it meets.
        shape: its shape in Triton, sizes of the device IR; a dimension that only broadcasts is 1,
            and `()` is a scalar.
        binds: how tightly its outermost operator binds.
    """

    text: str
    dtype: torch.dtype | None = None
    shape: tuple[Any, ...] = ()
    binds: int = ATOM

    def within(self, binds: int) -> str:
        """The text as an operand of an operator, in parentheses where it needs them."""
        return self.text if self.binds >= binds else f"({self.text})"

    def typed(self, dtype: torch.dtype | None) -> Expression:
        """The same text, known to be of a dtype."""
        return dataclasses.replace(self, dtype=dtype)


def operand(text: str) -> str:
    """The text of a number as an operand of any operator, in parentheses where it needs them."""
    return text if text.isidentifier() or text.isdigit() else f"({text})"


def literal(value: Any, dtype: torch.dtype | None = None) -> Expression:
    """A Python number as Triton reads it."""
    if isinstance(value, float) and not math.isfinite(value):
        return Expression(f'float("{value}")', dtype)
    text = repr(value)
    return Expression(text, dtype, (), UNARY if text.startswith("-") else ATOM)


def wrapped(value: Expression, dtype: torch.dtype) -> Expression:
    """A literal as a dtype holds it: torch takes -1 for 255 where it meets uint8."""
    if value.dtype is not None:
        return value
    if dtype is torch.bool:
        return literal(value.text not in ("0", "False"))
    if dtype.is_signed or not value.text.startswith("-"):
        return value
    return literal(int(value.text) % 256**dtype.itemsize)


def call(
    function: str,
    args: list[Expression],
    dtype: torch.dtype | None,
    *extra: str,
) -> Expression:
    """`function(args, extra)`, pointwise."""
    text = ", ".join([*(a.text for a in args), *extra])
    return Expression(f"{function}({text})", dtype, joint_shape(args))


def infix(
    symbol: str, left: Expression, right: Expression, binds: int, dtype: torch.dtype | None
) -> Expression:
    """`left symbol right`, for an operator that groups to the left."""
    # Comparisons chain in Python, so that both operands of one need parentheses.
    left_binds = binds + 1 if binds == COMPARE else binds
    text = f"{left.within(left_binds)} {symbol} {right.within(binds + 1)}"
    return Expression(text, dtype, joint_shape([left, right]), binds)


def joint_shape(args: list[Expression]) -> tuple[Any, ...]:
    """The shape that expressions broadcast to."""
    shape: tuple[Any, ...] = ()
    for arg in args:
        if not shape:
            shape = arg.shape
        elif arg.shape:
            shape = tuple(b if _is_one(a) else a for a, b in zip(shape, arg.shape, strict=True))
    return shape


def _is_one(size: Any) -> bool:
    return isinstance(size, int) and size == 1


def cast(value: Expression, dtype: torch.dtype) -> Expression:
    """The value in another dtype."""
    if value.dtype is dtype:
        return value
    if value.dtype is None:
        return Expression(f"tl.full([], {value.text}, {TRITON_DTYPES[dtype]})", dtype)
    if dtype is torch.bool:
        return infix("!=", value, literal(0), COMPARE, dtype)
    if not value.shape:
        # A parameter that is 1 may be a constant, which has no methods.
        return Expression(f"tl.cast({value.text}, {TRITON_DTYPES[dtype]})", dtype)
    text = value.within(ATOM)
    if dtype is torch.uint8 and value.dtype.is_floating_point:
        # As in torch, a negative number wraps; Triton's conversion makes it 0.
        text += ".to(tl.int64)"
    return Expression(f"{text}.to({TRITON_DTYPES[dtype]})", dtype, value.shape)
