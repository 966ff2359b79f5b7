"""The pointwise prims in Triton: one table, prim -> expression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from helion.codegen import expression as ex
from helion.codegen.expression import Expression, call, infix

aten = torch.ops.aten
prims = torch.ops.prims

# From the dtype of the operands, that of the result, and the operands, to the result.
Rule = Callable[[torch.dtype, torch.dtype, list[Expression]], Expression]

_BITS = {"|": ex.BIT_OR, "&": ex.BIT_AND, "^": ex.BIT_XOR}


def _operator(symbol: str, binds: int, on_bool: str | None = None) -> Rule:
    """An infix operator; `on_bool` is torch's meaning of it for bools, where that differs."""

    def rule(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
        if on_bool and operand is torch.bool:
            return infix(on_bool, args[0], args[1], _BITS[on_bool], result)
        return infix(symbol, args[0], args[1], binds, result)

    return rule


def _function(name: str) -> Rule:
    def rule(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
        del operand
        return call(name, args, result)

    return rule


def _prefix(symbol: str, arg: Expression, dtype: torch.dtype) -> Expression:
    return Expression(f"{symbol}{arg.within(ex.UNARY)}", dtype, arg.shape, ex.UNARY)


def _negate(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
    del operand
    return _prefix("-", args[0], result)


def _divide(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
    # Between ints prims.div truncates, as `//` does between Triton's ints.
    symbol = "/" if operand.is_floating_point else "//"
    return infix(symbol, args[0], args[1], ex.PRODUCT, result)


def _bitwise_not(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
    if operand is torch.bool:
        return infix("==", args[0], ex.literal(0), ex.COMPARE, result)
    return _prefix("~", args[0], result)


def _rounding(name: str) -> Rule:
    """The identity between ints."""

    def rule(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
        return call(name, args, result) if operand.is_floating_point else args[0]

    return rule


def _nan_aware(name: str) -> Rule:
    """Torch's maximum and minimum return NaN if either operand is NaN."""

    def rule(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
        extra = ["propagate_nan=tl.PropagateNan.ALL"] if operand.is_floating_point else []
        return call(name, args, result, *extra)

    return rule


def _floor_divide(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
    if operand.is_floating_point:
        return call("tl.floor", [infix("/", args[0], args[1], ex.PRODUCT, operand)], result)
    a, b = args
    quotient = infix("//", a, b, ex.PRODUCT, result)
    rest = infix("%", a, b, ex.PRODUCT, operand)
    inexact = infix("!=", rest, ex.literal(0), ex.COMPARE, torch.bool)
    sign = infix("^", rest, b, ex.BIT_XOR, operand)
    negative = infix("<", sign, ex.literal(0), ex.COMPARE, torch.bool)
    fix = infix("&", inexact, negative, ex.BIT_AND, torch.bool)
    return infix("-", quotient, fix, ex.SUM, result)


def _remainder(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
    a, b = args
    if operand.is_floating_point:
        rest = call("libdevice.fmod", args, operand)
    else:
        rest = infix("%", a, b, ex.PRODUCT, operand)
    inexact = infix("!=", rest, ex.literal(0), ex.COMPARE, torch.bool)
    below = infix("<", rest, ex.literal(0), ex.COMPARE, torch.bool)
    below_b = infix("<", b, ex.literal(0), ex.COMPARE, torch.bool)
    unlike = infix("!=", below, below_b, ex.COMPARE, torch.bool)
    wrong = infix("&", inexact, unlike, ex.BIT_AND, torch.bool)
    return call("tl.where", [wrong, infix("+", rest, b, ex.SUM, operand), rest], result)


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
    prims.ceil.default: _rounding("tl.ceil"),
    prims.cos.default: _function("tl.cos"),
    prims.cosh.default: _function("libdevice.cosh"),
    prims.erf.default: _function("tl.erf"),
    prims.erf_inv.default: _function("libdevice.erfinv"),
    prims.erfc.default: _function("libdevice.erfc"),
    prims.exp.default: _function("tl.exp"),
    prims.exp2.default: _function("tl.exp2"),
    prims.expm1.default: _function("libdevice.expm1"),
    prims.floor.default: _rounding("tl.floor"),
    prims.lgamma.default: _function("libdevice.lgamma"),
    prims.log.default: _function("tl.log"),
    prims.log10.default: _function("libdevice.log10"),
    prims.log1p.default: _function("libdevice.log1p"),
    prims.log2.default: _function("tl.log2"),
    prims.neg.default: _negate,
    prims.round.default: _rounding("libdevice.nearbyint"),
    prims.rsqrt.default: _function("tl.rsqrt"),
    prims.sin.default: _function("tl.sin"),
    prims.sinh.default: _function("libdevice.sinh"),
    prims.sqrt.default: _function("tl.sqrt_rn"),
    prims.tan.default: _function("libdevice.tan"),
    prims.tanh.default: _function("libdevice.tanh"),
    prims.trunc.default: _rounding("libdevice.trunc"),
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
    aten.sigmoid.default: _function("tl.sigmoid"),
    aten.floor_divide.default: _floor_divide,
    aten.floor_divide.Scalar: _floor_divide,
    aten.remainder.Tensor: _remainder,
    aten.remainder.Scalar: _remainder,
}
