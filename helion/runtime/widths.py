"""Index widths: whether 32 bits are enough for the tensors that the host part makes."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

import torch

from helion.ir.control import nodes_within
from helion.ir.scalars import ScalarPrinter
from helion.ir.symbols import BlockSymbol, HostNumber, expr_of
from helion.ir.tiles import HostTensor

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    import sympy

    from helion.frontend.program import TypedProgram
    from helion.ir.symbols import Symbols

_MOST = 2**31 - 1


def needs_wide_index(program: TypedProgram, parameters: Collection[str]) -> bool | str:
    """Whether a tensor that the host part makes has more elements than 32 bits count.

    Arguments are not looked at: their widths are a part of the specialization key.

    Returns:
        Known at compile time, or a Python expression of the arguments that tells at each call.
    """
    symbols = program.device.symbols
    arguments = [expr_of(f.numel()) for f in _argument_tensors(program)]
    conditions: set[str] = set()
    whole = [expr_of(tensor.fake.numel()) for tensor in _host_tensors(program)]
    for numel in (n for w in whole for n in _extremes(symbols, w)):
        if numel.is_number:
            if int(numel) > _MOST:
                return True
        elif not any(_is_part(numel, whole) for whole in arguments):
            text = _text(symbols, numel, parameters)
            if text is None:
                return True
            conditions.add(f"{text} > {_MOST}")
    return " or ".join(sorted(conditions)) if conditions else False


def _argument_tensors(program: TypedProgram) -> Iterator[torch.Tensor]:
    for node, value in program.types.items():
        if isinstance(node, ast.arg) and isinstance(value, torch.Tensor):
            yield value


def _host_tensors(program: TypedProgram) -> Iterator[HostTensor]:
    for loop in program.device.loops:
        for node in nodes_within(loop.graph):
            yield from (a for a in node.args if isinstance(a, HostTensor))


def _extremes(symbols: Symbols, numel: sympy.Expr) -> list[sympy.Expr]:
    """The number with the smallest and the largest block sizes: it grows or falls with each."""
    found: list[Any] = [numel]
    for symbol in numel.free_symbols:
        origin = symbols.origins.get(symbol)  # pyright: ignore[reportArgumentType]
        if isinstance(origin, BlockSymbol) and origin.block.extent is not None:
            # A block is no larger than the power of two that covers its extent.
            ends = origin.block.minimum, 2 * expr_of(origin.block.extent)
            found = [number.subs(symbol, end) for number in found for end in ends]
    return found


def _is_part(numel: sympy.Expr, whole: sympy.Expr) -> bool:
    """Whether one product of sizes divides another, so that it is no larger."""
    return (whole / numel).as_numer_denom()[1] == 1


def _text(symbols: Symbols, expr: sympy.Expr, parameters: Collection[str]) -> str | None:
    """The expression in terms of the arguments, if it can be read off them."""

    def read(symbol: sympy.Symbol) -> str:
        origin: Any = symbols.origins.get(symbol)
        text = getattr(origin, "text", "")
        if re.split(r"[.\[]", text)[0] not in parameters:
            raise LookupError(symbol)
        return text if isinstance(origin, HostNumber) else f"{text}.{origin.what}({origin.dim})"

    try:
        return ScalarPrinter(read, on_device=False).doprint(expr)
    except LookupError:
        return None
