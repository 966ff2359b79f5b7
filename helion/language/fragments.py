"""Fragments: the values that one choice of a config may have."""

from __future__ import annotations

import abc
import dataclasses
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence


class Fragment(abc.ABC):
    """A set of values that a search may try."""

    @abc.abstractmethod
    def default(self) -> Any:
        """The value of a config that does not name one."""

    @abc.abstractmethod
    def accepts(self, value: object) -> bool:
        """Whether a value belongs to the set."""

    @abc.abstractmethod
    def random(self, generator: random.Random) -> Any:
        """A value, each as likely as any other."""

    @abc.abstractmethod
    def neighbors(self, value: Any) -> list[Any]:
        """The values one step away."""


@dataclasses.dataclass(frozen=True)
class PowerOfTwoFragment(Fragment):
    """The powers of two from `low` to `high`; `low` unless another default is given."""

    low: int
    high: int
    default_value: int | None = None

    def __post_init__(self) -> None:
        values: list[Any] = [self.low, self.high, self.default()]
        for value in values:
            if isinstance(value, int) and (value < 1 or value & (value - 1)):
                raise ValueError(f"{value} is no power of two")
        _check_bounds(self.low, self.high, self.default())

    def default(self) -> int:
        """The default, or the smallest."""
        return self.low if self.default_value is None else self.default_value

    def accepts(self, value: object) -> bool:
        """A power of two between the bounds."""
        return _is_int(value) and self.low <= value <= self.high and value & (value - 1) == 0

    def random(self, generator: random.Random) -> int:
        """Each power is as likely as any other."""
        return 1 << generator.randint(self.low.bit_length() - 1, self.high.bit_length() - 1)

    def neighbors(self, value: int) -> list[int]:
        """Half and twice the value."""
        return [v for v in (value // 2, value * 2) if self.accepts(v)]


@dataclasses.dataclass(frozen=True)
class IntegerFragment(Fragment):
    """The integers from `low` to `high`."""

    low: int
    high: int
    default_value: int

    def __post_init__(self) -> None:
        _check_bounds(self.low, self.high, self.default_value)

    def default(self) -> int:
        """The given default."""
        return self.default_value

    def accepts(self, value: object) -> bool:
        """An integer between the bounds."""
        return _is_int(value) and self.low <= value <= self.high

    def random(self, generator: random.Random) -> int:
        """Each integer is as likely as any other."""
        return generator.randint(self.low, self.high)

    def neighbors(self, value: int) -> list[int]:
        """One less and one more."""
        return [v for v in (value - 1, value + 1) if self.accepts(v)]


@dataclasses.dataclass(frozen=True, init=False)
class EnumFragment(Fragment):
    """One of several values; the first is the default."""

    choices: tuple[Any, ...]

    def __init__(self, choices: Sequence[Any]) -> None:
        if not choices:
            raise ValueError("an EnumFragment needs at least one choice")
        object.__setattr__(self, "choices", tuple(choices))

    def default(self) -> Any:
        """The first choice."""
        return self.choices[0]

    def accepts(self, value: object) -> bool:
        """A choice of the same type: True is not 1."""
        return any(type(value) is type(c) and value == c for c in self.choices)

    def random(self, generator: random.Random) -> Any:
        """Each choice is as likely as any other."""
        return generator.choice(self.choices)

    def neighbors(self, value: Any) -> list[Any]:
        """Every other choice."""
        return [c for c in self.choices if c != value]


@dataclasses.dataclass(frozen=True)
class BooleanFragment(Fragment):
    """False, which is the default, or True."""

    def default(self) -> bool:
        """False."""
        return False

    def accepts(self, value: object) -> bool:
        """A bool."""
        return isinstance(value, bool)

    def random(self, generator: random.Random) -> bool:
        """Both are as likely."""
        return generator.random() < 0.5

    def neighbors(self, value: bool) -> list[bool]:
        """The other one."""
        return [not value]


@dataclasses.dataclass(frozen=True)
class ListOf(Fragment):
    """Lists of one length, whose entries all come from one fragment."""

    inner: Fragment
    length: int

    def default(self) -> list[Any]:
        """Each entry's default."""
        return [self.inner.default() for _ in range(self.length)]

    def accepts(self, value: object) -> bool:
        """A list of that length with entries that fit."""
        if not isinstance(value, (list, tuple)):
            return False
        return len(value) == self.length and all(map(self.inner.accepts, value))

    def random(self, generator: random.Random) -> list[Any]:
        """Entries that do not depend on each other."""
        return [self.inner.random(generator) for _ in range(self.length)]

    def neighbors(self, value: list[Any]) -> list[list[Any]]:
        """The lists that differ in one entry, by one step."""
        return [
            [*value[:i], v, *value[i + 1 :]]
            for i in range(self.length)
            for v in self.inner.neighbors(value[i])
        ]


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_bounds(low: Any, high: Any, default: Any) -> None:
    # A size of the kernel is no number yet: `hl.register_tunable` says so.
    if all(isinstance(v, int) for v in (low, high, default)) and not low <= default <= high:
        raise ValueError(f"not in order: low={low}, default={default}, high={high}")
