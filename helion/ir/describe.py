"""What messages call a value's type: the author's words, not those of torch's internals."""

from __future__ import annotations

from types import ModuleType

import torch

from helion.ir.symbols import is_number, kind_of
from helion.ir.tiles import HostTensor, SliceItem, TileAxis, TileItem


def type_name(value: object) -> str:
    """The type of a value in a few words: `float`, `tile`, `float32 tensor`."""
    if isinstance(value, HostTensor):
        return type_name(value.fake)
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} tensor"
    if isinstance(value, TileAxis):
        return "tile"
    if isinstance(value, TileItem):
        return "tile + k"
    if isinstance(value, SliceItem):
        return "slice"
    for kind in (tuple, type, ModuleType):
        if isinstance(value, kind):
            return kind.__name__
    if value is None:
        return "None"
    if callable(value):
        return "function"
    return kind_of(value).__name__ if is_number(value) else type(value).__name__
