"""Loops and branches inside a program."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import torch

from helion.codegen import expression as ex
from helion.codegen.expression import Expression
from helion.codegen.kernel import AxisNames
from helion.codegen.names import Block
from helion.codegen.reductions import carried
from helion.ir.graph import Node, args_of, facts, value_of
from helion.ir.symbols import DeviceNumber, is_number

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from helion.codegen.operations import LoweringContext
    from helion.ir.control import Region
    from helion.ir.tiles import TileAxis


def lower_for(kernel: LoweringContext, node: Node, lower: Callable[..., list[Any]]) -> None:
    """`for_loop`: nested `for` statements, one for each axis; `while` where there are none."""
    axes, bounds, region, _, captured = args_of(node)
    names = _declare(kernel, node)
    outer = kernel.body
    if not axes:
        outer.line(f"while {names[0].text}:")
        kernel.body = outer.block(1)
    for i in kernel.choices.loop_order(axes):
        kernel.body = _open_loop(kernel, axes[i], *bounds[i])
    results = _run_region(kernel, region, [*names, *captured], lower)
    olds = [n for n in region.graph.nodes if n.op == "placeholder"]
    results = [
        (carried(kernel, axes, old, new, value), new)
        for old, (value, new) in zip(olds, results, strict=False)
    ]
    _assign(kernel, names, results)
    for axis in axes:
        del kernel.axes[axis]
    kernel.body = outer
    kernel.results[node] = names


def _open_loop(kernel: LoweringContext, axis: TileAxis, low: Any, high: Any) -> Block:
    begin, end = kernel.bound_text(low), kernel.bound_text(high)
    step = kernel.step_text(axis)
    name = kernel.names.fresh(f"{axis.name}_begin" if axis.block is not None else axis.name)
    parts = [begin, end] if step == "1" else [begin, end, step]
    if begin == "0" and step == "1":
        parts = [end]
    kernel.body.line(f"for {name} in {kernel.choices.loop_text(axis, parts)}:")
    body = kernel.body.block(1)
    kernel.axes[axis] = AxisNames(axis, body.block(), name, begin, end)
    return body.block()


def lower_if(kernel: LoweringContext, node: Node, lower: Callable[..., list[Any]]) -> None:
    """`if_else`: both branches assign the variables that the branch merges."""
    condition, then, orelse, captured, otherwise = args_of(node)
    values = value_of(node)
    names = [
        _reused(kernel, node, n, v) or _variable(kernel, n, v)
        for n, v in zip(then.names, values, strict=True)
    ]
    outer = kernel.body
    for keyword, region, inputs in (
        (f"if {kernel.operand(condition).text}:", then, captured),
        ("else:", orelse, otherwise),
    ):
        kernel.body = branch = Block(outer)
        results = _run_region(kernel, region, list(inputs), lower)
        _assign(kernel, names, results)
        if branch or keyword != "else:":
            outer.line(keyword)
            outer.attach(branch, 1)
            if not branch:
                branch.line("pass")
    kernel.body = outer
    kernel.results[node] = names


def _run_region(
    kernel: LoweringContext, region: Region, inputs: Sequence[Any], lower: Callable[..., list[Any]]
) -> list[tuple[Any, Any]]:
    """Lower a region; each result comes with what it is in the device IR."""
    placeholders = [n for n in region.graph.nodes if n.op == "placeholder"]
    for placeholder, value in zip(placeholders, inputs, strict=True):
        kernel.expressions[placeholder] = (
            value if isinstance(value, Expression) else kernel.operand(value)
        )
    output = next(n for n in region.graph.nodes if n.op == "output")
    expressions = lower(kernel, region.graph)
    return list(zip(expressions, output.args[0], strict=True))


def _declare(kernel: LoweringContext, node: Node) -> list[Expression]:
    """Give each carried variable a name and its value before the loop."""
    _, _, region, carried, _ = args_of(node)
    names: list[Expression] = []
    placeholders = [n for n in region.graph.nodes if n.op == "placeholder"]
    for i, (start, value) in enumerate(zip(carried, value_of(node), strict=True)):
        variable = _reused(kernel, node, region.names[i], value, start)
        if variable is None:
            variable = _variable(kernel, region.names[i], value)
            if is_number(value):
                initial = _number(kernel, variable, start)
            else:
                initial = _full(kernel, kernel.operand(start), value)
            kernel.body.line(f"{variable.text} = {initial.text}")
        kernel.variables.add(placeholders[i])
        inside = facts(placeholders[i]).value
        if is_number(inside):
            _name_number(kernel, inside, variable.text)
        names.append(variable)
    return names


def _reused(
    kernel: LoweringContext, node: Node, name: str, like: Any, start: Any = None
) -> Expression | None:
    """The variable that holds the author's old value, if a loop or branch is its last use."""
    sources = [start] if start is not None else [n for given in args_of(node)[3:] for n in given]
    for source in sources:
        if not isinstance(source, Node) or source not in kernel.variables or is_number(like):
            continue
        variable = kernel.expressions[source]
        fits = variable.dtype is like.dtype and variable.shape == tuple(like.shape)
        if fits and facts(source).name == name and set(source.users) == {node}:
            return variable
    return None


def _variable(kernel: LoweringContext, name: str, value: Any) -> Expression:
    text = kernel.names.fresh(name)
    if is_number(value):
        _name_number(kernel, value, text)
        return Expression(text, kernel.number(value).dtype)
    return Expression(text, value.dtype, tuple(value.shape))


def _name_number(kernel: LoweringContext, value: Any, text: str) -> None:
    origin = kernel.program.symbols.origin(value)
    assert isinstance(origin, DeviceNumber)
    kernel.device_numbers[origin] = text


def _number(kernel: LoweringContext, variable: Expression, number: Any) -> Expression:
    """A number for a variable, of 64 bits if that has 64."""
    if variable.dtype is not torch.int64:
        return kernel.number(number)
    wide = kernel.wide_number(number)
    return ex.cast(wide, torch.int64) if wide.dtype is None else wide


def _full(kernel: LoweringContext, value: Expression, like: Any) -> Expression:
    """A value in the dtype and shape that its variable has."""
    if value.dtype is None or value.dtype is not like.dtype:
        value = ex.cast(value, like.dtype)
    return kernel.broadcast(value, like.shape)


def _assign(
    kernel: LoweringContext, names: Sequence[Expression], results: Sequence[tuple[Any, Any]]
) -> None:
    """Assign all variables at once: no new value may be read as an old one."""
    texts: list[tuple[str, str]] = []
    for variable, (result, meaning) in zip(names, results, strict=True):
        like = value_of(meaning)
        if is_number(like):
            text = _number(kernel, variable, meaning).text
        else:
            text = _full(kernel, result, like).text
        if text != variable.text:
            texts.append((variable.text, text))
    names_before = [{name for name, _ in texts[:i]} for i in range(len(texts))]
    if any(_mentions(text, old) for (_, text), old in zip(texts, names_before, strict=True)):
        left = ", ".join(name for name, _ in texts)
        kernel.body.line(f"{left} = {', '.join(text for _, text in texts)}")
        return
    for name, text in texts:
        kernel.body.line(f"{name} = {text}")


def _mentions(text: str, names: set[str]) -> bool:
    return not names.isdisjoint(re.findall(r"\w+", text))
