"""Scalar expressions: sympy to Triton or host text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sympy.printing.str import StrPrinter

if TYPE_CHECKING:
    from collections.abc import Callable

    import sympy


class ScalarPrinter(StrPrinter):
    """Prints an integer, float or bool expression of the kernel's symbols.

    Args:
        name: the text of a symbol.
        on_device: print for Triton, else for Python.
    """

    def __init__(self, name: Callable[[sympy.Symbol], str], on_device: bool) -> None:
        super().__init__({"order": "none"})
        self._name = name
        self._on_device = on_device

    def _print_Symbol(self, expr: Any) -> str:
        return self._name(expr)

    def _print_Add(self, expr: Any, order: Any = None) -> str:
        # Numbers last, as people write it: `n + 1`.
        del order
        terms = sorted(expr.args, key=lambda a: (bool(a.is_number), str(a)))
        text = self.parenthesize(terms[0], 50)
        for term in terms[1:]:
            negative = term.could_extract_minus_sign()
            text += f" {'-' if negative else '+'} "
            text += self.parenthesize(-term if negative else term, 51 if negative else 50)
        return text

    def _print_Mul(self, expr: Any) -> str:
        if expr.could_extract_minus_sign() and len(expr.args) == 2 and expr.args[0] == -1:
            return f"-{self.parenthesize(expr.args[1], 70)}"
        factors = sorted(expr.args, key=lambda a: (bool(a.is_number), str(a)))
        return " * ".join(self.parenthesize(f, 60) for f in factors)

    def _print_FloorDiv(self, expr: Any) -> str:
        # Sizes and indices are not negative, so that Triton's truncation is a floor.
        return self._infix("//", expr)

    _print_CleanDiv = _print_FloorDiv

    def _print_Mod(self, expr: Any) -> str:
        return self._infix("%", expr)

    _print_PythonMod = _print_Mod

    def _print_FloatTrueDiv(self, expr: Any) -> str:
        return self._infix("/", expr)

    _print_IntTrueDiv = _print_FloatTrueDiv

    def _print_PowByNatural(self, expr: Any) -> str:
        return " * ".join([self.parenthesize(expr.args[0], 60)] * int(expr.args[1]))

    def _print_Pow(self, expr: Any, rational: bool = False) -> str:
        del rational
        if expr.exp.is_Integer and expr.exp > 0:
            return " * ".join([self.parenthesize(expr.base, 60)] * int(expr.exp))
        return super()._print_Pow(expr)

    def _print_ToFloat(self, expr: Any) -> str:
        inner = self._print(expr.args[0])
        return f"tl.cast({inner}, tl.float32)" if self._on_device else f"float({inner})"

    def _print_Min(self, expr: Any) -> str:
        return self._fold("tl.minimum" if self._on_device else "min", expr.args)

    def _print_Max(self, expr: Any) -> str:
        return self._fold("tl.maximum" if self._on_device else "max", expr.args)

    def _print_Relational(self, expr: Any) -> str:
        symbol = {"Eq": "==", "Ne": "!="}.get(type(expr).__name__, expr.rel_op)
        return f"({self._print(expr.args[0])} {symbol} {self._print(expr.args[1])})"

    def _print_And(self, expr: Any) -> str:
        return f"({' and '.join(self._print(a) for a in expr.args)})"

    def _print_Or(self, expr: Any) -> str:
        return f"({' or '.join(self._print(a) for a in expr.args)})"

    def _print_Not(self, expr: Any) -> str:
        return f"(not {self._print(expr.args[0])})"

    def _infix(self, symbol: str, expr: Any) -> str:
        left, right = (self.parenthesize(a, 60) for a in expr.args)
        return f"({left} {symbol} {right})"

    def _fold(self, function: str, args: Any) -> str:
        texts = [self._print(a) for a in args]
        if not self._on_device:
            return f"{function}({', '.join(texts)})"
        text = texts[0]
        for other in texts[1:]:
            text = f"{function}({text}, {other})"
        return text
