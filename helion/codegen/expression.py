"""Triton expressions under construction: text that knows its dtype and how tightly it binds."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

# Python's precedence, loosest first; a higher number binds tighter.
LAMBDA, OR, AND, NOT, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, UNARY, POWER, ATOM = (
    range(14)
)


@dataclasses.dataclass(frozen=True)
class Expression:
    """A Triton expression.

    Attributes:
        text: the expression.
        dtype: its dtype in Triton; None for a literal, which takes the dtype of what it meets.
        binds: how tightly its outermost operator binds.
    """

    text: str
    dtype: torch.dtype | None = None
    binds: int = ATOM

    def within(self, binds: int) -> str:
        """The text as an operand of an operator, in parentheses where it needs them."""
        return self.text if self.binds >= binds else f"({self.text})"


def literal(value: Any) -> Expression:
    """A Python number as Triton reads it."""
    if isinstance(value, float) and not math.isfinite(value):
        return Expression(f'float("{value}")')
    text = repr(value)
    return Expression(text, None, UNARY if text.startswith("-") else ATOM)


def call(function: str, *args: Expression | str, dtype: torch.dtype | None = None) -> Expression:
    """`function(args)`."""
    texts = (a if isinstance(a, str) else a.text for a in args)
    return Expression(f"{function}({', '.join(texts)})", dtype)


def binary(
    operator: str, left: Expression, right: Expression, binds: int, dtype: torch.dtype | None
) -> Expression:
    """`left operator right`, for an operator that groups to the left."""
    # Comparisons chain in Python, so that both operands of one need parentheses.
    left_binds = binds + 1 if binds == COMPARE else binds
    return Expression(
        f"{left.within(left_binds)} {operator} {right.within(binds + 1)}", dtype, binds
    )
