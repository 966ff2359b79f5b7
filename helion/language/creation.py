"""New tensors: zeros, full, arange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.ir.describe import type_name
from helion.ir.symbols import BlockSymbol, is_number, kind_of, known_int
from helion.ir.tiles import TileAxis
from helion.language._eager import EagerMode, sizes_of
from helion.language._op import TypeCtx, op

if TYPE_CHECKING:
    from collections.abc import Sequence


def shape_sizes(ctx: TypeCtx, shape: Any, api: str, argument: str = "shape") -> list[Any]:
    """The sizes that a shape list of tiles, ints and block sizes stands for."""
    if not isinstance(shape, (tuple, list)):
        raise exc.InvalidShapeElement(ctx.span(argument), api=api, got=type_name(shape))
    sizes: list[Any] = []
    for position, item in enumerate(shape):
        if isinstance(item, TileAxis):
            sizes.append(item.size)
        elif is_number(item) and kind_of(item) is int and (known_int(item) or 0) >= 0:
            sizes.append(item)
        else:
            span = ctx.item_span(position, argument)
            got = item if isinstance(item, int) else type_name(item)
            error = exc.InvalidShapeElement(span, api=api, got=got)
            raise error.with_related(*ctx.cause(item))
    return sizes


def check_device(ctx: TypeCtx, device: Any) -> None:
    """Device values live on the kernel's device."""
    if device is None:
        return
    try:
        kind = torch.device(device).type
    except (RuntimeError, TypeError):
        detail = f"`device` must be a device, got {device!r}"
        raise exc.InvalidAPIUsage(ctx.span("device"), detail=detail) from None
    if kind != ctx.device.type:
        raise exc.DeviceMismatch(ctx.span("device"), name="device", got=device, expected=ctx.device)


def check_dtype(ctx: TypeCtx, dtype: Any) -> None:
    """Whether a `dtype` is one."""
    if not isinstance(dtype, torch.dtype):
        detail = f"`dtype` must be a torch.dtype, got `{type_name(dtype)}`"
        raise exc.InvalidAPIUsage(ctx.span("dtype"), detail=detail)


@op
def full(
    shape: Sequence[Any], value: Any, dtype: torch.dtype = torch.float32, device: Any = None
) -> torch.Tensor:
    """A tensor of one value.

    Args:
        shape: list of tiles, ints and block sizes.
        value: number or 0-d device tensor.
        dtype: dtype of the result.
        device: if given, must be the kernel's.
    """
    raise exc.NotInsideKernel(api="hl.full")


@full.type_rule
def _(ctx: TypeCtx, shape: Any, value: Any, dtype: Any = torch.float32, device: Any = None) -> Any:
    check_device(ctx, device)
    check_dtype(ctx, dtype)
    sizes = shape_sizes(ctx, shape, "hl.full")
    if not is_number(value) and not (ctx.is_device(value) and value.dim() == 0):
        raise full.misuse(ctx.span("value"), "the value must be a number or a 0-d device tensor")
    return ctx.record(full, (tuple(shape), value, dtype), ctx.fake(sizes, dtype))


@op
def zeros(
    shape: Sequence[Any], dtype: torch.dtype = torch.float32, device: Any = None
) -> torch.Tensor:
    """A tensor of zeros; `hl.full(shape, 0, dtype)`.

    Args:
        shape: list of tiles, ints and block sizes.
        dtype: dtype of the result.
        device: if given, must be the kernel's.
    """
    raise exc.NotInsideKernel(api="hl.zeros")


@zeros.type_rule
def _(ctx: TypeCtx, shape: Any, dtype: Any = torch.float32, device: Any = None) -> Any:
    check_device(ctx, device)
    check_dtype(ctx, dtype)
    sizes = shape_sizes(ctx, shape, "hl.zeros")
    zero = False if dtype is torch.bool else 0.0 if dtype.is_floating_point else 0
    return ctx.record(full, (tuple(shape), zero, dtype), ctx.fake(sizes, dtype))


@op
def arange(
    begin_or_end: Any,
    end: Any = None,
    step: Any = 1,
    dtype: torch.dtype | None = None,
    device: Any = None,
) -> torch.Tensor:
    """A row of integers: `begin, begin + step, ...`, before `end`.

    Args:
        begin_or_end: the end; or the begin, where `end` is given, which may be a run-time scalar.
        end: one past the last; the length must be known at compile time, or a tile's.
        step: distance between two, known at compile time.
        dtype: dtype of the result; by default the kernel's index dtype.
        device: if given, must be the kernel's.
    """
    raise exc.NotInsideKernel(api="hl.arange")


@arange.type_rule
def _(
    ctx: TypeCtx,
    begin_or_end: Any,
    end: Any = None,
    step: Any = 1,
    dtype: Any = None,
    device: Any = None,
) -> Any:
    check_device(ctx, device)
    if dtype is not None:
        check_dtype(ctx, dtype)
    begin, end = (0, begin_or_end) if end is None else (begin_or_end, end)
    begin, end, step = (v.size if isinstance(v, TileAxis) else v for v in (begin, end, step))
    for bound in (begin, end, step):
        if not is_number(bound) or kind_of(bound) is not int:
            raise arange.misuse(
                ctx.span(), f"begin, end and step are ints, got `{type_name(bound)}`"
            )
    if known_int(step) == 0:
        raise arange.misuse(ctx.span("step"), "the step must not be 0")
    length = end - begin if known_int(step) == 1 else (end - begin + step - 1) // step
    origins = ctx.symbols.origins_in(length)
    if not all(isinstance(o, BlockSymbol) for o in origins):
        raise exc.ShapeSpecializingAllocation(ctx.span(), size=ctx.show([length]))
    value = ctx.fake([length], dtype or ctx.index_dtype)
    return ctx.record(arange, (begin, length, step, dtype or ctx.index_dtype), value)


@full.reference
def _(mode: EagerMode, shape: Any, value: Any, dtype: torch.dtype, device: Any) -> torch.Tensor:
    del device
    number = value.item() if isinstance(value, torch.Tensor) else value
    return torch.full(sizes_of(shape), number, dtype=dtype, device=mode.device)


@zeros.reference
def _(mode: EagerMode, shape: Any, dtype: torch.dtype, device: Any) -> torch.Tensor:
    del device
    return torch.zeros(sizes_of(shape), dtype=dtype, device=mode.device)


@arange.reference
def _(
    mode: EagerMode, begin_or_end: Any, end: Any, step: Any, dtype: Any, device: Any
) -> torch.Tensor:
    del device
    begin, end = (0, begin_or_end) if end is None else (begin_or_end, end)
    begin, end, step = (int(v) for v in (begin, end, step))
    return torch.arange(begin, end, step, dtype=dtype or torch.int32, device=mode.device)
