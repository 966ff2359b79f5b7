"""Atomic operations on host tensors: read, combine and write an element as one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.language import indexing, memory
from helion.language._eager import as_items, locate
from helion.language._op import Op, TypeCtx, op

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from helion.ir.tiles import HostTensor
    from helion.language._eager import EagerMode

_ORDERS = ("relaxed", "acquire", "release", "acq_rel")
_WIDE_INTEGERS = (torch.int32, torch.int64, torch.uint32, torch.uint64)
_WIDE_FLOATS = (torch.float32, torch.float64)
_HALVES = (torch.float16, torch.bfloat16)
_SHORTS = (torch.int16, torch.uint16)


@op
def atomic_add(
    target: torch.Tensor, index: Sequence[Any], value: Any, sem: str = "relaxed"
) -> torch.Tensor:
    """Add to elements of a host tensor, each in one step that no other program can split.

    An index that occurs several times is added to several times, in an unknown order.

    Args:
        target: a tensor of the host part; int32, int64, float16, bfloat16, float32 or float64.
        index: as in `hl.load`; elements outside a tile's range are left alone.
        value: tensor or number; cast to the target's dtype and broadcast to the index's shape.
        sem: what the step orders: "relaxed" nothing; "acquire" keeps later accesses of the program
            after it, "release" earlier ones before it, "acq_rel" both.

    Returns:
        What the elements held before: the index's shape, the target's dtype.

    Raises:
        AtomicOnDeviceTensor: the target is a device value.
        InvalidAtomicSemantics: `sem` is none of these.
        UnsupportedDtype: the hardware has no such step for the target's dtype.
        ShapeMismatch: the value does not broadcast to the index's shape.
    """
    raise exc.NotInsideKernel(api="hl.atomic_add")


@op
def atomic_and(
    target: torch.Tensor, index: Sequence[Any], value: Any, sem: str = "relaxed"
) -> torch.Tensor:
    """Bitwise `and` into elements of a 32- or 64-bit integer tensor; else as `hl.atomic_add`."""
    raise exc.NotInsideKernel(api="hl.atomic_and")


@op
def atomic_or(
    target: torch.Tensor, index: Sequence[Any], value: Any, sem: str = "relaxed"
) -> torch.Tensor:
    """Bitwise `or` into elements of a 32- or 64-bit integer tensor; else as `hl.atomic_add`."""
    raise exc.NotInsideKernel(api="hl.atomic_or")


@op
def atomic_xor(
    target: torch.Tensor, index: Sequence[Any], value: Any, sem: str = "relaxed"
) -> torch.Tensor:
    """Bitwise `xor` into elements of a 32- or 64-bit integer tensor; else as `hl.atomic_add`."""
    raise exc.NotInsideKernel(api="hl.atomic_xor")


@op
def atomic_max(
    target: torch.Tensor, index: Sequence[Any], value: Any, sem: str = "relaxed"
) -> torch.Tensor:
    """The larger of old and new; 32- or 64-bit integers and floats; else as `hl.atomic_add`.

    Floats are compared by their bits: what becomes of a NaN depends on its sign.
    """
    raise exc.NotInsideKernel(api="hl.atomic_max")


@op
def atomic_min(
    target: torch.Tensor, index: Sequence[Any], value: Any, sem: str = "relaxed"
) -> torch.Tensor:
    """The smaller of old and new; 32- or 64-bit integers and floats; else as `hl.atomic_add`.

    Floats are compared by their bits: what becomes of a NaN depends on its sign.
    """
    raise exc.NotInsideKernel(api="hl.atomic_min")


@op
def atomic_xchg(
    target: torch.Tensor, index: Sequence[Any], value: Any, sem: str = "relaxed"
) -> torch.Tensor:
    """Put a new value in the place of the old; 32 or 64 bits; else as `hl.atomic_add`."""
    raise exc.NotInsideKernel(api="hl.atomic_xchg")


@op
def atomic_cas(
    target: torch.Tensor, index: Sequence[Any], expected: Any, value: Any, sem: str = "relaxed"
) -> torch.Tensor:
    """Compare and swap: write `value` where the target holds `expected`; 16, 32 or 64 bits.

    Args:
        target: as in `hl.atomic_add`.
        index: as in `hl.atomic_add`.
        expected: what must be there, bit for bit; converted as `value` is.
        value: what to write.
        sem: as in `hl.atomic_add`.

    Returns:
        What the elements held before: equal to `expected` where the swap took place.
    """
    raise exc.NotInsideKernel(api="hl.atomic_cas")


def _replace(old: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    del old
    return new


def _swap(old: torch.Tensor, expected: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """The hardware compares bits: -0.0 is not 0.0, and a NaN is itself."""
    bits = {2: torch.int16, 4: torch.int32, 8: torch.int64}[old.itemsize]
    return torch.where(old.view(bits) == expected.view(bits), new, old)


# Each operation, the dtypes it takes, and what it leaves in memory.
_FAMILY: dict[Op, tuple[tuple[torch.dtype, ...], Callable[..., torch.Tensor]]] = {
    atomic_add: ((*_WIDE_INTEGERS, *_WIDE_FLOATS, *_HALVES), torch.add),
    atomic_and: (_WIDE_INTEGERS, torch.bitwise_and),
    atomic_or: (_WIDE_INTEGERS, torch.bitwise_or),
    atomic_xor: (_WIDE_INTEGERS, torch.bitwise_xor),
    atomic_max: ((*_WIDE_INTEGERS, *_WIDE_FLOATS), torch.maximum),
    atomic_min: ((*_WIDE_INTEGERS, *_WIDE_FLOATS), torch.minimum),
    atomic_xchg: ((*_WIDE_INTEGERS, *_WIDE_FLOATS), _replace),
    atomic_cas: (
        (*_WIDE_INTEGERS, *_WIDE_FLOATS, *_HALVES, *_SHORTS),
        _swap,
    ),
}
ATOMICS = tuple(_FAMILY)


# -- types ---------------------------------------------------------------------------------------


def _check_target(ctx: TypeCtx, of: Op, target: Any) -> HostTensor:
    api = f"hl.{of.name}"
    if ctx.is_device(target):
        raise exc.AtomicOnDeviceTensor(ctx.span("target"), api=api)
    host = memory.check_host_tensor(ctx, target, api)
    dtypes = _FAMILY[of][0]
    if host.fake.dtype not in dtypes:
        detail = f"`{api}` takes {', '.join(str(d).removeprefix('torch.') for d in dtypes)}"
        raise exc.UnsupportedDtype(ctx.span("target"), dtype=host.fake.dtype, detail=detail)
    return host


def _typed(
    ctx: TypeCtx, of: Op, target: Any, index: Any, values: dict[str, Any], sem: Any
) -> torch.Tensor:
    host = _check_target(ctx, of, target)
    if sem not in _ORDERS:
        raise exc.InvalidAtomicSemantics(ctx.span("sem"), api=f"hl.{of.name}", got=sem)
    items = indexing.normalize(ctx, index, host.fake)
    shape = indexing.result_shape(items)
    for name, value in values.items():
        memory.check_stored(ctx, value, shape, name)
    result = ctx.fake(shape, host.fake.dtype)
    return ctx.record(of, (host, items, tuple(values.values()), sem), result)


# -- eager reference -----------------------------------------------------------------------------


def _rounds(places: torch.Tensor) -> list[torch.Tensor]:
    """Positions in `places`, in rounds in which no element occurs twice."""
    order = torch.argsort(places, stable=True)
    ordered = places[order]
    first = torch.searchsorted(ordered, ordered)
    turn = torch.arange(len(places), device=places.device) - first
    return [order[turn == t] for t in range(int(turn.max()) + 1)] if len(places) else []


def _apply(of: Op, target: torch.Tensor, index: Any, values: Sequence[Any]) -> torch.Tensor:
    """Combine element after element; returns what was there before, 0 outside of the tensor."""
    numbers = torch.arange(target.numel(), device=target.device).reshape(target.shape)
    located = locate(target, as_items(index))
    places = numbers[located.index]
    inside = torch.ones_like(places, dtype=torch.bool)
    lanes = (
        (inside if located.inside is None else inside & located.inside).flatten().nonzero()[:, 0]
    )
    flat = target.reshape(1) if target.dim() == 0 else target
    operands = [
        torch.as_tensor(v, device=target.device).to(target.dtype).broadcast_to(places.shape)
        for v in values
    ]
    before = torch.zeros(places.numel(), dtype=target.dtype, device=target.device)
    for order in _rounds(places.flatten()[lanes]):
        turn = lanes[order]
        where = torch.unravel_index(places.reshape(-1)[turn], flat.shape)
        before[turn] = flat[where]
        flat[where] = _FAMILY[of][1](before[turn], *(o.reshape(-1)[turn] for o in operands))
    return before.reshape(places.shape)


def _define(of: Op) -> None:
    """The rules of an operation that combines an element with one value."""

    @of.type_rule
    def _(ctx: TypeCtx, target: Any, index: Any, value: Any, sem: Any) -> torch.Tensor:
        return _typed(ctx, of, target, index, {"value": value}, sem)

    @of.reference
    def _(mode: EagerMode, target: torch.Tensor, index: Any, value: Any, sem: str) -> torch.Tensor:
        del mode, sem
        return _apply(of, target, index, [value])


for _op in ATOMICS:
    _op.has_effect = True
    if _op is not atomic_cas:
        _define(_op)


@atomic_cas.type_rule
def _(ctx: TypeCtx, target: Any, index: Any, expected: Any, value: Any, sem: Any) -> torch.Tensor:
    return _typed(ctx, atomic_cas, target, index, {"expected": expected, "value": value}, sem)


@atomic_cas.reference
def _(
    mode: EagerMode, target: torch.Tensor, index: Any, expected: Any, value: Any, sem: str
) -> torch.Tensor:
    del mode, sem
    return _apply(atomic_cas, target, index, [expected, value])
