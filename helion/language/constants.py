"""Facts for the compiler: what to compile in instead of passing it at the launch."""

from __future__ import annotations

from typing import Any, NamedTuple

from helion import exc
from helion.ir.describe import type_name
from helion.ir.symbols import HostNumber, HostSize, is_number, known_int
from helion.language._op import TypeCtx, op


class constexpr(NamedTuple):
    """A value that is compiled in: an annotation of a parameter, or a wrapper at the call."""

    value: Any

    def __index__(self) -> int:
        return int(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)


@op
def specialize(value: Any) -> Any:
    """Make a size, a stride, an int argument, or a sequence of these known to the compiler.

    Every value that occurs gets a kernel of its own. Host part only; as a statement it holds for
    every later use of the same size.

    Args:
        value: size, stride, int, an expression of these, or a sequence.

    Returns:
        The int, or a tuple of ints.

    Raises:
        SpecializeOnDevice: called in a device loop.
        SpecializeArgType: the value is something else.
    """
    raise exc.NotInsideKernel(api="hl.specialize")


@specialize.type_rule
def _(ctx: TypeCtx, value: Any) -> Any:
    raise exc.SpecializeOnDevice(ctx.span())


@specialize.host_rule
def _(ctx: TypeCtx, value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value)(ctx.specialize(v) for v in value)
    if not is_number(value) or isinstance(value, (bool, float)):
        raise exc.SpecializeArgType(ctx.span("value"), got=type_name(value))
    if known_int(value) is not None:
        return known_int(value)
    if not all(isinstance(o, (HostSize, HostNumber)) for o in ctx.symbols.origins_in(value)):
        raise exc.SpecializeArgType(ctx.span("value"), got="a number that depends on the config")
    return ctx.specialize(value)


@specialize.reference
def _(mode: Any, value: Any) -> Any:
    del mode
    return value
