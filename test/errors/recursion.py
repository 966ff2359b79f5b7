import torch

import helion
import helion.language as hl


def power(x: torch.Tensor, n: int) -> torch.Tensor:
    return x * power(x, n - 1)


@helion.kernel(autotune_effort="none")
def cube(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = power(x[tile], 3)
    return out


cube(torch.ones(8))
