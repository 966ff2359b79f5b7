import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def halves(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for row in hl.tile(x.size(0)):
        left, right = torch.chunk(x[row, :], 2, dim=1)
        out[row, :] = left
    return out


halves(torch.ones(8, 2))
