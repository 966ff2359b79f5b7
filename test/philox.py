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


# -- the other members of the family, each from its written definition ---------------------------


def offsets_of(*shape: int) -> npt.NDArray[np.int64]:
    """The row-major index of each element."""
    return np.arange(np.prod(shape, dtype=np.int64), dtype=np.int64).reshape(shape)


def packed(
    seed: Integers, indices: tuple[npt.NDArray[np.int64], ...], extents: tuple[int, ...], bits: int
) -> npt.NDArray[np.uint32]:
    """The bits of each element in the packed order, loops and all, as the design writes them.

    Args:
        seed: one for all, or one for each element.
        indices: the global index of each element along each axis, broadcast to one shape.
        extents: the sizes of the whole tensor.
        bits: 32, 16 or 8.
    """
    group = {32: 4, 16: 8, 8: 16}[bits]
    length = (extents[-1] + 63) // 64 * 64
    row = np.zeros_like(indices[-1])
    for index, extent in zip(indices[:-1], extents[:-1], strict=True):
        row = row * extent + index
    c = indices[-1]
    a, inside = c // (4 * group), c % (4 * group)
    k, t, e = inside // 8, c % 8 // 2, c % 2
    words = philox(seed, row * (length // group) + 4 * a + t)
    j = 2 * k + e
    if group == 4:
        return np.choose(j, words)
    if group == 8:
        return np.choose(j // 2, words) >> (16 * (j % 2)).astype(np.uint32) & np.uint32(0xFFFF)
    return np.choose(j // 4, words) >> (8 * (j % 4)).astype(np.uint32) & np.uint32(0xFF)


def packed_full(seed: Integers, shape: tuple[int, ...], bits: int) -> npt.NDArray[np.uint32]:
    """The bits of a whole tensor in the packed order."""
    indices = tuple(np.indices(shape, dtype=np.int64)) if shape else (np.int64(0),)
    return packed(seed, indices, shape or (1,), bits)  # pyright: ignore[reportArgumentType]


def bernoulli(
    seed: Integers, p: float, shape: tuple[int, ...], bits: int = 16
) -> npt.NDArray[np.bool_]:
    """The mask of `hl.bernoulli` for a whole tensor."""
    return packed_full(seed, shape, bits).astype(np.int64) < round(p * 2**bits)


def randint(seed: Integers, low: int, high: int, offsets: Integers) -> list[int]:
    """`hl.randint` in Python's own integers, flat."""
    words = [[int(w) for w in np.asarray(word).flat] for word in philox(seed, offsets)]
    n = high - low
    if n <= 2**32:
        whole = [(a << 32) + b for a, b in zip(*words[:2], strict=True)]
        return [low + (n * w >> 64) for w in whole]
    whole = [(((a << 32) + b << 32) + c << 32) + d for a, b, c, d in zip(*words, strict=True)]
    return [low + (n * w >> 128) for w in whole]


def rounded_down(values: npt.NDArray[np.float32], mantissa: int) -> npt.NDArray[np.float32]:
    """Numbers in [0, 1) cut to a significand of `mantissa` bits, as float32; no subnormals."""
    fraction, exponent = np.frexp(values.astype(np.float64))
    return np.ldexp(np.floor(fraction * 2.0**mantissa), exponent - mantissa).astype(np.float32)


def unit64(high: Words, low: Words) -> npt.NDArray[np.float64]:
    """53 bits of two words, scaled to [0, 1)."""
    bits = (high.astype(np.uint64) << np.uint64(32) | low.astype(np.uint64)) >> np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53


def fold_in(seed: int, data: int) -> int:
    """A seed of a seed and some data, as a signed 64-bit number."""
    return _seed(seed, (data % 2**32, data >> 32, 0, 1))


def split_seed(seed: int, n: int) -> list[int]:
    """Several seeds of one."""
    return [_seed(seed, (i, 0, 0, 2)) for i in range(n)]


def _seed(seed: int, counter: tuple[int, int, int, int]) -> int:
    low, high, _, _ = (int(w) for w in philox(seed, counter))
    value = low + (high << 32)
    return value - 2**64 if value >= 2**63 else value
