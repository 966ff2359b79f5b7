"""Generated modules on disk: Triton reads a kernel's source from its file, and so do people."""

from __future__ import annotations

import getpass
import hashlib
import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType


def cache_dir() -> Path:
    """Where generated modules and found configs are kept; `HELION_CACHE_DIR` names another place.

    The default is a `helion` folder inside the cache of torch's own compiler.
    """
    chosen = os.environ.get("HELION_CACHE_DIR")
    if chosen:
        return Path(chosen)
    inductor = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if not inductor:
        inductor = Path(tempfile.gettempdir()) / f"torchinductor_{getpass.getuser()}"
    return Path(inductor) / "helion"


def load_module(name: str, text: str) -> ModuleType:
    """Write a module's text to its file, named after its content, and import it."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    path = cache_dir() / "modules" / f"{name}_{digest}.py"
    if not path.exists() or path.read_text() != text:
        _write_atomically(path, text)
    spec = importlib.util.spec_from_file_location(f"helion_generated.{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _write_atomically(path: Path, text: str) -> None:
    # Several processes may write the same file: each renames a whole one into place.
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".py")
    with os.fdopen(handle, "w") as file:
        file.write(text)
    Path(temporary).replace(path)
