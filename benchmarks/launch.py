"""What a repeated call costs on the host, with 1024 elements: microseconds, output included.

    python benchmarks/launch.py --json result.json

The device works on a call for about 2 us, less than the host needs to ask for it: so the time for
many calls, divided by their number, is the host's.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from benchmarks import rivals
from benchmarks.measure import DEVICE, ON_GPU, Calls, header, machine, synchronize, timing
from benchmarks.report import markdown
from examples.low_mem_dropout import LowMemDropout, dropout, low_mem_dropout

P = 0.25
ELEMENTS = 1024


def candidates() -> Calls:
    """The calls to time, the cheapest that torch has first."""
    x = torch.randn(ELEMENTS, device=DEVICE)
    needs_grad = x.clone().requires_grad_()
    out = torch.empty_like(x)
    module = LowMemDropout(P)

    kernel: Any = rivals.seeded_kernel

    def triton_launch(out: torch.Tensor) -> None:
        kernel[(1,)](x, out, ELEMENTS, P, rivals.SEED, BLOCK=ELEMENTS)

    return {
        "torch.empty_like": lambda: torch.empty_like(x),
        "torch.add": lambda: torch.add(x, x),
        "F.dropout": rivals.torch_dropout(P, x),
        "F.dropout, recorded for backward": rivals.torch_dropout(P, needs_grad),
        "Triton launch": lambda: triton_launch(out),
        "Triton launch and empty_like": lambda: triton_launch(torch.empty_like(x)),
        "ours": lambda: low_mem_dropout(P, x, rivals.SEED),
        "ours, recorded for backward": lambda: dropout(needs_grad, P, seed=rivals.SEED),
        "ours, seed drawn, recorded for backward": lambda: module(needs_grad),
    }


def measure(calls: Calls, rounds: int, repeats: int) -> dict[str, dict[str, float]]:
    """Microseconds of each call: median and spread over rounds in which all take turns."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        for _ in range(min(repeats, 20)):
            call()
    for _ in range(rounds):
        for name, call in calls.items():
            synchronize()
            began = time.perf_counter()
            for _ in range(repeats):
                call()
            times[name].append(1e6 * (time.perf_counter() - began) / repeats)
    synchronize()
    found = {name: timing(values) for name, values in times.items()}
    return {n: {"us": t.median, "low": t.low, "high": t.high} for n, t in found.items()}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Host time of a repeated call.")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    parser.add_argument("--rounds", type=int, default=40 if ON_GPU else 3)
    # Fewer than the launches that CUDA queues before it makes the host wait.
    parser.add_argument(
        "--repeats", type=int, default=200 if ON_GPU else 2, help="calls in a round"
    )
    options = parser.parse_args(arguments)
    print(header())
    results = measure(candidates(), options.rounds, options.repeats)
    rows = [
        [name, f"{found['us']:.1f}", f"{found['low']:.1f} to {found['high']:.1f}"]
        for name, found in results.items()
    ]
    print(f"\n{ELEMENTS} elements\n\n{markdown(['call', 'us', 'spread'], rows)}")
    ours, rival = (results[n]["us"] for n in ("ours", "Triton launch and empty_like"))
    print(f"\nours {ours:.1f} us, Triton launch and empty_like {rival:.1f} us")
    if options.json:
        result: dict[str, Any] = {"machine": machine(), "microseconds": results}
        options.json.write_text(json.dumps(result, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
