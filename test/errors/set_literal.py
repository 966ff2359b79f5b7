import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def total(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        factors = {2, 3}
        for factor in factors:
            out[tile] = x[tile] * factor
    return out


total(torch.ones(8))
