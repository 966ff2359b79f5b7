"""Tables and pictures of what was measured."""

from __future__ import annotations

import importlib
from typing import Any


def power(size: int) -> str:
    """A size as a power of two, if it is one."""
    return f"2^{size.bit_length() - 1}" if size & (size - 1) == 0 else f"{size}"


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A table that is aligned to read here, and renders in Markdown."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(row: list[str]) -> str:
        return "| " + " | ".join(cell.rjust(w) for cell, w in zip(row, widths, strict=True)) + " |"

    rule = "|" + "|".join("-" * (w + 1) + ":" for w in widths) + "|"
    return "\n".join([line(head), rule, *(line(row) for row in rows)])


def pyplot() -> Any:
    """`matplotlib.pyplot`, drawing to files; None if matplotlib is not installed."""
    try:
        importlib.import_module("matplotlib").use("Agg")
    except ModuleNotFoundError:
        return None
    return importlib.import_module("matplotlib.pyplot")
