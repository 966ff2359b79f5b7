"""Kinds of setting values: how each is read from an environment variable, and checked.

A kind does not know which setting or variable it serves. It raises `ValueError` or `TypeError`;
the message that people see is composed in `checked` and `from_environment`, which know the name.
"""

from __future__ import annotations

import json
import logging
import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import torch

from helion import exc
from helion.runtime.config import Config

__all__ = [
    "ANYTHING",
    "CONFIGS",
    "FLAG",
    "FUNCTION",
    "INDEX_DTYPE",
    "LOG_LEVEL",
    "OVERRIDES",
    "TEXT",
    "WARNINGS",
    "Kind",
    "checked",
    "choice",
    "from_environment",
    "number",
    "optional",
    "whole",
]


def _same(value: Any) -> Any:
    return value


@dataclass(frozen=True)
class Kind:
    """A kind of setting value.

    Attributes:
        expected: what a value must be, for messages: "a whole number".
        check: returns the value in its canonical form, or raises.
        read: turns the text of an environment variable into something for `check`.
        empty_text: if given, the text for which an empty variable stands; else it counts as unset.
    """

    expected: str
    check: Callable[[Any], Any] = _same
    read: Callable[[str], Any] = _same
    empty_text: str | None = None


def checked(name: str, kind: Kind, value: object) -> Any:
    """The canonical form of a value given in code.

    Raises:
        ValueError: it is none of this kind; the message names the setting.
    """
    try:
        return kind.check(value)
    except (ValueError, TypeError) as error:
        raise ValueError(f"the setting `{name}` must be {kind.expected}, got {value!r}") from error


def from_environment(variable: str, kind: Kind, default: Callable[[], Any]) -> Any:
    """The value of an environment variable, or the default where it is unset.

    Raises:
        ValueError: its text is none of this kind; the message names the variable.
    """
    text = os.environ.get(variable)
    if text is not None and not text.strip():
        text = kind.empty_text
    if text is None:
        return default()
    try:
        return kind.check(kind.read(text.strip()))
    except (ValueError, TypeError, OSError) as error:
        raise ValueError(f"{variable} must be {kind.expected}, got {text!r}") from error


def _check_flag(value: object) -> bool:
    if value in (0, 1):  # True and False too
        return bool(value)
    raise ValueError


def _read_flag(text: str) -> bool:
    word = text.lower()
    if word in ("1", "true", "yes", "on"):
        return True
    if word in ("0", "false", "no", "off"):
        return False
    raise ValueError


FLAG = Kind("1/true/yes/on or 0/false/no/off", _check_flag, _read_flag)

TEXT = Kind("a string", lambda value: value if isinstance(value, str) else _refuse())

ANYTHING = Kind("anything")

FUNCTION = Kind("callable", lambda value: value if callable(value) else _refuse())


def _refuse() -> NoReturn:
    raise ValueError


def choice(*values: str, aliases: Mapping[str, str] | None = None) -> Kind:
    """One of a few words; an alias stands for one of them."""
    renamed = dict(aliases or {})

    def check(value: str) -> str:
        word = renamed.get(value, value)
        return word if word in values else _refuse()

    words = [repr(word) for word in (*values, *renamed)]
    return Kind(f"one of {', '.join(words)}", check)


def whole(minimum: int | None = None) -> Kind:
    """A whole number."""

    def check(value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            _refuse()
        return value if minimum is None or value >= minimum else _refuse()

    limit = "" if minimum is None else f" of at least {minimum}"
    return Kind(f"a whole number{limit}", check, int)


def number(minimum: float) -> Kind:
    """A finite number."""

    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            _refuse()
        return value if math.isfinite(value) and value >= minimum else _refuse()

    def read(text: str) -> float:
        value = float(text)
        return int(value) if value.is_integer() else value

    return Kind(f"a number of at least {minimum:g}", check, read)


def optional(kind: Kind) -> Kind:
    """None, or a value of the kind."""
    return Kind(
        f"None or {kind.expected}",
        lambda value: None if value is None else kind.check(value),
        kind.read,
        kind.empty_text,
    )


_INDEX_DTYPES = {
    "int32": torch.int32,
    "int64": torch.int64,
    "auto": None,
    torch.int32: torch.int32,
    torch.int64: torch.int64,
    None: None,
}

INDEX_DTYPE = Kind(
    "int32, int64 or auto",
    lambda value: _INDEX_DTYPES[value] if value in _INDEX_DTYPES else _refuse(),
    lambda text: text.lower().removeprefix("torch."),
)


def _check_warning(value: object) -> type[exc.BaseWarning]:
    found = getattr(exc, value, None) if isinstance(value, str) else value
    if isinstance(found, type) and issubclass(found, exc.BaseWarning):
        return found
    return _refuse()


def _check_warnings(value: object) -> list[type[exc.BaseWarning]]:
    return (
        [_check_warning(item) for item in value] if isinstance(value, (list, tuple)) else _refuse()
    )


WARNINGS = Kind(
    "warning classes of `helion.exc`",
    _check_warnings,
    lambda text: [name.strip() for name in text.split(",") if name.strip()],
)


def _check_overrides(value: Mapping[Any, object]) -> dict[str, object]:
    keys = dict(value)
    return keys if all(isinstance(name, str) for name in keys) else _refuse()


def _read_overrides(text: str) -> object:
    # A JSON object begins with a brace, and no sane file name does.
    return json.loads(text if text.startswith("{") else Path(text).read_text())


OVERRIDES = Kind(
    "a mapping of config keys (JSON, or a file of it)", _check_overrides, _read_overrides
)


def _check_configs(value: Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[Config]:
    configs = [value] if isinstance(value, Mapping) else value
    return [item if isinstance(item, Config) else Config.from_dict(item) for item in configs]


CONFIGS = Kind("a config or a list of configs", _check_configs)


def _check_log_level(value: object) -> int:
    level = getattr(logging, value.upper(), None) if isinstance(value, str) else value
    return level if isinstance(level, int) and not isinstance(level, bool) else _refuse()


LOG_LEVEL = Kind(
    "a log level, as a number or a name",
    _check_log_level,
    lambda text: int(text) if text.isdecimal() else text,
)
