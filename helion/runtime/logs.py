"""HELION_LOGS: which loggers of the package speak, and how much."""

from __future__ import annotations

import logging
import os
import sys

__all__ = ["configure_logging"]

_PACKAGE = "helion"


class _StderrHandler(logging.Handler):
    """Writes to what `sys.stderr` is at that moment, so that a redirection made later is honoured."""

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record."""
        print(self.format(record), file=sys.stderr)


def configure_logging(spec: str | None = None) -> None:
    """Lets loggers of the package write to stderr.

    Calling it again with another specification replaces what an earlier call set.

    Args:
        spec: names of loggers, separated by commas; `all` is the whole package, a name outside of it is
            taken as a part of it. A leading `+` lets DEBUG through, else INFO. None: HELION_LOGS; where that
            is unset nothing changes.

    Example: `configure_logging("+runtime.kernel,autotuner")`
    """
    if spec is None:
        spec = os.environ.get("HELION_LOGS", "")
    entries = [entry.strip() for entry in spec.split(",") if entry.strip(" +")]
    package = logging.getLogger(_PACKAGE)
    _undo(package)
    if not entries:
        return
    handler = _StderrHandler()
    handler.setFormatter(logging.Formatter("[%(name)s] %(levelname)s: %(message)s"))
    package.addHandler(handler)
    # The application's own handlers would print the same records a second time.
    package.propagate = False
    for entry in entries:
        level = logging.DEBUG if entry.startswith("+") else logging.INFO
        logging.getLogger(_full_name(entry.lstrip("+ "))).setLevel(level)


def _full_name(name: str) -> str:
    if name in ("all", _PACKAGE):
        return _PACKAGE
    return name if name.startswith(f"{_PACKAGE}.") else f"{_PACKAGE}.{name}"
