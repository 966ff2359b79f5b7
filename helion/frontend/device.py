"""Device code: expressions and calls inside a top-level loop, recorded into a device graph."""

from __future__ import annotations

import ast
import inspect
import operator
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch.utils._pytree import tree_flatten, tree_map

from helion import exc
from helion.frontend import arithmetic, in_place
from helion.frontend.context import CallContext
from helion.frontend.failures import TorchCall, is_product, part_span, plain, refuse_by_name
from helion.frontend.scope import Scope
from helion.frontend.source import parse
from helion.frontend.statements import ReturnValue, Runner
from helion.ir.describe import type_name
from helion.ir.symbols import SYMBOLIC, is_number, kind_of, known_int
from helion.ir.tiles import HostTensor, TileAxis, TileItem
from helion.language import debugging, memory, tiles, views
from helion.language._op import Op
from helion.language.constants import constexpr
from helion.language.random import implicit

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from helion.frontend.compilation import Compilation
    from helion.frontend.source import FunctionSource

# What may be asked of a host tensor without loading it.
_TENSOR_FACTS = frozenset(
    {"dtype", "device", "ndim", "shape", "size", "stride", "dim", "numel", "element_size"}
    | {"is_floating_point", "is_complex", "itemsize", "nelement"}
)
# Attributes that are views.
_TRANSPOSES = frozenset({"T", "mT"})
_HOST_ONLY = frozenset({"item", "tolist", "cpu", "cuda", "numpy", "backward"})
_TILE_SUMS = {operator.add: 1, operator.sub: -1}
_ARITHMETIC = frozenset(
    {*arithmetic.BINARY.values(), *arithmetic.UNARY.values(), *arithmetic.COMPARE.values()}
)
# They look at the items of their first argument.
_ITERATING = frozenset(
    {all, any, enumerate, iter, list, max, min, reversed, set, sorted, sum, tuple}
)
_NO_ARITHMETIC = "a tile takes part in no arithmetic but `tile + k` and `tile - k`"
# Helper functions within helper functions; more is a recursion that ends at run time, or never.
_DEEPEST = 64


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
            if node.attr in _TRANSPOSES:
                with self.recorder.symbols.fake_mode:
                    return HostTensor(f"{value.text}.{node.attr}", getattr(value.fake, node.attr))
            if node.attr not in _TENSOR_FACTS:
                raise exc.HostTensorDirectUsage(self.source.span(node), name=value.text)
            return getattr(value.fake, node.attr)
        if isinstance(value, torch.Tensor) and node.attr in _HOST_ONLY:
            raise exc.NotAllowedOnDevice(self.source.span(node), what=f"`.{node.attr}()`")
        if isinstance(value, torch.Tensor) and node.attr in _TRANSPOSES:
            return self._call_torch(operator.attrgetter(node.attr), (value,), {}, node)
        return self.attribute_of(value, node)

    def eval_Call(self, node: ast.Call) -> Any:
        """`function(args)`; the host can say `x.numel()` in one number, as wide as it needs."""
        value = super().eval_Call(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr == "numel":
            tensor = self.types.get(node.func.value)
            if isinstance(tensor, HostTensor) and tensor.fake.dim() > 1:
                return self.read_host(value, f"{tensor.text}.numel()")
        return value

    def eval_Subscript(self, node: ast.Subscript) -> Any:
        """A load, a view of a device value, or an item of a sequence."""
        value = self.evaluate(node.value)
        index = self._index(node)
        if isinstance(value, HostTensor):
            return memory.load.type_rule_fn(self.context(node), value, index)  # pyright: ignore[reportOptionalCall]
        if isinstance(value, torch.Tensor):
            return views.subscript.type_rule_fn(self.context(node), value, index)  # pyright: ignore[reportOptionalCall]
        return self._element(value, index[0] if len(index) == 1 else tuple(index), node)

    def _element(self, value: Any, index: Any, node: ast.Subscript) -> Any:
        """An item of a sequence or dict."""
        span = self.source.span(node.slice)
        if not hasattr(value, "__getitem__"):
            detail = f"`{ast.unparse(node.value)}` is of type `{type_name(value)}`, without items"
            raise exc.TypeInferenceError(self.source.span(node), detail=detail)
        if isinstance(index, SYMBOLIC) and known_int(index) is None:
            got = f"`{ast.unparse(node.slice)}`, a number that is known at run time only"
            raise exc.InvalidSequenceSubscription(span, got=got)
        try:
            return value[index]
        except KeyError as error:
            advice = f"its keys are {', '.join(map(repr, value))}"
            raise exc.InvalidSequenceSubscription(span, got=repr(index), advice=advice) from error
        except IndexError as error:
            advice = f"it has {len(value)} items"
            raise exc.InvalidSequenceSubscription(span, got=index, advice=advice) from error
        except TypeError as error:
            got = f"`{type_name(index)}`"
            raise exc.InvalidSequenceSubscription(span, got=got) from error

    def _index(self, node: ast.Subscript) -> list[Any]:
        if isinstance(node.slice, ast.Tuple):
            return [self.evaluate(i) for i in node.slice.elts]
        return [self.evaluate(node.slice)]

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
            name = ast.unparse(node.value)
            span = self.source.span(node)
            raise exc.DeviceTensorSubscriptAssignmentNotAllowed(span, name=name)
        else:
            span = self.source.span(node.value)
            raise exc.NonTensorSubscriptAssign(span, got=type_name(target))

    def exec_Assign(self, node: ast.Assign) -> None:
        """`target = value`."""
        if len(node.targets) > 1:
            raise exc.AssignmentMultipleTargets(self.source.span(node))
        try:
            super().exec_Assign(node)
        except exc.ShapeMismatch as error:
            if error.location == self.source.span(node.targets[0]):
                value = exc.Related(self.source.span(node.value), f"shape {error.fields['lhs']}")
                error.fields.setdefault("place", f"shape {error.fields['rhs']}")
                raise error.with_related(value) from error.__cause__
            raise

    def items_of(self, value: Any, node: ast.AST) -> list[Any]:
        """The items of a sequence; the elements of a device value have no code of their own."""
        if isinstance(value, (torch.Tensor, HostTensor)):
            raise self.not_iterable(value, node)
        return super().items_of(value, node)

    def check_starred(self, nodes: Sequence[ast.expr]) -> None:
        """Device code writes the values out."""
        for node in nodes:
            if isinstance(node, ast.Starred):
                raise exc.StarredArgsNotSupportedOnDevice(self.source.span(node))

    def condition(self, node: ast.expr) -> Any:
        """The value of a condition; a tensor in memory is none."""
        value = self.evaluate(node)
        if isinstance(value, HostTensor):
            raise exc.HostTensorDirectUsage(self.source.span(node), name=value.text)
        return value

    def no_truth_value(self, value: torch.Tensor, node: ast.AST) -> exc.TypeInferenceError:
        """The error for a condition of several elements."""
        detail = f"a condition is one value, and this is `{self.compilation.show(value)}`"
        advice = "choose for each element with `torch.where`, or reduce it: `.any()`, `.all()`"
        return exc.TypeInferenceError(self.source.span(node), detail=detail, advice=advice)

    def eval_IfExp(self, node: ast.IfExp) -> Any:
        """`a if condition else b`: one of them where the condition is known, a select where not."""
        condition = self.condition(node.test)
        if isinstance(condition, (torch.Tensor, *SYMBOLIC)):
            both = (self.evaluate(node.body), self.evaluate(node.orelse))
            for value in both:
                if not is_number(value) and not isinstance(value, torch.Tensor):
                    first, second = map(self.compilation.show, both)
                    detail = f"a run-time condition chooses between `{first}` and `{second}`"
                    advice = "both must be tensors or numbers; else use an `if` statement"
                    span = self.source.span(node)
                    raise exc.TypeInferenceError(span, detail=detail, advice=advice)
            return self._call_torch(torch.where, (self.as_tensor(condition), *both), {}, node)
        return self.evaluate(node.body if condition else node.orelse)

    # -- calls -----------------------------------------------------------------------------------

    def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any, node: ast.AST
    ) -> Any:
        """Call an operation of the language, the author's function, torch, or plain Python."""
        self.recorder.span = self.source.span(node)
        if not callable(function):
            detail = f"a value of type `{type_name(function)}` cannot be called"
            raise exc.TypeInferenceError(self.source.span(node), detail=detail)
        if isinstance(function, BuiltinFunctionType):
            function = debugging.BUILTINS.get(function, function)
        if isinstance(function, Op):
            return self.call_op(function, args, kwargs, node)
        if function in _TILE_SUMS and isinstance(args[0], (TileAxis, TileItem)):
            return self._shift(args[0], args[1], _TILE_SUMS[function], node)
        if function in _ARITHMETIC and any(map(_is_tile, args)):
            raise exc.IncorrectTileUsage(self.source.span(node), detail=_NO_ARITHMETIC)
        if is_kernel(function):
            name = getattr(function, "name", "")
            raise exc.NestedKernelCallsNotSupported(self.source.span(node), name=name)
        if function is torch.tensor and is_number(args[0]):
            return self.number_tensor(args[0], **kwargs)
        if function is torch.tensor and not isinstance(args[0], torch.Tensor):
            detail = f"`torch.tensor` of a {type_name(args[0])} makes a tensor in memory"
            advice = "make it in the host part, and load from it in the loop"
            raise exc.TypeInferenceError(self.source.span(node), detail=detail, advice=advice)
        if self.recorder.is_device(in_place.changed_tensor(function)):
            return self._change(function, args, kwargs, node)
        if implicit.torch_rule(function) is not None:
            return self._draw(function, args, kwargs, node)
        if is_authors(function):
            return self.call_function(function, args, kwargs, node)
        if function is len and args and isinstance(args[0], (torch.Tensor, HostTensor)):
            return self._length(args[0], node)
        if function in _ITERATING and (function not in (max, min) or len(args) == 1):
            args = tuple(self.items_of(a, node) for a in args[:1]) + args[1:]
        leaves = tree_flatten((args, kwargs))[0]
        on_device = any(isinstance(a, (torch.Tensor, HostTensor)) or _is_tile(a) for a in leaves)
        if not on_device and not is_torch(function):
            return self.call_python(function, args, kwargs, node)
        return self._call_torch(function, args, kwargs, node)

    def augment(self, old: Any, value: Any, node: ast.AugAssign) -> Any:
        """`old += value` keeps the dtype and shape of a device value, as in torch."""
        if isinstance(node.op, ast.Add) and self.recorder.is_device(old) and is_product(node.value):
            span = self.source.span(node)
            self.compilation.options.warn(exc.TiledKMatmulAccumulationWarning(span))
        if not isinstance(node.target, ast.Name) or not self.recorder.is_device(old):
            return super().augment(old, value, node)
        return self.call(in_place.OPERATORS[type(node.op)], (self._copy(old), value), {}, node)

    def _change(self, method: Any, args: tuple[Any, ...], kwargs: Any, node: ast.AST) -> Any:
        """`x.add_(y)`."""
        copy = self._copy(method.__self__)
        method = getattr(copy, method.__name__)
        draws = implicit.torch_rule(method) is not None
        value = (self._draw if draws else self._call_torch)(method, args, kwargs, node)
        name = in_place.changed_variable(node)
        if name is not None:
            self.bind(name, value, node)
        return value

    def _draw(self, function: Any, args: tuple[Any, ...], kwargs: Any, node: ast.AST) -> Any:
        """One of torch's random calls."""
        rule = implicit.torch_rule(function)
        assert rule is not None
        try:
            inspect.signature(rule).bind(None, *args, **kwargs)
        except TypeError as error:
            detail = f"`{function.__name__}` in device code: {error}"
            raise exc.InvalidAPIUsage(self.source.span(node), detail=detail) from error
        return rule(self.context(node), *args, **kwargs)

    def _copy(self, value: torch.Tensor) -> torch.Tensor:
        copy = self.compilation.new_tensor(value.shape, value.dtype)
        return self.recorder.bind(copy, self.recorder.node_of(value))  # pyright: ignore[reportArgumentType]

    def _length(self, value: torch.Tensor | HostTensor, node: ast.AST) -> Any:
        """`len(tensor)`, without a guess at a size."""
        fake = value.fake if isinstance(value, HostTensor) else value
        if fake.dim() == 0:
            raise exc.TypeInferenceError(self.source.span(node), detail="`len` of a scalar")
        return fake.shape[0]

    def call_python(
        self, function: Callable[..., Any], args: Sequence[Any], kwargs: Any, node: ast.AST
    ) -> Any:
        """A call that involves no tensor."""
        if function is constexpr:
            # A block size is a number of the config's, known when code is written.
            return constexpr(*args, **kwargs).value
        try:
            return (arithmetic.replaces(function, args) or function)(*args, **kwargs)
        except exc.Base:
            raise
        except Exception as error:
            detail = plain(f"{type(error).__name__}: {error}")
            raise exc.TypeInferenceError(self.source.span(node), detail=detail) from error

    def call_op(self, op: Op, args: tuple[Any, ...], kwargs: Any, node: ast.AST) -> Any:
        """Apply an operation's type rule; a wrong call is the author's error, not ours."""
        bound = op.bind(self.source.span(node), args, kwargs)
        if op.type_rule_fn is None:
            span = self.source.span(node)
            if not op.is_loop:
                raise exc.NotAllowedOnDevice(span, what=f"`hl.{op.name}`")
            raise exc.LoopFunctionNotInFor(span, api=f"hl.{op.name}")
        return op.type_rule_fn(self.context(node, op), *bound.args, **bound.kwargs)

    def call_function(
        self, function: Any, args: tuple[Any, ...], kwargs: Any, node: ast.AST
    ) -> Any:
        """Interpret the author's function in place."""
        if isinstance(function, MethodType):
            function, args = function.__func__, (function.__self__, *args)
        if self.depth > _DEEPEST:
            detail = f"`{function.__name__}` calls itself more than {_DEEPEST} times"
            raise exc.TypeInferenceError(self.source.span(node), detail=detail)
        source = parse(function)
        scope = Scope(self.closure(function), {}, function.__globals__)
        inner = type(self)(source, scope, self.compilation, self.depth + 1)
        scope.device.update(_bind_arguments(function, args, kwargs, self.source.span(node)))
        outer_span = self.recorder.span
        try:
            inner.run(source.tree.body)
        except ReturnValue as returned:
            return returned.value
        except exc.Base as error:
            call = exc.Related(self.source.span(node), f"`{function.__name__}` is called here")
            raise error.with_related(call) from error.__cause__
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
            detail = f"a tile and a value of type `{type_name(by)}` cannot be added"
            raise exc.IncorrectTileUsage(self.source.span(node), detail=detail)
        item = tile if isinstance(tile, TileItem) else TileItem(tile)
        return TileItem(item.axis, item.shift + sign * by)

    def _call_torch(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any, node: ast.AST
    ) -> Any:
        span = self.source.span(node)
        self.recorder.span = span

        refuse_by_name(function, span)
        for position, value in enumerate(args):
            if isinstance(value, HostTensor):
                place = part_span(self.source, node, position)
                raise exc.HostTensorDirectUsage(place, name=value.text)

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
            # Torch's C++ form of a composite such as `matmul` may want sizes that are numbers; the
            # Python form, which this dispatcher finds, takes symbols.
            with enable_python_dispatcher(), self.recorder.symbols.fake_mode, self.recorder:
                # Python takes a TypeError out of `a @ b` for an operand that it does not know.
                product = function is operator.matmul
                return (torch.matmul if product else function)(*args, **kwargs)
        except exc.Base:
            raise
        except Exception as error:
            call = TorchCall(function, args, kwargs, node, self.source, self.compilation)
            raise call.failed(error) from error


def _bind_arguments(
    function: FunctionType, args: Sequence[Any], kwargs: Any, span: exc.Span
) -> dict[str, Any]:
    import inspect

    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except TypeError as error:
        detail = f"`{function.__name__}`: {error}"
        advice = f"it is defined as `def {function.__name__}{inspect.signature(function)}`"
        raise exc.TypeInferenceError(span, detail=detail, advice=advice) from error
    bound.apply_defaults()
    return dict(bound.arguments)


def _is_tile(value: Any) -> bool:
    return isinstance(value, (TileAxis, TileItem))


def is_kernel(function: Any) -> bool:
    """Whether something is a kernel, which runs by itself or not at all."""
    # Known by its module: the front end may not import the runtime.
    return type(function).__module__ == "helion.runtime.kernel"


def is_torch(function: Any) -> bool:
    """Whether a function is torch's, or a method of a tensor."""
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
