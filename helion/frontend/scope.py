"""Names: what each is bound to, and whether the host or the device bound it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from torch._subclasses.fake_tensor import FakeTensor

from helion import exc
from helion.frontend.layouts import Layouts
from helion.frontend.unknown import Unknown, UnknownNumber
from helion.ir.symbols import SYMBOLIC, BlockSymbol, HostNumber, Symbols, expr_of, kind_of
from helion.ir.tiles import HostTensor

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclasses.dataclass
class Scope:
    """The variables of one function while it is interpreted.

    Attributes:
        host: names that the host part bound, with their values on fake tensors.
        device: names that device code bound.
        module: the globals of the function.
    """

    host: dict[str, Any]
    device: dict[str, Any]
    module: Mapping[str, Any]

    def copy(self) -> Scope:
        """A scope whose device names can be rebound without touching this one."""
        return Scope(self.host, dict(self.device), self.module)


class HostImports:
    """Host values as device code sees them.

    A tensor becomes a `HostTensor`; a number keeps its expression and is remembered with the host
    text that holds it, so that the launch can pass it under the author's name.
    """

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.layouts = Layouts(symbols)
        self.tensors: dict[str, HostTensor] = {}
        self.numbers: dict[Any, str] = {}
        self.unknown: dict[str, Any] = {}
        self.functions: dict[Any, str] = {}

    def bring(self, value: Any, text: str) -> Any:
        """`value`, which the host expression `text` holds, for use on the device."""
        if isinstance(value, HostTensor):  # a free variable of a function: brought already
            return value
        if isinstance(value, FakeTensor):
            value = self.layouts.at_launch(value, text)
            known = self.tensors.get(text)
            if known is None or known.fake is not value:
                known = self.tensors[text] = HostTensor(text, value)
            return known
        if isinstance(value, SYMBOLIC) and not self.symbols.has_origins(value):
            value = UnknownNumber(kind_of(value), text)
        if isinstance(value, UnknownNumber):
            if text not in self.unknown:
                origin = HostNumber(text, value.kind)
                self.unknown[text] = self.symbols.number(value.kind, origin)
            return self.bring(self.unknown[text], text)
        if isinstance(value, Unknown):
            detail = f"it is known only when the host part runs: `{value.reason}`"
            raise exc.CantReadOnDevice(what=f"`{text}`", detail=detail)
        if isinstance(value, SYMBOLIC):
            # Block sizes are constants of the kernel, not parameters.
            if not all(isinstance(o, BlockSymbol) for o in self.symbols.origins_in(value)):
                self.numbers.setdefault((expr_of(value), kind_of(value)), text)
            return value
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields: tuple[str, ...] = value._fields  # pyright: ignore[reportAttributeAccessIssue]
            return type(value)(
                *(self.bring(v, f"{text}.{f}") for v, f in zip(value, fields, strict=True))
            )
        if isinstance(value, (tuple, list)):
            return type(value)(self.bring(v, f"{text}[{i}]") for i, v in enumerate(value))
        if isinstance(value, dict):
            return {k: self.bring(v, f"{text}[{k!r}]") for k, v in value.items()}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            changes = {
                f.name: self.bring(getattr(value, f.name), f"{text}.{f.name}")
                for f in dataclasses.fields(value)
            }
            return dataclasses.replace(value, **changes)
        if callable(value) and hasattr(value, "__closure__"):
            self.functions.setdefault(value, text)
        return value
