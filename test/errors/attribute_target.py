import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def tag(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        tile.width = 4
        out[tile] = x[tile]
    return out


tag(torch.ones(8))
