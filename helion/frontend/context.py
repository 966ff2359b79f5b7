"""One call of an operation, as its type rule sees it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from helion.ir.tiles import BlockSize
from helion.language import memory

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from helion import exc
    from helion.exc import Span
    from helion.frontend.compilation import Compilation
    from helion.frontend.source import FunctionSource
    from helion.ir.tiles import HostTensor, TileAxis
    from helion.language._op import Op


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
        node = self._node
        if argument and self._op and isinstance(node, ast.Call):
            node = _argument(node, argument, list(self._op.signature.parameters)) or node
        return self._source.span(node)

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

    def warn(self, warning: exc.BaseWarning) -> None:
        """Report a warning, unless the author's settings silence its class."""
        self.compilation.options.warn(warning.with_span(self.span()))


def _argument(call: ast.Call, name: str, parameters: list[str]) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    position = parameters.index(name)
    return call.args[position] if position < len(call.args) else None
