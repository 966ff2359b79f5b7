"""Settings: how a kernel is compiled, run and tuned, apart from its config.

Every setting is one row: a field of `Settings` with its kind, default, environment variable and meaning. The
environment is read when a `Settings` object is made; a keyword wins over it.
"""

from __future__ import annotations

import dataclasses
import enum
import logging
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from helion.runtime.setting_kinds import (
    ANYTHING,
    CONFIGS,
    FLAG,
    FUNCTION,
    INDEX_DTYPE,
    LOG_LEVEL,
    OVERRIDES,
    TEXT,
    WARNINGS,
    Kind,
    checked,
    choice,
    from_environment,
    number,
    optional,
    whole,
)

if TYPE_CHECKING:
    import torch

    from helion import exc
    from helion.runtime.config import Config

__all__ = [
    "AUTOTUNER_NAMES",
    "CACHE_NAMES",
    "OutputCodeOptions",
    "RefMode",
    "Settings",
    "settings_table",
]

AUTOTUNER_NAMES = (
    "LFBOTreeSearch",
    "LFBOPatternSearch",
    "DESurrogateHybrid",
    "PatternSearch",
    "DifferentialEvolutionSearch",
    "FiniteSearch",
    "RandomSearch",
)
"""Search classes that HELION_AUTOTUNER may name; the autotuner, which this file cannot import, has them."""

CACHE_NAMES = ("LocalAutotuneCache", "StrictLocalAutotuneCache")
"""Cache classes that HELION_AUTOTUNE_CACHE may name."""

_DOT_ALIASES = {"default": "tf32", "high": "tf32x3", "highest": "ieee"}


class RefMode(enum.Enum):
    """Whether kernels are compiled, or run as ordinary Python on real tensors."""

    OFF = "off"
    EAGER = "eager"


@dataclass(frozen=True)
class OutputCodeOptions:
    """What generated code may look like.

    Attributes:
        allow_helion_deps: whether the module may import helion.
    """

    allow_helion_deps: bool = True


def _check_ref_mode(value: object) -> RefMode:
    if isinstance(value, RefMode):
        return value
    raise TypeError


def _read_ref_mode(text: str) -> RefMode:
    return RefMode.EAGER if FLAG.read(text) else RefMode.OFF


def _check_autotuner(value: object) -> object:
    if callable(value) or value in AUTOTUNER_NAMES:
        return value
    raise ValueError


def _check_precompile(value: object) -> object:
    if value in ("fork", "spawn"):
        return value
    if value in (None, False, "", "0"):
        return None
    raise ValueError


_REF_MODE = Kind("a `helion.RefMode` (1 or 0 in the environment)", _check_ref_mode, _read_ref_mode)
_AUTOTUNER = Kind(f"a function, or one of {', '.join(AUTOTUNER_NAMES)}", _check_autotuner)
# The one variable for which empty is a value: it switches precompilation off.
_PRECOMPILE = Kind("'fork', 'spawn', or 0 for none", _check_precompile, empty_text="0")


@dataclass(frozen=True)
class _Computed:
    """A default that is found when settings are made, and how the documentation shows it."""

    compute: Callable[[], object]
    shown: str


def _setting(doc: str, kind: Kind, default: object, env: str | None = None) -> Any:
    """One row of the table: a dataclass field whose default is the environment's value."""

    def fallback() -> Any:
        value = default.compute() if isinstance(default, _Computed) else default
        return kind.check(value)  # a fresh list or dict each time

    def make() -> Any:
        return fallback() if env is None else from_environment(env, kind, fallback)

    shown = default.shown if isinstance(default, _Computed) else repr(default)
    return dataclasses.field(
        default_factory=make, metadata={"doc": doc, "kind": kind, "env": env, "default": shown}
    )


def _effort_default() -> str:
    skip = from_environment("HELION_USE_DEFAULT_CONFIG", FLAG, lambda: False)
    return "none" if skip else from_environment("HELION_AUTOTUNE_EFFORT", _EFFORT, lambda: "full")
