import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def count(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = tile.indices
    return out


count(torch.ones(8))
