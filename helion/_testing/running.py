"""Running kernels and examples: their code, their results, and how they compare with torch."""

from __future__ import annotations

import functools
import importlib.util
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import torch
from torch.utils import _pytree as pytree

from helion._testing.comparing import CosSimilarity, compare, prefixed_errors, tensor_check
from helion._testing.machine import (
    DEVICE,
    EXAMPLES_DIR,
    get_test_float32_matmul_precision,
    synchronize,
)
from helion._testing.timing import compute_repeat, do_bench, interleaved_bench
from helion.runtime import Config, RefMode
from helion.runtime.config import is_other_backend_key

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType

    from helion.runtime import Kernel

    Function = Callable[..., Any]


def code_and_output(fn: Kernel, args: tuple[Any, ...], **config: Any) -> tuple[str, Any]:
    """Run a kernel, and show the code that ran.

    Args:
        fn: the kernel.
        args: its arguments.
        config: keys of the config; keys of other backends are left out. Without any, the kernel's
            only config, or else the default config.

    Returns:
        The text of the generated module (in the eager reference mode: the kernel's source), and
        the result.
    """
    if fn.settings.ref_mode is RefMode.EAGER:
        with mock.patch.object(fn, "configs", [Config(**config)] if config else fn.configs):
            result = fn(*args)
        synchronize()
        return fn.kernel_source(), result
    bound = fn.bind(args)
    keys = {key: value for key, value in config.items() if not is_other_backend_key(key)}
    if keys:
        chosen = Config(**keys)
    else:
        chosen = fn.configs[0] if len(fn.configs) == 1 else bound.config_spec.default_config()
    bound.set_config(chosen)
    result = bound(*args)
    synchronize()
    return bound.to_triton_code(chosen), result


def output_only(fn: Kernel, args: tuple[Any, ...], **config: Any) -> Any:
    """The result of a kernel; see `code_and_output`."""
    return code_and_output(fn, args, **config)[1]


@functools.cache
def import_path(path: Path | str) -> ModuleType:
    """The module in a Python file, which need not be on the search path."""
    path = Path(path)
    name = f"helion_testing_{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    # Generated code imports the module of its kernel by name.
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def check_example(
    name: str,
    args: tuple[Any, ...],
    expected: Any,
    fn_name: str | None = None,
    skip_accuracy: bool = False,
    static_shapes: bool | None = None,
    atol: float = 1e-1,
    rtol: float = 1e-2,
    max_mismatch_pct: float | None = None,
    max_mismatched_abs_diff: float | None = None,
    emit_code: bool = True,
    cos_sim: CosSimilarity | None = None,
    **config: Any,
) -> str:
    """Run a kernel of `examples/`, and compare its result.

    Args:
        name: the example's file, without its suffix.
        args: arguments of the kernel.
        expected: the result, or a structure of tensors.
        fn_name: the kernel's name in the file; `name` if not given.
        skip_accuracy: only run it.
        static_shapes: overrides the kernel's setting.
        atol: absolute tolerance.
        rtol: relative tolerance.
        max_mismatch_pct: see `assert_close_with_mismatch_tolerance`.
        max_mismatched_abs_diff: see `assert_close_with_mismatch_tolerance`.
        emit_code: whether to return the code; otherwise an empty text.
        cos_sim: compare directions, instead of elements.
        config: see `code_and_output`.

    Returns:
        The text of the generated module.
    """
    kernel: Kernel = getattr(import_path(EXAMPLES_DIR / f"{name}.py"), fn_name or name)
    before = kernel.settings.static_shapes
    kernel.reset()
    try:
        if static_shapes is not None:
            kernel.settings.static_shapes = static_shapes
        code, result = code_and_output(kernel, args, **config)
    finally:
        kernel.settings.static_shapes = before
        kernel.reset()
    if not skip_accuracy:
        check = tensor_check(rtol, atol, max_mismatch_pct, max_mismatched_abs_diff, cos_sim)
        compare(result, expected, check)
    return code if emit_code else ""


def run_example(
    kernel_fn: Function | Mapping[str, Function],
    baseline_fn: Function | Mapping[str, Function],
    args: tuple[Any, ...],
    kernel_name: str = "helion",
    baseline_name: str = "torch",
    rtol: float = 1e-2,
    atol: float = 1e-1,
    max_mismatch_pct: float | None = None,
    max_mismatched_abs_diff: float | None = None,
    bwd: bool = False,
    trace_path: str | None = None,
    process_group_name: str | None = None,
    interleaved: bool = True,
) -> dict[str, float]:
    """Check kernels against baselines, time all, and print a table to stderr.

    Without a GPU nothing is repeated: the times are those of the checked calls, and mean nothing.

    Args:
        kernel_fn: the kernel, or several by name.
        baseline_fn: what it is compared with, or several by name; the first one is right.
        args: the arguments of all.
        kernel_name: the kernel's name in the table.
        baseline_name: the baseline's name in the table.
        rtol: relative tolerance.
        atol: absolute tolerance.
        max_mismatch_pct: see `assert_close_with_mismatch_tolerance`.
        max_mismatched_abs_diff: see `assert_close_with_mismatch_tolerance`.
        bwd: also compare the gradients of the arguments that require one, and time both passes.
        trace_path: file for a trace of one call of each, for a trace viewer.
        process_group_name: must be None; several processes are not supported.
        interleaved: time all in turn, so that drift of the clock meets all alike.

    Returns:
        Milliseconds by name.

    Raises:
        AssertionError: a result or a gradient differs; the message names the function.
    """
    if process_group_name is not None:
        raise NotImplementedError("run_example does not run in several processes")
    torch.set_float32_matmul_precision(get_test_float32_matmul_precision())
    kernels = _by_name(kernel_fn, kernel_name)
    baselines = _by_name(baseline_fn, baseline_name)
    calls = {
        name: functools.partial(_passes if bwd else _forward, fn, args)
        for name, fn in {**kernels, **baselines}.items()
    }
    times = _check_all(
        calls,
        next(iter(baselines)),
        tensor_check(rtol, atol, max_mismatch_pct, max_mismatched_abs_diff),
    )
    if trace_path is not None:
        with torch.profiler.profile(acc_events=True) as profile:  # torch 2.11 warns without
            for name, call in calls.items():
                with torch.profiler.record_function(name):
                    call()
            synchronize()
        profile.export_chrome_trace(trace_path)
    if DEVICE.type != "cpu":
        times = _time_all(calls, interleaved)
    print(_table(times, next(iter(baselines))), file=sys.stderr)
    return times


def _by_name(fn: Function | Mapping[str, Function], name: str) -> dict[str, Function]:
    return {name: fn} if callable(fn) else dict(fn)


def _forward(fn: Function, args: tuple[Any, ...]) -> Any:
    return fn(*args)


def _passes(fn: Function, args: tuple[Any, ...]) -> tuple[Any, tuple[torch.Tensor | None, ...]]:
    """The result, and the gradients of the arguments for a gradient that differs everywhere."""
    result = fn(*args)
    parts = [t for t in pytree.tree_leaves(result) if isinstance(t, torch.Tensor)]
    outputs = [t for t in parts if t.requires_grad]
    inputs = [
        t for t in pytree.tree_leaves(args) if isinstance(t, torch.Tensor) and t.requires_grad
    ]
    weights = [
        torch.linspace(-1, 1, t.numel(), device=t.device).view(t.shape).to(t.dtype) for t in outputs
    ]
    return result, torch.autograd.grad(outputs, inputs, weights, allow_unused=True)


def _check_all(calls: Mapping[str, Function], right: str, check: Any) -> dict[str, float]:
    """Compare what each call returns with the baseline's; returns the milliseconds of each."""
    times: dict[str, float] = {}
    expected: Any = None
    for name in (right, *(n for n in calls if n != right)):
        began = time.perf_counter()
        result = calls[name]()
        synchronize()
        times[name] = (time.perf_counter() - began) * 1e3
        if name == right:
            expected = result
            continue
        with prefixed_errors(f"{name} differs from {right}: "):
            compare(result, expected, check)
    return {name: times[name] for name in calls}


def _time_all(calls: Mapping[str, Function], interleaved: bool) -> dict[str, float]:
    if not interleaved:
        return {name: do_bench(call, return_mode="median") for name, call in calls.items()}
    repeat = min(compute_repeat(call, target_ms=500) for call in calls.values())
    return dict(zip(calls, interleaved_bench(list(calls.values()), repeat=repeat), strict=True))


def _table(times: Mapping[str, float], baseline: str) -> str:
    width = max(map(len, (*times, "implementation")))
    rule = "=" * (width + 27)
    rows = [
        f"{name:<{width}}  {ms:>12.4f}  {times[baseline] / ms:>9.2f}x" for name, ms in times.items()
    ]
    lines = [rule, f"{'implementation':<{width}}  {'time (ms)':>12}  {'speedup':>10}", rule, *rows]
    if DEVICE.type == "cpu":
        lines.append("no GPU: these are single calls on a CPU, and mean nothing")
    return "\n".join([*lines, rule])
