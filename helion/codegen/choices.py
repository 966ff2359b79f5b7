"""What a config says of each place in a program: a loop, an axis, a load."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

from helion.ir.control import all_loops, is_flattenable, loop_axes
from helion.ir.symbols import known_int

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from helion.ir.graph import DeviceProgram
    from helion.ir.tiles import TileAxis


class Choices:
    """A complete config, asked by place.

    Args:
        config: the config; every list has an entry for each of its places.
        program: the program as the author wrote it: lists follow its source order.
        warp_specialize: whether the hardware and the author's settings allow it.
    """

    def __init__(
        self, config: Mapping[str, Any], program: DeviceProgram, warp_specialize: bool
    ) -> None:
        self.config = config
        self._warp_specialize = warp_specialize
        loops = all_loops(program)
        self._inner = loop_axes(program)
        self._several = [loop.axes[0] for loop in loops if len(loop.axes) > 1]
        self._flattenable = [loop.axes[0] for loop in loops if is_flattenable(loop)]
        self._asked: collections.Counter[str] = collections.Counter()

    def next(self, key: str, default: Any) -> Any:
        """The entry for the next place of this kind, in order of execution."""
        place = self._asked[key]
        self._asked[key] += 1
        entries = self.config[key]
        return entries[place] if place < len(entries) else default

    def loop_order(self, axes: Sequence[TileAxis]) -> tuple[int, ...]:
        """The axes of a loop from the outermost to the innermost."""
        if len(axes) < 2:
            return tuple(range(len(axes)))
        return tuple(self.config["loop_orders"][self._several.index(axes[0])])

    def is_flat(self, axes: Sequence[TileAxis]) -> bool:
        """Whether the axes of a loop are to be one row of indices."""
        wishes = zip(self._flattenable, self.config["flatten_loops"], strict=True)
        return any(first is axes[0] and wish for first, wish in wishes)

    def loop_text(self, axis: TileAxis, bounds: Sequence[str]) -> str:
        """What the loop over an axis runs over; one that the author did not write is plain."""
        if axis not in self._inner:
            return f"tl.range({', '.join(bounds)})"
        unrollable = [a for a in self._inner if is_unrollable(a)]
        if axis in unrollable and self.config["static_ranges"][unrollable.index(axis)]:
            return f"tl.static_range({', '.join(bounds)})"
        return self.range_text(self._inner.index(axis) + 1, bounds)

    def range_text(self, position: int, bounds: Sequence[str]) -> str:
        """`tl.range(...)` with its options; position 0 is the loop of a persistent program."""
        options: dict[str, Any] = {
            "num_stages": self.config["range_num_stages"][position] or None,
            "loop_unroll_factor": self.config["range_unroll_factors"][position] or None,
            "flatten": self.config["range_flattens"][position],
            "warp_specialize": self._specializes_warps(position) or None,
        }
        multi_buffer = self.config["range_multi_buffers"][position]
        if multi_buffer is not None:
            options["disallow_acc_multi_buffer"] = not multi_buffer
        texts = [f"{name}={value}" for name, value in options.items() if value is not None]
        return f"tl.range({', '.join([*bounds, *texts])})"

    def _specializes_warps(self, position: int) -> bool:
        # Triton allows it for one loop of a kernel.
        wishes = self.config["range_warp_specializes"]
        return self._warp_specialize and True in wishes and wishes.index(True) == position


def is_unrollable(axis: TileAxis) -> bool:
    """Whether a loop may be unrolled: at most 8 steps, known at compile time."""
    begin, end = known_int(axis.begin), known_int(axis.end)
    step = known_int(axis.size if axis.block is not None else axis.step)
    if begin is None or end is None or step is None:
        return False
    return end - begin <= 8 * step
