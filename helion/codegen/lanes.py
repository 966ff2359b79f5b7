"""Which lanes of a block are real: followed from tiles and loads to every value.

A block is padded to powers of two, and the last tile of a range reaches past its end. A size does
not tell which of its lanes are real: two loops may share a block size, and a fixed size of 8 looks
like any other 8. So each dimension of each value carries the bounds that its lanes must be inside.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch

from helion.ir.control import Region, for_loop, getitem, if_else
from helion.ir.graph import Node, args_of, facts, value_of
from helion.ir.symbols import BlockSymbol, Number, expr_of, known_int, same
from helion.ir.tiles import SliceItem, TileAxis, TileItem
from helion.language import atomics, creation, memory, tiles, views
from helion.language.indexing import joint_tensors
from helion.language.matmul import PRODUCTS
from helion.language.random.draws import Draw

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from helion.ir.graph import DeviceProgram

aten = torch.ops.aten
prims = torch.ops.prims


@dataclasses.dataclass(frozen=True)
class InTile:
    """Lanes before the end of a tile's range."""

    axis: TileAxis


@dataclasses.dataclass(frozen=True)
class InSize:
    """The first `size` lanes, of an axis that is padded to a power of two."""

    size: int | Number


@dataclasses.dataclass(frozen=True)
class InParts:
    """Lanes of several dimensions that became one: real where they were real in all of them."""

    sizes: tuple[int | Number, ...]
    parts: tuple[frozenset[Bound], ...]


@dataclasses.dataclass(frozen=True)
class Lost:
    """Nobody knows: one dimension that a tile bounds became several."""


Bound = InTile | InSize | InParts | Lost
# One for each dimension: every bound holds.
Lanes = tuple[frozenset[Bound], ...]
_ALL: frozenset[Bound] = frozenset()


def lanes_in(program: DeviceProgram) -> dict[Node, Lanes]:
    """The lanes of every value of a program."""
    analysis = _Analysis(program)
    for loop in program.loops:
        analysis.axes = list(loop.axes)
        analysis.walk(loop.graph)
    return analysis.lanes


class _Analysis:
    """One walk in program order; `axes` are those of the loops around the node."""

    def __init__(self, program: DeviceProgram) -> None:
        self.symbols = program.symbols
        self.axes: list[TileAxis] = []
        self.lanes: dict[Node, Lanes] = {}
        self.results: dict[Node, list[Lanes]] = {}

    def walk(self, graph: torch.fx.Graph) -> list[Lanes]:
        """The lanes of every node of a graph; returns those of its results."""
        for node in graph.nodes:
            if node.op == "output":
                return [self.of(r) for r in args_of(node)[0]]
            if node.op != "call_function":
                continue
            if node.target is for_loop:
                self._loop(node)
            elif node.target is if_else:
                self._branches(node)
            elif isinstance(value_of(node), torch.Tensor):
                self.lanes[node] = self._rule(node)
        return []

    def of(self, value: Any) -> Lanes:
        """The lanes of an argument; a number has none."""
        if isinstance(value, Node):
            meaning = value_of(value)
            if value in self.lanes:
                return self.lanes[value]
            return self.by_sizes(meaning.shape) if isinstance(meaning, torch.Tensor) else ()
        return ()

    # -- regions ---------------------------------------------------------------------------------

    def _loop(self, node: Node) -> None:
        axes, _, region, carried, captured = args_of(node)
        self.axes += axes
        entering = [self.of(c) for c in carried]
        # What a variable carries around may bound more than what it began with; once is enough,
        # since bounds are only added.
        leaving = self._region(region, [*entering, *map(self.of, captured)])
        entering = [_join(e, v) for e, v in zip(entering, leaving, strict=True)]
        leaving = self._region(region, [*entering, *map(self.of, captured)])
        del self.axes[len(self.axes) - len(axes) :]
        # Outside of the loop its tiles bound nothing: every lane was real in some iteration.
        self.results[node] = [
            _join(e, _without(v, axes)) for e, v in zip(entering, leaving, strict=True)
        ]
        self.results[node] = [_without(r, axes) for r in self.results[node]]

    def _branches(self, node: Node) -> None:
        _, then, orelse, captured, otherwise = args_of(node)
        sides = [
            self._region(region, [self.of(v) for v in inputs])
            for region, inputs in ((then, captured), (orelse, otherwise))
        ]
        self.results[node] = [_join(a, b) for a, b in zip(*sides, strict=True)]

    def _region(self, region: Region, inputs: Sequence[Lanes]) -> list[Lanes]:
        placeholders = [n for n in region.graph.nodes if n.op == "placeholder"]
        for placeholder, lanes in zip(placeholders, inputs, strict=True):
            meaning = facts(placeholder).value
            if isinstance(meaning, torch.Tensor):
                # A scalar may have become a block on its way in.
                fits = len(lanes) == meaning.dim()
                self.lanes[placeholder] = lanes if fits else self.by_sizes(meaning.shape)
        return self.walk(region.graph)

    # -- sizes -----------------------------------------------------------------------------------

    def by_sizes(self, sizes: Sequence[Any]) -> Lanes:
        """The lanes of a new block, as far as its sizes tell."""
        return tuple(self._by_size(s) for s in sizes)

    def _by_size(self, size: Any) -> frozenset[Bound]:
        if isinstance(size, TileAxis):
            return frozenset([InTile(size)])
        known = known_int(size)
        if known is not None:
            return _ALL if known & (known - 1) == 0 else frozenset([InSize(known)])
        origin = self.symbols.origin(size)
        if isinstance(origin, BlockSymbol):
            axes = [a for a in self.axes if a.block is origin.block]
            return frozenset([InTile(axes[0])]) if len(axes) == 1 else _ALL
        if all(isinstance(o, BlockSymbol) for o in self.symbols.origins_in(size)):
            return _ALL
        return frozenset([InSize(_number(size))])

    # -- nodes -----------------------------------------------------------------------------------

    def _rule(self, node: Node) -> Lanes:
        target: Any = node.target
        args = args_of(node)
        if target is getitem:
            return self._item(node)
        if target is memory.load:
            return self.of_items(args[1])
        if target in atomics.ATOMICS:
            return self.of_items(args[1])
        if target is tiles.tile_index:
            return (frozenset([InTile(args[0])]),)
        if target is creation.full:
            return self.by_sizes(args[0])
        rule = _RULES.get(target)
        lanes = rule(self, node) if rule is not None else self._pointwise(node)
        # What a rule does not foresee is judged by its sizes.
        return lanes if len(lanes) == value_of(node).dim() else self.by_sizes(value_of(node).shape)

    def _item(self, node: Node) -> Lanes:
        source, index = args_of(node)
        if source in self.results:
            return self.results[source][index]
        if source.target in _RULES:
            return _RULES[source.target](self, source)
        return self._pointwise(source)

    def of_items(self, items: Sequence[Any]) -> Lanes:
        """The lanes of a load with these items."""
        together = joint_tensors([value_of(i) if isinstance(i, Node) else i for i in items])
        result: list[frozenset[Bound]] = []
        for i, item in enumerate(items):
            if item is None:
                result.append(_ALL)
            elif isinstance(item, TileItem):
                result.append(frozenset([InTile(item.axis)]))
            elif isinstance(item, SliceItem):
                result.append(self._by_size(item.length))
            elif isinstance(item, Node) and value_of(item).dim():
                if i not in together:
                    result.extend(self.of(item))
                elif i == together[0]:
                    result.extend(_right_aligned([self.of(items[t]) for t in together]))
        return tuple(result)

    def _pointwise(self, node: Node) -> Lanes:
        """An element of the result for each of the operands: their bounds together."""
        value = value_of(node)
        rank = value.dim() if isinstance(value, torch.Tensor) else None
        draw = next((a for a in args_of(node) if isinstance(a, Draw)), None)
        if draw is not None and draw.offsets is None:
            return tuple(self._by_size(a.size if a.tile is None else a.tile) for a in draw.axes)
        operands = [self.of(n) for n in node.all_input_nodes]
        operands = [o for o in operands if o and (rank is None or len(o) == rank)]
        return _joined(operands) if operands else self.by_sizes(getattr(value, "shape", ()))

    def broadcast(self, node: Node) -> Lanes:
        """Old dimensions keep their bounds; new ones are judged by their size."""
        source, sizes, dims = args_of(node)
        old, before = self.of(source), value_of(source).shape
        result = list(self.by_sizes(sizes))
        for at, dim in enumerate(dims):
            if same(before[at], sizes[dim]):
                result[dim] = old[at]
        return tuple(result)

    def transposed(self, node: Node) -> Lanes:
        """The same bounds in another order."""
        source, order = args_of(node)[:2]
        old = self.of(source)
        return tuple(old[d] for d in order)

    def reduced(self, node: Node) -> Lanes:
        """The dimensions that are left."""
        old = self.of(args_of(node)[0])
        given = args_of(node)[1]
        dims = {d % len(old) for d in ([given] if isinstance(given, int) else given or ())}
        if given is None:
            dims = set(range(len(old)))
        keep = value_of(node)
        keep = keep[0] if isinstance(keep, tuple) else keep
        if keep.dim() == len(old):
            return tuple(_ALL if d in dims else b for d, b in enumerate(old))
        return tuple(b for d, b in enumerate(old) if d not in dims)

    def product(self, node: Node) -> Lanes:
        """Rows of the left operand, columns of the right one, and what the accumulator says."""
        left, right, acc = product_operands(node)
        a, b = self.of(left), self.of(right)
        lanes: Lanes = (a[-2], b[-1])
        batch = _right_aligned([a[:-2], b[:-2]])
        lanes = (*batch, *lanes)
        given = self.of(acc) if isinstance(acc, Node) else ()
        return _join(lanes, given) if len(given) == len(lanes) else lanes

    def stacked(self, node: Node) -> Lanes:
        """A new dimension; in the others the bounds of every value."""
        args = args_of(node)
        values, dim = args if isinstance(args[0], (tuple, list)) else (args, -1)
        lanes = _joined([self.of(v) for v in values])
        at = dim % (len(lanes) + 1)
        return (*lanes[:at], self._by_size(len(values)), *lanes[at:])

    def concatenated(self, node: Node) -> Lanes:
        """The values' own dimensions, and one that holds them all."""
        values, dim = args_of(node)[0], args_of(node)[1] if len(args_of(node)) > 1 else 0
        lanes = list(_joined([self.of(v) for v in values]))
        at = dim % len(lanes)
        length = value_of(values[0]).shape[at]
        parts = [(len(values), self._by_size(len(values))), (length, lanes[at])]
        lanes[at : at + 1] = self._regrouped(parts, [value_of(node).shape[at]])
        return tuple(lanes)

    def gathered(self, node: Node) -> Lanes:
        """The bounds of the index, and those of the source in the other dimensions."""
        source, dim, index = args_of(node)[:3]
        lanes, chosen = self.of(source), self.of(index)
        return tuple(
            b if d == dim % len(chosen) else a | b
            for d, (a, b) in enumerate(zip(lanes, chosen, strict=True))
        )

    def halved(self, node: Node) -> Lanes:
        """All dimensions but the last."""
        return self.of(args_of(node)[0])[:-1]

    def reshaped(self, node: Node) -> Lanes:
        """Dimensions that stay keep their bounds; several that become one keep them all."""
        source = args_of(node)[0]
        before, after = list(value_of(source).shape), list(value_of(node).shape)
        old = self.of(source)
        result: list[frozenset[Bound]] = []
        for olds, news in dimension_groups(before, after):
            result += self._regrouped([(before[d], old[d]) for d in olds], [after[d] for d in news])
        return tuple(result)

    def _regrouped(
        self, olds: Sequence[tuple[Any, frozenset[Bound]]], news: Sequence[Any]
    ) -> list[frozenset[Bound]]:
        sizes = [s for s, _ in olds]
        if len(sizes) == len(news) and all(same(a, b) for a, b in zip(sizes, news, strict=True)):
            return [bounds for _, bounds in olds]
        if all(isinstance(b, InSize) for _, bounds in olds for b in bounds):
            return list(self.by_sizes(news))
        merged = InParts(tuple(map(_number, sizes)), tuple(bounds for _, bounds in olds))
        if len(olds) == 1:
            parts = [b for b in olds[0][1] if isinstance(b, InParts)]
            fits = [p for p in parts if _same_sizes(p.sizes, news)]
            return list(fits[0].parts) if fits else [frozenset([Lost()])] * len(news)
        return [frozenset([merged])] if len(news) == 1 else [frozenset([Lost()])] * len(news)


def dimension_groups(
    before: Sequence[Any], after: Sequence[Any]
) -> list[tuple[list[int], list[int]]]:
    """The dimensions of a reshape in the smallest groups with equal numbers of elements."""
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(before) or j < len(after):
        olds, news = list(range(i, min(i + 1, len(before)))), list(range(j, min(j + 1, len(after))))
        if olds and news and not same(before[i], after[j]):
            # A dimension of one element is a group of its own.
            if known_int(before[i]) == 1:
                news = []
            elif known_int(after[j]) == 1:
                olds = []
            else:
                olds, news = _balanced(before, after, i, j)
        groups.append((olds, news))
        i, j = i + len(olds), j + len(news)
    return groups


def _balanced(
    before: Sequence[Any], after: Sequence[Any], i: int, j: int
) -> tuple[list[int], list[int]]:
    """The shortest runs from `i` and `j` on with equal products; else all the rest."""
    left = expr_of(before[i])
    for m in range(i + 1, len(before) + 1):
        right = expr_of(after[j])
        for n in range(j + 1, len(after) + 1):
            if left == right:
                return list(range(i, m)), list(range(j, n))
            right = right * expr_of(after[n]) if n < len(after) else right
        left = left * expr_of(before[m]) if m < len(before) else left
    return list(range(i, len(before))), list(range(j, len(after)))


def product_operands(node: Node) -> tuple[Any, Any, Any]:
    """The operands of a matrix product and its accumulator, which may be None."""
    args = args_of(node)
    if node.target in (aten.addmm.default, aten.baddbmm.default):
        return args[1], args[2], args[0]
    return args[0], args[1], args[2] if len(args) > 2 and isinstance(args[2], Node) else None


def _number(size: Any) -> int | Number:
    known = known_int(size)
    return known if known is not None else Number(expr_of(size), int)


def _same_sizes(a: Sequence[Any], b: Sequence[Any]) -> bool:
    return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))


def _join(a: Lanes, b: Lanes) -> Lanes:
    return tuple(x | y for x, y in zip(a, b, strict=True)) if len(a) == len(b) else a or b


def _joined(all_lanes: Sequence[Lanes]) -> Lanes:
    result = all_lanes[0]
    for lanes in all_lanes[1:]:
        result = _join(result, lanes)
    return result


def _right_aligned(all_lanes: Sequence[Lanes]) -> Lanes:
    rank = max(map(len, all_lanes), default=0)
    padded = [(_ALL,) * (rank - len(lanes)) + tuple(lanes) for lanes in all_lanes]
    return _joined(padded) if padded else ()


def _without(lanes: Lanes, axes: Sequence[TileAxis]) -> Lanes:
    return tuple(frozenset(b for b in bounds if not mentions(b, axes)) for bounds in lanes)


def mentions(bound: Bound, axes: Sequence[TileAxis]) -> bool:
    """Whether a bound is the end of one of some tiles."""
    if isinstance(bound, InParts):
        return any(mentions(b, axes) for part in bound.parts for b in part)
    return isinstance(bound, InTile) and bound.axis in axes


_RULES: dict[Any, Callable[[_Analysis, Node], Lanes]] = {
    prims.broadcast_in_dim.default: _Analysis.broadcast,
    prims.transpose.default: _Analysis.transposed,
    prims.reshape.default: _Analysis.reshaped,
    aten.gather.default: _Analysis.gathered,
    aten.stack.default: _Analysis.stacked,
    aten.cat.default: _Analysis.concatenated,
    views.join: _Analysis.stacked,
    views.split: _Analysis.halved,
    **dict.fromkeys(
        (
            prims.sum.default,
            prims.prod.default,
            prims.amax.default,
            prims.amin.default,
            prims.var.default,
            aten.argmax.default,
            aten.argmin.default,
            aten.max.dim,
            aten.min.dim,
        ),
        _Analysis.reduced,
    ),
    **dict.fromkeys(PRODUCTS, _Analysis.product),
}
