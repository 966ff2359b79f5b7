"""GEGLU: the product of one input and the GELU of another, with its gradients.

Element-wise kernels need no shape: they walk over a flat view of their inputs.

    python examples/geglu.py        checks against torch; on a GPU it also compares the speed

Source: Shazeer, "GLU variants improve transformer", 2020, with the tanh form of GELU.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import torch
import torch.nn.functional as F

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example

SLOPE = math.sqrt(2 / math.pi)
CUBIC = 0.044715


@helion.kernel()
def geglu_fwd(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`gelu(a) * b` of two floating-point tensors of one shape and dtype; computed in float32."""
    out = torch.empty_like(a, memory_format=torch.contiguous_format)
    flat_a, flat_b, flat_out = a.reshape(-1), b.reshape(-1), out.view(-1)
    for tile in hl.tile(a.numel()):
        x = flat_a[tile].to(torch.float32)
        gelu = 0.5 * x * (1 + torch.tanh(SLOPE * (x + CUBIC * x * x * x)))
        flat_out[tile] = gelu * flat_b[tile]
    return out


@helion.kernel()
def geglu_bwd(
    grad_out: torch.Tensor, a: torch.Tensor, b: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients by `a` and `b`, given that by the result; the shapes and dtypes are theirs."""
    grad_a = torch.empty_like(a, memory_format=torch.contiguous_format)
    grad_b = torch.empty_like(b, memory_format=torch.contiguous_format)
    flat_grad, flat_a, flat_b = grad_out.reshape(-1), a.reshape(-1), b.reshape(-1)
    flat_grad_a, flat_grad_b = grad_a.view(-1), grad_b.view(-1)
    for tile in hl.tile(a.numel()):
        grad = flat_grad[tile].to(torch.float32)
        x = flat_a[tile].to(torch.float32)
        tanh = torch.tanh(SLOPE * (x + CUBIC * x * x * x))
        inner = SLOPE * (1 + 3 * CUBIC * x * x)
        slope = 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * inner
        flat_grad_a[tile] = grad * flat_b[tile] * slope
        flat_grad_b[tile] = grad * 0.5 * x * (1 + tanh)
    return grad_a, grad_b


class GEGLUFunction(torch.autograd.Function):
    """`apply(a, b)` is `gelu(a) * b` with gradients; it keeps only the inputs."""

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(a, b)
        return geglu_fwd(a, b)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_out: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return geglu_bwd(grad_out, *ctx.saved_tensors)


def geglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`F.gelu(a, approximate="tanh") * b`."""
    return GEGLUFunction.apply(a, b)


def torch_geglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.gelu(a, approximate="tanh") * b


def check(*shape: int, dtype: torch.dtype) -> None:
    a, b = (torch.randn(shape, device=DEVICE).to(dtype).requires_grad_() for _ in range(2))
    # Torch rounds GELU to the dtype before the product.
    tolerance = 2e-2 if dtype.itemsize < 4 else 1e-5
    assert_close = functools.partial(torch.testing.assert_close, rtol=tolerance, atol=tolerance)
    out, expected = geglu(a, b), torch_geglu(a, b)
    assert_close(out, expected)
    grad_out = torch.randn_like(out)
    assert_close(
        torch.autograd.grad(out, (a, b), grad_out),
        torch.autograd.grad(expected, (a, b), grad_out),
    )
    print(f"ok  geglu and its gradients, {list(shape)} {dtype}")


def main() -> None:
    check(8, 33, 128, dtype=torch.float32)
    check(1009, dtype=torch.bfloat16)
    if DEVICE.type == "cuda":
        a, b = (torch.randn(8192, 8192, device=DEVICE).bfloat16() for _ in range(2))
        args = (a.requires_grad_(), b.requires_grad_())
        run_example(geglu, torch_geglu, args)
        run_example(geglu, torch_geglu, args, bwd=True)


if __name__ == "__main__":
    main()
