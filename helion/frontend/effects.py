"""What top-level loops do to memory: each has an effect, and none depends on another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch.multiprocessing.reductions import StorageWeakRef

from helion import exc
from helion.ir.control import nodes_within
from helion.ir.graph import args_of, facts
from helion.ir.passes.dead_code import has_effect
from helion.ir.tiles import HostTensor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch

    from helion.ir.graph import Node, TopLoop


def check_loop(loop: TopLoop, earlier: Sequence[TopLoop]) -> None:
    """Whether a loop has an effect, and may run at the same time as the loops before it.

    Raises:
        EmptyDeviceLoopAfterDCE: nothing that the loop computes can be seen outside.
        LoopDependencyError: it uses a tensor that an earlier loop writes.
    """
    if not any(has_effect(node) for node in loop.graph.nodes):
        raise exc.EmptyDeviceLoopAfterDCE(loop.span)
    for before in earlier:
        for written, writer in _tensors(before.graph, written=True):
            for used, user in _tensors(loop.graph, written=False):
                if _overlap(written, used):
                    error = exc.LoopDependencyError(facts(user).span, name=used.text)
                    raise error.with_related(*_written_here(written, writer))


def _written_here(tensor: HostTensor, writer: Node) -> list[exc.Related]:
    span = facts(writer).span
    return [] if span is None else [exc.Related(span, f"an earlier loop writes `{tensor.text}`")]


def _tensors(graph: torch.fx.Graph, *, written: bool) -> Iterator[tuple[HostTensor, Node]]:
    """The host tensors that a graph uses, or only those that it writes, each with the node."""
    for node in nodes_within(graph):
        if node.op != "call_function" or (written and not has_effect(node)):
            continue
        yield from ((a, node) for a in args_of(node) if isinstance(a, HostTensor))


def _overlap(a: HostTensor, b: HostTensor) -> bool:
    """Whether two tensors are known to share elements: both begin at one place of one storage."""
    storages = [StorageWeakRef(t.fake.untyped_storage()) for t in (a, b)]
    return storages[0] == storages[1] and a.fake.storage_offset() == b.fake.storage_offset()
