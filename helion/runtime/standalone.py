"""Generated modules that do not import helion: what they need of it is written into them."""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import torch

from helion.runtime import launcher

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["without_helion"]


def launch(kernel: Any, grid: tuple[int, ...], *args: Any, **options: Any) -> None:
    """Launch a Triton kernel; an empty grid launches nothing."""
    if 0 not in grid:
        kernel[grid](*args, **options)


def seed64(value: int) -> int:
    """A seed as the signed 64-bit number that a kernel takes."""
    if not -(2**63) <= value < 2**64:
        raise ValueError(f"the seed {value} does not fit in 64 bits")
    return value if value < 2**63 else value - 2**64


def threshold(p: float, bits: int) -> int:
    """What an unsigned number of some bits must be below, to be so with probability p."""
    if not 0 <= p <= 1:
        raise ValueError(f"the probability {p} is not in [0, 1]")
    return round(p * 2**bits)


def checked_range(low: int, high: int, bits: int, signed: bool) -> int:
    """The length of a range that integers of some bits hold."""
    first = -(2 ** (bits - 1)) if signed else 0
    if not first <= low < high <= first + 2**bits or high - low > 2**32:
        raise ValueError(f"integers of {bits} bits from {low} to {high}")
    return high - low


def draw_seed(call: int) -> int:
    """A seed from torch's default generator."""
    if torch.cuda.is_available() and torch.cuda.is_current_stream_capturing():
        raise RuntimeError(f"random call {call} would repeat its seed in a CUDA graph")
    return int(torch.randint(-(2**63), 2**63 - 1, ()))


# What is written in place of functions that import more of helion than a module should hold.
_PLAIN: dict[Any, FunctionType] = {
    launcher.default_launcher: launch,
    launcher.seed64: seed64,
    launcher.threshold: threshold,
    launcher.checked_range: checked_range,
    launcher.draw_seed: draw_seed,
}


def without_helion(text: str) -> str:
    """A generated module with the same behaviour that imports nothing of helion.

    before:  from helion.runtime.launcher import wrap64 as _wrap64
    after:   def wrap64(value): ...
             _helion_wrap64 = wrap64
    """
    tree = ast.parse(text)
    imports = [n for n in tree.body if isinstance(n, (ast.Import, ast.ImportFrom)) and _is_ours(n)]
    objects = {alias: value for node in imports for alias, value in _imported(node)}
    embedded = _Embedded()
    edits: list[tuple[ast.expr, str]] = []
    for node, path in _uses(tree, objects):
        value = objects[path[0]]
        for attribute in path[1:]:
            value = getattr(value, attribute)
        if isinstance(value, ModuleType):
            raise NotImplementedError(f"the module {value.__name__} is used as a value")
        edits.append((node, embedded.name_of(value)))
    lines = text.splitlines()
    for node, name in sorted(edits, key=lambda e: (e[0].lineno, e[0].col_offset), reverse=True):
        line = lines[node.lineno - 1]
        assert node.end_col_offset is not None
        lines[node.lineno - 1] = line[: node.col_offset] + name + line[node.end_col_offset :]
    gone = {node.lineno - 1 for node in imports}
    # The functions stand where the module's own code begins.
    first = next(n for n in tree.body if isinstance(n, ast.FunctionDef))
    begin = min(d.lineno for d in [first, *first.decorator_list]) - 1
    head = [line for i, line in enumerate(lines[:begin]) if i not in gone]
    source = "\n".join(line for line in embedded.lines() if line not in head)
    return "\n".join(["\n".join(head).rstrip(), source, *lines[begin:]]) + "\n"


def _is_ours(node: ast.Import | ast.ImportFrom) -> bool:
    names = (
        [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
    )
    return any(name.split(".")[0] == "helion" for name in names)


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Any]]:
    """The names that an import binds, with their values."""
    for alias in node.names:
        if isinstance(node, ast.Import):
            full = alias.name if alias.asname else alias.name.split(".")[0]
            yield alias.asname or full, importlib.import_module(full)
        else:
            module = importlib.import_module(node.module or "")
            if not hasattr(module, alias.name):  # a submodule that nothing has imported yet
                importlib.import_module(f"{node.module}.{alias.name}")
            yield alias.asname or alias.name, getattr(module, alias.name)


def _uses(tree: ast.Module, objects: dict[str, Any]) -> Iterator[tuple[ast.expr, list[str]]]:
    """Every read of an imported name, with the attributes that are read of it: `a.b.c`."""
    inner: set[ast.AST] = set()
    for node in ast.walk(tree):  # annotations are never evaluated
        if isinstance(node, (ast.arg, ast.AnnAssign)) and node.annotation is not None:
            inner.update(ast.walk(node.annotation))
        elif isinstance(node, ast.FunctionDef) and node.returns is not None:
            inner.update(ast.walk(node.returns))
    for node in ast.walk(tree):
        if node in inner or not isinstance(node, (ast.Attribute, ast.Name)):
            continue
        path: list[str] = []
        at: ast.expr = node
        while isinstance(at, ast.Attribute):
            path.insert(0, at.attr)
            at = at.value
            inner.add(at)
        if isinstance(at, ast.Name) and at.id in objects and isinstance(at.ctx, ast.Load):
            yield node, [at.id, *path]


class _Embedded:
    """Functions to write into a module, each after those that it calls."""

    def __init__(self) -> None:
        self._sources: dict[str, str] = {}
        self._imports: set[str] = set()

    def name_of(self, value: Any) -> str:
        """The name under which the module has a function of ours.

        Not the function's own: a variable of the author may be called `prod`.
        """
        function = _function_of(value)
        if function is None:
            raise NotImplementedError(f"{value!r} cannot be written into a module")
        function = _PLAIN.get(function, function)
        name = function.__name__
        if name not in self._sources:
            source = textwrap.dedent(inspect.getsource(function))
            self._sources[name] = ""  # so that a recursive function ends
            self._add_what_it_reads(source, function)
            del self._sources[name]  # callees first
            self._sources[name] = source
        return f"_helion_{name}"

    def _add_what_it_reads(self, source: str, function: FunctionType) -> None:
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            value = function.__globals__.get(node.id)
            inner = _function_of(value)
            if isinstance(value, ModuleType):
                own = value.__name__ == node.id
                self._imports.add(f"import {value.__name__}" + ("" if own else f" as {node.id}"))
            elif inner is not None and inner.__module__.startswith("helion"):
                self.name_of(value)
            elif value is Any:
                self._imports.add("from typing import Any")

    def lines(self) -> Iterator[str]:
        """The modules that the functions read, and the functions."""
        yield from sorted(self._imports)
        for name, source in self._sources.items():
            yield f"\n\n{source.rstrip()}\n\n\n_helion_{name} = {name}"
        yield "\n"


def _function_of(value: Any) -> FunctionType | None:
    """A function itself, or the one that Triton compiles or interprets."""
    function = value if isinstance(value, FunctionType) else getattr(value, "fn", None)
    return function if isinstance(function, FunctionType) else None
