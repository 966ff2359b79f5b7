"""Expected texts beside a test file: `test_x.py` has them in `test_x.expected`."""

from __future__ import annotations

import inspect
import os
import re
from pathlib import Path

_HEADER = """\
The texts that the tests beside this file expect.
Run a test with EXPECTTEST_ACCEPT=1 to write them anew, and read the difference.
"""
_MARK = "--- assertExpectedJournal({})"
_SECTION = re.compile(r"^--- assertExpectedJournal\((.*)\)$", re.MULTILINE)


class AssertExpectedJournal:
    """The texts that the tests of a class expect, in the order in which each test asserts them.

    Args:
        cls: the class of the tests.
    """

    def __init__(self, cls: type) -> None:
        self.path = Path(inspect.getfile(cls)).with_suffix(".expected")

    def expected(self, test: str, place: int, actual: str) -> str | None:
        """The text number `place` of a test, or None if there is none.

        With EXPECTTEST_ACCEPT=1 in the environment `actual` takes its place.
        """
        sections = self._read()
        texts = sections.setdefault(test, [])
        if os.environ.get("EXPECTTEST_ACCEPT"):
            # A test that is run anew may assert fewer texts than before.
            texts[place:] = [_normal(actual)]
            self._write(sections)
        return texts[place] if place < len(texts) else None

    def _read(self) -> dict[str, list[str]]:
        if not self.path.exists():
            return {}
        parts = _SECTION.split(self.path.read_text(encoding="utf-8"))[1:]
        sections: dict[str, list[str]] = {}
        for test, text in zip(parts[::2], parts[1::2], strict=True):
            sections.setdefault(test, []).append(_normal(text))
        return sections

    def _write(self, sections: dict[str, list[str]]) -> None:
        lines = [_HEADER]
        for test in sorted(sections):
            lines += [f"{_MARK.format(test)}\n{text}" for text in sections[test]]
        temporary = self.path.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text("\n".join(lines), encoding="utf-8")
        temporary.replace(self.path)


def _normal(text: str) -> str:
    """Without blank lines around, and without spaces at the ends of lines."""
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"


def same_text(expected: str | None, actual: str) -> bool:
    """Whether a text is the expected one, white space at the ends aside."""
    return expected is not None and expected == _normal(actual)
