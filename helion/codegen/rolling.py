"""Rolled reductions: a whole axis in chunks, instead of one block that covers it.

before:  x = load x[a, :]                       # the whole row
         m = amax(x, 1)
         store out[a, :] = exp(x - m[:, None])

after:   m_acc = full([a, chunk], -inf)
         for n in tile(0, length, chunk):
             m_acc = maximum(m_acc, x[a, n])
         m = amax(m_acc, 1)
         for n in tile(0, length, chunk):
             store out[a, n] = exp(x[a, n] - m[:, None])

A value of the axis is needed in the loop that reduces or stores it; it is computed again in each
such loop, from loads and random numbers, so that no row is ever held. What is summed stays a block
until the loop is over: threads meet once, not in every step.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from helion.codegen.pointwise import POINTWISE
from helion.codegen.rolled_loop import (
    COMBINE,
    INDEXED,
    Emitter,
    Roll,
    RolledLoop,
    reduced_dims,
)
from helion.ir.control import Region, getitem, nodes_within
from helion.ir.graph import Node, args_of, calls, copy_graph, facts, set_facts, value_of
from helion.ir.passes import everywhere
from helion.ir.symbols import BlockSymbol, Number, expr_of, known_int
from helion.ir.tiles import SliceItem
from helion.language import creation, memory
from helion.language._op import Op

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from helion.ir.graph import DeviceProgram
    from helion.ir.symbols import Symbols

prims = torch.ops.prims

_REDUCTIONS = frozenset({*COMBINE, *INDEXED, prims.var.default})
_ALONG = frozenset(
    {prims.convert_element_type.default, prims.broadcast_in_dim.default, prims.clone.default}
    | {creation.full, prims.view_of.default}
)


def rollable_lengths(program: DeviceProgram) -> list[Any]:
    """The lengths of the whole axes whose reductions can be rolled, in order of first use."""
    found: dict[Any, Any] = {}
    for loop in program.loops:
        for node in nodes_within(loop.graph):
            if node.target in _REDUCTIONS:
                shape = value_of(args_of(node)[0]).shape
                for size in (shape[d] for d in reduced_dims(node)):
                    if _is_whole(program.symbols, size):
                        found.setdefault(expr_of(size), size)
    graphs = [graph for loop in program.loops for graph in _graphs(loop.graph)]
    rolls = [Roll(program.symbols, size, 1) for size in found.values()]
    return [r.size for r in rolls if all(_is_rollable(r, graph) for graph in graphs)]


def roll(program: DeviceProgram, chunks: Mapping[Any, int]) -> DeviceProgram:
    """The program with some whole axes in chunks.

    Args:
        program: the program.
        chunks: the chunk of each length, as an expression, that is to be rolled.
    """
    for size in rollable_lengths(program):
        chunk = chunks.get(expr_of(size))
        if chunk is not None:
            axis = Roll(program.symbols, size, chunk)

            def roll_axis(graph: torch.fx.Graph, axis: Roll = axis) -> torch.fx.Graph:
                return _rolled(axis, graph)

            program = program.map_graphs(functools.partial(everywhere, roll_axis))
    return program


# -- what can be rolled ---------------------------------------------------------------------------


def _graphs(graph: torch.fx.Graph) -> Iterator[torch.fx.Graph]:
    yield graph
    for node in graph.nodes:
        for region in node.args:
            if isinstance(region, Region):
                yield from _graphs(region.graph)


def _is_whole(symbols: Symbols, size: Any) -> bool:
    known = known_int(size)
    blocks = any(isinstance(o, BlockSymbol) for o in symbols.origins_in(size))
    return not blocks and (known is None or known > 1)


def _values(node: Node) -> list[Any]:
    return [facts(node).value, *(value_of(a) for a in node.all_input_nodes)]


def _touches(roll: Roll, node: Node) -> bool:
    """Whether a node computes or consumes values along the axis."""
    return node.op != "output" and any(roll.wide_dims(v) for v in _values(node))


def _is_rollable(roll: Roll, graph: torch.fx.Graph) -> bool:
    wide = [n for n in graph.nodes if _touches(roll, n)]
    output = next(n for n in graph.nodes if n.op == "output")
    if any(roll.is_wide(n) for n in output.all_input_nodes):
        return False
    if not all(_is_allowed(roll, n) for n in wide):
        return False
    # A loop that reads again what another has written would read something else.
    stored = {args_of(n)[0].text for n in graph.nodes if n.target is memory.store}
    loaded = {args_of(n)[0].text for n in wide if n.target is memory.load}
    return stored.isdisjoint(loaded)


def _is_allowed(roll: Roll, node: Node) -> bool:
    if any(len(roll.wide_dims(v)) > 1 for v in _values(node)):
        return False
    if node.target in COMBINE:
        return True
    if node.target in _REDUCTIONS:
        return reduced_dims(node) == roll.wide_dims(value_of(args_of(node)[0]))
    if node.target in (memory.load, memory.store):
        items = args_of(node)[1]
        slices = [i for i in items if isinstance(i, SliceItem) and roll.is_size(i.length)]
        return len(slices) == 1 and not any(isinstance(i, Node) for i in items)
    if node.target is creation.arange:
        begin, _, step, _ = args_of(node)
        return known_int(begin) == 0 and known_int(step) == 1
    is_draw = isinstance(node.target, Op) and any(hasattr(a, "axes") for a in node.args)
    return is_draw or node.target in POINTWISE or node.target in _ALONG


# -- the rewrite ----------------------------------------------------------------------------------


def _rolled(roll: Roll, graph: torch.fx.Graph) -> torch.fx.Graph:
    """The graph with a loop for each level of reductions; as it was where there are none."""
    if not any(_touches(roll, n) for n in graph.nodes):
        return graph
    return _Roller(roll, _expand_variance(roll, graph)).run()


def _expand_variance(roll: Roll, graph: torch.fx.Graph) -> torch.fx.Graph:
    """`var` over the axis as two sums: each is then rolled like any other."""
    graph = copy_graph(graph)
    for node in calls(graph, prims.var.default):
        source, _, correction = args_of(node)[:3]
        dims, value, narrow = reduced_dims(node), value_of(source), value_of(node)
        if dims != roll.wide_dims(value):
            continue
        others = [d for d in range(value.dim()) if d not in dims]
        length = expr_of(roll.size)
        emitter = Emitter(roll.symbols, graph, value.device, facts(node).span)
        with graph.inserting_before(node):
            total = emitter(prims.sum.default, (source, tuple(dims), None), *_like(narrow))
            mean = emitter(prims.div.default, (total, Number(length, int)), *_like(narrow))
            spread = emitter.spread(mean, value.shape, others)
            distance = emitter(prims.sub.default, (source, spread), *_like(value))
            square = emitter(prims.mul.default, (distance, distance), *_like(value))
            squares = emitter(prims.sum.default, (square, tuple(dims), None), *_like(narrow))
            freedom = Number(length - int(correction), int)
            result = emitter(prims.div.default, (squares, freedom), *_like(narrow))
        set_facts(result, name=facts(node).name)
        node.replace_all_uses_with(result)
        graph.erase_node(node)
    return graph


def _like(value: torch.Tensor) -> tuple[Any, torch.dtype]:
    return value.shape, value.dtype


class _Roller:
    """Builds the new graph of one graph.

    The level of a node is the number of reductions that stand one after the other before it.
    Loop L computes the reductions and stores of level L; what is not of the axis and of level L
    stands before it.
    """

    def __init__(self, roll: Roll, graph: torch.fx.Graph) -> None:
        self._roll = roll
        self._old = graph
        self._new = torch.fx.Graph()
        self._nodes: dict[Node, Any] = {}

    def run(self) -> torch.fx.Graph:
        """The new graph."""
        levels: dict[Node, int] = {}
        for node in self._old.nodes:
            before = [levels[n] + self._is_result(n) for n in node.all_input_nodes]
            levels[node] = max(before, default=0)
        for level in range(max(levels.values()) + 1):
            own = [n for n in self._old.nodes if levels[n] == level and n.op != "output"]
            ends = [n for n in own if self._is_end(n)]
            for node in own:
                if node not in ends and not self._roll.is_wide(node):
                    self._nodes[node] = self._copied(node)
            if ends:
                self._nodes.update(RolledLoop(self._roll, self._new, self._nodes).emit(ends))
            for node in ends:
                if isinstance(self._nodes.get(node), Node):
                    set_facts(self._nodes[node], name=facts(node).name)
        output = next(n for n in self._old.nodes if n.op == "output")
        self._new.output(torch.fx.map_arg(output.args[0], lambda n: self._nodes[n]))
        return self._new

    def _copied(self, node: Node) -> Node:
        if node.target is getitem and isinstance(self._nodes[args_of(node)[0]], tuple):
            pair, index = args_of(node)
            set_facts(self._nodes[pair][index], name=facts(node).name)
            return self._nodes[pair][index]
        fresh = self._new.node_copy(node, lambda n: self._nodes[n])
        set_facts(fresh, **vars(facts(node)))
        return fresh

    def _is_result(self, node: Node) -> bool:
        """Whether a node is a reduction over the axis."""
        if node.target not in _REDUCTIONS:
            return False
        wide = self._roll.wide_dims(value_of(args_of(node)[0]))
        return bool(set(reduced_dims(node)) & set(wide))

    def _is_end(self, node: Node) -> bool:
        """Whether a node is what a loop is there for."""
        is_store = node.target is memory.store and _touches(self._roll, node)
        return is_store or self._is_result(node)
