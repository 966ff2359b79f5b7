"""The price of an option by simulation, with an error bar, against the closed form.

A program draws its share of the prices at maturity, and leaves two sums: of the payoffs and of
their squares. Nothing else is stored, however many paths there are; and a path has the same number
whatever the block, so that two machines simulate the same paths.

    python examples/monte_carlo.py [--plot FILE]    checks the price of a call against the formula

Source: Black and Scholes, "The pricing of options and corporate liabilities", 1973, for the closed
form; Glasserman, "Monte Carlo methods in financial engineering", 2003, 1.1, for the simulation.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from typing import NamedTuple

import torch

import helion
import helion.language as hl
from helion._testing import DEVICE


class Call(NamedTuple):
    """A European call: the right to buy at the strike when it matures.

    Attributes:
        spot: today's price.
        strike: the price to buy at.
        rate: interest, a year and continuous.
        volatility: standard deviation of the logarithm of the price after a year.
        years: until it matures.
    """

    spot: float = 100.0
    strike: float = 105.0
    rate: float = 0.03
    volatility: float = 0.2
    years: float = 1.0

    @property
    def drift(self) -> float:
        """Mean of the logarithm of the price's growth until then, without risk."""
        return (self.rate - self.volatility**2 / 2) * self.years

    @property
    def spread(self) -> float:
        """Standard deviation of that logarithm."""
        return self.volatility * math.sqrt(self.years)

    @property
    def discount(self) -> float:
        """What 1 at maturity is worth today."""
        return math.exp(-self.rate * self.years)


@helion.kernel(static_shapes=False)
def payoff_sums(
    paths: int,
    spot: float,
    strike: float,
    drift: float,
    spread: float,
    seed: int,
    device: torch.device,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Simulate prices at maturity, `spot * exp(drift + spread * normal)`, and add up the payoffs.

    Args:
        paths: how many to simulate.
        spot: today's price.
        strike: what the payoff `max(price - strike, 0)` is above.
        drift: mean of the logarithm of the price's growth.
        spread: its standard deviation.
        seed: int, 64 bits.
        device: where to simulate.

    Returns:
        Sums of the payoffs and of their squares, a float32 tensor [programs] of each.
    """
    block = hl.register_block_size(paths)
    programs = helion.cdiv(paths, block)
    totals = torch.empty([programs], dtype=torch.float32, device=device)
    squares = torch.empty([programs], dtype=torch.float32, device=device)
    for path in hl.tile(paths, block_size=block):
        normal = hl.randn([path], seed, packed=True)
        payoff = torch.clamp(spot * torch.exp(drift + spread * normal) - strike, min=0.0)
        totals[path.id] = payoff.sum(-1)
        squares[path.id] = (payoff * payoff).sum(-1)
    return totals, squares


def simulated(
    call: Call, paths: int, seed: int, device: torch.device = DEVICE
) -> tuple[float, float]:
    """The price of a call, and the standard error of it."""
    sums = payoff_sums(paths, call.spot, call.strike, call.drift, call.spread, seed, device)
    mean, square = (s.double().sum().item() / paths for s in sums)
    deviation = math.sqrt((square - mean**2) / (paths - 1))
    return call.discount * mean, call.discount * deviation


def closed_form(call: Call) -> float:
    """The price by the formula of Black and Scholes."""

    def below(z: float) -> float:
        return math.erfc(-z / math.sqrt(2)) / 2

    z = (math.log(call.spot / call.strike) + call.drift) / call.spread
    return call.spot * below(z + call.spread) - call.strike * call.discount * below(z)


def torch_payoff_mean(call: Call, paths: int, device: torch.device = DEVICE) -> torch.Tensor:
    """The mean payoff by torch: every path is stored."""
    growth = torch.exp(call.drift + call.spread * torch.randn(paths, device=device))
    return (call.spot * growth - call.strike).clamp(min=0).mean()


# -- the checks ----------------------------------------------------------------------------------


def check(call: Call, paths: int, seed: int) -> None:
    price, error = simulated(call, paths, seed)
    exact = closed_form(call)
    # One seed in 10,000 is further off; and an error bar that is too wide would hide a mistake.
    assert abs(price - exact) < 3.9 * error < 0.1 * exact
    print(f"ok  strike {call.strike}: {price:.4f} +- {error:.4f}, closed form {exact:.4f}")


def check_error_bar(call: Call, paths: int, seeds: int) -> None:
    exact = closed_form(call)
    inside = sum(abs(p - exact) < e for p, e in (simulated(call, paths, s) for s in range(seeds)))
    share, expected = inside / seeds, math.erf(math.sqrt(0.5))
    # Binomial: 3.9 deviations, one choice of seeds in 10,000 is further off.
    assert abs(share - expected) < 3.9 * math.sqrt(expected * (1 - expected) / seeds)
    print(
        f"ok  the error bar covers the price for {share:.0%} of the seeds, {expected:.0%} expected"
    )


def plot(file: str, call: Call) -> None:
    """Save a picture of how the price approaches the closed form."""
    from matplotlib.figure import Figure  # pyright: ignore[reportMissingImports] - optional

    counts = [1 << k for k in range(8, 19)]
    prices, errors = zip(*(simulated(call, count, 1) for count in counts), strict=True)
    figure = Figure(figsize=(5, 3.5))
    axis = figure.subplots()
    axis.errorbar(counts, prices, errors, fmt="o", capsize=3, label="simulated")
    axis.axhline(closed_form(call), color="k", linestyle="--", label="closed form")
    axis.set(xscale="log", xlabel="paths", ylabel="price of the call")
    axis.legend()
    figure.savefig(file, bbox_inches="tight")


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--plot", metavar="FILE", help="save a picture; needs matplotlib")
    options = parser.parse_args(arguments)
    paths = 1 << (18 if DEVICE.type == "cpu" else 28)
    for strike in (90.0, 105.0, 120.0):
        check(Call(strike=strike), paths, seed=1)
    check_error_bar(Call(), paths=5000, seeds=60)
    if options.plot:
        plot(options.plot, Call())
    if DEVICE.type == "cuda":
        from helion._testing import do_bench

        print(f"ours {do_bench(lambda: simulated(Call(), paths, 1))} ms")
        print(f"torch {do_bench(lambda: torch_payoff_mean(Call(), paths))} ms")


if __name__ == "__main__":
    main(sys.argv[1:])
