"""Time until a kernel runs: importing helion, and the first call, in a second process too.

    python benchmarks/compile_time.py --json result.json

Each number comes from processes of its own. "First call" is in a process where torch and Triton
are warm (both have compiled and run something else), with empty caches on disk; the second process
finds in them what the first one left.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measure import header, machine
from benchmarks.report import markdown

ROOT = Path(__file__).resolve().parent.parent
IMPORTS = """
import json, time
began = time.perf_counter()
import torch
torch_s = time.perf_counter() - began
import helion
print(json.dumps({"torch": torch_s, "helion": time.perf_counter() - began - torch_s}))
"""

FIRST_CALLS = """
import json, torch
from benchmarks import rivals
from benchmarks.measure import DEVICE, wall
from examples import low_mem_dropout as ours

x = torch.randn(1 << 16, device=DEVICE)
rivals.triton_dropout(0.25, x)()  # warm: Triton has compiled, torch has run
calls = {
    "ours": lambda: ours.low_mem_dropout(0.25, x, 123),
    "ours, backward": lambda: ours.low_mem_dropout_bwd(0.25, x, 123),
    "ours, another dtype": lambda: ours.low_mem_dropout(0.25, x.bfloat16(), 123),
    "ours, again": lambda: ours.low_mem_dropout(0.25, x, 124),
    "tl.rand by hand": rivals.seeded_dropout(0.25, x),
    COMPILE
}
print(json.dumps({name: wall(call) for name, call in calls.items()}))
"""
TORCH_COMPILE = '"torch.compile": rivals.torch_compile_dropout(0.25, x),'


def child(script: str, **environment: str) -> dict[str, float]:
    """What a script prints, run in a process of its own."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise RuntimeError(ran.stderr)
    return json.loads(ran.stdout.splitlines()[-1])


def imports(repeats: int) -> dict[str, float]:
    """Seconds of `import torch`, and of `import helion` after it; the first run reads the disk."""
    runs = [child(IMPORTS) for _ in range(repeats)]
    return {f"import {name}": min(run[name] for run in runs) for name in runs[0]}


def first_calls(torch_compile: bool) -> tuple[dict[str, float], dict[str, float]]:
    """Seconds of first calls in a process with empty caches, and in the one after it."""
    script = FIRST_CALLS.replace("COMPILE", TORCH_COMPILE if torch_compile else "")
    with tempfile.TemporaryDirectory() as folder:
        caches = {
            "HELION_CACHE_DIR": f"{folder}/helion",
            "TRITON_CACHE_DIR": f"{folder}/triton",
            "TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor",
        }
        first, second = (child(script, **caches) for _ in range(2))
    return first, second


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Time until a kernel runs first.")
    parser.add_argument("--json", type=Path, help="write the numbers here")
    parser.add_argument("--repeats", type=int, default=2, help="processes that time the imports")
    options = parser.parse_args(arguments)
    print(header())
    imported = imports(options.repeats)
    first, second = first_calls(torch_compile=machine()["gpu"] is not None)
    print("\nseconds\n")
    print(markdown(["", "s"], [[name, f"{s:.3f}"] for name, s in imported.items()]))
    rows = [[name, f"{first[name]:.3f}", f"{second[name]:.3f}"] for name in first]
    print(f"\n{markdown(['first call', 'empty caches', 'second process'], rows)}")
    print(f"\nours: first call {first['ours']:.3f} s, in a second process {second['ours']:.3f} s")
    if options.json:
        seconds: dict[str, Any] = {"imports": imported, "first": first, "second": second}
        options.json.write_text(json.dumps({"machine": machine(), "seconds": seconds}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
