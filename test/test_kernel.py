"""`helion.kernel`: arguments, the specialization key, which config runs, what can be printed."""

from __future__ import annotations

import ast
import copy
import dataclasses
import gc
import linecache
import pickle
import runpy
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import NamedTuple

import pytest
import torch

import helion
import helion.language as hl
from helion import exc
from helion.runtime import choice, modules
from helion.runtime.modules import load_module

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
FACTOR = 3


def ones(*size: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(size, dtype=dtype, device=DEVICE)


class Pair(NamedTuple):
    first: torch.Tensor
    second: int


@dataclasses.dataclass
class Scale:
    by: torch.Tensor
    twice: bool = False


def double(value):
    return value * 2


def times(factor):
    return lambda value: value * factor


@helion.kernel(static_shapes=False)
def add_one(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size()):
        out[tile] = x[tile] + 1
    return out


@helion.kernel
def apply(x, what):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = what(x[tile])
    return out


@helion.kernel
def scaled(x, scale):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        value = x[tile] * scale.by[tile]
        if scale.twice:
            value = value * 2
        out[tile] = value
    return out


@helion.kernel
def first_times(x, pair):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = pair[0][tile] * pair[1]
    return out


@helion.kernel
def sum_of(x, terms):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = terms["a"][tile] + terms["b"] + FACTOR
    return out


@helion.kernel
def optional(x, bias=None, mode: str = "plus", dtype=torch.float32):
    out = torch.empty_like(x, dtype=dtype)
    for tile in hl.tile(x.size(0)):
        value = x[tile]
        if bias is not None:
            value = value + bias[tile]
        if mode == "minus":
            value = -value
        out[tile] = value.to(dtype)
    return out


@helion.kernel
def power(x, n: hl.constexpr, by: ConstExpr = 1):  # noqa: F821 - the text is enough
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        value = x[tile]
        for _ in hl.static_range(n):
            value = value * by
        out[tile] = value
    return out


# Kernel, arguments, the factor by which the result differs from ones.
ARGUMENTS = {
    "list": lambda: (first_times, (ones(5), [ones(5), 2]), 2),
    "tuple": lambda: (first_times, (ones(5), (ones(5), 2.0)), 2),
    "namedtuple": lambda: (first_times, (ones(5), Pair(ones(5), 4)), 4),
    "dict": lambda: (sum_of, (ones(5), {"a": ones(5), "b": 2}), 6),
    "dataclass": lambda: (scaled, (ones(5), Scale(2 * ones(5))), 2),
    "dataclass, flag": lambda: (scaled, (ones(5), Scale(2 * ones(5), True)), 4),
    "function": lambda: (apply, (ones(5), double), 2),
    "builtin function": lambda: (apply, (ones(5), torch.neg), -1),
    "lambda": lambda: (apply, (ones(5), lambda v: v * 7), 7),
    "closure over a number": lambda: (apply, (ones(5), times(5)), 5),
    "closure over another number": lambda: (apply, (ones(5), times(6)), 6),
    "None": lambda: (optional, (ones(5), None), 1),
    "tensor where None was": lambda: (optional, (ones(5), ones(5)), 2),
    "str": lambda: (optional, (ones(5), None, "minus"), -1),
    "dtype": lambda: (optional, (ones(5), None, "plus", torch.float64), 1),
    "constexpr": lambda: (power, (ones(5), 3, 2), 8),
    "constexpr at the call": lambda: (power, (ones(5), hl.constexpr(2), hl.constexpr(2)), 4),
    "constexpr of another type": lambda: (power, (ones(5), 1, 2.5), 2.5),
}


@pytest.mark.parametrize("case", ARGUMENTS)
def test_argument(case):
    kernel, args, factor = ARGUMENTS[case]()
    for _ in range(2):  # bound first, found then
        result = kernel(*args)
        assert torch.equal(result, factor * torch.ones_like(result))
    bound = kernel.bind(list(args))
    assert kernel.bind(args) is bound
    assert bound.kernel is kernel


def test_arguments_by_keyword_and_default():
    assert optional.normalize_args(1, mode="minus") == (1, None, "minus", torch.float32)
    assert torch.equal(optional(mode="minus", x=ones(3)), -ones(3))
    assert optional.bind((ones(3),)) is optional.bind((ones(3), None, "plus", torch.float32))


TOO_MANY = "Too many arguments passed to the kernel, expected: 1 got: 2."
REFUSED = {
    "too many": (lambda: add_one(ones(3), 1), TypeError, TOO_MANY),
    "missing": (lambda: add_one(), TypeError, "missing a required argument"),
    "unknown keyword": (lambda: add_one(x=ones(3), y=1), TypeError, "'y'"),
    "a set": (lambda: apply(ones(3), {1}), TypeError, "set"),
    "no tensor": (lambda: optional(1), exc.NoTensorArgs, "tensor"),
    "wrong rank": (lambda: first_times(ones(5), (ones(5, 2), 1)), exc.ShapeMismatch, "do not fit"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_call_leaves_nothing_behind(case):
    call, error, text = REFUSED[case]
    kernels = [add_one, apply, optional, first_times]
    before = [dict(kernel._bound) for kernel in kernels]
    for _ in range(2):
        with pytest.raises(error, match=text):
            call()
    assert [dict(kernel._bound) for kernel in kernels] == before


@pytest.mark.parametrize(
    "definition",
    ["def k(*args):", "def k(x, **more):", "def k(x, *, y):"],
)
def test_refused_signature(definition):
    with pytest.raises(TypeError):
        _from_text(f"@helion.kernel\n{definition}\n    return x\n")


def test_kernel_keyword_that_is_no_setting():
    with pytest.raises(TypeError, match="no_setting"):
        helion.kernel(no_setting=1)


def test_a_kernel_is_like_its_function():
    assert (add_one.__name__, add_one.name, add_one.__wrapped__) == (
        "add_one",
        "add_one",
        add_one.fn,
    )
    assert add_one.__code__ is add_one.fn.__code__
    assert add_one.__globals__ is globals()
    assert list(add_one.signature.parameters) == ["x"]
    assert add_one.kernel_source().startswith("@helion.kernel(static_shapes=False)\ndef add_one")
    assert copy.deepcopy(add_one) is add_one
    assert pickle.loads(pickle.dumps(add_one)) is add_one


# -- the specialization key ----------------------------------------------------------------------


def test_dynamic_one_bound_kernel_serves_every_size():
    add_one.reset()
    bound = add_one.bind((ones(7, 3),))
    for size in [(0, 4), (1, 1), (2, 5), (300, 1)]:
        x = torch.rand(size, device=DEVICE)
        assert add_one.bind((x,)) is bound
        assert torch.equal(add_one(x), x + 1)
    assert len(add_one._bound) == 1


def _marked(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    torch._dynamo.mark_static(tensor, dim)
    return tensor


# Pairs of arguments of which the second needs a bound kernel of its own, dynamic shapes or not.
APART = {
    "dtype": (ones(4, 4), ones(4, 4, dtype=torch.float64)),
    "rank": (ones(4, 4), ones(4)),
    "strides": (ones(4, 4), ones(4, 8)[:, ::2]),
    "marked static": (ones(4, 4), _marked(ones(4, 4), 1)),
    "other size, marked": (_marked(ones(4, 4), 1), _marked(ones(4, 6), 1)),
}


@pytest.mark.parametrize("case", APART)
def test_dynamic_key_tells_apart(case):
    one, other = APART[case]
    key = add_one.specialization_key
    hash(key((one,)))
    assert key((one,)) == key((one.clone() if case != "other size, marked" else one,))
    assert key((one,)) != key((other,))


def test_more_than_2_to_the_31_elements_have_their_own_key():
    big = torch.empty(1, dtype=torch.int8, device=DEVICE).expand(2**31 + 8)
    assert add_one.specialization_key((big,)) != add_one.specialization_key((big[:8],))
    assert add_one.bind((big,)).index_dtype is torch.int64


def test_static_key_is_the_layout():
    key = optional.specialization_key
    rest = (None, "plus", torch.float32)
    assert key((ones(4), *rest)) != key((ones(5), *rest))
    assert key((ones(4), *rest)) != key((ones(8)[::2], *rest))
    assert key((ones(4), *rest)) != key((ones(4), None, "minus", torch.float32))


def test_numbers_are_not_in_the_key():
    @helion.kernel
    def plus(x, n):
        out = torch.empty_like(x)
        for tile in hl.tile(x.size(0)):
            out[tile] = x[tile] + n
        return out

    bound = plus.bind((ones(4), 1))
    for n in (0, 1, 16, 2**20):
        assert plus.bind((ones(4), n)) is bound
        assert torch.equal(plus(ones(4), n), ones(4) + n)
    assert plus.bind((ones(4), 1.0)) is not bound


def test_own_part_of_the_key():
    @helion.kernel(static_shapes=False, key=lambda x, n: n > 8)
    def plus(x, n):
        out = torch.empty_like(x)
        for tile in hl.tile(x.size(0)):
            out[tile] = x[tile] + n
        return out

    assert plus.bind((ones(4), 1)) is plus.bind((ones(4), 8))
    assert plus.bind((ones(4), 1)) is not plus.bind((ones(4), 9))


@helion.kernel(static_shapes=False)
def specialized(x, k: int):
    k = hl.specialize(k)
    columns = hl.specialize(x.size(1))
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile, :] = x[tile, :] * k + columns
    return out


def test_specialize_binds_again_also_through_an_old_bound_kernel():
    bound = specialized.bind((ones(3, 4), 2))
    assert specialized.bind((ones(9, 4), 2)) is bound
    others = [(ones(3, 4), 5), (ones(3, 6), 2), (ones(3, 6), 5)]
    assert len({bound, *(specialized.bind(args) for args in others)}) == 4
    for x, k in [*others, (ones(3, 4), 2)]:
        for run in (bound, specialized):
            assert torch.equal(run(x, k), x * k + x.size(1))
        assert specialized.bind((x, k)) is specialized.bind((x, k))


def test_old_bound_kernel_hands_other_arguments_on():
    bound = optional.bind((ones(3),))
    assert torch.equal(bound(ones(5)), ones(5))
    assert torch.equal(bound(ones(5), ones(5), "minus"), -2 * ones(5))


def test_settings_can_change():
    kernel = helion.kernel(add_one.fn)
    assert kernel.bind((ones(3),)) is not kernel.bind((ones(4),))
    kernel.settings.static_shapes = False
    assert kernel.bind((ones(3),)) is kernel.bind((ones(4),))
    kernel.settings = helion.Settings(ref_mode=helion.RefMode.EAGER, print_output_code=True)
    with pytest.raises(exc.RefEagerModeCodePrintError):
        kernel(ones(3))
    kernel.settings.print_output_code = False
    assert torch.equal(kernel(ones(3)), 2 * ones(3))


def test_arguments_are_not_kept_alive():
    x = ones(11)
    optional(x)
    seen = weakref.ref(x)
    del x
    gc.collect()
    assert seen() is None


def test_no_autograd_history():
    @helion.kernel
    def in_place(x):
        out = x.clone()
        for tile in hl.tile(x.size(0)):
            out[tile] = x[tile] * 2
        return out

    x = ones(4).requires_grad_()
    result = in_place(x)
    assert torch.equal(result, 2 * ones(4))
    assert not result.requires_grad
    assert torch.is_grad_enabled()


def test_threads_bind_once(monkeypatch):
    monkeypatch.setenv("HELION_SKIP_CACHE", "1")
    kernel = helion.kernel(add_one.fn, static_shapes=False)
    made, results = [], []
    make_bound = kernel.make_bound
    kernel.make_bound = lambda *args: made.append(1) or make_bound(*args)

    def run(n):
        results.append(torch.equal(kernel(ones(n)), 2 * ones(n)))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [True] * 8
    assert len(made) == 1


@pytest.mark.filterwarnings("ignore:`torch.jit.script_method`:DeprecationWarning")
def test_under_torch_compile():
    @torch.compile(backend="eager")
    def both(x):
        return add_one(x * 2) * 3

    for n in (3, 4, 5):
        assert torch.equal(both(ones(n)), 9 * ones(n))
    torch._dynamo.reset()


# -- which config runs ---------------------------------------------------------------------------

SMALL, LARGE = helion.Config(block_sizes=[16]), helion.Config(block_sizes=[64])


def config_of(kernel: helion.Kernel) -> int:
    kernel(ones(100))
    text = kernel.bind((ones(100),)).to_triton_code()
    return int(text.split("_BLOCK_SIZE_0 = ")[1].split("\n")[0])


def test_one_config():
    for given in ({"config": SMALL}, {"configs": [SMALL]}, {"config": {"block_size": 16}}):
        assert config_of(helion.kernel(add_one.fn, **given)) == 16


def test_no_config_is_quiet(capfd):
    kernel = helion.kernel(add_one.fn)
    assert config_of(kernel) >= 64
    assert capfd.readouterr() == ("", "")


def test_effort_none(capfd, monkeypatch):
    monkeypatch.setenv("HELION_USE_DEFAULT_CONFIG", "1")
    kernel = helion.kernel(add_one.fn)
    kernel(ones(100))
    kernel(ones(100))
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith("Using implicit config: helion.Config(block_sizes=[")
    forced = helion.kernel(add_one.fn, config=SMALL, force_autotune=True)
    assert config_of(forced) >= 64


def test_several_configs(caplog):
    kernel = helion.kernel(add_one.fn, configs=[SMALL, LARGE])
    bound = kernel.bind((ones(100),))
    with pytest.raises(RuntimeError, match="no config was provided and no implicit config exists"):
        bound.to_triton_code()
    assert config_of(kernel) in (16, 64)
    if not torch.cuda.is_available():
        assert config_of(kernel) == 16
        assert "there is no GPU to time them on" in caplog.text
    bound.set_config({"block_sizes": [64]})
    assert config_of(kernel) == 64


@helion.kernel(configs=[SMALL, LARGE, *({"block_sizes": [n]} for n in (32, 128, 256))])
def add_one_in_place(x):
    for tile in hl.tile(x.size(0)):
        x[tile] = x[tile] + 1
    return x


def test_the_fastest_that_is_right(monkeypatch, caplog):
    from triton.runtime.errors import OutOfResources  # after helion

    x = ones(200)
    bound = add_one_in_place.bind((x,))
    small, large, wrong, broken, huge = bound.configs
    right = {c: bound.compile_config(c) for c in (small, large)}

    def compile_config(config, **options):
        if config == broken:
            raise exc.InvalidConfig(detail="broken")
        if config == huge:
            raise OutOfResources(2**18, 2**17, "shared memory")
        return (lambda x: x.add_(2)) if config == wrong else right[config]

    def milliseconds(run, args):
        run(*args)  # changes its argument
        return 1.0 if run is right[large] else 2.0

    monkeypatch.setattr(bound, "compile_config", compile_config)
    monkeypatch.setattr(choice, "_milliseconds", milliseconds)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    assert choice._fastest(bound, (x,)) == large
    assert torch.equal(x, ones(200))
    assert "broken" in caplog.text
    assert "out of resource: shared memory" in caplog.text
    assert "gives another result" in caplog.text


@pytest.mark.gpu
def test_of_several_configs_a_broken_one_is_left_out():
    def multiply(a, b):
        out = torch.empty([a.size(0), b.size(1)], device=a.device)
        for i, j in hl.tile(out.size()):
            acc = hl.zeros([i, j])
            for t in hl.tile(a.size(1)):
                acc = hl.dot(a[i, t], b[t, j], acc=acc)
            out[i, j] = acc
        return out

    a = torch.ones(64, 4096, device=DEVICE, dtype=torch.bfloat16)
    # Two blocks of 256 KiB: no GPU has so much shared memory.
    broken, good = ({"block_sizes": [64, 64, n]} for n in (2048, 32))
    kernel = helion.kernel(multiply, configs=[broken, good])
    assert torch.equal(kernel(a, a.T), torch.full([64, 64], 4096.0, device=DEVICE))
    assert kernel.bind((a, a.T)).chosen_config()["block_sizes"] == [64, 64, 32]


def test_an_assertion_about_an_optional_tensor_equates_its_sizes():
    @helion.kernel(static_shapes=False)
    def plus_row(x: torch.Tensor, row: torch.Tensor | None = None) -> torch.Tensor:
        m, n = x.size()
        assert row is None or row.size(0) == n
        out = torch.empty_like(x)
        for tile in hl.tile(m):
            out[tile, :] = x[tile, :] if row is None else x[tile, :] + row[:]
        return out

    x = torch.randn(3, 5, device=DEVICE)
    assert torch.equal(plus_row(x), x)
    assert torch.equal(plus_row(x, x[0]), x + x[0])
    with pytest.raises(AssertionError):
        plus_row(x, x[0, :4])


def test_search_of_the_settings():
    class Search:
        def __init__(self, bound, args):
            self.args = args

        def autotune(self, *, skip_cache):
            return LARGE if skip_cache else SMALL

    kernel = helion.kernel(add_one.fn, autotuner_fn=Search)
    assert config_of(kernel) == 16
    assert kernel.autotune((ones(100),)) == LARGE
    assert config_of(kernel) == 64
    assert kernel.autotune((ones(100),), force=False) == LARGE


def test_autotune_without_a_search(caplog):
    kernel = helion.kernel(add_one.fn)
    assert kernel.autotune((ones(100),)) == kernel.bind((ones(100),)).config_spec.default_config()
    assert [r.name for r in caplog.records if r.name.startswith("helion")] == [
        "helion.runtime.bound"
    ]
    assert helion.kernel(add_one.fn, config=SMALL).autotune((ones(5),), force=False) == SMALL


def test_autotuning_disallowed(monkeypatch):
    monkeypatch.setenv("HELION_DISALLOW_AUTOTUNING", "1")
    assert torch.equal(helion.kernel(add_one.fn, config=SMALL)(ones(3)), 2 * ones(3))
    for given in ({}, {"configs": [SMALL, LARGE]}):
        with pytest.raises(exc.AutotuningDisallowedInEnvironment, match="add_one"):
            helion.kernel(add_one.fn, **given)(ones(3))


def test_configs_stay_as_they_were():
    given = {"block_sizes": [16]}
    kernel = helion.kernel(add_one.fn, config=given)
    kernel(ones(3))
    bound = kernel.bind((ones(3),))
    bound.compile_config(given)
    assert given == {"block_sizes": [16]}
    assert bound.configs == [SMALL]
    with pytest.raises(exc.InvalidConfig):
        bound.set_config({"block_sizes": [16, 16]})
    assert torch.equal(bound(ones(3)), 2 * ones(3))  # the old config still runs


# -- code ----------------------------------------------------------------------------------------


def test_get_cached_path():
    bound = helion.kernel(add_one.fn, config=SMALL).bind((ones(100),))
    assert bound.get_cached_path() is None
    bound.ensure_config_exists((ones(100),))
    text = Path(bound.get_cached_path()).read_text()
    assert text == bound.to_triton_code() == bound.to_code()
    assert bound.backend_cache_key() in bound.get_cached_path()
    assert bound.backend_cache_key(LARGE) != bound.backend_cache_key()


def test_env_and_run_ref():
    bound = add_one.bind((ones(3),))
    assert (bound.env.device.type, bound.env.settings) == (DEVICE.type, add_one.settings)
    assert bound.env.config_spec is bound.config_spec
    assert torch.equal(bound.run_ref(ones(3)), 2 * ones(3))


def test_format_kernel_decorator():
    settings = helion.Settings(static_shapes=False, index_dtype=torch.int64)
    text = add_one.bind((ones(3),)).format_kernel_decorator(SMALL, settings)
    assert text == (
        "@helion.kernel(config=helion.Config(block_sizes=[16]), static_shapes=False, "
        "index_dtype=torch.int64)"
    )
    assert ast.parse(text[1:])


def run_alone(path, capfd) -> str:
    capfd.readouterr()
    runpy.run_path(str(path), run_name="__main__")
    return capfd.readouterr().out


@helion.kernel(static_shapes=False)
def everything(x, seed: int, by: float):
    """Reads a global, calls a function of its module and one of helion, draws random numbers."""
    parts = helion.cdiv(x.size(0), 2)
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        never = hl.rand([tile], seed=seed) > 2
        out[tile] = torch.where(never, x[tile].amax(), double(by) * FACTOR + parts)
    return out


EVERYTHING = "[6.0, 6.0, 6.0, 6.0, 6.0, 6.0]"


@pytest.mark.parametrize("needs_helion", [True, False])
def test_module_with_a_caller_runs_alone(tmp_path, capfd, needs_helion):
    bound = everything.bind((ones(6), 7, 0.5))
    options = helion.OutputCodeOptions(allow_helion_deps=needs_helion)
    text = bound.to_code(emit_repro_caller=True, options=options)
    nodes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, (ast.Import, ast.ImportFrom))]
    assert any("helion" in ast.unparse(n) for n in nodes) == needs_helion
    path = tmp_path / "alone.py"
    path.write_text(text.replace("print(call())", "print(call().tolist())"))
    assert run_alone(path, capfd) == f"{EVERYTHING}\n"


def test_print_output_code_and_repro(capfd, tmp_path):
    kernel = helion.kernel(everything.fn, print_output_code=True, print_repro=True)
    assert str(kernel(ones(6), 7, 0.5).tolist()) == EVERYTHING
    err = capfd.readouterr().err
    assert f"# {kernel.bind((ones(6), 7, 0.5)).get_cached_path()}\n" in err
    script = err[err.index("import helion\nimport helion.language as hl\nimport torch\n\n") :]
    path = tmp_path / "repro.py"
    path.write_text(script.replace("print(call())", "print(call().tolist())"))
    assert run_alone(path, capfd) == f"{EVERYTHING}\n"


def _from_text(text: str, name: str = "<text of a notebook cell>"):
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    names = {
        "helion": helion,
        "hl": hl,
        "torch": torch,
        "__name__": "nowhere",
        "OFFSET": 4,
        "cut": len,
    }
    exec(compile(text, name, "exec"), names)
    return names["k"]


def test_kernel_of_a_module_that_cannot_be_imported():
    kernel = _from_text(
        "@helion.kernel\n"
        "def k(x):\n"
        "    out = torch.empty_like(x)\n"
        "    n = cut(x.shape)\n"
        "    for tile in hl.tile(x.size(0)):\n"
        "        out[tile] = x[tile] + OFFSET + n\n"
        "    return out\n"
    )
    assert torch.equal(kernel(ones(3)), 6 * ones(3))
    assert "import nowhere" not in kernel.bind((ones(3),)).to_triton_code()


def test_kernel_of_main(tmp_path, capfd):
    path = tmp_path / "script.py"
    path.write_text(
        "import torch, helion, helion.language as hl\n"
        "def size(x): return x.size(0)\n"
        "@helion.kernel\n"
        "def k(x):\n"
        "    out = torch.empty_like(x)\n"
        "    for tile in hl.tile(size(x)):\n"
        "        out[tile] = x[tile] + 1\n"
        "    return out\n"
        f"print(k(torch.ones(3, device='{DEVICE.type}')).tolist())\n"
    )
    assert run_alone(path, capfd) == "[2.0, 2.0, 2.0]\n"


# -- modules on disk -----------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HELION_CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("damage", [b"", b"\xff\x00half of", b"raise SystemExit"])
def test_a_damaged_file_is_rebuilt(cache, damage):
    module = load_module("some", "value = 3\n")
    (path,) = (cache / "modules").glob("*.py")
    path.write_bytes(damage)
    again = load_module("some", "value = 3\n")
    assert (module.value, again.value) == (3, 3)
    assert path.read_text() == "value = 3\n"
    assert [file.name for file in (cache / "modules").iterdir()] == [path.name]


def test_without_a_place_to_write(tmp_path, monkeypatch, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("HELION_CACHE_DIR", str(blocked))
    kernel = helion.kernel(add_one.fn)
    assert torch.equal(kernel(ones(3)), 2 * ones(3))
    assert "cannot write" in caplog.text


def test_many_processes_share_the_files(cache):
    text = "value = 3\n" * 2000
    # The file alone: to import helion takes longer than the test.
    code = (
        "import runpy\n"
        f"load_module = runpy.run_path({modules.__file__!r})['load_module']\n"
        f"for _ in range(50): assert load_module('some', {text!r}).value == 3\n"
    )
    # Another writer damages the file all the while.
    load_module("some", text)
    (path,) = (cache / "modules").glob("*.py")
    workers = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    while any(worker.poll() is None for worker in workers):
        path.write_text("half")
    assert [worker.returncode for worker in workers] == [0, 0]
    load_module("some", text)
    assert path.read_text() == text
    assert len(list((cache / "modules").iterdir())) == 1


def test_import_is_light():
    # Each takes a good part of a second, and a program that calls no kernel needs none of them.
    heavy = "{'sympy', 'triton', 'torch._dynamo', 'torch._inductor', 'helion.codegen'}"
    code = f"import sys, helion, helion.language; print({heavy} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.stdout == "set()\n"
