import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def double(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] * 2
    return out


@helion.kernel(autotune_effort="none")
def quadruple(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = double(x[tile]) * 2
    return out


quadruple(torch.ones(8))
