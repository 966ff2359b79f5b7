"""Generated modules on disk: people read them there, and so does Triton.

A file is named after its content, so that processes share it and none ever changes it. What runs is
the text at hand, not the file: a file that is damaged, deleted or cannot be written breaks nothing.
"""

from __future__ import annotations

import getpass
import hashlib
import linecache
import logging
import os
import sys
import tempfile
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import ModuleType

_LOG = logging.getLogger(__name__)


class SourceGlobals:
    """The globals of the author's module, as attributes: `_source_module` in generated code.

    A kernel may come from a module that cannot be imported by its name: a notebook, `exec`, or a
    file that was loaded twice.
    """

    def __init__(self, names: Mapping[str, Any]) -> None:
        self._names = names

    def __getattr__(self, name: str) -> Any:
        try:
            return self._names[name]
        except KeyError:
            raise AttributeError(f"the kernel's module has no `{name}`") from None


def cache_dir() -> Path:
    """Where generated modules and found configs are kept; `HELION_CACHE_DIR` names another place.

    The default is a `helion` folder inside the cache of torch's own compiler.
    """
    chosen = os.environ.get("HELION_CACHE_DIR")
    if chosen:
        return Path(chosen)
    inductor = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if not inductor:
        inductor = Path(tempfile.gettempdir()) / f"torchinductor_{_user()}"
    return Path(inductor) / "helion"


def content_key(text: str) -> str:
    """What a module's text is known by."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_module(name: str, text: str, source: Mapping[str, Any] | None = None) -> ModuleType:
    """Write a module's text to its file, and run it.

    Args:
        name: the kernel's name, which begins the name of the file.
        text: the module.
        source: globals of the author's module, for what the text reads of it.
    """
    path = cache_dir() / "modules" / f"{name}_{content_key(text)}.py"
    try:
        write_once(path, text)
    except OSError as error:
        _LOG.warning("cannot write %s, which holds generated code for reading: %s", path, error)
    # Triton and tracebacks read the source through this; no time stamp, so it is never read again.
    linecache.cache[str(path)] = (len(text), None, text.splitlines(keepends=True), str(path))
    spec = ModuleSpec(f"helion_generated.{path.stem}", None, origin=str(path))
    spec.has_location = True
    module = module_from_spec(spec)
    module.__file__ = str(path)
    module.__dict__["_source_module"] = SourceGlobals(source or {})
    sys.modules[spec.name] = module
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


def write_once(path: Path, text: str) -> None:
    """Make the file hold the text, unless it does; a reader never sees half of it."""
    try:
        if path.read_bytes() == text.encode():
            return
    except OSError:
        pass
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode())
    Path(temporary).replace(path)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container may run under a number that has no name
        return str(os.getuid())
