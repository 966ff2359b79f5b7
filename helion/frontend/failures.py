"""What to tell the author when a call in device code cannot be traced."""

from __future__ import annotations

import ast
import dataclasses
import re
from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.exc import Related
from helion.frontend.types import TypePrinter
from helion.ir.describe import type_name
from helion.ir.symbols import Number, known_int, same

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from helion.exc import Span
    from helion.frontend.compilation import Compilation
    from helion.frontend.source import FunctionSource

_SPLITS = frozenset({"chunk", "split", "split_with_sizes", "tensor_split", "unbind"})
_DATA_DEPENDENT = frozenset(
    {"argwhere", "masked_select", "nonzero", "unique", "unique_consecutive"}
)
_REDUCTIONS = frozenset(
    {"all", "amax", "amin", "any", "argmax", "argmin", "logsumexp", "max", "mean", "min", "norm"}
    | {"prod", "std", "sum", "var"}
)
# Torch has them; they come with the scans and sorts of the language.
_LATER = frozenset(
    {"argsort", "cummax", "cummin", "cumprod", "cumsum", "logcumsumexp", "sort", "topk"}
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


def is_product(node: ast.expr) -> bool:
    """Whether an expression is written as a matrix product that rounds its result."""
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.MatMult)
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in {"bmm", "matmul", "mm"}


def refuse_by_name(function: Any, span: Span) -> None:
    """Refuse functions of torch whose result has no shape, or no layout, on the device."""
    name = getattr(function, "__name__", "")
    if name in _SPLITS:
        raise exc.UnsupportedSplitOperation(span, api=f"torch.{name}")
    if name in _LATER:
        raise exc.UnsupportedOperation(span, api=f"torch.{name}")
    if name in _DATA_DEPENDENT:
        raise exc.DataDependentOutputShapeNotSupported(span, api=f"`torch.{name}`")


def plain(text: str) -> str:
    """A message without the names of torch's symbolic types."""
    names = {"FakeTensor": "Tensor", "SymInt": "int", "SymFloat": "float", "SymBool": "bool"}
    return re.sub("|".join(names), lambda match: names[match[0]], text)


@dataclasses.dataclass(frozen=True)
class TorchCall:
    """A call of a torch function or method in device code.

    Attributes:
        function: what is called.
        args: its positional arguments.
        kwargs: its keyword arguments.
        node: the call or operator in the author's source.
        source: the function that it stands in.
        compilation: names sizes as the author does.
    """

    function: Any
    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    node: ast.AST
    source: FunctionSource
    compilation: Compilation

    def failed(self, error: Exception) -> exc.BaseError:
        """The error for the author when torch raised one."""
        span = self.source.span(self.node)
        name = getattr(self.function, "__name__", "")
        if _is_our_bug(error):
            return exc.InternalError(span, original=error)
        if type(error).__name__ == "GuardOnDataDependentSymNode":
            return exc.ShapeSpecializingCall(span, api=self._called())
        if "Cannot call numel()" in str(error) or "Boolean value of Tensor" in str(error):
            detail = "a block of values is neither true nor false"
            advice = "choose for each element: `torch.where`, `torch.maximum`, `torch.minimum`"
            return exc.TypeInferenceError(span, detail=detail, advice=advice)
        # torch 2.11 takes a str for the name of a dimension.
        unnamed = isinstance(error, RuntimeError) and "not found in Tensor[" in str(error)
        if name in _REDUCTIONS and (unnamed or isinstance(error, (IndexError, TypeError))):
            return self._wrong_dimension(error, span)
        operands = self._tensors()
        if name in _MATRIX_PRODUCTS and len(operands) > 1:
            (a, _), (b, _) = operands[-2:]
            detail = f"{self._show(a)} and {self._show(b)} do not fit together"
            related = self._shapes(operands[-2:])
            return exc.InvalidDotShape(span, api=self._called(), detail=detail, related=related)
        pair = _misfits(operands)
        if pair and ("broadcast" in str(error) or "size of tensor" in str(error)):
            lhs, rhs = (self._show(tensor) for tensor, _ in pair)
            return exc.ShapeMismatch(span, lhs=lhs, rhs=rhs, related=self._shapes(pair))
        text = self._in_authors_names(str(error))
        return exc.TorchOpTracingError(span, detail=f"{type(error).__name__}: {text}")

    def _wrong_dimension(self, error: Exception, span: Span) -> exc.BaseError:
        """The error of a reduction: its dimension is no integer, or does not exist."""
        receiver = getattr(self.function, "__self__", None)
        values = [*([receiver] if isinstance(receiver, torch.Tensor) else []), *self.args]
        dim = self.kwargs.get("dim", values[1] if len(values) > 1 else None)
        if not all(isinstance(d, int) for d in (dim if isinstance(dim, (tuple, list)) else [dim])):
            return exc.InvalidReductionDim(span, got=type_name(dim))
        if isinstance(error, IndexError) and isinstance(values[0], torch.Tensor):
            shape = self._show(values[0])
            return exc.ReductionDimInvalidForShape(span, dim=dim, shape=shape)
        return exc.TorchOpTracingError(span, original=error)

    def _called(self) -> str:
        return ast.unparse(self.node.func if isinstance(self.node, ast.Call) else self.node)

    def _show(self, tensor: torch.Tensor) -> str:
        return self.compilation.show_sizes(tensor.shape)

    def _tensors(self) -> list[_Operand]:
        """The tensors of the call, each with its place; a method's own tensor first."""
        found: list[_Operand] = []
        receiver = getattr(self.function, "__self__", None)
        if isinstance(receiver, torch.Tensor) and isinstance(self.node, ast.Call):
            assert isinstance(self.node.func, ast.Attribute)
            found.append((receiver, self.source.span(self.node.func.value)))
        parts = parts_of(self.node)
        for i, arg in enumerate(self.args):
            if isinstance(arg, torch.Tensor):
                found.append((arg, self.source.span(parts[i]) if i < len(parts) else None))
        return found

    def _shapes(self, operands: Sequence[_Operand]) -> list[Related]:
        return [
            Related(span, f"shape {self._show(tensor)}")
            for tensor, span in operands
            if span is not None
        ]

    def _in_authors_names(self, text: str) -> str:
        """A message of torch with the author's names for our symbols."""
        symbols = self.compilation.symbols
        for symbol in symbols.origins:
            name = TypePrinter(symbols).number(Number(symbol, int))
            text = re.sub(rf"\b{symbol}\b", name, text)
        return plain(text)


def _is_our_bug(error: Exception) -> bool:
    """Whether our code raised, as no wrong argument makes it do, rather than torch's."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    bugs = (AssertionError, AttributeError, KeyError, NameError)
    return isinstance(error, bugs) and module.startswith("helion.")


_Operand = tuple[torch.Tensor, "Span | None"]


def _misfits(operands: Sequence[_Operand]) -> list[_Operand]:
    """The first two tensors that do not broadcast together."""
    for i, first in enumerate(operands):
        for second in operands[i + 1 :]:
            sizes = zip(reversed(first[0].shape), reversed(second[0].shape), strict=False)
            if not all(same(a, b) or 1 in (known_int(a), known_int(b)) for a, b in sizes):
                return [first, second]
    return []
