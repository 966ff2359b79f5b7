"""Types as the author reads them: what `BoundKernel.show("types")` and the errors print."""

from __future__ import annotations

import dataclasses
from types import ModuleType
from typing import Any

import torch

from helion.ir.printer import ValuePrinter, dtype_name
from helion.ir.symbols import SYMBOLIC, AxisNumber, is_number, kind_of
from helion.ir.tiles import HostTensor, TileAxis, TileItem
from helion.language._op import Op


@dataclasses.dataclass(frozen=True)
class TypePrinter(ValuePrinter):
    """Prints types with the author's names for sizes and tiles."""

    def show(self, value: Any) -> str:
        """The type of a value."""
        if isinstance(value, HostTensor):
            return f"host {self.tensor(value.fake)}"
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, TileAxis):
            return self._tile(value)
        if isinstance(value, TileItem):
            return f"{value.axis.name} + {self.number(value.shift)}"
        if isinstance(value, SYMBOLIC):
            return self._symbolic(value)
        if isinstance(value, torch.dtype):
            return f"dtype {dtype_name(value)}"
        if is_number(value) or isinstance(value, str):
            return f"constant {value!r}"
        if value is None:
            return "None"
        return self._compound(value)

    def _tile(self, axis: TileAxis) -> str:
        size = self.number(axis.size)
        by = "" if size == axis.name else f" by {size}"
        return f"tile of {self.number(axis.begin)}..{self.number(axis.end)}{by}"

    def _symbolic(self, value: Any) -> str:
        origin = self.symbols.origin(value)
        if isinstance(origin, AxisNumber) and origin.what == "index":
            axis = origin.axis
            return f"int in {self.axis(axis, self.number(axis.begin), self.number(axis.end))}"
        return kind_of(value).__name__

    def _compound(self, value: Any) -> str:
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields: tuple[str, ...] = value._fields  # pyright: ignore[reportAttributeAccessIssue]
            return self._record(value, {f: getattr(value, f) for f in fields})
        if isinstance(value, (tuple, list)):
            text = ", ".join(self.show(v) for v in value)
            return f"[{text}]" if isinstance(value, list) else f"({text})"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{k!r}: {self.show(v)}' for k, v in value.items())}}}"
        if dataclasses.is_dataclass(value) and not isinstance(value, (type, Op)):
            return self._record(
                value, {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
            )
        if isinstance(value, ModuleType):
            return f"module {value.__name__}"
        if isinstance(value, Op):
            return f"function {value!r}"
        if callable(value):
            return f"function {getattr(value, '__name__', type(value).__name__)}"
        return type(value).__name__

    def _record(self, value: Any, fields: dict[str, Any]) -> str:
        text = ", ".join(f"{name}: {self.show(v)}" for name, v in fields.items())
        return f"{type(value).__name__}({text})"
