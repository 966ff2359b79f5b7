"""Tiles: block sizes and the axes that loops run over; what an index may consist of."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, NamedTuple

import torch

if TYPE_CHECKING:
    from torch._subclasses.fake_tensor import FakeTensor

Bound = int | torch.SymInt | torch.fx.Node


@dataclasses.dataclass(frozen=True, eq=False)
class BlockSize:
    """How many elements a tile has.

    Attributes:
        name: the author's name for it: the loop variable, or the registered name.
        position: its entry in `Config.block_sizes`; None where the author fixed the size.
        fixed: the author's size, an int or an expression of sizes; None where the config chooses.
        extent: the largest length that it needs to cover, if known; an upper bound for the config.
        minimum: the smallest legal size.
    """

    name: str
    position: int | None
    fixed: int | torch.SymInt | None = None
    extent: int | torch.SymInt | None = None
    minimum: int = 1


@dataclasses.dataclass(frozen=True, eq=False)
class TileAxis:
    """One axis of one loop: the range [begin, end), cut into blocks, or stepped one by one.

    Attributes:
        name: the author's loop variable.
        block: the block size; None for a grid axis, whose index is a scalar.
        size: the block size as a symbol; 1 for a grid axis.
        begin: first index.
        end: one past the last index.
        step: distance between two indices of a grid axis; 1 for tiles.
    """

    name: str
    block: BlockSize | None
    size: int | torch.SymInt
    begin: Bound
    end: Bound
    step: Bound = 1


@dataclasses.dataclass(frozen=True, eq=False)
class HostTensor:
    """A tensor of the host part, as device code sees it: something to load from and store to.

    Attributes:
        text: the host expression that names it at the launch.
        fake: its dtype, sizes and strides.
    """

    text: str
    fake: FakeTensor


class TileItem(NamedTuple):
    """`tile + shift` in a subscript: one contiguous block of indices."""

    axis: TileAxis
    shift: object = 0


class SliceItem(NamedTuple):
    """`start:start + length * step:step` in a subscript; a bare `:` is the whole axis."""

    start: object
    length: int | torch.SymInt
    step: int = 1
