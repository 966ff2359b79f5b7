"""One loop of a rolled reduction: what it computes again, what it accumulates, what it leaves."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch

from helion.codegen.reductions import IDENTITIES, largest, smallest
from helion.ir.control import Region, for_loop, getitem
from helion.ir.graph import Node, args_of, emit, facts, set_facts, value_of
from helion.ir.masking import keep_inside
from helion.ir.symbols import BlockSymbol, expr_of, is_number, kind_of
from helion.ir.tiles import BlockSize, SliceItem, TileAxis, TileItem
from helion.language import creation, memory, tiles
from helion.language.random.draws import Axis

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from helion.exc import Span
    from helion.ir.symbols import Symbols

aten = torch.ops.aten
prims = torch.ops.prims

COMBINE: Mapping[Any, Any] = {
    prims.sum.default: prims.add.default,
    prims.prod.default: prims.mul.default,
    prims.amax.default: prims.maximum.default,
    prims.amin.default: prims.minimum.default,
}
"""Reductions of blocks, and what combines two blocks before they are reduced."""

INDEXED: Mapping[Any, str] = {
    aten.argmax.default: "max",
    aten.argmin.default: "min",
    aten.max.dim: "max",
    aten.min.dim: "min",
}
"""Reductions that ask where the extreme is."""

_BETTER = {"max": prims.gt.default, "min": prims.lt.default}
_INDEX = torch.int64
_Finish = "Callable[[Sequence[Node]], Any]"


def reduced_dims(node: Node) -> list[int]:
    """The dimensions that a reduction reduces."""
    rank = value_of(args_of(node)[0]).dim()
    given = args_of(node)[1] if len(args_of(node)) > 1 else None
    if given is None:
        return list(range(rank))
    return [d % rank for d in ([given] if isinstance(given, int) else given)]


@dataclasses.dataclass(frozen=True)
class Roll:
    """What is rolled: the axis of one length, in chunks.

    Attributes:
        symbols: the symbols of the program.
        size: the length of the axis.
        chunk: how much of it one step takes.
    """

    symbols: Symbols
    size: Any
    chunk: int

    def wide_dims(self, value: Any) -> list[int]:
        """The dimensions of a value that are the axis."""
        if not isinstance(value, torch.Tensor):
            return []
        return [d for d, s in enumerate(value.shape) if self.is_size(s)]

    def is_wide(self, node: Node) -> bool:
        """Whether a node's value has the axis."""
        return bool(self.wide_dims(facts(node).value))

    def is_size(self, value: Any) -> bool:
        """Whether a number is the length of the axis."""
        is_int = is_number(value) and kind_of(value) is int
        return is_int and expr_of(value) == expr_of(self.size)


@dataclasses.dataclass(frozen=True)
class Emitter:
    """Appends nodes to a graph, in the name of one line of the author's."""

    symbols: Symbols
    graph: torch.fx.Graph
    device: torch.device
    span: Span | None

    def __call__(
        self, target: Any, args: Sequence[Any], shape: Sequence[Any], dtype: torch.dtype
    ) -> Node:
        """A node that computes a tensor."""
        return emit(self.graph, target, args, self.fake(shape, dtype), self.span)

    def fake(self, shape: Sequence[Any], dtype: torch.dtype) -> torch.Tensor:
        """What a node computes, for its facts."""
        with self.symbols.fake_mode:
            return torch.empty(tuple(shape), dtype=dtype, device=self.device)

    def spread(self, value: Node, shape: Sequence[Any], dims: Sequence[int]) -> Node:
        """A value along some dimensions of a larger shape."""
        args = (value, tuple(shape), tuple(dims))
        return self(prims.broadcast_in_dim.default, args, shape, value_of(value).dtype)

    def better(self, kind: str, new: Node, old: Node) -> Node:
        """Where a value takes the place of another; the first NaN is better than all numbers."""
        shape = value_of(new).shape
        better = self(_BETTER[kind], (new, old), shape, torch.bool)
        if not value_of(new).dtype.is_floating_point:
            return better
        is_nan = self(prims.ne.default, (new, new), shape, torch.bool)
        was_none = self(prims.eq.default, (old, old), shape, torch.bool)
        first = self(prims.bitwise_and.default, (is_nan, was_none), shape, torch.bool)
        return self(prims.bitwise_or.default, (better, first), shape, torch.bool)

    def alike(self, left: Node, right: Node) -> Node:
        """Where two values are equal, or both NaN."""
        shape = value_of(left).shape
        equal = self(prims.eq.default, (left, right), shape, torch.bool)
        if not value_of(left).dtype.is_floating_point:
            return equal
        nans = [self(prims.ne.default, (v, v), shape, torch.bool) for v in (left, right)]
        both = self(prims.bitwise_and.default, nans, shape, torch.bool)
        return self(prims.bitwise_or.default, (equal, both), shape, torch.bool)


@dataclasses.dataclass
class _Carried:
    """A block that a loop accumulates: before the loop, as a step finds it, as it leaves it."""

    name: str
    value: torch.Tensor
    before: Node
    inside: Node
    after: Node | None = None


class RolledLoop:
    """Builds one loop over the chunks of an axis.

    Args:
        roll: the axis.
        graph: the graph that the loop becomes a part of.
        known: values outside of the loop: nodes of the old graph to nodes of the new.
    """

    def __init__(self, roll: Roll, graph: torch.fx.Graph, known: Mapping[Node, Node]) -> None:
        self._roll = roll
        self._graph = graph
        self._known = known
        self._body = torch.fx.Graph()
        block = BlockSize("chunk", None, fixed=roll.chunk, extent=roll.size)
        size = roll.symbols.size(BlockSymbol(block))
        self._axis = TileAxis("chunk", block, size, 0, roll.size)
        self._carried: list[_Carried] = []
        self._captured: dict[Node, Node] = {}
        self._inside: dict[Node, Node] = {}

    def emit(self, ends: Sequence[Node]) -> dict[Node, Any]:
        """Emit the loop that computes some reductions and stores.

        Returns:
            What each reduction has become: a node, or a pair of them for values with indices.
        """
        finishes = {node: self._end(node) for node in ends}
        self._body.output(tuple(c.after for c in self._carried))
        self._order_inputs()
        region = Region(self._body, tuple(c.name for c in self._carried))
        before = tuple(c.before for c in self._carried)
        args = ((self._axis,), ((0, self._roll.size),), region, before, tuple(self._captured))
        values = tuple(c.value for c in self._carried)
        span = facts(ends[0]).span
        loop = emit(self._graph, for_loop, args, values, span)
        results = [emit(self._graph, getitem, (loop, i), v, span) for i, v in enumerate(values)]
        return {node: finish(results) for node, finish in finishes.items() if finish is not None}

    def _order_inputs(self) -> None:
        """Inputs stand in the order of the loop's arguments: carried, then captured."""
        inputs = [*(c.inside for c in self._carried), *self._captured.values()]
        first = next(iter(self._body.nodes))
        for node in reversed(inputs):
            if node is not first:
                first.prepend(node)
                first = node

    def _at(self, node: Node, graph: torch.fx.Graph) -> Emitter:
        device = value_of(args_of(node)[0]).device
        return Emitter(self._roll.symbols, graph, device, facts(node).span)

    # -- values of a step ------------------------------------------------------------------------

    def _node(self, node: Node) -> Node:
        """A value as the loop's body computes or takes it."""
        if self._roll.is_wide(node):
            if node not in self._inside:
                self._inside[node] = self._again(node)
            return self._inside[node]
        outer = self._known[node]
        if outer not in self._captured:
            inner = self._body.placeholder(node.name)
            set_facts(inner, **vars(facts(node)))
            self._captured[outer] = inner
        return self._captured[outer]

    def _again(self, node: Node) -> Node:
        value = facts(node).value
        emitter = Emitter(self._roll.symbols, self._body, value.device, facts(node).span)
        shape = self._shape(value.shape)
        if node.target is creation.arange:
            dtype = args_of(node)[3]
            index = emitter(tiles.tile_index, (self._axis,), shape, _INDEX)
            return emitter(prims.convert_element_type.default, (index, dtype), shape, dtype)
        args = [self._argument(a) for a in node.args]
        fresh = emitter(node.target, args, shape, value.dtype)
        set_facts(fresh, name=facts(node).name)
        return fresh

    def _argument(self, arg: Any) -> Any:
        if isinstance(arg, Node):
            return self._node(arg)
        if isinstance(arg, SliceItem) and self._roll.is_size(arg.length):
            return TileItem(self._axis, 0)
        if isinstance(arg, Axis) and arg.tile is None and self._roll.is_size(arg.size):
            return arg._replace(tile=self._axis, size=self._axis.size)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            return type(arg)(*(self._argument(a) for a in arg))
        if isinstance(arg, tuple):
            return tuple(self._argument(a) for a in arg)
        return self._axis.size if self._roll.is_size(arg) else arg

    def _shape(self, shape: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(self._axis.size if self._roll.is_size(s) else s for s in shape)

    # -- what the loop is there for --------------------------------------------------------------

    def _end(self, node: Node) -> Any:
        """Emit the last step of a store or reduction; gives what is left to do after the loop."""
        if node.target is memory.store:
            args = tuple(self._argument(a) for a in node.args)
            emit(self._body, memory.store, args, None, facts(node).span)
            return None
        return self._accumulate(node) if node.target in COMBINE else self._seek(node)

    def _carry(self, node: Node, suffix: str, initial: Any, dtype: torch.dtype) -> _Carried:
        """A block that the loop accumulates, in the shape of what `node` reduces."""
        shape = self._shape(value_of(args_of(node)[0]).shape)
        before = self._at(node, self._graph)(creation.full, (shape, initial, dtype), shape, dtype)
        target: Any = node.target
        name = f"{facts(node).name or target._opname}_{suffix}"
        inside = self._body.placeholder(name)
        set_facts(inside, **vars(facts(before)))
        self._carried.append(_Carried(name, value_of(before), before, inside))
        return self._carried[-1]

    def _masked(self, node: Node, dtype: torch.dtype, identity: Any) -> Node:
        """What `node` reduces, in this step, with the identity outside of the axis."""
        emitter = self._at(node, self._body)
        source = self._node(args_of(node)[0])
        shape = value_of(source).shape
        if value_of(source).dtype is not dtype:
            source = emitter(prims.convert_element_type.default, (source, dtype), shape, dtype)
        wide = tuple(self._roll.wide_dims(value_of(args_of(node)[0])))
        return emitter(keep_inside, (source, wide, identity), shape, dtype)

    def _accumulate(self, node: Node) -> Any:
        """sum, prod, amax, amin: combine block with block, and reduce once, after the loop."""
        target: Any = node.target
        dtype = value_of(node).dtype
        identity = IDENTITIES[target](dtype)
        place = len(self._carried)
        carried = self._carry(node, "acc", identity, dtype)
        args = (carried.inside, self._masked(node, dtype, identity))
        emitter = self._at(node, self._body)
        carried.after = emitter(COMBINE[target], args, carried.value.shape, dtype)

        def finish(results: Sequence[Node]) -> Node:
            args = (results[place], *args_of(node)[1:])
            return self._at(node, self._graph)(target, args, value_of(node).shape, dtype)

        return finish

    def _seek(self, node: Node) -> Any:
        """Argmax and the like: each lane keeps its best value, and where it was."""
        target: Any = node.target
        kind = INDEXED[target]
        dtype = value_of(args_of(node)[0]).dtype
        worst = smallest(dtype) if kind == "max" else largest(dtype)
        place = len(self._carried)
        best, at = self._carry(node, "best", worst, dtype), self._carry(node, "at", 0, _INDEX)
        shape = best.value.shape
        block = self._masked(node, dtype, worst)
        emitter = self._at(node, self._body)
        better = emitter.better(kind, block, best.inside)
        row = emitter(tiles.tile_index, (self._axis,), (self._axis.size,), _INDEX)
        index = emitter.spread(row, shape, reduced_dims(node))
        where = prims.where.default
        best.after = emitter(where, (better, block, best.inside), shape, dtype)
        at.after = emitter(where, (better, index, at.inside), shape, _INDEX)
        return lambda results: self._found(node, kind, results[place], results[place + 1])

    def _found(self, node: Node, kind: str, best: Node, at: Node) -> Any:
        """The best of all lanes, and the smallest index that holds it."""
        emitter = self._at(node, self._graph)
        shape, dtype = tuple(value_of(best).shape), value_of(best).dtype
        (dim,) = reduced_dims(node)
        others = [d for d in range(len(shape)) if d != dim]
        rest = [shape[d] for d in others]
        reduce = prims.amax.default if kind == "max" else prims.amin.default
        top = emitter(reduce, (best, (dim,), None), rest, dtype)
        alike = emitter.alike(best, emitter.spread(top, shape, others))
        far = emitter(creation.full, (shape, torch.iinfo(_INDEX).max, _INDEX), shape, _INDEX)
        there = emitter(prims.where.default, (alike, at, far), shape, _INDEX)
        first = emitter(prims.amin.default, (there, (dim,), None), rest, _INDEX)
        if len(args_of(node)) > 2 and args_of(node)[2]:
            kept = [1 if d == dim else s for d, s in enumerate(shape)]
            top, first = (emitter.spread(v, kept, others) for v in (top, first))
        return (top, first) if isinstance(facts(node).value, tuple) else first
