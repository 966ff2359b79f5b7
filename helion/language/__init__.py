"""The language: what kernel authors import as `hl`."""

from helion.ir.tiles import TileAxis as Tile
from helion.language._op import Op
from helion.language.atomics import (
    atomic_add,
    atomic_and,
    atomic_cas,
    atomic_max,
    atomic_min,
    atomic_or,
    atomic_xchg,
    atomic_xor,
)
from helion.language.constants import constexpr, specialize
from helion.language.creation import arange, full, zeros
from helion.language.debugging import breakpoint, device_print
from helion.language.later import LATER, later
from helion.language.loops import grid, register_block_size, static_range, tile
from helion.language.matmul import dot
from helion.language.memory import load, store
from helion.language.random import (
    bernoulli,
    exponential,
    fold_in,
    gumbel,
    rand,
    rand4x,
    randint,
    randint4x,
    randn,
    random_bits,
    split_seed,
    uniform,
)
from helion.language.tiles import (
    tile_begin,
    tile_block_size,
    tile_count,
    tile_end,
    tile_id,
    tile_index,
)
from helion.language.tunable import register_tunable
from helion.language.views import join, split, subscript


def __getattr__(name: str) -> Op:
    """An operation that this version does not have yet."""
    if name in LATER:
        return later(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "Tile",
    "arange",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_xchg",
    "atomic_xor",
    "bernoulli",
    "breakpoint",
    "constexpr",
    "device_print",
    "dot",
    "exponential",
    "fold_in",
    "full",
    "grid",
    "gumbel",
    "join",
    "load",
    "rand",
    "rand4x",
    "randint",
    "randint4x",
    "randn",
    "random_bits",
    "register_block_size",
    "register_tunable",
    "specialize",
    "split",
    "split_seed",
    "static_range",
    "store",
    "subscript",
    "tile",
    "tile_begin",
    "tile_block_size",
    "tile_count",
    "tile_end",
    "tile_id",
    "tile_index",
    "uniform",
    "zeros",
]
