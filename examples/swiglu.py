"""SwiGLU: the product of one input and the SiLU of another, with its gradients.

Element-wise kernels need no shape: they walk over a flat view of their inputs.

    python examples/swiglu.py       checks against torch; on a GPU it also compares the speed

Source: Shazeer, "GLU variants improve transformer", 2020.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
import torch.nn.functional as F

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example


@helion.kernel()
def swiglu_fwd(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`silu(a) * b` of two floating-point tensors of one shape and dtype; computed in float32."""
    out = torch.empty_like(a, memory_format=torch.contiguous_format)
    flat_a, flat_b, flat_out = a.reshape(-1), b.reshape(-1), out.view(-1)
    for tile in hl.tile(a.numel()):
        x = flat_a[tile].to(torch.float32)
        flat_out[tile] = x * torch.sigmoid(x) * flat_b[tile]
    return out


@helion.kernel()
def swiglu_bwd(
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
        gate = torch.sigmoid(x)
        silu = x * gate
        flat_grad_a[tile] = grad * flat_b[tile] * (gate + silu * (1 - gate))
        flat_grad_b[tile] = grad * silu
    return grad_a, grad_b


class SwiGLUFunction(torch.autograd.Function):
    """`apply(a, b)` is `silu(a) * b` with gradients; it keeps only the inputs."""

    @staticmethod
    def forward(ctx: Any, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(a, b)
        return swiglu_fwd(a, b)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_out: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return swiglu_bwd(grad_out, *ctx.saved_tensors)


def swiglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """`F.silu(a) * b`."""
    return SwiGLUFunction.apply(a, b)


def torch_swiglu(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return F.silu(a) * b


def check(*shape: int, dtype: torch.dtype) -> None:
    a, b = (torch.randn(shape, device=DEVICE).to(dtype).requires_grad_() for _ in range(2))
    # Torch rounds SiLU to the dtype before the product.
    tolerance = 2e-2 if dtype.itemsize < 4 else 1e-5
    assert_close = functools.partial(torch.testing.assert_close, rtol=tolerance, atol=tolerance)
    out, expected = swiglu(a, b), torch_swiglu(a, b)
    assert_close(out, expected)
    grad_out = torch.randn_like(out)
    assert_close(
        torch.autograd.grad(out, (a, b), grad_out),
        torch.autograd.grad(expected, (a, b), grad_out),
    )
    print(f"ok  swiglu and its gradients, {list(shape)} {dtype}")


def main() -> None:
    check(8, 33, 128, dtype=torch.float32)
    check(1009, dtype=torch.bfloat16)
    if DEVICE.type == "cuda":
        a, b = (torch.randn(8192, 8192, device=DEVICE).bfloat16() for _ in range(2))
        args = (a.requires_grad_(), b.requires_grad_())
        run_example(swiglu, torch_swiglu, args)
        run_example(swiglu, torch_swiglu, args, bwd=True)


if __name__ == "__main__":
    main()
