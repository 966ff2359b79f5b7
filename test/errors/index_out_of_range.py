import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def first_and_last(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for row in hl.tile(x.size(0)):
        out[row, 4] = x[row, 0]
    return out


first_and_last(torch.ones(8, 4))
