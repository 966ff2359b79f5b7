"""Golden texts of generated code, and what they may not depend on."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import offline
import pytest
import torch
from kernels import CASES, floats

import helion
import helion.language as hl

LAUNCHES = [
    *("rand_1d", "rand_3d.dynamic", "rand_block_size", "rand_shard", "dropout", "two_loops"),
    *("values_of_each_kind", "constants"),
]
SECTIONS = [
    (name, stage)
    for name in CASES
    for stage, names in (("triton", list(CASES)), ("launch", LAUNCHES))
    if name in names
]
STAGES = ("types", "graph", "triton", "launch")
SEVERAL = ("rand_3d.dynamic", "dropout.bf16", "two_loops", "carried_count", "matmul", "constants")
# Each statement of Triton that the goldens have is in one of them.
COMPILED = [
    *("rand_3d.dynamic", "rand_ints", "rand_shard", "seed_tensor", "seed_per_row", "dropout.int64"),
    *("two_loops", "branch", "branch_on_device", "carried_count", "softmax", "matmul"),
    "values_of_each_kind",
]


@pytest.mark.parametrize(("name", "stage"), SECTIONS, ids=[".".join(s) for s in SECTIONS])
def test_text(name, stage, golden):
    golden(f"{name}.{stage}", CASES[name].show(stage))


def test_no_text_is_left_over(golden):
    golden.are_all([f"{name}.{stage}" for name, stage in SECTIONS])


@pytest.mark.parametrize("name", ["dropout", "dropout.bf16", "dropout_bwd"])
def test_dropout_has_less_than_30_lines(name):
    lines = CASES[name].show("triton").splitlines() + CASES[name].show("launch").splitlines()
    assert len([line for line in lines if not line.strip().startswith("#")]) < 30


def texts(names: tuple[str, ...] = SEVERAL) -> dict[str, str]:
    return {f"{n}.{s}": CASES[n].show(s) for n in names for s in STAGES}


def test_compilations_do_not_see_each_other():
    one_after_the_other = texts()
    bound = {name: CASES[name].bind() for name in SEVERAL}
    interleaved = {(n, s): CASES[n].show(s, bound[n]) for s in STAGES for n in reversed(SEVERAL)}
    assert {f"{n}.{s}": text for (n, s), text in interleaved.items()} == one_after_the_other


def test_a_compilation_inside_of_another_changes_neither():
    inner: list[dict[str, str]] = []
    wanted = False

    def between() -> None:
        if wanted:
            inner.append(texts())

    def kernel(x: torch.Tensor, between: Callable[[], None]) -> torch.Tensor:
        out = torch.empty_like(x)
        between()
        for tile in hl.tile(x.size(0)):
            out[tile] = x[tile] * 2
        return out

    def show() -> list[str]:
        bound = helion.kernel(kernel, static_shapes=False).bind((floats(8), between))
        return [bound.show(stage) for stage in ("graph", "triton", "launch")]

    alone = show()
    wanted = True
    assert show() == alone
    assert inner
    assert all(found == texts() for found in inner)


def test_text_is_the_same_for_a_gpu(monkeypatch):
    names = ("dropout.bf16", "values_of_each_kind", "index_gather", "softmax")
    here = texts(names)
    # What torch asks to tell numbers on the CPU from those on a GPU.
    monkeypatch.setattr("torch._prims_common.is_cpu_scalar_tensor", lambda value: False)
    assert texts(names) == here


def test_text_does_not_depend_on_the_order_of_hashes():
    seed = "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"
    program = "import json, test_codegen; print(json.dumps(test_codegen.texts()))"
    here = Path(__file__).parent
    path = os.pathsep.join([str(here), str(here.parent)])
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": path}
    command = [sys.executable, "-c", program]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(run.stdout) == texts()


def test_what_is_read_here_compiles():
    cases = [CASES[name] for name in COMPILED]
    made = [offline.case(c.bind(), c.config, *c.values()) for c in cases]
    (facts,) = offline.compile_offline(made, 90)
    assert all(fact["instructions"] for fact in facts)


def test_the_walkthrough_shows_what_the_code_prints():
    docs = Path(__file__).parent.parent / "docs"
    page = runpy.run_path(str(docs / "make_walkthrough.py"))["page"]()
    assert page == (docs / "walkthrough.md").read_text(encoding="utf-8"), (
        "run `python docs/make_walkthrough.py`, and read what changed"
    )
