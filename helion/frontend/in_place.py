"""Operations in place on device values: `acc += v`, `acc.add_(v)`.

Nodes of a graph do not change, so the variable is bound anew, to a value of the dtype and shape
that it had. Other names of the old value keep it.
"""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any

import torch

from helion.frontend.statements import assigned_names

if TYPE_CHECKING:
    from collections.abc import Callable

OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.Pow: operator.ipow,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
}

_CONTAINER_METHODS = frozenset(
    {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "setdefault", "update"}
)


def changed_tensor(function: Any) -> torch.Tensor | None:
    """The tensor that a method changes, if it is such a method."""
    owner = getattr(function, "__self__", None)
    return owner if isinstance(owner, torch.Tensor) and _changes(function.__name__) else None


def _changes(method: str) -> bool:
    return method.endswith("_") and not method.endswith("__")


def changed_variable(node: ast.AST) -> str | None:
    """The variable that `x.add_(y)`, or `x.mul_(y).add_(z)`, changes."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if not _changes(node.func.attr):
            return None
        node = node.func.value
        if isinstance(node, ast.Name):
            return node.id
    return None


def changed_names(body: list[ast.stmt]) -> list[str]:
    """The names that statements may bind, or change in place."""
    names = dict.fromkeys(assigned_names(body))
    nodes = [n for statement in body for n in ast.walk(statement)]
    calls = (changed_variable(n) or _changed_container(n) for n in nodes)
    return list(names | {name: None for name in calls if name is not None})


def _changed_container(node: ast.AST) -> str | None:
    """The variable that `acc[0] = y`, or `acc.append(y)`, changes."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        inner: ast.AST = node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr not in _CONTAINER_METHODS:
            return None
        inner = node.func.value
    else:
        return None
    while isinstance(inner, ast.Subscript):
        inner = inner.value
    return inner.id if isinstance(inner, ast.Name) else None
