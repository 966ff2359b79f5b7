"""Passes: pure functions from graph to graph; the argument is as it was."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import torch

from helion.ir.control import CONTROL_FLOW, Region
from helion.ir.graph import args_of, copy_graph
from helion.ir.passes.dead_code import remove_dead_code
from helion.ir.passes.narrowing import drop_narrowing
from helion.ir.passes.rounding import round_last
from helion.ir.passes.verify import verify

__all__ = ["PASSES", "Pass", "everywhere", "passes_for"]

Pass = Callable[[torch.fx.Graph], torch.fx.Graph]

# In this order.
PASSES: tuple[Pass, ...] = (drop_narrowing, round_last, remove_dead_code)


def passes_for(*, keep_narrowing: bool) -> tuple[Pass, ...]:
    """The passes that the author's settings ask for, in order."""
    return tuple(p for p in PASSES if p is not drop_narrowing or not keep_narrowing)


def everywhere(rewrite: Pass, graph: torch.fx.Graph) -> torch.fx.Graph:
    """Apply a pass to a graph, and to those of its loops and branches.

    The inner graphs go first, so that what a pass takes out of them does not hold on to the rest.

    Raises:
        InternalError: the pass broke the graph.
    """
    graph = copy_graph(graph)
    for node in graph.nodes:
        if node.target in CONTROL_FLOW:
            node.args = tuple(
                dataclasses.replace(a, graph=everywhere(rewrite, a.graph))
                if isinstance(a, Region)
                else a
                for a in args_of(node)
            )
    graph = rewrite(graph)
    verify(graph, rewrite.__name__)
    return graph
