"""Drop narrowing round trips between fused operations."""

from __future__ import annotations

from typing import Any

import torch

from helion.ir.graph import Node, args_of, calls, copy_graph, facts, in_dtype, set_facts, value_of

prims = torch.ops.prims
_CONVERT = prims.convert_element_type.default
_NARROW = (torch.float16, torch.bfloat16)

_NUMBERS = (prims.scalar_tensor.default, torch.ops.aten.scalar_tensor.default)

# These move or choose elements, so that it is the same to round before or after them.
_MOVES = frozenset(
    {
        prims.broadcast_in_dim.default,
        prims.clone.default,
        prims.reshape.default,
        prims.transpose.default,
        prims.view_of.default,
        prims.where.default,
    }
)


def drop_narrowing(graph: torch.fx.Graph) -> torch.fx.Graph:
    """Keep float32 between operations whose half-precision result is widened again.

    before:  %b: bf16[tile] = convert_element_type(%a, bfloat16)      %a: f32[tile]
             %c: bf16[tile, 1] = broadcast_in_dim(%b, ...)
             %d: f32[tile, 1] = convert_element_type(%c, float32)
             %e: f32[tile, 1] = exp(%d)
    after:   %c: f32[tile, 1] = broadcast_in_dim(%a, ...)
             %e: f32[tile, 1] = exp(%c)

    What is stored is still rounded, once. fp8 is left alone: its range is so small that the round
    trip is what the author means by it.
    """
    graph = copy_graph(graph)
    for widen in calls(graph, _CONVERT):
        (narrow, *_) = args_of(widen)
        if value_of(widen).dtype is not torch.float32 or not _comes_from_wide(narrow):
            continue
        with graph.inserting_before(widen):
            widen.replace_all_uses_with(_unrounded(graph, narrow, {}))
        graph.erase_node(widen)
        _erase_unread(graph, narrow)
    return graph


def _comes_from_wide(value: Any) -> bool:
    """Whether a half-precision value is float32 that was rounded, and perhaps moved since."""
    if not isinstance(value, Node) or value_of(value).dtype not in _NARROW:
        return False
    if value.target is _CONVERT:
        return value_of(args_of(value)[0]).dtype is torch.float32
    if value.target in _NUMBERS:
        return True
    moved = _moved(value)
    return bool(moved) and all(_comes_from_wide(m) for m in moved)


def _moved(node: Node) -> list[Node]:
    """The operands of a move whose elements its result has."""
    if node.target not in _MOVES:
        return []
    operands = args_of(node)[1:] if node.target is prims.where.default else args_of(node)[:1]
    return [o for o in operands if isinstance(o, Node)]


def _unrounded(graph: torch.fx.Graph, node: Node, done: dict[Node, Node]) -> Node:
    """The float32 value that a half-precision one would be without its rounding."""
    if node not in done:
        if node.target is _CONVERT:
            wide = args_of(node)[0]
        else:
            for operand in _moved(node):
                _unrounded(graph, operand, done)
            wide = graph.node_copy(node, lambda n: done.get(n, n))
            set_facts(wide, value=in_dtype(value_of(node), torch.float32))
        if facts(wide).name is None:
            set_facts(wide, name=facts(node).name)
        done[node] = wide
    return done[node]


def _erase_unread(graph: torch.fx.Graph, node: Node) -> None:
    if not node.users:
        operands = node.all_input_nodes if node.target in _MOVES else []
        graph.erase_node(node)
        for operand in operands:
            _erase_unread(graph, operand)
