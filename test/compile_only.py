"""Compiles kernels for GPUs that are not there, in a process without the interpreter.

TRITON_INTERPRET=0 python test/compile_only.py      prints facts of each kernel as JSON
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import offline
import test_pointwise as pointwise
import torch
import torch.nn.functional as F
from kernels import CASES

import helion
import helion.language as hl
from examples.low_mem_dropout import low_mem_dropout, low_mem_dropout_bwd

CAPABILITIES = (80, 90, 100)
NAMED = ("rand_2d", "rand_2d.dynamic", "rand_3d", "rand_3d.dynamic", "softmax", "matmul",
         "index_gather", "carried_sum")  # fmt: skip
SIZE = 2**20

# Dropout as one writes it by hand.
HAND_WRITTEN = """
import triton
import triton.language as tl

@triton.jit(do_not_specialize=["seed"])
def hand_written(x, out, p, seed: tl.int64, n, scale, _BLOCK_SIZE_0: tl.constexpr):
    offset = tl.program_id(0) * _BLOCK_SIZE_0 + tl.arange(0, _BLOCK_SIZE_0)
    mask = offset < n
    value = tl.load(x + offset, mask)
    keep = tl.rand(seed, offset) >= p
    tl.store(out + offset, tl.where(keep, value * scale, 0.0), mask)
"""


@helion.kernel
def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, out: torch.Tensor):
    for tile in hl.tile(x.size(0)):
        row = x[tile, :].to(torch.float32)
        out[tile, :] = F.layer_norm(row, [x.size(1)], weight[:], bias[:], 1e-5)


def dropouts() -> dict[str, dict[str, Any]]:
    """Forward and backward with the default config, and the one written by hand with the same."""
    made: dict[str, dict[str, Any]] = {}
    for dtype, short in ((torch.float32, "fp32"), (torch.bfloat16, "bf16")):
        x = torch.empty(SIZE, dtype=dtype)
        for source in (low_mem_dropout, low_mem_dropout_bwd):
            for static in (False, True):
                kernel = helion.kernel(source.fn, static_shapes=static)
                bound = kernel.bind((0.25, x, 7))
                config = bound.config_spec.default_config()
                name = f"{source.name}.{short}.{'static' if static else 'dynamic'}"
                made[name] = offline.case(bound, config, 0.25, x, 7)
        made[f"hand_written.{short}"] = {
            **made[f"low_mem_dropout.{short}.dynamic"],
            "text": HAND_WRITTEN,
            "name": "hand_written",
            "signature": {
                "x": f"*{short}", "out": f"*{short}", "p": "fp32", "seed": "i64", "n": "i32",
                "scale": "fp32", "_BLOCK_SIZE_0": "constexpr",
            },
            "divisible": ["x", "out", "n"],
        }  # fmt: skip
    return made


def others() -> dict[str, dict[str, Any]]:
    """Random numbers, reductions, matrix products, gathers."""
    made: dict[str, dict[str, Any]] = {}
    for name in NAMED:
        args = CASES[name].args()
        made[name] = offline.case(CASES[name].bind(), helion.Config(**CASES[name].config), *args)
    args = (torch.empty(64, 768), torch.empty(768), torch.empty(768), torch.empty(64, 768))
    config = helion.Config(block_sizes=[1], num_warps=4)
    made["layer_norm"] = offline.case(layer_norm.bind(args), config, *args)
    return made


def all_pointwise(folder: Path) -> dict[str, dict[str, Any]]:
    """Every expression of the tables, in one kernel for each dtype."""
    made: dict[str, dict[str, Any]] = {}
    for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.int64):
        one = torch.ones(2, dtype=dtype)
        results: list[torch.Tensor] = []
        lines = ["import math, operator, torch", "import torch.nn.functional as F",
                 "import helion", "import helion.language as hl", ""]  # fmt: skip
        body = [
            "@helion.kernel",
            "def everything(a, b, c, out):",
            "    for t in hl.tile(a.size(0)):",
        ]
        for expression in pointwise.ALL_EXPRESSIONS:
            try:
                result = eval(expression, vars(pointwise) | {"x": one, "y": one, "z": one})
            except (RuntimeError, TypeError):
                continue
            i = len(results)
            lines += [f"def f{i}(x, y, z):", f"    return {expression}", ""]
            body += [f"        out[{i}][t] = f{i}(a[t], b[t], c[t])"]
            results.append(torch.empty(SIZE, dtype=result.dtype))
        path = folder / f"pointwise_{str(dtype)[6:]}.py"
        path.write_text("\n".join([*lines, *body, ""]))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
        x = torch.empty(SIZE, dtype=dtype)
        args = (x, x, x, results)
        config = helion.Config(block_sizes=[32], num_warps=1)
        made[path.stem] = offline.case(module.everything.bind(args), config, *args)
    return made


def main() -> None:
    """Print what `offline.facts_of` says, by compute capability and name."""
    assert os.environ.get("TRITON_INTERPRET") == "0", "run with TRITON_INTERPRET=0"
    facts: dict[int, dict[str, Any]] = {capability: {} for capability in CAPABILITIES}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dropped, cases, many = dropouts(), others(), all_pointwise(folder)
        for capability in CAPABILITIES:
            # One capability is enough for what comes from Triton's own libraries.
            chosen = dropped | cases | (many if capability == 90 else {})
            for i, (name, case) in enumerate(chosen.items()):
                path = folder / f"case_{capability}_{i}.py"
                made = offline.compiled(case, capability, path)
                facts[capability][name] = offline.facts_of(made)
                if name in dropped:
                    facts[capability][name]["sass"] = offline.machine_instructions(made)
    print(json.dumps(facts))


if __name__ == "__main__":
    main()
