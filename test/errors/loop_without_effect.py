import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def forgetful(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        y = x[tile] * 2
    return out


forgetful(torch.ones(8))
