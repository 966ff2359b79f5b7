"""What a kernel looks like after each stage: one text for people and for golden tests."""

from __future__ import annotations

import ast
import linecache
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import torch

from helion.frontend.types import TypePrinter
from helion.ir.passes import everywhere, passes_for
from helion.ir.printer import print_program
from helion.ir.symbols import DeviceNumber

if TYPE_CHECKING:
    from collections.abc import Iterator

    from helion.frontend.program import TypedProgram

Stage = Literal["types", "graph", "passes", "triton", "launch"]

# Longer lines have their notes below.
_WIDEST = 64


def show_types(program: TypedProgram) -> str:
    """The author's source, with the types of what each line binds, loads and calls.

    The first line says what the kernel was compiled for; a line is `host` or `device` by where it
    runs.
    """
    printer = program.printer()
    device = {node for loop in program.loops for node in ast.walk(loop)}
    notes: dict[int, dict[str, None]] = {}
    device_lines: set[int] = set()
    for node, value in program.types.items():
        note = _note(printer, node, value, node in device)
        if note is not None:
            line: int = node.lineno  # pyright: ignore[reportAttributeAccessIssue]
            notes.setdefault(line, {})[note] = None
            if node in device:
                device_lines.add(line)
    source = dict(_source_lines(program))
    width = min(max(len(text) for text in source.values()), _WIDEST)
    result = [show_call(program)]
    for line, text in source.items():
        head = f"{line + program.source.line_offset:>4} | {text}"
        if line not in notes:
            result.append(head)
            continue
        if len(text) > width:
            result.append(head)
            head = "     |"
        place = "device" if line in device_lines else "host  "
        result.append(f"{head:<{width + 7}}  {place} {'   '.join(notes[line])}")
    return "\n".join(result)


def _note(printer: TypePrinter, node: ast.AST, value: Any, on_device: bool) -> str | None:
    """`name: type` of a binding, and of a device tensor that is loaded or the result of a call."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        return f"{node.id}: {printer.show(value)}{_definition(printer, node.id, value)}"
    if not on_device or not isinstance(value, torch.Tensor):
        return None
    if isinstance(node, ast.Subscript):
        return f"{ast.unparse(node)}: {printer.show(value)}"
    if isinstance(node, ast.Call):
        return f"{ast.unparse(node.func).rpartition('.')[2]}: {printer.show(value)}"
    return None


def _definition(printer: TypePrinter, name: str, value: Any) -> str:
    """` = x.size(0)`: what a run-time int is. The formula of a float tells a reader little."""
    if not isinstance(value, torch.SymInt):
        return ""
    if isinstance(printer.symbols.origin(value), DeviceNumber):
        return ""
    text = printer.definition(value)
    return "" if text == name else f" = {text}"


def _source_lines(program: TypedProgram) -> Iterator[tuple[int, str]]:
    """The function from `def` on, without its documentation; lines count as in its tree."""
    tree = program.source.tree
    first = tree.body[0]
    skipped: set[int] = set()
    if ast.get_docstring(tree, clean=False) is not None:
        skipped = set(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    for line in range(tree.lineno, (tree.end_lineno or tree.lineno) + 1):
        text = linecache.getline(program.source.filename, line + program.source.line_offset)
        if line not in skipped and text.strip():
            yield line, text.rstrip()[program.source.column_offset :]


def show_call(program: TypedProgram) -> str:
    """The first line of every text: the arguments that the kernel was compiled for."""
    printer = TypePrinter(program.device.symbols)
    arguments = program.source.tree.args
    nodes = [*arguments.posonlyargs, *arguments.args]
    shown: list[str] = []
    for node in nodes:
        value = program.types[node]
        strides = ""
        if isinstance(value, torch.Tensor) and not value.is_contiguous():
            strides = f" strides {printer.sizes(value.stride())}"
        shown.append(f"{node.arg}: {printer.show(value)}{strides}")
    facts = [f"{printer.origin(o)} == {v}" for o, v in program.constants.items()]
    if program.index_dtype is torch.int64:
        facts.append("64-bit indices")
    return ", ".join([f"{program.source.name}({', '.join(shown)})", *facts])


def show_graph(program: TypedProgram) -> str:
    """The device IR as it was traced."""
    return f"{show_call(program)}\n\n{print_program(program.device, program.host_numbers)}"


def show_passes(program: TypedProgram, *, keep_narrowing: bool) -> str:
    """The device IR after each pass that changed it."""
    device = program.device
    text = print_program(device, program.host_numbers)
    parts = [show_call(program)]
    for rewrite in passes_for(keep_narrowing=keep_narrowing):
        device = device.map_graphs(partial(everywhere, rewrite))
        before, text = text, print_program(device, program.host_numbers)
        name = rewrite.__name__
        parts.append(f"{name}: no change" if text == before else f"{name}:\n{text}")
    return "\n\n".join(parts)
