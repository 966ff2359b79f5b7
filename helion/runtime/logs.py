"""HELION_LOGS: which loggers of the package speak, and how much."""

from __future__ import annotations

import logging
import os
import sys

__all__ = ["configure_logging"]

_PACKAGE = "helion"


class _StderrHandler(logging.Handler):
    """Writes to what `sys.stderr` is at that moment, so that a redirection made later is honoured.

    Attributes:
        levels_before: the levels that loggers had before this handler came, by logger name.
    """

    def __init__(self) -> None:
        super().__init__()
        self.levels_before: dict[str, int] = {}
        self.setFormatter(logging.Formatter("[%(name)s] %(levelname)s: %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        """Writes one record."""
        try:
            print(self.format(record), file=sys.stderr)
        except Exception:
            self.handleError(record)


def configure_logging(spec: str | None = None) -> None:
    """Lets loggers of the package write to stderr.

    Calling it again replaces what the call before it set.

    Args:
        spec: names of loggers, separated by commas; `all` is the whole package, and a name outside
            of the package is taken as a part of it. A leading `+` lets DEBUG through, else INFO.
            None: what HELION_LOGS says.

    Example: `configure_logging("+runtime.kernel,autotuner")`
    """
    if spec is None:
        spec = os.environ.get("HELION_LOGS", "")
    package = logging.getLogger(_PACKAGE)
    _undo(package)
    entries = [entry.strip() for entry in spec.split(",") if entry.strip(" +")]
    if not entries:
        return
    handler = _StderrHandler()
    package.addHandler(handler)
    # The application's own handlers would print the same records a second time.
    package.propagate = False
    for entry in entries:
        logger = logging.getLogger(_full_name(entry.lstrip("+ ")))
        handler.levels_before.setdefault(logger.name, logger.level)
        logger.setLevel(logging.DEBUG if entry.startswith("+") else logging.INFO)


def _undo(package: logging.Logger) -> None:
    for handler in [item for item in package.handlers if isinstance(item, _StderrHandler)]:
        package.removeHandler(handler)
        package.propagate = True
        for name, level in handler.levels_before.items():
            logging.getLogger(name).setLevel(level)


def _full_name(name: str) -> str:
    if name in ("all", _PACKAGE):
        return _PACKAGE
    return name if name.startswith(f"{_PACKAGE}.") else f"{_PACKAGE}.{name}"
