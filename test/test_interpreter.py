"""What Triton's interpreter does with blocks, memory, arguments and control flow."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import triton
import triton.language as tl
from interpreted import (
    BF16,
    E4M3,
    E5M2,
    F16,
    F32,
    F64,
    I8,
    I32,
    I64,
    TL,
    U8,
    U32,
    needs_interpreter,
    same,
)
from triton.language.extra import libdevice
from triton.runtime.errors import InterpreterError
from triton.tools.tensor_descriptor import TensorDescriptor

from helion.runtime import interpreter

pytestmark = needs_interpreter

# -- reductions, scans, shapes ---------------------------------------------------------------------


@triton.jit
def block_kernel(x, out, M: tl.constexpr, N: tl.constexpr, OP: tl.constexpr):
    """`OP` on a block of M x N; whatever block it makes is stored in row-major order."""
    value = OP(tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]))
    flat = tl.reshape(value, [value.numel])
    tl.store(out + tl.arange(0, value.numel), flat)


def on_block(op, x, shape, dtype=None):
    out = torch.zeros(shape, dtype=dtype or x.dtype)
    block_kernel[(1,)](x, out, *x.shape, op)
    return out


def table(dtype, m=8, n=32):
    generator = torch.Generator().manual_seed(1)
    x = torch.randperm(m * n, generator=generator).reshape(m, n) - m * n // 2
    return (x.to(F32) / (1 if dtype == I32 else 8)).to(dtype)


@pytest.mark.parametrize("dtype", [BF16, F16, F32, I32], ids=str)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_reductions(dtype, axis):
    x = table(dtype)
    shape = (x.sum(axis)).shape
    same(on_block(lambda v: tl.sum(v, axis), x, shape), x.to(F64).sum(axis).to(dtype))
    for extremum, reference in ((tl.max, torch.amax), (tl.min, torch.amin)):
        same(
            on_block(lambda v, f=extremum: f(v, axis).to(v.dtype), x, shape),
            reference(x, axis),
        )
    for name in ("argmax", "argmin"):
        index = getattr(tl, name)
        got = on_block(lambda v, f=index: f(v, axis), x, shape, I32)
        same(got, getattr(torch, name)(x, axis).to(I32))
        got = on_block(lambda v, f=index: f(v, axis, tie_break_left=False), x, shape, I32)
        same(got, getattr(torch, name)(x, axis).to(I32))


def test_maximum_of_a_block_leaves_nan_out():
    x = table(F32)
    x[:, 3] = math.nan
    x[2] = math.nan
    got = on_block(lambda v: tl.max(v, 1), x, (8,))
    same(got, torch.where(x.isnan(), -math.inf, x).amax(1).where(torch.arange(8) != 2, math.nan))


@triton.jit
def product_then_last(a, i, b, j):
    return a * b, tl.where(j > i, j, i)


@triton.jit
def larger_by_branch(a, b):
    if a > b:  # noqa: SIM108 - the branch is what is tested
        c = a
    else:
        c = b
    return c


@triton.jit
def larger_by_words(a, i, b, j):
    first = a > b or (a == b and i < j)
    return tl.where(first, a, b), tl.where(first, i, j)


@triton.jit
def affine(a, b, c, d):
    return a * c, b * c + d


@triton.jit
def reduce_with_indices(v):
    index = tl.broadcast_to(tl.arange(0, 32)[None, :] * 10, [8, 32])
    _, where = tl.reduce((v, index), 1, larger_by_words)
    return where


@triton.jit
def scan_affine(v):
    _, b = tl.associative_scan((v * 0 + 0.5, v), 1, affine)
    return b


@triton.jit
def add(a, b):
    return a + b


@pytest.mark.parametrize("dtype", [BF16, F32], ids=str)
def test_reduction_by_a_function(dtype):
    x = table(dtype)
    same(on_block(lambda v: tl.reduce(v, 1, larger_by_branch), x, (8,)), x.amax(1))
    same(on_block(lambda v: tl.reduce(v, -2, larger_by_branch), x, (32,)), x.amax(0))
    same(
        on_block(lambda v: tl.reduce(v, 1, larger_by_branch, keep_dims=True), x, (8, 1)),
        x.amax(1, True),
    )
    same(on_block(reduce_with_indices, x, (8,), I32), (x.argmax(1) * 10).to(I32))
    total = on_block(lambda v: tl.reduce(v, 0, add), x.clamp(-4, 4), (32,))
    torch.testing.assert_close(total, x.clamp(-4, 4).sum(0), rtol=1e-2, atol=1e-1)


def test_reduction_to_a_scalar():
    @triton.jit
    def kernel(x, out, N: tl.constexpr):
        v = tl.load(x + tl.arange(0, N))
        p, last = tl.reduce((v, tl.arange(0, N)), 0, product_then_last)
        tl.store(out, p + last)
        tl.store(out + 1, tl.reduce(v, None, add))
        tl.store(out + 2, tl.sum(v))

    out = torch.zeros(3)
    kernel[(1,)](torch.full((16,), 2.0), out, 16)
    assert out.tolist() == [2.0**16 + 15, 32, 32]


@pytest.mark.parametrize("dtype", [BF16, F16, F32, I32], ids=str)
def test_scans(dtype):
    x = table(dtype, 4, 16).clamp(-3, 3)
    wide = x.to(F64)
    same(on_block(lambda v: tl.cumsum(v, 1), x, x.shape), wide.cumsum(1).to(dtype))
    same(
        on_block(lambda v: tl.cumsum(v, 0, reverse=True), x, x.shape),
        wide.flip(0).cumsum(0).flip(0).to(dtype),
    )
    same(on_block(lambda v: tl.cumprod(v, 0), x, x.shape), wide.cumprod(0).to(dtype))
    for op in (add, larger_by_branch):
        got = on_block(lambda v, f=op: tl.associative_scan(v, 1, f), x, x.shape)
        want = wide.cumsum(1) if op is add else wide.cummax(1).values
        same(got, want.to(dtype))


def test_scan_of_pairs():
    x = table(F32)
    want, carry = torch.zeros_like(x), torch.zeros(8)
    for column in range(32):
        want[:, column] = carry = carry * 0.5 + x[:, column]
    torch.testing.assert_close(on_block(scan_affine, x, x.shape), want)


@triton.jit
def join_split(v):
    left, right = tl.split(tl.reshape(v, [v.shape[0], v.shape[1] // 2, 2]))
    return tl.join(right, left)


@pytest.mark.parametrize("dtype", [BF16, F32, I32, E4M3], ids=str)
def test_shapes(dtype):
    x = table(F32, 4, 16).to(dtype)
    swapped = (
        x.reshape(4, 8, 2)[..., [1, 0]]
        if dtype != E4M3
        else x.view(U8).reshape(4, 8, 2)[..., [1, 0]].view(E4M3)
    )
    same(on_block(join_split, x, (4, 8, 2)).view(U8), swapped.contiguous().view(U8))
    for op in (lambda v: tl.trans(v), lambda v: v.T, lambda v: tl.permute(v, [1, 0])):
        same(on_block(op, x, (16, 4)).view(U8), x.t().contiguous().view(U8))
    got = on_block(lambda v: tl.permute(tl.reshape(v, [4, 2, 8]), [2, 0, 1]), x, (8, 4, 2))
    same(got.view(U8), x.reshape(4, 2, 8).permute(2, 0, 1).contiguous().view(U8))


@pytest.mark.parametrize("dtype", [BF16, F16, F32, I32], ids=str)
def test_sort_and_gather(dtype):
    x = table(dtype)
    same(on_block(lambda v: tl.sort(v, 1), x, x.shape), x.sort(1).values)
    same(on_block(lambda v: tl.sort(v, 1, descending=True), x, x.shape), x.sort(1, True).values)
    got = on_block(
        lambda v: tl.gather(v, tl.broadcast_to(31 - tl.arange(0, 32)[None, :], [8, 32]), 1),
        x,
        x.shape,
    )
    same(got, x.flip(1))


# -- tl.dot ----------------------------------------------------------------------------------------


@triton.jit
def dot_kernel(x, y, acc, out, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
               ACC: tl.constexpr, PRECISION: tl.constexpr, OUT: tl.constexpr):  # fmt: skip
    b, m, n, k = tl.arange(0, B), tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(x + (b[:, None, None] * M + m[None, :, None]) * K + k[None, None, :])
    right = tl.load(y + (b[:, None, None] * K + k[None, :, None]) * N + n[None, None, :])
    at = (b[:, None, None] * M + m[None, :, None]) * N + n[None, None, :]
    if B == 1:
        left, right = tl.reshape(left, [M, K]), tl.reshape(right, [K, N])
        at = tl.reshape(at, [M, N])
    if ACC:
        value = tl.dot(left, right, tl.load(acc + at), input_precision=PRECISION, out_dtype=OUT)
    else:
        value = tl.dot(left, right, input_precision=PRECISION, out_dtype=OUT)
    tl.store(out + at, value)


@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize("with_acc", [False, True])
@pytest.mark.parametrize(
    ("dtype", "out_dtype", "precision"),
    [(F16, F32, None), (F16, F16, None), (BF16, F32, None), (F32, F32, "ieee"), (F32, F32, "tf32"),
     (F32, F32, "tf32x3"), (F64, F64, None), (I8, I32, None), (E4M3, F32, None), (E5M2, F32, None)],
    ids=str,
)  # fmt: skip
def test_dot(dtype, out_dtype, precision, with_acc, batch):
    generator = torch.Generator().manual_seed(2)
    x, y, acc = (
        torch.randint(-5, 6, (batch, *shape), generator=generator).to(F32)
        / (1 if dtype == I8 else 8)
        for shape in ((16, 32), (32, 16), (16, 16))
    )
    x, y, acc = x.to(dtype), y.to(dtype), acc.to(out_dtype)
    out = torch.zeros_like(acc)
    dot_kernel[(1,)](x, y, acc, out, batch, 16, 16, 32, with_acc, precision, TL[out_dtype])
    # The operands are small multiples of 1/8: every product and every sum is exact.
    same(out, (x.to(F64) @ y.to(F64) + (acc.to(F64) if with_acc else 0)).to(out_dtype))


# -- memory ----------------------------------------------------------------------------------------


@triton.jit
def atomic_kernel(
    target, where, value, before, N: tl.constexpr, LIMIT: tl.constexpr, OP: tl.constexpr
):
    lane = tl.arange(0, N)
    old = OP(target + tl.load(where + lane), tl.load(value + lane), mask=lane < LIMIT)
    tl.store(before + lane, old, mask=lane < LIMIT)


def atomic(op, target, value, limit=13):
    where = torch.tensor([0, 1, 1, 1, 3, 3, 0, 2, 2, 2, 2, 1, 5, 5, 5, 5])
    before = torch.zeros_like(value)
    atomic_kernel[(1,)](target, where, value, before, 16, limit, op)
    return where[:limit], before[:limit]


ATOMICS = {
    "atomic_add": (lambda a, b: a + b, [F32, F64, F16, BF16, I32, I64, U32]),
    "atomic_max": (torch.maximum, [F32, I32, I64]),
    "atomic_min": (torch.minimum, [F32, I32, I64]),
    "atomic_and": (torch.bitwise_and, [I32, I64]),
    "atomic_or": (torch.bitwise_or, [I32]),
    "atomic_xor": (torch.bitwise_xor, [I32]),
    "atomic_xchg": (lambda a, b: b, [I32, I64, F32, F64]),
}


@pytest.mark.parametrize(
    ("name", "dtype"), [(n, d) for n, (_, ds) in ATOMICS.items() for d in ds], ids=str
)
def test_atomics_take_lanes_in_turn(name, dtype):
    combine = ATOMICS[name][0]
    target, value = torch.arange(8).to(dtype), (torch.arange(16) * 3 % 7 + 1).to(dtype)
    if dtype.is_floating_point:
        value = value + torch.tensor(0.125, dtype=dtype)
    want, seen = target.clone(), []
    where, before = atomic(lambda *args, **kw: getattr(tl, name)(*args, **kw), target, value)
    for lane, place in enumerate(where.tolist()):
        seen.append(want[place].clone())
        wide = I64 if dtype == U32 else dtype  # torch adds no unsigned integers
        want[place] = combine(want[place].to(wide), value[lane].to(wide)).to(dtype)
    same(target, want)
    same(before, torch.stack(seen))


def test_compare_and_swap():
    @triton.jit
    def kernel(lock, out, N: tl.constexpr):
        tl.store(out, tl.atomic_cas(lock, 0, 1, sem="acquire"))
        tl.store(out + 1, tl.atomic_cas(lock, 0, 1, sem="acquire"))
        while tl.atomic_cas(lock, 1, 0) != 1:
            pass
        lane = tl.arange(0, N)
        tl.store(out + 2 + lane, tl.atomic_cas(lock + lane, lane, lane + 10))

    lock, out = torch.tensor([0, 5, 2, 3], dtype=I32), torch.full((6,), -1, dtype=I32)
    kernel[(1,)](lock, out, 4)
    assert out.tolist() == [0, 1, 0, 5, 2, 3]
    assert lock.tolist() == [10, 5, 12, 13]


@triton.jit
def descriptor_kernel(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(x, [rows, columns], [columns, 1], [M, N])
    target = tl.make_tensor_descriptor(out, [rows, columns], [columns, 1], [M, N])
    row = tl.program_id(0) * M
    value = tl.load_tensor_descriptor(source, [row, 0])
    target.store([row, 0], value + value)
    target.store([row, N], source.load([row, N]))


@triton.jit
def host_descriptor_kernel(source, out, M: tl.constexpr, N: tl.constexpr):
    value = source.load([tl.program_id(0) * M, 0])
    out.atomic_add([0, 0], value)


@pytest.mark.parametrize("dtype", [F32, BF16, I32], ids=str)
def test_tensor_descriptors(dtype):
    x = torch.arange(10 * 24).reshape(10, 24).remainder(17).to(dtype)
    out = torch.zeros_like(x)
    descriptor_kernel[(3,)](x, out, 10, 24, 4, 16)
    same(out, torch.cat([x[:, :16] * 2, x[:, 16:]], 1))
    total = torch.ones(4, 24, dtype=dtype)
    blocks = [TensorDescriptor.from_tensor(t, [4, 8]) for t in (x, total)]
    host_descriptor_kernel[(3,)](*blocks, 4, 8)
    want = torch.ones(12, 24, dtype=dtype)
    want[:10, :8] += x[:, :8]
    want = want.reshape(3, 4, 24).sum(0) - 2
    same(total, want.to(dtype))


@pytest.mark.skipif(
    interpreter.unsupported("make_block_ptr") is not None, reason="this Triton has none"
)
# Triton deprecates them in a kernel written by hand; generated code uses none.
@pytest.mark.filterwarnings("ignore:tl.make_block_ptr is deprecated")
@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
def test_block_pointers(dtype):
    @triton.jit
    def kernel(x, out, rows, columns, M: tl.constexpr, N: tl.constexpr):
        source = tl.make_block_ptr(x, (rows, columns), (columns, 1), (0, 0), (M, N), (1, 0))
        target = tl.make_block_ptr(out, (rows, columns), (columns, 1), (0, 0), (M, N), (1, 0))
        for _ in range(0, rows, M):
            value = tl.load(source, boundary_check=(0, 1), padding_option="zero")
            tl.store(target, value * 2, boundary_check=(0, 1))
            source, target = tl.advance(source, (M, 0)), tl.advance(target, (M, 0))

    x = torch.arange(10 * 12).reshape(10, 12).to(dtype)
    out = torch.zeros_like(x)
    kernel[(1,)](x, out, 10, 12, 4, 16)
    same(out, x * 2)


# -- arguments, loops, conditions ------------------------------------------------------------------


@triton.jit
def bits_kernel(n, out, CAST: tl.constexpr):
    tl.store(out, tl.cast(n, tl.int64))
    tl.store(out + 1, tl.cast(n + n, tl.int64))
    tl.store(out + 2, n.dtype.primitive_bitwidth)
    tl.store(out + 3, n.dtype.is_int_unsigned())


@pytest.mark.parametrize(
    ("n", "bits"),
    [(0, 32), (-1, 32), (2**31 - 1, 32), (2**31, 64), (2**32 - 1, 64), (2**32, 64),
     (-(2**31) - 1, 64), (2**63 - 1, 64), (-(2**63), 64), (2**63, 64), (2**64 - 1, 64)],
)  # fmt: skip
def test_python_ints_have_the_type_that_the_compiler_gives_them(n, bits):
    out = torch.zeros(4, dtype=I64)
    bits_kernel[(1,)](n, out, True)

    def wrap(value, width):
        return (value + 2 ** (width - 1)) % 2**width - 2 ** (width - 1)

    assert out.tolist() == [wrap(n, 64), wrap(2 * n, bits), bits, n >= 2**63]


def test_declared_and_undeclared_argument_types():
    @triton.jit
    def kernel(x, out, a: tl.int64, b: i64, c: tl.float64, d: tl.float32, e, f, g: tl.bfloat16):  # noqa: F821
        tl.static_assert(a.dtype == tl.int64 and b.dtype == tl.int64 and c.dtype == tl.float64)
        tl.static_assert(e.dtype == tl.float32 and f.dtype == tl.int1 and d.dtype == tl.float32)
        tl.static_assert(g.dtype == tl.bfloat16)
        tl.static_assert((tl.load(x) * e).dtype == tl.float32)
        if f:
            tl.store(out, a * 4294967296 + b + c + d + g)

    out = torch.zeros(1, dtype=F64)
    kernel[(1,)](torch.ones(1, dtype=BF16), out, 3, -5, 0.1, 2, 1.5, True, g=1.00390625)
    assert out.item() == 3 * 2**32 - 5 + 0.1 + 2 + 1
    with pytest.raises(OverflowError, match="cannot hold"):
        kernel[(1,)](torch.ones(1, dtype=BF16), out, 2**63, 0, 0.0, 0.0, 0.0, False, 0.0)
    with pytest.raises(TypeError, match="float"):
        kernel[(1,)](torch.ones(1, dtype=BF16), out, 1.5, 0, 0.0, 0.0, 0.0, False, 0.0)


def test_loops_count_in_scalars_of_the_kernel():
    @triton.jit
    def kernel(bounds, out, n, wide: tl.int64, N: tl.constexpr):
        total = 0
        for i in range(n):
            tl.static_assert(i.dtype == tl.int32)
            total += i
        for i in tl.range(tl.load(bounds), tl.load(bounds + 1), 3, num_stages=2):
            total += i.to(tl.int64) * 1000
        for i in tl.range(wide, step=2, loop_unroll_factor=2):
            tl.static_assert(i.dtype == tl.int64)
            total += i * 4294967296
        for i in tl.static_range(N):
            total += (1, 2, 3, 4)[i] * 100000
        for i in range(3, 0, -1):
            total += i * 10000000
        tl.store(out, total)

    out = torch.zeros(1, dtype=I64)
    kernel[(1,)](torch.tensor([2, 9], dtype=I32), out, 5, 5, 4, num_warps=8, num_stages=3)
    assert out.item() == 10 + (2 + 5 + 8) * 1000 + (0 + 2 + 4) * 2**32 + 10 * 100000 + 6 * 10000000


def test_conditions_on_blocks():
    @triton.jit
    def kernel(x, out, FAULT: tl.constexpr, N: tl.constexpr):
        lane = tl.arange(0, N)
        v = tl.load(x + lane)
        inside = (v > -1 and not v > 1) or lane == 0
        tl.store(out + lane, inside)
        scalar = tl.load(x)
        if scalar < 0 and N > 4:
            tl.store(out + 1, True)
        if FAULT and v > 0:
            tl.store(out, False)

    x = torch.tensor([-5, -0.5, 0.5, 1, 1.5, 2, 0, math.nan])
    out = torch.zeros(8, dtype=torch.bool)
    kernel[(1,)](x, out, False, 8)
    assert out.tolist() == [True, True, True, True, False, False, True, False]
    with pytest.raises(InterpreterError, match="a condition must be a scalar"):
        kernel[(1,)](x, out, True, 8)


def test_print_and_assert(capsys):
    @triton.jit
    def kernel(x, N: tl.constexpr):
        tl.device_print("values", tl.load(x + tl.arange(0, N)).to(tl.float32))
        tl.static_assert(N == 4, "four")

    kernel[(1,)](torch.arange(4).to(BF16), 4)
    assert "values:  [0. 1. 2. 3.]" in capsys.readouterr().out
    with pytest.raises(InterpreterError, match="four"):
        kernel[(1,)](torch.arange(8).to(BF16), 8)


def test_unsupported_features_are_named():
    for feature in ("inline_asm_elementwise", "map_elementwise", "float8e4b15"):
        assert feature in interpreter.unsupported(feature)
    assert interpreter.unsupported("rand") is None


def test_install_changes_nothing_the_second_time():
    before = dict(vars(triton.runtime.interpreter)), libdevice.erf
    interpreter.install()
    assert (dict(vars(triton.runtime.interpreter)), libdevice.erf) == before


IMPORTED_FIRST = """
import torch
import triton
import triton.language as tl
import helion
from helion.runtime import interpreter

interpreter.install()

@triton.jit
def kernel(x, out, N: tl.constexpr):
    value = tl.load(x + tl.arange(0, N))
    tl.store(out, tl.sum(value, 0) + value.max(0) + tl.cdiv(N, 3))

out = torch.zeros(1)
kernel[(1,)](torch.arange(8.0), out, 8)
print(out.item())
"""


def test_triton_may_be_imported_first(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(IMPORTED_FIRST)
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment |= {"PYTHONPATH": str(Path(__file__).parent.parent), "CUDA_VISIBLE_DEVICES": ""}
    run = subprocess.run(
        [sys.executable, program], env=environment, capture_output=True, text=True, check=False
    )
    assert run.stdout == "38.0\n", run.stderr
