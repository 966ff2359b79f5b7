"""Remove what nobody reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from helion.ir.graph import copy_graph

if TYPE_CHECKING:
    from collections.abc import Collection

    import torch


def remove_dead_code(graph: torch.fx.Graph, effects: Collection[Any]) -> torch.fx.Graph:
    """Keep nodes with an effect, and what these need.

    before:  %a = exp(%x)
             %b = neg(%x)
             store(out, [tile], %b)
    after:   %b = neg(%x)
             store(out, [tile], %b)

    Args:
        graph: any device graph.
        effects: the targets that do something: stores, atomics, prints, loops that hold one.
    """
    graph = copy_graph(graph)
    for node in reversed(list(graph.nodes)):
        if node.op == "call_function" and not node.users and node.target not in effects:
            graph.erase_node(node)
    return graph
