"""Fills the blocks of `walkthrough.md` with what the code prints; the prose is written by hand."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

DOCS = Path(__file__).parent
PAGE = DOCS / "walkthrough.md"
sys.path.insert(0, str(DOCS.parent))  # the examples are no package that is installed

from examples.low_mem_dropout import DEVICE, low_mem_dropout, low_mem_dropout_bwd  # noqa: E402

X = torch.zeros(60, 100, dtype=torch.bfloat16, device=DEVICE)
CONFIG = {"block_sizes": [1024], "num_warps": 4, "num_stages": 2}


def _source() -> str:
    text = inspect.getsource(low_mem_dropout.fn)
    return re.sub(r'    """.*?"""\n', "", text, flags=re.DOTALL).rstrip()


def _stage(stage: str) -> str:
    return low_mem_dropout.bind((0.25, X, 7)).show(stage, CONFIG)


def _values() -> str:
    x = torch.arange(1.0, 9.0, device=DEVICE)
    forward = low_mem_dropout(0.25, x, 7)
    backward = low_mem_dropout_bwd(0.25, torch.ones_like(x), 7)
    other = low_mem_dropout(0.25, x, 8)
    rows = {"forward": forward, "backward": backward, "seed 8": other}
    return "\n".join(
        f"{name:<9}{' '.join(f'{value:6.2f}' for value in row.tolist())}"
        for name, row in rows.items()
    )


BLOCKS: dict[str, Callable[[], str]] = {
    "source": _source,
    "types": lambda: _stage("types"),
    "graph": lambda: _stage("graph"),
    "passes": lambda: _stage("passes"),
    "triton": lambda: _stage("triton"),
    "launch": lambda: _stage("launch"),
    "values": _values,
}


def page() -> str:
    """The text of `walkthrough.md`: its prose, with every block printed anew."""

    def printed(match: re.Match[str]) -> str:
        return f"{match[1]}{BLOCKS[match[2]]()}\n```\n"

    text = PAGE.read_text(encoding="utf-8")
    return re.sub(r"(?s)(<!-- (\w+) -->\n```\w+\n).*?```\n", printed, text)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
