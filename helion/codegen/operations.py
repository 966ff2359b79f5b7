"""The lowering context: what the lowering of an operation of the language may ask for."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from helion.codegen import expression as ex
from helion.codegen.kernel import Kernel
from helion.ir.graph import Node
from helion.ir.symbols import is_number, known_int

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.codegen.expression import Expression
    from helion.ir.tiles import TileAxis


class LoweringContext(Kernel):
    """A kernel that lowerings can build expressions with; implements `LowerCtx`."""

    def cast(self, value: Expression, dtype: torch.dtype) -> Expression:
        """The value in another dtype."""
        return ex.cast(value, dtype)

    def call(self, function: str, args: list[Expression], dtype: torch.dtype) -> Expression:
        """A pointwise call."""
        return ex.call(function, args, dtype)

    def add(self, left: Expression, right: Expression) -> Expression:
        """A sum; adding zero is left out."""
        if left.text == "0":
            return right
        if right.text == "0":
            return left
        return ex.infix("+", left, right, ex.SUM, left.dtype or right.dtype)

    def mul(self, left: Expression, right: Expression) -> Expression:
        """A product; multiplying by one is left out."""
        if right.text == "1" or left.text == "0":
            return left
        return ex.infix("*", left, right, ex.PRODUCT, left.dtype or right.dtype)

    def seed(self, value: Any) -> Expression:
        """A seed: a signed 64-bit number, whatever its parts were; `tl.rand` widens literals."""
        return self.operand(value) if isinstance(value, Node) else self.wide_number(value)

    def axis_index(
        self, tile: TileAxis | None, size: Any, dim: int, rank: int, origin: Any, wide: bool
    ) -> Expression:
        """The global index of each element along one axis, as a row in `rank` dimensions."""
        if tile is not None:
            index = self.tile_index(tile) if tile.block is not None else self.number(size)
        elif known_int(size) == 1:
            index = ex.literal(0)
        else:
            index = self.whole_axis(size)[0]
        if wide and index.dtype is torch.int32:
            index = ex.cast(index, torch.int64)
        index = self.place(index, 1, dim, rank)
        if is_number(origin):
            return self.add(index, self.wide_number(origin))
        return self.add(index, ex.cast(self.operand(origin), torch.int64))

    def fits_int32(self, axes: Sequence[Any]) -> bool:
        """Whether every offset is known to be below 2**31, or is an index that int32 holds."""
        if any(not (isinstance(a.origin, int) and a.origin == 0) for a in axes):
            return False
        if len(axes) == 1:
            return True
        ends = [a.tile.end if a.tile is not None else a.size for a in axes[:1]]
        ends += [a.extent for a in axes[1:]]
        known = [known_int(e) if is_number(e) else None for e in ends]
        return None not in known and math.prod(k for k in known if k is not None) <= 2**31
