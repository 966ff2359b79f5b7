"""Passes: pure functions from graph to graph; the argument is as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helion.ir.passes.dead_code import remove_dead_code
from helion.ir.passes.narrowing import drop_narrowing

if TYPE_CHECKING:
    import torch

__all__ = ["run_passes"]


def run_passes(graph: torch.fx.Graph, keep_narrowing: bool) -> torch.fx.Graph:
    """Every pass, in order: drop narrowing round trips, then what nobody reads."""
    if not keep_narrowing:
        graph = drop_narrowing(graph)
    return remove_dead_code(graph)
