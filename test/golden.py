"""Golden texts: `test_x.expected` beside `test_x.py`, in sections named after what they show.

Run with `EXPECTTEST_ACCEPT=1`, in one process, to write them anew, and read what changed.
"""

from __future__ import annotations

import dataclasses
import os
import re
from pathlib import Path

HEAD = "--- "


@dataclasses.dataclass(frozen=True)
class Golden:
    """The golden texts of one test file."""

    path: Path

    def __call__(self, name: str, text: str) -> None:
        """Compare a text with a section."""
        sections = self._read()
        if accepting() and sections.get(name) != text:
            sections[name] = text
            self._write(sections)
        assert text == sections.get(name, "this section does not exist")

    def are_all(self, names: list[str]) -> None:
        """Check that there are these sections, in this order, and no others."""
        sections = self._read()
        if accepting() and list(sections) != names:
            sections = {name: sections[name] for name in names}
            self._write(sections)
        assert list(sections) == names

    def _read(self) -> dict[str, str]:
        if not self.path.exists():
            return {}
        text = self.path.read_text(encoding="utf-8")
        parts = re.split(rf"(?m)^{HEAD}(.*)\n", text)[1:]
        return {n: t.rstrip("\n") for n, t in zip(parts[::2], parts[1::2], strict=True)}

    def _write(self, sections: dict[str, str]) -> None:
        text = "\n\n".join(f"{HEAD}{name}\n{text}" for name, text in sections.items())
        self.path.write_text(text + "\n", encoding="utf-8")


def accepting() -> bool:
    return os.environ.get("EXPECTTEST_ACCEPT") == "1"
