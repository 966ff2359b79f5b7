"""Device graphs: a thin typed layer over `torch.fx.Graph`.

Everything that needs fx's untyped `meta` is in this file; the rest of the compiler asks here.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch

from helion.ir.symbols import freeze

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from helion.exc import Span
    from helion.ir.symbols import Symbols
    from helion.ir.tiles import BlockSize, TileAxis

Node = torch.fx.Node
_KEY = "helion"


@dataclasses.dataclass(frozen=True)
class NodeFacts:
    """What is known of a node.

    Attributes:
        value: what it computes: a fake tensor, a symbolic scalar, a tuple of these, or None.
        span: the author's source that it comes from.
        name: the author's variable that holds it, if any.
    """

    value: Any
    span: Span | None = None
    name: str | None = None


def facts(node: Node) -> NodeFacts:
    """The facts recorded with a node."""
    return node.meta[_KEY]


def set_facts(node: Node, **changes: Any) -> None:
    """Record facts of a node, keeping those that are not named."""
    old = node.meta.get(_KEY)
    node.meta[_KEY] = dataclasses.replace(old, **changes) if old else NodeFacts(**changes)


def args_of(node: Node) -> tuple[Any, ...]:
    """The positional arguments of a node; what each is, its target says."""
    return node.args


def value_of(arg: Any) -> Any:
    """The fake value of a node; any other argument is its own value."""
    return facts(arg).value if isinstance(arg, Node) else arg


def in_dtype(value: Any, dtype: torch.dtype) -> Any:
    """A fake tensor like another, of another dtype."""
    # A compilation may run inside of another, whose mode is then the one on top.
    with value.fake_mode:
        return torch.empty_like(value, dtype=dtype)


@dataclasses.dataclass(frozen=True)
class TopLoop:
    """One top-level loop: its axes become the grid, its graph the body of the kernel."""

    axes: tuple[TileAxis, ...]
    graph: torch.fx.Graph
    span: Span


@dataclasses.dataclass(frozen=True)
class DeviceProgram:
    """The device part of one kernel."""

    loops: tuple[TopLoop, ...]
    blocks: tuple[BlockSize, ...]
    symbols: Symbols

    def map_graphs(self, rewrite: Callable[[torch.fx.Graph], torch.fx.Graph]) -> DeviceProgram:
        """The same program with every top-level graph rewritten."""
        loops = tuple(dataclasses.replace(p, graph=rewrite(p.graph)) for p in self.loops)
        return dataclasses.replace(self, loops=loops)


def emit(
    graph: torch.fx.Graph,
    target: Callable[..., Any],
    args: Sequence[Any],
    value: Any,
    span: Span | None,
) -> Node:
    """Append a call to a graph."""
    node = graph.create_node("call_function", target, _frozen(tuple(args)))
    set_facts(node, value=value, span=span)
    return node


def _frozen(arg: Any) -> Any:
    if isinstance(arg, tuple) and hasattr(arg, "_fields"):
        return type(arg)(*(_frozen(a) for a in arg))
    if isinstance(arg, (tuple, list)):
        return tuple(_frozen(a) for a in arg)
    return freeze(arg)


def copy_graph(graph: torch.fx.Graph) -> torch.fx.Graph:
    """A copy that a pass may edit; facts are carried over."""
    fresh = torch.fx.Graph()
    result = fresh.graph_copy(graph, {})
    if result is not None:
        fresh.output(result)
    return fresh


def calls(graph: torch.fx.Graph, target: Callable[..., Any]) -> Iterator[Node]:
    """Every call of `target`, in order."""
    return (n for n in list(graph.nodes) if n.op == "call_function" and n.target is target)
