"""Scripts that run a kernel alone: what to send along with a report."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import torch

from helion.language.constants import constexpr

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from helion.runtime.config import Config
    from helion.runtime.kernel import Kernel

__all__ = ["argument_text", "caller_text", "script_text"]

_LITERALS = (bool, int, float, str, type(None))


def argument_text(value: Any, names: Mapping[str, Any]) -> str:
    """An expression that makes an argument like this one; the values of a tensor are random.

    It stands in a generated module, where `_source_module` is the author's.

    Args:
        value: the argument.
        names: globals of the author's module, to find functions and classes by name.
    """
    kind = type(value)
    if isinstance(value, torch.Tensor):
        return _tensor_text(value)
    if isinstance(value, constexpr):
        return argument_text(value.value, names)
    if isinstance(value, float):
        return f"float('{value!r}')" if value != value or value in (_INF, -_INF) else repr(value)
    if isinstance(value, torch.device):
        return f"torch.{value!r}"
    if isinstance(value, (*_LITERALS, torch.dtype)):
        return repr(value)
    if isinstance(value, dict):
        items = (f"{key!r}: {argument_text(item, names)}" for key, item in value.items())
        return f"{{{', '.join(items)}}}"
    if isinstance(value, list):
        return f"[{', '.join(argument_text(item, names) for item in value)}]"
    if isinstance(value, tuple) and kind in (tuple, torch.Size):
        return f"({''.join(argument_text(item, names) + ', ' for item in value)})"
    if isinstance(value, tuple):
        inner = ", ".join(argument_text(item, names) for item in value)
        return f"{_named_text(kind, names)}({inner})"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]
        inner = ", ".join(f"{name}={argument_text(item, names)}" for name, item in fields)
        return f"{_named_text(kind, names)}({inner})"
    return _named_text(value, names)


_INF = float("inf")


def _tensor_text(value: torch.Tensor) -> str:
    size, stride, device = tuple(value.shape), value.stride(), str(value.device)
    return f"_tensor({size}, {stride}, {value.dtype}, {device!r})"


def _named_text(value: Any, names: Mapping[str, Any]) -> str:
    """A function or class, by its name."""
    known = [name for name, item in names.items() if item is value]
    if known:
        return f"_source_module.{known[0]}"
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    if module == "torch" or getattr(torch, str(name), None) is value:
        return f"torch.{name}"
    return f"...  # {type(value).__name__}: cannot be made again here"


_MAKE_TENSOR = '''
def _tensor(size, stride, dtype, device):
    """Normal numbers; zeros where the dtype has none, since they may be indices."""
    result = torch.empty_strided(size, stride, dtype=dtype, device=device).zero_()
    if dtype.is_floating_point and dtype.itemsize > 1:
        result.normal_()
    return result
'''


def caller_text(name: str, arguments: Sequence[str]) -> str:
    """The end of a script: `call()`, which runs a function on arguments made anew."""
    lines = "".join(f"        {text},\n" for text in arguments)
    call = f"def call():\n    return {name}(\n{lines}    )\n"
    return f'\n{_MAKE_TENSOR}\n\n{call}\n\nif __name__ == "__main__":\n    print(call())\n'


def script_text(kernel: Kernel, decorator: str, arguments: Sequence[str]) -> str:
    """A script with the author's kernel, what it reads of its module, and a call."""
    source = textwrap.dedent(inspect.getsource(kernel.fn))
    body = source[re.search(r"^(async )?def ", source, re.MULTILINE).start() :]  # pyright: ignore[reportOptionalMemberAccess]
    imports = {"import helion", "import helion.language as hl", "import torch"}
    values: list[str] = []
    for name in _names_read(kernel):
        value = kernel.fn.__globals__[name]
        if isinstance(value, ModuleType):
            full = value.__name__
            imports.add(f"import {full}" if full == name else f"import {full} as {name}")
        elif isinstance(value, _LITERALS):
            values.append(f"{name} = {argument_text(value, {})}")
        elif isinstance(value, FunctionType) and value.__globals__ is kernel.fn.__globals__:
            values.append(textwrap.dedent(inspect.getsource(value)).rstrip())
        elif hasattr(value, "__module__") and hasattr(value, "__name__"):
            imports.add(f"from {value.__module__} import {value.__name__} as {name}")
    parts = ["\n".join(sorted(imports)), *values, f"{decorator}\n{body.rstrip()}"]
    own = [text.replace("_source_module.", "") for text in arguments]
    return "\n\n".join(parts) + "\n" + caller_text(kernel.name, own)


def _names_read(kernel: Kernel) -> list[str]:
    """Globals that the kernel or its annotations name."""
    text = inspect.getsource(kernel.fn)
    words = dict.fromkeys(re.findall(r"[A-Za-z_]\w*", text))
    mine = (kernel.name, "helion", "hl", "torch")
    return [w for w in words if w in kernel.fn.__globals__ and w not in mine]


def config_decorator(config: Config, settings: Any) -> str:
    """The decorator that fixes a config, as one line to paste."""
    parts = [f"config={config!r}", f"static_shapes={settings.static_shapes}"]
    if settings.index_dtype is not None:
        parts.append(f"index_dtype={settings.index_dtype}")
    return f"@helion.kernel({', '.join(parts)})"
