"""Calls in the host part that run, and that the author should hear about."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves

from helion import exc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.exc import Span

# Parts of the names of functions that allocate, or look at what is there.
_EXEMPT = (
    *("like", "new", "broadcast", "promote", "view", "reshape", "expand", "permute", "strided"),
    *("transpose", "contiguous", "unsqueeze", "squeeze", "zero", "rand", "full", "fill"),
)
_OPERATORS = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.matmul: "@",
}


def warnings_of(
    function: Any, args: Sequence[Any], value: Any, device: torch.device, span: Span, text: str
) -> list[exc.BaseWarning]:
    """What to say of a host call that gave `value`.

    Args:
        function: what was called.
        args: its arguments, and the tensor whose method it is.
        value: its result, on fake tensors.
        device: the kernel's device.
        span: the call.
        text: what the author called.
    """
    made = [v for v in tree_leaves(value) if isinstance(v, torch.Tensor)]
    given = [v for v in tree_leaves(list(args)) if isinstance(v, torch.Tensor)]
    found: list[exc.BaseWarning] = []
    if made and given and _computes(function, given, made[0]):
        found.append(exc.TensorOperationInWrapper(span, api=_OPERATORS.get(function, text)))
    for tensor in made:
        # A tensor without dimensions is passed as a number.
        known = any(tensor.device == g.device for g in given)
        if tensor.device != device and tensor.dim() > 0 and not known:
            found.append(exc.WrongDevice(span, api=text, got=tensor.device, expected=device))
            break
    return found


def _computes(function: Any, given: Sequence[torch.Tensor], made: torch.Tensor) -> bool:
    """Whether a call does more than to allocate or to view."""
    name = getattr(function, "__name__", "")
    if any(part in name for part in _EXEMPT):
        return False
    storages = [StorageWeakRef(g.untyped_storage()) for g in given]
    is_view = StorageWeakRef(made.untyped_storage()) in storages
    return not is_view or (name.endswith("_") and not name.startswith("_"))
