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
    ("HELION_IGNORE_WARNINGS", "WrongDevice", "ignore_warnings", [exc.WrongDevice]),
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


@pytest.mark.parametrize(("variable", "text", "name", "value"), READ)
def test_environment_is_read_when_the_object_is_made(monkeypatch, variable, text, name, value):
    before = Settings()
    monkeypatch.setenv(variable, text)
    changed = {n: v for n, v in Settings().to_dict().items() if v != before.to_dict()[n]}
    changed.pop("autotune_random_seed", None)
    assert getattr(Settings(), name) == value
    assert set(changed) <= {name}


def test_the_table_above_has_every_variable():
    assert {row[0] for row in READ} == set(VARIABLES)


@pytest.mark.parametrize("variable", sorted(set(VARIABLES) - {"HELION_AUTOTUNE_PRECOMPILE"}))
def test_empty_variable_counts_as_unset(monkeypatch, variable):
    monkeypatch.setenv("HELION_AUTOTUNE_RANDOM_SEED", "1")
    expected = Settings()
    monkeypatch.setenv(variable, " ")
    settings = Settings()
    if variable == "HELION_AUTOTUNE_RANDOM_SEED":
        assert settings.autotune_random_seed != 1
        settings.autotune_random_seed = 1
    assert settings == expected


BAD = [
    ("HELION_BACKEND", "cute"),
    ("HELION_STATIC_SHAPES", "maybe"),
    ("HELION_INDEX_DTYPE", "int16"),
    ("TRITON_F32_DEFAULT", "fp8"),
    ("HELION_IGNORE_WARNINGS", "NoSuchWarning"),
    ("HELION_IGNORE_WARNINGS", "ShapeMismatch"),
    ("HELION_INTERPRET", "eager"),
    ("HELION_PERSISTENT_RESERVED_SMS", "-1"),
    ("HELION_AUTOTUNE_EFFORT", "huge"),
    ("HELION_USE_DEFAULT_CONFIG", "perhaps"),
    ("HELION_AUTOTUNER", "NoSuchSearch"),
    ("HELION_AUTOTUNE_CACHE", "NoSuchCache"),
    ("HELION_AUTOTUNE_CONFIG_OVERRIDES", "{not json"),
    ("HELION_AUTOTUNE_CONFIG_OVERRIDES", "no/such/file"),
    ("HELION_AUTOTUNE_RANDOM_SEED", "1.5"),
    ("HELION_AUTOTUNE_BEST_OF_K", "0"),
    ("HELION_AUTOTUNE_BUDGET_SECONDS", "nan"),
    ("HELION_AUTOTUNE_PRECOMPILE", "thread"),
    ("HELION_AUTOTUNE_LOG_LEVEL", "loud"),
    ("HELION_AUTOTUNE_LOG_LEVEL", "basic_format"),
]


@pytest.mark.parametrize(("variable", "text"), BAD)
def test_bad_text_names_the_variable(monkeypatch, variable, text):
    monkeypatch.setenv(variable, text)
    with pytest.raises(ValueError, match=f"^{variable} must be .*, got {text!r}$"):
        Settings()


@pytest.mark.parametrize("word", ["1", "true", "YES", "On"])
def test_words_for_true(monkeypatch, word):
    monkeypatch.setenv("HELION_FAST_MATH", word)
    assert Settings().fast_math is True


@pytest.mark.parametrize("word", ["0", "False", "no", "OFF"])
def test_words_for_false(monkeypatch, word):
    monkeypatch.setenv("HELION_STATIC_SHAPES", word)
    assert Settings().static_shapes is False


def test_defaults():
    settings = Settings().to_dict()
    assert 0 <= settings.pop("autotune_random_seed") < 2**32
    assert settings.pop("autotune_precompile_jobs") == os.cpu_count()
    plain = {name: value for name, value in settings.items() if value not in (None, False, [], {})}
    assert plain == {
        "backend": "triton",
        "static_shapes": True,
        "dot_precision": "tf32",
        "ref_mode": RefMode.OFF,
        "allow_warp_specialize": True,
        "output_origin_lines": True,
        "autotune_effort": "full",
        "autotune_cache": "LocalAutotuneCache",
        "autotune_best_of_k": 1,
        "autotune_accuracy_check": True,
        "autotune_precompile": "fork",
        "autotune_compile_timeout": 60,
        "autotune_benchmark_timeout": 30,
        "autotune_benchmark_subprocess": True,
        "autotune_adaptive_timeout": True,
        "autotune_progress_bar": True,
        "autotune_suspicious_rebenchmark_ratio": 0.9,
        "autotune_log_level": logging.INFO,
    }
    assert settings["persistent_reserved_sms"] == 0


def test_keyword_wins_over_the_environment(monkeypatch):
    monkeypatch.setenv("HELION_STATIC_SHAPES", "0")
    monkeypatch.setenv("HELION_AUTOTUNE_EFFORT", "quick")
    settings = Settings(static_shapes=True, autotune_effort="full")
    assert settings.static_shapes is True
    assert settings.autotune_effort == "full"


def test_keyword_means_that_its_variable_is_not_read(monkeypatch):
    monkeypatch.setenv("HELION_BACKEND", "cute")
    assert Settings(backend="triton").backend == "triton"


@pytest.mark.parametrize(
    ("use_default", "effort", "expected"),
    [("1", None, "none"), ("1", "quick", "none"), ("0", None, "full"), ("0", "quick", "quick")],
)
def test_use_default_config(monkeypatch, use_default, effort, expected):
    monkeypatch.setenv("HELION_USE_DEFAULT_CONFIG", use_default)
    if effort is not None:
        monkeypatch.setenv("HELION_AUTOTUNE_EFFORT", effort)
    assert Settings().autotune_effort == expected
    assert Settings(autotune_effort="full").autotune_effort == "full"


def test_unknown_keyword():
    with pytest.raises(TypeError, match="no_such_setting"):
        Settings(no_such_setting=1)
    with pytest.raises(TypeError):
        Settings(True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("backend", "pallas"),
        ("static_shapes", "yes"),
        ("static_shapes", None),
        ("index_dtype", torch.float32),
        ("index_dtype", []),
        ("dot_precision", "exact"),
        ("ignore_warnings", [exc.ShapeMismatch]),
        ("ignore_warnings", "BaseWarning"),
        ("ref_mode", "eager"),
        ("persistent_reserved_sms", -1),
        ("persistent_reserved_sms", True),
        ("autotune_best_of_k", 0),
        ("autotune_compile_timeout", float("inf")),
        ("autotune_config_overrides", {1: 2}),
        ("autotune_config_filter", "f"),
        ("autotune_seed_configs", 5),
        ("autotune_log", 5),
        ("autotuner_fn", "NoSuchSearch"),
    ],
)
def test_bad_keyword_names_the_setting(name, value):
    with pytest.raises(ValueError, match=f"^the setting `{name}` must be "):
        Settings(**{name: value})
    settings = Settings()
    with pytest.raises(ValueError, match=f"^the setting `{name}` must be "):
        setattr(settings, name, value)


def test_values_are_put_into_one_form():
    settings = Settings(
        dot_precision="highest",
        static_shapes=0,
        index_dtype="int64",
        ignore_warnings=(exc.WrongDevice,),
        autotune_seed_configs={"num_warps": 2},
        autotune_config_overrides=Config(num_warps=8),
        autotune_log_level="WARNING",
    )
    assert settings.dot_precision == "ieee"
    assert settings.static_shapes is False
    assert settings.index_dtype is torch.int64
    assert settings.ignore_warnings == [exc.WrongDevice]
    assert settings.autotune_seed_configs == [Config(num_warps=2)]
    assert settings.autotune_config_overrides == {"num_warps": 8}
    assert settings.autotune_log_level == logging.WARNING


def test_may_be_changed_later():
    settings = Settings()
    settings.dot_precision = "default"
    settings.autotuner_fn = max
    assert (settings.dot_precision, settings.autotuner_fn) == ("tf32", max)
    with pytest.raises(AttributeError, match="`dot_precison` is not a setting"):
        settings.dot_precison = "ieee"


def test_objects_share_no_list():
    Settings().ignore_warnings.append(exc.WrongDevice)
    Settings().autotune_config_overrides["num_warps"] = 8
    assert Settings().ignore_warnings == []
    assert Settings().autotune_config_overrides == {}


def test_ignored_base_silences_all(monkeypatch, capsys):
    monkeypatch.setenv("HELION_IGNORE_WARNINGS", "BaseWarning")
    exc.emit_warning(exc.WrongDevice(), Settings().ignore_warnings)
    assert capsys.readouterr().err == ""


def test_overrides_from_a_file(monkeypatch, tmp_path):
    path = tmp_path / "overrides.json"
    path.write_text(json.dumps({"block_sizes": [32]}))
    monkeypatch.setenv("HELION_AUTOTUNE_CONFIG_OVERRIDES", str(path))
    assert Settings().autotune_config_overrides == {"block_sizes": [32]}
    path.write_text("[1]")
    with pytest.raises(ValueError, match="HELION_AUTOTUNE_CONFIG_OVERRIDES must be a mapping"):
        Settings()


def test_to_dict_gives_all_settings():
    settings = Settings(fast_math=True)
    assert list(settings.to_dict()) == list(FIELDS)
    assert settings.to_dict()["fast_math"] is True
    assert Settings(**settings.to_dict()) == settings


def test_table_has_a_row_for_each_setting():
    lines = settings_table().splitlines()
    assert lines[0] == "| Setting | Environment | Default | Meaning |"
    assert len(lines) == 2 + len(FIELDS)
    expected = (
        "| `fast_math` | `HELION_FAST_MATH` | False "
        "| Allow approximate exp, division and the like, and looser treatment of NaN. |"
    )
    assert expected in lines
    assert "| `autotune_random_seed` | `HELION_AUTOTUNE_RANDOM_SEED` | from the time | " in "".join(
        lines
    )
    assert "| `ref_mode` | `HELION_INTERPRET` | RefMode.OFF | " in "".join(lines)


def test_small_things():
    assert _get_backend() == "triton"
    assert OutputCodeOptions().allow_helion_deps is True
    assert OutputCodeOptions(allow_helion_deps=False) != OutputCodeOptions()
    assert [mode.name for mode in RefMode] == ["OFF", "EAGER"]


@pytest.fixture
def _logs_restored():
    yield
    configure_logging("")


@pytest.mark.usefixtures("_logs_restored")
class TestLogs:
    def levels(self, *names):
        return [logging.getLogger(name).level for name in names]

    def test_whole_package_at_debug(self, monkeypatch, capsys):
        monkeypatch.setenv("HELION_LOGS", "+all")
        configure_logging()
        logging.getLogger("helion.somewhere").debug("found %d", 3)
        assert capsys.readouterr().err == "[helion.somewhere] DEBUG: found 3\n"

    def test_names_and_levels(self, capsys):
        configure_logging("+runtime.kernel, helion.autotuner ,,")
        names = ("helion", "helion.runtime.kernel", "helion.autotuner")
        assert self.levels(*names) == [logging.NOTSET, logging.DEBUG, logging.INFO]
        logging.getLogger("helion.autotuner").debug("too much")
        logging.getLogger("helion.elsewhere").info("not asked for")
        logging.getLogger("helion.autotuner.search").info("told")
        assert capsys.readouterr().err == "[helion.autotuner.search] INFO: told\n"

    def test_unset_changes_nothing(self):
        package = logging.getLogger("helion")
        before = (package.level, package.propagate, list(package.handlers))
        configure_logging()
        assert (package.level, package.propagate, list(package.handlers)) == before

    def test_second_call_replaces_the_first(self, capsys):
        configure_logging("+all")
        configure_logging("runtime")
        assert self.levels("helion", "helion.runtime") == [logging.NOTSET, logging.INFO]
        logging.getLogger("helion.runtime").info("once")
        assert capsys.readouterr().err == "[helion.runtime] INFO: once\n"
        configure_logging("")
        assert self.levels("helion", "helion.runtime") == [logging.NOTSET, logging.NOTSET]
        assert logging.getLogger("helion").propagate
