"""Timing: candidates are interleaved, so that a change of clock or neighbour hits all of them."""

from __future__ import annotations

import dataclasses
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

import helion  # noqa: F401 - without a GPU it turns Triton's interpreter on

# isort: split
import triton

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
ON_GPU = DEVICE.type == "cuda"
NO_GPU = "no GPU: kernels run in Triton's interpreter, timings mean nothing"
# Written before each call, so that no candidate finds its input in the cache of the one before.
FLUSH_BYTES = 256 << 20
# Writing them takes a GPU at least so long: 8 TB/s are more than there are.
FLUSH_SECONDS = FLUSH_BYTES / 8e12

Calls = Mapping[str, Callable[[], Any]]


@dataclasses.dataclass(frozen=True)
class Timing:
    """Milliseconds of a call: the median, and the bounds of the middle 60%."""

    median: float
    low: float
    high: float


def machine() -> dict[str, Any]:
    """What the numbers depend on."""
    facts = {
        "gpu": torch.cuda.get_device_name() if ON_GPU else None,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "python": platform.python_version(),
    }
    return facts if ON_GPU else facts | {"note": NO_GPU}


def header() -> str:
    """The machine in a line."""
    facts = machine()
    where = facts.pop("gpu") or "CPU"
    return f"{where}: {', '.join(f'{name} {value}' for name, value in facts.items())}"


def interleaved(calls: Calls, seconds: float = 0.3) -> dict[str, Timing]:
    """Time on the device of each call, in turns, for about so many seconds in all."""
    for call in calls.values():
        call()
    synchronize()
    began = time.perf_counter()
    for call in calls.values():
        call()
    host = time.perf_counter() - began
    took = wall(lambda: one_round(calls, host))
    rounds = max(3, min(200, int(seconds / max(took, 1e-6))))
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, milliseconds in one_round(calls, host).items():
            times[name].append(milliseconds)
    return {name: timing(values) for name, values in times.items()}


def timing(values: list[float]) -> Timing:
    ordered = sorted(values)
    last = len(ordered) - 1
    low, high = ordered[round(0.2 * last)], ordered[round(0.8 * last)]
    return Timing(statistics.median(ordered), low, high)


def one_round(calls: Calls, host: float) -> dict[str, float]:
    """Milliseconds of one call of each; the host needs about `host` seconds to ask for them."""
    if not ON_GPU:
        return {name: 1e3 * wall(call) for name, call in calls.items()}
    flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device=DEVICE)
    events: dict[str, tuple[torch.cuda.Event, torch.cuda.Event]] = {}
    # The device is kept busy until the host has asked for everything: otherwise the time of a
    # short kernel would be that of its launch.
    for _ in range(int(host / FLUSH_SECONDS) + 1):
        flush.zero_()
    for name, call in calls.items():
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        flush.zero_()
        begin.record()
        call()
        end.record()
        events[name] = begin, end
    torch.cuda.synchronize()
    return {name: begin.elapsed_time(end) for name, (begin, end) in events.items()}


def wall(call: Callable[[], Any]) -> float:
    """Seconds from the call to the end of what it started on the device."""
    synchronize()
    began = time.perf_counter()
    call()
    synchronize()
    return time.perf_counter() - began


def synchronize() -> None:
    if ON_GPU:
        torch.cuda.synchronize()


def peak_memory(call: Callable[[], Any]) -> int | None:
    """Bytes that a call needs at most, its result included; None without a GPU."""
    if not ON_GPU:
        return None
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    torch.cuda.synchronize()
    return torch.cuda.max_memory_allocated() - before
