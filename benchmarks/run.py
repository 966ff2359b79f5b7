r"""Compare an example with torch, torch.compile and Triton by hand, over sizes.

    HELION_USE_DEFAULT_CONFIG=0 python benchmarks/run.py --kernel low_mem_dropout \
        --metrics accuracy,speedup

Accuracy counts as well as speed: the exit code is 1 if a result is wrong. `--list` shows the
kernels and the metrics.
"""

from __future__ import annotations

import argparse
import csv
import dataclasses
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch

from benchmarks.measure import (
    ON_GPU,
    Calls,
    header,
    interleaved,
    machine,
    peak_memory,
    wall,
)
from benchmarks.operators import OPERATORS, Implementation, Operator, of_tritonbench
from benchmarks.report import markdown, pyplot

METRICS = {
    "accuracy": "1 if the result is right, 0 if not",
    "speedup": "time of the baseline over the time of this",
    "latency": "milliseconds on the device, median of calls in turns",
    "gbps": "GB/s of the bytes that must be read and written",
    "tflops": "TFLOP/s; only of kernels that compute more than they move",
    "peak_memory": "MB that a call needs at most, its result included",
    "compile_time": "seconds of the first call in this process, at this size",
}
TIMED = {"speedup", "latency", "gbps", "tflops"}
DTYPES = {
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp32": torch.float32,
    "fp64": torch.float64,
}


@dataclasses.dataclass
class Row:
    """All metrics of all implementations at one size: `values[implementation][metric]`."""

    size: int
    values: dict[str, dict[str, float | None]]
    faults: dict[str, str] = dataclasses.field(default_factory=dict)


def measure(
    operator: Operator,
    implementations: dict[str, Implementation],
    size: int,
    dtype: torch.dtype,
    metrics: Sequence[str],
    backward: bool,
) -> Row:
    """One row of the table."""
    args = operator.inputs(size, dtype)
    if backward:
        args = with_gradients(args)
    row = Row(size, {name: dict.fromkeys(metrics) for name in implementations})
    calls: dict[str, Any] = {}
    for name, implementation in implementations.items():
        calls[name] = implementation(*args)
        row.values[name]["compile_time"] = wall(calls[name])
        if backward:
            calls[name] = backward_call(calls[name], args)
        row.values[name]["peak_memory"] = megabytes(peak_memory(calls[name]))
        if "accuracy" in metrics:
            fault = operator.fault(implementation, with_gradients(args))
            row.values[name]["accuracy"] = float(fault is None)
            if fault:
                row.faults[name] = fault
    if TIMED & set(metrics):
        add_times(row, operator, calls, args)
    return row


def with_gradients(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments, with gradients asked of all that can have one."""
    return tuple(
        a.detach().clone().requires_grad_()
        if isinstance(a, torch.Tensor) and a.is_floating_point()
        else a
        for a in args
    )


def backward_call(forward: Any, args: tuple[Any, ...]) -> Any:
    """The backward pass alone, of one forward pass that has been done."""
    y = forward()
    leaves = [a for a in args if isinstance(a, torch.Tensor) and a.requires_grad]
    grad = torch.ones_like(y)
    return lambda: torch.autograd.grad(y, leaves, grad, retain_graph=True)


def megabytes(size: int | None) -> float | None:
    return None if size is None else size / 1e6


def add_times(row: Row, operator: Operator, calls: Calls, args: tuple[Any, ...]) -> None:
    times = interleaved(calls)
    baseline = times[next(iter(calls))].median
    flops = operator.flops
    for name, time in times.items():
        row.values[name] |= {
            "latency": time.median,
            "speedup": baseline / time.median,
            "gbps": operator.moved(*args) / time.median / 1e6,
            "tflops": flops(*args) / time.median / 1e9 if flops else None,
        }


# -- what is told ----------------------------------------------------------------------------------


def average(rows: list[Row], name: str, metric: str) -> float | None:
    found = [v for row in rows if (v := row.values[name].get(metric)) is not None]
    return statistics.mean(found) if found else None


def cells(rows: list[Row], metrics: Sequence[str]) -> tuple[list[str], list[list[Any]]]:
    """The head and the rows of the table, the average last; the baseline's speedup is left out."""
    names = list(rows[0].values)
    columns = [(n, m) for n in names for m in metrics if not (n == names[0] and m == "speedup")]
    table: list[list[Any]] = [
        [row.size, *(row.values[n].get(m) for n, m in columns)] for row in rows
    ]
    table.append(["average", *(average(rows, n, m) for n, m in columns)])
    return ["size", *(f"{n}-{m}" for n, m in columns)], table


def shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def write(path: Path, operator: str, dtype: str, rows: list[Row], metrics: Sequence[str]) -> None:
    """The table as CSV, or everything as JSON, as the name ends."""
    if path.suffix == ".csv":
        head, table = cells(rows, metrics)
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([head, *table])
        return
    report = {
        "machine": machine(),
        "kernel": operator,
        "dtype": dtype,
        "rows": [dataclasses.asdict(row) for row in rows],
    }
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def plot(path: Path, rows: list[Row], metric: str, title: str) -> None:
    plt = pyplot()
    if plt is None:
        print("no plot: matplotlib is not installed", file=sys.stderr)
        return
    figure, axis = plt.subplots(figsize=(8, 5))
    for name in rows[0].values:
        values = [row.values[name].get(metric) for row in rows]
        axis.plot([row.size for row in rows], values, marker=".", label=name)
    axis.set(title=f"{title}\n{header()}", xlabel="size", ylabel=metric, xscale="log")
    axis.grid(alpha=0.3)
    axis.legend()
    figure.tight_layout()
    figure.savefig(path, dpi=120)


def progress(sizes: Sequence[int]) -> Iterator[int]:
    """The sizes, with a bar that tells how far it is."""
    for done, size in enumerate(sizes):
        if sys.stderr.isatty():
            bar = "#" * (20 * done // len(sizes))
            print(f"\r[{bar:20}] {done}/{len(sizes)} size {size} ", end="", file=sys.stderr)
        yield size
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)


# -- the command -----------------------------------------------------------------------------------


def known(kind: str, names: Any) -> Any:
    """A parser of a comma-separated list of names."""

    def parse(text: str) -> list[str]:
        asked = [name.strip() for name in text.split(",") if name.strip()]
        unknown = [name for name in asked if name not in names]
        if unknown or not asked:
            wrong = ", ".join(unknown) or "nothing"
            raise argparse.ArgumentTypeError(f"no {kind} {wrong}; there are {', '.join(names)}")
        return asked

    return parse


def arguments_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description="Compare an example with torch, torch.compile and Triton by hand."
    )
    parser.add_argument("--kernel", type=known("kernel", OPERATORS), metavar="NAME[,NAME]")
    parser.add_argument(
        "--metrics",
        type=known("metric", METRICS),
        default=["accuracy", "speedup"],
        metavar="NAME[,NAME]",
    )
    parser.add_argument("--only", metavar="NAME[,NAME]", help="time these implementations alone")
    parser.add_argument("--num-inputs", type=int, metavar="N", help="the first N sizes alone")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N", help="these sizes instead")
    parser.add_argument("--dtype", choices=DTYPES, default="fp32", help="of the input")
    parser.add_argument("--bwd", action="store_true", help="time the backward pass")
    parser.add_argument("--output", "--json", type=Path, metavar="FILE", help=".csv or .json")
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="needs matplotlib")
    parser.add_argument("--list", action="store_true", help="show kernels and metrics, and stop")
    return parser


def show_list() -> None:
    for name, operator in OPERATORS.items():
        print(f"{name}: {', '.join(operator.implementations)}; sizes {operator.sizes}")
    print()
    for name, meaning in METRICS.items():
        print(f"{name}: {meaning}")


def chosen(
    operator: Operator, only: str | None, backward: bool, parser: argparse.ArgumentParser
) -> dict[str, Implementation]:
    """The implementations to time; the baseline always, since speedup needs it."""
    there = dict(operator.implementations)
    if not backward:  # not all that tritonbench has records a backward pass
        there |= of_tritonbench(operator.example)
    if only is None:
        return there
    try:
        names = known("implementation", there)(only)
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    return {name: run for name, run in there.items() if name in (operator.baseline, *names)}


def compare(operator: Operator, parser: argparse.ArgumentParser, options: Any) -> bool:
    """Measure one kernel, print and write what was found; whether all results are right."""
    sizes = options.sizes or (operator.sizes if ON_GPU else operator.small_sizes)
    implementations = chosen(operator, options.only, options.bwd, parser)
    rows = [
        measure(
            operator, implementations, size, DTYPES[options.dtype], options.metrics, options.bwd
        )
        for size in progress(sizes[: options.num_inputs])
    ]
    title = f"{operator.example}, {options.dtype}{', backward' if options.bwd else ''}"
    head, table = cells(rows, options.metrics)
    print(f"\n{title}; baseline {operator.baseline}\n")
    print(markdown(head, [[shown(value) for value in row] for row in table]), flush=True)
    verdict = "not checked"
    if "accuracy" in options.metrics:
        print(f"\naccuracy: {operator.agreement}")
        verdict = "all right"
    faults = {f"{n} at size {row.size}: {why}" for row in rows for n, why in row.faults.items()}
    for fault in sorted(faults):
        print(f"WRONG {fault}")
        verdict = "results are wrong"
    print(f"\n{title}, {len(rows)} sizes: {verdict}")
    if options.output:
        write(options.output, operator.example, options.dtype, rows, options.metrics)
    if options.plot:
        timed = [m for m in options.metrics if m != "accuracy"]
        plot(options.plot, rows, (timed or ["latency"])[0], title)
    return not faults


def main(arguments: list[str] | None = None) -> int:
    parser = arguments_parser()
    options = parser.parse_args(arguments)
    if options.list:
        show_list()
        return 0
    if options.kernel is None:
        parser.error(f"--kernel is needed; there are {', '.join(OPERATORS)}")
    if options.output and options.output.suffix not in (".csv", ".json"):
        parser.error(f"--output ends in .csv or .json, not {options.output.name}")
    if len(options.kernel) > 1 and (options.output or options.plot):
        parser.error("--output and --plot take one kernel")
    print(header())
    right = [compare(OPERATORS[name], parser, options) for name in options.kernel]
    return 0 if all(right) else 1


if __name__ == "__main__":
    sys.exit(main())
