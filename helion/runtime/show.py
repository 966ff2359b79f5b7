"""The author's source with types: what a reviewer reads, and golden tests hold."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import torch

from helion.ir.symbols import is_number
from helion.ir.tiles import TileAxis

if TYPE_CHECKING:
    from helion.frontend.program import TypedProgram

_WIDTH = 60


def show_types(program: TypedProgram) -> str:
    """Each line of the function, with the types of the names and stores on it."""
    notes: dict[int, list[str]] = {}
    printer = program.printer()
    for node, value in program.types.items():
        if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Store):
            continue
        if isinstance(value, (torch.Tensor, TileAxis)) or is_number(value):
            line = notes.setdefault(node.lineno, [])
            text = f"{node.id}: {printer.show(value)}"
            if text not in line:
                line.append(text)
    source = ast.unparse(program.source.tree).splitlines()
    del source
    lines: list[str] = []
    import linecache

    first = program.source.tree.lineno
    for number in range(first, (program.source.tree.end_lineno or first) + 1):
        offset = program.source.line_offset
        text = linecache.getline(program.source.filename, number + offset).rstrip()
        note = ", ".join(notes.get(number, []))
        lines.append(f"{text:<{_WIDTH}}  # {note}" if note else text)
    return "\n".join(lines)
