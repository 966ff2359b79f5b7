"""Draws a diagnostic: header, place, excerpt with carets, second excerpts, help."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

from helion.exc.spans import Related, Span, shown_path, source_line

__all__ = ["Diagnostic", "excerpt", "render"]

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
    """A stretch to underline, and the lines to show for it, by number."""

    span: Span
    stroke: str
    label: str
    lines: dict[int, str]


def render(diagnostic: Diagnostic) -> str:
    """The whole text of a diagnostic, without a final line end."""
    main = diagnostic.span
    marks = [] if main is None else [_mark(main, "^", diagnostic.label)]
    marks += [_mark(related.span, "-", related.label) for related in diagnostic.related]
    drawn = [mark for mark in marks if mark.lines]
    gutter = " " * max((len(str(max(mark.lines))) for mark in drawn), default=1)

    out = [diagnostic.header]
    if main is not None:
        out.append(f"{gutter}--> {_place(main)}")
    above: _Mark | None = None
    for mark in drawn:
        # Two marks on one line share it: `a + b` with a label below each operand.
        share = above is not None and _on_one_line(above, mark)
        if not share:
            out.append(f"{gutter} |")
            shown = above.span if above is not None else main
            if shown is None or shown.filename != mark.span.filename:
                out.append(f"{gutter}::: {_place(mark.span)}")
        out += _excerpt(mark, gutter, with_source=not share)
        above = mark
    hidden = [mark for mark in marks if mark.label and not mark.lines]
    notes = [("note", _without_excerpt(mark, main)) for mark in hidden]
    footers = [*notes, *diagnostic.footers]
    if drawn and footers:
        out.append(f"{gutter} |")
    for word, text in footers:
        out += _footer(word, text, gutter)
    if diagnostic.appendix:
        out += ["", diagnostic.appendix]
    return "\n".join(out)


def excerpt(span: Span, label: str = "") -> str:
    """A place in the author's source, with its line."""
    return render(Diagnostic("", span, label)).removeprefix("\n")


def _mark(span: Span, stroke: str, label: str) -> _Mark:
    last = max(span.line, span.end_line)
    numbers = list(range(span.line, last + 1))
    if len(numbers) > _MOST_LINES:
        numbers = [span.line, span.line + 1, last]
    found = {number: source_line(span.filename, number) for number in numbers}
    lines = {number: text for number, text in found.items() if text is not None}
    return _Mark(span, stroke, label, lines)


def _on_one_line(first: _Mark, second: _Mark) -> bool:
    same = (first.span.filename, first.lines) == (second.span.filename, second.lines)
    return same and len(first.lines) == 1


def _excerpt(mark: _Mark, gutter: str, *, with_source: bool) -> list[str]:
    """The lines of one mark, each with its strokes below it; the label follows the last strokes."""
    out: list[str] = []
    numbers = list(mark.lines)
    for before, (number, text) in zip([None, *numbers], mark.lines.items(), strict=False):
        if before is not None and number > before + 1:
            out.append(f"{gutter} ...")
        if with_source:
            out.append(f"{number:>{len(gutter)}} | {_expand(text)}".rstrip())
        strokes = _strokes(mark, number, text)
        label = f" {mark.label}" if mark.label and number == numbers[-1] else ""
        if strokes or label:
            out.append(f"{gutter} | {strokes}{label}")
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


def _footer(word: str, text: str, gutter: str) -> list[str]:
    first, *rest = text.splitlines() or [""]
    opening = f"{gutter} = {word}: "
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
    # A tab has one width and jumps to no stop: a prefix is then as wide alone as in its line.
    return text.replace("\t", _TAB)


def _width(text: str) -> int:
    """Columns that a text takes in a terminal: wide characters two, combining marks none."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )
