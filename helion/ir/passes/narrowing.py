"""Drop narrowing round trips between fused operations."""

from __future__ import annotations

import torch

from helion.ir.graph import calls, copy_graph, value_of

_CONVERT = torch.ops.prims.convert_element_type.default
_NARROW = (torch.float16, torch.bfloat16)


def drop_narrowing(graph: torch.fx.Graph) -> torch.fx.Graph:
    """Keep float32 between operations whose half-precision result is widened at once.

    before:  %b: bf16[tile] = convert_element_type(%a, bfloat16)      %a: f32[tile]
             %c: f32[tile] = convert_element_type(%b, float32)
             %d: f32[tile] = exp(%c)
    after:   %d: f32[tile] = exp(%a)

    What is stored is still rounded, once. fp8 is left alone: its range is so small that the round
    trip is what the author means by it.
    """
    graph = copy_graph(graph)
    for widen in calls(graph, _CONVERT):
        narrow = widen.args[0]
        if not isinstance(narrow, torch.fx.Node) or narrow.target is not _CONVERT:
            continue
        source = narrow.args[0]
        if (
            value_of(narrow).dtype in _NARROW
            and value_of(source).dtype is torch.float32
            and value_of(widen).dtype is torch.float32
        ):
            assert isinstance(source, torch.fx.Node)
            widen.replace_all_uses_with(source)
            graph.erase_node(widen)
            if not narrow.users:
                graph.erase_node(narrow)
    return graph
