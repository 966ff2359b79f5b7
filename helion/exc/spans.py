"""Positions in the author's source, and the lines found there."""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Related", "Span", "shown_path", "source_line"]

_BODY_FIELDS = frozenset({"body", "orelse", "finalbody", "handlers", "cases", "decorator_list"})


@dataclass(frozen=True)
class Span:
    """A stretch of the author's source.

    Columns count as in `ast`: from 0, in bytes of the line's UTF-8 form. The renderer turns them
    into characters, so that making a span for every node of a kernel reads no file.

    Attributes:
        filename: the file, as Python knows it (also a pseudo file such as `<stdin>`).
        line: first line, from 1, of the real file.
        column: where the stretch starts in its first line.
        end_line: last line.
        end_column: where the stretch stops in its last line, exclusive.
        function: name of the function that the stretch is in.
    """

    filename: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str = ""

    @classmethod
    def of_node(
        cls,
        node: ast.AST,
        filename: str,
        line_offset: int = 0,
        column_offset: int = 0,
        function: str = "",
    ) -> Span:
        """The span of a node that was parsed from a function's dedented source.

        A statement with a body (`for`, `if`, `def` ...) is represented by its head alone: an error
        about a loop points at the loop's line, not at everything inside.

        Args:
            node: a node that carries a position.
            filename: the file that holds the source.
            line_offset: lines of the file before the parsed text.
            column_offset: columns that dedenting took away.
            function: name of the function around the node.

        Raises:
            ValueError: the node's class carries no position (`ast.arguments`, operators, contexts).
        """
        start = _start_of(node)
        end = _end_of(node)
        if start is None or end is None:
            raise ValueError(f"`{type(node).__name__}` nodes carry no position")
        return cls(
            filename,
            start[0] + line_offset,
            start[1] + column_offset,
            end[0] + line_offset,
            end[1] + column_offset,
            function,
        )


@dataclass(frozen=True)
class Related:
    """A second place that explains an error, with its own label."""

    span: Span
    label: str


def source_line(filename: str, line: int) -> str | None:
    """A line of a file without its line end, or None when it cannot be had.

    The cache is not checked against the file: the kernel was parsed from the text that the cache
    holds, and a file edited since then would put the caret under something else.
    """
    text = linecache.getline(filename, line)
    return text.rstrip("\r\n") if text else None


def shown_path(filename: str) -> str:
    """The file's name as a reader at the current folder would write it."""
    try:
        return str(Path(filename).relative_to(Path.cwd()))
    except (ValueError, OSError):
        return filename


def _start_of(node: ast.AST) -> tuple[int, int] | None:
    line, column = getattr(node, "lineno", None), getattr(node, "col_offset", None)
    return None if line is None or column is None else (line, column)


def _end_of(node: ast.AST) -> tuple[int, int] | None:
    if isinstance(node, ast.expr) or not _BODY_FIELDS.intersection(node._fields):
        return _own_end(node)
    ends = [end for child in _head(node) if (end := _deep_end(child)) is not None]
    start = _start_of(node)
    if ends or start is None:
        return max(ends, default=None)
    return start[0], start[1] + len(_keyword(node))


def _own_end(node: ast.AST) -> tuple[int, int] | None:
    line, column = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
    return None if line is None or column is None else (line, column)


def _head(node: ast.AST) -> list[ast.AST]:
    """The children that stand before a compound statement's colon."""
    later = {id(child) for name in _BODY_FIELDS for child in getattr(node, name, ())}
    return [child for child in ast.iter_child_nodes(node) if id(child) not in later]


def _deep_end(node: ast.AST) -> tuple[int, int] | None:
    """Where a node ends, or its last child if it has no position (`arguments`, `withitem`)."""
    own = _own_end(node)
    if own is not None:
        return own
    ends = (_deep_end(child) for child in ast.iter_child_nodes(node))
    return max((end for end in ends if end is not None), default=None)


def _keyword(node: ast.AST) -> str:
    """The text of a head that holds no node: `try`, a bare `except`, `def f`, `class C`."""
    if isinstance(node, ast.ExceptHandler):
        return "except"
    if isinstance(node, ast.AsyncFunctionDef):
        return f"async def {node.name}"
    if isinstance(node, ast.FunctionDef):
        return f"def {node.name}"
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    return "try"
