"""Host values that only running the host code can tell."""

from __future__ import annotations

from typing import Any

from torch._subclasses.fake_tensor import FakeTensor

from helion.ir.symbols import is_number, kind_of


class Unknown:
    """A value that the host part computes when it runs; an error if the device reads it."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class UnknownNumber(Unknown):
    """A number whose kind is known: the device can read it once a name holds it."""

    def __init__(self, kind: type, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def either(a: Any, b: Any) -> Any:
    """What is known of a value that is one of two."""
    if a is b:
        return a
    if is_number(a) and is_number(b):
        kinds = {kind_of(a), kind_of(b)}
        return UnknownNumber(float if float in kinds else kinds.pop(), "one of two numbers")
    if isinstance(a, FakeTensor) and isinstance(b, FakeTensor) and _alike(a, b):
        return a
    if type(a) is type(b) and a == b:
        return a
    return Unknown("one of two values")


def _alike(a: FakeTensor, b: FakeTensor) -> bool:
    same_layout = list(a.shape) == list(b.shape) and list(a.stride()) == list(b.stride())
    return same_layout and a.dtype == b.dtype and a.device == b.device
