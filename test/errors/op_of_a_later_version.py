import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def totals(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for row in hl.tile(x.size(0)):
        out[row, :] = hl.associative_scan(torch.add, x[row, :], 1)
    return out


totals(torch.ones(8, 8))
