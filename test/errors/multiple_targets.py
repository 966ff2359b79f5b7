import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def copy(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        a = b = x[tile]
        out[tile] = a + b
    return out


copy(torch.ones(8))
