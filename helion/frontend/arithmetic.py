"""Python's operators and numeric builtins on symbolic numbers, without guessing."""

from __future__ import annotations

import ast
import math
import operator
from typing import TYPE_CHECKING, Any

import torch

from helion.ir.symbols import SYMBOLIC, is_number, kind_of

if TYPE_CHECKING:
    from collections.abc import Callable

BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}

UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
}

COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def minimum(*values: Any) -> Any:
    """`min` of numbers, symbolic ones included."""
    return _fold(torch.sym_min, min, values)


def maximum(*values: Any) -> Any:
    """`max` of numbers, symbolic ones included."""
    return _fold(torch.sym_max, max, values)


def _fold(symbolic: Callable[[Any, Any], Any], plain: Callable[..., Any], values: Any) -> Any:
    if len(values) == 1:
        values = tuple(values[0])
    if not any(isinstance(v, SYMBOLIC) for v in values):
        return plain(values)
    result = values[0]
    for value in values[1:]:
        result = symbolic(result, value)
    return result


def negate(value: Any) -> Any:
    """`not value`."""
    if isinstance(value, torch.SymBool):
        return torch.sym_not(value)
    return value == 0 if isinstance(value, SYMBOLIC) else not value


def cdiv(a: Any, b: Any) -> Any:
    """Ceiling division of ints, symbolic ones included."""
    return (a + b - 1) // b


# What these return for a symbolic argument stays symbolic, instead of the answer for its hint.
BUILTINS: dict[Any, Callable[..., Any]] = {
    min: minimum,
    max: maximum,
    abs: abs,
    int: torch.sym_int,
    float: torch.sym_float,
    math.sqrt: torch.sym_sqrt if hasattr(torch, "sym_sqrt") else math.sqrt,
}


def replaces(function: Any, args: Any) -> Callable[..., Any] | None:
    """What to call instead of `function`, if it would look at a symbolic number's value."""
    if not any(isinstance(a, SYMBOLIC) for a in args):
        return None
    return BUILTINS.get(function)


def result_type(a: Any, b: Any) -> type:
    """The Python type of arithmetic between two numbers."""
    assert is_number(a)
    assert is_number(b)
    return float if float in (kind_of(a), kind_of(b)) else int
