"""Generated kernels compile for GPUs that are not there; what the hot ones are made of."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
DROPOUTS = [
    f"{kernel}.{dtype}.{shapes}"
    for kernel in ("low_mem_dropout", "low_mem_dropout_bwd")
    for dtype in ("fp32", "bf16")
    for shapes in ("static", "dynamic")
]


@pytest.fixture(scope="module")
def facts():
    """Facts by compute capability and name, from a process without the interpreter."""
    done = subprocess.run(
        [sys.executable, str(FOLDER / "compile_only.py")],
        env={**os.environ, "TRITON_INTERPRET": "0", "PYTHONPATH": str(FOLDER.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("capability", ["80", "90", "100"])
def test_every_kernel_compiles(facts, capability):
    """That the process ended well says so; here, that nothing was left out."""
    of_all = {"softmax", "layer_norm", "matmul", "index_gather", "rand_2d.dynamic", "rand_3d"}
    assert facts[capability].keys() >= of_all | {*DROPOUTS}
    assert all(f["instructions"] > 10 for f in facts[capability].values())


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64", "int64"])
def test_every_pointwise_function_compiles(facts, dtype):
    """In one kernel, of which each expression takes some instructions."""
    assert facts["90"][f"pointwise_{dtype}"]["instructions"] > 1000


@pytest.mark.parametrize("capability", ["80", "90", "100"])
@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout_moves_128_bits_at_a_time(facts, name, capability):
    memory = facts[capability][name]["memory"]
    assert memory.keys() == {"ld.global.v4.b32", "st.global.v4.b32"}


@pytest.mark.parametrize("capability", ["80", "90", "100"])
@pytest.mark.parametrize("name", [*DROPOUTS, "rand_2d", "rand_3d.dynamic"])
def test_offsets_below_2_to_32_take_no_64_bit_arithmetic(facts, name, capability):
    assert facts[capability][name]["wide"] == []


@pytest.mark.parametrize("capability", ["80", "90", "100"])
@pytest.mark.parametrize("name", DROPOUTS)
def test_dropout_takes_no_more_instructions_than_one_written_by_hand(facts, name, capability):
    """Of the same config. The assembler pads a kernel to 8 instructions, which is the slack."""
    by_hand = facts[capability][f"hand_written.{name.split('.')[1]}"]["sass"]
    assert facts[capability][name]["sass"] <= by_hand + 8
    # About 60 for each of 8 elements: Philox's ten rounds of 6.
    assert by_hand < 8 * 75
