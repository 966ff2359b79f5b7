"""Loops and conditions: Python that would treat a block as true, or count in Python ints."""

from __future__ import annotations

import ast
import functools
import operator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import triton.language as tl

from helion.runtime.interpreter.upstream import interpreter
from helion.runtime.interpreter.values import new_scalar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from helion.runtime.interpreter.upstream import Function

_plain_patch = interpreter._patch_lang


def patch_language(fn: Function) -> Any:
    """Turn `triton.language` into the interpreter's, for one launch."""
    if not tl.core.is_builtin(tl.load):
        return interpreter._LangPatchScope()  # inside of a launch nothing is left to do
    scope = _plain_patch(SimpleNamespace(__globals__={"tl": tl, "core": tl.core}))
    for module in (tl, tl.core):
        scope.set_attr(module, "range", _range)
    scope.set_attr(tl.tensor, "__index__", lambda self: operator.index(self.handle.data.item()))
    return scope


def _range(start: Any, end: Any = None, step: Any = 1, **_: Any) -> Iterator[Any]:
    """The loop variable is a scalar of the bounds' type, as in compiled code, and no Python int."""
    bounds = (0, start, step) if end is None else (start, end, 1 if step is None else step)
    semantic = interpreter.interpreter_semantic
    low, high, by = (semantic.to_tensor(bound) for bound in bounds)
    dtype = functools.reduce(semantic.integer_promote_impl, (x.dtype for x in (low, high, by)))
    for value in range(*map(operator.index, (low, high, by))):
        yield new_scalar(value, dtype)


def _condition(value: Any) -> Any:
    if isinstance(value, tl.tensor) and value.handle.data.size != 1:
        raise TypeError(f"a condition must be a scalar, not a block of shape {value.shape}")
    return value


def _not(value: Any) -> Any:
    if isinstance(value, tl.tensor):
        return interpreter.interpreter_semantic.not_(value)
    return not value


def _logical(every: bool, first: Any, *rest: Function) -> Any:
    """`and` (`every`) or `or`: scalars and blocks of the kernel are joined, never skipped."""
    semantic = interpreter.interpreter_semantic
    join = semantic.logical_and if every else semantic.logical_or
    for later in rest:
        if isinstance(first, tl.tensor):
            first = join(first, semantic.to_tensor(later()))
        elif bool(first) != every:
            return first
        else:
            first = later()
    return first


# The interpreter copies the names of its own module into the globals of each kernel.
IN_KERNELS: dict[str, Function] = {
    f"_helion{function.__name__}": function for function in (_condition, _logical, _not, _range)
}


def _name(function: Function) -> ast.Name:
    return ast.Name(f"_helion{function.__name__}", ast.Load())


def _call(function: Function, *args: ast.expr) -> ast.Call:
    return ast.Call(_name(function), list(args), [])


class Transformer(interpreter.ASTTransformer):
    """Rewrites the Python that would silently treat a block as true, or count in Python ints."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """Only some versions visit the value; none may visit it twice."""
        value, node.value = node.value, ast.Constant(None)
        call = super().visit_Assign(node).value
        call.args[0] = self.visit(value)
        return node

    def _guard(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        node.test = _call(_condition, node.test)
        return node

    visit_If = visit_While = visit_IfExp = _guard

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """`and` and `or`."""
        self.generic_visit(node)
        none = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        later = [ast.Lambda(args=none, body=value) for value in node.values[1:]]
        every = ast.Constant(isinstance(node.op, ast.And))
        return ast.copy_location(_call(_logical, every, node.values[0], *later), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """`not`."""
        self.generic_visit(node)
        is_not = isinstance(node.op, ast.Not)
        return ast.copy_location(_call(_not, node.operand), node) if is_not else node

    def visit_For(self, node: ast.For) -> ast.AST:
        """`range`."""
        self.generic_visit(node)
        loop = node.iter
        if (
            isinstance(loop, ast.Call)
            and isinstance(loop.func, ast.Name)
            and loop.func.id == "range"
        ):
            loop.func = _name(_range)
        return node
