import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def second(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty([x.size(0)])
    for row in hl.tile(x.size(0)):
        value, index = torch.kthvalue(x[row, :], 2)
        out[row] = value
    return out


second(torch.ones(8, 8))
