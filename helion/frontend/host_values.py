"""Host expressions, interpreted on fake tensors to learn types."""

from __future__ import annotations

import ast
import operator
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_map

from helion import exc
from helion.frontend import arithmetic
from helion.frontend.context import CallContext
from helion.frontend.device import is_authors, is_kernel, is_torch
from helion.frontend.host_calls import warnings_of
from helion.frontend.statements import AuthorsError, Runner
from helion.frontend.unknown import Unknown, UnknownNumber, either
from helion.ir.symbols import SYMBOLIC, HostNumber, is_number, kind_of, known_int
from helion.language._op import Op

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from helion.frontend.compilation import Compilation
    from helion.frontend.scope import Scope
    from helion.frontend.source import FunctionSource

# Of a list made of a tensor's elements; a longer one is a value that only running can tell.
_MOST_ITEMS = 64
_GIVE_INTS = frozenset(
    {"len", "next_power_of_2", "cdiv", "ceil", "floor", "trunc", "isqrt", "gcd", "lcm", "round"}
)


class HostEvaluator(Runner):
    """Evaluates host expressions."""

    def __init__(self, source: FunctionSource, scope: Scope, compilation: Compilation) -> None:
        super().__init__(source, scope)
        self.compilation = compilation
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

    def unpacked(self, value: Any, target: ast.Tuple | ast.List) -> list[Any]:
        """The items of a value that is unpacked; as many as there are targets, if none can tell."""
        if self.is_unknown(value) and not any(isinstance(t, ast.Starred) for t in target.elts):
            text = ast.unparse(target)
            return [Unknown(f"{text} = ...") for _ in target.elts]
        return super().unpacked(value, target)

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

    def eval_ListComp(self, node: ast.ListComp | ast.GeneratorExp) -> Any:
        """`[value for ...]`, if it is known how often."""
        if self.is_unknown(self.evaluate(node.generators[0].iter)):
            return Unknown(ast.unparse(node))
        return super().eval_ListComp(node)

    def eval_DictComp(self, node: ast.DictComp) -> Any:
        """`{key: value for ...}`, if it is known how often."""
        if self.is_unknown(self.evaluate(node.generators[0].iter)):
            return Unknown(ast.unparse(node))
        return super().eval_DictComp(node)

    def is_unknown(self, items: Any) -> bool:
        """Whether only running can tell how many items there are."""
        if isinstance(items, FakeTensor):
            return items.dim() > 0 and known_int(items.shape[0]) is None
        return isinstance(items, Unknown)

    def eval_Lambda(self, node: ast.Lambda) -> Any:
        """A function for the host to call, of the values that are known by now."""
        code = compile(ast.Expression(node), self.source.filename, "eval")
        return eval(code, {**self.scope.module, **self.scope.host, **self.inner})

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
        if function in (print, breakpoint):
            return None
        result = getattr(function, "result_type", None)
        if result is not None and any(isinstance(a, SYMBOLIC) for a in (*args, *kwargs.values())):
            text = ast.unparse(node)
            return tree_map(lambda kind: UnknownNumber(kind, text), result(*args, **kwargs))
        if getattr(function, "__name__", "") == "tolist" and _is_long(function):
            return Unknown(ast.unparse(node))
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
            kind = _kind_of_result(function)
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


def _kind_of_result(function: Any) -> type | None:
    """The kind of the number that a function gives, whatever its argument; None if not known."""
    if function in (int, float, bool):
        return function
    name, module = getattr(function, "__name__", ""), getattr(function, "__module__", "")
    if name in _GIVE_INTS:
        return int
    return float if module == "math" else None


def _is_long(method: Any) -> bool:
    """Whether a list of a tensor's elements has more items than are worth a name each."""
    tensor = getattr(method, "__self__", None)
    count = known_int(tensor.numel()) if isinstance(tensor, torch.Tensor) else 0
    return count is None or count > _MOST_ITEMS
