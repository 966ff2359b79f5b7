"""Symbols: the unknown numbers of one kernel, and where each comes from."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import sympy
import torch
from torch._dynamo.source import ConstantSource
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv

if TYPE_CHECKING:
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


class Symbols:
    """The symbols of one kernel, with the fake tensor mode that carries them through torch."""

    def __init__(self) -> None:
        self.shape_env = KernelShapeEnv()
        self.fake_mode = FakeTensorMode(shape_env=self.shape_env, allow_non_fake_inputs=False)
        self.origins: dict[sympy.Symbol, Origin] = {}
        self._values: dict[Origin, torch.SymInt] = {}
        self._hint = 100_003

    def size(self, origin: Origin) -> torch.SymInt:
        """A size that is neither known nor ever guarded on: unequal to every other size."""
        # Hints differ by a prime step, so that no two sizes, sums or multiples look equal.
        self._hint += 7_919
        source = ConstantSource(f"helion_size_{len(self.origins)}")
        symbol = self.shape_env.create_symbol(
            self._hint, source, dynamic_dim=DimDynamic.DYNAMIC, constraint_dim=None, positive=None
        )
        assert isinstance(symbol, sympy.Symbol)
        self.origins[symbol] = origin
        value = self.shape_env.create_symintnode(symbol, hint=self._hint)
        assert isinstance(value, torch.SymInt)
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
            assert isinstance(symbol, sympy.Symbol)
            self.origins[symbol] = origin
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
            (symbol,) = expr.free_symbols
            if expr == sympy.Eq(symbol, 1):
                return self.origins.get(symbol)  # pyright: ignore[reportArgumentType]
        return self.origins.get(expr) if isinstance(expr, sympy.Symbol) else None

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
    return value.expr if isinstance(value, Number) else sympy.sympify(value)  # pyright: ignore[reportReturnType]


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
    return bool(sympy.simplify(expr_of(a) - expr_of(b)) == 0) if a is not b else True
