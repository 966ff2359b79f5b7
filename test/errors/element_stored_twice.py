import torch

import helion
import helion.language as hl


@helion.kernel(ref_mode=helion.RefMode.EAGER)
def scatter(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for tile in hl.tile(x.size(0)):
        hl.store(out, [at[tile]], x[tile], extra_mask=x[tile] > 0)
    return out


scatter(torch.ones(4), torch.tensor([0, 1, 1, 2]))
