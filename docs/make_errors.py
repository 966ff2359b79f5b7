"""Writes `errors.md` from the catalogue and from the programs in `test/errors`."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

from helion import exc

DOCS = Path(__file__).parent
PROGRAMS = DOCS.parent / "test" / "errors"

# Each file of the catalogue, with the heading of its section.
_SECTIONS = {
    "program": "The kernel as a whole",
    "scoping": "Python in kernels, host and device",
    "shapes": "Tiles, subscripts, shapes, dtypes",
    "random_numbers": "Random numbers",
    "usage": "Single operations",
    "tuning": "Configs",
    "internal": "The compiler and its modes",
    "warning": "Warnings",
}

_INTRODUCTION = """\
<!-- Made by `python docs/make_errors.py` from `test/errors`; not edited by hand. -->

# Errors and warnings

Each error is a class in `helion.exc` with a code of its own. The message shows the author's line
with the place that is wrong underlined `^^^`, then, underlined `---`, the places that explain it,
and says what to do. The classes derive from `helion.exc.BaseError` (a `RuntimeError`), and from
`TypeError` or `ValueError` where Python would raise that. Warnings go to stderr while a kernel is
compiled, once for each place; `ignore_warnings=[helion.exc.WrongDevice]` silences a class for a
kernel. What the host part itself raises (a failing `assert`, a `raise`) leaves the kernel as it is.

The programs below are shown without their imports, which the line numbers count.
"""


def page() -> str:
    """The text of `errors.md`."""
    examples = _examples()
    parts = [_INTRODUCTION]
    for file, heading in _SECTIONS.items():
        classes = _classes(file)
        parts.append(f"## {heading}\n")
        parts += [_entry(cls, *examples[cls.code]) for cls in classes if cls.code in examples]
        others = [cls for cls in classes if cls.code not in examples]
        if others:
            parts.append("Without an example:\n")
            parts.append("\n".join(_line(cls) for cls in others) + "\n")
    return "\n".join(parts)


def _classes(file: str) -> list[type[exc.Base]]:
    """The classes of one file of the catalogue, in its order, private bases left out."""
    module = sys.modules[f"helion.exc.{file}"]
    found = (v for v in vars(module).values() if inspect.isclass(v) and issubclass(v, exc.Base))
    return [c for c in found if c.__module__ == module.__name__ and c.__name__ in module.__all__]


def _examples() -> dict[str, tuple[str, str]]:
    """The shortest program for each code, and what it says."""
    names = {cls.__name__: cls.code for file in _SECTIONS for cls in _classes(file)}
    found: dict[str, tuple[str, str]] = {}
    for text in sorted(PROGRAMS.glob("*.err"), key=lambda path: (path.stat().st_size, path.name)):
        said = text.read_text(encoding="utf-8")
        tag = re.match(r"\w+\[(.+?)\]", said)
        assert tag is not None, text
        program = text.with_suffix(".py").read_text(encoding="utf-8")
        found.setdefault(names.get(tag[1], tag[1]), (program, said))
    return found


def _entry(cls: type[exc.Base], program: str, said: str) -> str:
    body = re.sub(r"\A(?:import .*\n|\n)*", "", program)
    summary = inspect.getdoc(cls) or ""
    return (
        f"### {cls.code}\n\n`helion.exc.{cls.__name__}`: {summary}\n\n"
        f"```python\n{body}```\n\n```text\n{said}```\n"
    )


def _line(cls: type[exc.Base]) -> str:
    summary = (inspect.getdoc(cls) or "").splitlines()[0]
    return f"- **{cls.code}**, `helion.exc.{cls.__name__}`: {summary}"


if __name__ == "__main__":
    (DOCS / "errors.md").write_text(page(), encoding="utf-8")
