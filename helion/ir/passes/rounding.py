"""Round after choosing."""

from __future__ import annotations

from typing import Any

import torch

from helion.ir.graph import Node, args_of, calls, copy_graph, facts, in_dtype, set_facts, value_of

prims = torch.ops.prims
_CONVERT = prims.convert_element_type.default
_WHERE = prims.where.default
_NUMBERS = (prims.scalar_tensor.default, torch.ops.aten.scalar_tensor.default)
_HALF = (torch.float16, torch.bfloat16)


def round_last(graph: torch.fx.Graph) -> torch.fx.Graph:
    """Choose between float32 values before these are rounded; the result is the same.

    before:  %b: bf16[tile] = convert_element_type(%a, bfloat16)      %a: f32[tile]
             %c: bf16[tile] = where(%keep, %b, 0.0)
    after:   %b: f32[tile] = where(%keep, %a, 0.0)
             %c: bf16[tile] = convert_element_type(%b, bfloat16)

    The GPU chooses between registers of 32 bits, and rounds two values at once: in dropout of
    bfloat16 this saves one of 64 instructions for each element.
    """
    graph = copy_graph(graph)
    for chosen in calls(graph, _WHERE):
        condition, *values = args_of(chosen)
        if not all(map(_can_wait, values)) or all(v.target in _NUMBERS for v in values):
            continue
        dtype = value_of(chosen).dtype
        with graph.inserting_before(chosen):
            wide = _call(graph, _WHERE, (condition, *(_wide(graph, v) for v in values)), chosen)
            narrow = _call(graph, _CONVERT, (wide, dtype), chosen)
        set_facts(wide, value=in_dtype(value_of(chosen), torch.float32), name=None)
        chosen.replace_all_uses_with(narrow)
        graph.erase_node(chosen)
        for value in values:
            if not value.users:
                graph.erase_node(value)
    return graph


def _can_wait(value: Any) -> bool:
    """Whether a value is float32 that was rounded for this choice alone, or a number."""
    if not isinstance(value, Node) or value_of(value).dtype not in _HALF:
        return False
    if value.target in _NUMBERS:
        return True
    is_rounded = value.target is _CONVERT and value_of(args_of(value)[0]).dtype is torch.float32
    return is_rounded and len(value.users) == 1


def _wide(graph: torch.fx.Graph, value: Node) -> Node:
    if value.target is _CONVERT:
        wide = args_of(value)[0]
        if facts(wide).name is None:
            set_facts(wide, name=facts(value).name)
        return wide
    number = graph.node_copy(value)
    set_facts(number, value=in_dtype(value_of(value), torch.float32))
    return number


def _call(graph: torch.fx.Graph, target: Any, args: tuple[Any, ...], like: Node) -> Node:
    node = graph.call_function(target, args)
    old = facts(like)
    set_facts(node, value=old.value, span=old.span, name=old.name)
    return node
