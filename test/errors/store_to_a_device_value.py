import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def clear(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        y = x[tile] * 2
        y[0] = 0
        out[tile] = y
    return out


clear(torch.ones(8))
