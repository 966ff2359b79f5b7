"""Helion: a tile language in Python, compiled to readable Triton kernels."""

from __future__ import annotations

from helion import _compat as _compat_module

_compat_module.use_interpreter_without_accelerator()

from helion import exc, language, random, runtime  # noqa: E402 - Triton after the line above
from helion.runtime import Config, Kernel, OutputCodeOptions, RefMode, Settings, kernel  # noqa: E402
from helion.runtime.logs import configure_logging  # noqa: E402

jit = kernel
configure_logging()


def cdiv(a: int, b: int) -> int:
    """The quotient rounded up. Takes the symbolic sizes of a kernel's host part too."""
    return (a + b - 1) // b


def next_power_of_2(n: int) -> int:
    """The smallest power of two that is at least `n`; 1 for `n <= 0`."""
    return 1 << max(n - 1, 0).bit_length()


__all__ = [
    "Config",
    "Kernel",
    "OutputCodeOptions",
    "RefMode",
    "Settings",
    "cdiv",
    "exc",
    "jit",
    "kernel",
    "language",
    "next_power_of_2",
    "random",
    "runtime",
]
