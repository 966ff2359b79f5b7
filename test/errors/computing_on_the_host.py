import torch

import helion
import helion.language as hl


@helion.kernel(config=helion.Config(block_sizes=[8]))
def double(x: torch.Tensor) -> torch.Tensor:
    shifted = x.exp()
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = shifted[tile] * 2
    return out.neg()


double.bind((torch.ones(8),))
