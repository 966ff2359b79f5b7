import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def noise(x: torch.Tensor, seeds: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for rows, columns in hl.tile(x.size()):
        out[rows, columns] = hl.rand([rows, columns], seed=seeds[rows])
    return out


noise(torch.ones(8, 4), torch.arange(8))
