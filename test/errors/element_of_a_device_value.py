import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def first(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        y = x[tile] * 2
        out[tile] = y[0]
    return out


first(torch.ones(8))
