import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def fill(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = hl.zeros([tile], fill=1)
    return out


fill(torch.ones(8))
