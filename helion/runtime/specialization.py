"""The specialization key: what of the arguments a compiled kernel depends on.

`argument_key` is the definition, for every kind of argument. A `Probe` is one expression for calls
whose arguments are tensors and plain values, so that a warm call does not walk over them.
"""

from __future__ import annotations

import dataclasses
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    WrapperDescriptorType,
)
from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.language.constants import constexpr

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

_INT32_MAX = 2**31 - 1
# Functions, methods and operators of C code, which are the same in every call.
_OF_PYTHON = (BuiltinFunctionType, MethodDescriptorType, WrapperDescriptorType, type)
_VALUES = (str, torch.dtype, torch.device, type(None), torch.Size)
_NUMBERS = (int, float, bool)
# A kernel that sees more layouts than this starts to remember them anew.
_MOST_REMEMBERED = 4096


# -- tensors -------------------------------------------------------------------------------------


def static_tensor(value: torch.Tensor) -> Hashable:
    """Everything about the layout."""
    return (value.dtype, value.shape, value.stride(), value.device.type)


def dynamic_tensor(value: torch.Tensor) -> Hashable:
    """What changes code: dtype, rank, contiguity, whether 32-bit indices reach all of it.

    Sizes of dimensions that `torch._dynamo.mark_static` names are compiled in.
    """
    marks = static_dims(value)
    return (
        value.dtype,
        value.dim(),
        value.is_contiguous(),
        is_wide(value),
        value.device.type,
        tuple((d, value.size(d), value.stride(d)) for d in sorted(marks)),
    )


def static_dims(value: torch.Tensor) -> frozenset[int]:
    """The dimensions that `torch._dynamo.mark_static` named."""
    return frozenset(getattr(value, "_dynamo_static_indices", None) or ())


def is_wide(value: torch.Tensor) -> bool:
    """Whether 32 bits are too few for the offset of an element, or for its linear index."""
    return max(value.numel(), spanned(value)) > _INT32_MAX


def spanned(value: torch.Tensor) -> int:
    """One past the largest offset of an element, in elements."""
    if value.numel() == 0:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(value.shape, value.stride(), strict=True))


# -- one argument --------------------------------------------------------------------------------


def constant_key(value: Any) -> Hashable:
    """The key of a value that is compiled in; 1, 1.0 and True differ, and so do 0.0 and -0.0."""
    kind = type(value)
    if isinstance(value, (tuple, list)):
        return (kind, *(constant_key(v) for v in value))
    if isinstance(value, dict):
        return (kind, *((k, constant_key(v)) for k, v in value.items()))
    return (kind, repr(value) if kind is float else value)


def argument_key(value: Any, tensor_key: Callable[[torch.Tensor], Hashable], name: str) -> Hashable:
    """The key of one argument.

    Raises:
        UnsupportedArgument: kernels do not take values of this type.
    """
    if isinstance(value, torch.Tensor):
        return tensor_key(value)
    kind = type(value)
    if kind in _NUMBERS:
        return kind
    if isinstance(value, constexpr):
        return ("constexpr", constant_key(value.value))
    if isinstance(value, _VALUES):
        return (kind, value)
    if isinstance(value, (tuple, list)):
        return (kind, *(argument_key(v, tensor_key, name) for v in value))
    if isinstance(value, dict):
        return (kind, *((k, argument_key(v, tensor_key, name)) for k, v in value.items()))
    if isinstance(value, (FunctionType, MethodType)):
        return _function_key(value, tensor_key, name)
    if isinstance(value, _OF_PYTHON) or (
        callable(value) and kind.__module__.split(".")[0] in ("torch", "triton")
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
    outside = [c.cell_contents for c in function.__closure__ or ()]
    outside += function.__defaults__ or ()
    # Numbers that a function closes over are compiled in.
    keys = (
        constant_key(v) if type(v) in _NUMBERS else argument_key(v, tensor_key, name)
        for v in outside
    )
    return (function.__code__, *keys)


# -- all arguments of a warm call ----------------------------------------------------------------


class Probe:
    """Remembers results for arguments of known types, by one short expression of them.

    The key is finer than `argument_key`: calls with equal keys here have equal keys there, and the
    index of the device counts too.
    """

    def __init__(self, names: Sequence[str], parts: Sequence[str], values: dict[str, Any]) -> None:
        self._table: dict[Hashable, Any] = {}
        parameters, key = ", ".join(names), "".join(f"{part}, " for part in parts)
        self._key: Callable[..., Hashable] = eval(f"lambda {parameters}: ({key})", values)
        # One function call less than `get(key(...))`.
        found = {**values, "get": self._table.get}
        self.find: Callable[..., Any] = eval(f"lambda {parameters}: get(({key}))", found)

    def remember(self, args: Sequence[Any], result: Any) -> None:
        """Let `find` give this result for arguments like these."""
        if len(self._table) >= _MOST_REMEMBERED:
            self._table.clear()
        self._table[self._key(*args)] = result


def make_probe(
    kinds: Sequence[type], constexprs: Sequence[bool], static: bool, key: Callable[..., Any] | None
) -> Probe | None:
    """A probe for arguments of these types; None if some have no short expression.

    Args:
        kinds: the type of each argument.
        constexprs: which parameters are compiled in.
        static: whether shapes are.
        key: the author's own part of the key.
    """
    names = [f"a{i}" for i in range(len(kinds))]
    parts: list[str] = []
    for name, kind, constant in zip(names, kinds, constexprs, strict=True):
        if issubclass(kind, torch.Tensor) and not constant:
            parts.append((_STATIC_PROBE if static else _DYNAMIC_PROBE).format(name))
        elif kind is float and constant:
            parts.append(f"repr({name})")
        elif kind in _VALUES or (kind in _NUMBERS and constant):
            parts.append(name)
        elif kind not in _NUMBERS:
            return None
    if key is not None:
        parts.append(f"key({', '.join(names)})")
    return Probe(names, parts, {"key": key, "wide": is_wide, "dynamic": dynamic_tensor})


_STATIC_PROBE = "{0}.dtype, {0}.shape, {0}.stride(), {0}.device"
# Whether it is contiguous, and whether it is wide, are one part: 0 and 1, or False and True, would
# be equal keys.
_DYNAMIC_PROBE = (
    "{0}.dtype, {0}.dim(), {0}.device, "
    f"{{0}}.numel() > {_INT32_MAX} if {{0}}.is_contiguous() else 2 + wide({{0}}), "
    "None if getattr({0}, '_dynamo_static_indices', None) is None else dynamic({0})"
)


# -- tensors of a call ---------------------------------------------------------------------------


def device_key(device: torch.device) -> Hashable:
    """What of a device changes code: its type, and the compute capability of a GPU."""
    if device.type == "cuda":
        return (device.type, torch.cuda.get_device_capability(device))
    return device.type


def find_device(args: Sequence[Any]) -> torch.device | None:
    """The device of the first tensor or `torch.device`, searched through containers.

    A tensor of one number on the CPU goes with tensors elsewhere, as in torch.
    """
    found: torch.device | None = None
    for value in args:
        here = _device_of(value)
        if here is not None and not (isinstance(value, torch.Tensor) and _is_cpu_number(value)):
            return here
        found = found or here
    return found


def _device_of(value: Any) -> torch.device | None:
    if isinstance(value, torch.Tensor):
        return value.device
    return value if isinstance(value, torch.device) else find_device(_parts(value))


def _is_cpu_number(value: torch.Tensor) -> bool:
    return value.dim() == 0 and value.is_cpu


def stray_tensor(value: Any, device: torch.device) -> torch.Tensor | None:
    """A tensor in an argument that a kernel on `device` cannot take, if there is one."""
    strays = (t for t in tensors_in(value) if t.device != device and not _is_cpu_number(t))
    return next(strays, None)


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
