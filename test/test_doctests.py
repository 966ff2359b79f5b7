"""The examples in helion's docstrings do what they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

import pytest

HELION = Path(__file__).parent.parent / "helion"
MODULES = [
    ".".join(path.relative_to(HELION.parent).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(HELION.rglob("*.py"))
]


@pytest.mark.parametrize("name", MODULES)
def test_doctests(name):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    assert doctest.testmod(importlib.import_module(name), optionflags=flags).failed == 0
