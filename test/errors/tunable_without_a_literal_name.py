import torch

import helion
import helion.language as hl
from helion.autotuner import PowerOfTwoFragment


@helion.kernel(autotune_effort="none")
def scale(x: torch.Tensor, name: str) -> torch.Tensor:
    factor = hl.register_tunable(name, PowerOfTwoFragment(1, 8))
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] * factor
    return out


scale(torch.ones(8), "factor")
