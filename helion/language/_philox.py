"""Philox4x32-10 on plain tensors: the eager reference of every random operation.

Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011; the conversion to
float is Triton's `uint_to_uniform_float`. Words are kept in int64 tensors, values 0 to 2**32 - 1,
because torch has few operations on unsigned types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Sequence

_MASK = 0xFFFFFFFF
_ROUND_A, _ROUND_B = 0xD2511F53, 0xCD9E8D57
_ROUNDS = 10
_KEY_A, _KEY_B = 0x9E3779B9, 0xBB67AE85
# The largest float32 factor that keeps (2**31 - 1) * factor below one.
_SCALE = 4.6566127342e-10

Words = tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]


def wrap64(value: int) -> int:
    """An int modulo 2**64, as the signed number that int64 can hold."""
    return (value + 2**63) % 2**64 - 2**63


def philox4x32(seed: int | torch.Tensor, offset: torch.Tensor, upper: int = 0) -> Words:
    """The four words for each offset.

    Args:
        seed: int, or integer tensor that broadcasts to `offset`; modulo 2**64.
        offset: integer tensor; modulo 2**64, so negative numbers wrap.
        upper: the last word of the counter: not 0 where seeds are derived.

    Returns:
        Four int64 tensors shaped like `offset`, each value from 0 to 2**32 - 1.
    """
    offset = offset.to(torch.int64)
    if not isinstance(seed, torch.Tensor):
        seed = torch.tensor(wrap64(seed), dtype=torch.int64, device=offset.device)
    seed = seed.to(torch.int64)
    key0, key1 = _split(seed)
    c0, c1 = _split(offset)
    c2 = torch.zeros_like(c0)
    c3 = torch.full_like(c0, upper)
    for _ in range(_ROUNDS):
        high_a, low_a = _multiply(c0, _ROUND_A)
        high_b, low_b = _multiply(c2, _ROUND_B)
        c0, c1, c2, c3 = high_b ^ c1 ^ key0, low_b, high_a ^ c3 ^ key1, low_a
        key0, key1 = (key0 + _KEY_A) & _MASK, (key1 + _KEY_B) & _MASK
    return c0, c1, c2, c3


def uniform(word: torch.Tensor) -> torch.Tensor:
    """A word turned into float32 in [0, 1) as `tl.rand` does: 0.0 can occur, 1.0 cannot."""
    signed = torch.where(word >= 2**31, word - 2**32, word)
    folded = torch.where(signed < 0, -signed - 1, signed)
    return folded.to(torch.float32) * _SCALE


def scaled(words: Sequence[torch.Tensor], factor: int) -> torch.Tensor:
    """`floor(factor * w / 2**(32 * len(words)))` in int64, modulo 2**64.

    Args:
        words: w, most significant word first.
        factor: from 1 to 2**64.
    """
    columns: list[Any] = [0] * (len(words) + 4)
    for i, word in enumerate(reversed(words)):
        for j in range(3):
            high, low = _multiply(word, (factor >> (32 * j)) & _MASK)
            columns[i + j] += low
            columns[i + j + 1] += high
    digits: list[Any] = []
    carry: Any = 0
    for column in columns:
        digits.append((column + carry) & _MASK)
        carry = (column + carry) >> 32
    return digits[len(words)] | digits[len(words) + 1] << 32


def _split(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return value & _MASK, (value >> 32) & _MASK


def _multiply(word: torch.Tensor, factor: int) -> tuple[torch.Tensor, torch.Tensor]:
    # A 32 by 32 bit product can pass 2**63; from 16-bit halves no partial sum does.
    low, high = word & 0xFFFF, word >> 16
    product_low = low * factor
    product_high = high * factor + (product_low >> 16)
    return product_high >> 16, ((product_high & 0xFFFF) << 16) | (product_low & 0xFFFF)
