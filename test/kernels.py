"""Small kernels, one feature each, and how the golden tests compile them.

Lines in the goldens count from where a kernel's source begins, so that kernels may be added
anywhere. A function that a kernel calls stands below it.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

import helion
import helion.language as hl
from examples.low_mem_dropout import low_mem_dropout, low_mem_dropout_bwd

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@dataclasses.dataclass(frozen=True)
class Case:
    """One kernel for one kind of arguments.

    Attributes:
        kernel: the function.
        args: makes its arguments.
        config: what code is generated for.
        settings: settings of the kernel.
    """

    kernel: Callable[..., Any]
    args: Callable[[], tuple[Any, ...]]
    config: dict[str, Any]
    settings: dict[str, Any]

    def bind(self) -> Any:
        """The bound kernel, compiled anew."""
        return helion.kernel(self.kernel, **self.settings).bind(self.args())

    def values(self) -> tuple[Any, ...]:
        """The arguments as the generated host function takes them."""
        return tuple(a.value if isinstance(a, hl.constexpr) else a for a in self.args())

    def show(self, stage: str, bound: Any = None) -> str:
        """The text of a stage, with lines that count from the kernel's first."""
        bound = bound or self.bind()
        offset = bound.program.source.line_offset

        def relative(match: re.Match[str]) -> str:
            number = str(int(match[2]) - offset)
            return match[1] + (number if match[1] else f"{number:>4}") + match[3]

        text = bound.show(stage, self.config)
        return re.sub(r"(?m)(^|src\[\w+\.py:|  # ) *(\d+)( \||\]|$)", relative, text)


def floats(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype, device=DEVICE)


def ints(*shape: int, dtype: torch.dtype = torch.int64) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype, device=DEVICE)


# -- hl.rand: shapes -------------------------------------------------------------------------------


def rand_1d(out: torch.Tensor, seed: int):
    for tile in hl.tile(out.size(0)):
        out[tile] = hl.rand([tile], seed)


def rand_2d(out: torch.Tensor, seed: int):
    m, n = out.size()
    for rows, cols in hl.tile([m, n]):
        out[rows, cols] = hl.rand([rows, cols], seed)


def rand_3d(out: torch.Tensor, seed: int):
    b, m, n = out.size()
    for batch, rows, cols in hl.tile([b, m, n]):
        out[batch, rows, cols] = hl.rand([batch, rows, cols], seed)


def rand_tile_and_int(out: torch.Tensor, seed: int):
    for tile in hl.tile(out.size(0)):
        out[tile, :] = hl.rand([tile, 8], seed)


def rand_ints(out: torch.Tensor, seed: int):
    for i in hl.grid(out.size(0)):
        out[i, :, :] = hl.rand([4, 8], seed + i)


def rand_grid(out: torch.Tensor, seed: int):
    m, n = out.size()
    for i in hl.grid(m):
        for tile in hl.tile(n):
            out[i, tile] = hl.rand([tile], seed * 1000003 + i)


def rand_nested(out: torch.Tensor, seed: int):
    m, n = out.size()
    for rows in hl.tile(m):
        for cols in hl.tile(n):
            out[rows, cols] = hl.rand([rows, cols], seed)


def rand_range(out: torch.Tensor, begin: int, end: int, seed: int):
    for tile in hl.tile(begin, end):
        out[tile] = hl.rand([tile], seed)


def rand_block_size(out: torch.Tensor, seed: int):
    m, n = out.size()
    width = hl.register_block_size(n)
    for rows, cols in hl.tile([m, n], block_size=[None, width]):
        out[rows, cols] = hl.rand([rows, cols], seed)


# -- hl.rand: offsets and seeds --------------------------------------------------------------------


def rand_offsets(out: torch.Tensor, offsets: torch.Tensor, seed: int):
    for tile in hl.tile(out.size(0)):
        out[tile] = hl.rand([tile], seed, offsets=offsets[tile])


def rand_shard(out: torch.Tensor, first_row: int, first_col: int, rows: int, cols: int, seed: int):
    for i, j in hl.tile(out.size()):
        out[i, j] = hl.rand([i, j], seed, origin=[first_row, first_col], extents=[rows, cols])


def seed_literal(out: torch.Tensor):
    for tile in hl.tile(out.size(0)):
        out[tile] = hl.rand([tile], seed=42)


def seed_expression(out: torch.Tensor, seed: int):
    for tile in hl.tile(out.size(0)):
        out[tile] = hl.rand([tile], seed=seed + 1)


def seed_tensor(out: torch.Tensor, seed: torch.Tensor):
    for tile in hl.tile(out.size(0)):
        out[tile] = hl.rand([tile], seed)


def seed_per_row(out: torch.Tensor, seeds: torch.Tensor):
    for rows, cols in hl.tile(out.size()):
        out[rows, cols] = hl.rand([rows, cols], seed=seeds[rows, None])


# -- loads and stores ------------------------------------------------------------------------------


def index_whole_axis(x: torch.Tensor):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile, :] = x[tile, :] + 1
    return out


def index_new_axis(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor):
    for rows, cols in hl.tile(out.size()):
        out[rows, cols] = x[rows, None] * y[None, cols]


def index_int(x: torch.Tensor, out: torch.Tensor, row: int):
    for tile in hl.tile(out.size(0)):
        out[tile] = x[0, tile] + x[row, tile]


def index_shifted(x: torch.Tensor, out: torch.Tensor):
    for tile in hl.tile(out.size(0)):
        out[tile] = x[tile.index + 1] - x[tile.index]


def index_gather(table: torch.Tensor, ids: torch.Tensor, out: torch.Tensor):
    for tile in hl.tile(ids.size(0)):
        out[tile, :] = table[ids[tile], :]


def index_strided(x: torch.Tensor, out: torch.Tensor):
    for rows, cols in hl.tile(out.size()):
        out[rows, cols] = x[rows, cols].abs()


# -- loops and branches ----------------------------------------------------------------------------


def two_loops(x: torch.Tensor, doubled: torch.Tensor, sums: torch.Tensor):
    for tile in hl.tile(x.size(0)):
        doubled[tile, :] = x[tile, :] * 2
    for tile in hl.tile(x.size(1)):
        sums[tile] = x[:, tile].sum(0)


def branch(x: torch.Tensor, out: torch.Tensor, limit: int):
    for tile in hl.tile(x.size(0)):
        value = x[tile]
        if tile.begin < limit:
            value = value * 2
            value = value.abs()
        else:
            value = value - 1
        out[tile] = value


def branch_on_device(x: torch.Tensor, flag: torch.Tensor):
    for tile in hl.tile(x.size(0)):
        if flag[0] > 0:
            x[tile] = 0.0


def carried_sum(x: torch.Tensor, out: torch.Tensor):
    m, n = x.size()
    for rows in hl.tile(m):
        total = hl.zeros([rows])
        for cols in hl.tile(n):
            total += x[rows, cols].to(torch.float32).exp().sum(1)
        out[rows] = total


def carried_count(x: torch.Tensor, out: torch.Tensor, steps: int):
    for tile in hl.tile(x.size(0)):
        value = x[tile]
        shift = 1
        for i in range(steps):
            value = value * shift
            shift = shift + i
        out[tile] = value


def softmax(x: torch.Tensor, out: torch.Tensor):
    for rows in hl.tile(x.size(0)):
        out[rows, :] = F.softmax(x[rows, :], dim=1)


def matmul(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor):
    m, k = x.size()
    n = y.size(1)
    for rows, cols in hl.tile([m, n]):
        acc = hl.zeros([rows, cols])
        for inner in hl.tile(k):
            acc = torch.addmm(acc, x[rows, inner], y[inner, cols])
        out[rows, cols] = acc.to(out.dtype)


def narrowing(x: torch.Tensor, out: torch.Tensor):
    for rows in hl.tile(x.size(0)):
        for cols in hl.tile(x.size(1)):
            out[rows, cols] = torch.exp(x[rows, cols]) * 2


def unused(x: torch.Tensor):
    for tile in hl.tile(x.size(0)):
        old = x[tile]
        forgotten = old.exp() + 1  # noqa: F841
        x[tile] = -old


# -- values ----------------------------------------------------------------------------------------


def values_of_each_kind(
    x: torch.Tensor, n: int, p: float, flag: bool, mode: str, bias: torch.Tensor | None
):
    half = n // 2
    low = min(n, 7)
    pair = (x, 1.5)
    sizes = [x.size(0), n]
    options = {"scale": p}
    function = torch.relu
    dtype = x.dtype
    out = torch.empty(n, dtype=dtype, device=x.device)
    for tile in hl.tile(n):
        nothing = bias
        assert nothing is None
        first = tile.begin + low
        inside = tile.index < half
        value = function(x[tile]) * options["scale"]
        if flag:
            value = value + first
        out[tile] = torch.where(inside, value, pair[1]).to(dtype)
    return out, sizes, mode


def constants(x: torch.Tensor, power: hl.constexpr):
    width = hl.specialize(x.size(1))
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile, :] = x[tile, :] ** power + hl.arange(width)


def helper(x: torch.Tensor, out: torch.Tensor):
    for tile in hl.tile(x.size(0)):
        out[tile] = _shifted_square(x[tile], 3)


def _shifted_square(value, shift):
    moved = value + shift
    return moved * moved


# -- the table -------------------------------------------------------------------------------------


def case(
    kernel: Callable[..., Any],
    args: Callable[[], tuple[Any, ...]],
    *blocks: int,
    dynamic: bool = False,
    **settings: Any,
) -> Case:
    config = {"block_sizes": list(blocks), "num_warps": 4, "num_stages": 2}
    return Case(kernel, args, config, {"static_shapes": not dynamic, **settings})


bf16 = torch.bfloat16

CASES: dict[str, Case] = {
    "rand_1d": case(rand_1d, lambda: (floats(1000), 7), 256),
    "rand_1d.dynamic": case(rand_1d, lambda: (floats(1000), 7), 256, dynamic=True),
    "rand_2d": case(rand_2d, lambda: (floats(60, 100), 7), 32, 32),
    "rand_2d.dynamic": case(rand_2d, lambda: (floats(60, 100), 7), 32, 32, dynamic=True),
    "rand_3d": case(rand_3d, lambda: (floats(4, 60, 100), 7), 1, 32, 32),
    "rand_3d.dynamic": case(rand_3d, lambda: (floats(4, 60, 100), 7), 1, 32, 32, dynamic=True),
    "rand_tile_and_int": case(rand_tile_and_int, lambda: (floats(1000, 8), 7), 64),
    "rand_ints": case(rand_ints, lambda: (floats(10, 4, 8), 7)),
    "rand_grid": case(rand_grid, lambda: (floats(60, 100), 7), 64, dynamic=True),
    "rand_nested": case(rand_nested, lambda: (floats(60, 100), 7), 32, 32),
    "rand_range": case(rand_range, lambda: (floats(1000), 10, 900, 7), 256),
    "rand_block_size": case(rand_block_size, lambda: (floats(60, 100), 7), 64, 32),
    "rand_offsets": case(rand_offsets, lambda: (floats(1000), ints(1000), 7), 256),
    "rand_shard": case(rand_shard, lambda: (floats(60, 100), 60, 0, 240, 200, 7), 32, 32),
    "seed_literal": case(seed_literal, lambda: (floats(1000),), 256),
    "seed_expression": case(seed_expression, lambda: (floats(1000), 7), 256),
    "seed_tensor": case(seed_tensor, lambda: (floats(1000), ints(1)), 256),
    "seed_per_row": case(seed_per_row, lambda: (floats(60, 100), ints(60)), 32, 32),
    "dropout": case(low_mem_dropout.fn, lambda: (0.25, floats(60, 100), 7), 1024, dynamic=True),
    "dropout.bf16": case(
        low_mem_dropout.fn, lambda: (0.25, floats(60, 100, dtype=bf16), 7), 1024, dynamic=True
    ),
    "dropout_bwd": case(
        low_mem_dropout_bwd.fn, lambda: (0.25, floats(60, 100), 7), 1024, dynamic=True
    ),
    "dropout.static": case(low_mem_dropout.fn, lambda: (0.25, floats(60, 100), 7), 1024),
    "dropout.int64": case(
        low_mem_dropout.fn,
        lambda: (0.25, floats(60, 100), 7),
        1024,
        dynamic=True,
        index_dtype=torch.int64,
    ),
    "index_whole_axis": case(index_whole_axis, lambda: (floats(60, 100),), 8),
    "index_whole_axis.dynamic": case(index_whole_axis, lambda: (floats(60, 100),), 8, dynamic=True),
    "index_new_axis": case(
        index_new_axis, lambda: (floats(60), floats(100), floats(60, 100)), 32, 32
    ),
    "index_int": case(index_int, lambda: (floats(60, 100), floats(100), 5), 64),
    "index_shifted": case(index_shifted, lambda: (floats(101), floats(100)), 64),
    "index_gather": case(index_gather, lambda: (floats(60, 8), ints(100), floats(100, 8)), 64),
    "index_strided": case(
        index_strided, lambda: (floats(100, 60).t(), floats(60, 100)), 32, 32, dynamic=True
    ),
    "two_loops": case(two_loops, lambda: (floats(60, 100), floats(60, 100), floats(100)), 8, 16),
    "branch": case(branch, lambda: (floats(1000), floats(1000), 500), 256),
    "branch_on_device": case(branch_on_device, lambda: (floats(1000), ints(1)), 256),
    "carried_sum": case(carried_sum, lambda: (floats(60, 100, dtype=bf16), floats(60)), 16, 32),
    "carried_count": case(carried_count, lambda: (floats(1000), floats(1000), 3), 256),
    "softmax": case(softmax, lambda: (floats(60, 100, dtype=bf16), floats(60, 100, dtype=bf16)), 4),
    "narrowing": case(
        narrowing, lambda: (floats(60, 100, dtype=bf16), floats(60, 100, dtype=bf16)), 16, 32
    ),
    "unused": case(unused, lambda: (floats(1000),), 256),
    "matmul": case(
        matmul,
        lambda: (
            floats(60, 100, dtype=bf16),
            floats(100, 40, dtype=bf16),
            floats(60, 40, dtype=bf16),
        ),
        *(16, 16, 32),
        dynamic=True,
    ),
    "values_of_each_kind": case(
        values_of_each_kind,
        lambda: (floats(100), 100, 0.5, True, "plain", None),
        64,
        dynamic=True,
    ),
    "constants": case(constants, lambda: (floats(60, 16), hl.constexpr(2)), 32, dynamic=True),
    "helper": case(helper, lambda: (floats(1000), floats(1000)), 256),
}
