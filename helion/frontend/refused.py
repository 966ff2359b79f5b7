"""Python that kernels do not have: what each construct is called, and what to write instead."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from helion import exc

if TYPE_CHECKING:
    from helion.exc import Span

_OUTSIDE = "move it outside of the kernel function"
_BOUNDS = "let the loop's bounds or an `if` around the statements say what runs"
_HOST = "put it into the host part, around nothing but host code, or outside of the kernel"

_CONSTRUCTS: dict[type[ast.AST], tuple[str, str]] = {
    ast.AsyncFor: ("async for", _OUTSIDE),
    ast.AsyncFunctionDef: ("async def", _OUTSIDE),
    ast.AsyncWith: ("async with", _OUTSIDE),
    ast.Await: ("await", _OUTSIDE),
    ast.Break: ("break", _BOUNDS),
    ast.ClassDef: ("class", _OUTSIDE),
    ast.Continue: ("continue", _BOUNDS),
    ast.Delete: ("del", "leave it out: a value that is used no more takes no room"),
    ast.FunctionDef: ("def", "define the function at the top of the module, and call it"),
    ast.Import: ("import", "import at the top of the module"),
    ast.ImportFrom: ("from ... import", "import at the top of the module"),
    ast.Lambda: ("lambda", "define a function at the top of the module, and call it"),
    ast.Match: ("match", "write it as `if` and `elif`"),
    ast.NamedExpr: (":=", "assign the name in a statement of its own"),
    ast.Raise: ("raise", "check the arguments in the host part, before the loop"),
    ast.Set: ("set literal", "use a tuple or a list"),
    ast.SetComp: ("set comprehension", "use a tuple or a list"),
    ast.Try: ("try", _HOST),
    ast.While: ("while", "use `for ... in range(n)`"),
    ast.With: ("with", _HOST),
    ast.Yield: ("yield", "return the tensors that the kernel stores to"),
    ast.YieldFrom: ("yield from", "return the tensors that the kernel stores to"),
}


def not_supported(span: Span, node: ast.AST) -> exc.StatementNotSupported:
    """The error for a construct that kernels do not have."""
    name, advice = _CONSTRUCTS.get(type(node), (type(node).__name__, _OUTSIDE))
    return exc.StatementNotSupported(span, statement=name, advice=advice)
