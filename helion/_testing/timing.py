"""Timing of functions on the device; on a CPU the wall clock, whose times mean little there."""

from __future__ import annotations

import statistics
import time
from typing import TYPE_CHECKING, Any

import torch

from helion._testing.machine import DEVICE, synchronize

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_MEGABYTE = 2**20


class _Stopwatch:
    """Times calls on the device, each with an empty L2 cache, without waiting in between."""

    def __init__(self) -> None:
        on_cpu = DEVICE.type == "cpu"
        # Larger than every L2 cache, so that no call finds what the one before it loaded.
        self._flush = (
            None if on_cpu else torch.empty(256 * _MEGABYTE, dtype=torch.int8, device=DEVICE)
        )

    def time(self, function: Callable[[], Any]) -> Callable[[], float]:
        """Call the function; the result tells the milliseconds, once the device is done."""
        if self._flush is None:
            began = time.perf_counter()
            function()
            passed = (time.perf_counter() - began) * 1e3
            return lambda: passed
        self._flush.zero_()
        start, end = (torch.Event(DEVICE, enable_timing=True) for _ in range(2))
        start.record()
        function()
        end.record()
        return lambda: start.elapsed_time(end)


def compute_repeat(
    fn: Callable[[], Any],
    *,
    target_ms: float = 100.0,
    min_repeat: int = 10,
    max_repeat: int = 1000,
    estimate_runs: int = 5,
) -> int:
    """How many calls of `fn` take about `target_ms` milliseconds, within the bounds."""
    fn()
    synchronize()
    began = time.perf_counter()
    for _ in range(estimate_runs):
        fn()
    synchronize()
    each = (time.perf_counter() - began) * 1e3 / estimate_runs
    return max(min_repeat, min(max_repeat, int(target_ms / max(each, 1e-6))))


def interleaved_bench(
    fns: Sequence[Callable[[], Any]], *, repeat: int, desc: str | None = None
) -> list[float]:
    """The median time of each function, called in turn so that drift meets all alike.

    Args:
        fns: the functions.
        repeat: how often each is called.
        desc: a name for the logs of a profiler.

    Returns:
        Milliseconds, in the order of `fns`.
    """
    with torch.profiler.record_function(desc or "interleaved_bench"):
        for fn in fns:
            fn()
        watch = _Stopwatch()
        rounds = [[watch.time(fn) for fn in fns] for _ in range(repeat)]
        synchronize()
    return [statistics.median(read() for read in column) for column in zip(*rounds, strict=True)]


def do_bench(
    fn: Callable[[], Any],
    warmup: float = 25,
    rep: float = 100,
    grad_to_none: Sequence[torch.Tensor] | None = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> Any:
    """Time a function, as `triton.testing.do_bench` does, on a CPU too.

    Args:
        fn: the function.
        warmup: milliseconds of calls that are not timed.
        rep: milliseconds of calls that are timed.
        grad_to_none: tensors whose gradient is dropped before each call.
        quantiles: which quantiles to return, instead of one number.
        return_mode: "mean", "median", "min", "max", or "all" for the list of times.

    Returns:
        Milliseconds.
    """

    def call() -> None:
        for tensor in grad_to_none or ():
            tensor.grad = None
        fn()

    for _ in range(compute_repeat(call, target_ms=warmup, min_repeat=1)):
        call()
    watch = _Stopwatch()
    repeat = compute_repeat(call, target_ms=rep, min_repeat=1, estimate_runs=1)
    reads = [watch.time(call) for _ in range(repeat)]
    synchronize()
    times = [read() for read in reads]
    if quantiles is not None:
        found = torch.tensor(times, dtype=torch.float64).quantile(torch.tensor(quantiles).double())
        return found.tolist() if len(quantiles) > 1 else found.item()
    modes: dict[str, Callable[[list[float]], Any]] = {
        "mean": statistics.fmean, "median": statistics.median, "min": min, "max": max, "all": list,
    }  # fmt: skip
    return modes[return_mode](times)


def sync_object(obj: Any) -> Any:
    """The object of the first process, in every process of a running process group."""
    if not torch.distributed.is_available() or not torch.distributed.is_initialized():
        return obj
    box = [obj]
    torch.distributed.broadcast_object_list(box)
    return box[0]
