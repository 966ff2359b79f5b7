"""The default config: large vectorised blocks, chosen from sizes, dtypes and device."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any

import torch

from helion.codegen.lanes import product_operands
from helion.ir.graph import args_of, value_of
from helion.ir.symbols import BlockSymbol, known_int
from helion.ir.tiles import HostTensor
from helion.language import memory
from helion.language.matmul import PRODUCTS
from helion.language.random.draws import Draw

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from helion.ir.graph import DeviceProgram, Node

# Triton's interpreter runs NumPy on whole blocks: few large ones are a hundred times faster.
_INTERPRETER_TILE = 1 << 17
# A row that is longer than this does not fit in the registers of a program.
_LONGEST_ROW = 1 << 15
_CHUNK = 4096
# Enough programs for every multiprocessor of a GPU to have several at once.
_PROGRAMS = 1024


@dataclasses.dataclass(frozen=True)
class BlockSizeSpec:
    """One entry of `block_sizes`.

    Attributes:
        size_hint: the length that it covers in the call that is compiled for.
        min_size: the smallest legal size.
        max_size: the largest one that is of use.
    """

    size_hint: int
    min_size: int
    max_size: int

    def fit(self, wanted: int) -> int:
        """The legal size nearest to a wanted one."""
        return max(min(wanted, self.max_size), self.min_size)


@dataclasses.dataclass(frozen=True)
class Extent:
    """How many elements a value has: some block sizes, times whole axes padded to powers of two."""

    blocks: frozenset[int]
    whole: int

    def elements(self, sizes: Sequence[int]) -> int:
        """The number of elements with these block sizes."""
        return self.whole * math.prod(sizes[i] for i in self.blocks)


def default_keys(
    program: DeviceProgram,
    nodes: Iterable[Node],
    specs: Sequence[BlockSizeSpec],
    interpreted: bool,
    rollable: Sequence[Any],
) -> dict[str, Any]:
    """The keys of the default config.

    Args:
        program: the program.
        nodes: all of its nodes.
        specs: the block sizes that the config chooses.
        interpreted: whether it runs in Triton's interpreter.
        rollable: the lengths of the axes whose reductions may be rolled.
    """
    nodes = list(nodes)
    if not interpreted and any(n.target in PRODUCTS for n in nodes):
        return _product_keys(program, nodes, specs)
    chunks = [_chunk(size) for size in rollable]
    pairs = zip(map(known_int, rollable), chunks, strict=True)
    rolled = {size: chunk for size, chunk in pairs if chunk is not None}
    keys: dict[str, Any] = {}
    if not interpreted and rolled:
        keys["reduction_loops"] = chunks
    extents = list(_extents(program, nodes, {} if interpreted else rolled))
    budget = _INTERPRETER_TILE if interpreted else _gpu_tile(nodes)
    order = _order(program, nodes, len(specs))
    sizes = _fill(specs, extents, budget, order, budget if interpreted else None)
    if sizes:
        keys["block_sizes"] = sizes
    largest = max((e.elements(sizes) for e in extents), default=1)
    keys["num_warps"] = _warps(largest)
    return keys


def _chunk(size: Any) -> int | None:
    known = known_int(size)
    return _CHUNK if known is not None and known > _LONGEST_ROW else None


def _fill(
    specs: Sequence[BlockSizeSpec],
    extents: Sequence[Extent],
    budget: int,
    order: Sequence[int],
    shared: int | None,
) -> list[int]:
    """Block sizes with which no value has more elements than the budget, where that can be.

    Args:
        specs: the block sizes.
        extents: of the values.
        budget: elements of a value.
        order: which block size takes its part of the budget first.
        shared: the size of a block that no value has, such as the share of one program in a loop
            over rows; None divides what there is among enough programs.
    """
    sizes = [spec.min_size for spec in specs]
    # What a small tensor leaves over is for calls with more: a dynamic axis has any length.
    for wanted in ([next_power_of_2(s.size_hint) for s in specs], [s.max_size for s in specs]):
        for i in order:
            others = [e.elements(sizes) // sizes[i] for e in extents if i in e.blocks]
            if others:
                room = budget // max(others)
            else:
                room = shared or next_power_of_2(-(-specs[i].size_hint // _PROGRAMS))
            most = 1 << max(room, 1).bit_length() - 1
            sizes[i] = max(sizes[i], specs[i].fit(min(wanted[i], most)))
    return sizes


def _order(program: DeviceProgram, nodes: Sequence[Node], count: int) -> list[int]:
    """The last axis of what is loaded first: it is the contiguous one, and gets what it can use.

    A registered block size stands where it is registered, often before the rows that it cuts.
    """
    loaded = [value_of(n) for n in nodes if n.target is memory.load]
    last = {p for v in loaded if v.dim() > 1 for p in _positions(program, v.shape[-1])}
    return sorted(range(count), key=lambda i: (i in last, i), reverse=True)


def _gpu_tile(nodes: Sequence[Node]) -> int:
    """Elements of a program: each thread moves 16 bytes of the narrowest tensor, twice."""
    accesses = [args_of(n)[0] for n in nodes if n.target in (memory.load, memory.store)]
    widths = [t.fake.dtype.itemsize for t in accesses if isinstance(t, HostTensor)]
    narrow = min(widths, default=4)
    draws = [a for n in nodes for a in n.args if isinstance(a, Draw)]
    # A Philox call for each element needs many registers: more in a thread would spill or idle.
    # Packed, four to sixteen elements share one: two vectors in a thread save 14% (bfloat16).
    if any(not d.packed for d in draws):
        return 1024
    return max(1024, min(4096, 128 * 2 * 16 // narrow))


def _warps(elements: int) -> int:
    if elements >= 16384:
        return 16
    if elements >= 8192:
        return 8
    return 4 if elements >= 512 else max(1, elements // 128)


def _extents(
    program: DeviceProgram, nodes: Sequence[Node], rolled: dict[int | None, int]
) -> Iterator[Extent]:
    for node in nodes:
        values = value_of(node) if node.op == "call_function" else None
        for value in values if isinstance(values, tuple) else (values,):
            if isinstance(value, torch.Tensor):
                yield _extent(program, value, rolled)


def _extent(program: DeviceProgram, value: torch.Tensor, rolled: dict[int | None, int]) -> Extent:
    blocks: set[int] = set()
    whole = 1
    for size in value.shape:
        known = known_int(size)
        origins = program.symbols.origins_in(size)
        own = [o.block for o in origins if isinstance(o, BlockSymbol)]
        blocks |= {b.position for b in own if b.position is not None}
        if known is not None:
            whole *= rolled.get(known, next_power_of_2(known))
        elif not own:
            # An axis of any length, in one block.
            whole *= 1024
    return Extent(frozenset(blocks), whole)


# -- matrix products ------------------------------------------------------------------------------


def _product_keys(
    program: DeviceProgram, nodes: Sequence[Node], specs: Sequence[BlockSizeSpec]
) -> dict[str, Any]:
    """Tiles for tensor cores: 128 by 128 results, 128 bytes of terms, three stages in flight."""
    rows: set[int] = set()
    columns: set[int] = set()
    terms: dict[int, int] = {}
    for node in nodes:
        if node.target in PRODUCTS:
            left, right, _ = product_operands(node)
            a, b = value_of(left), value_of(right)
            rows |= _positions(program, a.shape[-2])
            columns |= _positions(program, b.shape[-1])
            for position in _positions(program, a.shape[-1]) | _positions(program, b.shape[-2]):
                terms[position] = max(terms.get(position, 0), 128 // a.dtype.itemsize)
    wanted = [1] * len(specs)
    for i, spec in enumerate(specs):
        if i in terms:
            # Columns of one product and terms of another, as in attention.
            wanted[i] = 64 if i in columns or i in rows else terms[i]
        elif i in rows or i in columns:
            wanted[i] = 128
        wanted[i] = spec.fit(min(wanted[i], next_power_of_2(spec.size_hint)))
    keys: dict[str, Any] = {"block_sizes": wanted, "num_stages": 3}
    keys["num_warps"] = 8 if _is_wide(program, nodes, wanted) else 4
    loops = [loop for loop in program.loops if len(loop.axes) > 1]
    if loops:
        # Programs share operands where both axes are of a product; heads share none.
        fast = [{a.block and a.block.position for a in loop.axes[-2:]} for loop in loops]
        keys["l2_groupings"] = [8 if p <= rows | columns else 1 for p in fast]
    return keys


def _is_wide(program: DeviceProgram, nodes: Sequence[Node], sizes: Sequence[int]) -> bool:
    """Whether the products of a loop would fill the registers of four warps."""
    loops: dict[Any, list[int]] = {}
    for node in nodes:
        if node.target in PRODUCTS:
            elements = [e.elements(sizes) for e in _extents(program, [node], {})]
            loops.setdefault(node.graph, []).extend(elements)
    return any(max(loop) >= 128 * 128 or sum(loop) >= 2 * 128 * 128 for loop in loops.values())


def _positions(program: DeviceProgram, size: Any) -> set[int]:
    origin = program.symbols.origin(size)
    if not isinstance(origin, BlockSymbol) or origin.block.position is None:
        return set()
    return {origin.block.position}


def next_power_of_2(value: int) -> int:
    """The smallest power of two that is no less."""
    return 1 << max(value - 1, 0).bit_length()
