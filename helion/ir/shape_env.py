"""Torch's symbolic shapes as a kernel needs them."""

from __future__ import annotations

from typing import Any

import sympy
import torch
from torch._dynamo.source import ConstantSource
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv


class KernelShapeEnv(ShapeEnv):
    """A ShapeEnv that answers from hints, keeps no guards, and says when it had to guess.

    A kernel is compiled once for every size, so no branch may be taken because of the sizes of
    the first call. Hints are unusual numbers that no real size suggests; a host computation that
    looked at one has a result that is unknown, not the one the hint gave.
    """

    def __init__(self) -> None:
        super().__init__(specialize_zero_one=False, duck_shape=False)
        self.guesses = 0

    def _generate_unique_id(self, source_name: str) -> int:
        """Names in order of creation: terms are sorted by name, and text should not change."""
        del source_name
        self.unique_ids.add(1000 + len(self.unique_ids))
        return 999 + len(self.unique_ids)

    def evaluate_expr(self, *args: Any, **kwargs: Any) -> Any:
        """As in ShapeEnv, with no guard kept; counts the answers that needed a hint."""
        self.guesses += 1
        with self.suppress_guards():
            return super().evaluate_expr(*args, **kwargs)

    def new_size(self, name: str, hint: int) -> tuple[sympy.Symbol, torch.SymInt]:
        """A size that torch's shape logic may look at; the hint stands for its value."""
        symbol = self.create_symbol(
            hint,
            ConstantSource(name),
            dynamic_dim=DimDynamic.DYNAMIC,
            constraint_dim=None,
            positive=None,
        )
        assert isinstance(symbol, sympy.Symbol)
        value = self.create_symintnode(symbol, hint=hint)
        assert isinstance(value, torch.SymInt)
        return symbol, value
