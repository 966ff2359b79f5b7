import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def total(x: torch.Tensor, *more: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] + more[0][tile]
    return out


total(torch.ones(8), torch.ones(8))
