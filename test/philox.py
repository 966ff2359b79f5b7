"""Philox4x32-10 in NumPy: the oracle for every test that draws random numbers.

Written from the paper (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011) and
independent of Triton, so that a mistake there cannot hide here. The float conversion alone follows
Triton, because it is part of the contract of `tl.rand`.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Words: TypeAlias = "npt.NDArray[np.uint32]"
Integers: TypeAlias = "int | npt.ArrayLike"
FourWords: TypeAlias = "tuple[Words, Words, Words, Words]"

_ROUNDS = 10
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
# The largest float32 below 2**-31: the product then stays below 1 for the largest int32 too.
_SCALE = np.float32(4.6566127342e-10)


def _modulo64(value: Integers) -> npt.NDArray[np.uint64]:
    """Any integers, Python ints of any size included, modulo 2**64."""
    if isinstance(value, int):
        return np.asarray(value % 2**64, dtype=np.uint64)
    array = np.asarray(value)
    if array.dtype == object:
        return np.array([int(v) % 2**64 for v in array.flat], np.uint64).reshape(array.shape)
    if array.dtype.kind not in "iu":
        raise TypeError(f"Philox takes integers, got {array.dtype}")
    return array.astype(np.uint64)


def _split(value: Integers) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    wide = _modulo64(value)
    return wide & _LOW, wide >> _HALF


def philox(
    key: Integers, counter: Integers | tuple[Integers, Integers, Integers, Integers]
) -> FourWords:
    """The four words that Philox4x32-10 makes of `key` and `counter`.

    Args:
        key: 64 bits; (low, high) are the two words of the key. Taken modulo 2**64.
        counter: an offset of 64 bits, which becomes (low, high, 0, 0), taken modulo 2**64; or a
            tuple of all four words, each modulo 2**32. Key and counter broadcast.

    Returns:
        Four uint32 arrays.
    """
    if isinstance(counter, tuple):
        c0, c1, c2, c3 = (_split(word)[0] for word in counter)
    else:
        c0, c1 = _split(counter)
        c2 = c3 = np.zeros_like(c0)
    k0, k1 = _split(key)
    c0, c1, c2, c3, k0, k1 = np.broadcast_arrays(c0, c1, c2, c3, k0, k1)
    for round_ in range(_ROUNDS):
        product0, product1 = _MULTIPLIERS[0] * c0, _MULTIPLIERS[1] * c2
        key0 = (k0 + np.uint64(round_ * _WEYL[0])) & _LOW
        key1 = (k1 + np.uint64(round_ * _WEYL[1])) & _LOW
        c0, c1 = (product1 >> _HALF) ^ c1 ^ key0, product1 & _LOW
        c2, c3 = (product0 >> _HALF) ^ c3 ^ key1, product0 & _LOW
    return tuple(word.astype(np.uint32) for word in (c0, c1, c2, c3))  # pyright: ignore[reportReturnType]


def uniform(words: Words) -> npt.NDArray[np.float32]:
    """Words as float32 in [0, 1), exactly as `tl.rand` converts them."""
    signed = np.asarray(words, np.uint32).view(np.int32)
    return np.where(signed < 0, ~signed, signed).astype(np.float32) * _SCALE


def rand(seed: Integers, offsets: Integers) -> npt.NDArray[np.float32]:
    """What `tl.rand(seed, offsets)` returns; seed and offsets are taken modulo 2**64."""
    return uniform(philox(seed, offsets)[0])


def rand4x(seed: Integers, offsets: Integers) -> tuple[npt.NDArray[np.float32], ...]:
    """What `tl.rand4x(seed, offsets)` returns; seed and offsets are taken modulo 2**64."""
    return tuple(uniform(word) for word in philox(seed, offsets))


def rand_full(seed: Integers, *shape: int) -> npt.NDArray[np.float32]:
    """What `hl.rand` draws for a whole tensor: each element's offset is its row-major index."""
    offsets = np.arange(np.prod(shape, dtype=np.int64), dtype=np.int64).reshape(shape)
    return rand(seed, offsets)
