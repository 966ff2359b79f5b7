"""Operations of the language that are not there yet: a program that uses one is told so."""

from __future__ import annotations

from typing import Any, NoReturn

from helion import exc
from helion.language._op import Op, TypeCtx, op

# What `hl.NAME` names; each leaves the list when it is written.
LATER = (
    "StackTensor",
    "associative_scan",
    "barrier",
    "cumprod",
    "cumsum",
    "dot_scaled",
    "float4_e2m1fn_x2_to_float32",
    "inline_asm_elementwise",
    "inline_triton",
    "jagged_tile",
    "load_bfloat16_x16_to_float16",
    "load_float4_e2m1fn_x16_to_float16",
    "reduce",
    "stacktensor_like",
    "triton_kernel",
)


def later(name: str) -> Op:
    """An operation of this name that refuses to be called, on the host and on the device."""

    def signature(*args: Any, **kwargs: Any) -> NoReturn:
        raise exc.NotInsideKernel(api=f"hl.{name}")

    def refuse(ctx: TypeCtx, *args: Any, **kwargs: Any) -> NoReturn:
        raise exc.UnsupportedOperation(ctx.span(), api=f"hl.{name}")

    signature.__name__ = name
    signature.__doc__ = f"`hl.{name}`, which is not there yet."
    result = op(signature)
    result.type_rule(refuse)
    result.host_rule(refuse)
    return result
