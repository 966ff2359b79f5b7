"""Golden texts of what the front end makes of a kernel: its types, and the device IR."""

from __future__ import annotations

import pytest
import torch
from kernels import CASES, floats

import helion
import helion.language as hl

TYPES = [
    *("rand_1d", "rand_1d.dynamic", "rand_2d.dynamic", "rand_3d.dynamic", "rand_tile_and_int"),
    *("rand_ints", "rand_grid", "rand_range", "rand_block_size", "rand_offsets", "seed_per_row"),
    *("dropout", "dropout_bwd", "dropout.static"),
    *("index_new_axis", "index_int", "index_gather", "index_strided", "branch_on_device"),
    *("carried_sum", "carried_count", "softmax", "matmul", "values_of_each_kind", "constants"),
    "helper",
]
GRAPHS = list(CASES)
PASSES = ["dropout.bf16", "narrowing", "unused"]
SECTIONS = [
    (name, stage)
    for name in CASES
    for stage, names in (("types", TYPES), ("graph", GRAPHS), ("passes", PASSES))
    if name in names
]


@pytest.mark.parametrize(("name", "stage"), SECTIONS, ids=[".".join(s) for s in SECTIONS])
def test_text(name, stage, golden):
    golden(f"{name}.{stage}", CASES[name].show(stage))


def test_no_text_is_left_over(golden):
    golden.are_all([f"{name}.{stage}" for name, stage in SECTIONS])


def test_types_are_what_debug_str_prints():
    bound = CASES["rand_1d"].bind()
    assert bound.debug_str() == bound.show("types")


def test_an_unknown_stage_is_refused():
    with pytest.raises(ValueError, match="no stage 'ptx'; there are types, graph, passes"):
        CASES["rand_1d"].bind().show("ptx")


def test_a_strange_name_of_the_author_is_not_taken_for_a_symbol():
    def kernel(s1000: torch.Tensor, u0: int):
        for s1001 in hl.tile(u0):
            s1000[s1001] = s1000[s1001] + 1

    text = helion.kernel(kernel, static_shapes=False).bind((floats(8), 8)).show("graph")
    assert "kernel(s1000: f32[s1000.size(0)], u0: int)" in text
    assert "grid s1001 in tiles(u0):" in text
