"""What to tell the author when a call in device code cannot be traced."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.exc import Related
from helion.frontend.types import TypePrinter
from helion.ir.symbols import Number, known_int, same

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.exc import Span
    from helion.frontend.compilation import Compilation
    from helion.frontend.source import FunctionSource

_SPLITS = frozenset({"chunk", "split", "split_with_sizes", "tensor_split", "unbind"})
_DATA_DEPENDENT = frozenset(
    {"argwhere", "masked_select", "nonzero", "unique", "unique_consecutive"}
)
_MATRIX_PRODUCTS = frozenset({"addmm", "baddbmm", "bmm", "matmul", "mm"})


def parts_of(node: ast.AST) -> list[ast.expr]:
    """The syntax of each positional argument of a call or operator, as far as it has one."""
    if isinstance(node, ast.Call):
        return node.args
    if isinstance(node, ast.BinOp):
        return [node.left, node.right]
    if isinstance(node, ast.UnaryOp):
        return [node.operand]
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value]
    if isinstance(node, ast.Compare) and len(node.comparators) == 1:
        return [node.left, *node.comparators]
    return []


def part_span(source: FunctionSource, node: ast.AST, position: int) -> Span:
    """The span of one positional argument, or of the whole call."""
    parts = parts_of(node)
    return source.span(parts[position] if position < len(parts) else node)


def refuse_by_name(function: Any, span: Span) -> None:
    """Refuse functions of torch whose result has no shape, or no layout, on the device."""
    name = getattr(function, "__name__", "")
    if name in _SPLITS:
        raise exc.UnsupportedSplitOperation(span, api=f"torch.{name}")
    if name in _DATA_DEPENDENT:
        raise exc.DataDependentOutputShapeNotSupported(span, api=f"`torch.{name}`")


def torch_error(
    error: Exception,
    function: Any,
    args: Sequence[Any],
    node: ast.AST,
    source: FunctionSource,
    compilation: Compilation,
) -> exc.BaseError:
    """The error for a function of torch that raised `error`."""
    span = source.span(node)
    name = getattr(function, "__name__", "")
    if type(error).__name__ == "GuardOnDataDependentSymNode":
        return exc.ShapeSpecializingCall(span, api=_called(node))
    operands = _tensors(function, args, node, source)
    pair = _misfits(operands)
    if name in _MATRIX_PRODUCTS and len(operands) > 1:
        (a, _), (b, _) = operands[-2:]
        detail = f"{compilation.show_sizes(a.shape)} and {compilation.show_sizes(b.shape)}"
        fields = {"api": _called(node), "detail": f"{detail} do not fit together"}
        return exc.InvalidDotShape(span, **fields, related=_shapes(operands[-2:], compilation))
    if pair and ("broadcast" in str(error) or "size of tensor" in str(error)):
        lhs, rhs = (compilation.show_sizes(tensor.shape) for tensor, _ in pair)
        return exc.ShapeMismatch(span, lhs=lhs, rhs=rhs, related=_shapes(pair, compilation))
    text = _in_authors_names(str(error), compilation)
    return exc.TorchOpTracingError(span, detail=f"{type(error).__name__}: {text}")


def _called(node: ast.AST) -> str:
    return ast.unparse(node.func if isinstance(node, ast.Call) else node)


_Operand = tuple[torch.Tensor, "Span | None"]


def _tensors(
    function: Any, args: Sequence[Any], node: ast.AST, source: FunctionSource
) -> list[_Operand]:
    """The tensors of a call, each with its place; a method's own tensor first."""
    found: list[_Operand] = []
    receiver = getattr(function, "__self__", None)
    if isinstance(receiver, torch.Tensor) and isinstance(node, ast.Call):
        assert isinstance(node.func, ast.Attribute)
        found.append((receiver, source.span(node.func.value)))
    parts = parts_of(node)
    for i, arg in enumerate(args):
        if isinstance(arg, torch.Tensor):
            found.append((arg, source.span(parts[i]) if i < len(parts) else None))
    return found


def _misfits(operands: Sequence[_Operand]) -> list[_Operand]:
    """The first two tensors that do not broadcast together."""
    for i, first in enumerate(operands):
        for second in operands[i + 1 :]:
            sizes = zip(reversed(first[0].shape), reversed(second[0].shape), strict=False)
            if not all(same(a, b) or 1 in (known_int(a), known_int(b)) for a, b in sizes):
                return [first, second]
    return []


def _shapes(operands: Sequence[_Operand], compilation: Compilation) -> list[Related]:
    return [
        Related(span, f"shape {compilation.show_sizes(tensor.shape)}")
        for tensor, span in operands
        if span is not None
    ]


def _in_authors_names(text: str, compilation: Compilation) -> str:
    """A message of torch with the author's names for our symbols."""
    printer = TypePrinter(compilation.symbols)
    for symbol in compilation.symbols.origins:
        text = re.sub(rf"\b{symbol}\b", printer.number(Number(symbol, int)), text)
    return text
