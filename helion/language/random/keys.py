"""Seeds from seeds: `fold_in`, `split_seed`.

Derived seeds are Philox calls too, under counters that no draw uses: draws have zeros in the upper
half of the counter, `fold_in` has 1 there and `split_seed` 2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.ir.graph import Node, args_of, value_of
from helion.ir.symbols import is_number, kind_of, known_int
from helion.ir.tiles import HostTensor
from helion.language import _philox
from helion.language._op import LowerCtx, TypeCtx, op
from helion.language.random.draws import INTEGERS, broadcasts, check_seed

if TYPE_CHECKING:
    from helion.language._eager import EagerMode

FOLD, SPLIT = 1, 2


@op
def fold_in(seed: Any, data: Any) -> Any:
    """A seed for one of many uses of a seed: a layer, a step, a rank, a row.

    The words 0 (low) and 1 (high) of Philox(key = seed, counter = (data low, data high, 0, 1)).
    Seeds of different data are unrelated, which those of `seed + 1` are to every other user of
    `seed + 1` not. `helion.random.fold_in` is the same on the host.

    Args:
        seed: int, or integer tensor; read as an unsigned 64-bit number.
        data: likewise; the shapes broadcast.

    Returns:
        int64 device tensor, 0-d for two numbers: a seed for any random operation.

    Example: `keep = hl.bernoulli([rows, n], 1 - p, hl.fold_in(seed, layer))`
    """
    raise exc.NotInsideKernel(api="hl.fold_in")


@op
def split_seed(seed: Any, n: int) -> Any:
    """Several seeds from one: for the random operations of one kernel.

    Seed i is the words 0 (low) and 1 (high) of Philox(key = seed, counter = (i, 0, 0, 2)),
    whatever `n`. `helion.random.split_seed` is the same on the host.

    Args:
        seed: int, or integer tensor; read as an unsigned 64-bit number.
        n: how many; known at compile time.

    Returns:
        Tuple of int64 device tensors shaped like the seed, 0-d for a number.

    Example: `for_mask, for_noise = hl.split_seed(seed, 2)`
    """
    raise exc.NotInsideKernel(api="hl.split_seed")


def _scalar_or_tensor(ctx: TypeCtx, api: str, name: str, value: Any) -> Any:
    """A seed, or something to fold into one."""
    if isinstance(value, HostTensor):
        return check_seed(ctx, api, value, [])
    is_int = is_number(value) and kind_of(value) is int
    if is_int or (ctx.is_device(value) and value.dtype in INTEGERS):
        return value
    detail = f"`{name}` is an integer, or a tensor of integers"
    raise exc.InvalidRandArgument(ctx.span(name), api=api, detail=detail)


@fold_in.type_rule
def _(ctx: TypeCtx, seed: Any, data: Any) -> torch.Tensor:
    seed = _scalar_or_tensor(ctx, "hl.fold_in", "seed", seed)
    data = _scalar_or_tensor(ctx, "hl.fold_in", "data", data)
    shapes = [list(v.shape) for v in (seed, data) if isinstance(v, torch.Tensor)]
    sizes = _broadcast(ctx, shapes) if shapes else []
    return ctx.record(fold_in, (seed, data, FOLD), ctx.fake(sizes, torch.int64))


def _broadcast(ctx: TypeCtx, shapes: list[list[Any]]) -> list[Any]:
    """The shape that one or two shapes broadcast to."""
    small, large = sorted(shapes, key=len) if len(shapes) > 1 else ([], *shapes)
    small = [1] * (len(large) - len(small)) + small
    sizes = [b if known_int(a) == 1 else a for a, b in zip(small, large, strict=True)]
    if not broadcasts(large, sizes) or not broadcasts(small, sizes):
        raise exc.ShapeMismatch(ctx.span(), lhs=ctx.show(small), rhs=ctx.show(large))
    return sizes


@fold_in.lowering
def _(ctx: LowerCtx, node: Node) -> Any:
    seed, data, tag = args_of(node)
    rank = value_of(node).dim()
    key, counter = _wide(ctx, seed, rank), _wide(ctx, data, rank)
    (c,) = ctx.assign(["counter"], counter.text)
    low, high = f"{c}.to(tl.uint32)", f"({c} >> 32).to(tl.uint32)"
    zero, upper = (f"tl.full([], {n}, tl.uint32)" for n in (0, tag))
    drawn = ctx.call("tl.philox", [key, counter], torch.int64)
    call = f"tl.philox({key.text}, {low}, {high}, {zero}, {upper})"
    w0, w1, *_ = ctx.assign(["w0", "w1", "_", "_"], call)
    text = f"({w1}.to(tl.uint64) << 32 | {w0}.to(tl.uint64)).to(tl.int64)"
    return ctx.value(text, torch.int64, drawn.shape)


def _wide(ctx: LowerCtx, value: Any, rank: int) -> Any:
    """A number or a tensor in 64 bits, as a block of `rank` dimensions or a scalar."""
    expression = ctx.cast(ctx.seed(value), torch.int64)
    width = len(expression.shape)
    return ctx.place(expression, width, rank - width, rank)


@split_seed.type_rule
def _(ctx: TypeCtx, seed: Any, n: Any) -> tuple[torch.Tensor, ...]:
    count = known_int(n) if is_number(n) else None
    if count is None or count < 1:
        detail = "`n` is a positive int, known at compile time"
        raise exc.InvalidRandArgument(ctx.span("n"), api="hl.split_seed", detail=detail)
    seed = _scalar_or_tensor(ctx, "hl.split_seed", "seed", seed)
    sizes = list(seed.shape) if isinstance(seed, torch.Tensor) else []
    return tuple(
        ctx.record(fold_in, (seed, i, SPLIT), ctx.fake(sizes, torch.int64)) for i in range(count)
    )


def derived(seed: int | torch.Tensor, data: int | torch.Tensor, tag: int) -> torch.Tensor:
    """Words 0 and 1 of Philox(seed, (data, 0, tag)) as an int64 tensor."""
    if not isinstance(data, torch.Tensor):
        device = seed.device if isinstance(seed, torch.Tensor) else None
        data = torch.tensor(_philox.wrap64(data), device=device)
    words = _philox.philox4x32(seed, data, upper=tag)
    return words[0] | words[1] << 32


@fold_in.reference
def _(mode: EagerMode, seed: Any, data: Any) -> torch.Tensor:
    return derived(seed, data, FOLD).to(mode.device)


@split_seed.reference
def _(mode: EagerMode, seed: Any, n: int) -> tuple[torch.Tensor, ...]:
    return tuple(derived(seed, i, SPLIT).to(mode.device) for i in range(int(n)))
