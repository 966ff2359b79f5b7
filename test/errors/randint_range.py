import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def dice(x: torch.Tensor, seed: int) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = hl.randint([tile], 6, 1, seed)
    return out


dice(torch.ones(8), 7)
