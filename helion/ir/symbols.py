"""Symbols: the unknown numbers of one kernel, and where each comes from.

The language needs this file, and `import helion` must be quick: sympy, and torch's symbolic shapes
with torch's own compiler, take a second or two to import. Functions that need them import them.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

if TYPE_CHECKING:
    import sympy

    from helion.ir.tiles import BlockSize, TileAxis

Scalar = int | float | bool | torch.SymInt | torch.SymFloat | torch.SymBool
SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)


@dataclasses.dataclass(frozen=True)
class HostNumber:
    """A number that the host part computes; `text` is the host expression that holds it."""

    text: str
    kind: type


@dataclasses.dataclass(frozen=True)
class HostSize:
    """`tensor.size(dim)` or `tensor.stride(dim)` of a tensor argument."""

    text: str
    dim: int
    what: str

    @property
    def name(self) -> str:
        """The kernel parameter that carries it."""
        return f"{self.text}_{self.what}_{self.dim}"


@dataclasses.dataclass(frozen=True)
class BlockSymbol:
    """The number of elements in a tile; a power of two that the config chooses."""

    block: BlockSize


@dataclasses.dataclass(frozen=True)
class AxisNumber:
    """A scalar attribute of a tile or grid axis: begin, end, id, count or index."""

    axis: TileAxis
    what: str


@dataclasses.dataclass(frozen=True, eq=False)
class DeviceNumber:
    """A scalar that changes on the device: carried by a loop, or merged after a branch."""

    name: str


Origin = HostNumber | HostSize | BlockSymbol | AxisNumber | DeviceNumber


class Symbols:
    """The symbols of one kernel, with the fake tensor mode that carries them through torch."""

    def __init__(self) -> None:
        from helion.ir.shape_env import KernelShapeEnv

        self.shape_env = KernelShapeEnv()
        self.fake_mode = FakeTensorMode(shape_env=self.shape_env, allow_non_fake_inputs=False)
        self.origins: dict[sympy.Symbol, Origin] = {}
        self._values: dict[Origin, torch.SymInt] = {}
        self._hint = 100_003

    def size(self, origin: Origin) -> torch.SymInt:
        """A size that is neither known nor ever guarded on: unequal to every other size."""
        # Hints differ by a prime step, so that no two sizes, sums or multiples look equal.
        self._hint += 7_919
        name = f"helion_size_{len(self.origins)}"
        symbol, value = self.shape_env.new_size(name, self._hint)
        self.origins[symbol] = origin
        return value

    def number(self, kind: type, origin: Origin) -> torch.SymInt | torch.SymFloat | torch.SymBool:
        """A run-time int, float or bool. Code that branches on it raises instead of guessing."""
        if kind is bool:
            value: torch.SymInt | torch.SymFloat | torch.SymBool = (
                self.shape_env.create_unbacked_symbool()
            )
        elif kind is float:
            value = self.shape_env.create_unbacked_symfloat()
        else:
            value = self.shape_env.create_unbacked_symint()
        for symbol in expr_of(value).free_symbols:
            self.origins[symbol] = origin  # pyright: ignore[reportArgumentType]
        return value

    def of(self, origin: Origin) -> torch.SymInt:
        """The int of an origin: one symbol, however often it is asked for."""
        if origin not in self._values:
            value = self.number(int, origin)
            assert isinstance(value, torch.SymInt)
            self._values[origin] = value
        return self._values[origin]

    def origin(self, value: object) -> Origin | None:
        """Where a value comes from if it is one bare symbol, else None."""
        expr = expr_of(value)
        if kind_of(value) is bool and len(expr.free_symbols) == 1:
            # A bare SymBool is the relation `symbol == 1`.
            import sympy

            (symbol,) = expr.free_symbols
            if expr == sympy.Eq(symbol, 1):
                return self.origins.get(symbol)  # pyright: ignore[reportArgumentType]
        return self.origins.get(expr) if expr.is_Symbol else None  # pyright: ignore[reportArgumentType]

    def has_origins(self, value: object) -> bool:
        """Whether a number is made of our symbols alone; `x.item()` gives one of torch's own."""
        return all(s in self.origins for s in expr_of(value).free_symbols)

    def origins_in(self, value: object) -> list[Origin]:
        """The origins of every symbol in an expression, in a stable order."""
        symbols = sorted(expr_of(value).free_symbols, key=str)
        return [self.origins[s] for s in symbols if s in self.origins]  # pyright: ignore[reportArgumentType]


@dataclasses.dataclass(frozen=True)
class Number:
    """A symbolic scalar as an argument of a node; fx itself wants none of torch's."""

    expr: sympy.Expr
    kind: type

    def __repr__(self) -> str:
        return str(self.expr)


def freeze(value: object) -> object:
    """A symbolic scalar as a `Number`; anything else unchanged."""
    return Number(value.node.expr, kind_of(value)) if isinstance(value, SYMBOLIC) else value


def expr_of(value: object) -> sympy.Expr:
    """The sympy expression of a number, symbolic or not."""
    if isinstance(value, SYMBOLIC):
        return value.node.expr
    if isinstance(value, Number):
        return value.expr
    import sympy

    return sympy.sympify(value)  # pyright: ignore[reportReturnType]


def kind_of(value: object) -> type:
    """int, float or bool, for symbolic and plain numbers alike."""
    if isinstance(value, Number):
        return value.kind
    if isinstance(value, (bool, torch.SymBool)):
        return bool
    if isinstance(value, (int, torch.SymInt)):
        return int
    if isinstance(value, (float, torch.SymFloat)):
        return float
    raise TypeError(f"not a number: {type(value).__name__}")


def is_number(value: object) -> bool:
    """Whether a value is a plain or symbolic int, float or bool."""
    return isinstance(value, (int, float, bool, Number, *SYMBOLIC))


def known_int(value: object) -> int | None:
    """The value of an int that is known at compile time, else None."""
    if isinstance(value, int):
        return int(value)
    if isinstance(value, (torch.SymInt, Number)):
        expr = expr_of(value)
        return int(expr) if expr.is_Integer else None
    return None


def same(a: object, b: object) -> bool:
    """Whether two numbers are known to be equal, without guessing."""
    if a is b:
        return True
    left, right = expr_of(a), expr_of(b)
    # `sympy.simplify` would find more, and takes a tenth of a second.
    return bool(left == right or (left - right).expand() == 0)
