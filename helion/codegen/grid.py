"""Program ids: which tile of which top-level loop a program works on."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from helion.codegen import expression as ex
from helion.codegen.kernel import AxisNames
from helion.ir.symbols import is_number, known_int

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from helion.codegen.names import Block
    from helion.codegen.operations import LoweringContext
    from helion.ir.tiles import TileAxis


@dataclasses.dataclass(frozen=True)
class GridChoice:
    """How the config maps one top-level loop to program ids.

    Attributes:
        order: the axes from the slowest to the fastest.
        group: how many tiles of the fastest axis are swept together along the next (L2 reuse).
    """

    order: tuple[int, ...]
    group: int = 1


def count_text(kernel: LoweringContext, axis: TileAxis, host: bool) -> str:
    """The number of tiles of an axis, for the host or for the kernel."""
    show = kernel.host_text if host else (lambda v: kernel.number(v).text)
    if not is_number(axis.begin) or not is_number(axis.end):
        raise TypeError("the bounds of a grid are numbers")
    begin = known_int(axis.begin)
    length = show(axis.end) if begin == 0 else f"{show(axis.end)} - {ex.operand(show(axis.begin))}"
    step = show(axis.size if axis.block is not None else axis.step)
    if step == "1":
        return length
    return f"triton.cdiv({length}, {step})" if host else f"tl.cdiv({length}, {step})"


def grid_text(kernel: LoweringContext, axes: Sequence[TileAxis]) -> str:
    """The number of programs of a loop, computed by the host."""
    counts = [count_text(kernel, a, host=True) for a in axes]
    return " * ".join(
        c
        if len(counts) == 1 or c.startswith("triton") or c.isidentifier() or c.isdigit()
        else f"({c})"
        for c in counts
    )


def emit_program_ids(
    kernel: LoweringContext, axes: Sequence[TileAxis], choice: GridChoice, pid: str, body: Block
) -> None:
    """Take the program id apart, and give each axis its first index."""
    ids = _split(kernel, [axes[i] for i in choice.order], choice.group, pid, body)
    for place, index in enumerate(choice.order):
        _begin(kernel, axes[index], ids[place], body)


def _split(
    kernel: LoweringContext, axes: Sequence[TileAxis], group: int, pid: str, body: Block
) -> list[str]:
    """One program id for each axis; the last runs fastest."""
    if len(axes) == 1:
        return [pid]
    counts: list[str] = []
    for axis in axes[1:]:
        text = count_text(kernel, axis, host=False)
        if not text.isdigit():
            name = kernel.names.fresh(f"{axis.name}_count")
            body.line(f"{name} = {text}")
            text = name
        counts.append(text)
    names = [kernel.names.fresh(f"{a.name}_pid") for a in axes]
    rest = pid
    for place in range(len(axes) - 1, 0, -1):
        if place == 1 and group > 1:
            break
        body.line(f"{names[place]} = {rest} % {counts[place - 1]}")
        quotient = f"{rest} // {counts[place - 1]}"
        rest = names[0] if place == 1 else kernel.names.fresh("rest")
        body.line(f"{rest} = {quotient}")
    if group > 1:
        _grouped(kernel, axes[0], names, counts[0], group, rest, body)
    return names


def _grouped(
    kernel: LoweringContext,
    slow: TileAxis,
    names: list[str],
    fast_count: str,
    group: int,
    pid: str,
    body: Block,
) -> None:
    """A group of tiles of the fastest axis sweeps the whole of the next before moving on."""
    slow_count = kernel.names.fresh(f"{slow.name}_count")
    body.line(f"{slow_count} = {count_text(kernel, slow, host=False)}")
    first, width = kernel.names.fresh("group_begin"), kernel.names.fresh("group_size")
    body.line(f"{first} = {pid} // ({group} * {slow_count}) * {group}")
    body.line(f"{width} = tl.minimum({fast_count} - {first}, {group})")
    body.line(f"{names[1]} = {first} + {pid} % ({group} * {slow_count}) % {width}")
    body.line(f"{names[0]} = {pid} % ({group} * {slow_count}) // {width}")


def _begin(kernel: LoweringContext, axis: TileAxis, pid: str, body: Block) -> None:
    low, high = kernel.number(axis.begin).text, kernel.number(axis.end).text
    step = kernel.size_text(axis.size) if axis.block is not None else kernel.number(axis.step).text
    if kernel.wide_index:
        pid = f"{pid}.to(tl.int64)"
    text = pid if step == "1" else f"{pid} * {ex.operand(step)}"
    if low != "0":
        text = f"{ex.operand(low)} + {text}"
    name = kernel.names.fresh(f"{axis.name}_begin" if axis.block is not None else axis.name)
    body.line(f"{name} = {text}")
    kernel.axes[axis] = AxisNames(axis, body, name, low, high)


def choices(config: Mapping[str, Any], loops: Sequence[Sequence[TileAxis]]) -> list[GridChoice]:
    """What a config says of each top-level loop."""
    result: list[GridChoice] = []
    orders = list(config.get("loop_orders", []))
    groups = list(config.get("l2_groupings", []))
    for axes in loops:
        many = len(axes) > 1
        order = orders.pop(0) if many and orders else list(range(len(axes)))
        group = groups.pop(0) if many and groups else 1
        result.append(GridChoice(tuple(order), group))
    return result
