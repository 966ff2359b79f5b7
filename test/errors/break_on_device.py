import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def first(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile]
        if tile.id > 2:
            break
    return out


first(torch.ones(8))
