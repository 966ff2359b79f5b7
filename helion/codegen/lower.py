"""Device graphs to Triton statements: one walk over the nodes, one table of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.codegen import expression as ex
from helion.codegen import load_store, reductions
from helion.codegen import matmul as matmul_codegen
from helion.codegen import views as views_codegen
from helion.codegen.atomics import atomic
from helion.codegen.control import lower_for, lower_if
from helion.codegen.expression import Expression
from helion.codegen.ordering import block_barrier
from helion.codegen.pointwise import POINTWISE, POSITIVE
from helion.codegen.signs import is_never_negative
from helion.ir.control import CONTROL_FLOW, for_loop, getitem, if_else
from helion.ir.graph import Node, args_of, facts, value_of
from helion.ir.masking import count_inside, keep_inside
from helion.ir.printer import dtype_name
from helion.ir.symbols import is_number, known_int
from helion.language import atomics, creation, matmul, memory, tiles, views
from helion.language._op import Op

if TYPE_CHECKING:
    from collections.abc import Callable

    from helion.codegen.operations import LoweringContext

aten = torch.ops.aten
prims = torch.ops.prims

# An expression longer than this gets a name, even if it is used once.
_LONGEST_INLINE = 72


def lower_graph(kernel: LoweringContext, graph: torch.fx.Graph) -> list[Any]:
    """Emit a graph's statements; returns the expressions of its output, None for numbers."""
    line: tuple[str, int] | None = None
    for node in graph.nodes:
        if node.op == "output":
            outputs = args_of(node)[0]
            return [kernel.operand(o) if isinstance(o, Node) else None for o in outputs]
        if node.op != "call_function":
            continue
        span = facts(node).span
        if span is not None and (span.filename, span.line) != line:
            line = (span.filename, span.line)
            kernel.origin(span)
        with exc.pointing_at(span):
            if node.target is for_loop:
                lower_for(kernel, node, lower_graph)
            elif node.target is if_else:
                lower_if(kernel, node, lower_graph)
            else:
                lower_node(kernel, node)
    return []


def lower_node(kernel: LoweringContext, node: Node) -> None:
    """Lower one node; its expression stays inline if that reads well."""
    result = _lower(kernel, node)
    if result is None:
        return
    expression, wish = result
    if _needs_name(node, expression):
        expression = kernel.bind(node, expression, wish)
    kernel.expressions[node] = expression


def _needs_name(node: Node, value: Expression) -> bool:
    if value.binds == ex.ATOM and value.text.isidentifier():
        return False
    if node.target is memory.load:
        return True
    if not node.users or _is_only_stored(node) or _is_only_assigned(node):
        return False
    uses = sum(_reads(user, node) for user in node.users)
    in_region = any(_enters_region(u, node) for u in node.users)
    return (
        uses > 1 or in_region or facts(node).name is not None or len(value.text) > _LONGEST_INLINE
    )


def _is_only_stored(node: Node) -> bool:
    """Whether the one use of a value is a store, which gives it a name if its line gets long."""
    if len(node.users) != 1 or facts(node).name is not None:
        return False
    (user,) = node.users
    return user.target is memory.store and _reads(user, node) == 1 and args_of(user)[2] is node


def _is_only_assigned(node: Node) -> bool:
    """Whether a value is computed last in a loop or branch, for the variable that it yields."""
    if len(node.users) != 1 or node.next.op != "output":
        return False
    return _reads(node.next, node) == 1


def _reads(user: Node, node: Node) -> int:
    """How often a node reads another: twice in `x * x`."""
    found: list[Node] = []
    torch.fx.map_arg(user.args, found.append)
    return found.count(node)


def _enters_region(user: Node, node: Node) -> bool:
    """Whether a value is used inside of a loop or branch; the start of a variable is not."""
    if user.target is for_loop:
        return node in args_of(user)[4]
    return user.target is if_else and any(node in given for given in args_of(user)[3:])


def _lower(kernel: LoweringContext, node: Node) -> tuple[Expression, str] | None:
    target: Any = node.target
    if target in POINTWISE:
        return _pointwise(kernel, node), target._opname
    rule = _RULES.get(target)
    if rule is not None:
        value = rule(kernel, node)
        return None if value is None else (value, _wish(kernel, node))
    if isinstance(target, Op) and target.lowering_fn is not None:
        value = target.lowering_fn(kernel, node)
        return None if value is None else (value, target.name)
    name = repr(target) if isinstance(target, Op) else target._opname
    raise exc.BackendUnsupported(backend="triton", detail=f"the operation `{name}`")


def _wish(kernel: LoweringContext, node: Node) -> str:
    """A name for a value that the author gave none."""
    target: Any = node.target
    if target is memory.load:
        host: Any = args_of(node)[0]
        return f"{host.text}_{'tile' if value_of(node).dim() else 'value'}"
    if target is prims.convert_element_type.default:
        source = kernel.operand(args_of(node)[0]).text
        base = source.removesuffix("_tile") if source.isidentifier() else "value"
        return f"{base}_{dtype_name(kernel.dtype_of(node))}"
    return getattr(target, "_opname", target.__name__)


def _pointwise(kernel: LoweringContext, node: Node) -> Expression:
    target: Any = node.target
    result = kernel.dtype_of(node)
    tensors = [a for a in args_of(node) if isinstance(a, Node)]
    if target is prims.where.default:
        tensors = tensors[1:]
    operand = kernel.dtype_of(tensors[0]) if tensors else result
    args = [
        _operand(kernel, a, operand) for a in args_of(node) if isinstance(a, Node) or is_number(a)
    ]
    if target is prims.where.default:
        args[0] = kernel.operand(args_of(node)[0])
    if target in POSITIVE and all(map(is_never_negative, args_of(node))):
        return POSITIVE[target](operand, result, args)
    return POINTWISE[target](operand, result, args)


def _operand(kernel: LoweringContext, arg: Any, dtype: torch.dtype) -> Expression:
    """An operand; a scalar parameter takes the dtype of the tensor that it meets."""
    value = kernel.operand(arg)
    if is_number(arg) and value.dtype is not None and value.dtype is not dtype:
        return ex.cast(value, dtype)
    return ex.wrapped(value, dtype)


def _convert(kernel: LoweringContext, node: Node) -> Expression:
    value = kernel.operand(args_of(node)[0])
    dtype = kernel.dtype_of(node)
    if dtype not in ex.TRITON_DTYPES:
        raise exc.UnsupportedDtype(dtype=dtype)
    return value.typed(dtype) if value.dtype is None else ex.cast(value, dtype)


def _scalar_tensor(kernel: LoweringContext, node: Node) -> Expression:
    value = kernel.number(args_of(node)[0])
    dtype = kernel.dtype_of(node)
    if value.dtype is None:
        if dtype is torch.bool or any(not _takes_literal(u) for u in node.users):
            return ex.cast(value, dtype)
        return value
    return ex.cast(value, dtype)


def _takes_literal(node: Node) -> bool:
    """Whether an operation finds the dtype of a literal from its other operands."""
    if node.target not in POINTWISE:
        return False
    others = [a for a in args_of(node)[1:] if isinstance(a, Node)]
    if node.target is not prims.where.default:
        others = [a for a in args_of(node) if isinstance(a, Node)]
    return any(
        a.target not in (prims.scalar_tensor.default, aten.scalar_tensor.default) for a in others
    )


def _clone(kernel: LoweringContext, node: Node) -> Expression:
    return kernel.operand(args_of(node)[0])


def _full(kernel: LoweringContext, node: Node) -> Expression:
    _, value, dtype = args_of(node)
    sizes = value_of(node).shape
    text = kernel.number(value).text
    if not sizes:
        return ex.cast(kernel.number(value), dtype)
    name = ex.TRITON_DTYPES[dtype]
    shape = kernel.flat.shape if kernel.flat is not None else tuple(sizes)
    return Expression(f"tl.full([{kernel.shape_text(sizes)}], {text}, {name})", dtype, shape)


def _arange(kernel: LoweringContext, node: Node) -> Expression:
    begin, length, step, dtype = args_of(node)
    value = ex.cast(kernel.whole_axis(length)[0], dtype)
    if known_int(step) != 1:
        value = ex.infix("*", value, kernel.number(step), ex.PRODUCT, value.dtype)
    if known_int(begin) != 0:
        value = ex.infix("+", kernel.number(begin), value, ex.SUM, value.dtype)
    return value


def _barrier(kernel: LoweringContext, node: Node) -> None:
    del node
    kernel.body.line("tl.debug_barrier()")


def _getitem(kernel: LoweringContext, node: Node) -> Expression:
    source, index = args_of(node)
    if source.target in CONTROL_FLOW:
        kernel.variables.add(node)
    return kernel.results[source][index]


def _pair(kernel: LoweringContext, node: Node) -> None:
    kernel.results[node] = reductions.index_of_extreme(kernel, node)


def _tile_index(kernel: LoweringContext, node: Node) -> Expression:
    return kernel.tile_index(args_of(node)[0])


_RULES: dict[Any, Callable[[Any, Node], Expression | None]] = {
    prims.convert_element_type.default: _convert,
    prims.scalar_tensor.default: _scalar_tensor,
    aten.scalar_tensor.default: _scalar_tensor,
    prims.broadcast_in_dim.default: views_codegen.broadcast_in_dim,
    prims.transpose.default: views_codegen.transpose,
    prims.reshape.default: views_codegen.reshape,
    aten.gather.default: views_codegen.gather,
    aten.stack.default: views_codegen.stack,
    aten.cat.default: views_codegen.concatenate,
    views.join: views_codegen.join,
    views.split: views_codegen.split,
    prims.view_of.default: _clone,
    prims.clone.default: _clone,
    aten.detach.default: _clone,
    aten.alias.default: _clone,
    creation.full: _full,
    creation.arange: _arange,
    memory.load: load_store.load,
    memory.store: load_store.store,
    **dict.fromkeys(atomics.ATOMICS, atomic),
    tiles.tile_index: _tile_index,
    getitem: _getitem,
    keep_inside: reductions.inside,
    block_barrier: _barrier,
    count_inside: reductions.count_inside,
    prims.sum.default: reductions.reduce,
    prims.prod.default: reductions.reduce,
    prims.amax.default: reductions.reduce,
    prims.amin.default: reductions.reduce,
    prims.var.default: reductions.variance,
    aten.argmax.default: reductions.argument_of_extreme,
    aten.argmin.default: reductions.argument_of_extreme,
    **dict.fromkeys(matmul.PRODUCTS, matmul_codegen.product),
    aten.max.dim: _pair,
    aten.min.dim: _pair,
}
