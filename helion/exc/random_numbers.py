"""Errors about random numbers: seeds, offsets, extents."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from helion.exc.base import BaseError
from helion.exc.shapes import ShapeMismatch

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ExtentsRequired",
    "ImplicitRandomDtype",
    "InvalidRandArgument",
    "InvalidRandintRange",
    "OffsetsNotInteger",
    "ProbabilityOutOfRange",
    "SeedNotInteger",
    "SeedOutOfRange",
    "SeedShapeMismatch",
]


class SeedNotInteger(BaseError, TypeError):
    """The seed is a float, a bool, a generator, or a tensor of a dtype that is no integer."""

    code = "seed-not-integer"
    title = "`{api}` needs an integer seed, got `{got}`"
    label = "this is `{got}`"
    help = "pass an int, or an integer tensor that broadcasts to the shape: `seed=seed`"
    defaults: ClassVar[Mapping[str, str]] = {"api": "hl.rand"}


class SeedOutOfRange(BaseError, ValueError):
    """A seed needs more than 64 bits."""

    code = "seed-out-of-range"
    title = "the seed {value} does not fit in 64 bits"
    help = "use a seed from -2**63 to 2**64 - 1; `seed % 2**64` keeps the low bits"


class SeedShapeMismatch(ShapeMismatch, ValueError):
    """A seed tensor does not broadcast to the shape of the numbers."""

    code = "seed-shape-mismatch"
    title = "a seed of shape {seed_shape} does not broadcast to the shape {shape} of `{api}`"
    label = "the seed has shape {seed_shape}"
    help = (
        "pass one seed, or one for each row: `seeds[tile, None]` for numbers of shape `[tile, n]`"
    )
    defaults: ClassVar[Mapping[str, str]] = {"api": "hl.rand"}


class InvalidRandArgument(BaseError, TypeError):
    """A random operation lacks an argument, or has one of a wrong kind."""

    code = "invalid-rand-argument"
    title = "`{api}`: {detail}"
    help = (
        "call it as `{api}([tile, ...], seed=seed)`: the shape is a list of tiles and "
        "integers, the seed an integer"
    )
    defaults: ClassVar[Mapping[str, str]] = {"api": "hl.rand", "detail": "wrong arguments"}


class OffsetsNotInteger(BaseError, TypeError):
    """The `offsets` of a random operation are no integer tensor."""

    code = "offsets-not-integer"
    title = "`{api}` needs an integer tensor as offsets, got `{got}`"
    label = "this is `{got}`"
    help = "compute the offsets from `tile.index`, in int64 where they may pass 2**31"
    defaults: ClassVar[Mapping[str, str]] = {"api": "hl.rand"}


class ExtentsRequired(BaseError, ValueError):
    """The extent of a later axis cannot be found, and it enters the offset of every element."""

    code = "extents-required"
    title = "`{api}` cannot know the extent of axis {axis}: its bounds are read from memory"
    label = "this tile has no fixed extent"
    help = (
        "state the sizes of the whole tensor: `extents=[m, n]`, and `origin=[...]` for a part"
        " that begins elsewhere"
    )
    defaults: ClassVar[Mapping[str, str]] = {"api": "hl.rand"}


class InvalidRandintRange(BaseError, ValueError):
    """`hl.randint` gets an empty range, or one that its dtype does not hold."""

    code = "invalid-randint-range"
    title = "`hl.randint` needs low < high in the range of {dtype}, got low={low}, high={high}"
    help = (
        "the numbers lie in [low, high): swap the bounds, or pass a wider `dtype=`. Bounds that are"
        " known only at the launch may be 2**32 apart"
    )


class ProbabilityOutOfRange(BaseError, ValueError):
    """A probability is not in [0, 1]."""

    code = "probability-out-of-range"
    title = "`{api}` needs a probability from 0 to 1, got {p}"
    label = "this is {p}"
    help = "0 is never, 1 is always; pass a share, not a percentage"
    defaults: ClassVar[Mapping[str, str]] = {"api": "hl.bernoulli"}


class ImplicitRandomDtype(BaseError):
    """`torch.rand` and its kin get a dtype that is not floating."""

    code = "implicit-random-dtype"
    title = "`{api}`: implicit RNG only supports floating-point dtypes, got {dtype}"
    help = "draw floats and convert them, or use `hl.randint`"
    defaults: ClassVar[Mapping[str, str]] = {"api": "torch.rand"}
