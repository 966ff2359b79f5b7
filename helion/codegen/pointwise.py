"""The pointwise prims in Triton: one table, prim -> expression.

A rule uses each operand once, because an operand may be a long expression; what needs one twice is
a function of `helion.runtime.triton_helpers`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from helion import exc
from helion.codegen import expression as ex
from helion.codegen.expression import Expression, call, infix

aten = torch.ops.aten
prims = torch.ops.prims

# From the dtype of the operands, that of the result, and the operands, to the result.
Rule = Callable[[torch.dtype, torch.dtype, list[Expression]], Expression]

_BITS = {"|": ex.BIT_OR, "&": ex.BIT_AND, "^": ex.BIT_XOR}
_SAME_SIZE_INTS = {1: "tl.int8", 2: "tl.int16", 4: "tl.int32", 8: "tl.int64"}


def _operator(symbol: str, binds: int, on_bool: str | None = None) -> Rule:
    """An infix operator; `on_bool` is torch's meaning of it for bools, where that differs."""

    def rule(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
        args = _one_tensor(args, operand)
        if on_bool and operand is torch.bool:
            return infix(on_bool, args[0], args[1], _BITS[on_bool], result)
        return infix(symbol, args[0], args[1], binds, result)

    return rule


def _one_tensor(args: list[Expression], dtype: torch.dtype) -> list[Expression]:
    """Operands of which one at least has a dtype: Triton computes with two literals in Python."""
    if any(a.dtype is not None for a in args):
        return args
    return [ex.cast(args[0], dtype), *args[1:]]


def _function(name: str, *extra: str) -> Rule:
    """A Triton function; it makes an int32 or float32 of a literal, and then promotes."""

    def rule(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
        args = _one_tensor(args, operand)
        if operand not in (torch.float32, torch.int32, torch.int64, torch.bool):
            args = _typed(args, operand)
        return call(name, args, result, *extra)

    return rule


def _typed(args: list[Expression], dtype: torch.dtype) -> list[Expression]:
    return [ex.cast(a, dtype) if a.dtype is None else a for a in args]


def _libdevice(name: str) -> Rule:
    """A function of libdevice, which finds its variant from the exact dtypes of its arguments."""

    def rule(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
        return call(f"libdevice.{name}", _typed(args, operand), result)

    return rule


def _helper(name: str) -> Rule:
    """A function of `triton_helpers`."""

    def rule(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
        return call(f"triton_helpers.{name}", _typed(args, operand), result)

    return rule


def _division(name: str) -> Rule:
    """One of `triton_helpers`' divisions: the name alone for ints."""
    of_floats = _helper(f"{name}_float")

    def rule(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
        if operand.is_floating_point:
            return of_floats(operand, result, args)
        return call(f"triton_helpers.{name}", _one_tensor(args, operand), result)

    return rule


def _prefix(symbol: str, arg: Expression, dtype: torch.dtype) -> Expression:
    return Expression(f"{symbol}{arg.within(ex.UNARY)}", dtype, arg.shape, ex.UNARY)


def _negate(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
    if operand.is_floating_point:
        # Triton's `-x` is `0 - x`, which turns 0.0 into 0.0; the product costs nothing.
        return infix("*", ex.literal(-1.0), _typed(args, operand)[0], ex.PRODUCT, result)
    return _prefix("-", _one_tensor(args, operand)[0], result)


def _divide(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
    # Between ints prims.div truncates, as `//` does between Triton's ints.
    symbol = "/" if operand.is_floating_point else "//"
    left, right = _one_tensor(args, operand)
    return infix(symbol, left, right, ex.PRODUCT, result)


def _truncated_quotient(
    operand: torch.dtype, result: torch.dtype, args: list[Expression]
) -> Expression:
    if not operand.is_floating_point:
        return _divide(operand, result, args)
    # Triton's `/` is off by a bit or two in float32, so that 7 / 7 could come out below 1.
    exact = call("tl.div_rn", _typed(args, operand), operand)
    quotient = exact if operand is torch.float32 else _divide(operand, operand, args)
    return call("libdevice.trunc", [quotient], result)


def _reciprocal(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
    return infix("/", ex.literal(1.0), _typed(args, operand)[0], ex.PRODUCT, result)


def _bitwise_not(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
    if operand is torch.bool:
        return infix("==", args[0], ex.literal(0), ex.COMPARE, result)
    return _prefix("~", _one_tensor(args, operand)[0], result)


def _rounding(name: str) -> Rule:
    """The identity between ints."""

    def rule(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
        return call(name, args, result) if operand.is_floating_point else args[0]

    return rule


def _nan_aware(name: str) -> Rule:
    """Torch's maximum and minimum return NaN if either operand is NaN."""
    plain = _function(name)
    propagating = _function(name, "propagate_nan=tl.PropagateNan.ALL")

    def rule(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
        return (propagating if operand.is_floating_point else plain)(operand, result, args)

    return rule


def _where(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
    return call("tl.where", [args[0], *_one_tensor(args[1:], result)], result)


def _fmod(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
    if operand.is_floating_point:
        return _libdevice("fmod")(operand, result, args)
    # Between Triton's ints, `%` has the sign of the dividend.
    left, right = _one_tensor(args, operand)
    return infix("%", left, right, ex.PRODUCT, result)


def _power(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
    if operand.is_floating_point:
        return _libdevice("pow")(operand, result, args)
    return _helper("pow_int")(operand, result, args)


def _shift(symbol: str, helper: str) -> Rule:
    """A shift; one by as many bits as there are is not defined in Triton, so that it is guarded."""

    def rule(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
        if operand.is_floating_point:
            raise exc.BackendUnsupported(backend="triton", detail=f"a shift of {operand}")
        left, right = _one_tensor(args, operand)
        if right.dtype is None and 0 <= int(right.text) < 8 * operand.itemsize:
            return infix(symbol, left, right, ex.SHIFT, result)
        return _helper(helper)(operand, result, [left, right])

    return rule


def _sqrt(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
    # Without the suffix it is approximate in float32, and exact in float64.
    name = "tl.sqrt_rn" if operand is torch.float32 else "tl.sqrt"
    return call(name, _typed(args, operand), result)


def _sign_bit(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
    value = _typed(args, operand)[0]
    if operand is torch.bool:
        return infix("!=", value, value, ex.COMPARE, result)
    if operand.is_floating_point:
        value = _bits(value, _SAME_SIZE_INTS[operand.itemsize], operand)
    return infix("<", value, ex.literal(0), ex.COMPARE, result)


def _is_finite(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
    size = call("tl.abs", _typed(args, operand), operand)
    # NaN compares false, too.
    return infix("<", size, ex.literal(float("inf")), ex.COMPARE, result)


def _reinterpret(operand: torch.dtype, result: torch.dtype, args: list[Expression]) -> Expression:
    if torch.bool in (operand, result):
        return ex.cast(args[0], result)
    return _bits(args[0], ex.TRITON_DTYPES[result], result)


def _bits(value: Expression, name: str, dtype: torch.dtype) -> Expression:
    return Expression(f"{value.within(ex.ATOM)}.to({name}, bitcast=True)", dtype, value.shape)


POINTWISE: dict[Any, Rule] = {
    prims.abs.default: _function("tl.abs"),
    prims.acos.default: _libdevice("acos"),
    prims.acosh.default: _libdevice("acosh"),
    prims.asin.default: _libdevice("asin"),
    prims.asinh.default: _libdevice("asinh"),
    prims.atan.default: _libdevice("atan"),
    prims.atanh.default: _libdevice("atanh"),
    prims.atan2.default: _libdevice("atan2"),
    prims.bessel_i0.default: _libdevice("cyl_bessel_i0"),
    prims.bessel_i1.default: _libdevice("cyl_bessel_i1"),
    prims.bessel_j0.default: _libdevice("j0"),
    prims.bessel_j1.default: _libdevice("j1"),
    prims.bitwise_not.default: _bitwise_not,
    prims.cbrt.default: _libdevice("cbrt"),
    prims.ceil.default: _rounding("tl.ceil"),
    prims.cos.default: _function("tl.cos"),
    prims.cosh.default: _libdevice("cosh"),
    prims.digamma.default: _helper("digamma"),
    prims.erf.default: _function("tl.erf"),
    prims.erf_inv.default: _libdevice("erfinv"),
    prims.erfc.default: _libdevice("erfc"),
    prims.erfcx.default: _libdevice("erfcx"),
    prims.exp.default: _function("tl.exp"),
    prims.exp2.default: _function("tl.exp2"),
    prims.expm1.default: _libdevice("expm1"),
    prims.floor.default: _rounding("tl.floor"),
    prims.isfinite.default: _is_finite,
    prims.lgamma.default: _libdevice("lgamma"),
    prims.log.default: _function("tl.log"),
    prims.log10.default: _libdevice("log10"),
    prims.log1p.default: _libdevice("log1p"),
    prims.log2.default: _function("tl.log2"),
    prims.ndtri.default: _libdevice("normcdfinv"),
    prims.neg.default: _negate,
    prims.reciprocal.default: _reciprocal,
    prims.round.default: _rounding("libdevice.nearbyint"),
    prims.rsqrt.default: _function("tl.rsqrt"),
    prims.signbit.default: _sign_bit,
    prims.sin.default: _function("tl.sin"),
    prims.sinh.default: _libdevice("sinh"),
    prims.sqrt.default: _sqrt,
    prims.tan.default: _libdevice("tan"),
    prims.tanh.default: _libdevice("tanh"),
    prims.trunc.default: _rounding("libdevice.trunc"),
    prims.add.default: _operator("+", ex.SUM, on_bool="|"),
    prims.sub.default: _operator("-", ex.SUM, on_bool="^"),
    prims.mul.default: _operator("*", ex.PRODUCT, on_bool="&"),
    prims.div.default: _divide,
    prims.bitwise_and.default: _operator("&", ex.BIT_AND),
    prims.bitwise_or.default: _operator("|", ex.BIT_OR),
    prims.bitwise_xor.default: _operator("^", ex.BIT_XOR),
    prims.shift_left.default: _shift("<<", "shift_left"),
    prims.shift_right_arithmetic.default: _shift(">>", "shift_right"),
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
    prims.fmod.default: _fmod,
    prims.gcd.default: _helper("gcd"),
    prims.hypot.default: _libdevice("hypot"),
    prims.nextafter.default: _helper("nextafter"),
    prims.pow.default: _power,
    prims.remainder.default: _division("remainder"),
    prims.where.default: _where,
    aten.div.Scalar_mode: _truncated_quotient,
    aten.div.Tensor_mode: _truncated_quotient,
    aten.floor_divide.default: _division("floor_divide"),
    aten.floor_divide.Scalar: _division("floor_divide"),
    aten.sigmoid.default: _function("tl.sigmoid"),
    aten.special_bessel_y0.default: _libdevice("y0"),
    aten.special_bessel_y1.default: _libdevice("y1"),
    aten.special_modified_bessel_i0.default: _libdevice("cyl_bessel_i0"),
    aten.special_modified_bessel_i1.default: _libdevice("cyl_bessel_i1"),
    aten.view.dtype: _reinterpret,
}

# Between ints that are not negative.
POSITIVE: dict[Any, Rule] = {
    prims.remainder.default: _operator("%", ex.PRODUCT),
    aten.floor_divide.default: _operator("//", ex.PRODUCT),
    aten.floor_divide.Scalar: _operator("//", ex.PRODUCT),
}
