"""Device code: expressions and calls inside a top-level loop, recorded into a device graph."""

from __future__ import annotations

import ast
import operator
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_flatten, tree_map

from helion import exc
from helion.frontend import arithmetic
from helion.frontend.context import CallContext
from helion.frontend.scope import Scope
from helion.frontend.source import parse
from helion.frontend.statements import ReturnValue, Runner
from helion.ir.symbols import SYMBOLIC, is_number, kind_of
from helion.ir.tiles import HostTensor, TileAxis, TileItem
from helion.language import memory, subscript, tiles
from helion.language._op import Op

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from helion.frontend.compilation import Compilation
    from helion.frontend.source import FunctionSource

# What may be asked of a host tensor without loading it.
_TENSOR_FACTS = frozenset(
    {"dtype", "device", "ndim", "shape", "size", "stride", "dim", "numel", "element_size"}
    | {"is_floating_point", "is_complex", "itemsize", "nelement"}
)
_HOST_ONLY = frozenset({"item", "tolist", "cpu", "cuda", "numpy", "backward"})
_TILE_SUMS = {operator.add: 1, operator.sub: -1}


class DeviceEvaluator(Runner):
    """Evaluates device expressions; operations of torch and of the language become nodes."""

    def __init__(
        self, source: FunctionSource, scope: Scope, compilation: Compilation, depth: int = 0
    ) -> None:
        super().__init__(source, scope)
        self.compilation = compilation
        self.recorder = compilation.recorder
        self.depth = depth

    def read_host(self, value: Any, text: str) -> Any:
        """A host tensor can be loaded from; a host number becomes a kernel parameter."""
        return self.compilation.imports.bring(value, text)

    # -- attributes and subscripts ---------------------------------------------------------------

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        """`value.name`: a tile's numbers, a tensor's facts, or plain Python."""
        value = self.evaluate(node.value)
        if isinstance(value, TileAxis):
            return tiles.attribute(self.context(node), value, node.attr)
        if isinstance(value, HostTensor):
            if node.attr not in _TENSOR_FACTS:
                raise exc.HostTensorDirectUsage(self.source.span(node), name=value.text)
            return getattr(value.fake, node.attr)
        if isinstance(value, torch.Tensor) and node.attr in _HOST_ONLY:
            raise exc.NotAllowedOnDevice(self.source.span(node), what=f"`.{node.attr}()`")
        return self.attribute_of(value, node)

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        """A load, a view of a device value, or an item of a sequence."""
        value = self.evaluate(node.value)
        index = self._index(node)
        if isinstance(value, HostTensor):
            return memory.load.type_rule_fn(self.context(node), value, index)  # pyright: ignore[reportOptionalCall]
        if isinstance(value, torch.Tensor):
            return self._view(value, index, node)
        try:
            return value[index[0] if len(index) == 1 else tuple(index)]
        except (TypeError, IndexError, KeyError) as error:
            span = self.source.span(node)
            raise exc.InvalidSequenceSubscription(span, detail=str(error)) from error

    def _index(self, node: ast.Subscript) -> list[Any]:
        if isinstance(node.slice, ast.Tuple):
            return [self.evaluate(i) for i in node.slice.elts]
        return [self.evaluate(node.slice)]

    def _view(self, value: torch.Tensor, index: list[Any], node: ast.AST) -> Any:
        index = subscript.expand_ellipsis(index, value.dim(), self.source.span(node))
        for dim, item in enumerate(index):
            if item is None:
                value = self._call_torch(torch.unsqueeze, (value, dim), {}, node)
            elif item != slice(None):
                raise exc.InvalidIndexingType(
                    self.source.span(node), got="a subscript of a device value other than None, :"
                )
        return value

    def set_item(self, node: ast.Subscript, value: Any) -> None:
        """`target[index] = value`: a store, or an item of a list."""
        target = self.evaluate(node.value)
        index = self._index(node)
        if isinstance(target, HostTensor):
            if isinstance(value, HostTensor):
                full: list[Any] = [slice(None)] * value.fake.dim()
                value = memory.load.type_rule_fn(self.context(node), value, full)  # pyright: ignore[reportOptionalCall]
            memory.store.type_rule_fn(self.context(node), target, index, value)  # pyright: ignore[reportOptionalCall]
        elif isinstance(target, list) and isinstance(index[0], int):
            target[index[0]] = value
        elif isinstance(target, torch.Tensor):
            raise exc.DeviceTensorSubscriptAssignmentNotAllowed(self.source.span(node))
        else:
            got = type(target).__name__
            raise exc.NonTensorSubscriptAssign(self.source.span(node), got=got)

    def eval_IfExp(self, node: ast.IfExp) -> Any:
        """`a if condition else b`: one of them where the condition is known, a select where not."""
        condition = self.evaluate(node.test)
        if isinstance(condition, (torch.Tensor, *SYMBOLIC)):
            both = (self.evaluate(node.body), self.evaluate(node.orelse))
            return self._call_torch(torch.where, (self.as_tensor(condition), *both), {}, node)
        return self.evaluate(node.body if condition else node.orelse)

    # -- calls -----------------------------------------------------------------------------------

    def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any, node: ast.AST
    ) -> Any:
        """Call an operation of the language, the author's function, torch, or plain Python."""
        self.recorder.span = self.source.span(node)
        if isinstance(function, Op):
            return self.call_op(function, args, kwargs, node)
        if function in _TILE_SUMS and isinstance(args[0], (TileAxis, TileItem)):
            return self._shift(args[0], args[1], _TILE_SUMS[function], node)
        if function is torch.tensor and is_number(args[0]):
            return self.number_tensor(args[0], **kwargs)
        if is_authors(function):
            return self.call_function(function, args, kwargs, node)
        leaves = tree_flatten((args, kwargs))[0]
        on_device = any(isinstance(a, (torch.Tensor, HostTensor)) or _is_tile(a) for a in leaves)
        if not on_device and not _is_torch(function):
            return self.call_python(function, args, kwargs, node)
        return self._call_torch(function, args, kwargs, node)

    def call_python(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Any, node: ast.AST
    ) -> Any:
        """A call that involves no tensor."""
        if function is print:
            raise exc.UnsupportedOperation(self.source.span(node), api="print")
        try:
            return (arithmetic.replaces(function, args) or function)(*args, **kwargs)
        except exc.Base:
            raise
        except Exception as error:
            detail = f"{type(error).__name__}: {error}"
            raise exc.TypeInferenceError(self.source.span(node), detail=detail) from error

    def call_op(self, op: Op, args: tuple[Any, ...], kwargs: Any, node: ast.AST) -> Any:
        """Apply an operation's type rule; a wrong call is the author's error, not ours."""
        try:
            bound = op.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise op.misuse(self.source.span(node), str(error)) from error
        bound.apply_defaults()
        if op.type_rule_fn is None:
            raise exc.LoopFunctionNotInFor(self.source.span(node), api=f"hl.{op.name}")
        return op.type_rule_fn(self.context(node, op), *bound.args, **bound.kwargs)

    def call_function(
        self, function: Any, args: tuple[Any, ...], kwargs: Any, node: ast.AST
    ) -> Any:
        """Interpret the author's function in place."""
        if isinstance(function, MethodType):
            function, args = function.__func__, (function.__self__, *args)
        if self.depth > 64:
            raise exc.TypeInferenceError(self.source.span(node), detail="recursion in device code")
        source = parse(function)
        scope = Scope(self.closure(function), {}, function.__globals__)
        inner = type(self)(source, scope, self.compilation, self.depth + 1)
        scope.device.update(_bind_arguments(function, args, kwargs, self.source.span(node)))
        outer_span = self.recorder.span
        try:
            inner.run(source.tree.body)
        except ReturnValue as returned:
            return returned.value
        finally:
            self.recorder.span = outer_span
        return None

    def closure(self, function: FunctionType) -> dict[str, Any]:
        """The free variables of a function, as host values."""
        text = self.compilation.imports.functions.get(function)
        result: dict[str, Any] = {}
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for i, (name, cell) in enumerate(cells):
            place = f"{text}.__closure__[{i}].cell_contents"
            result[name] = self.compilation.imports.bring(
                self.compilation.fake(cell.cell_contents, place), place
            )
        return result

    def exec_Return(self, node: ast.Return) -> None:
        """The result of a helper function."""
        if self.depth == 0:
            raise exc.NotAllowedOnDevice(self.source.span(node), what="`return`")
        raise ReturnValue(None if node.value is None else self.evaluate(node.value))

    def context(self, node: ast.AST, op: Op | None = None) -> CallContext:
        """What the type rule of one call may ask."""
        return CallContext(self.compilation, self.source, node, op)

    def number_tensor(
        self, value: Any, dtype: torch.dtype | None = None, device: Any = None
    ) -> Any:
        """`torch.tensor(number)`."""
        del device
        kind = kind_of(value)
        default = {bool: torch.bool, int: torch.int64, float: torch.float32}[kind]
        return self.compilation.number_tensor(value, dtype or default)

    def as_tensor(self, value: Any) -> torch.Tensor:
        """A number as a 0-d device tensor."""
        if isinstance(value, torch.Tensor):
            return value
        return self.compilation.number_tensor(value)

    def _shift(self, tile: TileAxis | TileItem, by: Any, sign: int, node: ast.AST) -> TileItem:
        if not is_number(by):
            raise exc.IncorrectTileUsage(self.source.span(node), got=type(by).__name__)
        item = tile if isinstance(tile, TileItem) else TileItem(tile)
        return TileItem(item.axis, item.shift + sign * by)

    def _call_torch(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any, node: ast.AST
    ) -> Any:
        span = self.source.span(node)
        self.recorder.span = span

        def convert(value: Any) -> Any:
            if isinstance(value, HostTensor):
                raise exc.HostTensorDirectUsage(span, name=value.text)
            if isinstance(value, TileItem):
                raise exc.IncorrectTileUsage(span, got="tile + k")
            if isinstance(value, torch.SymBool):
                return self.as_tensor(value)
            return value.size if isinstance(value, TileAxis) else value

        args, kwargs = tree_map(convert, (args, kwargs), is_leaf=_is_tile)
        try:
            with self.recorder.symbols.fake_mode, self.recorder:
                return function(*args, **kwargs)
        except exc.Base:
            raise
        except Exception as error:
            raise _torch_error(error, args, span, self.compilation.show_sizes) from error


def _torch_error(
    error: Exception, args: Sequence[Any], span: exc.Span, show: Callable[[Any], str]
) -> exc.BaseError:
    shapes = [show(a.shape) for a in args if isinstance(a, torch.Tensor)]
    text = str(error)
    if len(shapes) > 1 and ("broadcast" in text or "size of tensor" in text):
        return exc.ShapeMismatch(span, lhs=shapes[0], rhs=shapes[1])
    return exc.TorchOpTracingError(span, detail=f"{type(error).__name__}: {text}")


def _bind_arguments(
    function: FunctionType, args: Sequence[Any], kwargs: Any, span: exc.Span
) -> dict[str, Any]:
    import inspect

    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        raise exc.TypeInferenceError(span, detail=f"{function.__name__}: {error}") from error
    bound.apply_defaults()
    return dict(bound.arguments)


def _is_tile(value: Any) -> bool:
    return isinstance(value, (TileAxis, TileItem))


def _is_torch(function: Any) -> bool:
    module = getattr(function, "__module__", None) or ""
    owner = getattr(function, "__objclass__", None) or getattr(function, "__self__", None)
    return module.startswith("torch") or isinstance(owner, torch.Tensor) or owner is torch


def is_authors(function: Any) -> bool:
    """Whether a function is the author's own, to be interpreted rather than called."""
    if isinstance(function, MethodType):
        function = function.__func__
    if isinstance(function, BuiltinFunctionType) or not isinstance(function, FunctionType):
        return False
    root = function.__module__.partition(".")[0] if function.__module__ else ""
    return root not in {"torch", "helion", "math", "builtins", "numpy", "sympy"}
