"""Program ids: which tile of which top-level loop a program works on."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch

from helion.codegen import expression as ex
from helion.codegen.expression import Expression
from helion.codegen.flat import can_flatten, flat_count, open_flat
from helion.codegen.kernel import AxisNames
from helion.ir.symbols import known_int

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from helion.codegen.names import Block
    from helion.codegen.operations import LoweringContext
    from helion.ir.graph import TopLoop
    from helion.ir.tiles import TileAxis


@dataclasses.dataclass(frozen=True)
class GridChoice:
    """How the config maps one top-level loop to program ids.

    Attributes:
        axes: from the slowest to the fastest.
        group: how many tiles of the fastest axis are swept together along the next (L2 reuse).
        is_flat: whether the axes are one row of indices.
    """

    axes: tuple[TileAxis, ...]
    group: int = 1
    is_flat: bool = False


def choices(kernel: LoweringContext) -> list[GridChoice]:
    """What a config says of each top-level loop."""
    told = kernel.choices
    result: list[GridChoice] = []
    for loop in kernel.program.loops:
        axes = tuple(loop.axes[i] for i in told.loop_order(loop.axes))
        group = told.next("l2_groupings", 1) if len(axes) > 1 else 1
        is_flat = told.is_flat(loop.axes) and can_flatten(kernel.program.symbols, loop)
        result.append(GridChoice(axes, group, is_flat))
    return result


def emit_grid(kernel: LoweringContext, lower: Callable[[Any, Any], Any]) -> list[str]:
    """Emit every top-level loop, its statements by `lower`; returns the launch grid as host text.

    The loops' programs are numbered one after the other. With a persistent `pid_type` a fixed
    number of programs goes through these numbers; else each number is a program.
    """
    loops, config = kernel.program.loops, kernel.choices.config
    root = kernel.body
    root.attach(kernel.head, 0)
    chosen = choices(kernel)
    if config["pid_type"] == "xyz":
        axes = chosen[0].axes
        ids = [f"tl.program_id({len(axes) - 1 - place})" for place in range(len(axes))]
        _emit_loop(kernel, loops[0], chosen[0], ids, root, lower)
        kernel.body = root
        return [count_text(kernel, a, host=True) for a in reversed(axes)]
    if config["pid_type"] == "flat":
        grids = [programs_text(kernel, choice, host=True) for choice in chosen]
        pid = "tl.program_id(0)"
        if len(loops) > 1 or any(len(c.axes) > 1 and not c.is_flat for c in chosen):
            pid = kernel.names.fresh("pid")
            root.line(f"{pid} = tl.program_id(0)")
        counts = [kernel.parameter("_PROGRAMS", grid) for grid in grids[:-1]]
        launch, body = [" + ".join(grids)], root
    else:
        counts = [_counted(kernel, choice, root) for choice in chosen]
        pid, body = _persistent(kernel, config, counts, root)
        launch = [_persistent_programs(config)]
    parts = [(body, pid)] if len(loops) == 1 else _branches(kernel, body, counts, len(loops), pid)
    for loop, choice, (inner, own_pid) in zip(loops, chosen, parts, strict=True):
        _emit_loop(kernel, loop, choice, [own_pid], inner, lower)
    kernel.body = root
    return launch


def _emit_loop(
    kernel: LoweringContext,
    loop: TopLoop,
    choice: GridChoice,
    ids: Sequence[str],
    body: Block,
    lower: Callable[[Any, Any], Any],
) -> None:
    """One top-level loop: `ids` is one program id for all its axes, or one for each in order."""
    kernel.body = body
    kernel.origin(loop.span)
    axes = choice.axes
    prelude = body.block()
    kernel.body = body.block()
    if choice.is_flat:
        kernel.flat = open_flat(kernel, axes, ids[0], prelude)
    else:
        if len(ids) != len(axes):
            ids = _split(kernel, axes, choice.group, ids[0], prelude)
        for axis, own in zip(axes, ids, strict=True):
            _begin(kernel, axis, own, prelude)
    lower(kernel, loop.graph)
    kernel.flat = None


# -- how many programs ----------------------------------------------------------------------------


def count_text(kernel: LoweringContext, axis: TileAxis, host: bool) -> str:
    """The number of tiles of an axis, for the host or for the kernel."""
    show = kernel.host_text if host else kernel.bound_text
    length = show(axis.end)
    step = kernel.step_text(axis) if not host else show(_step(axis))
    from_zero = known_int(axis.begin) == 0
    if not from_zero:
        length = f"{length} - {ex.operand(show(axis.begin))}"
    text = length if step == "1" else f"{'_' if host else 'tl.'}cdiv({length}, {step})"
    # A range that ends before it begins has no tiles.
    known = known_int(axis.end) is not None and known_int(axis.begin) is not None
    return f"max({text}, 0)" if host and not from_zero and not known else text


def _step(axis: TileAxis) -> Any:
    return axis.size if axis.block is not None else axis.step


def programs_text(kernel: LoweringContext, choice: GridChoice, host: bool) -> str:
    """The number of tiles of a loop."""
    if choice.is_flat:
        return flat_count(kernel, choice.axes, host)
    counts = [count_text(kernel, a, host) for a in choice.axes]
    if len(counts) == 1:
        return counts[0]
    return " * ".join(c if c.startswith(("tl.", "_cdiv(")) else ex.operand(c) for c in counts)


def _counted(kernel: LoweringContext, choice: GridChoice, body: Block) -> str:
    text = programs_text(kernel, choice, host=False)
    if text.isdigit() or text.isidentifier():
        return text
    name = kernel.names.fresh("tiles")
    body.line(f"{name} = {text}")
    return name


def _persistent_programs(config: Mapping[str, Any]) -> str:
    multiplier = config["num_sm_multiplier"]
    return "_NUM_SM" if multiplier == 1 else f"_NUM_SM * {multiplier}"


def _persistent(
    kernel: LoweringContext, config: Mapping[str, Any], counts: Sequence[str], root: Block
) -> tuple[str, Block]:
    """A loop over the numbers of all tiles that this program works on; its variable and body."""
    total = " + ".join(counts)
    pid = kernel.names.fresh("pid")
    if config["pid_type"] == "persistent_interleaved":
        bounds = ["tl.program_id(0)", total, "tl.num_programs(0)"]
    else:
        share, first = kernel.names.fresh("share"), kernel.names.fresh("first")
        root.line(f"{share} = tl.cdiv({total}, tl.num_programs(0))")
        root.line(f"{first} = tl.program_id(0) * {share}")
        bounds = [first, f"tl.minimum({first} + {share}, {total})"]
    root.line(f"for {pid} in {kernel.choices.range_text(0, bounds)}:")
    return pid, root.block(1)


def _branches(
    kernel: LoweringContext, root: Block, counts: Sequence[str], loops: int, pid: str
) -> list[tuple[Block, str]]:
    """A branch for each loop: its programs are numbered after those of the loops before it."""
    parts: list[tuple[Block, str]] = []
    for i in range(loops):
        first = " - ".join([pid, *counts[:i]])
        if i == loops - 1:
            root.line("else:")
        else:
            root.line(f"{'elif' if i else 'if'} {first} < {counts[i]}:")
        body = root.block(1)
        name = pid if i == 0 else kernel.names.fresh("pid")
        if i > 0:
            body.line(f"{name} = {first}")
        parts.append((body, name))
    return parts


# -- which tile -----------------------------------------------------------------------------------


def _split(
    kernel: LoweringContext, axes: Sequence[TileAxis], group: int, pid: str, body: Block
) -> list[str]:
    """One program id for each axis; the last runs fastest."""
    if len(axes) == 1:
        return [pid]
    # The slowest axis has what is left over, so its length matters only to a group of tiles.
    counted = [axes[1], axes[0]] if group > 1 and len(axes) == 2 else axes[1:]
    counts = {axis: _count(kernel, axis, body) for axis in counted}
    names = [kernel.names.fresh(f"{a.name}_pid") for a in axes]
    place = len(axes) - 1
    if group > 1:
        inner = pid
        if len(axes) > 2:
            area = f"({counts[axes[-2]]} * {counts[axes[-1]]})"
            inner = kernel.names.fresh("inner")
            body.line(f"{inner} = {pid} % {area}")
            rest = names[0] if len(axes) == 3 else kernel.names.fresh("rest")
            body.line(f"{rest} = {pid} // {area}")
            pid = rest
        slow_count, fast_count = counts[axes[-2]], counts[axes[-1]]
        _grouped(kernel, names[-2:], slow_count, fast_count, group, inner, body)
        place -= 2
    for at in range(place, 0, -1):
        body.line(f"{names[at]} = {pid} % {counts[axes[at]]}")
        rest = names[0] if at == 1 else kernel.names.fresh("rest")
        body.line(f"{rest} = {pid} // {counts[axes[at]]}")
        pid = rest
    return names


def _count(kernel: LoweringContext, axis: TileAxis, body: Block) -> str:
    text = count_text(kernel, axis, host=False)
    if text.isdigit():
        return text
    name = kernel.names.fresh(f"{axis.name}_count")
    body.line(f"{name} = {text}")
    return name


def _grouped(
    kernel: LoweringContext,
    names: Sequence[str],
    slow_count: str,
    fast_count: str,
    group: int,
    pid: str,
    body: Block,
) -> None:
    """A group of tiles of the fastest axis sweeps the whole of the next before moving on."""
    first, width = kernel.names.fresh("group_begin"), kernel.names.fresh("group_size")
    body.line(f"{first} = {pid} // ({group} * {slow_count}) * {group}")
    body.line(f"{width} = tl.minimum({fast_count} - {first}, {group})")
    body.line(f"{names[1]} = {first} + {pid} % ({group} * {slow_count}) % {width}")
    body.line(f"{names[0]} = {pid} % ({group} * {slow_count}) // {width}")


def _begin(kernel: LoweringContext, axis: TileAxis, pid: str, body: Block) -> None:
    low, high = kernel.bound_text(axis.begin), kernel.bound_text(axis.end)
    step = kernel.step_text(axis)
    if kernel.wide_index:
        pid = ex.cast(Expression(pid, torch.int32), torch.int64).text
    text = pid if step == "1" else f"{pid} * {ex.operand(step)}"
    if low != "0":
        text = f"{ex.operand(low)} + {text}"
    name = kernel.names.fresh(f"{axis.name}_begin" if axis.block is not None else axis.name)
    body.line(f"{name} = {text}")
    kernel.axes[axis] = AxisNames(axis, body, name, low, high)
