import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def noise(x: torch.Tensor, seed: int) -> torch.Tensor:
    out = torch.empty_like(x)
    for rows, columns in hl.tile(x.size()):
        out[rows, columns] = hl.rand([rows, columns], seed, origin=[64])
    return out


noise(torch.ones(8, 8), 7)
