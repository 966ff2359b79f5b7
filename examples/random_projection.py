"""Random projection: `x @ R` with a matrix of normal numbers that is never stored.

Each program draws the tile of R that it multiplies with. So R takes no memory, however large it is;
a seed stands for it, and `random_matrix` gives it to whoever wants to see it. The gradient
multiplies with the transpose: it draws the same numbers in other tiles.

    python examples/random_projection.py [--plot FILE]      checks against the matrix of the host

Source: Johnson and Lindenstrauss, "Extensions of Lipschitz mappings into a Hilbert space", 1984:
distances are kept up to a factor of 1 +- sqrt(8 log(points) / k) or so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import torch

import helion
import helion.language as hl
from helion._testing import DEVICE
from helion.random import randn


@helion.kernel()
def project(x: torch.Tensor, k: hl.constexpr, seed: int) -> torch.Tensor:
    """`x @ R / sqrt(k)`, R of normal numbers.

    Args:
        x: floating-point tensor [m, n].
        k: columns of R, known at compile time.
        seed: int, or one-element integer tensor on the device; 64 bits. It stands for R [n, k].

    Returns:
        Tensor [m, k] of the dtype of `x`, summed in float32.
    """
    m, n = x.size()
    out = x.new_empty([m, int(k)])
    scale = float(k) ** -0.5
    for row, column in hl.tile([m, k]):
        total = hl.zeros([row, column], dtype=torch.float32)
        for inner in hl.tile(n):
            drawn = hl.randn([inner, column], seed, packed=True).to(x.dtype)
            total = hl.dot(x[row, inner], drawn, acc=total)
        out[row, column] = total * scale
    return out


@helion.kernel()
def project_back(y: torch.Tensor, n: hl.constexpr, seed: int) -> torch.Tensor:
    """`y @ R.T / sqrt(k)` for y [m, k]: the transpose of `project`, and so its gradient; [m, n]."""
    m, k = y.size()
    out = y.new_empty([m, int(n)])
    scale = float(k) ** -0.5
    for row, column in hl.tile([m, n]):
        total = hl.zeros([row, column], dtype=torch.float32)
        for inner in hl.tile(k):
            drawn = hl.randn([column, inner], seed, packed=True).to(y.dtype)
            total = hl.dot(y[row, inner], drawn.T, acc=total)
        out[row, column] = total * scale
    return out


class RandomProjectionFunction(torch.autograd.Function):
    """`apply(x, k, seed)` is `project` with a gradient; it keeps the seed and no tensor."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, k: int, seed: int) -> torch.Tensor:
        ctx.n, ctx.seed = x.size(1), seed
        return project(x, k, seed)

    @staticmethod
    def backward(  # pyright: ignore[reportIncompatibleMethodOverride]
        ctx: Any, grad_y: torch.Tensor
    ) -> tuple[torch.Tensor | None, ...]:
        return project_back(grad_y.contiguous(), ctx.n, ctx.seed), None, None


def random_projection(x: torch.Tensor, k: int, seed: int) -> torch.Tensor:
    """`x @ random_matrix(n, k, seed)` for x [m, n], without the matrix, and with a gradient."""
    return RandomProjectionFunction.apply(x, k, seed)


def random_matrix(n: int, k: int, seed: int, device: torch.device = DEVICE) -> torch.Tensor:
    """The matrix that the kernels multiply with, and its scale: float32 tensor [n, k]."""
    return randn([n, k], seed, packed=True, device=device) * k**-0.5


def torch_random_projection(x: torch.Tensor, k: int, seed: int) -> torch.Tensor:
    """The same by torch, with a matrix of torch's own generator in memory: the seed is not used."""
    del seed
    return x @ (torch.randn(x.size(1), k, device=x.device, dtype=x.dtype) * k**-0.5)


# -- the checks ----------------------------------------------------------------------------------


def check(m: int, n: int, k: int, dtype: torch.dtype) -> None:
    x = torch.randn(m, n, device=DEVICE).to(dtype).requires_grad_()
    matrix = random_matrix(n, k, 7)
    y = random_projection(x, k, 7)
    grad_y = torch.randn_like(y)
    (grad,) = torch.autograd.grad(y, x, grad_y)
    # Factors of bfloat16, or of TF32 on a GPU, have relative errors of 2**-8 or 2**-11.
    tolerance = {torch.float32: 1e-2 if DEVICE.type == "cuda" else 1e-4}.get(dtype, 5e-2)
    for found, expected in (
        (y, x.detach().float() @ matrix),
        (grad, grad_y.float() @ matrix.T),
    ):
        scale = expected.abs().max().item()
        torch.testing.assert_close(found.float(), expected, rtol=0, atol=tolerance * scale)
    print(f"ok  {[m, n]} by {[n, k]} {dtype}: the matrix of the host, and its gradient")


def distance_ratios(k: int) -> torch.Tensor:
    """Distances of 24 points of 500 coordinates after a projection to k, over those before."""
    x = torch.randn(24, 500, device=DEVICE)
    return torch.pdist(random_projection(x, k, 1).cpu()) / torch.pdist(x.cpu())


def check_distances() -> None:
    k = 256
    worst = (distance_ratios(k) - 1).abs().max().item()
    # 276 pairs; a ratio is normal with deviation 1 / sqrt(2 k), 5.5 of which none exceeds.
    bound = 5.5 / (2 * k) ** 0.5
    assert worst < bound
    print(f"ok  {k} coordinates of 500 keep all distances within {worst:.0%}, below {bound:.0%}")


def plot(file: str) -> None:
    """Save a picture of how distances change, by the number of coordinates that are left."""
    from matplotlib.figure import Figure  # pyright: ignore[reportMissingImports] - optional

    figure = Figure(figsize=(5, 3.5))
    axis = figure.subplots()
    for k in (256, 64, 16):
        axis.hist(distance_ratios(k), bins=30, alpha=0.6, label=f"{k} of 500 coordinates")
    axis.set(xlabel="distance after over before", ylabel="pairs of points")
    axis.legend()
    figure.savefig(file, bbox_inches="tight")


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--plot", metavar="FILE", help="save a picture; needs matplotlib")
    options = parser.parse_args(arguments)
    check(40, 100, 70, torch.float32)
    check(33, 128, 64, torch.bfloat16)
    check_distances()
    if options.plot:
        plot(options.plot)
    if DEVICE.type == "cuda":
        from helion._testing import do_bench

        x = torch.randn(8192, 8192, device=DEVICE, dtype=torch.bfloat16)
        for function in (random_projection, torch_random_projection):
            ms = do_bench(lambda f=function: f(x, 1024, 7))
            print(f"{function.__name__} {ms} ms")


if __name__ == "__main__":
    main(sys.argv[1:])
