"""Statements that mean the same on the host and on the device."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from helion import exc
from helion.frontend import arithmetic
from helion.frontend.evaluate import Evaluator, Unwinding
from helion.frontend.refused import not_supported
from helion.frontend.source import parse_text
from helion.ir.describe import type_name
from helion.ir.tiles import TileAxis

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class ReturnValue(Unwinding):
    """Control flow of the interpreter: the function returns this value."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class AuthorsError(Unwinding):
    """The author's host code raised: this leaves the compiler as it is, and is no error of ours."""

    def __init__(self, original: BaseException, span: exc.Span) -> None:
        super().__init__()
        self.__cause__ = original
        self.span = span

    def unwrap(self) -> BaseException:
        """The author's own exception; where notes can be added, one says where it was raised."""
        original = self.__cause__
        assert original is not None
        if hasattr(original, "add_note"):  # Python 3.11
            original.add_note(exc.excerpt(self.span))  # pyright: ignore[reportAttributeAccessIssue]
        return original


class Runner(Evaluator):
    """Runs statements; subclasses say what binding a name and branching mean."""

    def run(self, body: list[ast.stmt]) -> None:
        """Run statements in order."""
        for statement in body:
            self.execute(statement)

    def execute(self, node: ast.stmt) -> None:
        """Run one statement; an error without a place gets the statement's."""
        method: Callable[[Any], None] | None = getattr(self, f"exec_{type(node).__name__}", None)
        if method is None:
            raise not_supported(self.source.span(node), node)
        try:
            method(node)
        except exc.Base as error:
            raise error.with_span(self.source.span(node)) from error.__cause__
        except Unwinding:
            raise
        except Exception as error:
            raise exc.InternalError(self.source.span(node), original=error) from error

    def exec_Global(self, node: ast.Global) -> None:
        """A kernel changes no globals, and declares none to read them."""
        raise exc.GlobalMutation(self.source.span(node), name=node.names[0])

    def exec_Nonlocal(self, node: ast.Nonlocal) -> None:
        """A function called in a kernel changes nothing that it captured."""
        raise exc.ClosureMutation(self.source.span(node), name=node.names[0])

    def bind(self, name: str, value: Any, node: ast.AST) -> None:
        """Bind a variable."""
        raise AssertionError("each side binds names its own way")

    def set_item(self, node: ast.Subscript, value: Any) -> None:
        """`target[index] = value`."""
        raise AssertionError("each side stores items its own way")

    def set_attribute(self, node: ast.Attribute, value: Any) -> None:
        """`target.name = value`."""
        raise exc.InvalidAssignment(self.source.span(node), target=ast.unparse(node))

    def assign(self, target: ast.expr, value: Any) -> None:
        """Bind a target: a name, a subscript, an attribute, or a pattern of these."""
        if isinstance(target, ast.Name):
            self.bind(target.id, value, target)
        elif isinstance(target, ast.Subscript):
            self.set_item(target, value)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(target, value)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value)
        else:
            raise exc.InvalidAssignment(self.source.span(target), target=ast.unparse(target))

    def _unpack(self, target: ast.Tuple | ast.List, value: Any) -> None:
        self.check_starred(target.elts)
        items = self.unpacked(value, target)
        starred = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
        if starred:
            at, after = starred[0], len(target.elts) - starred[0] - 1
            items[at : len(items) - after] = [items[at : len(items) - after]]
        if len(items) != len(target.elts):
            span = self.source.span(target)
            raise exc.FailedToUnpackTupleAssign(
                span, expected=len(target.elts), got=f"{len(items)} values"
            )
        for part, item in zip(target.elts, items, strict=True):
            self.assign(part.value if isinstance(part, ast.Starred) else part, item)

    def unpacked(self, value: Any, target: ast.Tuple | ast.List) -> list[Any]:
        """The items of a value that is unpacked."""
        if isinstance(value, TileAxis):
            raise exc.FailedToUnpackTile(self.source.span(target))
        try:
            return self.items_of(value, target)
        except exc.TypeInferenceError:
            got = f"a value of type `{type_name(value)}`"
            raise exc.FailedToUnpackTupleAssign(self.source.span(target), got=got) from None

    def exec_Assign(self, node: ast.Assign) -> None:
        """`target = value`."""
        value = self.evaluate(node.value)
        for target in node.targets:
            self.assign(target, value)

    def exec_AnnAssign(self, node: ast.AnnAssign) -> None:
        """`target: type = value`; the annotation says nothing that the value does not."""
        if node.value is not None:
            self.assign(node.target, self.evaluate(node.value))

    def exec_AugAssign(self, node: ast.AugAssign) -> None:
        """`target += value`: load, operation, store."""
        old = self.evaluate(_as_load(node.target))
        value = self.evaluate(node.value)
        self.assign(node.target, self.augment(old, value, node))

    def augment(self, old: Any, value: Any, node: ast.AugAssign) -> Any:
        """What `old += value` makes of `old`."""
        return self.call(arithmetic.BINARY[type(node.op)], (old, value), {}, node)

    def exec_Expr(self, node: ast.Expr) -> None:
        """An expression for its effect; a string is documentation."""
        if not isinstance(node.value, ast.Constant):
            self.evaluate(node.value)

    def exec_Pass(self, node: ast.Pass) -> None:
        """Nothing."""


def _as_load(target: ast.expr) -> ast.expr:
    """The same expression, read instead of written."""
    tree = parse_text(ast.unparse(target), "eval").body
    for part in ast.walk(tree):
        ast.copy_location(part, target)
    return ast.fix_missing_locations(tree)


def last_binding(name: str, body: Sequence[ast.stmt], before: int | None = None) -> ast.Name | None:
    """The last place among statements, in lines before a given one, that binds a name."""
    found = [
        node
        for statement in body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
        and node.id == name
        and isinstance(node.ctx, ast.Store)
        and (before is None or node.lineno < before)
    ]
    return max(found, key=lambda node: (node.lineno, node.col_offset), default=None)


def reads_first(name: str, body: Sequence[ast.stmt]) -> bool:
    """Whether the first statement that mentions a name also reads it."""
    for statement in body:
        uses = [n for n in ast.walk(statement) if isinstance(n, ast.Name) and n.id == name]
        if uses:
            return isinstance(statement, ast.AugAssign) or any(
                isinstance(n.ctx, ast.Load) for n in uses
            )
    return False


def assigned_names(body: list[ast.stmt]) -> list[str]:
    """The names that statements may bind, in order of their first binding."""
    names: dict[str, None] = {}
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names[node.id] = None
    return list(names)
