"""Triton's interpreter as this package sees it: nothing in there declares its types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import triton
import triton.runtime.interpreter
import triton.runtime.jit

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
Handle: TypeAlias = Any  # a block or a scalar while a kernel runs: its data, and its dtype
Function: TypeAlias = "Callable[..., Any]"

interpreter: Any = triton.runtime.interpreter
jit: Any = triton.runtime.jit


def lacks(feature: str) -> str:
    """The sentence for a kernel that uses `feature`, which cannot run here."""
    return f"the interpreter of Triton {triton.__version__} has no {feature}"
