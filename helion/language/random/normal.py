"""Distributions of the whole line: `randn`, `exponential`, `gumbel`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.ir.graph import Node, args_of, value_of
from helion.language import _philox
from helion.language._op import LowerCtx, TypeCtx, op
from helion.language.random.draws import (
    eager_offsets,
    eager_seed,
    seed_and_offset,
    typed_draw,
)
from helion.language.random.packed import choose, eager_packed, packed_values
from helion.language.random.uniform import (
    check_float,
    eager_unit,
    eager_unit64,
    unit64,
    unit_values,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.language._eager import EagerMode

# `tl.randn` takes the logarithm of nothing smaller, which keeps it finite.
_SMALLEST = 1.0e-7
# Half of the smallest step of a unit number, which stands for an exact zero.
_HALF_STEP32, _HALF_STEP64 = 2.0**-32, 2.0**-54


@op
def randn(
    shape: Sequence[Any],
    seed: Any,
    device: Any = None,
    offsets: Any = None,
    *,
    origin: Sequence[Any] | None = None,
    extents: Sequence[Any] | None = None,
    packed: bool = False,
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """Numbers of the standard normal distribution, by Box-Muller.

    With u0 to u3 the numbers of `hl.rand4x` at the element's offset,
    `sqrt(-2 log u0) cos(2 pi u1)`, where u0 is at least 1e-7: equal to `tl.randn`, finite, at most
    5.68 in size. With `packed`, the values of a group are `tl.randn4x`: cosine and sine of the
    pair u0, u1, then of u2, u3.

    Args:
        shape: as in `hl.rand`.
        seed: as in `hl.rand`.
        device: as in `hl.rand`.
        offsets: as in `hl.rand`.
        origin: as in `hl.rand`.
        extents: as in `hl.rand`.
        packed: as in `hl.rand`.
        dtype: float32; float16 and bfloat16 are float32 rounded to nearest; float64 is computed in
            float64 of 53 bits each, u0 of words 0 and 1 and at least 2**-54, u1 of words 2 and 3,
            and is not packed.

    Source: Box and Muller, "A note on the generation of random normal deviates", Annals of
        Mathematical Statistics 29(2), 1958; constants as in `tl.randn`.
    """
    raise exc.NotInsideKernel(api="hl.randn")


@op
def exponential(
    shape: Sequence[Any],
    seed: Any,
    device: Any = None,
    offsets: Any = None,
    *,
    origin: Sequence[Any] | None = None,
    extents: Sequence[Any] | None = None,
    packed: bool = False,
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """Numbers of the exponential distribution of rate 1: `-log(u)`, with u as in `hl.rand`.

    An exact 0 counts as 2**-32 (2**-54 in float64), half of the smallest step: the numbers lie in
    [5.9e-8, 22.2], never 0 and never infinite. Divide by the rate for another one.

    Args:
        shape: as in `hl.rand`.
        seed: as in `hl.rand`.
        device: as in `hl.rand`.
        offsets: as in `hl.rand`.
        origin: as in `hl.rand`.
        extents: as in `hl.rand`.
        packed: as in `hl.rand`.
        dtype: float32, float64; float16 and bfloat16 are float32 rounded to nearest.

    Source: inversion of the distribution function; Devroye, "Non-Uniform Random Variate
        Generation", 1986, II.2.
    """
    raise exc.NotInsideKernel(api="hl.exponential")


@op
def gumbel(
    shape: Sequence[Any],
    seed: Any,
    device: Any = None,
    offsets: Any = None,
    *,
    origin: Sequence[Any] | None = None,
    extents: Sequence[Any] | None = None,
    packed: bool = False,
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    """Numbers of the Gumbel distribution: `-log(x)`, with x as in `hl.exponential`.

    They lie in [-3.1, 16.7], never infinite. The index of the largest `logit + gumbel` of a row is
    a sample of the row's softmax.

    Args:
        shape: as in `hl.rand`.
        seed: as in `hl.rand`.
        device: as in `hl.rand`.
        offsets: as in `hl.rand`.
        origin: as in `hl.rand`.
        extents: as in `hl.rand`.
        packed: as in `hl.rand`.
        dtype: float32, float64; float16 and bfloat16 are float32 rounded to nearest.

    Source: Gumbel, "Statistical Theory of Extreme Values", 1954; Maddison, Tarlow and Minka, "A*
        sampling", NeurIPS 2014, for the sampling.

    Example: `token = (logits[row, :] + hl.gumbel([row, n], seed)).argmax(-1)`
    """
    raise exc.NotInsideKernel(api="hl.gumbel")


def _typed(target: Any) -> None:
    """The type rule that these operations share."""

    @target.type_rule
    def _(
        ctx: TypeCtx,
        shape: Any,
        seed: Any,
        device: Any,
        offsets: Any,
        *,
        origin: Any,
        extents: Any,
        packed: Any,
        dtype: Any,
    ) -> torch.Tensor:
        api = f"hl.{target.name}"
        check_float(ctx, api, dtype, packed)
        draw, sizes = typed_draw(ctx, api, shape, seed, device, offsets, origin, extents, packed)
        return ctx.record(target, (draw, dtype), ctx.fake(sizes, dtype))


_typed(randn)
_typed(exponential)
_typed(gumbel)


@randn.lowering
def _(ctx: LowerCtx, node: Node) -> Any:
    draw, dtype = args_of(node)
    return ctx.cast(_normal(ctx, draw, value_of(node).shape, dtype), dtype)


def _normal(ctx: LowerCtx, draw: Any, sizes: Sequence[Any], dtype: Any) -> Any:
    if draw.packed:
        return packed_values(ctx, draw, sizes, "tl.randn4x", torch.float32)
    arguments = seed_and_offset(ctx, draw)
    if dtype is not torch.float64:
        return ctx.call("tl.randn", arguments, torch.float32)
    drawn = ctx.call("tl.randint4x", arguments, torch.float64)
    w = ctx.assign(["w0", "w1", "w2", "w3"], drawn.text)
    (u0,) = ctx.assign(["u0"], f"tl.maximum({unit64(w[0], w[1])}, {_HALF_STEP64!r})")
    (u1,) = ctx.assign(["u1"], unit64(w[2], w[3]))
    text = f"tl.sqrt(-2.0 * tl.log({u0})) * tl.cos({2 * math.pi!r} * {u1})"
    return ctx.value(text, torch.float64, drawn.shape, loose=True)


@randn.reference
def _(
    mode: EagerMode,
    shape: Any,
    seed: Any,
    device: Any,
    offsets: Any,
    origin: Any,
    extents: Any,
    packed: bool,
    dtype: torch.dtype,
) -> torch.Tensor:
    del device
    if packed:
        words, number, _ = eager_packed(mode, shape, seed, origin, extents, 32)
        u = [_philox.uniform(w) for w in words]
        values = [*_pair(u[0], u[1], _SMALLEST), *_pair(u[2], u[3], _SMALLEST)]
        return choose(values, number).to(dtype)
    places = eager_offsets(mode, shape, offsets, origin, extents)
    w = _philox.philox4x32(eager_seed(seed), places)
    if dtype is torch.float64:
        return _pair(eager_unit64(w[0], w[1]), eager_unit64(w[2], w[3]), _HALF_STEP64)[0]
    return _pair(_philox.uniform(w[0]), _philox.uniform(w[1]), _SMALLEST)[0].to(dtype)


def _pair(u0: torch.Tensor, u1: torch.Tensor, smallest: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Box-Muller."""
    radius = torch.sqrt(-2.0 * torch.log(u0.clamp(min=smallest)))
    angle = 2 * math.pi * u1
    return radius * torch.cos(angle), radius * torch.sin(angle)


@exponential.lowering
def _(ctx: LowerCtx, node: Node) -> Any:
    draw, dtype = args_of(node)
    return ctx.cast(_exponential(ctx, draw, value_of(node).shape, dtype), dtype)


def _exponential(ctx: LowerCtx, draw: Any, sizes: Sequence[Any], dtype: torch.dtype) -> Any:
    unit = unit_values(ctx, draw, sizes, dtype)
    least = _HALF_STEP64 if unit.dtype is torch.float64 else _HALF_STEP32
    text = f"-tl.log(tl.maximum({unit.text}, {least!r}))"
    return ctx.value(text, unit.dtype, unit.shape, loose=True)


@exponential.reference
def _(
    mode: EagerMode,
    shape: Any,
    seed: Any,
    device: Any,
    offsets: Any,
    origin: Any,
    extents: Any,
    packed: bool,
    dtype: torch.dtype,
) -> torch.Tensor:
    del device
    unit = eager_unit(mode, shape, seed, offsets, origin, extents, packed, dtype)
    return _eager_exponential(unit).to(dtype)


def _eager_exponential(unit: torch.Tensor) -> torch.Tensor:
    return -unit.clamp(min=_HALF_STEP64 if unit.dtype is torch.float64 else _HALF_STEP32).log()


@gumbel.lowering
def _(ctx: LowerCtx, node: Node) -> Any:
    draw, dtype = args_of(node)
    x = _exponential(ctx, draw, value_of(node).shape, dtype)
    return ctx.cast(ctx.value(f"-tl.log({x.text})", x.dtype, x.shape, loose=True), dtype)


@gumbel.reference
def _(
    mode: EagerMode,
    shape: Any,
    seed: Any,
    device: Any,
    offsets: Any,
    origin: Any,
    extents: Any,
    packed: bool,
    dtype: torch.dtype,
) -> torch.Tensor:
    del device
    unit = eager_unit(mode, shape, seed, offsets, origin, extents, packed, dtype)
    return -_eager_exponential(unit).log().to(dtype)
