"""The front end's result: one typed program for one kernel and one kind of arguments."""

from __future__ import annotations

import ast
import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.frontend.compilation import Compilation, Options, Restart
from helion.frontend.effects import check_loop
from helion.frontend.host import HostRunner
from helion.frontend.regions import DeviceRunner, target_names
from helion.frontend.scope import HostImports, Scope
from helion.frontend.statements import AuthorsError, ReturnValue
from helion.frontend.trace import GraphBuilder
from helion.frontend.types import TypePrinter
from helion.ir.graph import DeviceProgram, TopLoop
from helion.ir.symbols import Origin, Symbols
from helion.language.constants import constexpr
from helion.language.loops import as_loop, loop_target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from helion.frontend.source import FunctionSource
    from helion.language._op import Op
    from helion.language.fragments import Fragment


@dataclasses.dataclass(frozen=True)
class TypedProgram:
    """A kernel after the front end.

    Attributes:
        source: the author's function.
        device: device part: graphs, block sizes, symbols.
        loops: the top-level `for` statements that the graphs came from, in order.
        host_numbers: host expressions that hold numbers which device code reads.
        host_calls: calls of operations in the host part, with their values.
        types: the type of each expression and parameter.
        constants: what `hl.specialize` compiled in.
        tunables: what `hl.register_tunable` registered.
        torch_device: where the kernel runs.
        index_dtype: int32, or int64 where a tensor is too large for that.
    """

    source: FunctionSource
    device: DeviceProgram
    loops: tuple[ast.For, ...]
    host_numbers: Mapping[Any, str]
    host_calls: Mapping[ast.Call, tuple[Op, Any]]
    types: Mapping[ast.AST, Any]
    constants: Mapping[Origin, int]
    tunables: Mapping[str, Fragment]
    torch_device: torch.device
    index_dtype: torch.dtype

    def printer(self) -> TypePrinter:
        """Prints types in the author's names."""
        return TypePrinter(self.device.symbols, self.host_numbers)


def analyze(
    source: FunctionSource,
    module: Mapping[str, Any],
    arguments: Mapping[str, Any],
    device: torch.device,
    options: Options,
) -> TypedProgram:
    """Type and trace a kernel for arguments like these.

    Args:
        source: the author's function.
        module: its globals.
        arguments: real arguments by name; parameters annotated `hl.constexpr` are wrapped.
        device: where the kernel runs.
        options: the author's settings.
    """
    learned = Restart()
    options = dataclasses.replace(options, warn=_once(options.warn))
    while True:
        try:
            return _Analysis(source, module, arguments, device, options, learned).run()
        except Restart as again:  # noqa: PERF203 - each attempt knows one number more
            constants = {**learned.constants, **again.constants}
            learned = Restart(constants, {**learned.equal, **again.equal})
        except AuthorsError as error:
            original = error.unwrap()
            raise original from original.__cause__
        except exc.Base:
            raise
        except Exception as error:
            raise exc.InternalError(source.span(source.tree), original=error) from error


def _once(warn: Callable[[exc.BaseWarning], None]) -> Callable[[exc.BaseWarning], None]:
    """Warns once for each place: a new attempt, and a loop's second look, say the same again."""
    said: set[tuple[type, exc.Span | None]] = set()

    def once(warning: exc.BaseWarning) -> None:
        what = (type(warning), warning.location)
        if what not in said:
            said.add(what)
            warn(warning)

    return once


class _Analysis:
    """One attempt, with what is known of some numbers."""

    def __init__(
        self,
        source: FunctionSource,
        module: Mapping[str, Any],
        arguments: Mapping[str, Any],
        device: torch.device,
        options: Options,
        learned: Restart,
    ) -> None:
        symbols = Symbols()
        self.source = source
        self.compilation = Compilation(options, device, symbols, HostImports(symbols))
        self.compilation.constants = dict(learned.constants)
        self.compilation.equal = dict(learned.equal)
        nodes = [*source.tree.args.posonlyargs, *source.tree.args.args]
        self.compilation.parameters = {a.arg: source.span(a) for a in nodes}
        host = {name: self._argument(value, name) for name, value in arguments.items()}
        self.scope = Scope(host, {}, module)
        self.host = HostRunner(source, self.scope, self.compilation, self._top_loop)
        self.device = DeviceRunner(source, self.scope, self.compilation)
        self.device.types = self.host.types
        self.host.types.update((a, host[a.arg]) for a in nodes)
        self.loops: list[tuple[ast.For, TopLoop]] = []

    def _argument(self, value: Any, text: str) -> Any:
        """An argument as the host part sees it while it is interpreted."""
        if isinstance(value, constexpr):
            return value.value
        if isinstance(value, (int, float)):
            return self.compilation.number(value, text)
        if isinstance(value, torch.Tensor):
            return self.compilation.fake_tensor(value, text)
        if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
            return type(value)(self._argument(v, f"{text}[{i}]") for i, v in enumerate(value))
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            fields = zip(value._fields, value, strict=True)  # pyright: ignore[reportAttributeAccessIssue]
            return type(value)(*(self._argument(v, f"{text}.{f}") for f, v in fields))
        if isinstance(value, dict):
            return {k: self._argument(v, f"{text}[{k!r}]") for k, v in value.items()}
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [f.name for f in dataclasses.fields(value)]
            changes = {n: self._argument(getattr(value, n), f"{text}.{n}") for n in names}
            return dataclasses.replace(value, **changes)
        return value

    def run(self) -> TypedProgram:
        """Interpret the whole function."""
        with contextlib.suppress(ReturnValue):
            self._run_body(self.source.tree.body)
        if not self.loops:
            raise exc.NoDeviceLoopsInKernel(self.source.span(self.source.tree))
        compilation = self.compilation
        program = DeviceProgram(
            tuple(loop for _, loop in self.loops), tuple(compilation.blocks), compilation.symbols
        )
        return TypedProgram(
            source=self.source,
            device=program,
            loops=tuple(node for node, _ in self.loops),
            host_numbers=compilation.imports.numbers,
            host_calls=self.host.op_calls,
            types=self.host.types,
            constants=compilation.constants,
            tunables=compilation.tunables,
            torch_device=compilation.device,
            index_dtype=compilation.options.index_dtype,
        )

    def _run_body(self, body: list[ast.stmt]) -> None:
        between: ast.stmt | None = None
        for statement in body:
            before = len(self.loops)
            self.host.execute(statement)
            if len(self.loops) > before:
                if between is not None:
                    raise exc.TopLevelStatementBetweenLoops(self.source.span(between))
            elif self.loops and not isinstance(statement, ast.Pass):
                between = between or statement

    def _top_loop(self, node: ast.For) -> None:
        """A top-level loop: its axes become the grid."""
        if node.orelse:
            raise exc.DeviceLoopElseBlock(self.source.span(node), api="hl.tile")
        compilation, device = self.compilation, self.device
        compilation.recorder.builder = GraphBuilder()
        self.scope.device = {}
        assert isinstance(node.iter, ast.Call)
        function = self.host.evaluate(node.iter.func)
        context = device.context(node.iter, function)
        args = [device.evaluate(a) for a in node.iter.args]
        kwargs = {k.arg: device.evaluate(k.value) for k in node.iter.keywords if k.arg}
        spec = as_loop(context, function, args, kwargs, target_names(node.target))
        if spec is None:
            raise exc.LoopFunctionNotInFor(self.source.span(node.iter), api=f"hl.{function.name}")
        compilation.loops = list(spec.axes)
        compilation.grid_rank = len(spec.axes)
        device.assign(node.target, loop_target(context, spec.axes, spec.scalar))
        device.run(node.body)
        compilation.recorder.builder.graph.output(())
        loop = TopLoop(spec.axes, compilation.recorder.builder.graph, self.source.span(node))
        check_loop(loop, [earlier for _, earlier in self.loops])
        self.loops.append((node, loop))
