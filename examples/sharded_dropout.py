"""Dropout of a tensor that is split over processes: the same elements as on one device.

`hl.bernoulli` counts by the index that an element has in the whole tensor. A shard says where it
begins (`origin=`) and how large the whole is (`extents=`); all processes share one seed. So a run
can move to more devices, or to fewer, and still drop what it dropped.

What must agree between processes shares the seed. What must differ, such as the dropout of
different batches, folds the rank in: `helion.random.fold_in(seed, rank)`.

    python examples/sharded_dropout.py      two processes against one; NCCL if each has a GPU
"""

from __future__ import annotations

import datetime
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch.multiprocessing.spawn import spawn

import helion
import helion.language as hl
from helion._testing import DEVICE

# What the processes work on: neither side divides by their number, nor by a block.
SHAPE, P = (131, 259), 0.25


class Shard(NamedTuple):
    """A part of a matrix: where it begins, its size, and the size of the whole."""

    origin: tuple[int, int]
    size: tuple[int, int]
    whole: tuple[int, int]

    def of(self, x: torch.Tensor) -> torch.Tensor:
        """The part itself, a view."""
        (row, column), (m, n) = self.origin, self.size
        return x[row : row + m, column : column + n]


def shard(whole: tuple[int, int], dim: int, rank: int, ranks: int) -> Shard:
    """The part of a matrix that a rank has when dimension `dim` is split, evenly but for one."""
    begin, end = (whole[dim] * r // ranks for r in (rank, rank + 1))
    if dim == 0:
        return Shard((begin, 0), (end - begin, whole[1]), whole)
    return Shard((0, begin), (whole[0], end - begin), whole)


@helion.kernel(static_shapes=False)
def shard_dropout(
    p: float, x: torch.Tensor, seed: int, row: int, column: int, rows: int, columns: int
) -> torch.Tensor:
    """Dropout of the part of a [rows, columns] tensor that begins at (row, column).

    Args:
        p: probability of dropping an element, from 0 to 1 inclusive.
        x: the part, a floating-point tensor [m, n].
        seed: int, or one-element integer tensor on the device of `x`; that of the whole tensor.
        row: index of the first row of `x` in the whole.
        column: index of its first column.
        rows: rows of the whole.
        columns: columns of the whole.

    Returns:
        Tensor [m, n] of the dtype of `x`: the part of the dropout of the whole.
    """
    m, n = x.size()
    out = torch.empty_like(x)
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    for i, j in hl.tile([m, n]):
        keep = hl.bernoulli([i, j], 1.0 - p, seed, origin=[row, column], extents=[rows, columns])
        out[i, j] = torch.where(keep, x[i, j] * scale, 0.0)
    return out


class ShardedDropoutFunction(torch.autograd.Function):
    """`apply(p, x, seed, shard)` is the dropout of a part; it is linear, and its own adjoint."""

    @staticmethod
    def forward(ctx: Any, p: float, x: torch.Tensor, seed: int, part: Shard) -> torch.Tensor:
        ctx.p, ctx.seed, ctx.part = p, seed, part
        return shard_dropout(p, x, seed, *part.origin, *part.whole)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_y: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        return None, ShardedDropoutFunction.apply(ctx.p, grad_y, ctx.seed, ctx.part), None, None


def sharded_dropout(
    x: torch.Tensor, p: float, seed: int, part: Shard | None = None
) -> torch.Tensor:
    """Dropout of a matrix, or of the part of one, with a gradient and without a stored mask.

    Args:
        x: floating-point tensor [m, n].
        p: probability of dropping an element, from 0 to 1 inclusive.
        seed: the seed that all parts share; 64 bits.
        part: which part of which whole `x` is; if left out, it is the whole.
    """
    m, n = x.size()
    return ShardedDropoutFunction.apply(p, x, seed, part or Shard((0, 0), (m, n), (m, n)))


# -- several processes ---------------------------------------------------------------------------


def inputs(device: torch.device) -> torch.Tensor:
    """The same numbers wherever they are made, none of them 0."""
    count = torch.arange(1, 1 + SHAPE[0] * SHAPE[1], device=device)
    return count.reshape(SHAPE) / 1024


def dropout_and_gradient(x: torch.Tensor, seed: int, part: Shard | None) -> torch.Tensor:
    """Two matrices in one: the dropout of `x`, and the gradient of the sum of its squares."""
    x = x.clone().requires_grad_()
    y = sharded_dropout(x, P, seed, part)
    return torch.stack([y.detach(), *torch.autograd.grad(y.square().sum(), x)])


def work(rank: int, ranks: int, folder: str) -> None:
    """What each process does; the first saves what all have put together."""
    torch.set_num_threads(1)
    device, backend = torch.device("cpu"), "gloo"
    if DEVICE.type == "cuda":
        device = torch.device("cuda", rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
        backend = "nccl" if torch.cuda.device_count() >= ranks else "gloo"
    dist.init_process_group(
        backend,
        # A file needs no free port, and no name of the machine.
        init_method=Path(folder, "rendezvous").as_uri(),
        rank=rank,
        world_size=ranks,
        timeout=datetime.timedelta(seconds=120),
    )
    try:
        # Several processes may share a GPU, but NCCL refuses that, and gloo talks between hosts.
        carrier = device if backend == "nccl" else torch.device("cpu")
        seed = torch.randint(2**63 - 1, (), device=carrier)
        dist.broadcast(seed, 0)
        for dim in (0, 1):
            whole = torch.empty(2, *SHAPE, device=carrier)
            for source in range(ranks):
                part = shard(SHAPE, dim, source, ranks)
                found = torch.empty(2, *part.size, device=carrier)
                if source == rank:
                    x = part.of(inputs(device))
                    found.copy_(dropout_and_gradient(x, int(seed), part))
                dist.broadcast(found, source)
                for to, values in zip(whole, found, strict=True):
                    part.of(to).copy_(values)
            if rank == 0:
                torch.save((int(seed), whole.cpu()), Path(folder, f"split_{dim}.pt"))
    finally:
        dist.destroy_process_group()


def across_processes(ranks: int) -> list[tuple[int, torch.Tensor]]:
    """Seed and `dropout_and_gradient` as processes compute it, split by rows, and by columns."""
    with tempfile.TemporaryDirectory() as folder:
        spawn(work, (ranks, folder), nprocs=ranks)
        return [torch.load(Path(folder, f"split_{dim}.pt")) for dim in (0, 1)]


def main() -> None:
    ranks = 2 if DEVICE.type == "cpu" else min(4, max(2, torch.cuda.device_count()))
    for dim, (seed, found) in zip(("rows", "columns"), across_processes(ranks), strict=True):
        expected = dropout_and_gradient(inputs(DEVICE), seed, None).cpu()
        assert torch.equal(found, expected)
        dropped = (expected[0] == 0).sum()
        print(f"ok  {ranks} processes, split by {dim}, drop the {dropped:,} elements that one does")


if __name__ == "__main__":
    main()
