"""Random numbers: pure functions of a seed and of each element's global index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from helion import exc
from helion.ir.describe import type_name
from helion.ir.graph import Node, value_of
from helion.ir.symbols import is_number, kind_of, known_int, same
from helion.ir.tiles import HostTensor, TileAxis
from helion.language import _philox
from helion.language._eager import EagerMode, EagerTile
from helion.language._op import LowerCtx, TypeCtx, op
from helion.language.creation import check_device, shape_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_INTEGERS = frozenset(
    {torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32}
    | {torch.uint64}
)


@op
def rand(
    shape: Sequence[Any],
    seed: Any,
    device: Any = None,
    offsets: Any = None,
    *,
    origin: Sequence[Any] | None = None,
    extents: Sequence[Any] | None = None,
) -> torch.Tensor:
    """Uniform numbers in [0, 1), one for each element of `shape`.

    A pure function of the seed and of the element's global index: block sizes, loop orders, grid
    and device do not matter. Element (i0, ..., ik) draws at the row-major linear index of its
    global indices: with extents (n0, ..., nk), `((i0 * n1 + i1) * n2 + i2) ...`. A tile axis
    counts with `tile.index` and the end of the range that it tiles, an int axis with
    `arange(size)` and its size. In NumPy: `rand(seed, np.arange(n0 * n1).reshape(n0, n1))`.

    Args:
        shape: list of tiles, ints and block sizes; `[]` draws one number, at offset 0.
        seed: int, or integer tensor: one element, or broadcastable to `shape`; read as an
            unsigned 64-bit number, so that -1 and 2**64 - 1 are one seed. Never specialized on.
        device: if given, must be the kernel's device.
        offsets: integer tensor of offsets to use instead of the implied ones; the result has its
            shape. Offsets are signed 64-bit numbers modulo 2**64.
        origin: what to add to each axis's index, where `shape` is a part of a larger tensor.
        extents: the sizes of that larger tensor, one for each axis of `shape`.

    Returns:
        float32 tensor shaped like `shape`. 0.0 can occur, 1.0 cannot: keep with `r >= p`.

    Raises:
        SeedNotInteger: the seed is a float, a bool, or a tensor of such a dtype.
        SeedShapeMismatch: the seed is a tensor that does not broadcast to `shape`.
        ExtentsRequired: an axis after the first has bounds read from memory.

    Source: Philox4x32-10, Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011;
        key = seed, counter = (offset, 0, 0); float conversion as in `tl.rand`.

    Example: `keep = hl.rand([tile], seed=7) >= p`
    """
    raise exc.NotInsideKernel(api="hl.rand")


def check_seed(ctx: TypeCtx, seed: Any, sizes: Sequence[Any]) -> Any:
    """The seed as a number or a device tensor, loaded if it is one; or an error that says why."""
    if isinstance(seed, HostTensor):
        _check_seed_dtype(ctx, seed, seed.fake.dtype)
        if known_int(seed.fake.numel()) not in (1, None):
            raise _seed_shape_mismatch(ctx, seed.fake, sizes).with_related(*ctx.cause(seed))
        return ctx.load(seed, [0] * seed.fake.dim())
    if isinstance(seed, torch.Tensor):
        _check_seed_dtype(ctx, seed, seed.dtype)
        _check_seed_shape(ctx, seed, sizes)
        return seed
    if not is_number(seed) or kind_of(seed) is not int:
        related = ctx.cause(seed)
        raise exc.SeedNotInteger(ctx.span("seed"), got=type_name(seed), related=related)
    if isinstance(seed, int) and not -(2**63) <= seed < 2**64:
        raise exc.SeedOutOfRange(ctx.span("seed"), value=seed)
    return seed


def _check_seed_dtype(ctx: TypeCtx, seed: Any, dtype: torch.dtype) -> None:
    if dtype not in _INTEGERS:
        related = ctx.cause(seed)
        raise exc.SeedNotInteger(ctx.span("seed"), got=type_name(seed), related=related)


def _check_seed_shape(ctx: TypeCtx, seed: torch.Tensor, sizes: Sequence[Any]) -> None:
    pairs = zip(reversed(seed.shape), reversed(sizes), strict=False)
    if seed.dim() > len(sizes) or not all(known_int(a) == 1 or same(a, b) for a, b in pairs):
        raise _seed_shape_mismatch(ctx, seed, sizes)


def _seed_shape_mismatch(
    ctx: TypeCtx, seed: torch.Tensor, sizes: Sequence[Any]
) -> exc.SeedShapeMismatch:
    seed_shape, shape = ctx.show(seed.shape), ctx.show(sizes)
    return exc.SeedShapeMismatch(ctx.span("seed"), seed_shape=seed_shape, shape=shape)


class RandAxis(NamedTuple):
    """One axis of the shape: its index is the tile's own, or counts from 0, plus `origin`."""

    tile: TileAxis | None
    size: object
    origin: object
    extent: object

    def ir_text(self, show: Callable[[Any], str]) -> str:
        """`tile + origin of extent`, where there is an origin, and where the extent counts."""
        text = show(self.size if self.tile is None else self.tile)
        if known_int(self.origin) != 0:
            text += f" + {show(self.origin)}"
        return text if known_int(self.extent) == 0 else f"{text} of {show(self.extent)}"


@rand.type_rule
def _(
    ctx: TypeCtx,
    shape: Any,
    seed: Any,
    device: Any = None,
    offsets: Any = None,
    *,
    origin: Any = None,
    extents: Any = None,
) -> torch.Tensor:
    check_device(ctx, device)
    if not isinstance(shape, (tuple, list)):
        detail = "the shape must be a list: `hl.rand([tile], seed=seed)`"
        raise exc.InvalidRandArgument(ctx.span("shape"), detail=detail)
    sizes = shape_sizes(ctx, shape, "hl.rand")
    if offsets is not None:
        _check_offsets(ctx, offsets)
        sizes = list(offsets.shape)
    seed = check_seed(ctx, seed, sizes)
    axes = () if offsets is not None else rand_axes(ctx, shape, sizes, origin, extents)
    warn_repeats(ctx, shape, seed, offsets, origin)
    return ctx.record(rand, (axes, seed, offsets), ctx.fake(sizes, torch.float32))


def rand_axes(
    ctx: TypeCtx, shape: Sequence[Any], sizes: Sequence[Any], origin: Any, extents: Any
) -> tuple[RandAxis, ...]:
    """The axes that the offset is made of."""
    origin = _one_per_axis(ctx, "origin", origin, len(sizes), 0)
    extents = _one_per_axis(ctx, "extents", extents, len(sizes), None)
    axes: list[RandAxis] = []
    for i, (item, size) in enumerate(zip(shape, sizes, strict=True)):
        tile = item if isinstance(item, TileAxis) else None
        extent = extents[i]
        if extent is None:
            extent = tile.end if tile is not None else size
            if not is_number(extent) and i > 0:
                raise exc.ExtentsRequired(ctx.span("shape"), axis=i)
        axes.append(RandAxis(tile, size, origin[i], extent if i > 0 else 0))
    return tuple(axes)


def _one_per_axis(ctx: TypeCtx, name: str, values: Any, count: int, default: Any) -> list[Any]:
    if values is None:
        return [default] * count
    if not isinstance(values, (tuple, list)) or len(values) != count:
        detail = f"`{name}` needs one entry for each axis of the shape"
        raise exc.InvalidRandArgument(ctx.span(name), detail=detail)
    for value in values:
        is_int = is_number(value) and kind_of(value) is int
        if not is_int and not (ctx.is_device(value) and value.dim() == 0):
            detail = f"`{name}` holds integers, not `{type_name(value)}`"
            raise exc.InvalidRandArgument(ctx.span(name), detail=detail)
    return list(values)


def _check_offsets(ctx: TypeCtx, offsets: Any) -> None:
    if not ctx.is_device(offsets) or offsets.dtype not in _INTEGERS:
        raise exc.OffsetsNotInteger(ctx.span("offsets"), got=type_name(offsets))


def warn_repeats(ctx: TypeCtx, shape: Any, seed: Any, offsets: Any, origin: Any) -> None:
    """Warn where a loop inside of the program draws the same numbers again and again."""
    axes = [a for a in ctx.enclosing_serial() if not ctx.depends(a, (shape, seed, offsets, origin))]
    if axes:
        ctx.warn(exc.RepeatedRandomNumbers(loop=axes[-1].name))


@rand.lowering
def _(ctx: LowerCtx, node: Node) -> Any:
    axes, seed, offsets = node.args
    sizes = value_of(node).shape
    if offsets is not None:
        # Offsets are signed: int32 is widened so that -1 is 2**64 - 1 in every dtype.
        offset = ctx.cast(ctx.operand(offsets), torch.int64)
    else:
        offset = row_major(ctx, axes)
    drawn = ctx.call("tl.rand", [ctx.seed(seed), offset], torch.float32)
    return ctx.broadcast(drawn, sizes) if not axes and offsets is None else drawn


def row_major(ctx: LowerCtx, axes: Sequence[RandAxis]) -> Any:
    """The linear index over the extents: `(i0 * n1 + i1) * n2 + i2`.

    Widen each index before the multiply: a product that wrapped in int32 cannot be repaired
    afterwards, and past 2**32 elements two of them would silently share a counter.
    """
    wide = not ctx.fits_int32(axes)
    total: Any = ctx.number(0)
    for dim, axis in enumerate(axes):
        index = ctx.axis_index(axis.tile, axis.size, dim, len(axes), axis.origin, wide)
        total = ctx.add(ctx.mul(total, ctx.number(axis.extent)), index)
    return ctx.cast(total, torch.int64 if wide else torch.int32)


@rand.reference
def _(
    mode: EagerMode, shape: Any, seed: Any, device: Any, offsets: Any, origin: Any, extents: Any
) -> torch.Tensor:
    del device
    if offsets is None:
        offsets = eager_offsets(mode, shape, origin, extents)
    if isinstance(seed, torch.Tensor) and seed.numel() == 1:
        seed = seed.reshape([])
    return _philox.uniform(_philox.philox4x32(seed, offsets)[0])


def eager_offsets(mode: EagerMode, shape: Any, origin: Any, extents: Any) -> torch.Tensor:
    """The row-major index of each element over the extents, in int64."""
    total = torch.zeros([], dtype=torch.int64, device=mode.device)
    for dim, item in enumerate(shape):
        tile = item if isinstance(item, EagerTile) else None
        extent = tile.range_end if tile is not None else int(item)
        if extents is not None:
            extent = int(extents[dim])
        index = tile.index if tile is not None else torch.arange(int(item), device=mode.device)
        index = index.long() + (0 if origin is None else int(origin[dim]))
        total = total.unsqueeze(-1) * extent + index if dim else index
    return total
