"""Embedding: rows of a table, gathered by an index that is itself loaded.

python examples/embedding.py        checks against torch; on a GPU it also compares the speed
"""

from __future__ import annotations

import torch
import torch.nn.functional as F

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example


@helion.kernel()
def embedding(ids: torch.Tensor, table: torch.Tensor) -> torch.Tensor:
    """`table[ids]`.

    Args:
        ids: integer tensor of any shape, each from 0 to `rows` - 1.
        table: tensor [rows, width].

    Returns:
        Tensor [*ids.shape, width] of the dtype of `table`.
    """
    flat = ids.reshape(-1)
    _, width = table.size()
    out = torch.empty([flat.numel(), width], dtype=table.dtype, device=table.device)
    for token, column in hl.tile([flat.numel(), width]):
        out[token, column] = table[flat[token], column]
    return out.view(*ids.size(), width)


def check(*shape: int, width: int, dtype: torch.dtype) -> None:
    table = torch.randn(100, width, device=DEVICE, dtype=dtype)
    ids = torch.randint(100, shape, device=DEVICE)
    assert torch.equal(embedding(ids, table), F.embedding(ids, table))
    print(f"ok  embedding of {list(shape)} in a table {list(table.shape)} {dtype}")


def main() -> None:
    check(8, 33, width=64, dtype=torch.float32)
    check(5, width=131, dtype=torch.bfloat16)
    if DEVICE.type == "cuda":
        table = torch.randn(32768, 4096, device=DEVICE, dtype=torch.bfloat16)
        ids = torch.randint(32768, (8, 4096), device=DEVICE)
        run_example(embedding, F.embedding, (ids, table))


if __name__ == "__main__":
    main()
