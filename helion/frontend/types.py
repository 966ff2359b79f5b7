"""Types as the author reads them: what `BoundKernel.debug_str()` prints beside each line."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch

from helion.ir.symbols import (
    SYMBOLIC,
    AxisNumber,
    BlockSymbol,
    DeviceNumber,
    HostNumber,
    HostSize,
    expr_of,
    is_number,
    kind_of,
)
from helion.ir.tiles import HostTensor, TileAxis

if TYPE_CHECKING:
    from helion.ir.symbols import Symbols

_SHORT = {
    torch.float64: "f64",
    torch.float32: "f32",
    torch.float16: "f16",
    torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8e4m3",
    torch.float8_e5m2: "f8e5m2",
    torch.int64: "i64",
    torch.int32: "i32",
    torch.int16: "i16",
    torch.int8: "i8",
    torch.uint8: "u8",
    torch.uint16: "u16",
    torch.uint32: "u32",
    torch.uint64: "u64",
    torch.bool: "bool",
}


def dtype_name(dtype: torch.dtype) -> str:
    """A dtype in a few letters: f32, bf16, i64, bool."""
    return _SHORT.get(dtype, str(dtype).removeprefix("torch."))


@dataclasses.dataclass(frozen=True)
class TypePrinter:
    """Prints types with the author's names for sizes and tiles."""

    symbols: Symbols

    def show(self, value: Any) -> str:
        """The type of a value."""
        if isinstance(value, HostTensor):
            return f"host {self.tensor(value.fake)}"
        if isinstance(value, torch.Tensor):
            return self.tensor(value)
        if isinstance(value, TileAxis):
            return f"tile of {self.number(value.begin, '')}..{self.number(value.end, '?')}"
        if isinstance(value, SYMBOLIC):
            return f"{kind_of(value).__name__} {self.number(value, '')}".strip()
        if is_number(value) or value is None or isinstance(value, (str, torch.dtype)):
            return f"constant {value!r}"
        if isinstance(value, (tuple, list)):
            return "(" + ", ".join(self.show(v) for v in value) + ")"
        if isinstance(value, Callable):
            return f"function {getattr(value, '__name__', value)}"
        return type(value).__name__

    def tensor(self, value: torch.Tensor) -> str:
        """Dtype and sizes: `f32[tile, 128]`."""
        sizes = ", ".join(self.number(s, "?") for s in value.shape)
        return f"{dtype_name(value.dtype)}[{sizes}]"

    def number(self, value: Any, unknown: str) -> str:
        """A number in the author's names."""
        if not is_number(value):
            return unknown
        text = str(expr_of(value))
        for symbol in sorted(expr_of(value).free_symbols, key=lambda s: -len(str(s))):
            origin = self.symbols.origins.get(symbol)  # pyright: ignore[reportArgumentType]
            text = text.replace(str(symbol), _origin_name(origin))
        return text


def _origin_name(origin: object) -> str:
    if isinstance(origin, HostNumber):
        return origin.text
    if isinstance(origin, HostSize):
        return f"{origin.text}.{origin.what}({origin.dim})"
    if isinstance(origin, BlockSymbol):
        return origin.block.name
    if isinstance(origin, AxisNumber):
        return f"{origin.axis.name}.{origin.what}" if origin.what != "index" else origin.axis.name
    assert isinstance(origin, DeviceNumber)
    return origin.name
