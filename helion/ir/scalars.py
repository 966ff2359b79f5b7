"""Scalar expressions as text: sympy to Triton, or to Python for the host and for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sympy.core.relational import Relational
from sympy.printing.str import StrPrinter

if TYPE_CHECKING:
    from collections.abc import Callable

    import sympy

# Python's precedence, loosest first; comparisons and below are 0, as no arithmetic binds less.
_LOGIC, _COMPARE, _SUM, _PRODUCT, _UNARY, _ATOM = -1, 0, 5, 6, 7, 8

_BINDS = {
    "And": _LOGIC,
    "Or": _LOGIC,
    "Not": _LOGIC,
    "Add": _SUM,
    "Mul": _PRODUCT,
    "FloorDiv": _PRODUCT,
    "CleanDiv": _PRODUCT,
    "Mod": _PRODUCT,
    "PythonMod": _PRODUCT,
    "FloatTrueDiv": _PRODUCT,
    "IntTrueDiv": _PRODUCT,
    "Pow": _PRODUCT,
    "PowByNatural": _PRODUCT,
}


def binds(expr: sympy.Basic) -> int:
    """How tightly the outermost operator of an expression's text binds, as in `expression.py`."""
    if isinstance(expr, Relational):
        return _COMPARE
    if expr.is_number and expr.could_extract_minus_sign():
        return _UNARY
    return _BINDS.get(type(expr).__name__, _ATOM)


class ScalarPrinter(StrPrinter):
    """Prints an integer, float or bool expression of the kernel's symbols.

    Args:
        name: the text of a symbol.
        on_device: print for Triton, else for Python.
        floats: what Triton calls the dtype of a float.
    """

    # Torch's own classes bring a `_sympystr`, in torch's style.
    printmethod = "_helionstr"

    def __init__(
        self, name: Callable[[sympy.Symbol], str], on_device: bool, floats: str = "tl.float32"
    ) -> None:
        super().__init__({"order": "none"})
        self._name = name
        self._floats = floats
        self._on_device = on_device

    def _within(self, expr: Any, level: int) -> str:
        text = self._print(expr)
        return text if binds(expr) >= level else f"({text})"

    def _print_Symbol(self, expr: Any) -> str:
        return self._name(expr)

    def _print_Add(self, expr: Any, order: Any = None) -> str:
        # As people write it: `n + 1`, `n - 2 * k`.
        del order
        text = ""
        terms = sorted(expr.args, key=_numbers_last)
        for term in sorted(terms, key=lambda t: not t.is_number and t.could_extract_minus_sign()):
            if not text:
                text = self._within(term, _SUM)
            elif term.could_extract_minus_sign() and term != -(2**63):
                text += f" - {self._within(-term, _PRODUCT)}"
            else:
                text += f" + {self._within(term, _PRODUCT)}"
        return text

    def _print_Mul(self, expr: Any) -> str:
        if expr.could_extract_minus_sign() and len(expr.args) == 2 and expr.args[0] == -1:
            return f"-{self._within(expr.args[1], _UNARY)}"
        # Parentheses around quotients: they round, so that their place in a product matters.
        return " * ".join(self._within(f, _UNARY) for f in sorted(expr.args, key=_numbers_last))

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
        return " * ".join([self._within(expr.args[0], _UNARY)] * int(expr.args[1]))

    def _print_Pow(self, expr: Any, rational: bool = False) -> str:
        del rational
        if expr.exp.is_Integer and expr.exp > 0:
            return " * ".join([self._within(expr.base, _UNARY)] * int(expr.exp))
        return super()._print_Pow(expr)

    def _print_ToFloat(self, expr: Any) -> str:
        inner = self._print(expr.args[0])
        return f"tl.cast({inner}, {self._floats})" if self._on_device else f"float({inner})"

    def _print_Min(self, expr: Any) -> str:
        return self._fold("tl.minimum" if self._on_device else "min", expr.args)

    def _print_Max(self, expr: Any) -> str:
        return self._fold("tl.maximum" if self._on_device else "max", expr.args)

    def _print_Abs(self, expr: Any) -> str:
        return f"{'tl.abs' if self._on_device else 'abs'}({self._print(expr.args[0])})"

    def _print_BitwiseFn_bitwise_and(self, expr: Any) -> str:
        return f"({self._infix('&', expr)})"

    def _print_BitwiseFn_bitwise_or(self, expr: Any) -> str:
        return f"({self._infix('|', expr)})"

    def _print_BitwiseFn_bitwise_xor(self, expr: Any) -> str:
        return f"({self._infix('^', expr)})"

    def _print_Relational(self, expr: Any) -> str:
        symbol = {"Eq": "==", "Ne": "!="}.get(type(expr).__name__, expr.rel_op)
        left, right = (self._within(a, _SUM) for a in expr.args)
        return f"{left} {symbol} {right}"

    def _print_And(self, expr: Any) -> str:
        return " and ".join(self._within(a, _COMPARE) for a in expr.args)

    def _print_Or(self, expr: Any) -> str:
        return " or ".join(self._within(a, _COMPARE) for a in expr.args)

    def _print_Not(self, expr: Any) -> str:
        return f"not {self._within(expr.args[0], _COMPARE)}"

    def _infix(self, symbol: str, expr: Any) -> str:
        left, right = (self._within(a, _UNARY) for a in expr.args)
        return f"{left} {symbol} {right}"

    def _fold(self, function: str, args: Any) -> str:
        texts = [self._print(a) for a in args]
        if not self._on_device:
            return f"{function}({', '.join(texts)})"
        text = texts[0]
        for other in texts[1:]:
            text = f"{function}({text}, {other})"
        return text


class SignedPrinter(ScalarPrinter):
    """Prints for Triton what may be negative: a division by a positive number rounds down."""

    def _print_FloorDiv(self, expr: Any) -> str:
        number, divisor = (self._within(a, _UNARY) for a in expr.args)
        return f"(({number} - {self._print_Mod(expr)}) // {divisor})"

    def _print_Mod(self, expr: Any) -> str:
        number, divisor = (self._within(a, _UNARY) for a in expr.args)
        return f"(({number} % {divisor} + {divisor}) % {divisor})"

    _print_PythonMod = _print_Mod


def _numbers_last(expr: Any) -> tuple[bool, str]:
    return bool(expr.is_number), str(expr)
