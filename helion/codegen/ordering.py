"""Order of memory inside of a program: who reads what another thread wrote waits for it.

before:  store(x, [i], a)
         b = load(x, [j])
after:   store(x, [i], a)
         block_barrier()
         b = load(x, [j])

Tensors are told apart by their storage, so a view of a tensor is that tensor.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from helion.ir.control import CONTROL_FLOW, Region, for_loop, nodes_within
from helion.ir.graph import args_of, copy_graph, emit, facts
from helion.ir.tiles import HostTensor, TileItem
from helion.language import memory
from helion.language.atomics import ATOMICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from helion.ir.graph import Node
    from helion.ir.tiles import TileAxis


def block_barrier() -> None:
    """Wait until every thread of the program is here, and its writes can be read."""
    raise AssertionError("a node of the device IR is not called")


def order_memory(graph: torch.fx.Graph) -> torch.fx.Graph:
    """The graph of a whole program with barriers between writes and the reads that follow them."""
    return _ordered(graph, set())


def _ordered(graph: torch.fx.Graph, written: set[int]) -> torch.fx.Graph:
    """The same for a part of a program; `written` is what no barrier has followed yet."""
    graph = copy_graph(graph)
    for node in list(graph.nodes):
        if node.target in CONTROL_FLOW:
            _order_regions(node, written)
            continue
        if _reads(node) and _storage(node) in written:
            with graph.inserting_before(node):
                emit(graph, block_barrier, (), None, facts(node).span)
            written.clear()
        if _writes(node):
            written.add(_storage(node))
    return graph


def _order_regions(node: Node, written: set[int]) -> None:
    before = set(written)
    args: list[Any] = []
    for arg in args_of(node):
        if isinstance(arg, Region):
            side = set(before)
            graph = _ordered(arg.graph, side)
            if node.target is for_loop and _meets_itself(arg.graph, args_of(node)[0]):
                output = next(n for n in graph.nodes if n.op == "output")
                with graph.inserting_before(output):
                    emit(graph, block_barrier, (), None, facts(node).span)
            # It may run any number of times, or not at all.
            written |= side
            arg = dataclasses.replace(arg, graph=graph)
        args.append(arg)
    node.args = tuple(args)


def _meets_itself(body: torch.fx.Graph, axes: Sequence[TileAxis]) -> bool:
    """Whether an iteration reads what an earlier one wrote, as far as subscripts tell."""
    touched: dict[int, list[Node]] = {}
    for node in nodes_within(body):
        if _reads(node) or _writes(node):
            touched.setdefault(_storage(node), []).append(node)
    for nodes in touched.values():
        if not any(_writes(n) for n in nodes) or not any(_reads(n) for n in nodes):
            continue
        items = [tuple(args_of(n)[1]) for n in nodes]
        own = {i.axis for i in items[0] if isinstance(i, TileItem)}
        if any(i != items[0] for i in items) or own.isdisjoint(axes):
            return True
    return False


def _storage(node: Node) -> int:
    target = args_of(node)[0]
    assert isinstance(target, HostTensor)
    return target.fake.untyped_storage()._cdata  # pyright: ignore[reportPrivateUsage]


def _reads(node: Node) -> bool:
    return node.target is memory.load or node.target in ATOMICS


def _writes(node: Node) -> bool:
    return node.target is memory.store or node.target in ATOMICS
