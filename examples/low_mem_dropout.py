"""Dropout that stores no mask: the backward pass draws it again.

`hl.rand` gives each element a number that depends on the seed and on the element's index alone. So
a seed of 8 bytes is all that the forward pass leaves to the backward pass, whatever the size of the
tensor, and however the two kernels cut it into blocks.

    python examples/low_mem_dropout.py      prints the Triton kernel, then checks what is said here
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

import helion
import helion.language as hl

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@helion.kernel(static_shapes=False)
def low_mem_dropout(p: float, x: torch.Tensor, seed: int) -> torch.Tensor:
    """Zero each element of `x` with probability `p`, and scale the others by 1 / (1 - p).

    Args:
        p: probability, from 0 to 1 inclusive.
        x: floating-point tensor of any shape and strides.
        seed: int, or one-element integer tensor on the device of `x`; 64 bits.

    Returns:
        Contiguous tensor of the shape and dtype of `x`. What is dropped is 0, even if it was NaN.
    """
    n = x.numel()
    flat = x.contiguous().view(n)
    out = torch.empty_like(flat)
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    for tile in hl.tile(n):
        keep = hl.rand([tile], seed=seed) >= p
        out[tile] = torch.where(keep, flat[tile] * scale, 0.0)
    return out.view(x.shape)


@helion.kernel(static_shapes=False)
def low_mem_dropout_bwd(p: float, grad_y: torch.Tensor, seed: int) -> torch.Tensor:
    """The gradient of `low_mem_dropout(p, x, seed)` by `x`, given that by its result."""
    n = grad_y.numel()
    flat = grad_y.contiguous().view(n)
    grad_x = torch.empty_like(flat)
    scale = 1.0 / (1.0 - p) if p < 1.0 else 0.0
    for tile in hl.tile(n):
        keep = hl.rand([tile], seed=seed) >= p
        grad_x[tile] = torch.where(keep, flat[tile] * scale, 0.0)
    return grad_x.view(grad_y.shape)


class LowMemDropoutFunction(torch.autograd.Function):
    """`apply(p, x, seed)` is `low_mem_dropout` with a gradient; it keeps the seed and no tensor.

    Dropout is linear, so its backward pass is differentiated by its forward pass, and so on.
    """

    @staticmethod
    def forward(
        ctx: Any,
        p: float,
        x: torch.Tensor,
        seed: int | torch.Tensor,
        kernel: Callable[..., torch.Tensor] = low_mem_dropout,
        adjoint: Callable[..., torch.Tensor] = low_mem_dropout_bwd,
    ) -> torch.Tensor:
        ctx.p, ctx.seed, ctx.kernels = p, seed, (adjoint, kernel)
        if isinstance(seed, torch.Tensor):  # saved, so that a seed changed meanwhile is an error
            ctx.seed = None
            ctx.save_for_backward(seed)
        return kernel(p, x, seed)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_y: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        seed = ctx.saved_tensors[0] if ctx.seed is None else ctx.seed
        grad_x = LowMemDropoutFunction.apply(ctx.p, grad_y, seed, *ctx.kernels)
        return None, grad_x, None, None, None


def dropout(
    x: torch.Tensor,
    p: float = 0.5,
    training: bool = True,
    *,
    seed: int | torch.Tensor | None = None,
    generator: torch.Generator | None = None,
) -> torch.Tensor:
    """`torch.nn.functional.dropout` without a mask in memory.

    Args:
        x: floating-point tensor.
        p: probability of dropping an element, from 0 to 1 inclusive.
        training: if false, `x` is returned as it is.
        seed: which elements to drop; if left out, a seed is drawn.
        generator: draws the seed; torch's own for the device of `x` if left out.
    """
    if not 0 <= p <= 1:
        raise ValueError(f"the probability p must be between 0 and 1, got {p}")
    if not x.is_floating_point():
        raise TypeError(f"dropout needs a floating-point tensor, got {x.dtype}")
    if not training:
        return x
    if seed is None:
        seed = draw_seed(x.device, generator)
    return LowMemDropoutFunction.apply(p, x, seed)


def draw_seed(device: torch.device, generator: torch.Generator | None) -> int | torch.Tensor:
    """A seed of 63 bits, drawn where it is needed: the host does not wait for the device.

    So a CUDA graph draws a new one at each replay. A CPU generator makes an int for a CUDA tensor.
    """
    source = device if generator is None else generator.device
    seed = torch.randint(2**63 - 1, (), device=source, generator=generator)
    return seed if source.type == device.type else int(seed)


class LowMemDropout(torch.nn.Module):
    """`torch.nn.Dropout` without a mask in memory: a new seed at each call.

    Args:
        p: probability of dropping an element, from 0 to 1 inclusive.
        generator: draws the seeds; torch's own for the device of the input if left out.
    """

    def __init__(self, p: float = 0.5, generator: torch.Generator | None = None) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"the probability p must be between 0 and 1, got {p}")
        self.p = p
        self.generator = generator

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return dropout(x, self.p, self.training, generator=self.generator)

    def extra_repr(self) -> str:
        return f"p={self.p}"


def low_mem_dropout_tritonbench(
    tb_op: object, p: float, x: torch.Tensor
) -> Callable[[], torch.Tensor]:
    """The call that the benchmark times: dropout of `x`, with a gradient if `x` asks for one."""
    del tb_op
    apply = LowMemDropoutFunction.apply if x.requires_grad else low_mem_dropout
    return lambda: apply(p, x, 123)


# -- the checks ----------------------------------------------------------------------------------


def check_backward_drops_the_same(p: float, x: torch.Tensor, seed: int) -> str:
    x = x.clone().requires_grad_()
    y = dropout(x, p, seed=seed)
    y.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad == 0, y == 0)
    assert torch.equal(x.grad[y != 0], torch.full_like(x.grad, 1 / (1 - p))[y != 0])
    return f"forward and backward drop the same {(y == 0).sum():,} of {x.numel():,} elements"


def check_seed_chooses(p: float, x: torch.Tensor, seed: int) -> str:
    kept, again, other = (low_mem_dropout(p, x, s) != 0 for s in (seed, seed, seed + 1))
    assert torch.equal(kept, again)
    share = (kept != other).float().mean().item()
    assert math.isclose(share, 2 * p * (1 - p), rel_tol=0.05)
    expected = f"independent masks: {2 * p * (1 - p):.2%}"
    return f"another seed treats {share:.2%} of the elements otherwise ({expected})"


def check_drop_rate(p: float, x: torch.Tensor, seed: int) -> str:
    rate = (low_mem_dropout(p, x, seed) == 0).double().mean().item()
    # 99.99% of all seeds lie within 3.9 standard deviations of the binomial distribution.
    margin = 3.9 * math.sqrt(p * (1 - p) / x.numel())
    assert abs(rate - p) <= margin
    return f"drop rate {rate:.4%} for p = {p:.2%}, 99.99% interval +- {margin:.4%}"


def check_block_sizes(p: float, x: torch.Tensor, seed: int) -> str:
    blocks = [1 << 12, 1 << 14, 1 << 16] if x.device.type == "cpu" else [64, 256, 1024, 4096]
    bound = low_mem_dropout.bind((p, x, seed))
    expected = low_mem_dropout(p, x, seed)
    for block in blocks:
        run = bound.compile_config(helion.Config(block_sizes=[block]))
        assert torch.equal(run(p, x, seed), expected)
    return f"the same elements are dropped with blocks of {', '.join(map(str, blocks))}"


def held_for_backward(function: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> int:
    """Bytes that stay in memory between forward and backward, the result not counted."""
    x = x.clone().requires_grad_()
    saved: list[torch.Tensor] = []
    if x.is_cuda:
        before = torch.cuda.memory_allocated()
        y = function(x)
        return torch.cuda.memory_allocated() - before - y.nbytes
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        function(x)
    return sum(t.nbytes for t in saved)


def check_memory(p: float, x: torch.Tensor, seed: int) -> str:
    del seed
    ours = held_for_backward(LowMemDropout(p), x)
    torchs = held_for_backward(lambda x: F.dropout(x, p), x)
    assert ours <= 512 < torchs  # the least that the CUDA allocator hands out
    return f"held for backward: {ours:,} bytes; F.dropout: {torchs:,} bytes"


def measure(p: float, x: torch.Tensor) -> str:
    from triton.testing import do_bench

    calls = {
        "low_mem_dropout": lambda: low_mem_dropout(p, x, 123),
        "low_mem_dropout_bwd": lambda: low_mem_dropout_bwd(p, x, 123),
        "F.dropout": lambda: F.dropout(x, p),
        "copy": x.clone,
    }
    times: dict[str, Any] = {name: do_bench(call) for name, call in calls.items()}
    return ", ".join(f"{name} {2 * x.nbytes / ms / 1e6:.0f} GB/s" for name, ms in times.items())


def main() -> None:
    p, seed = 0.25, 123
    x = torch.randn(1 << 19 if DEVICE.type == "cpu" else 1 << 26, device=DEVICE)
    x[x == 0] = 1  # so that an element is 0 afterwards only if it was dropped
    print(low_mem_dropout.bind((p, x, seed)).to_triton_code())
    checks = (
        check_backward_drops_the_same,
        check_seed_chooses,
        check_drop_rate,
        check_block_sizes,
        check_memory,
    )
    for check in checks:
        print(f"ok  {check(p, x, seed)}")
    if DEVICE.type == "cuda":
        print(measure(p, x))


if __name__ == "__main__":
    main()
