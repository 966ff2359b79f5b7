"""Scalar expressions: sympy to Triton text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import sympy
from sympy.printing.str import StrPrinter

if TYPE_CHECKING:
    from collections.abc import Callable


class ScalarPrinter(StrPrinter):
    """Prints an integer, float or bool expression of the kernel's symbols.

    Args:
        name: the Triton text of a symbol.
    """

    def __init__(self, name: Callable[[sympy.Symbol], str]) -> None:
        super().__init__({"order": "none"})
        self._name = name

    def _print_Symbol(self, expr: sympy.Symbol) -> str:
        return self._name(expr)

    def _print_FloorDiv(self, expr: Any) -> str:
        # Sizes and indices are not negative, so that Triton's truncation is a floor.
        return self._infix("//", expr)

    def _print_CleanDiv(self, expr: Any) -> str:
        return self._infix("//", expr)

    def _print_Mod(self, expr: Any) -> str:
        return self._infix("%", expr)

    def _print_PythonMod(self, expr: Any) -> str:
        return self._infix("%", expr)

    def _print_FloatTrueDiv(self, expr: Any) -> str:
        return self._infix("/", expr)

    def _print_IntTrueDiv(self, expr: Any) -> str:
        return self._infix("/", expr)

    def _print_ToFloat(self, expr: Any) -> str:
        return f"({self._print(expr.args[0])}).to(tl.float32)"

    def _print_Min(self, expr: Any) -> str:
        return self._fold("tl.minimum", expr.args)

    def _print_Max(self, expr: Any) -> str:
        return self._fold("tl.maximum", expr.args)

    def _infix(self, symbol: str, expr: Any) -> str:
        left, right = (self.parenthesize(a, 60) for a in expr.args)
        return f"({left} {symbol} {right})"

    def _fold(self, function: str, args: Any) -> str:
        text = self._print(args[0])
        for arg in args[1:]:
            text = f"{function}({text}, {self._print(arg)})"
        return text
