import torch

import helion
import helion.language as hl


@helion.kernel(autotune_effort="none")
def apply(x: torch.Tensor, what: str) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        match what:
            case "double":
                out[tile] = x[tile] * 2
            case _:
                out[tile] = x[tile]
    return out


apply(torch.ones(8), "double")
