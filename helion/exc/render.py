"""Draws a diagnostic: header, place, excerpt with carets, second excerpts, help."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from helion.exc.spans import Related, Span, shown_path, source_line

__all__ = ["Diagnostic", "render"]

_TAB = " " * 4
# A span over more lines than this shows its first two and its last: the middle says little.
_MOST_LINES = 4


@dataclass(frozen=True)
class Diagnostic:
    """What one error or warning has to say.

    Attributes:
        header: the first line; further lines of it stand below, flush left.
        span: where it happened, if that is known.
        label: what to say beside the carets.
        related: second places, in the order in which to show them.
        footers: pairs of a word and a text, shown as `= word: text`.
        appendix: text to put last, as it is (generated code, for instance).
    """

    header: str
    span: Span | None = None
    label: str = ""
    related: tuple[Related, ...] = ()
    footers: tuple[tuple[str, str], ...] = ()
    appendix: str = ""


@dataclass(frozen=True)
class _Mark:
    """A stretch to underline."""

    span: Span
    stroke: str
    label: str

    @property
    def lines(self) -> dict[int, str]:
        """The lines to show, by number; those that cannot be read are left out."""
        first, last = self.span.line, max(self.span.line, self.span.end_line)
        numbers = list(range(first, last + 1))
        if len(numbers) > _MOST_LINES:
            numbers = [first, first + 1, last]
        found = {number: source_line(self.span.filename, number) for number in numbers}
        return {number: text for number, text in found.items() if text is not None}


def render(diagnostic: Diagnostic) -> str:
    """The whole text of a diagnostic, without a final line end."""
    marks = [_Mark(related.span, "-", related.label) for related in diagnostic.related]
    if diagnostic.span is not None:
        marks.insert(0, _Mark(diagnostic.span, "^", diagnostic.label))
    drawn = [mark for mark in marks if mark.lines]
    gutter = max((len(str(max(mark.lines))) for mark in drawn), default=1)
    blank = " " * gutter + " |"

    out = [diagnostic.header]
    if diagnostic.span is not None:
        out.append(f"{' ' * gutter}--> {_place(diagnostic.span)}")
    previous: _Mark | None = None
    for mark in drawn:
        out += _excerpt(mark, previous, gutter, main=diagnostic.span)
        previous = mark
    if drawn:
        out.append(blank)
    hidden = [mark for mark in marks if not mark.lines and mark.label]
    footers = [("note", _without_excerpt(mark, diagnostic.span)) for mark in hidden]
    for word, text in (*footers, *diagnostic.footers):
        out += _footer(word, text, gutter)
    if diagnostic.appendix:
        out += ["", diagnostic.appendix]
    return "\n".join(out)


def _excerpt(mark: _Mark, previous: _Mark | None, gutter: int, main: Span | None) -> list[str]:
    """The source lines of one mark, underlined."""
    blank = " " * gutter + " |"
    out: list[str] = []
    # Two marks on one line share the line: `a + b` with a label below each operand.
    shared = previous is not None and list(previous.lines.items()) == list(mark.lines.items())
    shared = shared and previous is not None and previous.span.filename == mark.span.filename
    if not (shared and len(mark.lines) == 1):
        shared = False
        out.append(blank)
        before = previous.span if previous is not None else main
        if before is None or before.filename != mark.span.filename:
            out.append(f"{' ' * gutter}::: {_place(mark.span)}")
    last_shown: int | None = None
    for number, text in mark.lines.items():
        if last_shown is not None and number > last_shown + 1:
            out.append(" " * gutter + " ...")
        if not shared:
            out.append(f"{number:>{gutter}} | {_expand(text)}".rstrip())
        strokes = _strokes(mark, number, text)
        label = f" {mark.label}" if mark.label and number == max(mark.lines) else ""
        if strokes or label:
            out.append(f"{blank} {strokes}{label}".rstrip())
        last_shown = number
    return out


def _strokes(mark: _Mark, number: int, text: str) -> str:
    """Spaces and carets for the part of one line that a mark covers."""
    whole = text.rstrip()
    start = len(whole) - len(whole.lstrip())
    end = len(whole)
    if number == mark.span.line:
        start = _characters(text, mark.span.column)
    if number == mark.span.end_line:
        end = _characters(text, mark.span.end_column)
    elif not whole:
        return ""
    left = _width(_expand(text[:start]))
    right = _width(_expand(text[:end]))
    return " " * left + mark.stroke * max(1, right - left)


def _footer(word: str, text: str, gutter: int) -> list[str]:
    first, *rest = text.splitlines() or [""]
    opening = f"{' ' * gutter} = {word}: "
    return [opening + first, *(" " * len(opening) + line for line in rest)]


def _without_excerpt(mark: _Mark, main: Span | None) -> str:
    """What is left to say about a mark whose source cannot be read."""
    return mark.label if mark.span == main else f"{_place(mark.span)}: {mark.label}"


def _place(span: Span) -> str:
    text = source_line(span.filename, span.line)
    column = span.column if text is None else _characters(text, span.column)
    return f"{shown_path(span.filename)}:{span.line}:{column + 1}"


def _characters(text: str, column: int) -> int:
    """A column counted in UTF-8 bytes, counted in characters."""
    if text.isascii():
        return min(column, len(text))
    return len(text.encode()[:column].decode(errors="ignore"))


def _expand(text: str) -> str:
    # Every tab is one fixed width, not a jump to a stop: a prefix then has the same width alone and in its line.
    return text.replace("\t", _TAB)


def _width(text: str) -> int:
    """Columns that a text takes in a terminal: wide characters two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )
