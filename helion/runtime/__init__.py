"""Compile, cache and launch kernels."""

from helion.runtime.config import Config
from helion.runtime.kernel import Kernel, kernel
from helion.runtime.launcher import default_launcher, get_num_sm, set_triton_allocator
from helion.runtime.settings import OutputCodeOptions, RefMode, Settings

__all__ = [
    "Config",
    "Kernel",
    "OutputCodeOptions",
    "RefMode",
    "Settings",
    "default_launcher",
    "get_num_sm",
    "kernel",
    "set_triton_allocator",
]
