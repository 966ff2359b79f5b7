"""The device IR as text: one node a line with its type, and the author's line at the end.

    grid tile in tiles(n):                             # 9 | for tile in hl.tile(n):
        %rand: f32[tile] = rand([tile], seed)          # 10 | keep = hl.rand([tile], seed) >= p
        %keep: bool[tile] = ge(%rand, p)               # 10
        store(out, [tile], %keep)                      # 11 | out[tile] = keep

A value has the author's name where it has one, else the name of its operation; sizes and run-time
numbers are in the author's names too. The text says nothing that differs from run to run.
"""

from __future__ import annotations

import dataclasses
import linecache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import torch

from helion.ir.control import Region, for_loop, getitem, if_else
from helion.ir.graph import Node, args_of, facts, value_of
from helion.ir.scalars import ScalarPrinter
from helion.ir.symbols import (
    AxisNumber,
    BlockSymbol,
    DeviceNumber,
    HostNumber,
    HostSize,
    Number,
    expr_of,
    is_number,
    kind_of,
    known_int,
    same,
)
from helion.ir.tiles import HostTensor, SliceItem, TileAxis, TileItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import sympy

    from helion.exc import Span
    from helion.ir.graph import DeviceProgram
    from helion.ir.symbols import Origin, Symbols

_SHORT = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8e4m3",
    torch.float8_e5m2: "f8e5m2",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.bool: "bool",
}


@runtime_checkable
class HasText(Protocol):
    """An argument of an operation of the language that knows how it prints."""

    def ir_text(self, show: Callable[[Any], str]) -> str:
        """The text, made of the texts of its parts."""
        ...


# Values of these occur often enough to deserve a short name.
_WISHES = {
    "convert_element_type": "cast",
    "scalar_tensor": "scalar",
    "broadcast_in_dim": "broadcast",
}

# Longer lines push their own comment to the right, not everybody's.
_WIDEST = 76


def dtype_name(dtype: torch.dtype) -> str:
    """A dtype in a few letters: f32, bf16, i64, bool."""
    return _SHORT.get(dtype, str(dtype).removeprefix("torch."))


@dataclasses.dataclass(frozen=True)
class ValuePrinter:
    """Prints numbers, sizes and tensors in the author's names.

    Attributes:
        symbols: the symbols of the kernel.
        names: the host expression that holds a number, by (expression, kind).
        device_names: what the numbers are called that change on the device.
    """

    symbols: Symbols
    names: Mapping[Any, str] = dataclasses.field(default_factory=dict[Any, str])
    device_names: dict[DeviceNumber, str] = dataclasses.field(default_factory=dict)

    def number(self, value: Any) -> str:
        """A number: the author's name for it, or an expression of these; `?` for anything else."""
        if not is_number(value):
            return "?"
        if isinstance(value, (bool, int, float)):
            return repr(value)
        known = self.names.get((expr_of(value), kind_of(value)))
        return known if known is not None else self.expression(value)

    def expression(self, value: Any) -> str:
        """A number as an expression of other numbers."""
        return ScalarPrinter(self._symbol, on_device=False).doprint(expr_of(value))

    def definition(self, value: Any) -> str:
        """A number as an expression of what the kernel was called with."""
        return dataclasses.replace(self, names={}).expression(value)

    def sizes(self, values: Iterable[Any]) -> str:
        """Sizes: `[tile, 128]`."""
        return f"[{', '.join(self.number(v) for v in values)}]"

    def tensor(self, value: torch.Tensor) -> str:
        """Dtype and sizes: `f32[tile, 128]`."""
        return f"{dtype_name(value.dtype)}{self.sizes(value.shape)}"

    def axis(self, axis: TileAxis, begin: Any, end: Any) -> str:
        """What a loop runs over: `tiles(n)`, `tiles(begin, end, block)`, `range(n)`."""
        bounds = [end] if begin == "0" else [begin, end]
        if axis.block is None:
            step = self.number(axis.step)
            bounds = bounds if step == "1" else [begin, end, step]
            return f"range({', '.join(bounds)})"
        # A block size of the tile's own has the tile's name.
        size = self.number(axis.size)
        bounds = bounds if size == axis.name else [begin, end, size]
        return f"tiles({', '.join(bounds)})"

    def _symbol(self, symbol: sympy.Symbol) -> str:
        known = self.names.get((symbol, int))
        return known if known is not None else self.origin(self.symbols.origins[symbol])

    def origin(self, origin: Origin) -> str:
        """What a symbol stands for."""
        if isinstance(origin, HostNumber):
            return origin.text
        if isinstance(origin, HostSize):
            return f"{origin.text}.{origin.what}({origin.dim})"
        if isinstance(origin, BlockSymbol):
            return origin.block.name
        if isinstance(origin, AxisNumber):
            name = origin.axis.name
            return name if origin.what == "index" else f"{name}.{origin.what}"
        return self.device_names.get(origin, origin.name)


def print_program(program: DeviceProgram, names: Mapping[Any, str]) -> str:
    """The top-level loops of a program.

    Args:
        program: the device part of a kernel.
        names: the host expressions that hold its numbers, by (expression, kind).
    """
    return "\n\n".join(_GraphPrinter(program.symbols, names).loops(program))


class _GraphPrinter:
    """Prints graphs; names go on counting from one loop to the next."""

    def __init__(self, symbols: Symbols, names: Mapping[Any, str]) -> None:
        self._values = ValuePrinter(symbols, names)
        self._nodes: dict[Node, str] = {}
        self._results: dict[Node, list[str]] = {}
        self._taken: set[str] = set()
        self._lines: list[tuple[str, Span | None]] = []

    def loops(self, program: DeviceProgram) -> list[str]:
        """The text of each top-level loop."""
        texts: list[str] = []
        for loop in program.loops:
            self._lines = []
            bounds = [(a.begin, a.end) for a in loop.axes]
            self._line(0, f"grid {self._axes(loop.axes, bounds)}:", loop.span)
            self._graph(loop.graph, 1)
            texts.append(_with_source(self._lines))
        return texts

    def _line(self, depth: int, text: str, span: Span | None = None) -> None:
        self._lines.append(("    " * depth + text, span))

    def _name(self, wish: str) -> str:
        name, count = f"%{wish}", 0
        while name in self._taken:
            count += 1
            name = f"%{wish}_{count}"
        self._taken.add(name)
        return name

    def _typed(self, name: str, value: Any) -> str:
        if is_number(value):
            return f"{name}: {kind_of(value).__name__}"
        return f"{name}: {self._values.tensor(value)}"

    def _define(self, node: Node, wishes: Sequence[str]) -> str:
        """Name the results of a node: the left side of its line, with the types."""
        value = value_of(node)
        if value is None or value == ():
            return ""
        many = isinstance(value, tuple)
        values = list(value) if many else [value]
        results = [self._name(w) for w in wishes]
        for name, result in zip(results, values, strict=True):
            self._note_number(result, name)
        if many:
            self._results[node] = results
        else:
            self._nodes[node] = results[0]
        typed = [self._typed(n, v) for n, v in zip(results, values, strict=True)]
        return f"{', '.join(typed)} = "

    def _note_number(self, value: Any, name: str) -> None:
        """A number that changes on the device is printed as the node that holds it."""
        origin = self._values.symbols.origin(value) if is_number(value) else None
        if isinstance(origin, DeviceNumber):
            self._values.device_names[origin] = name

    # -- nodes -----------------------------------------------------------------------------------

    def _graph(self, graph: torch.fx.Graph, depth: int) -> None:
        for node in graph.nodes:
            if node.op == "output" and args_of(node)[0]:
                self._line(depth, f"yield {', '.join(self._arg(a) for a in args_of(node)[0])}")
            elif node.target is getitem:
                source, index = args_of(node)
                self._nodes[node] = self._results[source][index]
            elif node.target is for_loop:
                self._for(node, depth)
            elif node.target is if_else:
                self._if(node, depth)
            elif node.op == "call_function":
                self._call(node, depth)

    def _call(self, node: Node, depth: int) -> None:
        args = [a for a in args_of(node) if not isinstance(a, (torch.device, torch.layout))]
        # The type on the line says the dtype.
        while args and (args[-1] is None or isinstance(args[-1], torch.dtype)):
            args.pop()
        operation = _operation(node)
        texts = [self._arg(a) for a in args]
        if isinstance(args[0], HostTensor):
            texts[1] = self._index(args[0], args[1])
        text = f"{operation}({', '.join(texts)})"
        left = self._define(node, _wishes(node, operation))
        self._line(depth, left + text, facts(node).span)

    def _for(self, node: Node, depth: int) -> None:
        axes, bounds, region, carried, captured = args_of(node)
        starts = [self._arg(c) for c in carried]
        names = [self._name(n) for n in region.names]
        given = "".join(f", {n} = {s}" for n, s in zip(names, starts, strict=True))
        left = self._define(node, region.names)
        head = f"for {self._axes(axes, bounds)}{given}" if axes else f"while {names[0]}{given}"
        self._line(depth, f"{left}{head}:", facts(node).span)
        self._region(region, [*names, *(self._arg(c) for c in captured)], depth)

    def _if(self, node: Node, depth: int) -> None:
        condition, then, orelse, captured, otherwise = args_of(node)
        left = self._define(node, then.names)
        self._line(depth, f"{left}if {self._arg(condition)}:", facts(node).span)
        self._region(then, [self._arg(c) for c in captured], depth)
        start = len(self._lines)
        self._region(orelse, [self._arg(c) for c in otherwise], depth)
        if len(self._lines) > start:
            self._lines.insert(start, ("    " * depth + "else:", None))

    def _region(self, region: Region, inputs: Sequence[str], depth: int) -> None:
        placeholders = [n for n in region.graph.nodes if n.op == "placeholder"]
        for placeholder, name in zip(placeholders, inputs, strict=True):
            self._nodes[placeholder] = name
            self._note_number(facts(placeholder).value, name)
        self._graph(region.graph, depth + 1)

    def _axes(self, axes: Any, bounds: Any) -> str:
        return ", ".join(
            f"{axis.name} in {self._values.axis(axis, self._arg(begin), self._arg(end))}"
            for axis, (begin, end) in zip(axes, bounds, strict=True)
        )

    # -- arguments -------------------------------------------------------------------------------

    def _arg(self, arg: Any) -> str:
        if isinstance(arg, Node):
            return self._nodes[arg]
        if is_number(arg):
            return self._values.number(arg)
        if isinstance(arg, torch.dtype):
            return dtype_name(arg)
        if isinstance(arg, HostTensor):
            return arg.text
        if isinstance(arg, TileAxis):
            return arg.name
        if isinstance(arg, TileItem):
            return arg.axis.name + self._shift(arg.shift)
        if isinstance(arg, HasText):
            return arg.ir_text(self._arg)
        if isinstance(arg, (tuple, list)):
            return f"[{', '.join(self._arg(a) for a in arg)}]"
        return repr(arg)

    def _shift(self, shift: Any) -> str:
        return "" if known_int(shift) == 0 else f" + {self._arg(shift)}"

    def _index(self, tensor: HostTensor, items: Sequence[Any]) -> str:
        """The index of a load or a store; a slice of a whole axis is `:`."""
        sizes = iter(tensor.fake.shape)
        texts: list[str] = []
        for item in items:
            size = None if item is None else next(sizes)
            is_slice = isinstance(item, SliceItem)
            texts.append(self._slice(item, size) if is_slice else self._arg(item))
        return f"[{', '.join(texts)}]"

    def _slice(self, item: SliceItem, size: Any) -> str:
        if item.step == 1 and known_int(item.start) == 0 and same(item.length, size):
            return ":"
        stop = expr_of(item.start) + expr_of(item.length) * item.step
        step = "" if item.step == 1 else f":{item.step}"
        return f"{self._arg(item.start)}:{self._values.number(Number(stop, int))}{step}"


def _operation(node: Node) -> str:
    """A prim's name, without its overload; an operation's own."""
    target: Any = node.target
    return getattr(target, "_opname", None) or getattr(target, "name", target.__name__)


def _wishes(node: Node, operation: str) -> list[str]:
    """Names for the results of a node: the author's, the loaded tensor's, or the operation's."""
    value = value_of(node)
    wish = _WISHES.get(operation, operation)
    if operation == "load":
        text = args_of(node)[0].text
        wish = text if text.isidentifier() else wish
    if not isinstance(value, tuple):
        return [facts(node).name or wish]
    authors = {u.args[1]: facts(u).name for u in node.users if u.target is getitem}
    return [authors.get(i) or wish for i in range(len(value))]


def _with_source(lines: Sequence[tuple[str, Span | None]]) -> str:
    """Lines with the author's behind them: its number, and its text where it is a new one."""
    width = min(max(len(text) for text, _ in lines), _WIDEST)
    shown: tuple[str, int] | None = None
    result: list[str] = []
    for text, span in lines:
        if span is None:
            result.append(text)
            continue
        place = (span.filename, span.line)
        source = linecache.getline(*place).strip() if place != shown else ""
        note = f"# {span.line} | {source}" if source else f"# {span.line}"
        result.append(f"{text:<{width}}  {note}")
        shown = place
    return "\n".join(result)
