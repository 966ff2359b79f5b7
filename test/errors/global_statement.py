import torch

import helion
import helion.language as hl

calls = 0


@helion.kernel(autotune_effort="none")
def double(x: torch.Tensor) -> torch.Tensor:
    global calls
    calls = calls + 1
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] * 2
    return out


double(torch.ones(8))
