"""Host code: statements around the device loops, interpreted on fake tensors to learn types."""

from __future__ import annotations

import ast
import copy
import itertools
import operator
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from helion import exc
from helion.frontend import arithmetic
from helion.frontend.context import CallContext
from helion.frontend.device import is_authors, is_kernel, is_torch
from helion.frontend.host_calls import warnings_of
from helion.frontend.statements import AuthorsError, ReturnValue, Runner, assigned_names
from helion.frontend.unknown import Unknown, UnknownNumber, either
from helion.ir.symbols import SYMBOLIC, HostNumber, is_number, kind_of
from helion.language._op import Op

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from helion.frontend.compilation import Compilation
    from helion.frontend.scope import Scope
    from helion.frontend.source import FunctionSource


class HostRunner(Runner):
    """Interprets host statements; a top-level device loop is handed to `on_loop`."""

    def __init__(
        self,
        source: FunctionSource,
        scope: Scope,
        compilation: Compilation,
        on_loop: Callable[[ast.For], None],
    ) -> None:
        super().__init__(source, scope)
        self.compilation = compilation
        self.on_loop = on_loop
        self.around: list[ast.stmt] = []
        self.after_loops = False
        self.op_calls: dict[ast.Call, tuple[Op, Any]] = {}

    # -- names -----------------------------------------------------------------------------------

    def bind(self, name: str, value: Any, node: ast.AST) -> None:
        """Bind a host variable; a number that only running can tell is known by its name."""
        symbols = self.compilation.symbols
        if isinstance(value, SYMBOLIC) and not symbols.has_origins(value):
            value = UnknownNumber(kind_of(value), name)
        if isinstance(value, UnknownNumber):
            value = self.compilation.symbols.number(value.kind, HostNumber(name, value.kind))
        self.scope.host[name] = value
        self.types[node] = value

    def eval_Name(self, node: ast.Name) -> Any:
        """A variable; one that device code bound does not exist here."""
        if node.id in self.scope.device and not {node.id} & {*self.scope.host, *self.inner}:
            raise exc.CannotReadDeviceVariableOnHost(self.source.span(node), name=node.id)
        return super().eval_Name(node)

    def read_host(self, value: Any, text: str) -> Any:
        """Module globals that are tensors are fake here too."""
        if isinstance(value, torch.Tensor) and not isinstance(value, FakeTensor):
            value = self.compilation.fake(value, text)
        return value

    def set_item(self, node: ast.Subscript, value: Any) -> None:
        """`target[index] = value` changes contents, not types."""
        target = self.evaluate(node.value)
        if isinstance(target, (list, dict)):
            target[self.evaluate(node.slice)] = value

    def set_attribute(self, node: ast.Attribute, value: Any) -> None:
        """`target.name = value`: done when the host code runs."""
        del value
        self.evaluate(node.value)

    # -- expressions -----------------------------------------------------------------------------

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        """Plain Python on fake tensors and containers."""
        value = self.evaluate(node.value)
        if isinstance(node.slice, ast.Tuple):
            index: Any = tuple(self.evaluate(i) for i in node.slice.elts)
        else:
            index = self.evaluate(node.slice)
        return self.call(operator.getitem, (value, index), {}, node)

    def attribute_of(self, value: Any, node: ast.Attribute) -> Any:
        """An attribute of a plain Python object."""
        if isinstance(value, Unknown):
            return Unknown(ast.unparse(node))
        result = super().attribute_of(value, node)
        if isinstance(value, FakeTensor):
            self.compilation.imports.layouts.note(getattr, (value,), {}, result)
        return result

    def eval_IfExp(self, node: ast.IfExp) -> Any:
        """`a if condition else b`."""
        condition = self.evaluate(node.test)
        if not isinstance(condition, (*SYMBOLIC, torch.Tensor, Unknown)):
            return self.evaluate(node.body if condition else node.orelse)
        a, b = self.evaluate(node.body), self.evaluate(node.orelse)
        return either(a, b)

    def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any, node: ast.AST
    ) -> Any:
        """Call a host function on fake tensors; what needed a guess is unknown."""
        if isinstance(function, Op):
            return self._call_op(function, args, kwargs, node)
        if any(isinstance(a, Unknown) for a in (*args, *kwargs.values())):
            return Unknown(ast.unparse(node))
        if function is print:
            return None
        if is_kernel(function):
            name = getattr(function, "name", "")
            raise exc.NestedKernelCallsNotSupported(self.source.span(node), name=name)
        function = arithmetic.replaces(function, args) or function
        env = self.compilation.symbols.shape_env
        guesses = env.guesses
        try:
            with self.compilation.symbols.fake_mode:
                value = function(*args, **kwargs)
        except exc.Base:
            raise
        except Exception as error:
            return self._failed(error, function, args, node)
        self._warn(function, args, value, node)
        self.compilation.imports.layouts.note(function, args, kwargs, value)
        if env.guesses != guesses and is_number(value):
            return UnknownNumber(kind_of(value), ast.unparse(node))
        return value

    def _warn(
        self, function: Callable[..., Any], args: Sequence[Any], value: Any, node: ast.AST
    ) -> None:
        if self.after_loops:
            # What becomes of the results there is the usual end of a kernel.
            return
        operands = [getattr(function, "__self__", None), *args]
        text = ast.unparse(node.func if isinstance(node, ast.Call) else node)
        span, device = self.source.span(node), self.compilation.device
        for warning in warnings_of(function, operands, value, device, span, text):
            self.compilation.options.warn(warning)

    def _failed(
        self, error: Exception, function: Callable[..., Any], args: Sequence[Any], node: ast.AST
    ) -> Any:
        # Data-dependent: torch names the exception, not its module, alike in all versions.
        if type(error).__name__ in ("GuardOnDataDependentSymNode", "DataDependentOutputException"):
            kind = {"item": None, "__int__": int, "__float__": float}.get(
                getattr(function, "__name__", "")
            )
            text = ast.unparse(node)
            return Unknown(text) if kind is None else UnknownNumber(kind, text)
        span = self.source.span(node)
        on_tensors = any(isinstance(a, torch.Tensor) for a in args)
        if is_torch(function) or (on_tensors and not is_authors(function)):
            raise exc.TorchOpTracingError(span, original=error) from error
        raise AuthorsError(error, span)

    def _call_op(self, op: Op, args: tuple[Any, ...], kwargs: Any, node: ast.AST) -> Any:
        if op.is_loop:
            raise exc.LoopFunctionNotInFor(self.source.span(node), api=f"hl.{op.name}")
        if op.host_rule_fn is None:
            raise exc.DeviceAPIOnHost(self.source.span(node), api=f"hl.{op.name}")
        bound = op.bind(self.source.span(node), args, kwargs)
        context = CallContext(self.compilation, self.source, node, op)
        value = op.host_rule_fn(context, *bound.args, **bound.kwargs)
        assert isinstance(node, ast.Call)
        self.op_calls[node] = (op, value)
        return value

    # -- statements ------------------------------------------------------------------------------

    def exec_For(self, node: ast.For) -> None:
        """A device loop at the top level, or a host loop over a known sequence."""
        if self.is_device_loop(node.iter):
            if self.around:
                raise self._nested_grid_loop(node, self.around[-1])
            self.on_loop(node)
            self.after_loops = True
            return
        items = self.evaluate(node.iter)
        if isinstance(items, Unknown):
            self._forget(node)
            return
        self._nested(node, lambda: self._each(node, items))

    def _each(self, node: ast.For, items: Any) -> None:
        for item in items:
            self.assign(node.target, item)
            self.run(node.body)
        self.run(node.orelse)

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
            except (ReturnValue, AuthorsError, exc.TorchOpTracingError):
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
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            for part in test.values:
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
            self.scope.host[alias.asname or alias.name.partition(".")[0]] = __import__(alias.name)

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
