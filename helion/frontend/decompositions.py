"""How torch's operations come down to prims, where torch's own decompositions do not serve."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
import torch._refs
import torch._refs.linalg
from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND
from torch._prims_common.wrappers import elementwise_type_promotion_wrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

aten = torch.ops.aten
prims = torch.ops.prims

_DEFAULT = ELEMENTWISE_TYPE_PROMOTION_KIND.DEFAULT
_INT_TO_FLOAT = ELEMENTWISE_TYPE_PROMOTION_KIND.INT_TO_FLOAT

# Kept whole: Triton has a direct form, and the decomposition would hide what the author wrote.
KEPT = frozenset(
    {
        aten.argmax.default,
        aten.argmin.default,
        aten.gather.default,
        aten.stack.default,
        aten.cat.default,
    }
)

# Matrix products with the plain form of each, and those that add to an accumulator.
PRODUCTS = {
    aten.mm.default: aten.mm.default,
    aten.mm.dtype: aten.mm.default,
    aten.bmm.default: aten.bmm.default,
    aten.bmm.dtype: aten.bmm.default,
}
ACCUMULATING = frozenset({aten.addmm.default, aten.baddbmm.default})

MEANS = frozenset({aten.mean.default, aten.mean.dim})

# The same elements in another shape: one node, whatever the way there.
RESHAPES = frozenset(
    {
        aten.view.default,
        aten._unsafe_view.default,
        aten.reshape.default,
        aten._reshape_alias.default,
        aten.squeeze.default,
        aten.squeeze.dim,
        aten.squeeze.dims,
    }
)

# Kept whole as well; the operands are first converted to the dtype that torch computes in.
_PROMOTED = {
    aten.floor_divide.default: _DEFAULT,
    aten.floor_divide.Scalar: _DEFAULT,
    aten.sigmoid.default: _INT_TO_FLOAT,
    aten.special_bessel_y0.default: _INT_TO_FLOAT,
    aten.special_bessel_y1.default: _INT_TO_FLOAT,
    aten.special_modified_bessel_i0.default: _INT_TO_FLOAT,
    aten.special_modified_bessel_i1.default: _INT_TO_FLOAT,
}

# The quotient is rounded to a whole number, and must not be off before.
_DIVISIONS = frozenset({aten.div.Tensor_mode, aten.div.Scalar_mode})


def promotion_of(function: Any, rounding_mode: str | None = None) -> Any:
    """How the operands of an operation that is kept whole are promoted; None if it is not kept."""
    if function in _DIVISIONS:
        return _DEFAULT if rounding_mode == "trunc" else None
    return _PROMOTED.get(function)


# New tensors, and what they hold: a number, or the argument at a position.
_ZEROS = frozenset(
    {
        aten.zeros.default,
        aten.zeros_like.default,
        aten.new_zeros.default,
        # What nobody has written to yet may hold anything.
        aten.empty.memory_format,
        aten.empty_like.default,
        aten.empty_permuted.default,
        aten.empty_strided.default,
        aten.new_empty.default,
        prims.empty_strided.default,
    }
)
_ONES = frozenset({aten.ones.default, aten.ones_like.default, aten.new_ones.default})
_FILLED = {aten.full.default: 1, aten.full_like.default: 1, aten.new_full.default: 2}
CREATIONS = _ZEROS | _ONES | _FILLED.keys()


def fill_of(function: Any, args: Sequence[Any]) -> Any:
    """What the new tensor that one of `CREATIONS` makes is filled with."""
    if function in _FILLED:
        return args[_FILLED[function]]
    return 1 if function in _ONES else 0


def out_of_place(function: Any) -> Any:
    """`aten.add` of `aten.add_`; None if `function` is not the form in place of another."""
    name = function._schema.name.removeprefix("aten::")
    if function.namespace != "aten" or not name.endswith("_") or name.endswith("__"):
        return None
    return getattr(aten, name[:-1], None)


def _angle(x: torch.Tensor) -> torch.Tensor:
    """The angle of a real number: 0 or pi, and NaN stays."""
    negative = x < 0
    if not x.is_floating_point():
        return negative.to(torch.get_default_dtype()) * math.pi
    return torch.where(torch.isnan(x), x, negative.to(x.dtype) * math.pi)


def _clamp(x: torch.Tensor, low: Any = None, high: Any = None) -> torch.Tensor:
    """NaN in any operand stays NaN, and where `low` is above `high` the result is `high`."""
    if low is not None:
        x = torch._refs.maximum(x, low)
    return x if high is None else torch._refs.minimum(x, high)


def _frac(x: torch.Tensor) -> torch.Tensor:
    """Torch's own, in 2.11, gives -0.0 for -0.0."""
    return x - torch.trunc(x)


def _mvlgamma(x: torch.Tensor, p: int) -> torch.Tensor:
    """Source: https://en.wikipedia.org/wiki/Multivariate_gamma_function."""
    terms = [torch.lgamma(x - i / 2) for i in range(p)]
    return sum(terms[1:], terms[0]) + p * (p - 1) / 4 * math.log(math.pi)


def _sign(x: torch.Tensor) -> torch.Tensor:
    if x.dtype is torch.bool:
        return x
    return (x > 0).to(x.dtype) - (x < 0).to(x.dtype)


def _rrelu(
    x: torch.Tensor,
    noise: torch.Tensor,
    low: float = 1 / 8,
    high: float = 1 / 3,
    training: bool = False,
) -> Any:
    """Outside of training the slope is the mean of its bounds; inside it is drawn."""
    del noise
    return NotImplemented if training else torch.nn.functional.leaky_relu(x, (low + high) / 2)


@elementwise_type_promotion_wrapper(
    type_promoting_args=("base", "exponent"), type_promotion_kind=_DEFAULT
)
def _multiplied(base: torch.Tensor, exponent: Any) -> torch.Tensor:
    if exponent == 3:
        return base * base * base
    return torch.reciprocal(base if exponent == -1 else base * base)


def _pow(base: torch.Tensor, exponent: Any) -> torch.Tensor:
    """A power with a known exponent: the products and roots that torch computes it with."""
    if base.is_floating_point() and isinstance(exponent, (int, float)):
        if exponent == -0.5:
            return torch.rsqrt(base)
        if exponent in (3, -1, -2):
            return _multiplied(base, exponent)
    return torch._refs.pow(base, exponent)


@elementwise_type_promotion_wrapper(
    type_promoting_args=("start", "end"), type_promotion_kind=_DEFAULT
)
def _lerp(start: torch.Tensor, end: torch.Tensor, weight: Any) -> torch.Tensor:
    """`start` to `end`; each end is met exactly, so the nearer one is where it starts from."""
    if weight < 0.5:
        return start + weight * (end - start)
    return end - (end - start) * (1 - weight)


def _lerp_scalar(start: torch.Tensor, end: torch.Tensor, weight: Any) -> torch.Tensor:
    if isinstance(weight, (int, float)):
        return _lerp(start, end, weight)
    return torch.lerp(start, end, torch.full([], weight, dtype=start.dtype, device=start.device))


def _vector_norm(
    x: torch.Tensor, order: Any = 2, dim: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """Torch's own; in 2.11 it takes a single element for no reduction if `dim` is negative."""
    if dim is not None and x.dim() > 0:
        dim = [d % x.dim() for d in dim]
    return torch._refs.linalg.vector_norm(x, order, dim, *args, **kwargs)


def _var_mean(x: torch.Tensor, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, torch.Tensor]:
    dim, keepdim = args[0] if args else None, kwargs.get("keepdim", False)
    return torch.var(x, *args, **kwargs), torch.mean(x, dim, keepdim)


# Ours in the place of torch's, which are missing or long.
DECOMPOSITIONS: dict[Any, Callable[..., Any]] = {
    aten.__lshift__.Tensor: torch.bitwise_left_shift,
    aten.__lshift__.Scalar: torch.bitwise_left_shift,
    aten.__rshift__.Tensor: torch.bitwise_right_shift,
    aten.__rshift__.Scalar: torch.bitwise_right_shift,
    aten.angle.default: _angle,
    aten.clamp.default: _clamp,
    aten.clamp.Tensor: _clamp,
    aten.clamp_min.default: _clamp,
    aten.clamp_min.Tensor: _clamp,
    aten.clamp_max.default: lambda x, high: _clamp(x, None, high),
    aten.clamp_max.Tensor: lambda x, high: _clamp(x, None, high),
    aten.frac.default: _frac,
    aten.lerp.Scalar: _lerp_scalar,
    aten.linalg_vector_norm.default: _vector_norm,
    aten.mvlgamma.default: _mvlgamma,
    aten.pow.Tensor_Scalar: _pow,
    aten.rrelu_with_noise.default: _rrelu,
    aten.sign.default: _sign,
    aten.var_mean.correction: _var_mean,
}
