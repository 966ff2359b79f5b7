"""Memory: loads from and stores to host tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.ir.describe import type_name
from helion.ir.dtypes import TRITON_DTYPES
from helion.ir.symbols import is_number, known_int, same
from helion.ir.tiles import HostTensor
from helion.language import indexing
from helion.language._eager import EagerMode, as_items, load_eagerly, store_eagerly
from helion.language._op import TypeCtx, op

if TYPE_CHECKING:
    from collections.abc import Sequence

_EVICTION = (None, "evict_first", "evict_last")


@op
def load(
    tensor: torch.Tensor,
    index: Sequence[Any],
    extra_mask: torch.Tensor | None = None,
    eviction_policy: str | None = None,
) -> torch.Tensor:
    """Load a block of a host tensor; `x[i, j]` is `hl.load(x, [i, j])`.

    Args:
        tensor: a tensor of the host part.
        index: one item for each dimension: a tile, an int, a scalar, an integer tensor, a slice;
            `None` adds a dimension.
        extra_mask: bool tensor that broadcasts to the result; where it is False nothing is read.
        eviction_policy: None, "evict_first" or "evict_last".

    Returns:
        A tensor of the index's shape and the tensor's dtype; 0 where nothing was read.

    Raises:
        InvalidIndexingType: an item that is none of these.
        RankMismatch: more items than dimensions.
    """
    raise exc.NotInsideKernel(api="hl.load")


@op
def store(
    tensor: torch.Tensor,
    index: Sequence[Any],
    value: Any,
    extra_mask: torch.Tensor | None = None,
) -> None:
    """Store a block to a host tensor; `x[i, j] = v` is `hl.store(x, [i, j], v)`.

    Args:
        tensor: a tensor of the host part.
        index: as in `hl.load`.
        value: tensor or number; cast to the tensor's dtype and broadcast to the index's shape.
        extra_mask: bool tensor that broadcasts to that shape; where it is False nothing is written.

    Raises:
        ShapeMismatch: the value does not broadcast to the index's shape; both are named.
    """
    raise exc.NotInsideKernel(api="hl.store")


@load.type_rule
def _(
    ctx: TypeCtx, tensor: Any, index: Any, extra_mask: Any = None, eviction_policy: Any = None
) -> torch.Tensor:
    target = check_host_tensor(ctx, tensor, "hl.load")
    _check_eviction(ctx, eviction_policy)
    items = indexing.normalize(ctx, index, target.fake)
    value = ctx.fake(indexing.result_shape(items), target.fake.dtype)
    check_mask(ctx, extra_mask)
    return ctx.record(load, (target, items, extra_mask, eviction_policy), value)


@store.type_rule
def _(ctx: TypeCtx, tensor: Any, index: Any, value: Any, extra_mask: Any = None) -> None:
    target = check_host_tensor(ctx, tensor, "hl.store")
    items = indexing.normalize(ctx, index, target.fake)
    check_stored(ctx, value, indexing.result_shape(items), "value")
    check_mask(ctx, extra_mask)
    ctx.record(store, (target, items, value, extra_mask), None)


@load.reference
def _(mode: EagerMode, tensor: Any, index: Any, extra_mask: Any, eviction_policy: Any) -> Any:
    del mode, eviction_policy
    return load_eagerly(tensor, as_items(index), extra_mask)


@store.reference
def _(mode: EagerMode, tensor: Any, index: Any, value: Any, extra_mask: Any) -> None:
    del mode
    store_eagerly(tensor, as_items(index), value, extra_mask)


def check_mask(ctx: TypeCtx, mask: Any) -> None:
    """Whether an `extra_mask` says yes or no for each element."""
    if mask is None or isinstance(mask, bool):
        return
    if not ctx.is_device(mask) or mask.dtype is not torch.bool:
        detail = f"`extra_mask` must be a bool tensor, got `{type_name(mask)}`"
        raise exc.InvalidAPIUsage(ctx.span("extra_mask"), detail=detail)


def check_host_tensor(ctx: TypeCtx, tensor: Any, api: str) -> HostTensor:
    """The host tensor that memory is accessed through, or an error that says why it is none."""
    if isinstance(tensor, HostTensor):
        _check_reachable(ctx, tensor)
        return tensor
    if ctx.is_device(tensor):
        raise exc.InvalidAPIUsage(
            ctx.span(), detail=f"`{api}` needs a host tensor, not a device value"
        )
    raise exc.NonTensorSubscriptAssign(ctx.span(), got=type_name(tensor))


def _check_reachable(ctx: TypeCtx, tensor: HostTensor) -> None:
    """Whether kernels have the dtype of a tensor, and its device is the kernel's."""
    fake = tensor.fake
    if fake.dtype not in TRITON_DTYPES:
        raise exc.UnsupportedDtype(ctx.span(), dtype=fake.dtype, related=ctx.cause(tensor))
    if fake.device != ctx.device and not (fake.dim() == 0 and fake.is_cpu):
        error = exc.DeviceMismatch(
            ctx.span(), name=tensor.text, got=fake.device, expected=ctx.device
        )
        raise error.with_related(*ctx.cause(tensor))


def check_stored(ctx: TypeCtx, value: Any, shape: Sequence[Any], argument: str) -> None:
    """Whether a value can be stored: a number, or a tensor that broadcasts to the index's shape."""
    if is_number(value):
        return
    if not ctx.is_device(value):
        raise exc.RequiresTensorInAssignment(ctx.span(argument), got=type_name(value))
    sizes = list(value.shape)
    while len(sizes) > len(shape) and known_int(sizes[0]) == 1:
        del sizes[0]
    pairs = zip(reversed(sizes), reversed(list(shape)), strict=False)
    if len(sizes) > len(shape) or not all(known_int(a) == 1 or same(a, b) for a, b in pairs):
        raise exc.ShapeMismatch(ctx.span(argument), lhs=ctx.show(value.shape), rhs=ctx.show(shape))


def _check_eviction(ctx: TypeCtx, policy: Any) -> None:
    """Whether an eviction policy is one that Triton knows."""
    if policy not in _EVICTION:
        detail = f"`eviction_policy` is one of {_EVICTION}, not {policy!r}"
        raise exc.InvalidAPIUsage(ctx.span("eviction_policy"), detail=detail)
