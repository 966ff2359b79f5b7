import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def add(x: torch.Tensor, weights: tuple[float, ...], i: int) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] * weights[i]
    return out


add(torch.ones(8), (1.0, 2.0, 3.0), 1)
