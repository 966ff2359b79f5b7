"""`helion.Settings`: defaults, environment, keywords, and the log configuration."""

import dataclasses
import json
import logging
import os

import pytest
import torch

from helion import exc
from helion.runtime.config import Config
from helion.runtime.logs import configure_logging
from helion.runtime.settings import (
    OutputCodeOptions,
    RefMode,
    Settings,
    _get_backend,
    settings_table,
)

FIELDS = {field.name: field for field in dataclasses.fields(Settings)}
VARIABLES = {field.metadata["env"]: name for name, field in FIELDS.items() if field.metadata["env"]}


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch):
    for variable in (*VARIABLES, "HELION_USE_DEFAULT_CONFIG", "HELION_LOGS"):
        monkeypatch.delenv(variable, raising=False)


# Variable, its text, the setting that it sets, the value that it means.
READ = [
    ("HELION_BACKEND", "triton", "backend", "triton"),
    ("HELION_STATIC_SHAPES", "0", "static_shapes", False),
    ("HELION_INDEX_DTYPE", "int64", "index_dtype", torch.int64),
    ("HELION_INDEX_DTYPE", "torch.int32", "index_dtype", torch.int32),
    ("HELION_INDEX_DTYPE", "auto", "index_dtype", None),
    ("TRITON_F32_DEFAULT", "ieee", "dot_precision", "ieee"),
    ("TRITON_F32_DEFAULT", "high", "dot_precision", "tf32x3"),
    ("HELION_FAST_MATH", "1", "fast_math", True),
    ("HELION_KEEP_NARROWING", "1", "keep_narrowing", True),
    ("HELION_IGNORE_WARNINGS", "WrongDevice, BaseWarning,", "ignore_warnings", None),
    ("HELION_INTERPRET", "1", "ref_mode", RefMode.EAGER),
    ("HELION_INTERPRET", "0", "ref_mode", RefMode.OFF),
    ("HELION_PERSISTENT_RESERVED_SMS", "8", "persistent_reserved_sms", 8),
    ("HELION_ALLOW_WARP_SPECIALIZE", "0", "allow_warp_specialize", False),
    ("HELION_DEBUG_DTYPE_ASSERTS", "1", "debug_dtype_asserts", True),
    ("HELION_TRITON_DO_NOT_SPECIALIZE", "1", "triton_do_not_specialize", True),
    ("HELION_TORCH_COMPILE_FUSION", "1", "torch_compile_fusion", True),
    (
        "HELION_AUTOTUNE_WITH_TORCH_COMPILE_FUSION",
        "1",
        "autotune_with_torch_compile_fusion",
        True,
    ),
    ("HELION_PRINT_OUTPUT_CODE", "1", "print_output_code", True),
    ("HELION_PRINT_REPRO", "1", "print_repro", True),
    ("HELION_OUTPUT_ORIGIN_LINES", "0", "output_origin_lines", False),
    ("HELION_AUTOTUNE_EFFORT", "quick", "autotune_effort", "quick"),
    ("HELION_FORCE_AUTOTUNE", "1", "force_autotune", True),
    ("HELION_AUTOTUNER", "PatternSearch", "autotuner_fn", "PatternSearch"),
    (
        "HELION_AUTOTUNE_CACHE",
        "StrictLocalAutotuneCache",
        "autotune_cache",
        "StrictLocalAutotuneCache",
    ),
    (
        "HELION_AUTOTUNE_CONFIG_OVERRIDES",
        '{"num_warps": 8}',
        "autotune_config_overrides",
        {"num_warps": 8},
    ),
    ("HELION_AUTOTUNE_RANDOM_SEED", "-3", "autotune_random_seed", -3),
    ("HELION_AUTOTUNE_BEST_OF_K", "3", "autotune_best_of_k", 3),
    ("HELION_AUTOTUNE_MAX_GENERATIONS", "9", "autotune_max_generations", 9),
    ("HELION_AUTOTUNE_BUDGET_SECONDS", "2.5", "autotune_budget_seconds", 2.5),
    ("HELION_AUTOTUNE_ACCURACY_CHECK", "0", "autotune_accuracy_check", False),
    ("HELION_AUTOTUNE_PRECOMPILE", "spawn", "autotune_precompile", "spawn"),
    ("HELION_AUTOTUNE_PRECOMPILE", "0", "autotune_precompile", None),
    ("HELION_AUTOTUNE_PRECOMPILE", "", "autotune_precompile", None),
    ("HELION_AUTOTUNE_PRECOMPILE_JOBS", "3", "autotune_precompile_jobs", 3),
    ("HELION_AUTOTUNE_COMPILE_TIMEOUT", "5", "autotune_compile_timeout", 5),
    ("HELION_AUTOTUNE_BENCHMARK_TIMEOUT", "5", "autotune_benchmark_timeout", 5),
    ("HELION_AUTOTUNE_BENCHMARK_SUBPROCESS", "0", "autotune_benchmark_subprocess", False),
    ("HELION_AUTOTUNE_IGNORE_ERRORS", "1", "autotune_ignore_errors", True),
    ("HELION_AUTOTUNE_ADAPTIVE_TIMEOUT", "0", "autotune_adaptive_timeout", False),
    ("HELION_AUTOTUNE_PROGRESS_BAR", "0", "autotune_progress_bar", False),
    ("HELION_REBENCHMARK_THRESHOLD", "1.5", "autotune_rebenchmark_threshold", 1.5),
    (
        "HELION_SUSPICIOUS_REBENCHMARK_RATIO",
        "0.5",
        "autotune_suspicious_rebenchmark_ratio",
        0.5,
    ),
    ("HELION_AUTOTUNE_FORCE_PERSISTENT", "1", "autotune_force_persistent", True),
    ("HELION_AUTOTUNE_LOG_LEVEL", "debug", "autotune_log_level", logging.DEBUG),
    ("HELION_AUTOTUNE_LOG_LEVEL", "25", "autotune_log_level", 25),
    ("HELION_AUTOTUNE_LOG", "run/base", "autotune_log", "run/base"),
    ("HELION_AUTOTUNE_LOG_DETAILS", "1", "autotune_log_details", True),
]
READ[9] = (*READ[9][:3], [exc.WrongDevice, exc.BaseWarning])
