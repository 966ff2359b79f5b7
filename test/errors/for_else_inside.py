import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def double(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for row in hl.tile(x.size(0)):
        for column in hl.tile(x.size(1)):
            out[row, column] = x[row, column] * 2
        else:
            out[row, 0] = 0
    return out


double(torch.ones(8, 4))
