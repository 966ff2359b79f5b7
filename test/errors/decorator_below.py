import functools

import torch

import helion
import helion.language as hl


def logged(fn):
    @functools.wraps(fn)
    def wrapper(*args):
        print(fn.__name__)
        return fn(*args)

    return wrapper


@helion.kernel(autotune_effort="none")
@logged
def double(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] * 2
    return out


double(torch.ones(8))
