"""What happens around every call of a kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion.language.constants import constexpr

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

# What `torch.no_grad()` does, at a tenth of its cost.
_set_grad_enabled = torch._C._set_grad_enabled  # pyright: ignore[reportPrivateUsage]


def unwrapped(args: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments without the `hl.constexpr` that some were given in."""
    return tuple(a.value if isinstance(a, constexpr) else a for a in args)


def without_history(run: Callable[..., Any], args: Sequence[Any]) -> Any:
    """Call a function as under `torch.no_grad()`."""
    if not torch.is_grad_enabled():
        return run(*args)
    _set_grad_enabled(False)
    try:
        return run(*args)
    finally:
        _set_grad_enabled(True)
