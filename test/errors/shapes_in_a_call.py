import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def choose(x: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for row, column in hl.tile(x.size()):
        small = x[row, column] < 1
        out[row, column] = torch.where(small, x[row, column], scale[row])
    return out


choose(torch.ones(8, 8), torch.ones(8))
