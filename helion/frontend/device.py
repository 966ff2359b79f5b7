"""Device code: expressions and calls inside a top-level loop, recorded into a device graph."""

from __future__ import annotations

import ast
import operator
from types import FunctionType
from typing import TYPE_CHECKING, Any, Callable

import torch
from torch.utils._pytree import tree_map

from helion import exc
from helion.frontend.evaluate import Evaluator
from helion.ir.symbols import is_number
from helion.ir.tiles import HostTensor, TileAxis
from helion.language._op import Op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.exc import Span
    from helion.frontend.scope import HostImports, Scope
    from helion.frontend.source import FunctionSource
    from helion.frontend.trace import Recorder


class DeviceEvaluator(Evaluator):
    """Evaluates device expressions; operations of torch and of the language become nodes."""

    def __init__(
        self, source: FunctionSource, scope: Scope, imports: HostImports, recorder: Recorder
    ) -> None:
        super().__init__(source, scope, imports)
        self.recorder = recorder

    def read_host(self, value: Any, text: str) -> Any:
        """A host tensor can be loaded from; a host number becomes a kernel parameter."""
        return self.imports.bring(value, text)

    def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any, node: ast.AST
    ) -> Any:
        """Call an operation of the language, a torch function, or plain Python."""
        self.recorder.span = self.source.span(node)
        if isinstance(function, Op):
            return self.call_op(function, args, kwargs, node)
        if all(is_number(a) for a in args) and not kwargs:
            return function(*args)
        return self._call_torch(function, args, kwargs, node)

    def call_op(self, op: Op, args: tuple[Any, ...], kwargs: Any, node: ast.AST) -> Any:
        """Apply an operation's type rule; a wrong call is the author's error, not ours."""
        try:
            bound = op.signature.bind(*args, **kwargs)
        except TypeError as error:
            span = self.source.span(node)
            raise exc.InvalidAPIUsage(span, detail=f"`hl.{op.name}`: {error}") from error
        bound.apply_defaults()
        assert op.type_rule_fn is not None
        return op.type_rule_fn(self.context(op, node), *bound.args, **bound.kwargs)

    def context(self, op: Op, node: ast.AST) -> Any:
        """What the type rule of one call may ask."""
        return CallContext(self, op, node)

    def _call_torch(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any, node: ast.AST
    ) -> Any:
        span = self.source.span(node)

        def convert(value: Any) -> Any:
            if isinstance(value, HostTensor):
                raise exc.HostTensorDirectUsage(span, name=value.text)
            if isinstance(value, TileAxis):
                return value.size
            return value

        args, kwargs = tree_map(convert, (args, kwargs))
        try:
            with self.recorder.symbols.fake_mode, self.recorder:
                return function(*args, **kwargs)
        except exc.Base:
            raise
        except RuntimeError as error:
            shapes = [list(a.shape) for a in args if isinstance(a, torch.Tensor)]
            if "broadcast" in str(error) and len(shapes) > 1:
                raise exc.ShapeMismatch(span, left=shapes[0], right=shapes[1]) from error
            detail = f"{type(error).__name__}: {error}"
            raise exc.TorchOpTracingError(span, detail=detail) from error


class CallContext:
    """One call of an operation, as its type rule sees it."""

    def __init__(self, evaluator: DeviceEvaluator, op: Op, node: ast.AST) -> None:
        self._evaluator = evaluator
        self._op = op
        self._node = node
        self.symbols = evaluator.recorder.symbols

    def span(self, argument: str | None = None) -> Span:
        """The source of one argument, or of the whole call."""
        node = self._node
        if argument is not None and isinstance(node, ast.Call):
            node = _argument(node, argument, list(self._op.signature.parameters)) or node
        return self._evaluator.source.span(node)

    def record(self, op: Op, args: Sequence[Any], value: Any) -> Any:
        """Append a node that computes `value`."""
        self._evaluator.recorder.record(op, args, value)
        return value

    def fake(self, sizes: Sequence[Any], dtype: torch.dtype) -> torch.Tensor:
        """A new fake tensor."""
        with self.symbols.fake_mode:
            return torch.empty(list(sizes), dtype=dtype)

    def is_device(self, value: object) -> bool:
        """Whether device code computed a value."""
        return self._evaluator.recorder.is_device(value)


def _argument(call: ast.Call, name: str, parameters: list[str]) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    position = parameters.index(name)
    return call.args[position] if position < len(call.args) else None


def is_traceable(function: object) -> bool:
    """Whether a function is the author's own, to be interpreted rather than called."""
    return (
        isinstance(function, FunctionType)
        and not function.__module__.startswith("torch")
        and function is not operator.index
    )
