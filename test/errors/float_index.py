import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def pick(x: torch.Tensor, at: float) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] + x[at]
    return out


pick(torch.ones(8), 2.0)
