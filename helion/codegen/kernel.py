"""One Triton kernel under construction: parameters, names, axes, and the lowering context."""

from __future__ import annotations

import dataclasses
import functools
import linecache
import math
import os
import re
from typing import TYPE_CHECKING, Any

import sympy
import torch

from helion.codegen import expression as ex
from helion.codegen.expression import Expression
from helion.codegen.lanes import lanes_in
from helion.codegen.names import Block, Names
from helion.codegen.parameters import Parameter
from helion.codegen.wide import numbers_in_seeds
from helion.ir.control import nodes_within
from helion.ir.graph import Node, facts, value_of
from helion.ir.scalars import ScalarPrinter, SignedPrinter
from helion.ir.symbols import (
    AxisNumber,
    BlockSymbol,
    DeviceNumber,
    HostNumber,
    HostSize,
    expr_of,
    is_number,
    kind_of,
    known_int,
)
from helion.ir.tiles import HostTensor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from helion.codegen.choices import Choices
    from helion.codegen.flat import FlatTile
    from helion.codegen.lanes import Lanes
    from helion.exc import Span
    from helion.ir.graph import DeviceProgram
    from helion.ir.tiles import BlockSize, TileAxis


@dataclasses.dataclass
class AxisNames:
    """What a loop's axis is called in the kernel; parts are emitted when first needed.

    Attributes:
        prelude: the block at the head of the loop's body that they are emitted into.
        begin: text of the tile's first index, or of the scalar index of a grid axis.
        low: text of the range's begin.
        high: text of the range's end.
    """

    axis: TileAxis
    prelude: Block
    begin: str
    low: str
    high: str
    index: str | None = None
    mask: str | None = None
    end: str | None = None


class Kernel:
    """State of one kernel: what lowerings read from and write to."""

    def __init__(
        self,
        program: DeviceProgram,
        blocks: Mapping[BlockSize, int],
        host_numbers: Mapping[Any, str],
        index_dtype: torch.dtype,
        names: Names,
        choices: Choices,
    ) -> None:
        self.program = program
        self.choices = choices
        self.blocks = blocks
        self.host_numbers = host_numbers
        self.index_dtype = index_dtype
        self.names = names
        self.parameters: dict[str, Parameter] = {}
        self.axes: dict[TileAxis, AxisNames] = {}
        self.expressions: dict[Node, Expression] = {}
        self.results: dict[Node, list[Expression]] = {}
        # Nodes that a variable was made for, and no other node shares.
        self.variables: set[Node] = set()
        self.device_numbers: dict[DeviceNumber, str] = {}
        self.head = Block()
        self.body = Block()
        self._whole: dict[Any, tuple[Expression, Expression | None]] = {}
        self.arguments: list[str] = []
        # Arguments whose name the host part binds again, and what keeps those that are needed.
        self.rebound: set[str] = set()
        self.kept: dict[str, str] = {}
        self.origin_lines = True
        self.dot_precision = "tf32"
        self._bounds: dict[Any, str] = {}
        self._shared: dict[str, tuple[str, Block]] = {}
        self.indexing: frozenset[str] = frozenset()
        self.flat: FlatTile | None = None
        self._lanes = lanes_in(program)
        self._in_seeds = numbers_in_seeds(program)
        floats = ex.TRITON_DTYPES[self.float_dtype]
        self._printer = ScalarPrinter(self._symbol, on_device=True, floats=floats)
        self._wide_printer = ScalarPrinter(self._wide_symbol, on_device=True, floats=floats)

    @functools.cached_property
    def float_dtype(self) -> torch.dtype:
        """The dtype of run-time floats: float64 in a kernel that computes anything in float64."""
        nodes = (n for loop in self.program.loops for n in nodes_within(loop.graph))
        values = (value_of(n) for n in nodes if n.op == "call_function")
        tensors = (v for v in values if isinstance(v, torch.Tensor))
        return torch.float64 if any(t.dtype is torch.float64 for t in tensors) else torch.float32

    @property
    def wide_index(self) -> bool:
        """Whether indices are 64 bits wide."""
        return self.index_dtype is torch.int64

    def origin(self, span: Span) -> None:
        """A comment that shows the author's line, if the author wants such."""
        if not self.origin_lines:
            return
        text = linecache.getline(span.filename, span.line).strip()
        name = os.path.basename(span.filename)  # noqa: PTH119 - a Path for each line is slow
        self.body.comment(f"src[{name}:{span.line}]: {text}")

    # -- parameters ------------------------------------------------------------------------------

    def parameter(
        self,
        wish: str,
        host: str,
        constexpr: bool = False,
        is_tensor: bool = False,
        wide: bool = False,
        double: bool = False,
    ) -> str:
        """The parameter that carries a host expression."""
        key = f"{host}:{constexpr}:{wide}"
        if key not in self.parameters:
            name = self.names.fresh(wish)
            self.parameters[key] = Parameter(name, host, constexpr, is_tensor, wide, double)
        return self.parameters[key].name

    def tensor(self, tensor: HostTensor) -> str:
        """The parameter that carries a tensor's address."""
        return self.parameter(tensor.text, tensor.text, is_tensor=True)

    # -- numbers and sizes -----------------------------------------------------------------------

    def number(self, value: Any) -> Expression:
        """A scalar: a literal, a parameter, or an expression of these."""
        if isinstance(value, Node):
            return self.operand(value)
        if not is_number(value):
            raise TypeError(f"not a number: {value!r}")
        if isinstance(value, (bool, int, float)):
            return ex.literal(value)
        expr = expr_of(value)
        kind = kind_of(value)
        if expr.is_number and kind is int:
            return ex.literal(int(expr))
        if expr.is_number and kind is float:
            return ex.literal(float(expr))
        dtype = {int: self.index_dtype, float: self.float_dtype, bool: torch.bool}[kind]
        if kind is int and self._in_seeds.intersection(self.program.symbols.origins_in(value)):
            dtype = torch.int64
        host = self.host_numbers.get((expr, kind))
        if host is not None:
            return Expression(self._number(host, kind), dtype)
        compound = not isinstance(expr, sympy.Symbol)
        wide = kind is int and self.wide_index and compound
        text = (self._wide_printer if wide else self._printer).doprint(expr)
        atomic = not compound or (text.startswith("tl.") and not wide)
        return Expression(text, dtype, (), ex.ATOM if atomic else ex.COMPARE)

    def wide_number(self, value: Any) -> Expression:
        """An int expression modulo 2**64: every leaf is widened before the arithmetic.

        What wrapped in int32 cannot be repaired afterwards.
        """
        expr = expr_of(value).replace(lambda e: e.is_Integer, lambda e: sympy.Integer(_wrap64(e)))
        if expr.is_Integer:
            return ex.literal(int(expr))  # pyright: ignore[reportArgumentType]
        host = self.host_numbers.get((expr_of(value), int))
        if host is not None:
            return Expression(self.parameter(host, host, wide=True), torch.int64)

        def widened(symbol: sympy.Symbol) -> str:
            origin = self.program.symbols.origins[symbol]
            if isinstance(origin, HostNumber):
                text = self._given(origin.text)
                return self.parameter(text, text, wide=True)
            return f"tl.cast({self._symbol(symbol)}, tl.int64)"

        text = SignedPrinter(widened, on_device=True).doprint(expr)
        binds = ex.ATOM if isinstance(expr, sympy.Symbol) else ex.COMPARE
        return Expression(text, torch.int64, (), binds)

    def _number(self, host: str, kind: type) -> str:
        """The parameter that carries a number of the host."""
        double = kind is float and self.float_dtype is torch.float64
        return self.parameter(host, host, double=double)

    def _wide_symbol(self, symbol: sympy.Symbol) -> str:
        """A number of the host, widened: Triton passes each in 32 bits if its own value fits."""
        text = self._symbol(symbol)
        of_host = isinstance(self.program.symbols.origins[symbol], (HostNumber, HostSize))
        return f"tl.cast({text}, tl.int64)" if of_host else text

    def _symbol(self, symbol: sympy.Symbol) -> str:
        origin = self.program.symbols.origins[symbol]
        if isinstance(origin, HostNumber):
            return self._number(self._given(origin.text), origin.kind)
        if isinstance(origin, HostSize):
            known = self.host_numbers.get((symbol, int))
            if known is not None:
                return self.parameter(known, known)
            return self.parameter(origin.name, self._of_argument(origin))
        if isinstance(origin, BlockSymbol):
            return self.block_name(origin.block)
        if isinstance(origin, AxisNumber):
            return self._axis_number(origin)
        assert isinstance(origin, DeviceNumber)
        return self.device_numbers[origin]

    def block_name(self, block: BlockSize) -> str:
        """The constant that holds a block size."""
        if block.position is None:
            assert block.fixed is not None
            host = self.host_text(block.fixed)
            return self.parameter(f"_BLOCK_{block.name.upper()}", host, constexpr=True)
        name = f"_BLOCK_SIZE_{block.position}"
        return self.parameter(name, name, constexpr=True)

    def host_text(self, value: Any) -> str:
        """A number as the host computes it."""
        known = self.host_numbers.get((expr_of(value), kind_of(value)))
        if known is not None:
            return known
        return ScalarPrinter(self._host_symbol, on_device=False).doprint(expr_of(value))

    def _host_symbol(self, symbol: sympy.Symbol) -> str:
        origin = self.program.symbols.origins[symbol]
        if isinstance(origin, HostNumber):
            return self._given(origin.text)
        if isinstance(origin, HostSize):
            known = self.host_numbers.get((symbol, int))
            return known or self._of_argument(origin)
        assert isinstance(origin, BlockSymbol), origin
        block = origin.block
        if block.position is not None:
            return f"_BLOCK_SIZE_{block.position}"
        return self.host_text(block.fixed)

    def _of_argument(self, origin: HostSize) -> str:
        """A size or stride of an argument."""
        return f"{self._given(origin.text)}.{origin.what}({origin.dim})"

    def _given(self, text: str) -> str:
        """What reaches an argument, or a part of it, whatever its name means at the launch."""
        name = re.split(r"[.\[]", text)[0]
        if name in self.rebound:
            return self.kept.setdefault(name, f"_{name}_given") + text[len(name) :]
        return text

    def _axis_number(self, number: AxisNumber) -> str:
        names = self.axes[number.axis]
        if number.what in ("begin", "index"):
            return names.begin
        block = self.size_text(number.axis.size)
        if number.what == "id":
            return f"({names.begin} // {ex.operand(block)})"
        if number.what == "count":
            return f"tl.cdiv({names.high} - {ex.operand(names.low)}, {block})"
        if names.end is None:
            names.end = self.names.fresh(f"{number.axis.name}_end")
            text = f"tl.minimum({names.begin} + {block}, {names.high})"
            names.prelude.line(f"{names.end} = {text}")
        return names.end

    def known_size(self, size: Any) -> int | None:
        """The number of elements that a dimension has in this config, if known."""
        value = known_int(size)
        if value is not None:
            return value
        origin = self.program.symbols.origin(size)
        if isinstance(origin, BlockSymbol):
            return self.blocks.get(origin.block, known_int(origin.block.fixed))
        return None

    def size_text(self, size: Any) -> str:
        """The length of a dimension in Triton: a power of two that covers it."""
        value = known_int(size)
        if value is not None:
            return str(_next_power_of_2(value))
        origins = self.program.symbols.origins_in(size)
        if all(isinstance(o, BlockSymbol) for o in origins):
            return self.number(size).text
        text = self.host_text(size)
        return self.parameter("_SIZE", f"triton.next_power_of_2({text})", constexpr=True)

    def shape_text(self, sizes: Sequence[Any]) -> str:
        """A shape as Triton reads it, without its brackets."""
        if self.flat is not None:
            return " * ".join(self.size_text(a.size) for a in self.flat.axes)
        return ", ".join(self.size_text(s) for s in sizes)

    def bound_text(self, value: Any) -> str:
        """A bound of a range: a number, a value of the program, or a tensor that holds it."""
        if isinstance(value, HostTensor):
            if value not in self._bounds:
                self._bounds[value] = name = self.names.fresh(f"{value.text}_value")
                loaded = Expression(f"tl.load({self.tensor(value)})", value.fake.dtype)
                self.head.line(f"{name} = {ex.cast(loaded, self.index_dtype).text}")
            return self._bounds[value]
        bound = self.operand(value)
        if bound.dtype not in (None, self.index_dtype) and not is_number(value):
            bound = ex.cast(bound, self.index_dtype)
        return bound.text

    def step_text(self, axis: TileAxis) -> str:
        """What lies between two begins of a loop."""
        return self.size_text(axis.size) if axis.block else self.number(axis.step).text

    # -- axes ------------------------------------------------------------------------------------

    def tile_index(self, axis: TileAxis) -> Expression:
        """The indices of a tile's elements."""
        if self.flat is not None:
            return self.flat.along(self, axis)
        names = self.axes[axis]
        if names.index is None:
            names.index = self.names.fresh(f"{axis.name}_index")
            size = self.size_text(axis.size)
            names.prelude.line(f"{names.index} = {names.begin} + tl.arange(0, {size})")
        return Expression(names.index, self.index_dtype, (axis.size,))

    def tile_mask(self, axis: TileAxis) -> Expression | None:
        """Which of a tile's elements are inside its range; None if all are, whatever the tile."""
        if self.flat is not None:
            return self.flat.inside()
        if self.covers(axis):
            return None
        names = self.axes[axis]
        if names.mask is None:
            index = self.tile_index(axis).text
            names.mask = self.names.fresh(f"{axis.name}_mask")
            names.prelude.line(f"{names.mask} = {index} < {names.high}")
        return Expression(names.mask, torch.bool, (axis.size,))

    def whole_axis(self, length: Any) -> tuple[Expression, Expression | None]:
        """The indices of an axis that is not tiled, and which of them are inside of it."""
        key = expr_of(length)
        if key not in self._whole:
            self._whole[key] = self._emit_whole_axis(length)
        return self._whole[key]

    def _emit_whole_axis(self, length: Any) -> tuple[Expression, Expression | None]:
        known = known_int(length)
        author = self.host_numbers.get((expr_of(length), int))
        base = author if author is not None and author.isidentifier() else "axis"
        index = self.names.fresh(f"{base}_index" if known is None else f"index_{known}")
        dtype = self.index_dtype
        text = f"tl.arange(0, {self.size_text(length)})"
        self.head.line(f"{index} = {text}{'.to(tl.int64)' if self.wide_index else ''}")
        row = Expression(index, dtype, (length,))
        blocks = all(isinstance(o, BlockSymbol) for o in self.program.symbols.origins_in(length))
        if blocks and (known is None or _next_power_of_2(known) == known):
            return row, None
        mask = self.names.fresh(f"{base}_mask" if known is None else f"mask_{known}")
        self.head.line(f"{mask} = {index} < {self.number(length).text}")
        return row, Expression(mask, torch.bool, (length,))

    def tile_length(self, axis: TileAxis) -> Expression:
        """The number of a tile's elements inside its range; less than the block's in the last."""
        if axis not in self.axes or self.covers(axis):
            return self.number(axis.size)
        end = self._axis_number(AxisNumber(axis, "end"))
        return Expression(f"({end} - {self.axes[axis].begin})", self.index_dtype)

    def lanes_of(self, value: Any) -> Lanes:
        """The bounds that the lanes of a value have, for each of its dimensions."""
        return self._lanes[value] if isinstance(value, Node) else ()

    def product_text(self, sizes: Sequence[Any]) -> str:
        """The length of the block that blocks of these sizes make together."""
        texts = [self.size_text(s) for s in sizes]
        known = math.prod(int(t) for t in texts if t.isdigit())
        others = [t if t.isidentifier() else f"({t})" for t in texts if not t.isdigit()]
        return " * ".join([str(known), *others] if known != 1 or not others else others)

    def place(self, value: Expression, width: int, at: int, rank: int) -> Expression:
        """A block of `width` dimensions as dimensions `at` and on of `rank` ones."""
        if rank == width or not value.shape or self.flat is not None:
            return value
        text = ", ".join(":" if at <= d < at + width else "None" for d in range(rank))
        shape = tuple(value.shape[d - at] if at <= d < at + width else 1 for d in range(rank))
        return Expression(f"{value.within(ex.ATOM)}[{text}]", value.dtype, shape)

    def covers(self, axis: TileAxis) -> bool:
        """Whether the tiles of an axis are known to fill it, so that nothing is masked."""
        block = self.known_size(axis.size)
        if block == 1:
            return True
        if not is_number(axis.begin) or not is_number(axis.end) or block is None:
            return False
        begin, end = known_int(axis.begin), known_int(axis.end)
        if begin is not None and end is not None:
            return (end - begin) % block == 0
        return self._is_multiple(axis.begin, block) and self._is_multiple(axis.end, block)

    def _is_multiple(self, bound: Any, block: int) -> bool:
        """Whether a bound, such as that of another tile, is known to be a multiple of a size."""
        known = known_int(bound)
        if known is not None:
            return known % block == 0
        origin = self.program.symbols.origin(bound)
        if not isinstance(origin, AxisNumber) or origin.what not in ("begin", "end"):
            return False
        outer = origin.axis
        parts = [outer.begin, self.known_size(outer.size)]
        if origin.what == "end":
            parts.append(outer.end)
        return all(p is not None and is_number(p) and self._is_multiple(p, block) for p in parts)

    # -- values ----------------------------------------------------------------------------------

    def operand(self, value: Any) -> Expression:
        """A node's expression, or a number's."""
        return self.expressions[value] if isinstance(value, Node) else self.number(value)

    def unsqueeze(self, value: Expression, dim: int, rank: int) -> Expression:
        """A row of values along one of several dimensions: `[None, :, None]`."""
        return self.place(value, 1, dim, rank)

    def broadcast(self, value: Expression, sizes: Sequence[Any]) -> Expression:
        """The value in its full shape, where an operation needs it."""
        if len(value.shape) == len(sizes) and all(
            known_int(s) == 1 or known_int(p) != 1 for p, s in zip(value.shape, sizes, strict=True)
        ):
            return value
        if not sizes or (value.shape and self.flat is not None):
            return value
        shape = self.shape_text(sizes)
        if value.dtype is None:
            raise TypeError("a literal has no dtype to broadcast")
        text = (
            value.text
            if value.shape
            else f"tl.full([], {value.text}, {ex.TRITON_DTYPES[value.dtype]})"
        )
        return Expression(f"tl.broadcast_to({text}, [{shape}])", value.dtype, tuple(sizes))

    def bind(self, node: Node, value: Expression, wish: str) -> Expression:
        """Give a value a name, and emit the assignment."""
        name = self.names.fresh(facts(node).name or wish)
        self.body.line(f"{name} = {value.text}")
        self.variables.add(node)
        return dataclasses.replace(value, text=name, binds=ex.ATOM)

    def shared(self, value: Expression, wish: str) -> Expression:
        """A name for an offset or mask of several dimensions, the same wherever it is used."""
        if len(value.shape) < 2 or value.binds == ex.ATOM:
            return value
        name, block = self._shared.get(value.text, ("", None))
        if block is None or not self.body.is_inside(block):
            name = self.names.fresh(wish)
            self.body.line(f"{name} = {value.text}")
            self._shared[value.text] = (name, self.body)
        return dataclasses.replace(value, text=name, binds=ex.ATOM)

    def dtype_of(self, node: Any) -> torch.dtype:
        """The dtype that the device IR gives a node's tensor."""
        return value_of(node).dtype


def _next_power_of_2(value: int) -> int:
    return 1 << (value - 1).bit_length() if value > 1 else 1


def _wrap64(value: Any) -> int:
    return (int(value) + 2**63) % 2**64 - 2**63
