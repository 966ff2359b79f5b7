"""What holds of every device graph, before and after each pass."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.ir.control import CONTROL_FLOW, Region, for_loop
from helion.ir.graph import Node, args_of, facts, value_of

if TYPE_CHECKING:
    from collections.abc import Sequence

prims = torch.ops.prims


def verify(graph: torch.fx.Graph, name: str) -> None:
    """Check a graph that the pass `name` made; its loops and branches have been checked before.

    - A node reads nodes of its own graph that come before it.
    - Every node has facts, and its value is a fake tensor or number, several of these, or None.
    - A conversion gives the dtype that it says; the operands of arithmetic have one dtype.
    - A region takes what its node passes to it, and gives values of the dtypes that the node has.

    Raises:
        InternalError: one of these does not hold; it names the pass.
    """
    try:
        graph.lint()
        for node in graph.nodes:
            _check(node)
    except (AssertionError, RuntimeError, KeyError) as error:
        wrong = AssertionError(f"the pass `{name}` broke the graph: {error}")
        raise exc.InternalError(original=wrong) from error


def _check(node: Node) -> None:
    if node.op == "output":
        return
    facts(node)
    if node.target is prims.convert_element_type.default:
        said, is_now = args_of(node)[1], value_of(node).dtype
        assert said is is_now, f"%{node} is {is_now}, and says {said}"
    elif node.target in CONTROL_FLOW:
        for region, passed in _regions(node):
            _check_region(node, region, passed)
    elif getattr(node.target, "namespace", "") == "prims":
        _check_operands(node)


def _check_operands(node: Node) -> None:
    # The condition of a choice is bool.
    operands = args_of(node)[1:] if node.target is prims.where.default else args_of(node)
    dtypes = {value_of(a).dtype for a in operands if isinstance(a, Node)}
    assert len(dtypes) <= 1, f"%{node} mixes {', '.join(sorted(map(str, dtypes)))}"


def _regions(node: Node) -> list[tuple[Region, Sequence[Any]]]:
    """The regions of a node, with what it passes to each."""
    if node.target is for_loop:
        _, _, body, carried, captured = args_of(node)
        return [(body, (*carried, *captured))]
    _, then, orelse, captured, otherwise = args_of(node)
    return [(then, captured), (orelse, otherwise)]


def _check_region(node: Node, region: Region, passed: Sequence[Any]) -> None:
    inputs = [n for n in region.graph.nodes if n.op == "placeholder"]
    assert len(inputs) == len(passed), f"%{node} passes {len(passed)} values to {len(inputs)}"
    (output,) = (n for n in region.graph.nodes if n.op == "output")
    for value, result in zip(args_of(output)[0], value_of(node), strict=True):
        given, wanted = _dtype(value), _dtype(result)
        assert given is wanted, f"a region of %{node} gives {given} for {wanted}"


def _dtype(value: Any) -> torch.dtype | None:
    value = value_of(value)
    return value.dtype if isinstance(value, torch.Tensor) else None
