import torch

import helion
import helion.language as hl


@helion.kernel(config=helion.Config(block_sizes=[16, 16, 16]))
def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    out = torch.empty([a.size(0), b.size(1)], dtype=a.dtype)
    for row, column in hl.tile(out.size()):
        acc = hl.zeros([row, column])
        for k in hl.tile(a.size(1)):
            acc += a[row, k] @ b[k, column]
        out[row, column] = acc
    return out


half = torch.ones(16, 16, dtype=torch.float16)
matmul.bind((half, half))
