import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def repeat(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        for value in x[tile]:
            out[tile] = value
    return out


repeat(torch.ones(8))
