"""README shows code that is printed by the code, and commands that CI runs."""

from __future__ import annotations

import re
from pathlib import Path

import torch

import helion
from helion._testing import import_path

README = (Path(__file__).parent.parent / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_the_triton_code_is_that_of_the_kernel(tmp_path):
    source, triton_code = BLOCKS
    path = tmp_path / "dropout.py"
    path.write_text(source)
    kernel = import_path(path).dropout
    x = torch.randn(1000, 1000)
    config = helion.Config(block_sizes=[1, 1024])
    code = kernel.bind((x, 0.5, 42)).to_triton_code(config)
    assert code[code.index("@triton.jit") :].strip() == triton_code.strip()
