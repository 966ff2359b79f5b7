"""What every random operation shares: a seed, and the offset at which each element draws."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from helion import exc
from helion.ir.describe import type_name
from helion.ir.symbols import Number, expr_of, is_number, kind_of, known_int, same
from helion.ir.tiles import HostTensor, TileAxis
from helion.language._eager import EagerMode, EagerTile
from helion.language.creation import check_device, shape_sizes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from helion.language._op import LowerCtx, TypeCtx

INTEGERS = frozenset(
    {torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32}
    | {torch.uint64}
)

# The packed order rounds rows up to this: a row then begins with a group of its own, whatever G.
ROW_UNIT = 64


class Axis(NamedTuple):
    """One axis of a shape.

    Attributes:
        tile: the tile; None for an axis whose index counts from 0.
        size: its length in the shape.
        origin: what is added to its index.
        extent: its length in the whole tensor; None where that is read from memory, and not needed.
    """

    tile: TileAxis | None
    size: Any
    origin: Any
    extent: Any

    def ir_text(self, show: Callable[[Any], str]) -> str:
        """`tile + origin of extent`, where there is an origin."""
        text = show(self.size if self.tile is None else self.tile)
        if known_int(self.origin) != 0:
            text += f" + {show(self.origin)}"
        return f"{text} of {show(self.extent)}"


class Draw(NamedTuple):
    """Where the elements of a node draw.

    Attributes:
        axes: the axes of the shape; none where `offsets` are given, or the shape is `[]`.
        seed: a number, or a device tensor.
        offsets: the author's own, or None.
        packed: whether all words of a Philox call are used, in the packed order.
        units: in the packed order, the number of 64 columns that cover the last extent.
        base: a number that counts as the index of an axis before all others.
    """

    axes: tuple[Axis, ...]
    seed: Any
    offsets: Any = None
    packed: bool = False
    units: Any = 1
    base: Any = 0

    def ir_text(self, show: Callable[[Any], str]) -> str:
        """`packed [axes], seed=s`, or `offsets=o, seed=s`."""
        axes = f"[{', '.join(a.ir_text(show) for a in self.axes)}]"
        where = axes if self.offsets is None else f"offsets={show(self.offsets)}"
        where += "" if known_int(self.base) == 0 else f" base={show(self.base)}"
        return f"{'packed ' if self.packed else ''}{where}, seed={show(self.seed)}"


# -- types ---------------------------------------------------------------------------------------


def typed_draw(
    ctx: TypeCtx,
    api: str,
    shape: Any,
    seed: Any,
    device: Any,
    offsets: Any,
    origin: Any,
    extents: Any,
    packed: Any = False,
) -> tuple[Draw, list[Any]]:
    """Check the arguments that all random operations have; returns the sizes of the result too."""
    check_device(ctx, device)
    if not isinstance(shape, (tuple, list)):
        detail = f"the shape must be a list: `{api}([tile], ...)`"
        raise exc.InvalidRandArgument(ctx.span("shape"), api=api, detail=detail)
    sizes = shape_sizes(ctx, shape, api)
    if not isinstance(packed, bool):
        detail = "`packed` must be known at compile time: True or False"
        raise exc.InvalidRandArgument(ctx.span("packed"), api=api, detail=detail)
    if offsets is not None:
        if packed:
            detail = "the packed order has counters of its own: leave `offsets` out"
            raise exc.InvalidRandArgument(ctx.span("offsets"), api=api, detail=detail)
        offsets = check_offsets(ctx, api, offsets)
        sizes = list(offsets.shape)
    seed = check_seed(ctx, api, seed, sizes)
    warn_repeats(ctx, api, (shape, seed, offsets, origin))
    if offsets is not None:
        return Draw((), seed, offsets), sizes
    axes = _axes(ctx, api, shape, sizes, origin, extents)
    units = _units(ctx, api, axes) if packed else 1
    return Draw(axes, seed, None, packed, units), sizes


def _units(ctx: TypeCtx, api: str, axes: Sequence[Axis]) -> Any:
    """How many units of 64 columns a row has; a single row may have any number."""
    if len(axes) < 2:
        return 1
    extent = axes[-1].extent
    if not is_number(extent):
        detail = "the packed order needs the last extent as a number, not read from memory"
        raise exc.InvalidRandArgument(ctx.span("extents"), api=api, detail=detail)
    # Rounded up in this way, an extent just below 2**31 does not wrap.
    return (extent - 1) // ROW_UNIT + 1


def check_seed(ctx: TypeCtx, api: str, seed: Any, sizes: Sequence[Any]) -> Any:
    """The seed as a number or a device tensor, loaded if it is one; or an error that says why."""
    if isinstance(seed, HostTensor):
        _check_seed_dtype(ctx, api, seed, seed.fake.dtype)
        # With dynamic shapes too: a call with more than one element is another kernel, and refused.
        if ctx.specialize(seed.fake.numel()) != 1:
            raise _seed_mismatch(ctx, api, seed.fake.shape, sizes).with_related(*ctx.cause(seed))
        return ctx.load(seed, [0] * seed.fake.dim())
    if isinstance(seed, torch.Tensor):
        _check_seed_dtype(ctx, api, seed, seed.dtype)
        if not broadcasts(seed.shape, sizes):
            raise _seed_mismatch(ctx, api, seed.shape, sizes)
        return seed
    if not is_number(seed) or kind_of(seed) is not int:
        related = ctx.cause(seed)
        raise exc.SeedNotInteger(ctx.span("seed"), api=api, got=type_name(seed), related=related)
    if isinstance(seed, int) and not -(2**63) <= seed < 2**64:
        raise exc.SeedOutOfRange(ctx.span("seed"), value=seed)
    return seed


def _seed_mismatch(
    ctx: TypeCtx, api: str, shape: Sequence[Any], sizes: Sequence[Any]
) -> exc.SeedShapeMismatch:
    return exc.SeedShapeMismatch(
        ctx.span("seed"), api=api, seed_shape=ctx.show(shape), shape=ctx.show(sizes)
    )


def _check_seed_dtype(ctx: TypeCtx, api: str, seed: Any, dtype: torch.dtype) -> None:
    if dtype not in INTEGERS:
        related = ctx.cause(seed)
        raise exc.SeedNotInteger(ctx.span("seed"), api=api, got=type_name(seed), related=related)


def broadcasts(shape: Sequence[Any], sizes: Sequence[Any]) -> bool:
    """Whether a tensor of one shape broadcasts to another without making it larger."""
    pairs = zip(reversed(shape), reversed(sizes), strict=False)
    return len(shape) <= len(sizes) and all(known_int(a) == 1 or same(a, b) for a, b in pairs)


def check_offsets(ctx: TypeCtx, api: str, offsets: Any) -> torch.Tensor:
    """Offsets as an integer device tensor."""
    if is_number(offsets) and kind_of(offsets) is int:
        return ctx.number_tensor(offsets)
    if not ctx.is_device(offsets) or offsets.dtype not in INTEGERS:
        raise exc.OffsetsNotInteger(ctx.span("offsets"), api=api, got=type_name(offsets))
    return offsets


def _axes(
    ctx: TypeCtx,
    api: str,
    shape: Sequence[Any],
    sizes: Sequence[Any],
    origin: Any,
    extents: Any,
) -> tuple[Axis, ...]:
    """The axes that the offset is made of."""
    origins = _one_per_axis(ctx, api, "origin", origin, len(sizes), 0)
    wholes = _one_per_axis(ctx, api, "extents", extents, len(sizes), None)
    axes: list[Axis] = []
    for i, (item, size) in enumerate(zip(shape, sizes, strict=True)):
        tile = item if isinstance(item, TileAxis) else None
        extent = wholes[i]
        if extent is None:
            extent = tile.end if tile is not None else size
        # The first extent enters no offset, and may be read from memory.
        if not is_number(extent) and wholes[i] is None:
            if i > 0:
                raise exc.ExtentsRequired(ctx.span("shape"), api=api, axis=i)
            extent = None
        axes.append(Axis(tile, size, origins[i], extent))
    return tuple(axes)


def _one_per_axis(
    ctx: TypeCtx, api: str, name: str, values: Any, count: int, default: Any
) -> list[Any]:
    if values is None:
        return [default] * count
    if not isinstance(values, (tuple, list)) or len(values) != count:
        detail = f"`{name}` needs one entry for each axis of the shape"
        raise exc.InvalidRandArgument(ctx.span(name), api=api, detail=detail)
    for value in values:
        is_int = is_number(value) and kind_of(value) is int
        is_scalar = ctx.is_device(value) and value.dim() == 0 and value.dtype in INTEGERS
        if not is_int and not is_scalar:
            detail = f"`{name}` holds integers, not `{type_name(value)}`"
            raise exc.InvalidRandArgument(ctx.span(name), api=api, detail=detail)
    return list(values)


def warn_repeats(ctx: TypeCtx, api: str, values: Any) -> None:
    """Warn where a loop inside of the program draws the same numbers again and again."""
    axes = [axis for axis in ctx.enclosing_serial() if not ctx.depends(axis, values)]
    if axes:
        ctx.warn(exc.RepeatedRandomNumbers(api=api, loop=axes[-1].name))


# -- lowering ------------------------------------------------------------------------------------


def seed_and_offset(ctx: LowerCtx, draw: Draw) -> list[Any]:
    """The first two arguments of `tl.rand` and its kin, for a draw that is not packed."""
    seed = ctx.seed(draw.seed)
    if known_int(draw.base) != 0:
        return [seed, row_major(ctx, draw.axes, len(draw.axes), True, ctx.wide_number(draw.base))]
    if draw.offsets is None:
        wide = not fits_int32(ctx, draw.axes, [a.extent for a in draw.axes])
        return [seed, ctx.shared(row_major(ctx, draw.axes, len(draw.axes), wide), "offset")]
    # Offsets are signed: int32 is widened so that -1 is 2**64 - 1 in every dtype.
    return [seed, ctx.cast(ctx.operand(draw.offsets), torch.int64)]


def row_major(ctx: LowerCtx, axes: Sequence[Axis], rank: int, wide: bool, base: Any = None) -> Any:
    """The linear index over the extents of the first axes of `rank`: `(i0 * n1 + i1) * n2 + i2`.

    Where 32 bits are enough it is written as the offset in a contiguous tensor is, so that one
    text serves both. Where not, the first index is widened before it is multiplied: a product that
    wrapped in int32 cannot be repaired afterwards, and past 2**32 elements two of them would
    silently share a counter. What meets a wide number is widened by Triton.
    """
    total = ctx.number(0) if base is None else base
    for dim, axis in enumerate(axes):
        if wide:
            total = ctx.mul(total, ctx.number(axis.extent)) if dim or base is not None else total
            widen = total.dtype is not torch.int64
            total = ctx.add(total, axis_index(ctx, axis, dim, rank, widen))
        else:
            stride = expr_of(math.prod(expr_of(a.extent) for a in axes[dim + 1 :]))
            index = axis_index(ctx, axis, dim, rank, wide=False)
            total = ctx.add(total, ctx.mul(index, ctx.number(Number(stride, int))))
    return total if total.dtype is not None else ctx.cast(total, torch.int32)


def axis_index(ctx: LowerCtx, axis: Axis, dim: int, rank: int, wide: bool) -> Any:
    """The global index of each element along one axis of `rank`."""
    return ctx.axis_index(axis.tile, axis.size, dim, rank, axis.origin, wide)


def fits_int32(ctx: LowerCtx, axes: Sequence[Axis], lengths: Sequence[Any]) -> bool:
    """Whether offsets are known to be below 2**31, or are an index that int32 holds.

    Args:
        ctx: tells which sizes are those of a tensor.
        axes: what the offset is made of.
        lengths: the factor that each axis contributes.
    """
    if any(known_int(a.origin) != 0 for a in axes):
        return False
    if len(axes) <= 1:
        return True
    known = [known_int(n) if is_number(n) else None for n in lengths]
    if None in known:
        return ctx.are_sizes_of_an_argument(lengths)
    return math.prod(n for n in known if n is not None) <= 2**31


# -- reference -----------------------------------------------------------------------------------


def eager_seed(seed: Any) -> Any:
    """The seed; a tensor of one element has no shape to broadcast.

    Raises:
        SeedNotInteger: it is no int, and no tensor of an integer dtype.
    """
    if isinstance(seed, torch.Tensor):
        if seed.dtype not in INTEGERS:
            raise exc.SeedNotInteger(got=type_name(seed))
        return seed.reshape([]) if seed.numel() == 1 else seed
    if not isinstance(seed, int) or isinstance(seed, bool):
        raise exc.SeedNotInteger(got=type_name(seed))
    return seed


def eager_offsets(
    mode: EagerMode, shape: Sequence[Any], offsets: Any, origin: Any, extents: Any
) -> torch.Tensor:
    """The offsets, or the row-major index of each element over the extents; in int64."""
    if offsets is not None:
        return torch.as_tensor(offsets, device=mode.device).to(torch.int64)
    return eager_row_major(mode, eager_axes(mode, shape, origin, extents))


def eager_axes(
    mode: EagerMode, shape: Sequence[Any], origin: Any, extents: Any
) -> list[tuple[torch.Tensor, int]]:
    """The global indices along each axis, in int64, and its extent."""
    axes: list[tuple[torch.Tensor, int]] = []
    for dim, item in enumerate(shape):
        tile = item if isinstance(item, EagerTile) else None
        extent = tile.range_end if tile is not None else int(item)
        if extents is not None:
            extent = int(extents[dim])
        index = tile.index if tile is not None else torch.arange(int(item), device=mode.device)
        axes.append((index.long() + (0 if origin is None else int(origin[dim])), extent))
    return axes


def eager_row_major(mode: EagerMode, axes: Sequence[tuple[torch.Tensor, int]]) -> torch.Tensor:
    """The row-major index over some axes."""
    total = torch.zeros([], dtype=torch.int64, device=mode.device)
    for dim, (index, extent) in enumerate(axes):
        total = total.unsqueeze(-1) * extent + index if dim else index
    return total
