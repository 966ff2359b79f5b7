"""Control flow in device graphs: loops and branches are nodes that hold graphs."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from helion.ir.graph import args_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import torch

    from helion.ir.graph import DeviceProgram
    from helion.ir.tiles import TileAxis


@dataclasses.dataclass(frozen=True, eq=False)
class Region:
    """The body of a loop or the branch of an if.

    Attributes:
        graph: its placeholders take the inputs of the node that holds the region, in order; its
            output is the tuple of results.
        names: the author's variables that the results belong to.
    """

    graph: torch.fx.Graph
    names: tuple[str, ...]

    def __repr__(self) -> str:
        return f"region({', '.join(self.names)})"


def for_loop(
    axes: Sequence[TileAxis],
    bounds: Sequence[tuple[Any, Any]],
    body: Region,
    carried: Sequence[Any],
    captured: Sequence[Any],
) -> Any:
    """Run `body` for each block of the axes, in order; the last axis runs fastest.

    Without axes, run it as long as the first carried variable is true.

    Args:
        axes: what the loop runs over.
        bounds: begin and end of each axis.
        body: takes `carried` and `captured`, gives the next `carried`.
        carried: the variables' values before the loop.
        captured: outer values that the body reads.
    """
    raise AssertionError("a node of the device IR is not called")


def if_else(
    condition: Any, then: Region, orelse: Region, captured: Sequence[Any], otherwise: Sequence[Any]
) -> Any:
    """Run one of two regions.

    Args:
        condition: a bool scalar.
        then: takes `captured`.
        orelse: takes `otherwise`.
        captured: outer values that `then` reads.
        otherwise: outer values that `orelse` reads.
    """
    raise AssertionError("a node of the device IR is not called")


def getitem(values: Sequence[Any], index: int) -> Any:
    """One of several results of a node."""
    return values[index]


CONTROL_FLOW = (for_loop, if_else)


def nodes_within(graph: torch.fx.Graph) -> Iterator[torch.fx.Node]:
    """Every node of a graph and of the regions in it, in source order."""
    for node in graph.nodes:
        yield node
        for region in node.args:
            if isinstance(region, Region):
                yield from nodes_within(region.graph)


@dataclasses.dataclass(frozen=True)
class Loop:
    """A loop of the program: one that becomes the grid, or one inside of programs."""

    axes: tuple[TileAxis, ...]
    is_grid: bool


def all_loops(program: DeviceProgram) -> list[Loop]:
    """Every loop, in source order: the entries of `loop_orders`, for those with several axes."""
    loops: list[Loop] = []
    for top in program.loops:
        loops.append(Loop(top.axes, is_grid=True))
        for node in nodes_within(top.graph):
            if node.target is for_loop and args_of(node)[0]:
                loops.append(Loop(tuple(args_of(node)[0]), is_grid=False))  # noqa: PERF401
    return loops


def is_flattenable(loop: Loop) -> bool:
    """Whether a loop has an entry in `flatten_loops`: tiles of several dimensions."""
    return len(loop.axes) > 1 and all(axis.block is not None for axis in loop.axes)


def loop_axes(program: DeviceProgram) -> list[TileAxis]:
    """The axes of the loops inside of programs, in source order: the entries of `range_*` keys."""
    return [axis for loop in all_loops(program) if not loop.is_grid for axis in loop.axes]
