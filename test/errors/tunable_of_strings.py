import torch

import helion
import helion.language as hl
from helion.autotuner import EnumFragment


@helion.kernel(autotune_effort="none")
def scale(x: torch.Tensor) -> torch.Tensor:
    factor = hl.register_tunable("factor", EnumFragment(["one", "two"]))
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] * factor
    return out


scale(torch.ones(8))
