"""A linear layer whose weights are noisy, with noise that is never stored.

`y = x @ (mean + deviation * noise).T`: a network with such layers explores by itself, and learns
how much. The noise, as large as the weights, is drawn where it is multiplied, in three kernels that
tile the weights in different ways: the seed is all that they share.

    python examples/noisy_linear.py     checks the layer and its gradients against torch

Source: Fortunato et al., "Noisy networks for exploration", ICLR 2018, with independent noise.
"""

from __future__ import annotations

from typing import Any

import torch

import helion
import helion.language as hl
from helion._testing import DEVICE
from helion.random import randn


@helion.kernel()
def noisy_linear_fwd(
    x: torch.Tensor, mean: torch.Tensor, deviation: torch.Tensor, seed: int
) -> torch.Tensor:
    """`x @ weight.T`, with weight = mean + deviation * noise.

    Args:
        x: floating-point tensor [m, n].
        mean: tensor [k, n] of the same dtype.
        deviation: tensor [k, n] of the same dtype.
        seed: int, or one-element integer tensor on the device; 64 bits. It stands for the noise.

    Returns:
        Tensor [m, k] of the dtype of `x`, summed in float32.
    """
    m, n = x.size()
    k = mean.size(0)
    out = x.new_empty([m, k])
    for row, column in hl.tile([m, k]):
        total = hl.zeros([row, column], dtype=torch.float32)
        for inner in hl.tile(n):
            noise = hl.randn([column, inner], seed, packed=True)
            weight = mean[column, inner] + deviation[column, inner] * noise
            total = hl.dot(x[row, inner], weight.to(x.dtype).T, acc=total)
        out[row, column] = total
    return out


@helion.kernel()
def noisy_linear_bwd_x(
    grad: torch.Tensor, mean: torch.Tensor, deviation: torch.Tensor, seed: int
) -> torch.Tensor:
    """The gradient by `x` [m, n], given that by the result [m, k]: `grad @ weight`."""
    m, k = grad.size()
    n = mean.size(1)
    out = grad.new_empty([m, n])
    for row, column in hl.tile([m, n]):
        total = hl.zeros([row, column], dtype=torch.float32)
        for inner in hl.tile(k):
            noise = hl.randn([inner, column], seed, packed=True)
            weight = mean[inner, column] + deviation[inner, column] * noise
            total = hl.dot(grad[row, inner], weight.to(grad.dtype), acc=total)
        out[row, column] = total
    return out


@helion.kernel()
def noisy_linear_bwd_weight(
    grad: torch.Tensor, x: torch.Tensor, seed: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients by `mean` [k, n], `grad.T @ x`, and by `deviation`, that times the noise."""
    m, k = grad.size()
    n = x.size(1)
    grad_mean, grad_deviation = x.new_empty([k, n]), x.new_empty([k, n])
    for row, column in hl.tile([k, n]):
        total = hl.zeros([row, column], dtype=torch.float32)
        for inner in hl.tile(m):
            total = hl.dot(grad[inner, row].T, x[inner, column], acc=total)
        grad_mean[row, column] = total
        grad_deviation[row, column] = total * hl.randn([row, column], seed, packed=True)
    return grad_mean, grad_deviation


class NoisyLinearFunction(torch.autograd.Function):
    """`apply(x, mean, deviation, seed)` is the layer with gradients; the noise is not kept."""

    @staticmethod
    def forward(
        ctx: Any, x: torch.Tensor, mean: torch.Tensor, deviation: torch.Tensor, seed: int
    ) -> torch.Tensor:
        ctx.save_for_backward(x, mean, deviation)
        ctx.seed = seed
        return noisy_linear_fwd(x, mean, deviation, seed)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        x, mean, deviation = ctx.saved_tensors
        grad = grad.contiguous()
        grad_x = noisy_linear_bwd_x(grad, mean, deviation, ctx.seed)
        return grad_x, *noisy_linear_bwd_weight(grad, x, ctx.seed), None


def noisy_linear(
    x: torch.Tensor, mean: torch.Tensor, deviation: torch.Tensor, seed: int
) -> torch.Tensor:
    """`x @ (mean + deviation * noise).T` for x [m, n] and weights [k, n], with gradients."""
    return NoisyLinearFunction.apply(x, mean, deviation, seed)


def torch_noisy_linear(
    x: torch.Tensor, mean: torch.Tensor, deviation: torch.Tensor, seed: int
) -> torch.Tensor:
    """The same by torch, with the noise of the host in memory."""
    noise = randn(list(mean.shape), seed, packed=True, device=x.device).to(x.dtype)
    return x @ (mean + deviation * noise).T


def check(m: int, n: int, k: int, dtype: torch.dtype) -> None:
    shapes = ([m, n], [k, n], [k, n])
    inputs: Any = [torch.randn(s, device=DEVICE).to(dtype).requires_grad_() for s in shapes]
    exact: Any = [t.detach().double().requires_grad_() for t in inputs]
    y, expected = noisy_linear(*inputs, seed=7), torch_noisy_linear(*exact, seed=7)
    grad = torch.randn_like(y)
    found = (y, *torch.autograd.grad(y, inputs, grad))
    right = (expected, *torch.autograd.grad(expected, exact, grad.double()))
    # Factors of bfloat16, or of TF32 on a GPU, have relative errors of 2**-8 or 2**-11.
    tolerance = 5e-2 if dtype.itemsize < 4 else 1e-2 if DEVICE.type == "cuda" else 1e-4
    for value, of in zip(found, right, strict=True):
        scale = of.abs().max().item()
        torch.testing.assert_close(value.double(), of, rtol=0, atol=tolerance * scale)
    print(f"ok  noisy_linear and its gradients, {[m, n]} by {[n, k]} {dtype}")


def main() -> None:
    check(20, 100, 70, torch.float32)
    check(33, 64, 128, torch.bfloat16)
    if DEVICE.type == "cuda":
        from helion._testing import do_bench

        shapes = ([4096, 4096], [4096, 4096], [4096, 4096])
        inputs: Any = [torch.randn(s, device=DEVICE, dtype=torch.bfloat16) for s in shapes]
        print(f"ours {do_bench(lambda: noisy_linear(*inputs, seed=7))} ms")
        print(f"torch, without drawing {do_bench(lambda: inputs[0] @ inputs[1].T)} ms")


if __name__ == "__main__":
    main()
