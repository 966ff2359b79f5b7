"""What is wrong with a kernel's declaration, before any argument is seen."""

from __future__ import annotations

import ast
from types import ModuleType
from typing import TYPE_CHECKING, Any

from helion import exc

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import FunctionType

    from helion.frontend.source import FunctionSource

# Names that generated modules keep for themselves; a global may be the module that is meant.
_RESERVED = {
    "math": "math",
    "operator": "operator",
    "torch": "torch",
    "helion": "helion",
    "hl": "helion.language",
    "triton": "triton",
    "tl": "triton.language",
    "triton_helpers": None,
    "tl_math": None,
    "libdevice": None,
    "_default_launcher": "",
    "_launcher": "",
    "_source_module": "",
    "_NUM_SM": "",
    "_NUM_XCDS": "",
}


def check_names(source: FunctionSource, function: FunctionType) -> None:
    """Whether the kernel leaves reserved names alone.

    Raises:
        NamingConflict: a parameter or local has one, or a global of that name is something else.
    """
    for name, node in _bindings(source.tree):
        if name in _RESERVED:
            raise exc.NamingConflict(source.span(node), name=name)
    for node in ast.walk(ast.Module(source.tree.body, [])):
        if isinstance(node, ast.Name) and _is_taken(node.id, function.__globals__):
            place = f"the global `{node.id}` is not the module of that name"
            raise exc.NamingConflict(source.span(node), name=node.id, place=place)


def check_declaration(source: FunctionSource, function: FunctionType) -> None:
    """Whether the function is all that runs, and its variables are all that it reads.

    Raises:
        DecoratorAfterHelionKernelDecorator: another decorator would wrap the function first.
        ClosuresNotSupported: it captures a variable of a function around it.
    """
    decorators = source.tree.decorator_list
    ours = next((d for d in decorators if _is_ours(d)), None)
    if ours is not None and ours is not decorators[-1]:
        below = decorators[decorators.index(ours) + 1]
        span, text = source.span(below), ast.unparse(below)
        raise exc.DecoratorAfterHelionKernelDecorator(span, decorator=text)
    for name in function.__code__.co_freevars:
        uses = (n for n in ast.walk(source.tree) if isinstance(n, ast.Name) and n.id == name)
        raise exc.ClosuresNotSupported(source.span(next(uses, source.tree)), name=name)


def parameter_span(source: FunctionSource, name: str) -> exc.Span:
    """Where a parameter stands."""
    found = (a for a in ast.walk(source.tree.args) if isinstance(a, ast.arg) and a.arg == name)
    return source.span(next(found, source.tree))


def _bindings(tree: ast.FunctionDef) -> Iterator[tuple[str, ast.AST]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            yield node.arg, node
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node


def _is_taken(name: str, module: Mapping[str, Any]) -> bool:
    """Whether a global has a reserved name without being the module that is meant."""
    if name not in _RESERVED or name not in module:
        return False
    value = module[name]
    return not isinstance(value, ModuleType) or _RESERVED[name] not in (None, value.__name__)


def _is_ours(decorator: ast.expr) -> bool:
    text = ast.unparse(decorator)
    return "kernel" in text or "jit" in text
