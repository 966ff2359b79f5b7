import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def ordered(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = torch.special.bessel_j0(x[tile])
    return out


ordered(torch.ones(8))
