"""Remove what nobody reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helion.ir.control import CONTROL_FLOW, Region
from helion.ir.graph import copy_graph, value_of

if TYPE_CHECKING:
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
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and not node.users and not has_effect(node):
            graph.erase_node(node)
    return graph


def has_effect(node: torch.fx.Node) -> bool:
    """Whether a node does something beside computing a value: it stores, or holds one that does."""
    if node.target in CONTROL_FLOW:
        regions = [a for a in node.args if isinstance(a, Region)]
        return any(has_effect(n) for r in regions for n in r.graph.nodes)
    # An operation of the language says so itself; what computes no value is there for its effect.
    effect = getattr(node.target, "has_effect", False)
    return node.op == "call_function" and (effect or value_of(node) is None)
