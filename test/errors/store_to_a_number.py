import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def fill(x: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        n[tile] = 0
        out[tile] = x[tile]
    return out


fill(torch.ones(8), 4)
