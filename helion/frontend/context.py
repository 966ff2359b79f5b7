"""One call of an operation, as its type rule sees it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.frontend.failures import TorchCall
from helion.ir.symbols import AxisNumber, DeviceNumber, is_number
from helion.ir.tiles import BlockSize, TileAxis
from helion.language import memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from helion.exc import Span
    from helion.frontend.compilation import Compilation
    from helion.frontend.source import FunctionSource
    from helion.ir.tiles import HostTensor
    from helion.language._op import Op
    from helion.language.fragments import Fragment


class CallContext:
    """Implements `TypeCtx` for a call, a subscript, or an attribute."""

    def __init__(
        self, compilation: Compilation, source: FunctionSource, node: ast.AST, op: Op | None = None
    ) -> None:
        self.compilation = compilation
        self.symbols = compilation.symbols
        self.device = compilation.device
        self.index_dtype = compilation.options.index_dtype
        self._source = source
        self._node = node
        self._op = op

    def span(self, argument: str | None = None) -> Span:
        """The source of one argument, or of the whole call."""
        return self._source.span(self._argument(argument) or self._node)

    def item_span(self, position: int, argument: str = "index") -> Span:
        """The source of one item of a subscript, or of an argument that is a list."""
        node = self._argument(argument)
        if isinstance(node, (ast.Tuple, ast.List)) and position < len(node.elts):
            node = node.elts[position]
        return self._source.span(node or self._node)

    def cause(self, value: Any) -> tuple[exc.Related, ...]:
        """Where a value enters the kernel, if it is a parameter of it."""
        return self.compilation.cause(value)

    def _argument(self, name: str | None) -> ast.expr | None:
        node = self._node
        if isinstance(node, ast.Subscript) and name == "index":
            return node.slice
        if name and self._op and isinstance(node, ast.Call):
            return _argument(node, name, list(self._op.signature.parameters))
        return None

    def target(self) -> str | None:
        """The variable that the author assigns the call's result to."""
        return self._source.target_of(self._node)

    def record(self, op: Op, args: Sequence[Any], value: Any) -> Any:
        """Append a node that computes `value`."""
        self.compilation.recorder.span = self._source.span(self._node)
        self.compilation.recorder.record(op, args, value)
        return value

    def fake(self, sizes: Sequence[Any], dtype: torch.dtype) -> torch.Tensor:
        """A new fake tensor on the kernel's device."""
        return self.compilation.new_tensor(sizes, dtype)

    def node_of(self, value: Any) -> Any:
        """The node that computes a device tensor; other values unchanged."""
        return self.compilation.recorder.node_of(value)

    def show(self, sizes: Sequence[Any]) -> str:
        """Sizes in the author's names, for messages."""
        return self.compilation.show_sizes(sizes)

    def specialize(self, value: Any) -> int:
        """Compile in the value that a number has in this call."""
        return self.compilation.specialize(value)

    def enclosing_serial(self) -> Sequence[TileAxis]:
        """The axes of the loops inside of the program around the call, outermost first."""
        return tuple(self.compilation.loops[self.compilation.grid_rank :])

    def depends(self, axis: TileAxis, values: Any) -> bool:
        """Whether any of the values depends on an axis."""
        return depends(self.compilation, axis, values)

    def is_literal(self, argument: str) -> bool:
        """Whether the author wrote an argument as a literal."""
        return isinstance(self._argument(argument), ast.Constant)

    def tunable(self, name: str, fragment: Fragment) -> Any:
        """Register a tunable; returns its value in the config that is compiled for."""
        known = self.compilation.tunables.setdefault(name, fragment)
        if known != fragment or name in self.compilation.options.config_keys:
            raise exc.TunableNameConflict(self.span("name"), name=name)
        return self.compilation.options.tunables.get(name, fragment.default())

    def new_block(self, name: str, extent: Any = None, minimum: int = 1) -> BlockSize:
        """A new block size, for the config to choose: the next entry of `block_sizes`."""
        block = BlockSize(name, len(self.compilation.blocks), None, extent, minimum)
        self.compilation.blocks.append(block)
        return block

    def is_device(self, value: object) -> bool:
        """Whether device code computed a value."""
        return self.compilation.recorder.is_device(value)

    def enclosing(self) -> Sequence[TileAxis]:
        """The axes of all loops around the call, outermost first."""
        return tuple(self.compilation.loops)

    def load(self, tensor: HostTensor, index: Sequence[Any]) -> torch.Tensor:
        """A load from a host tensor, as if the author had written it."""
        assert memory.load.type_rule_fn is not None
        return memory.load.type_rule_fn(self, tensor, list(index))

    def new_call(self) -> int:
        """A number that no other call in this compilation has."""
        return next(self.compilation.calls)

    def number_tensor(self, value: Any) -> torch.Tensor:
        """A number as a 0-d device tensor."""
        return self.compilation.number_tensor(value)

    def call_torch(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a torch function, as if the author had."""
        recorder = self.compilation.recorder
        recorder.span = self._source.span(self._node)
        try:
            with recorder.symbols.fake_mode, recorder:
                return function(*args)
        except exc.Base:
            raise
        except Exception as error:
            call = TorchCall(function, args, {}, self._node, self._source, self.compilation)
            raise call.failed(error) from error

    def warn(self, warning: exc.BaseWarning) -> None:
        """Report a warning, unless the author's settings silence its class."""
        self.compilation.options.warn(warning.with_span(self.span()))


def depends(compilation: Compilation, axis: TileAxis, values: Any) -> bool:
    """Whether a value, or what it was computed from, mentions an axis."""
    if isinstance(values, (tuple, list)):
        return any(depends(compilation, axis, v) for v in values)
    if isinstance(values, TileAxis):
        return values is axis
    if isinstance(values, torch.fx.Node):
        return _node_depends(compilation, axis, values)
    if compilation.recorder.is_device(values):
        return _node_depends(compilation, axis, compilation.recorder.node_of(values))
    if is_number(values):
        origins = compilation.symbols.origins_in(values)
        # What a loop carries may change in each iteration.
        return any(
            isinstance(o, DeviceNumber) or (isinstance(o, AxisNumber) and o.axis is axis)
            for o in origins
        )
    return False


def _node_depends(compilation: Compilation, axis: TileAxis, node: torch.fx.Node) -> bool:
    # A placeholder is an outer value, or one that the loop carries: assume that it changes.
    if node.op == "placeholder":
        return True
    return any(depends(compilation, axis, _parts(arg)) for arg in node.args)


def _parts(arg: Any) -> Any:
    return tuple(_parts(a) for a in arg) if isinstance(arg, (tuple, list)) else arg


def _argument(call: ast.Call, name: str, parameters: list[str]) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    position = parameters.index(name)
    return call.args[position] if position < len(call.args) else None
