"""Views of blocks: reshapes that leave the padding where it is, transposes, stacks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.codegen import expression as ex
from helion.codegen.expression import Expression
from helion.codegen.lanes import dimension_groups
from helion.codegen.reductions import masked
from helion.ir.graph import Node, args_of, facts, value_of
from helion.ir.symbols import BlockSymbol, expr_of, known_int, same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.codegen.operations import LoweringContext


def broadcast_in_dim(kernel: LoweringContext, node: Node) -> Expression:
    """New dimensions of one lane; what meets them broadcasts."""
    value = kernel.operand(args_of(node)[0])
    rank = len(args_of(node)[1])
    dims: Sequence[int] = args_of(node)[2]
    if not value.shape or rank == len(value.shape) or kernel.flat is not None:
        return value
    return _with_dimensions(value, [d for d in range(rank) if d not in dims])


def _with_dimensions(value: Expression, new: Sequence[int]) -> Expression:
    """A value with dimensions of one lane at these places of the result."""
    if not new or not value.shape:
        return value
    rest = iter(value.shape)
    rank = len(value.shape) + len(new)
    shape = tuple(1 if d in new else next(rest) for d in range(rank))
    text = ", ".join("None" if d in new else ":" for d in range(rank))
    return Expression(f"{value.within(ex.ATOM)}[{text}]", value.dtype, shape)


def transpose(kernel: LoweringContext, node: Node) -> Expression:
    """The dimensions in another order."""
    source, order = args_of(node)[:2]
    value = kernel.operand(source)
    if not value.shape or list(order) == sorted(order):
        return value
    value = kernel.broadcast(value, value_of(source).shape)
    shape = tuple(value.shape[d] for d in order)
    if list(order) == [1, 0]:
        return Expression(f"tl.trans({value.text})", value.dtype, shape)
    return Expression(f"tl.permute({value.text}, {list(order)})", value.dtype, shape)


# -- reshape -------------------------------------------------------------------------------------


def reshape(kernel: LoweringContext, node: Node) -> Expression:
    """The same elements in row-major order, in another shape."""
    source = args_of(node)[0]
    before, after = list(value_of(source).shape), list(value_of(node).shape)
    value = kernel.operand(source)
    groups = dimension_groups(before, after)
    moves = [(o, n) for o, n in groups if not _is_kept(o, n, before, after)]
    if not value.shape:
        # A scalar broadcasts to dimensions of one element by itself.
        return value if all(known_int(s) == 1 for s in after) else _filled(kernel, value, after)
    if moves:
        for olds, news in moves:
            _check_padding(kernel, [before[d] for d in olds], [after[d] for d in news])
        value = kernel.broadcast(value, before)
        return _reshaped(kernel, value, after, after)
    if not any(olds and not news for olds, news in groups):
        return _with_dimensions(value, [n for o, news in groups if not o for n in news])
    shape: list[Any] = []
    for olds, news in groups:
        shape += [value.shape[olds[0]] if olds else 1] * len(news)
    return _reshaped(kernel, value, shape, after)


def _is_kept(
    olds: Sequence[int], news: Sequence[int], before: Sequence[Any], after: Sequence[Any]
) -> bool:
    """Whether a group is a dimension that stays, or one of a single element that comes or goes."""
    if len(olds) == len(news) == 1:
        return same(before[olds[0]], after[news[0]])
    return len(olds) + len(news) == 1


def _reshaped(
    kernel: LoweringContext, value: Expression, shape: Sequence[Any], sizes: Sequence[Any]
) -> Expression:
    if not sizes:
        # Triton has no blocks without dimensions: a sum over one element is that element.
        return Expression(f"tl.sum(tl.reshape({value.text}, [1]), 0)", value.dtype)
    text = ", ".join(kernel.size_text(s) for s in shape)
    return Expression(f"tl.reshape({value.text}, [{text}])", value.dtype, tuple(shape))


def _filled(kernel: LoweringContext, value: Expression, sizes: Sequence[Any]) -> Expression:
    return kernel.broadcast(value, sizes)


def _check_padding(kernel: LoweringContext, olds: Sequence[Any], news: Sequence[Any]) -> None:
    """Whether the lanes of the old dimensions are those of the new ones, padding included.

    Only the slowest dimension may be padded: what comes after it would move with the padding.
    """
    if all(_is_exact(kernel, s) for s in (*olds, *news)):
        return
    known = [[known_int(s) for s in sizes] for sizes in (olds, news)]
    if all(s is not None for sizes in known for s in sizes):
        padded = [math.prod(_padded(s) for s in sizes if s is not None) for sizes in known]
        slow = [[s for s in sizes if s != 1][1:] for sizes in known]
        if padded[0] == padded[1] and all(_padded(s) == s for sizes in slow for s in sizes if s):
            return
    shapes = " to ".join(
        f"[{', '.join(str(known_int(s) or '?') for s in ss)}]" for ss in (olds, news)
    )
    detail = (
        f"a reshape of dimensions {shapes}: blocks are padded to powers of two, "
        "and this one would move the padding"
    )
    raise exc.BackendUnsupported(backend="triton", detail=detail)


def _is_exact(kernel: LoweringContext, size: Any) -> bool:
    """Whether a dimension has as many lanes as elements."""
    expr: Any = expr_of(size)
    for symbol in expr.free_symbols:
        origin = kernel.program.symbols.origins.get(symbol)
        known = kernel.blocks.get(origin.block) if isinstance(origin, BlockSymbol) else None
        if known is None:
            return False
        expr = expr.subs(symbol, known)
    return _padded(int(expr)) == int(expr)


def _padded(size: int) -> int:
    return 1 << (size - 1).bit_length() if size > 1 else 1


# -- several values ------------------------------------------------------------------------------


def stack(kernel: LoweringContext, node: Node) -> Expression:
    """Values side by side in a new dimension: each lane selects its own."""
    values, dim = args_of(node)[0], args_of(node)[1]
    return _stacked(kernel, values, dim % value_of(node).dim())


def _stacked(kernel: LoweringContext, values: Sequence[Any], dim: int) -> Expression:
    dtype = kernel.dtype_of(values[0])
    rank = value_of(values[0]).dim() + 1
    parts = [ex.cast(kernel.operand(v), dtype) for v in values]
    parts = [_with_dimensions(p, [dim]) if p.shape else p for p in parts]
    if len(parts) == 1:
        return kernel.broadcast(
            parts[0], [*value_of(values[0]).shape[:dim], 1, *value_of(values[0]).shape[dim:]]
        )
    lane = Expression(f"tl.arange(0, {_padded(len(parts))})", torch.int32, (len(parts),))
    lane = kernel.place(lane, 1, dim, rank)
    result = parts[-1]
    for k in reversed(range(len(parts) - 1)):
        chosen = ex.infix("==", lane, ex.literal(k), ex.COMPARE, torch.bool)
        result = ex.call("tl.where", [chosen, parts[k], result], dtype)
    return result


def concatenate(kernel: LoweringContext, node: Node) -> Expression:
    """Values one after the other along a dimension: a stack whose two dimensions become one."""
    values, dim = args_of(node)[0], args_of(node)[1] if len(args_of(node)) > 1 else 0
    after = list(value_of(node).shape)
    dim %= len(after)
    lengths = [value_of(v).shape[dim] for v in values]
    if any(not same(n, lengths[0]) for n in lengths):
        texts = ", ".join(str(known_int(n) or "?") for n in lengths)
        detail = f"torch.cat along dimensions of different lengths: {texts}"
        raise exc.BackendUnsupported(backend="triton", detail=detail)
    _check_padding(kernel, [len(values), lengths[0]], [after[dim]])
    sizes = list(value_of(values[0]).shape)
    stacked = kernel.broadcast(
        _stacked(kernel, values, dim), [*sizes[:dim], len(values), *sizes[dim:]]
    )
    return _reshaped(kernel, stacked, after, after)


def join(kernel: LoweringContext, node: Node) -> Expression:
    """`hl.join`: two values in a new last dimension."""
    sizes = value_of(node).shape
    parts = [kernel.broadcast(kernel.operand(a), sizes[:-1]) for a in args_of(node)]
    return Expression(f"tl.join({', '.join(p.text for p in parts)})", parts[0].dtype, tuple(sizes))


def split(kernel: LoweringContext, node: Node) -> None:
    """`hl.split`: the two halves of the last dimension."""
    source = args_of(node)[0]
    value = kernel.broadcast(kernel.operand(source), value_of(source).shape)
    readers = {args_of(user)[1]: facts(user).name for user in node.users}
    names = [kernel.names.fresh(readers.get(i) or wish) for i, wish in enumerate(("even", "odd"))]
    kernel.body.line(f"{', '.join(names)} = tl.split({value.text})")
    shape = tuple(value_of(source).shape[:-1])
    kernel.results[node] = [Expression(name, value.dtype, shape) for name in names]


def gather(kernel: LoweringContext, node: Node) -> Expression:
    """`torch.gather`: an index for each element of the result, along one dimension."""
    source, dim, index = args_of(node)[:3]
    before, sizes = value_of(source).shape, value_of(index).shape
    rank = len(sizes)
    if any(
        not same(a, b)
        for d, (a, b) in enumerate(zip(before, sizes, strict=True))
        if d != dim % rank
    ):
        detail = "torch.gather with an index that is shorter than the source in another dimension"
        raise exc.BackendUnsupported(backend="triton", detail=detail)
    value = kernel.broadcast(kernel.operand(source), before)
    # An index past the end of a tile may be anything, and must stay inside of the source.
    places = ex.cast(masked(kernel, index, range(rank), 0), torch.int32)
    text = f"tl.gather({value.text}, {places.text}, {dim % rank})"
    return Expression(text, value.dtype, tuple(sizes))
