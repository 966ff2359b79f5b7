"""What loops and branches carry: items of lists, tuples and dicts, each a variable of its own."""

from __future__ import annotations

import re
import runpy
import textwrap

import pytest
import torch

from helion import exc
from helion._testing import DEVICE

HEAD = """\
import torch
import helion
import helion.language as hl

@helion.kernel(config=helion.Config(block_sizes=[8]), static_shapes={static})
def kernel(x: torch.Tensor, n: int):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
"""

# Lines of device code, and what they make of x for n = 3.
CARRIED = {
    "list_bound_anew": (
        "acc = [x[tile]]\nfor i in range(n): acc = [acc[0] + 1]\nout[tile] = acc[0]",
        3,
    ),
    "list_item": (
        "acc = [x[tile], 0]\nfor i in range(n): acc[0] = acc[0] + i\nout[tile] = acc[0]",
        3,
    ),
    "tuple": (
        "acc = (x[tile], 1)\nfor i in range(n): acc = (acc[0] + acc[1], acc[1] * 2)\n"
        "out[tile] = acc[0]",
        7,
    ),
    "nested": (
        "acc = [(x[tile], 1), [2]]\n"
        "for i in range(n): acc = [(acc[0][0] + 1, 1), [acc[1][0] + 1]]\n"
        "out[tile] = acc[0][0] + acc[1][0]",
        8,
    ),
    "dict": (
        'acc = {"a": x[tile]}\nfor i in range(n): acc = {"a": acc["a"] + 2}\nout[tile] = acc["a"]',
        6,
    ),
    "beside_a_string": (
        'acc = ("add", x[tile])\nfor i in range(n): acc = ("add", acc[1] + 1)\nout[tile] = acc[1]',
        3,
    ),
    "branch": (
        "acc = (x[tile], 1)\nif n > 2: acc = (acc[0] + 4, 2)\nout[tile] = acc[0] + acc[1]",
        6,
    ),
    "branch_changes_an_item": (
        "acc = [x[tile]]\nif n > 5: acc[0] = acc[0] + 1\nout[tile] = acc[0]",
        0,
    ),
    "while": (
        "acc = [x[tile], 0]\nwhile acc[1] < n: acc = [acc[0] + 2, acc[1] + 1]\nout[tile] = acc[0]",
        6,
    ),
    "unrolled": (
        "acc = []\nfor i in hl.static_range(3): acc.append(x[tile] + i)\n"
        "out[tile] = acc[0] + acc[1] + acc[2] - 2 * x[tile]",
        3,
    ),
}


def kernel_of(lines: str, tmp_path, static: bool = True):
    path = tmp_path / "program.py"
    path.write_text(
        HEAD.format(static=static) + textwrap.indent(lines, " " * 8) + "\n    return out\n"
    )
    return runpy.run_path(str(path), run_name="program")["kernel"]


@pytest.mark.parametrize("static", [True, False])
@pytest.mark.parametrize("case", CARRIED)
def test_items_are_carried(case, static, tmp_path):
    lines, added = CARRIED[case]
    x = torch.arange(12, device=DEVICE, dtype=torch.float32)
    out = kernel_of(lines, tmp_path, static)(x, 3)
    assert out.tolist() == (x + added).tolist()


@pytest.mark.parametrize(
    ("lines", "error", "text"),
    [
        (
            "acc = []\nfor i in range(n): acc.append(x[tile])\nout[tile] = acc[0]",
            exc.LoopVariableTypeChange,
            "`acc` is `[]` before the loop and `[f32[tile]]` after an iteration",
        ),
        (
            "acc = (x[tile],)\nfor i in range(n): acc = (*acc, 1)",
            exc.StarredArgsNotSupportedOnDevice,
            "not supported in a device loop",
        ),
        (
            "acc = [x[tile]]\nif n > 2: acc.append(x[tile])\nout[tile] = acc[0]",
            exc.CantCombineTypesInControlFlow,
            "`[f32[tile], f32[tile]]` on one way through the program",
        ),
        (
            "what = None\nfor i in range(n): what = x[tile]\nout[tile] = what",
            exc.UndefinedVariable,
            "`what` is not defined",
        ),
        (
            "what = 'a'\nfor i in range(n):\n"
            "    out[tile] = x[tile] if what == 'a' else 0\n    what = 'b'",
            exc.LoopVariableTypeChange,
            "`what` is `constant 'a'` before the loop and `constant 'b'` after an iteration",
        ),
    ],
    ids=["append", "starred", "append_in_a_branch", "kind_changes", "string_changes"],
)
def test_what_cannot_be_carried_is_refused(lines, error, text, tmp_path):
    with pytest.raises(error, match=re.escape(text)):
        kernel_of(lines, tmp_path).bind((torch.ones(8, device=DEVICE), 3))
