"""Every pointwise function, method and operator of torch, inside a kernel, against torch itself.

Each line of a table is an expression as an author writes it, of device values `x`, `y` and `z`.
It runs on all pairs of a list of telling numbers, once for each dtype that torch accepts.
"""

import importlib.util
import itertools
import math  # noqa: F401 - for the expressions
import operator  # noqa: F401

import pytest
import torch
import torch.nn.functional as F

import helion
import helion.language as hl
from helion import exc
from helion._testing import DEVICE

FLOATS = (torch.float32, torch.bfloat16, torch.float16, torch.float64)
INTS = (torch.int32, torch.int64, torch.int8, torch.uint8)
ALL = (*FLOATS, *INTS, torch.bool)
F32 = (torch.float32,)

# The same bits as torch, NaN apart: these neither round nor approximate, or round as IEEE 754 says.
EXACT = """
torch.abs(x)            torch.neg(x)            torch.positive(x)       torch.sign(x)
torch.sgn(x)            torch.signbit(x)        torch.ceil(x)           torch.floor(x)
torch.round(x)          torch.trunc(x)          torch.frac(x)           torch.isnan(x)
torch.isinf(x)          torch.isfinite(x)       torch.isposinf(x)       torch.isneginf(x)
torch.isreal(x)         torch.logical_not(x)    torch.clone(x)          torch.square(x)
torch.nan_to_num(x)     torch.nan_to_num(x, 1, 2, 3)                    torch.heaviside(x, y)
torch.angle(x)          torch.add(x, y)         torch.sub(x, y)         torch.mul(x, y)
torch.rsub(x, y)        torch.eq(x, y)          torch.ne(x, y)          torch.lt(x, y)
torch.le(x, y)          torch.gt(x, y)          torch.ge(x, y)          torch.copysign(x, y)
torch.copysign(x, -1.0)                         torch.logical_and(x, y)
torch.logical_or(x, y)  torch.logical_xor(x, y)                         torch.nextafter(x, y)
torch.where(x > y, x, z)                        torch.where(x > y, x, 1)
torch.where(x > y, 1.5, x)                      torch.where(x > y, 1, 0)
torch.where(x > y, 1.0, 0)                      torch.where(x > y, y, True)
torch.isclose(x, y)     torch.conj(x)           x + y                   x - y
x * y                   -x                      x == y                  x != y
x < y                   x <= y                  x > y                   x >= y
x == 1                  -1 < x                  x > 0.5                 (x > y) & (y < z)
(x > y) | ~(y < z)      (x > y) ^ (y < z)       x + 1                   1 - x
2 * x                   x + 1.5                 1.5 - x                 x * 0.1
x + True                abs(x)                  x.masked_fill(y > z, 0)
x.masked_fill(y > z, -1.5)                      x.where(y > z, z)       +x
x.to(torch.float32)     x.to(torch.float64)     x.to(torch.bfloat16)    x.to(torch.float16)
x.to(torch.bool)        x.double()              x.bool()                x.type_as(y > z)
torch.zeros_like(x)     torch.ones_like(x)      torch.full_like(x, 2)   x.new_full(x.shape, 1)
x.clone().add_(y)       x.clone().mul_(y)       x.clone().copy_(y)      x.clone().zero_()
x.clone().fill_(3)      x.clone().masked_fill_(y > z, 0)
"""

# Zeros of either sign are the same to these: torch's vector code and the GPU choose freely.
EXACT_BUT_ZERO = """
torch.maximum(x, y)     torch.minimum(x, y)     torch.fmax(x, y)        torch.fmin(x, y)
torch.max(x, y)         torch.min(x, y)         torch.clamp(x, -1, 2)   torch.clamp(x, min=0)
torch.clamp(x, max=0.5)                         torch.clamp(x, min=y)   torch.clamp(x, y, z)
torch.clip(x, y, z)     torch.clamp_min(x, 0)   torch.clamp_max(x, y)   torch.relu(x)
F.relu6(x)              F.hardtanh(x)           F.hardtanh(x, -0.5, 2.0)
F.threshold(x, 0.5, 2.0)                        F.hardshrink(x)         F.softshrink(x)
x.clone().clamp_(min=0)                         x.clone().relu_()       F.dropout(x, 0.5, False)
"""

# Bits and whole numbers.
ON_INTS = """
torch.bitwise_not(x)    torch.bitwise_and(x, y)                         torch.bitwise_or(x, y)
torch.bitwise_xor(x, y)                         x & y                   x | y
x ^ y                   ~x                      x & 3                   x | 1
x ^ -1                  x.clone().bitwise_and_(y)
"""
SHIFTS = """
x << y                  x >> y                  x << 2                  x >> 2
x << 40                 x >> 40                 1 << x
torch.bitwise_left_shift(x, y)                  torch.bitwise_right_shift(x, 2)
"""
DIVISIONS = """
x // y                  x % y                   x // 3                  x % 3
x // -3                 x % -3                  torch.floor_divide(x, y)
torch.remainder(x, y)   torch.fmod(x, y)        torch.fmod(x, 3)
x.clone().floor_divide_(y)                      x.clone().remainder_(y)
torch.div(x, y, rounding_mode="floor")          torch.div(x, y, rounding_mode="trunc")
"""
POWERS = """
x ** 2                  torch.pow(x, 0)         torch.pow(x, 1)
"""
INT_POWERS = """
x ** y                  2 ** x                  x ** 5                  torch.gcd(x, y)
torch.lcm(x, y)
"""

# One rounding or more: libraries differ in the last digits.
ROUNDED = """
torch.acos(x)           torch.acosh(x)          torch.asin(x)           torch.asinh(x)
torch.atan(x)           torch.atanh(x)          torch.cos(x)            torch.cosh(x)
torch.deg2rad(x)        torch.rad2deg(x)        torch.erf(x)            torch.erfc(x)
torch.erfinv(x)         torch.exp(x)            torch.exp2(x)           torch.expm1(x)
torch.lgamma(x)         torch.digamma(x)        torch.mvlgamma(x, 2)    torch.log(x)
torch.log10(x)          torch.log1p(x)          torch.log2(x)           torch.logit(x)
torch.reciprocal(x)     torch.rsqrt(x)          torch.sigmoid(x)        torch.sin(x)
torch.sinc(x)           torch.sinh(x)           torch.sqrt(x)           torch.tan(x)
torch.tanh(x)           torch.round(x, decimals=1)
torch.atan2(x, y)       torch.hypot(x, y)       torch.div(x, y)         torch.pow(x, y)
torch.float_power(x, y)                         torch.pow(x, 2.5)       torch.pow(2.5, x)
torch.pow(x, -2)        x / y                   x / 3                   1 / x
x ** -1                 2 ** x                  torch.logaddexp(x, y)   torch.logaddexp2(x, y)
torch.xlogy(x, y)       torch.xlogy(x, 2.0)     torch.lerp(x, y, 0.3)   torch.lerp(x, y, 0.7)
torch.lerp(x, y, z)     torch.addcmul(x, y, z)  torch.addcmul(x, y, z, value=2)
torch.addcdiv(x, y, z)  torch.addcdiv(x, y, z, value=2)                 torch.add(x, y, alpha=2)
torch.sub(x, y, alpha=2)                        torch.special.entr(x)   torch.special.erfcx(x)
torch.special.log_ndtr(x)                       torch.special.ndtr(x)
torch.special.ndtri(x)  torch.special.xlog1py(x, y)
F.elu(x)                F.elu(x, alpha=0.5)     F.selu(x)               F.celu(x, alpha=0.5)
F.silu(x)               F.mish(x)               F.softplus(x)           F.softplus(x, 2.0, 10.0)
F.softsign(x)           F.hardsigmoid(x)        F.hardswish(x)          F.leaky_relu(x)
F.leaky_relu(x, 0.2)    F.logsigmoid(x)         F.tanhshrink(x)         x * y + z
x.clone().div_(y)       x.clone().sigmoid_()    x.clone().exp_()        torch.ldexp(x, y)
x ** 3                  F.rrelu(x)
"""

# At infinity torch's vector code is wrong, and its Bessel functions are NaN.
FINITE = """
F.gelu(x)               F.gelu(x, approximate="tanh")                   x ** 0.5
torch.i0(x)             torch.special.i1(x)     torch.special.bessel_j0(x)
torch.special.bessel_j1(x)                      torch.special.bessel_y0(x)
torch.special.bessel_y1(x)
"""

# Other names of the same.
ALIASES = """
torch.absolute(x)       torch.arccos(x)         torch.arccosh(x)        torch.arcsin(x)
torch.arcsinh(x)        torch.arctan(x)         torch.arctanh(x)        torch.arctan2(x, y)
torch.fix(x)            torch.negative(x)       torch.subtract(x, y)    torch.multiply(x, y)
torch.divide(x, y)      torch.true_divide(x, y)                         torch.less(x, y)
torch.less_equal(x, y)  torch.greater(x, y)     torch.greater_equal(x, y)
torch.not_equal(x, y)   torch.special.expit(x)  torch.special.erf(x)    torch.special.erfinv(x)
torch.special.exp2(x)   torch.special.expm1(x)  torch.special.gammaln(x)
torch.special.log1p(x)  torch.special.logit(x)  torch.special.psi(x)
torch.special.round(x)  torch.special.sinc(x)   torch.special.xlogy(x, y)
torch.special.digamma(x)
F.relu(x)               F.sigmoid(x)            F.tanh(x)               F.celu(x)
x.exp()                 x.add(y)                x.sub(1)                x.mul(y).add(z)
x.div(y)                x.pow(2)                x.sigmoid()             x.clamp(-1, 1)
x.rsqrt()               x.square()              x.lerp(y, 0.5)          x.addcmul(y, z)
x.float_power(2)        x.logical_and(y)        x.floor_divide(3)       x.remainder(y)
x.fmod(y)               x.true_divide(y)        x.neg()                 x.reciprocal()
x.relu()                x.tanh()                x.trunc()               x.sign()
x.nan_to_num()          x.masked_fill(x > 1, -1)                        x.isnan()
x.float()               x.half()                x.bfloat16()            x.type(torch.float64)
x.to(y.dtype)           x.to(y)                 x.contiguous()          x.detach()
operator.add(x, y)      operator.neg(x)         operator.truediv(x, y)  math.pi * x
math.sqrt(2.0) * x      x.expand_as(y)          torch.exp(x) + torch.log(abs(y)) * 2
torch.rad2deg(torch.atan2(y, x))
"""

FINITE_ALIASES = """
torch.special.i0(x)     torch.special.modified_bessel_i0(x)
torch.special.modified_bessel_i1(x)
"""

# What torch computes otherwise on a GPU: a sixth is one of float32 in float64, too. Its `erfcx` for
# a GPU is the same, but takes half a minute to compile.
AS_ON_THE_CPU = {"F.hardsigmoid(x)", "F.hardswish(x)", "torch.special.erfcx(x)"}

# To whole numbers: what does not fit in the target is not defined in torch either.
TO_INTS = """
x.to(torch.int64)       x.to(torch.int32)       x.to(torch.int16)       x.to(torch.int8)
x.to(torch.uint8)       x.int()                 x.long()                x.short()
x.char()                x.byte()
"""
REINTERPRETED = ["x.view(torch.int32)", "x.view(torch.float32)", "x.view(torch.int16)"]

UNSUPPORTED = {
    "torch.special.airy_ai(x)": "airy_ai",
    "torch.special.i0e(x)": "bessel_i0e",
    "torch.special.zeta(x, y)": "zeta",
    "torch.igamma(x, y)": "igamma",
    "torch.polygamma(2, x)": "polygamma",
    "torch.special.chebyshev_polynomial_t(x, y)": "chebyshev_polynomial_t",
    "F.rrelu(x, training=True)": "rrelu",
}


def expressions(table):
    """The cells of a table, which are apart by two spaces or more."""
    return [cell for line in table.split("\n") for cell in line.strip().split("  ") if cell.strip()]


TABLES = (EXACT, EXACT_BUT_ZERO, ON_INTS, SHIFTS, DIVISIONS, POWERS, INT_POWERS, ROUNDED, FINITE)
ALL_EXPRESSIONS = [cell.strip() for table in TABLES for cell in expressions(table)]


def _table(*tables):
    return [pytest.param(cell.strip(), id=cell.strip()) for t in tables for cell in expressions(t)]


@helion.kernel(config=helion.Config(block_sizes=[1024]))
def apply(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, out: torch.Tensor, function):
    for tile in hl.tile(x.size(0)):
        value = function(x[tile], y[tile], z[tile])
        assert value.dtype == out.dtype
        out[tile] = value
    return out


@pytest.fixture(scope="session")
def define(tmp_path_factory):
    """Makes functions of `x`, `y` and `z` in a file of their own, from which they can be read."""
    folder = tmp_path_factory.mktemp("functions")
    count = itertools.count()

    def make(expression):
        path = folder / f"function_{next(count)}.py"
        path.write_text(
            "import math, operator, torch\nimport torch.nn.functional as F\n"
            f"def function(x, y, z):\n    return {expression}\n"
        )
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.function

    return make


PLAIN = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3, 7, -7, 1e-3, -0.3, 0.9, 10.5]
SPECIAL = [float("inf"), -float("inf"), float("nan")]
WHOLE = [0, 1, -1, 2, -2, 3, -3, 7, -7, 8, 13, 100, -100]


def numbers(dtype, extreme=True, finite=False):
    """The telling numbers of a dtype."""
    if dtype is torch.bool:
        return torch.tensor([False, True], device=DEVICE)
    if dtype.is_floating_point:
        limits = torch.finfo(dtype)
        # A subnormal is not here: the GPU's libraries flush some to zero.
        far = [limits.max, limits.min, limits.tiny]
        values = PLAIN + ([] if finite else SPECIAL) + (far if extreme and not finite else [])
    else:
        limits = torch.iinfo(dtype)
        far = [limits.min, limits.max, limits.min + 1]
        values = [v for v in WHOLE + (far if extreme else []) if limits.min <= v <= limits.max]
    return torch.tensor(values, dtype=dtype, device=DEVICE)


def pairs(values):
    """`x` and `y` run through all pairs; `z` is another of the values."""
    return (
        values.repeat_interleave(len(values)),
        values.repeat(len(values)),
        values.roll(2).repeat(len(values)),
    )


def check(function, dtypes, close, extreme=True, finite=False, only=None, device=DEVICE):
    """Compare a kernel with torch on a device, for each dtype that torch takes."""
    tried = 0
    for dtype in dtypes:
        args = pairs(numbers(dtype, extreme, finite))
        if only is not None:
            keep = only(*args)
            args = tuple(a[keep] for a in args)
        try:
            want = function(*(a.clone().to(device) for a in args)).to(DEVICE)
        except (RuntimeError, TypeError):
            continue
        got = apply(*args, torch.empty_like(want), function)
        close(got, want)
        tried += 1
    assert tried > 0


def bits(values):
    """The bits of floats, with one NaN; other values as they are."""
    if not values.dtype.is_floating_point:
        return values
    values = torch.where(values.isnan(), float("nan"), values)
    return values.view({2: torch.int16, 4: torch.int32, 8: torch.int64}[values.itemsize])


def same_bits(got, want):
    torch.testing.assert_close(bits(got), bits(want), rtol=0, atol=0)


def same_numbers(got, want):
    torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)


def far_out(got, want):
    # These oscillate, and torch on a GPU loses the phase of large arguments.
    nearly(got.float(), want.float())


def nearly(got, want):
    if not want.dtype.is_floating_point:
        return same_numbers(got, want)
    # Halves are rounded from float32: they differ by a unit in the last place where that falls on
    # the other side of a tie. Functions of float32 and float64 are good to a few units, the GPU's
    # `exp` to as many as its argument is large; where terms cancel, so much of the terms is left.
    eps = torch.finfo(want.dtype).eps
    units = 4 if want.itemsize == 2 else 16 if DEVICE.type == "cpu" else 128
    torch.testing.assert_close(got, want, rtol=units * eps, atol=units * eps, equal_nan=True)
    return None


@pytest.mark.parametrize("expression", _table(EXACT))
def test_exact(define, expression):
    check(define(expression), ALL, same_bits)


def home_of(expression):
    """Where torch computes what a kernel is compared with."""
    return torch.device("cpu") if expression in AS_ON_THE_CPU else DEVICE


@pytest.mark.parametrize("expression", _table(EXACT_BUT_ZERO, POWERS))
def test_exact_but_for_the_sign_of_zero(define, expression):
    check(define(expression), ALL, same_numbers)


@pytest.mark.parametrize("expression", _table(ON_INTS))
def test_bits(define, expression):
    check(define(expression), (*INTS, torch.bool), same_bits)


@pytest.mark.parametrize("expression", _table(SHIFTS))
def test_shifts(define, expression):
    """Amounts from 0 to beyond the width; torch's kernels differ in what a negative one means."""
    dtypes = (torch.int64,) if "40" in expression else INTS
    check(define(expression), dtypes, same_bits, only=lambda x, y, z: (y >= 0) & (x >= 0))


@pytest.mark.parametrize("expression", _table(DIVISIONS))
def test_division_rounds_as_in_torch(define, expression):
    """The least int divided by -1 does not fit, and ints are not divided by 0."""
    function = define(expression)
    check(function, INTS, same_bits, only=lambda x, y, z: (y != 0) & ((y + 1 != 0) | (x > -100)))
    # Of halves torch rounds the quotient before it takes the whole part, too.
    check(function, (torch.float32, torch.float64), same_numbers, extreme=False)


@pytest.mark.parametrize("expression", _table(INT_POWERS))
def test_powers_and_divisors_of_ints(define, expression):
    positive = "cm(" in expression or "2 **" in expression
    check(
        define(expression),
        INTS,
        same_bits,
        extreme=False,
        only=lambda x, y, z: (x > 0) & (y > 0) if positive else y >= 0,
    )


@pytest.mark.parametrize("expression", _table(ROUNDED))
def test_rounded(define, expression):
    # An int that meets float32 is 100 at most: what a large one loses, torch loses elsewhere.
    dtypes, home = (*FLOATS, torch.int32, torch.bool), home_of(expression)
    check(define(expression), dtypes, nearly, extreme=False, only=small, device=home)


def small(x, y, z):
    """Leaves out the ints that overflow, and arguments at which torch's own functions are poor."""
    if x.dtype.is_floating_point:
        return torch.ones_like(x, dtype=torch.bool)
    return (abs(x.int()) < 10) & (y >= 0) & (y.int() < 10)


@pytest.mark.parametrize("expression", _table(FINITE))
def test_rounded_finite(define, expression):
    check(define(expression), FLOATS, far_out if "bessel_" in expression else nearly, finite=True)


@pytest.mark.parametrize("expression", _table(ALIASES))
def test_other_names(define, expression):
    check(define(expression), F32, nearly, extreme=False)


@pytest.mark.parametrize("expression", _table(FINITE_ALIASES))
def test_other_names_finite(define, expression):
    check(define(expression), F32, nearly, finite=True)


@pytest.mark.parametrize("expression", _table(TO_INTS))
def test_conversion_to_ints(define, expression):
    check(define(expression), FLOATS, same_bits, finite=True)
    check(define(expression), (*INTS, torch.bool), same_bits)


@pytest.mark.parametrize("expression", REINTERPRETED)
def test_reinterpreted_bits(define, expression):
    size = 2 if "16" in expression else 4
    check(define(expression), [d for d in ALL if d.itemsize == size], same_bits)


@pytest.mark.parametrize(("expression", "name"), UNSUPPORTED.items())
def test_what_triton_lacks_is_refused_by_name(define, expression, name):
    x = numbers(torch.float32)
    with pytest.raises(exc.BackendUnsupported, match=name):
        apply(x, x, x, torch.empty_like(x), define(expression))


@helion.kernel(config=helion.Config(block_sizes=[16]), static_shapes=True)
def divide_indices(x: torch.Tensor, n: int) -> torch.Tensor:
    out = torch.empty([x.size(0), 6], dtype=torch.int64, device=x.device)
    for tile in hl.tile(x.size(0)):
        index = tile.index * 3 + 1
        out[tile, 0] = index // 4
        out[tile, 1] = index // 4 % 5 + index.to(torch.int64) % 7
        out[tile, 2] = hl.arange(tile.block_size) % 3
        out[tile, 3] = (tile.index - 3) // 4
        out[tile, 4] = index % n
        out[tile, 5] = x[tile] // 3
    return out


def test_indices_are_divided_by_the_plain_operator():
    """Where no operand can be negative, Triton rounds as the author's language does."""
    x = torch.arange(16, device=DEVICE) - 8
    k = torch.arange(16, device=DEVICE)
    index = k * 3 + 1
    columns = [index // 4, index // 4 % 5 + index % 7, k % 3, (k - 3) // 4, index % -3, x // 3]
    same_bits(divide_indices(x, -3), torch.stack(columns, 1))
    code = divide_indices.bind((x, -3)).to_triton_code()
    assert code.count("triton_helpers.floor_divide(") == 2
    assert code.count("triton_helpers.remainder(") == 1


@pytest.mark.parametrize("function", [torch.exp, torch.Tensor.exp, F.silu, torch.Tensor.__neg__])
def test_a_function_of_torch_is_an_argument_like_any_other(function):
    @helion.kernel(config=helion.Config(block_sizes=[16]))
    def apply_one(x: torch.Tensor, function) -> torch.Tensor:
        out = torch.empty_like(x)
        for tile in hl.tile(x.size(0)):
            out[tile] = function(x[tile])
        return out

    x = numbers(torch.float32, extreme=False, finite=True)
    nearly(apply_one(x, function), function(x))


# -- type promotion ------------------------------------------------------------------------------

KINDS = (torch.float32, torch.bfloat16, torch.float64, torch.int64, torch.uint8, torch.bool)
BINARY = ["x + y", "x / y", "x // y", "x ** y", "x < y", "torch.where(x > 0, x, y)"]


@helion.kernel(config=helion.Config(block_sizes=[16]))
def apply_scalar(x: torch.Tensor, y: float, out: torch.Tensor, function):
    for tile in hl.tile(x.size(0)):
        value = function(x[tile], y, y)
        assert value.dtype == out.dtype
        out[tile] = value
    return out


@helion.kernel(config=helion.Config(block_sizes=[16]))
def apply_zero_dim(x: torch.Tensor, y: torch.Tensor, out: torch.Tensor, function):
    for tile in hl.tile(x.size(0)):
        value = function(x[tile], y[()], y[()])
        assert value.dtype == out.dtype
        out[tile] = value
    return out


def promoted(function, x, y, run):
    """Compare dtype and values with torch's, where torch takes these operands."""
    try:
        want = function(x, y, y)
    except (RuntimeError, TypeError):
        return 0
    nearly(run(x, y, torch.empty_like(want), function), want)
    return 1


def few(dtype):
    return torch.tensor([1, 3, 5], device=DEVICE).to(dtype)


@pytest.mark.parametrize("expression", BINARY)
def test_promotion_between_tensors(define, expression):
    function = define(expression)
    run = lambda x, y, out, function: apply(x, y, y, out, function)  # noqa: E731
    dtypes = itertools.combinations((*KINDS, torch.float16, torch.int32), 2)
    tried = sum(promoted(function, few(a), few(b), run) for a, b in dtypes)
    assert tried >= 20


@pytest.mark.parametrize("expression", ["x * y", "x // y", "torch.where(x > 0, x, y)"])
def test_promotion_with_a_number(define, expression):
    """A number counts by its kind alone, written out or as a run-time argument."""
    function = define(expression)
    tried = 0
    for dtype, number in itertools.product(ALL, (2, 2.5, True)):
        tried += promoted(function, few(dtype), number, apply_scalar)
        literal = define(expression.replace("y", repr(number)))
        tried += promoted(literal, few(dtype), number, lambda x, y, out, f: apply(x, x, x, out, f))
    assert tried >= 12


@pytest.mark.parametrize("expression", ["x + y", "x / y"])
def test_promotion_with_a_tensor_of_no_dimensions(define, expression):
    """It counts only where its kind is higher."""
    function = define(expression)
    tried = sum(promoted(function, few(a), few(b)[1], apply_zero_dim) for a in KINDS for b in KINDS)
    assert tried >= 9


def test_a_number_in_float64_keeps_its_digits(define):
    x = torch.tensor([1.0, 3.0], dtype=torch.float64, device=DEVICE)
    for expression in ("x * y", "torch.where(x > 2, y, x) + y * 3", "x * 0.1", "x // 0.3"):
        function = define(expression)
        got = apply_scalar(x, 0.1, torch.empty_like(x), function)
        torch.testing.assert_close(got, function(x, 0.1, 0.1), rtol=1e-15, atol=0)


# -- in place ------------------------------------------------------------------------------------


@helion.kernel(config=helion.Config(block_sizes=[4, 4]))
def in_place(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        value = x[tile]
        value += y[tile]
        before = value
        for inner in hl.tile(y.size(0)):
            value.add_(y[inner].sum())
        if value.sum() > 0:
            value.mul_(2).sub_(1)
        value **= 2
        assert value.dtype == x.dtype
        out[tile] = value - before
    return out


def test_in_place_keeps_the_dtype_and_is_carried_through_loops():
    x = torch.arange(8.0, device=DEVICE).to(torch.bfloat16)
    y = torch.arange(8.0, device=DEVICE)
    want = x + y
    value = want + y.sum()
    for rows in value.split(4):
        rows.copy_(rows * 2 - 1 if rows.sum() > 0 else rows)
    # bfloat16 has 8 bits, of which the sums of this small example need two more.
    torch.testing.assert_close(in_place(x, y).float(), value**2 - want, rtol=2**-6, atol=0)


def test_in_place_refuses_what_does_not_fit():
    @helion.kernel(config=helion.Config(block_sizes=[4]))
    def add_half(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for tile in hl.tile(x.size(0)):
            value = x[tile]
            value += 0.5
            out[tile] = value
        return out

    with pytest.raises(exc.TorchOpTracingError, match=r"float32 cannot be cast to torch\.int32"):
        add_half(torch.ones(4, dtype=torch.int32, device=DEVICE))


# -- narrowing and broadcasting ------------------------------------------------------------------


@pytest.mark.parametrize("keep", [False, True])
def test_narrowing_round_trips(keep):
    """`x + 1` loses the small part of `x` in bfloat16, unless the rounding between is dropped."""

    @helion.kernel(config=helion.Config(block_sizes=[4]), keep_narrowing=keep)
    def there_and_back(x: torch.Tensor) -> torch.Tensor:
        out = torch.empty_like(x)
        for tile in hl.tile(x.size(0)):
            out[tile] = (x[tile] + 256) - 256
        return out

    x = torch.tensor([0.5, 1.0, 3.0, 0.25], dtype=torch.bfloat16, device=DEVICE)
    want = (x + 256) - 256 if keep else x
    same_bits(there_and_back(x), want)


@helion.kernel(config=helion.Config(block_sizes=[4, 8]))
def broadcast(x: torch.Tensor, row: torch.Tensor, column: torch.Tensor, one: torch.Tensor):
    out = torch.empty_like(x)
    for i, j in hl.tile(x.shape):
        out[i, j] = (
            x[i, j] * row[j] + column[i][:, None] - one[0, 0] * row[None, j] / column[i, None]
        )
    return out


def test_broadcasting_is_torchs():
    x = torch.arange(60.0, device=DEVICE).reshape(5, 12)
    row, column = torch.arange(12.0, device=DEVICE), torch.arange(1.0, 6.0, device=DEVICE)
    one = torch.full([1, 1], 3.0, device=DEVICE)
    want = x * row + column[:, None] - one * row / column[:, None]
    nearly(broadcast(x, row, column, one), want)
