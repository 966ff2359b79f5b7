"""Remove what nobody reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from helion.ir.control import CONTROL_FLOW, Region
from helion.ir.graph import copy_graph, value_of
from helion.ir.symbols import SYMBOLIC, Number, expr_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import sympy
    import torch


def remove_dead_code(graph: torch.fx.Graph) -> torch.fx.Graph:
    """Keep nodes with an effect, and what these need.

    before:  %a = exp(%x)
             %b = neg(%x)
             store(out, [tile], %b)
    after:   %b = neg(%x)
             store(out, [tile], %b)
    """
    graph = copy_graph(graph)
    # A number that a branch or loop changes is read by its symbol, not by an edge of the graph.
    needed: set[sympy.Basic] = set()
    for node in reversed(list(graph.nodes)):
        unread = node.op == "call_function" and not node.users and not has_effect(node)
        if unread and needed.isdisjoint(_symbols(value_of(node))):
            graph.erase_node(node)
        else:
            needed.update(_symbols(node.args))
    return graph


def _symbols(value: Any) -> Iterator[sympy.Basic]:
    """The symbols of every number in a value, or in the arguments of a node and its regions."""
    if isinstance(value, (tuple, list)):
        for item in value:
            yield from _symbols(item)
    elif isinstance(value, Region):
        for node in value.graph.nodes:
            yield from _symbols(node.args)
    elif isinstance(value, (Number, *SYMBOLIC)):
        yield from expr_of(value).free_symbols


def has_effect(node: torch.fx.Node) -> bool:
    """Whether a node does something beside computing a value: it stores, or holds one that does."""
    if node.target in CONTROL_FLOW:
        regions = [a for a in node.args if isinstance(a, Region)]
        return any(has_effect(n) for r in regions for n in r.graph.nodes)
    # An operation of the language says so itself; what computes no value is there for its effect.
    effect = getattr(node.target, "has_effect", False)
    return node.op == "call_function" and (effect or value_of(node) is None)
