"""Expressions: one method for each kind of syntax node, for host and device code alike."""

from __future__ import annotations

import ast
import builtins
import difflib
import operator
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from helion import exc, language
from helion.frontend import arithmetic
from helion.frontend.refused import not_supported
from helion.ir.describe import type_name
from helion.ir.symbols import SYMBOLIC

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from helion.frontend.scope import Scope
    from helion.frontend.source import FunctionSource


class Unwinding(Exception):
    """Leaves the interpreter on purpose; every other exception that is no `exc.Base` is a bug."""


class Evaluator:
    """Evaluates expressions of one function on abstract values.

    Subclasses say what differs between host and device: how a name is read, how a function is
    called, and how a subscript is taken.
    """

    def __init__(self, source: FunctionSource, scope: Scope) -> None:
        self.source = source
        self.scope = scope
        self.types: dict[ast.AST, Any] = {}
        # The variables of the comprehensions around the expression that is evaluated.
        self.inner: dict[str, Any] = {}

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression; errors get the span of the innermost one."""
        method: Callable[[Any], Any] | None = getattr(self, f"eval_{type(node).__name__}", None)
        if method is None:
            raise not_supported(self.source.span(node), node)
        try:
            value = method(node)
        except exc.Base as error:
            raise error.with_span(self.source.span(node)) from error.__cause__
        except Unwinding:
            raise
        except Exception as error:
            raise exc.InternalError(self.source.span(node), original=error) from error
        self.types[node] = value
        return value

    def eval_Constant(self, node: ast.Constant) -> Any:
        """A literal."""
        return node.value

    def eval_Name(self, node: ast.Name) -> Any:
        """A variable: device, host, module global or builtin, in this order."""
        if node.id in self.inner:
            return self.inner[node.id]
        if node.id in self.scope.device:
            return self.scope.device[node.id]
        if node.id in self.scope.host:
            return self.read_host(self.scope.host[node.id], node.id)
        if node.id in self.scope.module:
            return self.read_host(self.scope.module[node.id], f"_source_module.{node.id}")
        if hasattr(builtins, node.id):
            return getattr(builtins, node.id)
        raise exc.UndefinedVariable(self.source.span(node), name=node.id)

    def read_host(self, value: Any, text: str) -> Any:
        """A host value as this code sees it."""
        del text
        return value

    def eval_Tuple(self, node: ast.Tuple) -> Any:
        """A tuple."""
        return tuple(self._items(node.elts))

    def eval_List(self, node: ast.List) -> Any:
        """A list."""
        return self._items(node.elts)

    def eval_Dict(self, node: ast.Dict) -> Any:
        """A dict with literal keys."""
        return {
            self.evaluate(k): self.evaluate(v)
            for k, v in zip(node.keys, node.values, strict=True)
            if k is not None
        }

    def _items(self, nodes: list[ast.expr]) -> list[Any]:
        self.check_starred(nodes)
        items: list[Any] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                items.extend(self.items_of(self.evaluate(node.value), node.value))
            else:
                items.append(self.evaluate(node))
        return items

    def items_of(self, value: Any, node: ast.AST) -> list[Any]:
        """The items of a value that is iterated over."""
        if not isinstance(value, Iterable):
            raise self.not_iterable(value, node)
        return list(value)

    def not_iterable(self, value: Any, node: ast.AST) -> exc.TypeInferenceError:
        """The error for a value that has no items, or none that are known at compile time."""
        detail = f"a value of type `{type_name(value)}` cannot be iterated over"
        return exc.TypeInferenceError(self.source.span(node), detail=detail)

    def check_starred(self, nodes: Sequence[ast.expr]) -> None:
        """Whether `*values` may stand among these: on the host it may."""

    def eval_BinOp(self, node: ast.BinOp) -> Any:
        """`a + b` and its like."""
        left, right = self.evaluate(node.left), self.evaluate(node.right)
        return self.call(arithmetic.BINARY[type(node.op)], (left, right), {}, node)

    def eval_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """`-a`, `~a`, `not a`."""
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            return self.negate(value, node)
        return self.call(arithmetic.UNARY[type(node.op)], (value,), {}, node)

    def eval_Compare(self, node: ast.Compare) -> Any:
        """A comparison; a chain is the conjunction of its links."""
        left = self.evaluate(node.left)
        result: Any = True
        for op, right_node in zip(node.ops, node.comparators, strict=True):
            right = self.evaluate(right_node)
            link = self._compare(op, left, right, node)
            result = link if result is True else result & link
            left = right
        return result

    def _compare(self, op: ast.cmpop, left: Any, right: Any, node: ast.AST) -> Any:
        if isinstance(op, ast.Is):
            return left is right
        if isinstance(op, ast.IsNot):
            return left is not right
        if isinstance(op, ast.In):
            return self._among(left, right, node)
        if isinstance(op, ast.NotIn):
            return self.negate(self._among(left, right, node), node)
        return self.call(arithmetic.COMPARE[type(op)], (left, right), {}, node)

    def negate(self, value: Any, node: ast.AST) -> Any:
        """`not value`."""
        if isinstance(value, torch.Tensor):
            return self.call(torch.logical_not, (value,), {}, node)
        return arithmetic.negate(value)

    def _among(self, value: Any, items: Any, node: ast.AST) -> Any:
        """`value in items`: for run-time numbers, whether any of the items equals."""
        run_time = (torch.Tensor, *SYMBOLIC)
        if isinstance(items, dict) or not isinstance(items, (tuple, list)):
            return value in items
        if not any(isinstance(v, run_time) for v in (value, *items)):
            return value in items
        found: Any = False
        for item in items:
            same = self.call(operator.eq, (value, item), {}, node)
            found = same if found is False else self.call(operator.or_, (found, same), {}, node)
        return found

    def eval_BoolOp(self, node: ast.BoolOp) -> Any:
        """`and`, `or`: short-circuit where the value is known, a logical operation where not."""
        is_and = isinstance(node.op, ast.And)
        result: Any = is_and
        merge: Any = operator.and_ if is_and else operator.or_
        for item in node.values:
            value: Any = self.evaluate(item)
            if isinstance(value, (torch.Tensor, *SYMBOLIC)):
                if result is not is_and:
                    value = self.call(merge, (result, value), {}, node)
                result = value
            elif bool(value) is not is_and:
                return value
            elif not isinstance(result, (torch.Tensor, *SYMBOLIC)):
                result = value
        return result

    def eval_Attribute(self, node: ast.Attribute) -> Any:
        """`value.name`."""
        return self.attribute_of(self.evaluate(node.value), node)

    def attribute_of(self, value: Any, node: ast.Attribute) -> Any:
        """An attribute of a plain Python object."""
        # The submodules of `hl` are none of the author's business.
        hidden = value is language and node.attr not in (*language.__all__, *language.LATER)
        if hidden or not hasattr(value, node.attr):
            raise self._no_attribute(value, node)
        return getattr(value, node.attr)

    def _no_attribute(self, value: Any, node: ast.Attribute) -> exc.TypeInferenceError:
        text = ast.unparse(node.value)
        public = getattr(value, "__all__", None) or dir(value)
        near = difflib.get_close_matches(node.attr, public if isinstance(value, ModuleType) else ())
        return exc.TypeInferenceError(
            self.source.span(node),
            detail=f"`{text}` has no attribute `{node.attr}`",
            advice=f"did you mean `{text}.{near[0]}`?" if near else "",
        )

    def eval_JoinedStr(self, node: ast.JoinedStr) -> str:
        """An f-string of known values."""
        return "".join(
            str(self.evaluate(part.value if isinstance(part, ast.FormattedValue) else part))
            for part in node.values
        )

    def eval_ListComp(self, node: ast.ListComp | ast.GeneratorExp) -> Any:
        """`[value for ...]`."""
        return [self.evaluate(node.elt) for _ in self._rounds(node.generators)]

    def eval_GeneratorExp(self, node: ast.GeneratorExp) -> Any:
        """`(value for ...)`, all at once."""
        return self.eval_ListComp(node)

    def eval_DictComp(self, node: ast.DictComp) -> Any:
        """`{key: value for ...}`."""
        return {
            self.evaluate(node.key): self.evaluate(node.value)
            for _ in self._rounds(node.generators)
        }

    def _rounds(self, generators: Sequence[ast.comprehension]) -> Iterator[None]:
        """One step for each element of a comprehension, with its variables bound."""
        if not generators:
            yield
            return
        outer = dict(self.inner)
        for item in self.items_of(self.evaluate(generators[0].iter), generators[0].iter):
            self._bind_inner(generators[0].target, item)
            if all(self._known_truth(test) for test in generators[0].ifs):
                yield from self._rounds(generators[1:])
        self.inner = outer

    def _bind_inner(self, target: ast.expr, value: Any) -> None:
        """Bind the variables of a comprehension, which exist inside of it alone."""
        if isinstance(target, ast.Name):
            self.inner[target.id] = value
            return
        parts = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
        items = self.items_of(value, target)
        if len(parts) != len(items):
            span, got = self.source.span(target), f"{len(items)} values"
            raise exc.FailedToUnpackTupleAssign(span, expected=len(parts), got=got)
        for part, item in zip(parts, items, strict=True):
            self._bind_inner(part, item)

    def _known_truth(self, node: ast.expr) -> bool:
        value = self.evaluate(node)
        if isinstance(value, (torch.Tensor, *SYMBOLIC)):
            detail = "the condition of a comprehension must be known at compile time"
            raise exc.TypeInferenceError(self.source.span(node), detail=detail)
        return bool(value)

    def eval_Slice(self, node: ast.Slice) -> Any:
        """`a:b:c` inside a subscript."""
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if p is None else self.evaluate(p) for p in parts))

    def eval_Call(self, node: ast.Call) -> Any:
        """`function(args)`."""
        function = self.evaluate(node.func)
        args = tuple(self._items(node.args))
        kwargs = {k.arg: self.evaluate(k.value) for k in node.keywords if k.arg is not None}
        return self.call(arithmetic.replaces(function, args) or function, args, kwargs, node)

    def call(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Any, node: ast.AST
    ) -> Any:
        """Call a function with abstract values."""
        del node
        return function(*args, **kwargs)
