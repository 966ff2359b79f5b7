"""Torch's own random calls inside of kernels: they take no seed, and repeat in no loop.

Each call has a seed of its own, drawn on the host from torch's default generator at every launch,
so that `torch.manual_seed` governs it. The offset of an element is the linear index over *all* axes
around the call that its tensor does not have (the index of a grid axis, the begin of a tile), and
then over the tensor's own axes, where a tile counts with its global indices, as in `hl.rand`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
import torch.nn.functional as F

from helion import exc
from helion.ir.symbols import AxisNumber, BlockSymbol, is_number, known_int
from helion.ir.tiles import HostTensor, TileAxis
from helion.language.loops import grid_index
from helion.language.random.draws import Axis, Draw
from helion.language.random.integers import randint
from helion.language.random.normal import exponential, randn
from helion.language.random.uniform import FLOATS, rand, uniform

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.language._op import TypeCtx


class CallSeed(NamedTuple):
    """The seed of one of torch's random calls; `number` tells the calls of a kernel apart."""

    number: int

    def ir_text(self, show: Callable[[Any], str]) -> str:
        """What the printer of the device IR shows."""
        del show
        return "drawn"


def implicit_draw(ctx: TypeCtx, api: str, shape: Sequence[Any]) -> tuple[Draw, list[Any]]:
    """Where the elements of a tensor draw that names no seed; returns its sizes too."""
    around = list(ctx.enclosing())
    axes: list[Axis] = []
    for item in shape:
        tile = _tile_of(ctx, item, around)
        size, end = (item, item) if tile is None else (tile.size, tile.end)
        if tile in around:
            around.remove(tile)
        axes.append(Axis(tile, size, 0, _extent(ctx, api, end)))
    base: Any = 0
    for axis in around:
        index = ctx.symbols.of(AxisNumber(axis, "begin")) if axis.block else grid_index(ctx, axis)
        base = base * _extent(ctx, api, axis.end) + index
    draw = Draw(tuple(axes), CallSeed(ctx.new_call()), base=base)
    return draw, [a.size for a in axes]


def _tile_of(ctx: TypeCtx, item: Any, around: Sequence[TileAxis]) -> TileAxis | None:
    """The tile that a dimension is made of, by its block size if by nothing else."""
    if isinstance(item, TileAxis):
        return item
    origin = ctx.symbols.origin(item)
    if not isinstance(origin, BlockSymbol):
        return None
    return next((a for a in around if a.block is origin.block), None)


def _extent(ctx: TypeCtx, api: str, end: Any) -> Any:
    if not is_number(end):
        detail = "a loop around it has bounds read from memory: use `hl.rand` with `offsets`"
        raise exc.InvalidRandArgument(ctx.span(), api=api, detail=detail)
    return end


# -- the calls -----------------------------------------------------------------------------------


def _float(api: str, ctx: TypeCtx, dtype: Any) -> torch.dtype:
    dtype = torch.get_default_dtype() if dtype is None else dtype
    if dtype not in FLOATS:
        raise exc.ImplicitRandomDtype(ctx.span(), api=api, dtype=dtype)
    return dtype


def _shape(size: Sequence[Any]) -> Sequence[Any]:
    """Sizes given one by one, or as one list."""
    return size[0] if len(size) == 1 and isinstance(size[0], (tuple, list)) else size


def _draw(op: Any, api: str, ctx: TypeCtx, shape: Sequence[Any], dtype: Any) -> torch.Tensor:
    draw, sizes = implicit_draw(ctx, api, shape)
    dtype = _float(api, ctx, dtype)
    return ctx.record(op, (draw, dtype), ctx.fake(sizes, dtype))


def _on_device(ctx: TypeCtx, value: Any) -> torch.Tensor:
    if isinstance(value, HostTensor):
        raise exc.HostTensorDirectUsage(ctx.span(), name=value.text)
    return value


def _rand(ctx: TypeCtx, *size: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
    del device
    return _draw(rand, "torch.rand", ctx, _shape(size), dtype)


def _randn(ctx: TypeCtx, *size: Any, dtype: Any = None, device: Any = None) -> torch.Tensor:
    del device
    return _draw(randn, "torch.randn", ctx, _shape(size), dtype)


def _rand_like(ctx: TypeCtx, like: Any, *, dtype: Any = None, device: Any = None) -> torch.Tensor:
    del device
    like = _on_device(ctx, like)
    return _draw(rand, "torch.rand_like", ctx, list(like.shape), dtype or like.dtype)


def _randn_like(ctx: TypeCtx, like: Any, *, dtype: Any = None, device: Any = None) -> torch.Tensor:
    del device
    like = _on_device(ctx, like)
    return _draw(randn, "torch.randn_like", ctx, list(like.shape), dtype or like.dtype)


def _randint(
    ctx: TypeCtx, low: Any, high: Any, size: Any = None, *, dtype: Any = None, device: Any = None
) -> torch.Tensor:
    del device
    if size is None:
        low, high, size = 0, low, high
    return _integers(ctx, "torch.randint", low, high, size, dtype or torch.int64)


def _randint_like(
    ctx: TypeCtx, like: Any, low: Any, high: Any = None, *, dtype: Any = None, device: Any = None
) -> torch.Tensor:
    del device
    like = _on_device(ctx, like)
    low, high = (0, low) if high is None else (low, high)
    dtype = dtype or like.dtype
    return _integers(ctx, "torch.randint_like", low, high, list(like.shape), dtype)


def _integers(
    ctx: TypeCtx, api: str, low: Any, high: Any, shape: Any, dtype: torch.dtype
) -> torch.Tensor:
    first, end = known_int(low), known_int(high)
    if first is None or end is None or first >= end:
        raise exc.InvalidRandintRange(ctx.span(), low=low, high=high, dtype=dtype)
    draw, sizes = implicit_draw(ctx, api, shape)
    whole = torch.int64 if dtype.is_floating_point else dtype
    drawn = ctx.record(randint, (draw, low, high, whole), ctx.fake(sizes, whole))
    return ctx.call_torch(torch.Tensor.to, drawn, dtype)


def _bernoulli(ctx: TypeCtx, like: Any, p: Any = None) -> torch.Tensor:
    like = _on_device(ctx, like)
    _float("torch.bernoulli", ctx, like.dtype)
    drawn = _draw(rand, "torch.bernoulli", ctx, list(like.shape), torch.float32)
    mask = ctx.call_torch(torch.lt, drawn, like if p is None else p)
    return ctx.call_torch(torch.Tensor.to, mask, like.dtype)


def _dropout(
    ctx: TypeCtx, x: Any, p: Any = 0.5, training: Any = True, inplace: Any = False
) -> torch.Tensor:
    x = _on_device(ctx, x)
    if inplace or not isinstance(training, bool):
        detail = "`training` is known at compile time, and nothing is changed in place"
        raise exc.InvalidRandArgument(ctx.span(), api="F.dropout", detail=detail)
    if isinstance(p, (int, float)) and not 0 <= p <= 1:
        raise exc.ProbabilityOutOfRange(ctx.span(), api="F.dropout", p=p)
    if not training:
        return x
    drawn = _draw(rand, "F.dropout", ctx, list(x.shape), torch.float32)
    kept = ctx.call_torch(torch.ge, drawn, p)
    # With p = 1 all are dropped, whatever a quotient by zero would be.
    whole = isinstance(p, (int, float)) and p == 1
    scaled = x if whole else ctx.call_torch(torch.div, x, 1 - p)
    return ctx.call_torch(torch.where, kept, scaled, 0.0)


def _normal(
    ctx: TypeCtx, mean: Any, std: Any = 1.0, size: Any = None, *, dtype: Any = None
) -> torch.Tensor:
    if size is None:
        like = ctx.call_torch(torch.add, _on_device(ctx, mean), _on_device(ctx, std))
        size, dtype = list(like.shape), dtype or like.dtype
    drawn = _draw(randn, "torch.normal", ctx, size, dtype)
    return ctx.call_torch(torch.add, ctx.call_torch(torch.mul, drawn, std), mean)


_CALLS: dict[Any, Callable[..., torch.Tensor]] = {
    torch.rand: _rand,
    torch.randn: _randn,
    torch.rand_like: _rand_like,
    torch.randn_like: _randn_like,
    torch.randint: _randint,
    torch.randint_like: _randint_like,
    torch.bernoulli: _bernoulli,
    torch.normal: _normal,
    torch.dropout: _dropout,
    F.dropout: _dropout,
}


# -- methods that fill a tensor ------------------------------------------------------------------


def _uniform_(ctx: TypeCtx, like: torch.Tensor, low: Any = 0.0, high: Any = 1.0) -> torch.Tensor:
    draw, sizes = implicit_draw(ctx, "Tensor.uniform_", list(like.shape))
    dtype = _float("Tensor.uniform_", ctx, like.dtype)
    return ctx.record(uniform, (draw, low, high, dtype), ctx.fake(sizes, dtype))


def _normal_(ctx: TypeCtx, like: torch.Tensor, mean: Any = 0.0, std: Any = 1.0) -> torch.Tensor:
    return _normal(ctx, mean, std, list(like.shape), dtype=like.dtype)


def _exponential_(ctx: TypeCtx, like: torch.Tensor, lambd: Any = 1.0) -> torch.Tensor:
    drawn = _draw(exponential, "Tensor.exponential_", ctx, list(like.shape), like.dtype)
    return ctx.call_torch(torch.div, drawn, lambd)


def _bernoulli_(ctx: TypeCtx, like: torch.Tensor, p: Any = 0.5) -> torch.Tensor:
    drawn = _draw(rand, "Tensor.bernoulli_", ctx, list(like.shape), torch.float32)
    return ctx.call_torch(torch.Tensor.to, ctx.call_torch(torch.lt, drawn, p), like.dtype)


# By the method's name: `(ctx, tensor, arguments) -> value`.
_METHODS: dict[str, Callable[..., torch.Tensor]] = {
    "bernoulli": _bernoulli,
    "bernoulli_": _bernoulli_,
    "exponential_": _exponential_,
    "normal_": _normal_,
    "uniform_": _uniform_,
}


def torch_rule(function: Any) -> Callable[..., torch.Tensor] | None:
    """What a random call of torch means in device code: `(ctx, arguments) -> value`."""
    owner = getattr(function, "__self__", None)
    if not isinstance(owner, torch.Tensor):
        return _CALLS.get(function) if isinstance(function, Hashable) else None
    rule = _METHODS.get(function.__name__)
    return None if rule is None else functools.partial(_of_method, rule, owner)


def _of_method(
    rule: Callable[..., torch.Tensor], owner: torch.Tensor, ctx: TypeCtx, *args: Any, **kwargs: Any
) -> torch.Tensor:
    return rule(ctx, owner, *args, **kwargs)
