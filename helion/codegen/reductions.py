"""Reductions along axes of a block; what padding holds must not reach the result."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.codegen import expression as ex
from helion.codegen.expression import Expression
from helion.codegen.masks import count, mask_of, mask_of_axes
from helion.ir.graph import Node, args_of, value_of
from helion.ir.masking import keep_inside
from helion.language import creation, memory

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from helion.codegen.operations import LoweringContext

prims = torch.ops.prims
aten = torch.ops.aten


def masked(kernel: LoweringContext, node: Any, dims: Sequence[int], identity: Any) -> Expression:
    """A value in its full shape, with `identity` where an index of `dims` is outside its range."""
    value = kernel.operand(node)
    if value.dtype is None:
        value = ex.cast(value, value_of(node).dtype)
    value = kernel.broadcast(value, value_of(node).shape)
    if _padding(node) == identity:
        return value
    return _where_inside(kernel, node, value, dims, identity)


def _where_inside(
    kernel: LoweringContext, node: Node, value: Expression, dims: Sequence[int], identity: Any
) -> Expression:
    inside = mask_of(kernel, node, dims)
    if inside is None:
        return value
    return ex.call("tl.where", [inside, value, ex.literal(identity)], value.dtype)


# What two known paddings make.
_FOLDED: dict[Any, Callable[[Any, Any], Any]] = {
    prims.add.default: operator.add,
    prims.sub.default: operator.sub,
    prims.mul.default: operator.mul,
}


def _padding(node: Any) -> Any:
    """What the padded lanes of a value hold, if known; of a number, itself.

    Nothing is known of a value that was broadcast: along its new dimension it is real everywhere.
    """
    if isinstance(node, (int, float)):
        return node
    if not isinstance(node, Node):
        return None
    args = args_of(node)
    if node.target is memory.load:
        # Lanes of a gather may be real where its own mask says nothing of this axis.
        return 0
    if node.target is prims.convert_element_type.default:
        return _padding(args[0])
    if node.target is prims.neg.default:
        inner = _padding(args[0])
        return None if inner is None else -inner
    if node.target in (creation.full, keep_inside):
        return _padding(args[1 if node.target is creation.full else 2])
    if node.target in _FOLDED:
        parts = [_padding(a) for a in args[:2]]
        return None if None in parts else _FOLDED[node.target](*parts)
    return None


def carried(
    kernel: LoweringContext, axes: Sequence[Any], old: Node, new: Any, value: Expression
) -> Expression:
    """The next value of a variable that a loop carries, as wide as the loop's own tiles.

    Lanes past the end of the range keep what they hold: the lane is real in other iterations.
    """
    if not isinstance(new, Node) or not isinstance(value_of(new), torch.Tensor):
        return value
    inside = mask_of_axes(kernel, new, axes)
    if inside is None or new is old or _leaves_padding(new, old):
        return value
    return ex.call("tl.where", [inside, value, kernel.operand(old)], value_of(new).dtype)


def _leaves_padding(new: Node, old: Node) -> bool:
    """Whether an accumulation adds nothing in the lanes past the end."""
    neutral: dict[Any, Callable[[torch.dtype], Any]] = {
        prims.add.default: lambda dtype: 0,
        prims.sub.default: lambda dtype: 0,
        prims.mul.default: lambda dtype: 1,
        prims.maximum.default: smallest,
        prims.minimum.default: largest,
    }
    if new.target not in neutral or old not in new.all_input_nodes:
        return False
    first, second = args_of(new)[:2]
    if second is old and new.target is not prims.sub.default:
        first, second = second, first
    return first is old and _padding(second) == neutral[new.target](value_of(new).dtype)


def inside(kernel: LoweringContext, node: Node) -> Expression:
    """`keep_inside`: the identity in the lanes that are outside of their range."""
    source, dims, identity = args_of(node)
    return masked(kernel, source, dims, identity)


def smallest(dtype: torch.dtype) -> Any:
    """The value that no element is below."""
    return float("-inf") if dtype.is_floating_point else _limit(dtype).min


def largest(dtype: torch.dtype) -> Any:
    """The value that no element is above."""
    return float("inf") if dtype.is_floating_point else _limit(dtype).max


def _limit(dtype: torch.dtype) -> Any:
    if dtype is torch.bool:
        return torch.iinfo(torch.uint8)
    return torch.iinfo(dtype)


IDENTITIES: dict[Any, Callable[[torch.dtype], Any]] = {
    prims.sum.default: lambda dtype: 0,
    prims.prod.default: lambda dtype: 1,
    prims.amax.default: smallest,
    prims.amin.default: largest,
}


def _function(target: Any, dtype: torch.dtype) -> str:
    if target is prims.sum.default:
        return "tl.sum"
    if target is prims.prod.default:
        return "triton_helpers.prod"
    end = "max" if target is prims.amax.default else "min"
    return f"triton_helpers.{end}_nan" if dtype.is_floating_point else f"tl.{end}"


def reduce(kernel: LoweringContext, node: Node) -> Expression:
    """sum, prod, amax, amin over one or several dimensions."""
    source, given = args_of(node)[0], args_of(node)[1]
    sizes = list(value_of(source).shape)
    dims = sorted(range(len(sizes)) if given is None else given, reverse=True)
    dtype = kernel.dtype_of(source)
    identity = IDENTITIES[node.target](dtype)
    value = masked(kernel, source, dims, identity)
    result = kernel.dtype_of(node)
    if result is not dtype and dtype is not torch.bool:
        value = ex.cast(value, result)
    shape = list(value.shape)
    for dim in dims:
        del shape[dim]
        text = f"{_function(node.target, dtype)}({value.text}, {dim})"
        value = Expression(text, result, tuple(shape))
    return value


def index_of_extreme(kernel: LoweringContext, node: Node) -> list[Expression]:
    """`max.dim`, `min.dim`: the values and their first indices."""
    source, given = args_of(node)[0], args_of(node)[1]
    name = "max" if node.target is aten.max.dim else "min"
    keep = bool(args_of(node)[2]) if len(args_of(node)) > 2 else False
    return _with_index(kernel, node, source, int(given), name, keep)


def argument_of_extreme(kernel: LoweringContext, node: Node) -> Expression:
    """`argmax`, `argmin`."""
    source, given = args_of(node)[0], args_of(node)[1]
    name = "max" if node.target is aten.argmax.default else "min"
    keep = bool(args_of(node)[2]) if len(args_of(node)) > 2 else False
    if given is None and len(value_of(source).shape) != 1:
        detail = f"`arg{name}` over several dimensions at once"
        raise exc.BackendUnsupported(backend="triton", detail=detail)
    return _with_index(kernel, node, source, int(given or 0), name, keep)[1]


def _with_index(
    kernel: LoweringContext, node: Node, source: Any, dim: int, name: str, keep: bool
) -> list[Expression]:
    sizes = list(value_of(source).shape)
    dim %= len(sizes)
    dtype = kernel.dtype_of(source)
    identity = smallest(dtype) if name == "max" else largest(dtype)
    value = masked(kernel, source, [dim], identity)
    length = kernel.size_text(sizes[dim])
    row = Expression(f"tl.arange(0, {length})", torch.int32, (sizes[dim],))
    index = kernel.broadcast(kernel.place(row, 1, dim, len(sizes)), sizes)
    best, place = (kernel.names.fresh(w) for w in (name, f"{name}_index"))
    kernel.body.line(
        f"{best}, {place} = triton_helpers.{name}_with_index({value.text}, {index.text}, {dim})"
    )
    shape = tuple(s for d, s in enumerate(sizes) if d != dim)
    results = [Expression(best, dtype, shape), Expression(place, torch.int32, shape)]
    results[1] = ex.cast(results[1], torch.int64)
    if keep and shape:
        results = [_keep(r, dim, len(sizes)) for r in results]
    return results


def _keep(value: Expression, dim: int, rank: int) -> Expression:
    text = ", ".join("None" if d == dim else ":" for d in range(rank))
    shape = list(value.shape)
    shape.insert(dim, 1)
    return Expression(f"{value.within(ex.ATOM)}[{text}]", value.dtype, tuple(shape))


def count_inside(kernel: LoweringContext, node: Node) -> Expression:
    """`count_inside`: the divisor of a mean."""
    number = count(kernel, args_of(node)[0], args_of(node)[1])
    if number.text.isdigit():
        return ex.literal(float(number.text))
    return ex.cast(number.typed(number.dtype or kernel.index_dtype), kernel.dtype_of(node))


def variance(kernel: LoweringContext, node: Node) -> Expression:
    """`prims.var`: the mean of squared distances, in two passes over the block."""
    source, given, correction = args_of(node)[0], args_of(node)[1], args_of(node)[2]
    sizes = list(value_of(source).shape)
    dims: list[int] = list(range(len(sizes)) if given is None else given)
    total_count = count(kernel, source, dims)
    value = masked(kernel, source, dims, 0)
    mean = ex.infix("/", _sum(value, dims, keep=True), total_count, ex.PRODUCT, value.dtype)
    distance = ex.infix("-", value, mean, ex.SUM, value.dtype)
    distance = _where_inside(kernel, source, distance, dims, 0.0)
    name = kernel.names.fresh("distance")
    kernel.body.line(f"{name} = {distance.text}")
    square = Expression(f"{name} * {name}", value.dtype, tuple(value.shape), ex.PRODUCT)
    total = _sum(square, dims, keep=False)
    if correction != 0:
        total_count = ex.infix("-", total_count, ex.literal(float(correction)), ex.SUM, None)
    return ex.infix("/", total, total_count, ex.PRODUCT, value.dtype)


def _sum(value: Expression, dims: Sequence[int], *, keep: bool) -> Expression:
    shape = list(value.shape)
    text = value.text
    for dim in sorted(dims, reverse=True):
        text = f"tl.sum({text}, {dim}{', keep_dims=True' if keep else ''})"
        shape[dim : dim + 1] = [1] if keep else []
    return Expression(text, value.dtype, tuple(shape))
