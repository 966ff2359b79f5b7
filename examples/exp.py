"""The exponential function with its gradient: two kernels behind one `torch.autograd.Function`.

python examples/exp.py      checks against torch; on a GPU it also compares the speed
"""

from __future__ import annotations

from typing import Any

import torch

import helion
import helion.language as hl
from helion._testing import DEVICE, run_example


@helion.kernel()
def exp_fwd(x: torch.Tensor) -> torch.Tensor:
    """`exp(x)` of a floating-point tensor of any shape, in its dtype."""
    out = torch.empty_like(x)
    for tile in hl.tile(x.size()):
        out[tile] = torch.exp(x[tile])
    return out


@helion.kernel()
def exp_bwd(grad_out: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
    """The gradient by `x`, given that by `out = exp(x)`: the derivative is the result itself."""
    grad_x = torch.empty_like(out)
    for tile in hl.tile(out.size()):
        grad_x[tile] = grad_out[tile] * out[tile]
    return grad_x


class ExpFunction(torch.autograd.Function):
    """`apply(x)` is `exp(x)`; only the result is kept for the backward pass."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        out = exp_fwd(x)
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_out: torch.Tensor
    ) -> torch.Tensor:
        (out,) = ctx.saved_tensors
        return exp_bwd(grad_out, out)


def exp(x: torch.Tensor) -> torch.Tensor:
    """`torch.exp(x)`, with a gradient."""
    return ExpFunction.apply(x)


def check(x: torch.Tensor) -> None:
    x.requires_grad_()
    out, expected = exp(x), torch.exp(x)
    torch.testing.assert_close(out, expected)
    grad_out = torch.randn_like(out)
    (grad,) = torch.autograd.grad(out, x, grad_out)
    (expected_grad,) = torch.autograd.grad(expected, x, grad_out)
    torch.testing.assert_close(grad, expected_grad)
    print(f"ok  exp and its gradient, {list(x.shape)} {x.dtype}")


def main() -> None:
    check(torch.randn(10007, device=DEVICE))
    check(torch.randn(30, 40, 7, device=DEVICE, dtype=torch.float16).transpose(0, 2))
    if DEVICE.type == "cuda":
        x = torch.randn(8192, 8192, device=DEVICE, requires_grad=True)
        run_example(exp, torch.exp, (x,))
        run_example(exp, torch.exp, (x,), bwd=True)


if __name__ == "__main__":
    main()
