"""What every error and warning of Helion is made of."""

from __future__ import annotations

import string
import sys
from typing import TYPE_CHECKING, ClassVar

from helion.exc.render import Diagnostic, render

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from typing_extensions import Self

    from helion.exc.spans import Related, Span

__all__ = ["Base", "BaseError", "BaseWarning", "emit_warning"]


class Base(RuntimeError):
    """A diagnostic about the author's program.

    A class is a row of the catalogue: it holds templates (`str.format`) that the keywords of the
    constructor fill. Keywords are turned into text at once: a diagnostic keeps no tensor or graph
    alive, can be sent to another process, and says what was true when it was made. `detail` is
    understood everywhere: where no template uses it, it becomes a note. The other fields
    have the same names in all classes: `api` (as the author writes it: `hl.rand`), `name` (of a
    variable), `got` and `expected`, `lhs` and `rhs`, `before` and `after`.

    Attributes:
        severity: first word of the header.
        code: stable name of the diagnostic, kebab-case.
        title: what is wrong, in one line.
        label: what to say beside the carets, if the fields that it names are given.
        help: what to do about it.
        appendix: text put last, if the fields that it names are given.
        defaults: values of fields that are not given; templates over those that are.
    """

    severity: ClassVar[str] = "error"
    code: ClassVar[str] = "helion"
    title: ClassVar[str] = "{detail}"
    label: ClassVar[str] = ""
    help: ClassVar[str] = ""
    appendix: ClassVar[str] = ""
    defaults: ClassVar[Mapping[str, str]] = {}

    def __init__(
        self, span: Span | None = None, *, related: Sequence[Related] = (), **fields: object
    ) -> None:
        """Makes the diagnostic.

        Args:
            span: where in the author's source, if known.
            related: second places that explain it.
            fields: values for the templates.
        """
        super().__init__()
        self.location: Span | None = span
        self.related: tuple[Related, ...] = tuple(related)
        self.fields: dict[str, str] = {name: _text(value) for name, value in fields.items()}

    def with_span(self, span: Span | None) -> Self:
        """The same object; takes `span` as its location if it had none."""
        if self.location is None:
            self.location = span
        return self

    def with_related(self, *related: Related) -> Self:
        """The same object; shows these places too, each once."""
        known = {place.span for place in self.related}
        self.related += tuple(place for place in related if place.span not in known)
        return self

    def report(self) -> str:
        """The diagnostic under a header that names the class, as the compiler prints it."""
        return self._render(f"{self.severity.upper()}[{type(self).__name__}]")

    def __str__(self) -> str:
        """The diagnostic: header, place, excerpt, help."""
        return self._render(f"{self.severity}[{self.code}]")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._fill(self.title)!r})"

    def _render(self, tag: str) -> str:
        footers: list[tuple[str, str]] = []
        detail = self.fields.get("detail", "")
        if detail and not any("detail" in _names(text) for text in self._templates()):
            footers.append(("note", detail))
        advice = self._fill(self.help)
        if advice:
            footers.append(("help", advice))
        return render(
            Diagnostic(
                header=f"{tag}: {self._fill(self.title)}",
                span=self.location,
                label=self._fill(self.label) if self._all_given(self.label) else "",
                related=self.related,
                footers=tuple(footers),
                appendix=self._fill(self.appendix) if self._all_given(self.appendix) else "",
            )
        )

    @classmethod
    def _templates(cls) -> tuple[str, ...]:
        return cls.title, cls.label, cls.help, cls.appendix

    def _all_given(self, template: str) -> bool:
        return _names(template) <= {*self.defaults, *self.fields}

    def _fill(self, template: str) -> str:
        given = _Fields({**self.defaults, **self.fields})
        defaults = {name: text.format_map(given) for name, text in self.defaults.items()}
        return template.format_map(_Fields({**defaults, **self.fields}))


class BaseError(Base):
    """Base of all errors."""


class BaseWarning(Base):
    """Base of all warnings: printed while compiling, raised nowhere."""

    severity = "warning"


def emit_warning(warning: BaseWarning, ignored: Sequence[type]) -> None:
    """Prints a warning to stderr, unless it is an instance of an ignored class."""
    if not isinstance(warning, tuple(ignored)):
        print(warning.report(), file=sys.stderr)


class _Fields(dict[str, str]):
    """Template values; a field that nobody gave reads `?`: failing would hide the error itself."""

    def __missing__(self, key: str) -> str:
        return "?"


def _names(template: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(template) if name}


def _text(value: object) -> str:
    if isinstance(value, type):
        return value.__name__
    try:
        return str(value)
    except Exception:  # a value that cannot be shown must not hide the error that mentions it
        return f"<{type(value).__name__}>"
