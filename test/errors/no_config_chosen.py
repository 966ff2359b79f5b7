import torch

import helion
import helion.language as hl


@helion.kernel(configs=[helion.Config(block_sizes=[8]), helion.Config(block_sizes=[16])])
def double(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] * 2
    return out


double.bind((torch.ones(8),)).to_triton_code()
