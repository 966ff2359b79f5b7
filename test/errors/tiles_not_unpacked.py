import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def double(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tiles in hl.tile([x.size(0), x.size(1)]):
        out[tiles, 0] = x[tiles, 0] * 2
    return out


double(torch.ones(8, 8, 2))
