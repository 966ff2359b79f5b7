"""The packed order: all four words of a Philox call, placed where a tensor core keeps its columns.

A call makes G values: 4 whole words, 8 halves, or 16 bytes. The last extent is rounded up to L, a
multiple of 64; `row` is the linear index over the other axes, `c` the index along the last one.
A row is cut into spans of 4G columns, and in each of these

    a = c div 4G      k = (c mod 4G) div 8      t = (c mod 8) div 2      e = c mod 2
    counter = row * (L / G) + 4a + t            j = 2k + e

and the value is number j of its group: word j (G = 4), half j mod 2 of word j div 2 (G = 8), byte
j mod 4 of word j div 4 (G = 16); parts of a word count from its low end. In the accumulator of a
tensor core, thread t of four owns columns 2t and 2t + 1 of every eight: the values of a group are
all its own, so that no mask moves between threads where it meets a matmul.

Two ways lead to the same values. Where blocks and begins along the last axis divide by 4G, there
is one call for each group, and reshapes put the values in place. Elsewhere each element computes
its own counter and picks its value: four to sixteen times the work, for any alignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion.ir.graph import Node, value_of
from helion.ir.symbols import known_int
from helion.language import _philox
from helion.language.random.draws import (
    ROW_UNIT,
    Draw,
    axis_index,
    eager_axes,
    eager_row_major,
    eager_seed,
    fits_int32,
    row_major,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from helion.language._eager import EagerMode
    from helion.language._op import LowerCtx


def packed_values(
    ctx: LowerCtx,
    draw: Draw,
    sizes: Sequence[Any],
    function: str,
    dtype: torch.dtype,
    bits: int = 32,
    test: Callable[[str], str] | None = None,
) -> Any:
    """The value of each element, in the packed order.

    Args:
        ctx: the code generator.
        draw: where the elements draw.
        sizes: their shape.
        function: a Triton function of seed and counter with four results.
        dtype: of the values.
        bits: how many bits of a result make a value: 32 for a whole one, 16, 8.
        test: from the text of values to that of a condition on them. It is asked before they move
            into place, since a bool is a quarter of the traffic of a word.
    """
    group = 128 // bits
    lead, rank = draw.axes[:-1], len(draw.axes)
    known = known_int(draw.units)
    stride = None if known is None else known * (ROW_UNIT // group)
    wide = not fits_int32(ctx, draw.axes, [*(a.extent for a in lead), stride])
    row = ctx.number(0)
    if lead:
        scale = ctx.mul(ctx.number(draw.units), ctx.number(ROW_UNIT // group))
        row = ctx.mul(
            row_major(ctx, lead, rank, wide), scale if stride is None else ctx.number(stride)
        )
    if _is_aligned(ctx, draw, group):
        return _by_group(ctx, draw, row, sizes, function, dtype, bits, test)
    return _by_element(ctx, draw, row, function, dtype, bits, test)


def _is_aligned(ctx: LowerCtx, draw: Draw, group: int) -> bool:
    """Whether whole groups fall to each block: its begin and its length divide by a span."""
    if not draw.axes:
        return False
    span, last = 4 * group, draw.axes[-1]
    if isinstance(draw.seed, Node):
        shape = value_of(draw.seed).shape
        if len(shape) and known_int(shape[-1]) != 1:
            return False
    origin = known_int(last.origin)
    begin = 0 if last.tile is None else known_int(last.tile.begin)
    length = ctx.known_size(last.size)
    if origin is None or begin is None or length is None:
        return False
    padded = 1 << max(length - 1, 0).bit_length()
    return origin % span == 0 and begin % span == 0 and padded % span == 0


def _by_group(
    ctx: LowerCtx,
    draw: Draw,
    row: Any,
    sizes: Sequence[Any],
    function: str,
    dtype: torch.dtype,
    bits: int,
    test: Callable[[str], str] | None,
) -> Any:
    """One call for each group, and the values put in place.

    Groups lie [span, t]; their values, side by side, [span, t, k, e]; columns are [span, k, t, e].
    """
    group, last, dim = 128 // bits, draw.axes[-1], len(sizes) - 1
    block = ctx.size_text(last.size)
    begin = "" if last.tile is None else f"{ctx.axis_begin(last.tile)} // {group} + "
    first = (known_int(last.origin) or 0) // group
    text = f"{begin}{f'{first} + ' if first else ''}tl.arange(0, {_divided(block, group)})"
    own = ctx.place(ctx.value(text, torch.int32, [last.size], loose=True), 1, dim, len(sizes))
    (counter,) = ctx.assign(["counter"], ctx.add(row, own).text)
    call = f"{function}({ctx.seed(draw.seed).text}, {counter})"
    (values,) = ctx.assign(["words"], _side_by_side(ctx.assign(["w0", "w1", "w2", "w3"], call)))
    if bits < 32:
        parts = [_part(values, shift, bits) for shift in range(0, 32, bits)]
        (values,) = ctx.assign([_PART[bits]], _side_by_side(parts))
        values = values if test is not None else f"{values}.to(tl.uint{bits})"
    if test is not None:
        (values,) = ctx.assign(["below"], test(values))
    rows = [ctx.size_text(s) for s in sizes[:-1]]
    groups = ", ".join([*rows, _divided(block, 4 * group), "4", str(group // 2), "2"])
    order = [*range(dim), dim, dim + 2, dim + 1, dim + 3]
    (values,) = ctx.assign(["spans"], f"tl.permute(tl.reshape({values}, [{groups}]), {order})")
    return ctx.value(f"tl.reshape({values}, [{', '.join([*rows, block])}])", dtype, sizes)


def _side_by_side(values: Sequence[str]) -> str:
    """Values in a new last axis, or two of them, in order."""
    if len(values) == 2:
        return f"tl.join({values[0]}, {values[1]})"
    return f"tl.join({_side_by_side(values[::2])}, {_side_by_side(values[1::2])})"


def _part(word: str, shift: int, bits: int) -> str:
    """Some bits of a word."""
    mask = f"0x{2**bits - 1:X}"
    if shift == 0:
        return f"{word} & {mask}"
    return f"{word} >> {shift}" if shift + bits == 32 else f"({word} >> {shift}) & {mask}"


def _divided(length: str, divisor: int) -> str:
    return str(int(length) // divisor) if length.isdigit() else f"{length} // {divisor}"


_PART = {16: "halves", 8: "octets"}
# For each width: which word holds the value of column `c`, and where in it the value begins.
_WORD = {32: "{c} % 16 // 8 * 2 + {c} % 2", 16: "{c} % 32 // 8", 8: "{c} % 64 // 16"}
_SHIFT = {16: "{c} % 2 * 16", 8: "{c} % 16 // 8 * 16 + {c} % 2 * 8"}


def _by_element(
    ctx: LowerCtx,
    draw: Draw,
    row: Any,
    function: str,
    dtype: torch.dtype,
    bits: int,
    test: Callable[[str], str] | None,
) -> Any:
    """Each element computes the counter of its group, and picks its own value."""
    group, rank = 128 // bits, len(draw.axes)
    column = axis_index(ctx, draw.axes[-1], rank - 1, rank, False) if rank else ctx.number(0)
    if column.dtype is None:
        column = ctx.cast(column, torch.int32)
    (c,) = ctx.assign(["column"], column.text)
    text = f"{c} // {4 * group} * 4 + {c} % 8 // 2"
    counter = ctx.add(row, ctx.value(text, column.dtype, column.shape, loose=True))
    (name,) = ctx.assign(["counter"], counter.text)
    counter = ctx.value(name, counter.dtype, counter.shape)
    drawn = ctx.call(function, [ctx.seed(draw.seed), counter], dtype)
    w = ctx.assign(["w0", "w1", "w2", "w3"], drawn.text)
    (k,) = ctx.assign(["place"], _WORD[bits].format(c=c))
    low = f"tl.where({k} == 0, {w[0]}, {w[1]})"
    high = f"tl.where({k} == 2, {w[2]}, {w[3]})"
    (value,) = ctx.assign(["word"], f"tl.where({k} < 2, {low}, {high})")
    if bits < 32:
        part = f"{value} >> ({_SHIFT[bits].format(c=c)}) & 0x{2**bits - 1:X}"
        (value,) = ctx.assign([_PART[bits]], part)
        value = value if test is not None else f"{value}.to(tl.uint{bits})"
    if test is None:
        return ctx.value(value, dtype, drawn.shape)
    return ctx.value(test(value), dtype, drawn.shape, loose=True)


# -- reference -----------------------------------------------------------------------------------


def eager_packed(
    mode: EagerMode, shape: Sequence[Any], seed: Any, origin: Any, extents: Any, bits: int
) -> tuple[_philox.Words, torch.Tensor, torch.Tensor]:
    """For each element the words of its group, the number of its value in it, and its bits."""
    group = 128 // bits
    axes = eager_axes(mode, shape, origin, extents)
    zero = torch.zeros([], dtype=torch.int64, device=mode.device)
    c, extent = axes[-1] if axes else (zero, 1)
    row = eager_row_major(mode, axes[:-1])
    row = row.unsqueeze(-1) if len(axes) > 1 else row
    stride = -(-extent // ROW_UNIT) * (ROW_UNIT // group)
    counter = row * stride + c // (4 * group) * 4 + c % 8 // 2
    number = (c % (4 * group) // 8 * 2 + c % 2).expand(counter.shape)
    words = _philox.philox4x32(eager_seed(seed), counter)
    word = choose(words, number * bits // 32)
    value = word >> (number * bits % 32) & (2**bits - 1)
    return words, number, value


def choose(values: Sequence[torch.Tensor], number: torch.Tensor) -> torch.Tensor:
    """Of several tensors, the element of the one that `number` names."""
    stacked = torch.stack(torch.broadcast_tensors(*values, number)[:-1], -1)
    return stacked.gather(-1, number.expand(stacked.shape[:-1]).unsqueeze(-1)).squeeze(-1)
