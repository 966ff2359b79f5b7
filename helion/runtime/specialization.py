"""The specialization key: what of the arguments a compiled kernel depends on."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.language.constants import constexpr

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_INT32_MAX = 2**31 - 1
_VALUES = (str, torch.dtype, torch.device, type(None), torch.Size)


def static_tensor(value: torch.Tensor) -> Hashable:
    """Everything about the layout."""
    return (value.dtype, value.shape, value.stride(), value.device.type)


def dynamic_tensor(value: torch.Tensor) -> Hashable:
    """What changes code: dtype, rank, contiguity, and whether 32-bit indices reach all of it."""
    return (
        value.dtype,
        value.dim(),
        value.is_contiguous(),
        spanned(value) > _INT32_MAX,
        value.device.type,
    )


def spanned(value: torch.Tensor) -> int:
    """One past the largest offset of an element, in elements."""
    if value.numel() == 0:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))


def argument_key(value: Any, tensor_key: Callable[[torch.Tensor], Hashable], name: str) -> Hashable:
    """The key of one argument.

    Raises:
        UnsupportedArgument: kernels do not take values of this type.
    """
    if isinstance(value, torch.Tensor):
        return tensor_key(value)
    kind = type(value)
    if kind in (int, float, bool):
        return kind
    if isinstance(value, constexpr):
        return ("constexpr", kind, value.value)
    if isinstance(value, _VALUES):
        return (kind, value)
    if isinstance(value, (tuple, list)):
        return (kind, *(argument_key(v, tensor_key, name) for v in value))
    if isinstance(value, dict):
        return (kind, *((k, argument_key(v, tensor_key, name)) for k, v in value.items()))
    if isinstance(value, (FunctionType, MethodType)):
        return _function_key(value, tensor_key, name)
    if isinstance(value, (BuiltinFunctionType, type)) or (
        callable(value) and type(value).__module__.startswith("torch")
    ):
        return value
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return (kind, *(argument_key(getattr(value, f.name), tensor_key, name) for f in fields))
    raise exc.UnsupportedArgument(name=name, got=kind.__name__)


def _function_key(
    value: FunctionType | MethodType, tensor_key: Callable[[torch.Tensor], Hashable], name: str
) -> Hashable:
    function = value.__func__ if isinstance(value, MethodType) else value
    assert isinstance(function, FunctionType)
    cells = [c.cell_contents for c in function.__closure__ or ()]
    return (function.__code__, *(argument_key(c, tensor_key, name) for c in cells))


def find_device(args: Sequence[Any]) -> torch.device | None:
    """The device of the first tensor or `torch.device`, searched through containers."""
    for value in args:
        if isinstance(value, torch.Tensor):
            return value.device
        if isinstance(value, torch.device):
            return value
        found = find_device(_parts(value))
        if found is not None:
            return found
    return None


def tensors_in(value: Any) -> list[torch.Tensor]:
    """Every tensor in an argument."""
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for part in _parts(value) for t in tensors_in(part)]


def _parts(value: Any) -> Sequence[Any]:
    if isinstance(value, (tuple, list)):
        return value
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, FunctionType) and value.__closure__:
        return [c.cell_contents for c in value.__closure__]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, f.name) for f in dataclasses.fields(value)]
    return ()
