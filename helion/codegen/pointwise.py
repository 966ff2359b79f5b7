"""The pointwise prims in Triton: one table, prim -> expression."""

from __future__ import annotations

from typing import Any, Callable

import torch

from helion.codegen import expression as ex
from helion.codegen.expression import Expression, binary, call

prims = torch.ops.prims

Rule = Callable[[torch.dtype, list[Expression]], Expression]


def _operator(symbol: str, binds: int, on_bool: str | None = None) -> Rule:
    """An infix operator; `on_bool` is torch's meaning of it for bools, where that differs."""

    def rule(dtype: torch.dtype, args: list[Expression]) -> Expression:
        if on_bool and dtype is torch.bool:
            bits = {"|": ex.BIT_OR, "&": ex.BIT_AND, "^": ex.BIT_XOR}[on_bool]
            return binary(on_bool, args[0], args[1], bits, dtype)
        return binary(symbol, args[0], args[1], binds, dtype)

    return rule


def _function(name: str, *extra: str) -> Rule:
    def rule(dtype: torch.dtype, args: list[Expression]) -> Expression:
        return call(name, *args, *extra, dtype=dtype)

    return rule


def _prefix(symbol: str) -> Rule:
    def rule(dtype: torch.dtype, args: list[Expression]) -> Expression:
        return Expression(f"{symbol}{args[0].within(ex.UNARY)}", dtype, ex.UNARY)

    return rule


def _divide(dtype: torch.dtype, args: list[Expression]) -> Expression:
    # Between ints prims.div truncates, as `//` does between Triton's ints.
    symbol = "/" if dtype.is_floating_point else "//"
    return binary(symbol, args[0], args[1], ex.PRODUCT, dtype)


def _bitwise_not(dtype: torch.dtype, args: list[Expression]) -> Expression:
    if dtype is torch.bool:
        return binary("==", args[0], ex.literal(0), ex.COMPARE, dtype)
    return Expression(f"~{args[0].within(ex.UNARY)}", dtype, ex.UNARY)


def _same_or_function(name: str) -> Rule:
    """Rounding: the identity between ints."""

    def rule(dtype: torch.dtype, args: list[Expression]) -> Expression:
        return call(name, *args, dtype=dtype) if dtype.is_floating_point else args[0]

    return rule


def _nan_aware(name: str) -> Rule:
    """torch's maximum and minimum return NaN if either operand is NaN."""

    def rule(dtype: torch.dtype, args: list[Expression]) -> Expression:
        extra = ["propagate_nan=tl.PropagateNan.ALL"] if dtype.is_floating_point else []
        return call(name, *args, *extra, dtype=dtype)

    return rule


POINTWISE: dict[Any, Rule] = {
    prims.abs.default: _function("tl.abs"),
    prims.acos.default: _function("libdevice.acos"),
    prims.acosh.default: _function("libdevice.acosh"),
    prims.asin.default: _function("libdevice.asin"),
    prims.asinh.default: _function("libdevice.asinh"),
    prims.atan.default: _function("libdevice.atan"),
    prims.atanh.default: _function("libdevice.atanh"),
    prims.atan2.default: _function("libdevice.atan2"),
    prims.bitwise_not.default: _bitwise_not,
    prims.cbrt.default: _function("libdevice.cbrt"),
    prims.ceil.default: _same_or_function("tl.ceil"),
    prims.cos.default: _function("tl.cos"),
    prims.cosh.default: _function("libdevice.cosh"),
    prims.erf.default: _function("tl.erf"),
    prims.erf_inv.default: _function("libdevice.erfinv"),
    prims.erfc.default: _function("libdevice.erfc"),
    prims.exp.default: _function("tl.exp"),
    prims.exp2.default: _function("tl.exp2"),
    prims.expm1.default: _function("libdevice.expm1"),
    prims.floor.default: _same_or_function("tl.floor"),
    prims.lgamma.default: _function("libdevice.lgamma"),
    prims.log.default: _function("tl.log"),
    prims.log10.default: _function("libdevice.log10"),
    prims.log1p.default: _function("libdevice.log1p"),
    prims.log2.default: _function("tl.log2"),
    prims.neg.default: _prefix("-"),
    prims.round.default: _same_or_function("libdevice.nearbyint"),
    prims.rsqrt.default: _function("tl.rsqrt"),
    prims.sin.default: _function("tl.sin"),
    prims.sinh.default: _function("libdevice.sinh"),
    prims.sqrt.default: _function("tl.sqrt_rn"),
    prims.tan.default: _function("libdevice.tan"),
    prims.tanh.default: _function("libdevice.tanh"),
    prims.trunc.default: _same_or_function("libdevice.trunc"),
    prims.add.default: _operator("+", ex.SUM, on_bool="|"),
    prims.sub.default: _operator("-", ex.SUM, on_bool="^"),
    prims.mul.default: _operator("*", ex.PRODUCT, on_bool="&"),
    prims.div.default: _divide,
    prims.bitwise_and.default: _operator("&", ex.BIT_AND),
    prims.bitwise_or.default: _operator("|", ex.BIT_OR),
    prims.bitwise_xor.default: _operator("^", ex.BIT_XOR),
    prims.shift_left.default: _operator("<<", ex.SHIFT),
    prims.shift_right_arithmetic.default: _operator(">>", ex.SHIFT),
    prims.eq.default: _operator("==", ex.COMPARE),
    prims.ne.default: _operator("!=", ex.COMPARE),
    prims.lt.default: _operator("<", ex.COMPARE),
    prims.le.default: _operator("<=", ex.COMPARE),
    prims.gt.default: _operator(">", ex.COMPARE),
    prims.ge.default: _operator(">=", ex.COMPARE),
    prims.maximum.default: _nan_aware("tl.maximum"),
    prims.minimum.default: _nan_aware("tl.minimum"),
    prims.fmax.default: _function("tl.maximum"),
    prims.fmin.default: _function("tl.minimum"),
    prims.fmod.default: _function("libdevice.fmod"),
    prims.hypot.default: _function("libdevice.hypot"),
    prims.nextafter.default: _function("libdevice.nextafter"),
    prims.pow.default: _function("libdevice.pow"),
    prims.where.default: _function("tl.where"),
}
