"""Kernels that an earlier process compiled: what is recalled, and what must not be."""

from __future__ import annotations

import importlib.util
import itertools
import json
import subprocess
import sys

import pytest
import torch

import helion
import helion.language as hl
from helion import exc
from helion.runtime import recall as recalling

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
NUMBER = itertools.count()
MODULE = """
import helion, torch
import helion.language as hl
FACTOR = {factor}
LIST = [1, {factor}]
def inner(value):
    return value {op} {operand}
def helper(value, by={default}):
    return inner(value) + by
@helion.kernel({settings})
def kernel(x, n: int = 2):
    rows = helion.cdiv(x.size(0), 4)
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = helper(x[tile]) * FACTOR + LIST[1] + n * rows
    return out
"""
PLAIN = {"factor": 3, "op": "*", "operand": 2, "default": 5, "settings": "static_shapes=False"}


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HELION_CACHE_DIR", str(tmp_path / "cache"))
    # As if nobody edited a file of helion while the tests run.
    monkeypatch.setattr(recalling, "_loaded_from", lambda: recalling._FILES)
    return tmp_path / "cache"


@pytest.fixture
def make(tmp_path):
    """A kernel of a module of its own, as a new process would load it."""

    def make(text=MODULE, **changes):
        path = tmp_path / "author.py"
        path.write_text(text.format(**{**PLAIN, **changes}))
        importlib.invalidate_caches()
        spec = importlib.util.spec_from_file_location(f"author_{next(NUMBER)}", path)
        module = importlib.util.module_from_spec(spec)
        # No bytecode: two versions of the file may have one size and one time.
        exec(compile(path.read_text(), str(path), "exec"), module.__dict__)
        import linecache

        linecache.checkcache(str(path))
        linecache.cache.pop(str(path), None)
        return module.kernel

    return make


def ones(*size):
    return torch.ones(size, device=DEVICE)


def was_recalled(kernel) -> bool:
    return bool(kernel._recalled) and not kernel._bound


def test_a_second_process_recalls(cache, make):
    first = make()
    assert torch.equal(first(ones(8)), 28 * ones(8))
    assert not was_recalled(first)
    second = make()
    for n in (8, 8, 8):
        assert torch.equal(second(ones(n)), 28 * ones(n))
    assert was_recalled(second)
    assert torch.equal(second(ones(8), 0), 24 * ones(8))
    # Whoever looks at the kernel gets all of it.
    bound = second.bind((ones(8), 2))
    assert "src[author.py" in bound.to_triton_code()
    assert torch.equal(bound(ones(8), 2), 28 * ones(8))
    assert torch.equal(second(ones(8)), 28 * ones(8))


CHANGES = {
    "a constant": {"factor": 4},
    "a function of a function": {"op": "+"},
    "a number in it": {"operand": 3},
    "a default of a function": {"default": 6},
    "a setting": {"settings": "static_shapes=True"},
    "a config": {"settings": "static_shapes=False, config=helion.Config(block_sizes=[16])"},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_compiles_again(cache, make, change):
    before = make()(ones(8))
    kernel = make(**CHANGES[change])
    result = kernel(ones(8))
    assert not was_recalled(kernel)
    values = {**PLAIN, **CHANGES[change]}
    value = eval(f"(1 {values['op']} {values['operand']} + {values['default']})")
    assert result[0].item() == value * values["factor"] + values["factor"] + 4
    assert (result[0] != before[0]) == ("set" not in change and "config" not in change)


OTHER_CALLS = {
    "another size, since the default config depends on it": lambda k: k(ones(64)),
    "another dtype": lambda k: k(ones(8).double()),
    "another kind of number": lambda k: k(ones(8), 2.0),
}


@pytest.mark.parametrize("call", OTHER_CALLS)
def test_another_call_compiles_again(cache, make, call):
    make()(ones(8))
    kernel = make()
    OTHER_CALLS[call](kernel)
    assert not was_recalled(kernel)


def test_another_environment_compiles_again(cache, make, monkeypatch):
    make()(ones(8))
    kernel = make()
    for name, value in (("HELION_SOME_SWITCH", "1"), ("HELION_SKIP_CACHE", "1")):
        monkeypatch.setenv(name, value)
        kernel(ones(8))
        assert not was_recalled(kernel)
        monkeypatch.delenv(name)
        kernel.reset()
    kernel(ones(8))
    assert was_recalled(kernel)


def test_another_version_compiles_again(cache, make, monkeypatch):
    make()(ones(8))
    for target, name in ((torch, "__version__"), (recalling, "_FILES")):
        with monkeypatch.context() as patch:
            patch.setattr(target, name, "another")
            kernel = make()
            kernel(ones(8))
            assert not was_recalled(kernel)


def test_nothing_is_kept_of_code_that_is_newer_than_what_runs(cache, make, monkeypatch):
    monkeypatch.setattr(recalling, "_loaded_from", lambda: "newer")
    make()(ones(8))
    assert not (cache / "kernels").exists()


def test_a_file_that_changed_after_it_was_loaded(cache, make):
    # The compiler reads the file when it is called, which makes neither version of the kernel.
    kernel = make()
    make(operand=3)
    kernel(ones(8))
    for operand, value in ((3, 31), (2, 28)):
        kernel = make(operand=operand)
        assert torch.equal(kernel(ones(8)), value * ones(8))
        assert not was_recalled(kernel)


# Kernels whose code depends on something that has no text, or that must say something again.
NOT_KEPT = {
    "an object": ("class State: n = 2\nSTATE = State()\n", "n * rows", "STATE.n * rows"),
    "a class of the author": ("class State: n = 2\n", "n * rows", "State.n * rows"),
    "a module of the author": ("import json as cfg\n", "n * rows", "len(cfg.__name__) / 2 * rows"),
    "a tensor": ("T = torch.ones(1)\n", "helion.cdiv(", "T.size(0) * helion.cdiv("),
    "specialized numbers": ("", "rows =", "n = hl.specialize(n); rows ="),
    "a warning": ("", "rows =", "unused = x + 1; rows ="),
}


@pytest.mark.parametrize("case", NOT_KEPT)
def test_not_kept(cache, make, case):
    above, part, other = NOT_KEPT[case]
    text = f"import torch\n{above}{MODULE.replace(part, other)}"
    for _ in range(2):
        kernel = make(text)
        assert torch.equal(kernel(ones(8)), 28 * ones(8))
        assert not was_recalled(kernel)


@helion.kernel
def applied(x, what):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = what[0](x[tile])
    return out


def test_functions_as_arguments_are_not_kept(cache):
    assert torch.equal(applied(ones(4), [torch.neg]), -ones(4))
    assert torch.equal(applied(ones(4), [lambda v: v * 3]), 3 * ones(4))
    applied.reset()
    assert torch.equal(applied(ones(4), [lambda v: v * 4]), 4 * ones(4))
    assert not was_recalled(applied)


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: "\xff",
        lambda text: json.dumps({**json.loads(text), "text": "raise SystemExit"}),
        lambda text: json.dumps([1]),
        lambda text: "{}",
    ],
    ids=["half", "no JSON", "other code", "a list", "empty"],
)
def test_a_damaged_entry_is_made_again(cache, make, damage, caplog):
    make()(ones(8))
    (entry,) = (cache / "kernels").iterdir()
    entry.write_text(damage(entry.read_text()), encoding="latin-1")
    kernel = make()
    assert torch.equal(kernel(ones(8)), 28 * ones(8))
    assert not was_recalled(kernel)
    assert "is ignored" in caplog.text
    kernel = make()
    kernel(ones(8))
    assert was_recalled(kernel)


def test_a_recalled_kernel_says_which_config_runs(cache, make, monkeypatch, capfd):
    monkeypatch.setenv("HELION_USE_DEFAULT_CONFIG", "1")
    for _ in range(2):
        kernel = make()
        kernel(ones(8))
        assert capfd.readouterr().err.startswith("Using implicit config: helion.Config(")
    assert was_recalled(kernel)


def test_a_wrong_call_of_a_recalled_kernel(cache, make):
    make()(ones(8))
    kernel = make()
    kernel(ones(8))
    for _ in range(2):
        with pytest.raises(exc.NoTensorArgs):
            kernel(1)
        with pytest.raises(TypeError):
            kernel({1})
    assert was_recalled(kernel)


def test_the_first_call_of_a_process_needs_no_compiler(cache, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(
        MODULE.format(**PLAIN)
        + "from helion.runtime import recall as recalling\n"
        + "recalling._loaded_from, recalling._FILES = lambda: (), ()\n"
        + f"print(kernel(torch.ones(8, device='{DEVICE.type}')).sum().item())\n"
        + "import sys; print(sorted({'sympy', 'torch._dynamo'} & set(sys.modules)))\n"
    )
    outputs = [
        subprocess.run([sys.executable, path], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert outputs == ["224.0\n['sympy', 'torch._dynamo']\n", "224.0\n[]\n"]
