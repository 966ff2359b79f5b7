"""Which ints of the device IR are never negative, so that Triton's division is the author's."""

from __future__ import annotations

from typing import Any

import torch

from helion.ir.graph import Node, args_of, value_of
from helion.ir.symbols import is_number, known_int
from helion.language import creation, tiles

aten = torch.ops.aten
prims = torch.ops.prims

# Of operands that are not negative, a result that is not.
_KEEP_SIGN = frozenset(
    {
        prims.add.default,
        prims.mul.default,
        prims.div.default,
        prims.minimum.default,
        prims.maximum.default,
        prims.shift_right_arithmetic.default,
        prims.bitwise_and.default,
        prims.bitwise_or.default,
        prims.remainder.default,
        aten.floor_divide.default,
        aten.floor_divide.Scalar,
        prims.broadcast_in_dim.default,
        prims.reshape.default,
        prims.transpose.default,
        prims.scalar_tensor.default,
    }
)


def is_never_negative(value: Any, found: dict[Node, bool] | None = None) -> bool:
    """Whether an int operand is known to be 0 or more, whatever the arguments of the kernel.

    Known are indices of tiles and `hl.arange` that begin at a known number, unsigned values, and
    what is computed from these. A sum or product counts as if it did not overflow: where it does,
    it is no index.

    Args:
        value: a node or a number.
        found: what is known already; a value may be read by many on the way.
    """
    found = {} if found is None else found
    if not isinstance(value, Node):
        known = known_int(value) if is_number(value) else None
        return known is not None and known >= 0
    if value not in found:
        found[value] = _is_never_negative(value, found)
    return found[value]


def _is_never_negative(node: Node, found: dict[Node, bool]) -> bool:
    fake, args = value_of(node), args_of(node)
    if not isinstance(fake, torch.Tensor) or fake.dtype.is_floating_point:
        return False
    if not fake.dtype.is_signed:
        return True
    if node.target is tiles.tile_index:
        return is_never_negative(args[0].begin)
    if node.target is creation.arange:
        return is_never_negative(args[0]) and is_never_negative(args[2])
    if node.target is prims.convert_element_type.default:
        # A number stays as it is where there are as many bits for it.
        source = value_of(args[0]).dtype
        keeps = fake.dtype.itemsize - source.itemsize >= (0 if source.is_signed else 1)
        return keeps and is_never_negative(args[0], found)
    operands = [a for a in args if isinstance(a, Node) or is_number(a)]
    return (
        node.target in _KEEP_SIGN
        and bool(operands)
        and all(is_never_negative(a, found) for a in operands)
    )
