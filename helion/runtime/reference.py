"""The eager reference mode: a kernel runs as ordinary Python, operation by operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.language._eager import EagerMode
from helion.runtime.specialization import find_device

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


def run_reference(fn: Callable[..., Any], args: Sequence[Any], config: Mapping[str, Any]) -> Any:
    """Run a kernel's function on real tensors; nothing is compiled."""
    device = find_device(args)
    if device is None:
        raise exc.NoTensorArgs()
    with EagerMode(device, config), torch.no_grad():
        return fn(*args)
