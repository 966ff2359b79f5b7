"""Kernels that an earlier process compiled: their first call needs no compiler.

The compiler takes a second or two to import, with sympy and torch's symbolic shapes. After a call
has compiled a kernel, the generated module is kept under a fingerprint of everything that it
depends on; a later process that makes the same call loads it. Where a dependency cannot be told (an
object with state, a module whose attributes may be anything) nothing is kept, and nothing recalled.

Source: the fingerprint is of the author's source text, of the functions and constants it reads, of
the specialization key, the settings, the environment, the device, and the versions.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import json
import logging
import os
import platform
import sys
import textwrap
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import torch

from helion import _compat
from helion.language._op import Op
from helion.runtime.choice import announce, needs_no_search
from helion.runtime.modules import cache_dir, load_module, write_once
from helion.runtime.specialization import find_device, tensors_in

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from helion.runtime.bound import BoundKernel
    from helion.runtime.kernel import Kernel

__all__ = ["RecalledKernel", "fingerprint", "keep", "recall"]

_LOG = logging.getLogger(__name__)
_HELION = Path(__file__).parent.parent
# Modules whose contents follow from the versions, and objects of which a name says everything.
_KNOWN_MODULES = {"builtins", "helion", "math", "operator", "torch", "triton", "typing"}
_LITERALS = (bool, int, float, str, type(None), torch.dtype, torch.device)
# What only says where to write, or what to print.
_HARMLESS = {"HELION_CACHE_DIR", "HELION_LOGS", "TRITON_CACHE_DIR"}


class RecalledKernel:
    """What a call needs of a bound kernel.

    Attributes:
        run: runs with the config that was chosen; takes the kernel's arguments, by position.
    """

    constants: Mapping[Any, int] = {}

    def __init__(self, run: Callable[..., Any]) -> None:
        self.run = run

    def for_args(self, args: Sequence[Any]) -> RecalledKernel:
        """This one: a kernel with sizes that `hl.specialize` compiled in is not kept."""
        del args
        return self


class _UnknownDependency(Exception):
    """The generated code depends on something that has no text."""


def fingerprint(kernel: Kernel, args: Sequence[Any]) -> str | None:
    """What the code that is generated for a call depends on; None if it cannot be told."""
    settings = kernel.settings
    if os.environ.get("HELION_SKIP_CACHE", "0") not in ("", "0"):
        return None
    if settings.print_output_code or settings.print_repro or not needs_no_search(kernel):
        return None
    try:
        parts = [
            *_versions(),
            *_describe_function(kernel.fn, set()),
            kernel.source.filename,
            str(kernel.source.line_offset),
            *_describe(kernel.specialization_key(args), set()),
            *_describe([dict(config) for config in kernel.configs], set()),
            *_settings_text(kernel),
            # The default config depends on the sizes, also where the code for a config does not.
            *(str((t.shape, t.stride())) for a in args for t in tensors_in(a)),
            *_device_text(args),
        ]
    except (_UnknownDependency, OSError) as error:
        _LOG.debug("%s is not kept across processes: %s", kernel.name, error)
        return None
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def recall(kernel: Kernel, key: str) -> RecalledKernel | None:
    """The kernel that an earlier process kept under a fingerprint."""
    try:
        entry = json.loads(_path(kernel, key).read_text())
        text, config = entry["text"], entry["config"]
        if entry["check"] != _check(text, config):
            raise ValueError("the check sum differs")
    except (OSError, ValueError, KeyError, TypeError) as error:
        if not isinstance(error, FileNotFoundError):
            _LOG.warning("what was kept of %s is ignored: %s", kernel.name, error)
        return None
    if _compat.is_interpreting():
        from helion.runtime import interpreter  # with Triton and NumPy

        interpreter.install()
    announce(kernel, config)
    module = load_module(kernel.name, text, kernel.fn.__globals__)
    _LOG.info("recalled %s with %s: %s", kernel.name, config, module.__file__)
    return RecalledKernel(getattr(module, kernel.name))


def keep(kernel: Kernel, key: str, bound: BoundKernel) -> None:
    """Keep the module that a bound kernel runs, for later processes."""
    if bound.constants or bound.warned or _loaded_from() != _FILES:
        return
    text, config = bound.to_triton_code(), repr(bound.chosen_config())
    entry = {"text": text, "config": config, "check": _check(text, config)}
    try:
        write_once(_path(kernel, key), json.dumps(entry))
    except OSError as error:
        _LOG.debug("%s cannot be kept: %s", kernel.name, error)


def _path(kernel: Kernel, key: str) -> Path:
    return cache_dir() / "kernels" / f"{kernel.name}_{key}.json"


def _check(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


# -- what code depends on ------------------------------------------------------------------------


def _loaded_from() -> tuple[tuple[str, int, int], ...]:
    """The files of this package: a change of one makes every kernel anew."""
    files = sorted(_HELION.rglob("*.py"))
    stats = [(str(f.relative_to(_HELION)), f.stat()) for f in files]
    return tuple((name, stat.st_mtime_ns, stat.st_size) for name, stat in stats)


# Read when helion is imported: what changes later is not what runs here.
_FILES = _loaded_from()


def _versions() -> Iterator[str]:
    import triton  # heavy; a kernel is about to run

    yield from (torch.__version__, triton.__version__, platform.python_version(), sys.platform)
    yield repr(_FILES)
    yield str(_compat.is_interpreting())
    names = sorted(n for n in os.environ if n.startswith(("HELION_", "TRITON_")))
    yield from (f"{n}={os.environ[n]}" for n in names if n not in _HARMLESS)


def _settings_text(kernel: Kernel) -> Iterator[str]:
    for name, value in sorted(kernel.settings.to_dict().items()):
        if name.startswith(("autotune", "print_")):
            continue
        yield f"{name}={[w.__name__ for w in value] if name == 'ignore_warnings' else value!r}"
    # Torch's own settings that the host part of a kernel meets while it is typed.
    yield f"{torch.get_default_dtype()} {torch.get_float32_matmul_precision()}"


def _device_text(args: Sequence[Any]) -> Iterator[str]:
    device = find_device(args)
    if device is None:
        raise _UnknownDependency("no device")
    yield f"{device.type} {sorted(_compat.block_indexing())}"
    if device.type == "cuda":
        yield str(torch.cuda.get_device_properties(device))


def _describe_function(function: FunctionType, seen: set[int]) -> Iterator[str]:
    """The text of a function, and of everything that it reads."""
    if id(function) in seen:
        return
    seen.add(id(function))
    source = inspect.getsource(function)
    yield source
    # The file may have changed since it was loaded.
    yield _bytecode(function.__code__)
    for cell in function.__closure__ or ():
        yield from _describe(cell.cell_contents, seen)
    yield from _describe(function.__defaults__, seen)
    for name in sorted(_names(function.__code__) | _names_in(source)):
        if name in function.__globals__:
            yield name
            yield from _describe(function.__globals__[name], seen, owner=function)


def _bytecode(code: CodeType) -> str:
    constants = [
        _bytecode(c)
        if isinstance(c, CodeType)
        else sorted(map(repr, c))
        if isinstance(c, frozenset)
        else repr(c)
        for c in code.co_consts
    ]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return f"{code.co_firstlineno} {code.co_code.hex()} {names} {constants}"


def _names(code: CodeType) -> set[str]:
    inner = (_names(c) for c in code.co_consts if isinstance(c, CodeType))
    return set(code.co_names).union(*inner)


def _names_in(source: str) -> set[str]:
    """The names in annotations and decorators too."""
    try:
        tree = ast.parse(textwrap.dedent(source))
    except SyntaxError:  # lines around a lambda
        return set()
    (function,) = tree.body[:1]
    if isinstance(function, ast.FunctionDef):
        function.decorator_list = []  # what they read is in the configs and the settings
    return {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}


def _describe(value: Any, seen: set[int], owner: FunctionType | None = None) -> Iterator[str]:
    kind = type(value)
    if kind in _LITERALS:
        yield f"{kind.__name__} {value!r}"
    elif kind in (tuple, list, set, frozenset, torch.Size):
        yield f"{kind.__name__} {len(value)}"
        items = sorted(value, key=repr) if kind in (set, frozenset) else value
        for item in items:
            yield from _describe(item, seen)
    elif kind is dict:
        yield f"dict {len(value)}"
        for key, item in value.items():
            yield from _describe(key, seen)
            yield from _describe(item, seen)
    elif isinstance(value, ModuleType):
        if value.__name__.split(".")[0] not in _KNOWN_MODULES:
            raise _UnknownDependency(f"the module {value.__name__}")
        yield value.__name__
    elif _is_known(value):
        yield f"{value.__module__}.{getattr(value, '__qualname__', None) or value.__name__}"
    elif isinstance(value, FunctionType):
        yield from _describe_function(value, seen)
    elif isinstance(value, Op):
        yield repr(value)
    elif owner is not None and getattr(value, "fn", None) is owner:
        yield "the kernel itself"
    else:
        raise _UnknownDependency(f"a {kind.__name__}")


def _is_known(value: Any) -> bool:
    """Whether it is a function or class of a package whose version is known."""
    if not isinstance(value, (FunctionType, BuiltinFunctionType, type)):
        return False
    return (value.__module__ or "").split(".")[0] in _KNOWN_MODULES
