"""Loops and branches in device code: regions, and the variables that flow through them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.frontend.containers import leaves, rebuild, variable_of
from helion.frontend.device import DeviceEvaluator
from helion.frontend.in_place import changed_names
from helion.frontend.statements import last_binding, reads_first
from helion.ir.control import Region, for_loop, if_else
from helion.ir.describe import type_name
from helion.ir.symbols import SYMBOLIC, DeviceNumber, freeze, is_number, kind_of, known_int, same
from helion.ir.tiles import HostTensor, TileAxis
from helion.language._op import Op
from helion.language.loops import LoopSpec, as_loop, loop_target

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from helion.frontend.trace import GraphBuilder

# The variable that holds the condition of a `while`; no name of the author's.
_GO_ON = "go on"
_MOST_UNROLLED = 1024


class DeviceRunner(DeviceEvaluator):
    """Runs device statements."""

    # -- names -----------------------------------------------------------------------------------

    def bind(self, name: str, value: Any, node: ast.AST) -> None:
        """Bind a device variable; the host's names cannot be rebound here."""
        if name in self.scope.host and name not in self.scope.device and self.depth == 0:
            raise exc.CannotModifyHostVariableOnDevice(self.source.span(node), name=name)
        self.scope.device[name] = value
        self.types[node] = value
        if isinstance(value, torch.Tensor):
            self.recorder.name(value, name)

    # -- branches --------------------------------------------------------------------------------

    def exec_Assert(self, node: ast.Assert) -> None:
        """An assertion of something known at compile time."""
        test = self.condition(node.test)
        if isinstance(test, (torch.Tensor, *SYMBOLIC)):
            what = "`assert` of a value that is known at run time only"
            advice = "check it in the host part, before the loop"
            raise exc.NotAllowedOnDevice(self.source.span(node), what=what, advice=advice)
        if not test:
            message = "" if node.msg is None else f": {self.evaluate(node.msg)}"
            raise exc.StaticAssertionFailed(self.source.span(node), message=message)

    def _flag(self, test: ast.expr) -> Any:
        """A condition: a bool, known or not, or a bool tensor without dimensions."""
        value = self.condition(test)
        if isinstance(value, torch.Tensor) and value.dim() != 0:
            if known_int(value.numel()) != 1:
                raise self.no_truth_value(value, test)
            value = self.call(torch.Tensor.reshape, (value, []), {}, test)
        if isinstance(value, torch.Tensor) and value.dtype is not torch.bool:
            return self.call(operator.ne, (value, 0), {}, test)
        return value != 0 if isinstance(value, torch.SymInt) else value

    def exec_If(self, node: ast.If) -> None:
        """Only the live branch where the condition is known, else a real branch."""
        condition = self._flag(node.test)
        if not isinstance(condition, (torch.Tensor, torch.SymBool)):
            self.run(node.body if condition else node.orelse)
            return
        self._branch(condition, node)

    def _branch(self, condition: Any, node: ast.If) -> None:
        condition = self.recorder.node_of(condition)
        before = dict(self.scope.device)
        changed = changed_names([*node.body, *node.orelse])
        sides = [self._trace_side(body, before) for body in (node.body, node.orelse)]
        # A name that only one side binds cannot be read afterwards.
        both = [n for n in changed if all(n in after for _, after in sides)]
        flats = [self._leaves(both, after) for _, after in sides]
        for name in both:
            if len({tuple(leaves(name, after[name])) for _, after in sides}) > 1:
                self._merge(name, sides[0][1][name], sides[1][1][name], node)
        old = self._leaves([n for n in both if n in before], before)
        names = [n for n in flats[0] if any(flat[n] is not old.get(n) for flat in flats)]
        merged = [self._merge(n, flats[0][n], flats[1][n], node) for n in names]
        regions = [
            self._close(builder, flat, names, merged)
            for (builder, _), flat in zip(sides, flats, strict=True)
        ]
        captured = [list(builder.captured) for builder, _ in sides]
        self.scope.device = {
            k: v
            for k, v in before.items()
            if k not in changed or all(k in a and a[k] is v for _, a in sides)
        }
        self.scope.device.update((n, sides[0][1][n]) for n in both)
        self.recorder.span = self.source.span(node)
        self._results(if_else, (condition, *regions, *captured), names, merged)

    def _leaves(self, names: Sequence[str], scope: dict[str, Any]) -> dict[str, Any]:
        """Variables by name, and the items of containers among them."""
        return {leaf: v for n in names for leaf, v in leaves(n, scope[n]).items()}

    def _trace_side(
        self, body: Sequence[ast.stmt], before: dict[str, Any]
    ) -> tuple[GraphBuilder, dict[str, Any]]:
        self.scope.device = {n: rebuild(n, v, {}) for n, v in before.items()}
        with self.recorder.inner() as builder:
            self.run(list(body))
        return builder, self.scope.device

    def _merge(self, name: str, a: Any, b: Any, node: ast.If) -> Any:
        """The type of a variable that is one of two values."""
        merged = unify(a, b)
        if merged is None:
            tensors = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
            cls = exc.ControlFlowTensorMismatch if tensors else exc.CantCombineTypesInControlFlow
            before, after = self.compilation.show(a), self.compilation.show(b)
            error = cls(self.source.span(node), name=name, before=before, after=after)
            raise error.with_related(
                *self._bound_here(name, node.body, f"`{before}` here"),
                *self._bound_here(name, node.orelse, f"`{after}` here"),
            )
        return merged

    def _bound_here(
        self, name: str, body: Sequence[ast.stmt], label: str, before: int | None = None
    ) -> list[exc.Related]:
        """The last place among statements (before a line) that binds a name, as a second span."""
        node = last_binding(variable_of(name), body, before)
        return [] if node is None else [exc.Related(self.source.span(node), label)]

    def _close(
        self, builder: GraphBuilder, after: dict[str, Any], names: list[str], types: list[Any]
    ) -> Region:
        with self.recorder.resume(builder):
            values = [self._convert(after[n], t) for n, t in zip(names, types, strict=True)]
            outputs = tuple(freeze(self.recorder.node_of(v)) for v in values)
        builder.graph.output(outputs)  # pyright: ignore[reportArgumentType]
        return Region(builder.graph, tuple(names))

    def _convert(self, value: Any, to: Any) -> Any:
        """A value as the type that it is carried in."""
        if not isinstance(to, torch.Tensor):
            return value
        with self.recorder.symbols.fake_mode, self.recorder:
            if not isinstance(value, torch.Tensor):
                value = self.as_tensor(value)
            value = value.to(to.dtype)
            return value.expand(to.shape) if value.dim() != to.dim() else value

    def _results(
        self, target: Any, args: tuple[Any, ...], names: list[str], types: list[Any]
    ) -> None:
        """Record the node, and bind the variables to its results."""
        values = [self._fresh(n, t) for n, t in zip(names, types, strict=True)]
        self.recorder.record(target, args, tuple(values))
        results = dict(zip(names, values, strict=True))
        for name in dict.fromkeys(map(variable_of, names)):
            if name in self.scope.device:
                self.scope.device[name] = rebuild(name, self.scope.device[name], results)
        for name, value in results.items():
            if isinstance(value, torch.Tensor):
                self.recorder.name(value, name)

    def _fresh(self, name: str, like: Any) -> Any:
        """A new value of the type of another."""
        if isinstance(like, torch.Tensor):
            return self.compilation.new_tensor(like.shape, like.dtype)
        return self.recorder.symbols.number(kind_of(like), DeviceNumber(name))

    # -- loops -----------------------------------------------------------------------------------

    def exec_For(self, node: ast.For) -> None:
        """A device loop over tiles or indices, or an unrolled one over a known sequence."""
        if node.orelse:
            raise exc.DeviceLoopElseBlock(self.source.span(node))
        iterable = self._iterable(node.iter, target_names(node.target))
        if not isinstance(iterable, LoopSpec):
            for item in iterable:
                self.assign(node.target, item)
                self.run(node.body)
            return
        axes = iterable.axes
        bounds = [tuple(self.recorder.node_of(b) for b in (a.begin, a.end)) for a in axes]
        target = loop_target(self.context(node), axes, iterable.scalar)

        def enter() -> None:
            self.assign(node.target, target)

        self.compilation.loops.extend(axes)
        region, names, types, carried, captured = self._trace_loop(node, enter=enter)
        del self.compilation.loops[-len(axes) :]
        self.recorder.span = self.source.span(node)
        self._results(for_loop, (axes, bounds, region, carried, captured), names, types)

    def exec_While(self, node: ast.While) -> None:
        """A loop with a condition; unrolled as long as the condition is known."""
        if node.orelse:
            raise exc.DeviceLoopElseBlock(self.source.span(node))
        for _ in range(_MOST_UNROLLED):
            condition = self._flag(node.test)
            if isinstance(condition, (torch.Tensor, torch.SymBool)):
                self._repeat(condition, node)
                return
            if not condition:
                return
            self.run(node.body)
        what = f"`while` whose condition is known to hold {_MOST_UNROLLED} times"
        advice = "count with `for ... in range(n)`"
        raise exc.NotAllowedOnDevice(self.source.span(node), what=what, advice=advice)

    def _repeat(self, condition: Any, node: ast.While) -> None:
        """The condition is a variable of the loop: each iteration ends with its next value."""
        self.scope.device[_GO_ON] = condition

        def leave() -> None:
            self.scope.device[_GO_ON] = self._flag(node.test)

        region, names, types, carried, captured = self._trace_loop(node, leave=leave)
        self.recorder.span = self.source.span(node)
        self._results(for_loop, ((), (), region, carried, captured), names, types)
        del self.scope.device[_GO_ON]

    def _iterable(self, node: ast.expr, names: list[str]) -> Any:
        if isinstance(node, ast.Call):
            function = self.evaluate(node.func)
            args = [self.evaluate(a) for a in node.args]
            kwargs = {k.arg: self.evaluate(k.value) for k in node.keywords if k.arg}
            context = self.context(node, function if isinstance(function, Op) else None)
            spec = as_loop(context, function, args, kwargs, names)
            if spec is not None:
                return spec
            value = self.call(function, tuple(args), kwargs, node)
        else:
            value = self.evaluate(node)
        if isinstance(value, Iterable) and not isinstance(value, (str, bytes, torch.Tensor)):
            return list(value)
        raise exc.InvalidDeviceForLoop(self.source.span(node), got=type_name(value))

    def _trace_loop(
        self,
        node: ast.For | ast.While,
        enter: Callable[[], None] | None = None,
        leave: Callable[[], None] | None = None,
    ) -> Any:
        before = dict(self.scope.device)
        changed = [n for n in changed_names(node.body) if n in before]
        if leave is not None:
            changed.insert(0, _GO_ON)
        start = {n: v for n, v in self._leaves(changed, before).items() if _carries(v)}
        names, types = list(start), list(start.values())
        blocks_before = len(self.compilation.blocks)
        while True:
            # Traced again, with other types, a loop inside has its entry of `block_sizes` again.
            del self.compilation.blocks[blocks_before:]
            self.scope.device = {n: rebuild(n, v, {}) for n, v in before.items()}
            with self.recorder.inner() as builder:
                inputs = {n: self._input(builder, n, t) for n, t in zip(names, types, strict=True)}
                self.scope.device.update((n, rebuild(n, before[n], inputs)) for n in changed)
                if enter is not None:
                    enter()
                self.run(node.body)
                if leave is not None:
                    leave()
            after, gone = self._after_iteration(changed, before, node)
            settled = [
                self._settle(n, t, after[n], node) for n, t in zip(names, types, strict=True)
            ]
            if all(a is b for a, b in zip(settled, types, strict=True)):
                break
            types = settled
        self.scope.device = {n: v for n, v in before.items() if n not in gone}
        region = self._close(builder, after, names, types)
        carried = [self._convert(start[n], t) for n, t in zip(names, types, strict=True)]
        carried = [freeze(self.recorder.node_of(c)) for c in carried]
        return region, names, types, carried, list(builder.captured)

    def _after_iteration(
        self, changed: Sequence[str], before: dict[str, Any], node: ast.For | ast.While
    ) -> tuple[dict[str, Any], list[str]]:
        """What an iteration leaves in the variables that the loop changes; and those that end.

        What no loop can carry (a tile, a string, a container of another shape) may be bound anew
        in each iteration. It may not be read before that, and it does not exist after the loop.
        """
        after: dict[str, Any] = {}
        gone: list[str] = []
        for name in changed:
            old, new = leaves(name, before[name]), leaves(name, self.scope.device[name])
            after |= {n: new.get(n, v) for n, v in old.items()}
            stays = old.keys() == new.keys() and all(
                _carries(v) or new[n] is v or _equal(new[n], v) for n, v in old.items()
            )
            if not stays and reads_first(name, node.body):
                raise self._type_change(name, before[name], self.scope.device[name], node)
            if not stays:
                gone.append(name)
        return after, gone

    def _input(self, builder: GraphBuilder, name: str, like: Any) -> Any:
        value = self._fresh(name, like)
        node = builder.placeholder(name, value)
        if isinstance(value, torch.Tensor):
            self.recorder.bind(value, node)  # pyright: ignore[reportArgumentType]
            self.recorder.name(value, name)
        return value

    def _settle(self, name: str, before: Any, after: Any, node: ast.For | ast.While) -> Any:
        """The type in which a variable enters each iteration."""
        if isinstance(before, torch.Tensor) and isinstance(after, torch.Tensor):
            if before.dtype == after.dtype and _same_shape(before, after):
                return before
        elif is_number(before) and isinstance(after, torch.Tensor):
            return after
        elif is_number(before) and is_number(after):
            if kind_of(before) is kind_of(after):
                return before
            if {kind_of(before), kind_of(after)} == {int, float}:
                return float(before) if isinstance(before, int) else after
        elif isinstance(before, torch.Tensor) and is_number(after):
            return before
        raise self._type_change(name, before, after, node)

    def _type_change(
        self, name: str, before: Any, after: Any, node: ast.For | ast.While
    ) -> exc.LoopVariableTypeChange:
        first, later = self.compilation.show(before), self.compilation.show(after)
        place = last_binding(variable_of(name), node.body) or node
        error = exc.LoopVariableTypeChange(
            self.source.span(place), name=name, before=first, after=later
        )
        start = self._bound_here(
            name, self.source.tree.body, f"`{name}` starts as `{first}`", node.lineno
        )
        return error.with_related(*start)


def target_names(target: ast.expr) -> list[str]:
    """The variables that an assignment to a target binds."""
    return [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]


def _carries(value: Any) -> bool:
    return is_number(value) or (
        isinstance(value, torch.Tensor) and not isinstance(value, (HostTensor, TileAxis))
    )


def _equal(a: Any, b: Any) -> bool:
    """Whether two values that no loop carries are the same."""
    return type(a) is type(b) and isinstance(a, (str, bool, type(None), slice)) and a == b


def _same_shape(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.dim() == b.dim() and all(same(x, y) for x, y in zip(a.shape, b.shape, strict=True))


def unify(a: Any, b: Any) -> Any:
    """The type that holds both of two values, as one of them; None if there is none."""
    if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
        return a if a.dtype == b.dtype and _same_shape(a, b) else None
    if isinstance(a, torch.Tensor) and is_number(b) and a.dim() == 0:
        return a
    if isinstance(b, torch.Tensor) and is_number(a) and b.dim() == 0:
        return b
    if is_number(a) and is_number(b):
        if kind_of(a) is kind_of(b):
            return a
        if {kind_of(a), kind_of(b)} == {int, float}:
            return a if kind_of(a) is float else b
        return None
    return a if a is b else None
