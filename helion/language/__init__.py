"""The language: what kernel authors import as `hl`."""

from helion.ir.tiles import TileAxis as Tile
from helion.language.constants import constexpr, specialize
from helion.language.creation import arange, full, zeros
from helion.language.loops import grid, register_block_size, static_range, tile
from helion.language.matmul import dot
from helion.language.memory import load, store
from helion.language.random import rand
from helion.language.tiles import (
    tile_begin,
    tile_block_size,
    tile_count,
    tile_end,
    tile_id,
    tile_index,
)

__all__ = [
    "Tile",
    "arange",
    "constexpr",
    "dot",
    "full",
    "grid",
    "load",
    "rand",
    "register_block_size",
    "specialize",
    "static_range",
    "store",
    "tile",
    "tile_begin",
    "tile_block_size",
    "tile_count",
    "tile_end",
    "tile_id",
    "tile_index",
    "zeros",
]
