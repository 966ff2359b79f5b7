import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def pick(x: torch.Tensor, train: bool) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        if train:
            y = x[tile]
        else:
            y = None
        out[tile] = x[tile] if y is None else y
    return out


pick(torch.ones(8), True)
