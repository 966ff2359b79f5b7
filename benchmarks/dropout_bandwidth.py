"""Memory bandwidth of dropout over sizes: input and output bytes over time, in GB/s.

    python benchmarks/dropout_bandwidth.py --json result.json --plot result.png

The limit is a copy on the device. Candidates take turns, in one process.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

import helion
import helion.language as hl
from benchmarks import rivals
from benchmarks.measure import DEVICE, ON_GPU, Calls, header, interleaved, machine
from benchmarks.report import markdown, power, pyplot
from examples.low_mem_dropout import low_mem_dropout, low_mem_dropout_bwd

P = 0.25
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
SIZES = [2**k for k in range(10, 31, 2)] if ON_GPU else [2**10, 2**14]


@helion.kernel(static_shapes=False)
def packed_dropout(p: float, x: torch.Tensor, seed: int) -> torch.Tensor:
    """Four numbers from each Philox call."""
    out = torch.empty_like(x)
    scale = 1.0 / (1.0 - p)
    for tile in hl.tile(x.size(0)):
        keep = hl.rand([tile], seed=seed, packed=True) >= p
        out[tile] = torch.where(keep, x[tile] * scale, 0.0)
    return out


@helion.kernel(static_shapes=False)
def bernoulli_dropout(p: float, x: torch.Tensor, seed: int) -> torch.Tensor:
    """Eight masks of 16 bits from each Philox call."""
    out = torch.empty_like(x)
    scale = 1.0 / (1.0 - p)
    for tile in hl.tile(x.size(0)):
        keep = hl.bernoulli([tile], 1.0 - p, seed, bits=16)
        out[tile] = torch.where(keep, x[tile] * scale, 0.0)
    return out


def candidates(x: torch.Tensor) -> Calls:
    copied = torch.empty_like(x)
    calls = {
        "copy": lambda: copied.copy_(x),
        "F.dropout": rivals.torch_dropout(P, x),
        "torch.compile": rivals.torch_compile_dropout(P, x),
        "tl.rand": rivals.seeded_dropout(P, x),
        "tl.rand4x": rivals.seeded4x_dropout(P, x),
        "ours": lambda: low_mem_dropout(P, x, rivals.SEED),
        "ours, backward": lambda: low_mem_dropout_bwd(P, x, rivals.SEED),
        "ours, packed": lambda: packed_dropout(P, x, rivals.SEED),
        "ours, 16 bits": lambda: bernoulli_dropout(P, x, rivals.SEED),
    }
    if not ON_GPU:  # there it compiles C++, for longer than all else takes
        del calls["torch.compile"]
    return calls


def measure(sizes: list[int], dtype: torch.dtype, seconds: float) -> list[dict[str, Any]]:
    """A row for each size: GB/s of each candidate, with the spread."""
    rows: list[dict[str, Any]] = []
    for size in sizes:
        x = torch.randn(size, device=DEVICE, dtype=dtype)
        times = interleaved(candidates(x), seconds)
        moved = 2 * x.nbytes / 1e6
        speeds = {
            name: {"gbps": moved / t.median, "low": moved / t.high, "high": moved / t.low}
            for name, t in times.items()
        }
        rows.append({"size": size, "candidates": speeds})
    return rows


def table(rows: list[dict[str, Any]]) -> str:
    names = list(rows[0]["candidates"])
    cells = [
        [
            power(row["size"]),
            *(f"{row['candidates'][n]['gbps']:.4g}" for n in names),
        ]
        for row in rows
    ]
    return markdown(["elements", *names], cells)


def summary(results: dict[str, list[dict[str, Any]]]) -> str:
    """The largest size in a line."""
    found: list[str] = []
    for dtype, rows in results.items():
        speeds = {name: f"{c['gbps']:.4g}" for name, c in rows[-1]["candidates"].items()}
        found.append(f"{dtype} {speeds['ours']} of {speeds['copy']} GB/s")
    return f"{power(next(iter(results.values()))[-1]['size'])} elements: {', '.join(found)}"


def plot(results: dict[str, list[dict[str, Any]]], path: Path) -> None:
    """Curves of GB/s over size, one picture for each dtype."""
    plt = pyplot()
    if plt is None:
        print("no plot: matplotlib is not installed", file=sys.stderr)
        return
    figure, axes = plt.subplots(1, len(results), figsize=(7 * len(results), 5), sharey=True)
    for axis, (dtype, rows) in zip(axes, results.items(), strict=True):
        for name in rows[0]["candidates"]:
            speeds = [row["candidates"][name]["gbps"] for row in rows]
            axis.plot([row["size"] for row in rows], speeds, marker=".", label=name)
        axis.set(title=f"dropout, {dtype}", xlabel="elements", ylabel="GB/s", xscale="log")
        axis.grid(alpha=0.3)
    axes[0].legend()
    figure.suptitle(header())
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="GB/s of dropout over sizes.")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    parser.add_argument("--plot", type=Path, help="write a picture here (needs matplotlib)")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of elements")
    parser.add_argument(
        "--seconds", type=float, default=0.4 if ON_GPU else 0.1, help="time for each size"
    )
    options = parser.parse_args(arguments)
    print(header())
    results: dict[str, list[dict[str, Any]]] = {}
    for name, dtype in DTYPES.items():
        results[name] = measure(options.sizes, dtype, options.seconds)
        print(f"\n{name}, p = {P}, GB/s\n\n{table(results[name])}", flush=True)
    print(f"\n{summary(results)}")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine(), "gbps": results}, indent=1))
    if options.plot:
        plot(results, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
