"""Which numbers that loops and branches change are parts of a seed, and so 64 bits wide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from helion.ir.control import for_loop, if_else, nodes_within
from helion.ir.graph import args_of, facts, value_of
from helion.ir.symbols import DeviceNumber, is_number
from helion.language.random import fold_in
from helion.language.random.draws import Draw

if TYPE_CHECKING:
    from collections.abc import Iterator

    from helion.ir.graph import DeviceProgram, Node
    from helion.ir.symbols import Symbols


def numbers_in_seeds(program: DeviceProgram) -> frozenset[DeviceNumber]:
    """The numbers that a seed is computed from, and those that these come from.

    before:  own = seed * 3                 `own` is a 32-bit number: the index dtype
             for r in hl.grid(n):
                 ... hl.rand([t], own)
                 own = own + 1
    after:   `own` is in the result: 64 bits before, in and after the loop
    """
    nodes = [n for loop in program.loops for n in nodes_within(loop.graph)]
    found = {number for node in nodes for number in _in_seed(program.symbols, node)}
    links = [link for node in nodes for link in _links(program.symbols, node)]
    while True:
        new = {number for link in links if link & found for number in link} - found
        if not new:
            return frozenset(found)
        found |= new


def _in_seed(symbols: Symbols, node: Node) -> set[DeviceNumber]:
    parts: list[Any] = list(args_of(node)) if node.target is fold_in else []
    parts += [a.seed for a in node.args if isinstance(a, Draw)]
    return {n for part in parts for n in _numbers(symbols, part)}


def _links(symbols: Symbols, node: Node) -> Iterator[set[DeviceNumber]]:
    """For each variable that a loop or branch changes, the numbers that are computed into it."""
    if node.target is for_loop:
        _, _, body, carried, _ = args_of(node)
        inside = [facts(n).value for n in body.graph.nodes if n.op == "placeholder"]
        columns = [carried, inside[: len(carried)], _outputs(body)]
    elif node.target is if_else:
        columns = [_outputs(region) for region in args_of(node)[1:3]]
    else:
        return
    for after, *others in zip(value_of(node), *columns, strict=True):
        if is_number(after):
            yield {n for value in (after, *others) for n in _numbers(symbols, value)}


def _outputs(region: Any) -> Any:
    return next(n for n in region.graph.nodes if n.op == "output").args[0]


def _numbers(symbols: Symbols, value: Any) -> set[DeviceNumber]:
    value = value_of(value)
    if not is_number(value) or isinstance(value, (int, float)):
        return set()
    return {o for o in symbols.origins_in(value) if isinstance(o, DeviceNumber)}
