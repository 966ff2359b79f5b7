"""Host statements around the device loops, interpreted on fake tensors to learn types."""

from __future__ import annotations

import ast
import copy
import importlib
import itertools
from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.frontend.evaluate import Unwinding
from helion.frontend.host_values import HostEvaluator
from helion.frontend.statements import AuthorsError, ReturnValue, assigned_names
from helion.frontend.unknown import Unknown, UnknownNumber, either
from helion.ir.symbols import SYMBOLIC, is_number, kind_of
from helion.language._op import Op

if TYPE_CHECKING:
    from collections.abc import Callable

    from helion.frontend.compilation import Compilation
    from helion.frontend.scope import Scope
    from helion.frontend.source import FunctionSource


class _EndOfLoop(Unwinding):
    """`break` in a host loop."""


class _NextIteration(Unwinding):
    """`continue` in a host loop."""


_LEAVING = (ReturnValue, _EndOfLoop, _NextIteration)


class HostRunner(HostEvaluator):
    """Interprets host statements; a top-level device loop is handed to `on_loop`."""

    def __init__(
        self,
        source: FunctionSource,
        scope: Scope,
        compilation: Compilation,
        on_loop: Callable[[ast.For], None],
    ) -> None:
        super().__init__(source, scope, compilation)
        self.on_loop = on_loop
        self.around: list[ast.stmt] = []

    def exec_For(self, node: ast.For) -> None:
        """A device loop at the top level, or a host loop over a known sequence."""
        if self.is_device_loop(node.iter):
            if self.around:
                raise self._nested_grid_loop(node, self.around[-1])
            self.on_loop(node)
            self.after_loops = True
            return
        items = self.evaluate(node.iter)
        if self.is_unknown(items):
            self._forget(node)
            return
        self._nested(node, lambda: self._each(node, items))

    def _each(self, node: ast.For, items: Any) -> None:
        for item in self.items_of(items, node.iter):
            self.assign(node.target, item)
            try:
                self.run(node.body)
            except _NextIteration:
                continue
            except _EndOfLoop:
                return
        self.run(node.orelse)

    def exec_Break(self, node: ast.Break) -> None:
        """The end of the loop around it."""
        raise _EndOfLoop

    def exec_Continue(self, node: ast.Continue) -> None:
        """The next iteration of the loop around it."""
        raise _NextIteration

    def exec_Delete(self, node: ast.Delete) -> None:
        """A name that exists no more."""
        for target in node.targets:
            if isinstance(target, ast.Name):
                self.scope.host.pop(target.id, None)

    def is_device_loop(self, node: ast.expr) -> bool:
        """Whether a `for` iterates over `hl.tile` or its like."""
        if not isinstance(node, ast.Call):
            return False
        function = self.evaluate(node.func)
        return isinstance(function, Op) and function.is_loop

    def exec_If(self, node: ast.If) -> None:
        """The live branch, or both where only running can tell."""
        condition = self.evaluate(node.test)
        if isinstance(condition, (*SYMBOLIC, torch.Tensor, Unknown)):
            self._nested(node, lambda: self._both(node))
        else:
            self._nested(node, lambda: self.run(node.body if condition else node.orelse))

    def _both(self, node: ast.If) -> None:
        before = dict(self.scope.host)
        after: list[dict[str, Any]] = []
        for body in (node.body, node.orelse):
            self.scope.host.clear()
            self.scope.host.update(copy.copy(before))
            try:
                self.run(body)
            except (*_LEAVING, AuthorsError, exc.TorchOpTracingError):
                continue
            after.append(dict(self.scope.host))
        self.scope.host.clear()
        self.scope.host.update(after[0] if after else before)
        for name in assigned_names([*node.body, *node.orelse]):
            values = [a.get(name, Unknown(name)) for a in after]
            if len(values) == 2:
                self.bind(name, either(*values), node)

    def exec_Assert(self, node: ast.Assert) -> None:
        """An assertion; what it says of sizes is checked when the host code runs."""
        test = self.evaluate(node.test)
        if isinstance(test, (torch.SymBool, Unknown)):
            self._learn(node.test)
        if not isinstance(test, (*SYMBOLIC, torch.Tensor, Unknown)) and not test:
            message = [] if node.msg is None else [self.evaluate(node.msg)]
            raise AuthorsError(AssertionError(*message), self.source.span(node))

    def _learn(self, test: ast.expr) -> None:
        """Take sizes that an assertion compares for one and the same."""
        if isinstance(test, ast.BoolOp):
            parts = test.values
            if isinstance(test.op, ast.Or):  # `bias is None or ...` says what is left to hold
                parts = [part for part in parts if self.evaluate(part) is not False]
            for part in parts if isinstance(test.op, ast.And) or len(parts) == 1 else ():
                self._learn(part)
        if isinstance(test, ast.Compare) and all(isinstance(op, ast.Eq) for op in test.ops):
            values = [self.evaluate(v) for v in (test.left, *test.comparators)]
            for left, right in itertools.pairwise(values):
                self._equate(left, right)

    def _equate(self, left: Any, right: Any) -> None:
        if isinstance(left, (tuple, list)) and isinstance(right, (tuple, list)):
            for pair in zip(left, right, strict=False):
                self._equate(*pair)
        else:
            self.compilation.unify(left, right)

    def exec_Return(self, node: ast.Return) -> None:
        """The end of the host part."""
        raise ReturnValue(None if node.value is None else self.evaluate(node.value))

    def exec_Raise(self, node: ast.Raise) -> None:
        """The author's own refusal of these arguments."""
        error = self.evaluate(node.exc) if node.exc else RuntimeError("no active exception")
        error = error if isinstance(error, BaseException) else error()
        if node.cause is not None:
            error.__cause__ = self.evaluate(node.cause)
        raise AuthorsError(error, self.source.span(node))

    def exec_With(self, node: ast.With) -> None:
        """The body; context managers act when the host code runs."""
        for item in node.items:
            value = self.evaluate(item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value)
        self._nested(node, lambda: self.run(node.body))

    def exec_Try(self, node: ast.Try) -> None:
        """The body; and the handler of what it raised."""
        self._nested(node, lambda: self._attempt(node))

    def _attempt(self, node: ast.Try) -> None:
        try:
            self.run(node.body)
        except (AuthorsError, exc.TorchOpTracingError) as error:
            handler = self._handler(node, error.__cause__)
            if handler is None:
                raise
            if handler.name is not None:
                self.bind(handler.name, error.__cause__, handler)
            self.run([*handler.body, *node.finalbody])
        else:
            self.run([*node.orelse, *node.finalbody])

    def _handler(self, node: ast.Try, error: BaseException | None) -> ast.ExceptHandler | None:
        for handler in node.handlers:
            kinds = BaseException if handler.type is None else self.evaluate(handler.type)
            if isinstance(error, kinds):
                return handler
        return None

    def exec_While(self, node: ast.While) -> None:
        """What a host `while` binds is known only when it runs."""
        self._forget(node)

    def exec_Import(self, node: ast.Import) -> None:
        """Modules are what they are."""
        for alias in node.names:
            module = self.call(importlib.import_module, (alias.name,), {}, node)
            top = alias.name.partition(".")[0]
            if alias.asname is None:
                module = importlib.import_module(top)
            self.scope.host[alias.asname or top] = module

    def exec_ImportFrom(self, node: ast.ImportFrom) -> None:
        """Parts of a module."""
        module = self.call(importlib.import_module, (node.module or "",), {}, node)
        for alias in node.names:
            value = self.call(getattr, (module, alias.name), {}, node)
            self.scope.host[alias.asname or alias.name] = value

    def _forget(self, node: ast.For | ast.While) -> None:
        """What a loop binds that runs an unknown number of times."""
        for inner in ast.walk(node):
            if isinstance(inner, ast.For) and self.is_device_loop(inner.iter):
                raise self._nested_grid_loop(inner, node)
        for name in assigned_names([*node.body, *node.orelse]):
            old = self.scope.host.get(name)
            value: Any = UnknownNumber(kind_of(old), name) if is_number(old) else Unknown(name)
            self.bind(name, value, node.body[0])

    def _nested(self, node: ast.stmt, action: Callable[[], None]) -> None:
        self.around.append(node)
        try:
            action()
        finally:
            self.around.pop()

    def _nested_grid_loop(self, loop: ast.For, around: ast.stmt) -> exc.NestedGridLoop:
        statement = type(around).__name__.lower()
        error = exc.NestedGridLoop(self.source.span(loop), statement=statement)
        return error.with_related(exc.Related(self.source.span(around), "inside of this"))
