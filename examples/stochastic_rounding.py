"""Float32 to bfloat16, rounded up or down at random so that the mean is right.

Rounding to nearest loses every update that is smaller than half a step of bfloat16: a weight of 1
never grows by 0.001. Rounded stochastically, it grows by a whole step once in eight times.

    python examples/stochastic_rounding.py [--plot FILE]     checks the mean error against 0

Source: the dropped bits plus as many random bits carry into the kept ones with the right
probability; Gupta et al., "Deep learning with limited numerical precision", ICML 2015.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import torch

import helion
import helion.language as hl
from helion._testing import DEVICE


@helion.kernel(static_shapes=False)
def stochastic_rounding(x: torch.Tensor, seed: int) -> torch.Tensor:
    """Round to one of the two nearest bfloat16 numbers, to the nearer with more probability.

    Args:
        x: float32 tensor of any shape. NaN and infinities stay as they are; what lies above the
            largest bfloat16 number becomes infinite with the probability that its distance says.
        seed: int, or one-element integer tensor on the device; 64 bits.

    Returns:
        Contiguous bfloat16 tensor of the shape of `x`; its expectation is `x`.
    """
    n = x.numel()
    flat = x.contiguous().view(n)
    out = torch.empty([n], dtype=torch.bfloat16, device=x.device)
    for tile in hl.tile(n):
        value = flat[tile]
        noise = hl.random_bits([tile], seed, dtype=torch.uint16, packed=True)
        # The sum carries away from zero, whatever the sign, since a float is sign and magnitude.
        sum_of_bits = value.view(torch.int32) + noise.to(torch.int32)
        rounded = (sum_of_bits & -65536).view(torch.float32)
        finite = torch.abs(value) < float("inf")
        out[tile] = torch.where(finite, rounded, value).to(torch.bfloat16)
    return out.view(x.shape)


def torch_stochastic_rounding(x: torch.Tensor, seed: int) -> torch.Tensor:
    """The same by torch, with bits of its own generator: the seed is not used."""
    del seed
    noise = torch.randint(1 << 16, x.shape, dtype=torch.int32, device=x.device)
    rounded = ((x.contiguous().view(torch.int32) + noise) & -65536).view(torch.float32)
    return torch.where(x.isfinite(), rounded, x).to(torch.bfloat16)


def neighbours(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The bfloat16 numbers around finite ones, that toward zero first; float64."""
    near = (x.contiguous().view(torch.int32) & -65536).view(torch.float32)
    far = (near.view(torch.int32) + 65536).view(torch.float32)
    return near.double(), far.double()


def fault(rounded: torch.Tensor, x: torch.Tensor) -> str | None:
    """What is wrong with a stochastic rounding of finite numbers; None if nothing is."""
    near, far = neighbours(x)
    exact, value = x.double(), rounded.double()
    if not ((value == near) | (value == far)).all():
        return "a result is none of the two neighbours"
    if not torch.equal(value[exact == near], exact[exact == near]):
        return "a bfloat16 number is not kept"
    # Scaled to steps: up with probability q, so the variance of an error is q * (1 - q).
    q = ((exact - near) / (far - near)).clamp(0, 1)
    outward = (value - exact) / (far - near)
    deviation = (q * (1 - q)).sum().sqrt().item() / x.numel()
    for name, errors in (("outward", outward), ("upward", outward * exact.sign())):
        mean = errors.mean().item()
        # One seed in a million is further off.
        if abs(mean) > 4.9 * deviation:
            return f"the mean {name} error is {mean:.2e} steps, not below {4.9 * deviation:.2e}"
    return None


# -- the checks ----------------------------------------------------------------------------------


def check_unbiased() -> str:
    x = torch.randn(1 << 16, device=DEVICE)
    wrong = fault(stochastic_rounding(x, 7), x)
    assert wrong is None, wrong
    # That the test sees a bias: rounding toward zero has a mean error of half a step.
    assert fault(neighbours(x)[0].to(torch.bfloat16), x) is not None
    return f"{x.numel():,} numbers become one of their neighbours, with a mean error of 0"


def check_special() -> str:
    x = torch.tensor([0.0, -0.0, 1.0, -1.5, torch.inf, -torch.inf, torch.nan], device=DEVICE)
    rounded = stochastic_rounding(x.expand(100, 7), 7).float()
    torch.testing.assert_close(rounded, x.expand(100, 7), rtol=0, atol=0, equal_nan=True)
    return "what bfloat16 has stays, infinities and NaN too"


def growth(steps: int, count: int = 256) -> tuple[list[float], list[float], list[float]]:
    """The mean of weights of 1 that grow by 0.001 a step: exact, stochastic, to nearest."""
    random = near = torch.ones(count, dtype=torch.bfloat16, device=DEVICE)
    means: tuple[list[float], list[float], list[float]] = ([], [], [])
    for step in range(steps):
        random = stochastic_rounding(random.float() + 0.001, step)
        near = (near.float() + 0.001).to(torch.bfloat16)
        found = (1 + 0.001 * (step + 1), random.float().mean().item(), near.float().mean().item())
        for of, mean in zip(means, found, strict=True):
            of.append(mean)
    return means


def check_small_updates() -> str:
    exact, random, near = (means[-1] for means in growth(steps=100))
    assert near == 1
    # A step is up by 2**-7 with probability 0.128: 5 deviations of the mean of 256 sums of 100.
    assert abs(random - exact) < 5 * 2**-7 * (100 * 0.128 * 0.872 / 256) ** 0.5
    return f"100 updates of 0.001 bring 1 to {random:.4f}; rounded to nearest, to {near}"


def plot(file: str) -> None:
    """Save a picture of small updates, added up in bfloat16."""
    from matplotlib.figure import Figure  # pyright: ignore[reportMissingImports] - optional

    figure = Figure(figsize=(5, 3.5))
    axis = figure.subplots()
    names = ("exact", "rounded stochastically", "rounded to nearest")
    for means, name, style in zip(growth(300), names, ("k--", "-", "-"), strict=True):
        axis.plot(means, style, label=name)
    axis.set(xlabel="updates of 0.001", ylabel="mean of 256 bfloat16 weights")
    axis.legend()
    figure.savefig(file, bbox_inches="tight")


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--plot", metavar="FILE", help="save a picture; needs matplotlib")
    options = parser.parse_args(arguments)
    for check in (check_unbiased, check_special, check_small_updates):
        print(f"ok  {check()}")
    if options.plot:
        plot(options.plot)
    if DEVICE.type == "cuda":
        from helion._testing import do_bench

        x = torch.randn(1 << 26, device=DEVICE)
        for function in (stochastic_rounding, torch_stochastic_rounding):
            ms = do_bench(lambda f=function: f(x, 7))
            print(f"{function.__name__} {ms} ms")


if __name__ == "__main__":
    main(sys.argv[1:])
