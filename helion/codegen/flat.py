"""Flattened loops: the axes of one loop as a single row of indices, in one-dimensional blocks.

Only a loop that treats every element alike can be flattened: its tiles are used as indices and
nothing else, and each value has one element for each index, whatever its dimensions.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import torch

from helion.codegen import expression as ex
from helion.codegen.expression import Expression
from helion.codegen.pointwise import POINTWISE
from helion.ir.graph import Node, args_of, facts
from helion.ir.symbols import AxisNumber, Number, expr_of, is_number, known_int, same
from helion.ir.tiles import HostTensor, SliceItem, TileAxis, TileItem
from helion.language import creation, memory
from helion.language.random.draws import Draw

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from helion.codegen.kernel import Kernel
    from helion.codegen.names import Block
    from helion.ir.graph import TopLoop
    from helion.ir.symbols import Symbols

prims = torch.ops.prims

_ALIKE = frozenset(
    {prims.convert_element_type.default, prims.broadcast_in_dim.default, prims.clone.default}
    | {prims.scalar_tensor.default, torch.ops.aten.scalar_tensor.default, prims.view_of.default}
    | {creation.full, memory.load, memory.store}
)


def can_flatten(symbols: Symbols, loop: TopLoop) -> bool:
    """Whether a loop over several axes treats every element alike."""
    if len(loop.axes) < 2 or not all(_is_plain(a) for a in loop.axes):
        return False
    nodes = [n for n in loop.graph.nodes if n.op == "call_function"]
    return all(_is_alike(symbols, loop.axes, n) for n in nodes)


def _is_plain(axis: TileAxis) -> bool:
    return axis.block is not None and known_int(axis.begin) == 0 and is_number(axis.end)


def _is_alike(symbols: Symbols, axes: Sequence[TileAxis], node: Node) -> bool:
    draws = [a for a in args_of(node) if isinstance(a, Draw)]
    if node.target not in POINTWISE and node.target not in _ALIKE and not draws:
        return False
    if any(d.packed for d in draws):
        return False
    value = facts(node).value
    shape = value.shape if isinstance(value, torch.Tensor) else ()
    if not all(known_int(s) == 1 or any(same(s, a.size) for a in axes) for s in shape):
        return False
    leaves = list(_leaves(node.args))
    if any(isinstance(leaf, SliceItem) for leaf in leaves):
        return False
    # `tile.begin` and its like have no meaning for a block that is no tile.
    numbers = [leaf for leaf in leaves if isinstance(leaf, Number)]
    origins = [o for n in numbers for o in symbols.origins_in(n)]
    return not any(isinstance(o, AxisNumber) for o in origins)


def _leaves(arg: Any) -> Iterator[Any]:
    if isinstance(arg, (tuple, list)) and not isinstance(arg, SliceItem):
        for item in arg:
            yield from _leaves(item)
    else:
        yield arg


@dataclasses.dataclass
class FlatTile:
    """The block of a flattened loop.

    Attributes:
        axes: the axes, from the slowest to the fastest.
        index: the name of its indices.
        mask: the name of what tells which are inside; None if all are.
        prelude: where the indices along each axis are assigned.
    """

    axes: tuple[TileAxis, ...]
    index: str
    mask: str | None
    prelude: Block
    _along: dict[TileAxis, str] = dataclasses.field(default_factory=dict)

    @property
    def shape(self) -> tuple[Any, ...]:
        """The shape of its values: one dimension."""
        return (self.axes[-1].size,)

    def inside(self) -> Expression | None:
        """Which of its elements are inside of all ranges."""
        return None if self.mask is None else Expression(self.mask, torch.bool, self.shape)

    def along(self, kernel: Kernel, axis: TileAxis) -> Expression:
        """The index of each element along one axis."""
        if axis not in self._along:
            place = self.axes.index(axis)
            later = [ex.operand(kernel.number(a.end).text) for a in self.axes[place + 1 :]]
            text = self.index
            if later:
                step = later[0] if len(later) == 1 else f"({' * '.join(later)})"
                text = f"{text} // {step}"
            if place > 0:
                text = f"{text} % {ex.operand(kernel.number(axis.end).text)}"
            name = kernel.names.fresh(f"{axis.name}_index")
            self.prelude.line(f"{name} = {text}")
            self._along[axis] = name
        return Expression(self._along[axis], kernel.index_dtype, self.shape)

    def offset(self, kernel: Kernel, target: HostTensor, items: Sequence[Any]) -> Expression | None:
        """The address of each element where a tensor lies in the order of the loop, else None."""
        tiles = [i.axis for i in items if isinstance(i, TileItem) and expr_of(i.shift) == 0]
        if tuple(tiles) != self.axes or len(items) != len(tiles):
            return None
        strides = target.fake.stride()
        for axis, slow, fast in zip(self.axes[1:], strides, strides[1:], strict=False):
            if not same(expr_of(slow), expr_of(fast) * expr_of(axis.end)):
                return None
        index = Expression(self.index, kernel.index_dtype, self.shape)
        if known_int(strides[-1]) == 1:
            return index
        return ex.infix("*", index, kernel.number(strides[-1]), ex.PRODUCT, index.dtype)


def flat_length(kernel: Kernel, axes: Sequence[TileAxis], host: bool) -> str:
    """The number of elements of a flattened loop."""
    known = [known_int(a.end) for a in axes]
    if None not in known:
        return str(math.prod(k for k in known if k is not None))
    show = kernel.host_text if host else kernel.bound_text
    return " * ".join(ex.operand(show(a.end)) for a in axes)


def flat_block(kernel: Kernel, axes: Sequence[TileAxis], host: bool) -> str:
    """The number of elements of a block: as many as the tiles would have."""
    show = kernel.host_text if host else kernel.size_text
    return " * ".join(show(a.size) for a in axes)


def flat_count(kernel: Kernel, axes: Sequence[TileAxis], host: bool) -> str:
    """The number of blocks of a flattened loop."""
    length, block = flat_length(kernel, axes, host), flat_block(kernel, axes, host)
    return f"{'_' if host else 'tl.'}cdiv({length}, {block})"


def open_flat(kernel: Kernel, axes: Sequence[TileAxis], pid: str, prelude: Block) -> FlatTile:
    """Emit the indices of a block and its mask."""
    block = flat_block(kernel, axes, host=False)
    if kernel.wide_index:
        pid = ex.cast(Expression(pid, torch.int32), torch.int64).text
    index = kernel.names.fresh("flat_index")
    prelude.line(f"{index} = {pid} * ({block}) + tl.arange(0, {block})")
    length = flat_length(kernel, axes, host=False)
    sizes = [kernel.known_size(a.size) for a in axes]
    known = None if None in sizes else math.prod(s for s in sizes if s is not None)
    mask = None
    if known is None or not length.isdigit() or int(length) % known:
        mask = kernel.names.fresh("flat_mask")
        prelude.line(f"{mask} = {index} < {length}")
    return FlatTile(tuple(axes), index, mask, prelude.block())
