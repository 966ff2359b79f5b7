"""Everything that needs a GPU, in one command: the tests, the large tests, the benchmarks.

    python3 benchmarks/gpu_suite.py --out results

Runs from a checkout, installed or not, on any CUDA machine with torch, triton and pytest. A part
that fails or runs out of time is reported and the others still run; the exit code is then 1. The
folder gets the output of each part (`PART.log`), pictures of some (`PART.png`, with matplotlib),
and `suite.json`: the machine, the versions, how each part went, and what each benchmark measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TextIO

ROOT = Path(__file__).resolve().parent.parent
# Scripts beside this one, with their arguments; each takes `--json FILE`.
BENCHMARKS = {
    "run": ("--kernel", "low_mem_dropout", "--metrics", "accuracy,speedup"),
    "dropout_bandwidth": (),
    "launch": (),
    "compile_time": (),
}
# Those that take `--plot FILE`.
PICTURES = ("run", "dropout_bandwidth")
# What a part leaves of the time for each part after it.
RESERVE_S = 45.0
TAIL_LINES = 30

MACHINE = """
import json, platform, torch, triton
facts = {"python": platform.python_version(), "torch": torch.__version__,
         "triton": triton.__version__, "cuda": torch.version.cuda, "gpu": None}
if torch.cuda.is_available():
    properties = torch.cuda.get_device_properties(0)
    facts |= {"gpu": properties.name, "capability": f"{properties.major}.{properties.minor}",
              "memory_gib": round(properties.total_memory / 2**30, 1)}
print(json.dumps(facts))
"""


@dataclasses.dataclass(frozen=True)
class Part:
    """A command; if it `measures`, it takes `--json FILE`; if it `draws`, `--plot FILE`."""

    name: str
    command: tuple[str, ...]
    measures: bool = False
    draws: bool = False


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a part went: ok, failed, timeout or not run; `note` is the last line it printed."""

    name: str
    status: str
    seconds: float
    note: str = ""
    measured: object = None


def all_parts(workers: int) -> list[Part]:
    """The tests first, since a wrong kernel needs no timing; then the benchmarks."""
    # pytest-benchmark, where installed, warns of every parallel run; warnings are errors here.
    quiet = ("-p", "no:cacheprovider", "-p", "no:benchmark")
    pytest = (sys.executable, "-m", "pytest", "-q", *quiet, "--durations=10")
    # Large tests run alone: several at once would not fit on the GPU.
    spread = ("-n", str(workers)) if workers > 1 and importlib.util.find_spec("xdist") else ()
    tests = [
        Part("tests", (*pytest, *spread, "-m", "not large")),
        Part("large", (*pytest, "-m", "large", "--large")),
    ]
    measured = [
        Part(
            name,
            (sys.executable, str(ROOT / "benchmarks" / f"{name}.py"), *arguments),
            measures=True,
            draws=name in PICTURES,
        )
        for name, arguments in BENCHMARKS.items()
    ]
    return tests + measured


def run_part(part: Part, out: Path, limit_s: float) -> Outcome:
    """Run one part, its output going to `out/PART.log`, for at most `limit_s` seconds."""
    if limit_s <= 0:
        return Outcome(part.name, "not run", 0.0, "no time left")
    log = out / f"{part.name}.log"
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    env = os.environ | {"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"}
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        asked = ["--json", str(result)] if part.measures else []
        asked += ["--plot", str(out / f"{part.name}.png")] if part.draws else []
        with log.open("w", encoding="utf-8") as output:
            status = _run((*part.command, *asked), output, env, limit_s)
        seconds = time.monotonic() - began
        measured = None
        if part.measures and status == "ok":
            try:
                measured = json.loads(result.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                return Outcome(part.name, "failed", seconds, f"no result: {error}")
    note = (read_lines(log) or [""])[-1].strip("= ")
    return Outcome(part.name, status, seconds, note, measured)


def read_lines(log: Path) -> list[str]:
    """The lines of a log that hold anything; none if the part never began."""
    if not log.exists():
        return []
    text = log.read_text(encoding="utf-8", errors="replace")
    return [line for line in text.splitlines() if line.strip()]


def _run(command: tuple[str, ...], output: TextIO, env: dict[str, str], limit_s: float) -> str:
    # A session of its own, so that the time limit ends the workers that pytest started as well.
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        return "failed" if process.wait(limit_s) else "ok"
    except subprocess.TimeoutExpired:
        return "timeout"
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def run_suite(parts: list[Part], out: Path, budget_s: float) -> list[Outcome]:
    """Run all parts within `budget_s` seconds, telling how each went, and what was measured."""
    ends = time.monotonic() + budget_s
    outcomes: list[Outcome] = []
    for number, part in enumerate(parts, 1):
        reserved = RESERVE_S * (len(parts) - number)
        outcome = run_part(part, out, ends - reserved - time.monotonic())
        outcomes.append(outcome)
        took = f"{outcome.status}, {outcome.seconds:.0f} s"
        print(f"[{number}/{len(parts)}] {part.name}: {took}", flush=True)
        failed = outcome.status in ("failed", "timeout")
        if failed or part.measures:
            for line in read_lines(out / f"{part.name}.log")[-TAIL_LINES:]:
                print(f"    {line}", flush=True)
    return outcomes


def machine_facts() -> dict[str, object]:
    """The GPU and the versions, read in another process: a CUDA context here would hold memory."""
    command = [sys.executable, "-c", MACHINE]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        return {"gpu": None, "error": (ran.stderr.strip().splitlines() or ["no message"])[-1]}
    return json.loads(ran.stdout)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Run the tests and benchmarks that need a GPU.")
    parser.add_argument("--out", type=Path, required=True, help="folder for logs and suite.json")
    parser.add_argument(
        "--budget", type=float, default=3600, metavar="SECONDS", help="for all parts"
    )
    parser.add_argument("--workers", type=int, default=4, help="test processes (with pytest-xdist)")
    parser.add_argument("--only", nargs="+", metavar="PART", help="run these parts alone")
    options = parser.parse_args(arguments)

    parts = all_parts(options.workers)
    unknown = set(options.only or ()) - {part.name for part in parts}
    if unknown:
        names = ", ".join(part.name for part in parts)
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {names}")
    parts = [part for part in parts if not options.only or part.name in options.only]

    facts = machine_facts()
    print(", ".join(f"{name} {value}" for name, value in facts.items()), flush=True)
    if facts["gpu"] is None:
        print("no CUDA device: nothing was run", file=sys.stderr)
        return 2
    options.out.mkdir(parents=True, exist_ok=True)
    outcomes = run_suite(parts, options.out, options.budget)
    report = {"machine": facts, "parts": [dataclasses.asdict(outcome) for outcome in outcomes]}
    (options.out / "suite.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")

    print()
    for outcome in outcomes:
        print(f"{outcome.name:18} {outcome.status:8} {outcome.seconds:6.0f} s  {outcome.note[:80]}")
    return 0 if all(outcome.status == "ok" for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
