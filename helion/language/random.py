"""Random numbers: pure functions of a seed and of each element's global index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.ir.symbols import is_number, kind_of, known_int, same
from helion.ir.tiles import HostTensor, TileAxis
from helion.language import _philox
from helion.language._op import TypeCtx, op

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        _check_seed_dtype(ctx, seed.fake.dtype)
        if known_int(seed.fake.numel()) not in (1, None):
            shapes = {"seed_shape": list(seed.fake.shape), "shape": list(sizes)}
            raise exc.SeedShapeMismatch(ctx.span("seed"), **shapes)
        return ctx.load(seed, [0] * seed.fake.dim())
    if isinstance(seed, torch.Tensor):
        _check_seed_dtype(ctx, seed.dtype)
        _check_seed_shape(ctx, seed, sizes)
        return seed
    if not is_number(seed) or kind_of(seed) is not int:
        got = kind_of(seed).__name__ if is_number(seed) else type(seed).__name__
        raise exc.SeedNotInteger(ctx.span("seed"), got=got)
    if isinstance(seed, int) and not -(2**63) <= seed < 2**64:
        raise exc.SeedOutOfRange(ctx.span("seed"), value=seed)
    return seed


def _check_seed_dtype(ctx: TypeCtx, dtype: torch.dtype) -> None:
    if dtype not in _INTEGERS:
        raise exc.SeedNotInteger(ctx.span("seed"), got=f"tensor of {dtype}")


def _check_seed_shape(ctx: TypeCtx, seed: torch.Tensor, sizes: Sequence[Any]) -> None:
    pairs = zip(reversed(seed.shape), reversed(sizes), strict=False)
    if seed.dim() > len(sizes) or not all(known_int(a) == 1 or same(a, b) for a, b in pairs):
        shapes = {"seed_shape": list(seed.shape), "shape": list(sizes)}
        raise exc.SeedShapeMismatch(ctx.span("seed"), **shapes)


@rand.reference
def _(sizes: Any, seed: Any, offsets: torch.Tensor) -> torch.Tensor:
    return _philox.uniform(_philox.philox4x32(seed, offsets)[0])


def axis_extent(ctx: TypeCtx, axis: TileAxis) -> Any:
    """The extent of a tile axis in the offset: the end of its range, if known without memory."""
    return axis.end if is_number(axis.end) else None
