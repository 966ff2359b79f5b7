"""The parameters of the Triton function, and their order."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


@dataclasses.dataclass(frozen=True)
class Parameter:
    """A kernel parameter: its name, the host expression it gets, and what kind it is.

    Attributes:
        wide: part of a seed: a signed 64-bit number whatever its value, never specialized on.
        double: a float that Triton would narrow to float32 unless its type is declared.
    """

    name: str
    host: str
    constexpr: bool = False
    is_tensor: bool = False
    wide: bool = False
    double: bool = False


def ordered(parameters: Collection[Parameter], author: Sequence[str]) -> list[Parameter]:
    """Tensors, numbers, constants; each in the author's order.

    Block sizes stand in the order of the config.

    Args:
        parameters: the parameters, in order of first use.
        author: the variables of the host part, in order.
    """
    order = {name: i for i, name in enumerate(author)}

    def rank(p: Parameter) -> tuple[int, int, str]:
        if p.constexpr:
            position = p.host.removeprefix("_BLOCK_SIZE_")
            return (2, int(position) if position.isdigit() else len(parameters), "")
        # `x.size(0)` and `x.size(1)` belong to `x`.
        owner = re.split(r"\W", p.host, maxsplit=1)[0]
        return (0 if p.is_tensor else 1, order.get(owner, len(order)), p.host)

    return sorted(parameters, key=rank)
