import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def noise(x: torch.Tensor, seed: int) -> torch.Tensor:
    out = torch.empty_like(x)
    r = hl.rand([x.size(0)], seed)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] + r[tile]
    return out


noise(torch.ones(8), 7)
