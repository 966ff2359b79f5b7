"""Padding made explicit: the nodes of the device IR that speak of lanes outside of a range."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence


def keep_inside(value: Any, dims: Sequence[int], identity: float) -> Any:
    """A block with `identity` in the lanes that are outside of their range.

    Args:
        value: the block.
        dims: the dimensions whose ranges count.
        identity: what the lanes hold, so that an accumulation does not see them.
    """
    raise AssertionError("a node of the device IR is not called")


def count_inside(value: Any, dims: Sequence[int]) -> float:
    """How many elements of a block are inside of their range, in the product of some dimensions.

    Args:
        value: the block; the last tile of a range has fewer elements than the others.
        dims: the dimensions that count.
    """
    raise AssertionError("a node of the device IR is not called")
