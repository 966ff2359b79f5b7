"""Settings: how a kernel is compiled, run and tuned, apart from its config.

Every setting is one row: a field of `Settings` with its kind, default, environment variable and
meaning. The environment is read when a `Settings` object is made; a keyword wins over it.
"""
# ruff: noqa: RUF009 - `_setting` makes a `dataclasses.field`, which computes each default anew

from __future__ import annotations

import dataclasses
import enum
import logging
import os
import time
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
    from collections.abc import Callable

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
"""Search classes that HELION_AUTOTUNER may name; the autotuner, above this file, has them."""

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


def _setting(
    doc: str,
    kind: Kind,
    default: object,
    env: str | None = None,
    *,
    before: Callable[[], object] = lambda: None,
) -> Any:
    """One row of the table: a dataclass field whose default is what the environment says.

    Args:
        doc: what the setting means.
        kind: which values it takes.
        default: its value where nothing else says one.
        env: the environment variable, if it has one.
        before: gives a value that wins over that variable, or None.
    """

    def fallback() -> Any:
        value = default.compute() if isinstance(default, _Computed) else default
        return kind.check(value)  # a fresh list or dict each time

    def make() -> Any:
        first = before()
        if first is not None:
            return first
        return fallback() if env is None else from_environment(env, kind, fallback)

    shown = default.shown if isinstance(default, _Computed) else repr(default)
    if isinstance(default, enum.Enum):
        shown = str(default)
    return dataclasses.field(
        default_factory=make, metadata={"doc": doc, "kind": kind, "env": env, "default": shown}
    )


def _default_config_wanted() -> str | None:
    wanted = from_environment("HELION_USE_DEFAULT_CONFIG", FLAG, lambda: False)
    return "none" if wanted else None


@dataclass(kw_only=True)
class Settings:
    """How a kernel is compiled, run and tuned.

    Values are checked whenever they are set, also later: `kernel.settings` may be changed, and is
    read when a kernel is bound or compiled. `settings_table` prints the rows below. Each change
    makes a new `state`, so that a kernel sees at a glance that nothing changed.

    Raises:
        TypeError: a keyword that is no setting.
        ValueError: a value that the setting does not take; the message names it, or its variable.
    """

    state = object()  # no field: it has no annotation

    backend: Literal["triton"] = _setting(
        "Which code is generated.", choice("triton"), "triton", "HELION_BACKEND"
    )
    static_shapes: bool = _setting(
        "Whether sizes and strides are part of the key and constants in the code.",
        FLAG,
        True,
        "HELION_STATIC_SHAPES",
    )
    index_dtype: torch.dtype | None = _setting(
        "Width of index arithmetic; None: 64 bits where a tensor needs them, else 32.",
        INDEX_DTYPE,
        None,
        "HELION_INDEX_DTYPE",
    )
    dot_precision: Literal["tf32", "tf32x3", "ieee"] = _setting(
        "How float32 matrix products are computed.",
        choice("tf32", "tf32x3", "ieee", aliases=_DOT_ALIASES),
        "tf32",
        "TRITON_F32_DEFAULT",
    )
    fast_math: bool = _setting(
        "Allow approximate exp, division and the like, and looser treatment of NaN.",
        FLAG,
        False,
        "HELION_FAST_MATH",
    )
    keep_narrowing: bool = _setting(
        "Keep float32 -> bfloat16 -> float32 round trips between fused operations.",
        FLAG,
        False,
        "HELION_KEEP_NARROWING",
    )
    ignore_warnings: list[type[exc.BaseWarning]] = _setting(
        "Warning classes that are not printed, each with its subclasses.",
        WARNINGS,
        [],
        "HELION_IGNORE_WARNINGS",
    )
    ref_mode: RefMode = _setting(
        "Run kernels as ordinary Python instead of compiling them.",
        _REF_MODE,
        RefMode.OFF,
        "HELION_INTERPRET",
    )
    persistent_reserved_sms: int = _setting(
        "Multiprocessors that persistent kernels leave free.",
        whole(0),
        0,
        "HELION_PERSISTENT_RESERVED_SMS",
    )
    allow_warp_specialize: bool = _setting(
        "Permit `range_warp_specializes` in configs.", FLAG, True, "HELION_ALLOW_WARP_SPECIALIZE"
    )
    debug_dtype_asserts: bool = _setting(
        "Check the dtype of each intermediate value when Triton compiles.",
        FLAG,
        False,
        "HELION_DEBUG_DTYPE_ASSERTS",
    )
    triton_do_not_specialize: bool = _setting(
        "With dynamic shapes: no specialization of sizes and strides by Triton.",
        FLAG,
        False,
        "HELION_TRITON_DO_NOT_SPECIALIZE",
    )
    torch_compile_fusion: bool = _setting(
        "Fuse surrounding `torch.compile` graphs into kernels.",
        FLAG,
        False,
        "HELION_TORCH_COMPILE_FUSION",
    )
    autotune_with_torch_compile_fusion: bool = _setting(
        "Tune with those graphs fused.", FLAG, False, "HELION_AUTOTUNE_WITH_TORCH_COMPILE_FUSION"
    )

    print_output_code: bool = _setting(
        "Print each generated module to stderr.", FLAG, False, "HELION_PRINT_OUTPUT_CODE"
    )
    print_repro: bool = _setting(
        "Print a script that runs the kernel alone to stderr.", FLAG, False, "HELION_PRINT_REPRO"
    )
    output_origin_lines: bool = _setting(
        "Name the author's lines in comments of generated code.",
        FLAG,
        True,
        "HELION_OUTPUT_ORIGIN_LINES",
    )

    autotune_effort: Literal["none", "quick", "full"] = _setting(
        "How long to search for a config; HELION_USE_DEFAULT_CONFIG=1 means 'none'.",
        choice("none", "quick", "full"),
        "full",
        "HELION_AUTOTUNE_EFFORT",
        before=_default_config_wanted,
    )
    force_autotune: bool = _setting(
        "Search even if a config is given or cached.", FLAG, False, "HELION_FORCE_AUTOTUNE"
    )
    autotuner_fn: Callable[..., Any] | str | None = _setting(
        "Makes the search from (bound_kernel, args); or the name of a search class.",
        optional(_AUTOTUNER),
        None,
        "HELION_AUTOTUNER",
    )
    autotune_cache: str = _setting(
        "Name of the cache class for configs.",
        choice(*CACHE_NAMES),
        "LocalAutotuneCache",
        "HELION_AUTOTUNE_CACHE",
    )
    autotune_config_overrides: dict[str, Any] = _setting(
        "Config keys that every candidate gets (JSON, or a file of it).",
        OVERRIDES,
        {},
        "HELION_AUTOTUNE_CONFIG_OVERRIDES",
    )
    autotune_seed_configs: list[Config] | None = _setting(
        "A config, or a list of them, to start the search from.", optional(CONFIGS), None
    )
    autotune_config_filter: Callable[[Config], Config | None] | None = _setting(
        "Changes a candidate, or drops it by returning None.", optional(FUNCTION), None
    )
    autotune_random_seed: int = _setting(
        "Seed of the search.",
        whole(),
        _Computed(lambda: time.time_ns() // 1000 % 2**32, "from the time"),
        "HELION_AUTOTUNE_RANDOM_SEED",
    )
    autotune_best_of_k: int = _setting(
        "Number of searches of which the best counts.", whole(1), 1, "HELION_AUTOTUNE_BEST_OF_K"
    )
    autotune_max_generations: int | None = _setting(
        "Most rounds of a search.", optional(whole(0)), None, "HELION_AUTOTUNE_MAX_GENERATIONS"
    )
    autotune_budget_seconds: float | None = _setting(
        "Most seconds of a search.", optional(number(0)), None, "HELION_AUTOTUNE_BUDGET_SECONDS"
    )
    autotune_accuracy_check: bool = _setting(
        "Reject candidates with a wrong output.", FLAG, True, "HELION_AUTOTUNE_ACCURACY_CHECK"
    )
    autotune_baseline_fn: Callable[..., Any] | None = _setting(
        "Computes the right output; None: the default config does.", optional(FUNCTION), None
    )
    autotune_baseline_atol: float | None = _setting(
        "Absolute tolerance of the check; None: 1e-2, 0 for float8.", optional(number(0)), None
    )
    autotune_baseline_rtol: float | None = _setting(
        "Relative tolerance of the check; None: 1e-2, 0 for float8.", optional(number(0)), None
    )
    autotune_baseline_accuracy_check_fn: Callable[..., Any] | None = _setting(
        "Compares outputs instead of the tolerances.", optional(FUNCTION), None
    )
    autotune_benchmark_fn: Callable[..., Any] | None = _setting(
        "Takes the place of the timer.", optional(FUNCTION), None
    )
    autotune_precompile: Literal["fork", "spawn"] | None = _setting(
        "How to compile candidates in parallel; empty or 0: one by one.",
        _PRECOMPILE,
        "fork",
        "HELION_AUTOTUNE_PRECOMPILE",
    )
    autotune_precompile_jobs: int = _setting(
        "Number of candidates compiled at once.",
        whole(1),
        _Computed(lambda: os.cpu_count() or 1, "number of CPUs"),
        "HELION_AUTOTUNE_PRECOMPILE_JOBS",
    )
    autotune_compile_timeout: float = _setting(
        "Seconds to compile one candidate.", number(0), 60, "HELION_AUTOTUNE_COMPILE_TIMEOUT"
    )
    autotune_benchmark_timeout: float = _setting(
        "Seconds to time one candidate.", number(0), 30, "HELION_AUTOTUNE_BENCHMARK_TIMEOUT"
    )
    autotune_benchmark_subprocess: bool = _setting(
        "Time candidates in a child process, so that one that hangs can be ended.",
        FLAG,
        True,
        "HELION_AUTOTUNE_BENCHMARK_SUBPROCESS",
    )
    autotune_ignore_errors: bool = _setting(
        "Skip candidates that fail instead of raising.",
        FLAG,
        False,
        "HELION_AUTOTUNE_IGNORE_ERRORS",
    )
    autotune_adaptive_timeout: bool = _setting(
        "Lower the timeouts once good candidates are known.",
        FLAG,
        True,
        "HELION_AUTOTUNE_ADAPTIVE_TIMEOUT",
    )
    autotune_progress_bar: bool = _setting(
        "Show the progress of the search.", FLAG, True, "HELION_AUTOTUNE_PROGRESS_BAR"
    )
    autotune_rebenchmark_threshold: float | None = _setting(
        "Time candidates within this factor of the best again; None: by the effort.",
        optional(number(0)),
        None,
        "HELION_REBENCHMARK_THRESHOLD",
    )
    autotune_suspicious_rebenchmark_ratio: float = _setting(
        "Time a candidate again that is this much faster than the best.",
        number(0),
        0.9,
        "HELION_SUSPICIOUS_REBENCHMARK_RATIO",
    )
    autotune_force_persistent: bool = _setting(
        "Search persistent `pid_type`s only.", FLAG, False, "HELION_AUTOTUNE_FORCE_PERSISTENT"
    )
    autotune_log_level: int = _setting(
        "Level of the search's log, as a number or a name.",
        LOG_LEVEL,
        _Computed(lambda: logging.INFO, "INFO"),
        "HELION_AUTOTUNE_LOG_LEVEL",
    )
    autotune_log: str | None = _setting(
        "Write the search to `<value>.csv` and `<value>.log`.",
        optional(TEXT),
        None,
        "HELION_AUTOTUNE_LOG",
    )
    autotune_log_details: bool = _setting(
        "Write every candidate there.", FLAG, False, "HELION_AUTOTUNE_LOG_DETAILS"
    )
    disable_autotuner_heuristics: bool = _setting("Accepted; has no effect.", FLAG, False)
    autotune_initial_population_strategy: Any = _setting("Accepted; has no effect.", ANYTHING, None)
    autotune_search_acf: Any = _setting("Accepted; has no effect.", ANYTHING, None)
    autotune_log_search_space: Any = _setting("Accepted; has no effect.", ANYTHING, None)
    autotune_best_available_max_configs: Any = _setting("Accepted; has no effect.", ANYTHING, None)
    autotune_best_available_max_cache_scan: Any = _setting(
        "Accepted; has no effect.", ANYTHING, None
    )

    def __setattr__(self, name: str, value: object) -> None:
        field = type(self).__dataclass_fields__.get(name)
        if field is None:
            raise AttributeError(f"`{name}` is not a setting")
        object.__setattr__(self, name, checked(name, field.metadata["kind"], value))
        object.__setattr__(self, "state", object())

    def to_dict(self) -> dict[str, Any]:
        """All settings by name; the values are not copied."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}


def settings_table() -> str:
    """The settings as a Markdown table, one row each."""
    rows = ["| Setting | Environment | Default | Meaning |", "| --- | --- | --- | --- |"]
    for field in dataclasses.fields(Settings):
        env = f"`{field.metadata['env']}`" if field.metadata["env"] else ""
        doc, default = field.metadata["doc"], field.metadata["default"]
        rows.append(f"| `{field.name}` | {env} | {default} | {doc} |")
    return "\n".join(rows)


def _get_backend() -> str:  # pyright: ignore[reportUnusedFunction] - kernel files import it
    return "triton"
