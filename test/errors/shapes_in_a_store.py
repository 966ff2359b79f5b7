import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def copy(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty([x.size(0)])
    for row, column in hl.tile(x.size()):
        out[row] = x[row, column]
    return out


copy(torch.ones(8, 8))
