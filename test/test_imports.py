"""Imports between the rooms of helion go one way; see `ROOMS`."""

from __future__ import annotations

import ast
from pathlib import Path

HELION = Path(__file__).parent.parent / "helion"
# Each may import itself, those before it, and `_compat`, which imports nothing of helion.
ROOMS = ("exc", "ir", "language", "frontend", "codegen", "runtime", "autotuner")
# These stand above the rooms: they import what they like, and no room imports them.
ABOVE = ("__init__", "_testing", "random")


def imported_modules(source: str, package: str) -> list[tuple[int, str]]:
    """Every module or name that `source` imports, absolute, with the line: anywhere in the file."""
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) + 1 - node.level]
            base = ".".join([*(parents if node.level else []), *filter(None, [node.module])])
            found += [(node.lineno, f"{base}.{alias.name}") for alias in node.names]
    return sorted(found)


def helion_imports() -> list[tuple[str, str, str]]:
    """All imports of helion within helion: (place, room that imports, room that is imported)."""
    edges: list[tuple[str, str, str]] = []
    for path in sorted(HELION.rglob("*.py")):
        inside = path.relative_to(HELION)
        package = ".".join(["helion", *inside.parts[:-1]])
        for line, name in imported_modules(path.read_text(encoding="utf-8"), package):
            if name.split(".")[0] == "helion":
                room = inside.parts[0].removesuffix(".py")
                target = [*name.split("."), "__init__"][1]
                edges.append((f"helion/{inside.as_posix()}:{line}", room, target))
    return edges


def test_imports_go_one_way():
    def allowed(room: str, target: str) -> bool:
        if room in ABOVE:
            return True
        if room not in ROOMS:
            return False
        return target in ROOMS[: ROOMS.index(room) + 1] or target == "_compat"

    edges = helion_imports()
    assert edges
    wrong = [
        f"{place}: {room} imports {target}"
        for place, room, target in edges
        if not allowed(room, target)
    ]
    assert not wrong, "\n".join(wrong)


def test_every_module_is_in_a_room():
    rooms = {
        path.name.removesuffix(".py")
        for path in HELION.iterdir()
        if path.suffix == ".py" or path.is_dir()
    }
    assert rooms - {"__pycache__"} <= {*ROOMS, *ABOVE, "_compat"}


def test_all_kinds_of_import_are_seen():
    source = """
import helion.exc
from helion.ir import graph
from . import tiles
if TYPE_CHECKING:
    from ..runtime import Kernel
def f():
    from .. import autotuner as tuner
"""
    assert [name for _, name in imported_modules(source, "helion.ir")] == [
        "helion.exc",
        "helion.ir.graph",
        "helion.ir.tiles",
        "helion.runtime.Kernel",
        "helion.autotuner",
    ]
