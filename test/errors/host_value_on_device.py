import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def scale(x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    longest = sorted(lengths.tolist())
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] * longest[0]
    return out


scale(torch.ones(8), torch.tensor([3, 5]))
