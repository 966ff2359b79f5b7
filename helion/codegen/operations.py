"""The lowering context: what the lowering of an operation of the language may ask for."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import torch

from helion.codegen import expression as ex
from helion.codegen.expression import Expression
from helion.codegen.kernel import Kernel
from helion.ir.control import nodes_within
from helion.ir.graph import Node
from helion.ir.symbols import HostNumber, HostSize, expr_of, is_number, known_int
from helion.ir.tiles import HostTensor
from helion.language.random.implicit import CallSeed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.ir.tiles import TileAxis


class LoweringContext(Kernel):
    """A kernel that lowerings can build expressions with; implements `LowerCtx`."""

    def statement(self, text: str) -> None:
        """A statement where the code stands."""
        self.body.line(text)

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

    def sub(self, left: Expression, right: Expression) -> Expression:
        """A difference."""
        return ex.infix("-", left, right, ex.SUM, left.dtype or right.dtype)

    def less(self, left: Expression, right: Expression) -> Expression:
        """`left < right`."""
        return ex.infix("<", left, right, ex.COMPARE, torch.bool)

    def mul(self, left: Expression, right: Expression) -> Expression:
        """A product; multiplying by one is left out."""
        if right.text == "1" or left.text == "0":
            return left
        return ex.infix("*", left, right, ex.PRODUCT, left.dtype or right.dtype)

    def seed(self, value: Any) -> Expression:
        """A seed: a signed 64-bit number, whatever its parts were; `tl.rand` widens literals."""
        if isinstance(value, CallSeed):
            call = self._calls.setdefault(value, len(self._calls))
            return self.launch_number("seed", "draw_seed", call)
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

    def axis_begin(self, tile: TileAxis) -> str:
        """The name of a tile's first index."""
        return self.axes[tile].begin

    def value(
        self, text: str, dtype: torch.dtype, shape: Sequence[Any], loose: bool = False
    ) -> Expression:
        """Triton text as an expression; `loose` if it needs parentheses inside of another."""
        return Expression(text, dtype, tuple(shape), ex.COMPARE if loose else ex.ATOM)

    def assign(self, wishes: Sequence[str], text: str) -> list[str]:
        """Give the results of a piece of Triton text names, and emit the assignment."""
        names = [w if w == "_" else self.names.fresh(w) for w in wishes]
        self.body.line(f"{', '.join(names)} = {text}")
        return names

    def set_results(self, node: Node, values: Sequence[Expression]) -> None:
        """The expressions of a node with several results."""
        self.results[node] = list(values)

    def are_sizes_of_an_argument(self, sizes: Sequence[Any]) -> bool:
        """Whether a tensor argument with 32-bit offsets has as many elements as these sizes."""
        if self.wide_index or not all(is_number(s) for s in sizes):
            return False
        return math.prod(expr_of(s) for s in sizes) in self._element_counts

    @functools.cached_property
    def _calls(self) -> dict[CallSeed, int]:
        """Torch's random calls, numbered as they are lowered."""
        return {}

    @functools.cached_property
    def _element_counts(self) -> set[Any]:
        """How many elements the tensor arguments have; without those that may repeat some."""
        nodes = (n for loop in self.program.loops for n in nodes_within(loop.graph))
        first = (n.args[0] for n in nodes if n.op == "call_function" and n.args)
        tensors = (t for t in first if isinstance(t, HostTensor) and t.text in self.arguments)
        return {expr_of(t.fake.numel()) for t in tensors if t.fake.is_contiguous()}

    def is_host_number(self, value: Any) -> bool:
        """Whether the host can compute a number at the launch."""
        origins = self.program.symbols.origins_in(value)
        return all(isinstance(o, (HostNumber, HostSize)) for o in origins)

    def launch_number(self, wish: str, function: str, *args: Any) -> Expression:
        """A 64-bit number that a function of the launcher makes of host numbers."""
        texts = [self.host_text(a) if is_number(a) else repr(a) for a in args]
        host = f"_{function}({', '.join(texts)})"
        return Expression(self.parameter(wish, host, wide=True), torch.int64)
