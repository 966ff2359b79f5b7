"""Views of device values: `subscript`, `split`, `join`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.ir.describe import type_name
from helion.ir.symbols import known_int
from helion.language import indexing
from helion.language._op import TypeCtx, op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.language._eager import EagerMode


@op
def subscript(tensor: torch.Tensor, index: Sequence[Any]) -> torch.Tensor:
    """Add dimensions to a device value; `v[:, None]` is `hl.subscript(v, [slice(None), None])`.

    Args:
        tensor: a device value.
        index: `slice(None)` for each dimension, which may be left out at the end, and `None` for
            each new one.

    Raises:
        DeviceValueIndexing: an item that is neither.
    """
    raise exc.NotInsideKernel(api="hl.subscript")


@subscript.type_rule
def _(ctx: TypeCtx, tensor: Any, index: Any) -> torch.Tensor:
    value = _check_device(ctx, subscript, tensor, "tensor")
    indexing.check_list(ctx, index)
    for position, item in enumerate(index):
        if not (item is None or item is Ellipsis or _is_whole(item)):
            raise exc.DeviceValueIndexing(ctx.item_span(position), got=type_name(item))
    for dim, item in enumerate(indexing.expand_ellipsis(list(index), value.dim(), ctx.span())):
        if item is None:
            value = ctx.call_torch(torch.unsqueeze, value, dim)
    return value


def _is_whole(item: Any) -> bool:
    return isinstance(item, slice) and (item.start, item.stop, item.step) == (None, None, None)


@subscript.reference
def _(mode: EagerMode, tensor: torch.Tensor, index: Any) -> torch.Tensor:
    del mode
    return tensor[tuple(index)]


@op
def split(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Take the last dimension, of size 2, apart: `(tensor[..., 0], tensor[..., 1])`.

    Args:
        tensor: a device value whose last dimension is 2.

    Raises:
        InvalidAPIUsage: the last dimension is not 2.
    """
    raise exc.NotInsideKernel(api="hl.split")


@split.type_rule
def _(ctx: TypeCtx, tensor: Any) -> tuple[torch.Tensor, torch.Tensor]:
    value = _check_device(ctx, split, tensor, "tensor")
    if value.dim() == 0 or known_int(value.shape[-1]) != 2:
        detail = f"the last dimension must be 2, and the shape is {ctx.show(value.shape)}"
        raise split.misuse(ctx.span("tensor"), detail)
    halves = tuple(ctx.fake(value.shape[:-1], value.dtype) for _ in range(2))
    return ctx.record(split, (value,), halves)


@split.reference
def _(mode: EagerMode, tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    del mode
    return tensor[..., 0], tensor[..., 1]


@op
def join(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Put two device values side by side in a new last dimension of size 2.

    Args:
        a: what becomes `result[..., 0]`.
        b: what becomes `result[..., 1]`; both broadcast together, and have one dtype.

    Raises:
        JoinDtypeMismatch: the dtypes differ.
        ShapeMismatch: the shapes do not broadcast.
    """
    raise exc.NotInsideKernel(api="hl.join")


@join.type_rule
def _(ctx: TypeCtx, a: Any, b: Any) -> torch.Tensor:
    a, b = _check_device(ctx, join, a, "a"), _check_device(ctx, join, b, "b")
    if a.dtype != b.dtype:
        raise exc.JoinDtypeMismatch(ctx.span(), lhs=a.dtype, rhs=b.dtype)
    a, b = ctx.call_torch(torch.broadcast_tensors, a, b)
    return ctx.record(join, (a, b), ctx.fake([*a.shape, 2], a.dtype))


@join.reference
def _(mode: EagerMode, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    del mode
    return torch.stack(torch.broadcast_tensors(a, b), -1)


def _check_device(ctx: TypeCtx, of: Any, value: Any, argument: str) -> torch.Tensor:
    if not ctx.is_device(value):
        detail = f"`{argument}` must be a device value, not `{type_name(value)}`"
        raise of.misuse(ctx.span(argument), detail)
    return value
