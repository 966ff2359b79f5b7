"""What the tests of Triton's interpreter share: names of dtypes, a function run as a kernel."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

import helion  # noqa: F401  turns the interpreter on where there is no accelerator
from helion.runtime import interpreter

interpreter.install()
needs_interpreter = pytest.mark.skipif(
    not triton.knobs.runtime.interpret, reason="needs the interpreter"
)

BF16, F16, F32, F64 = torch.bfloat16, torch.float16, torch.float32, torch.float64
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
I8, U8, I16, U16 = torch.int8, torch.uint8, torch.int16, torch.uint16
I32, U32, I64, U64 = torch.int32, torch.uint32, torch.int64, torch.uint64
TL = {
    BF16: tl.bfloat16, F16: tl.float16, F32: tl.float32, F64: tl.float64, E4M3: tl.float8e4nv,
    E5M2: tl.float8e5, I8: tl.int8, U8: tl.uint8, I16: tl.int16, U16: tl.uint16, I32: tl.int32,
    U32: tl.uint32, I64: tl.int64, U64: tl.uint64, torch.bool: tl.int1,
}  # fmt: skip


@triton.jit
def map_kernel(x, y, z, out, N: tl.constexpr, ARGS: tl.constexpr, OP: tl.constexpr):
    lane = tl.arange(0, N)
    if ARGS == 1:
        value = OP(tl.load(x + lane))
    elif ARGS == 2:
        value = OP(tl.load(x + lane), tl.load(y + lane))
    else:
        value = OP(tl.load(x + lane), tl.load(y + lane), tl.load(z + lane))
    tl.store(out + lane, value)


def apply(op, *args, dtype=None):
    """`op` on whole tensors, one block; they are padded to a power of two."""
    size = triton.next_power_of_2(args[0].numel())
    padded = []
    for arg in args:
        whole = torch.zeros(size, dtype=arg.dtype)
        whole[: arg.numel()] = arg.reshape(-1)
        padded.append(whole)
    out = torch.zeros(size, dtype=dtype or args[0].dtype)
    map_kernel[(1,)](*(padded * 3)[:3], out, size, len(args), op)
    return out[: args[0].numel()].reshape(args[0].shape)


def same(got, want):
    """Equal bit for bit, except that every NaN equals every other."""
    assert got.dtype == want.dtype
    torch.testing.assert_close(got, want, rtol=0, atol=0, equal_nan=True)
