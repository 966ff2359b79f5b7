"""Looking into a kernel while it runs."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from helion import exc
from helion._compat import is_interpreting
from helion.ir.describe import type_name
from helion.ir.symbols import is_number
from helion.language._op import LowerCtx, TypeCtx, op

if TYPE_CHECKING:
    from helion.ir.graph import Node
    from helion.language._eager import EagerMode


@op
def device_print(prefix: str, *values: Any) -> None:
    """Print from the device; `print("text", value)` in device code is the same.

    Each program prints its tile, and on a GPU each thread its elements: use small ones. Lanes past
    the end of an axis are printed too, whatever they hold.

    Args:
        prefix: a string literal of ASCII, printed before each value.
        values: tensors and numbers.

    Raises:
        InvalidPrintArgument: a prefix or a value that is none of these.

    Example: `hl.device_print("row", tile.begin)`
    """
    raise exc.NotInsideKernel(api="hl.device_print")


@device_print.type_rule
def _(ctx: TypeCtx, prefix: Any, *values: Any) -> None:
    if not isinstance(prefix, str):
        _refuse(ctx, f"the first argument is a `{type_name(prefix)}`")
    if not (prefix.isascii() and prefix.isprintable()):
        _refuse(ctx, f"the prefix {prefix!r} has characters that are not printable ASCII")
    for value in values:
        if not (is_number(value) or ctx.is_device(value)):
            _refuse(ctx, f"a `{type_name(value)}` cannot be printed")
    ctx.record(device_print, (prefix, values), None)


def _refuse(ctx: TypeCtx, detail: str) -> None:
    raise exc.InvalidPrintArgument(ctx.span(), detail=detail)


@device_print.lowering
def _(ctx: LowerCtx, node: Node) -> None:
    prefix, values = node.args
    operands = ", ".join([repr(prefix), *(ctx.operand(v).text for v in values)])  # pyright: ignore
    ctx.statement(f"tl.device_print({operands})")


@device_print.reference
def _(mode: EagerMode, prefix: str, *values: Any) -> None:
    del mode
    print(prefix, *values)


@op
def breakpoint() -> None:
    """Stop in the debugger, inside of the generated kernel; `breakpoint()` does the same.

    Works where no GPU runs the kernel: under Triton's interpreter, and in the eager reference mode,
    where a breakpoint stops in the author's own code.

    Raises:
        BreakpointInDeviceLoopRequiresInterpret: the kernel is compiled.
    """
    raise exc.NotInsideKernel(api="hl.breakpoint")


@breakpoint.type_rule
def _(ctx: TypeCtx) -> None:
    if not is_interpreting():
        raise exc.BreakpointInDeviceLoopRequiresInterpret(ctx.span())
    ctx.record(breakpoint, (), None)


@breakpoint.lowering
def _(ctx: LowerCtx, node: Node) -> None:
    del node
    ctx.statement("breakpoint()")


@breakpoint.reference
def _(mode: EagerMode) -> None:
    del mode
    builtins.breakpoint()


device_print.has_effect = breakpoint.has_effect = True

BUILTINS = {builtins.print: device_print, builtins.breakpoint: breakpoint}
"""What stands for Python's own functions in device code."""
