"""One token for each row of logits, in one pass: the largest of `logit + temperature * gumbel`.

The index of the largest sum is a sample of the softmax, so that no maximum, no sum and no
probability is needed first. Each request has a seed and a temperature of its own, and a step is
folded into the seed: what a request gets depends neither on its row nor on who shares the batch.

    python examples/gumbel_sampling.py [--plot FILE]    checks against softmax by a chi-square test

Source: Maddison, Tarlow and Minka, "A* sampling", NeurIPS 2014, for the sampling.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence

import torch

import helion
import helion.language as hl
from helion import random
from helion._testing import DEVICE

# Each is a program, for which the interpreter takes milliseconds.
SAMPLES = 300 if DEVICE.type == "cpu" else 1 << 16


@helion.kernel(static_shapes=False)
def gumbel_sampling(
    logits: torch.Tensor, temperatures: torch.Tensor, seeds: torch.Tensor, step: int
) -> torch.Tensor:
    """Sample an index of each row with probability `softmax(logits / temperature)`.

    Args:
        logits: floating-point tensor [rows, vocabulary]; -inf is never sampled.
        temperatures: float32 tensor [rows]; at 0 the largest logit is taken, the first of equals.
        seeds: int64 tensor [rows], the seed of each request.
        step: how many tokens the requests have had.

    Returns:
        int64 tensor [rows].
    """
    rows, vocabulary = logits.size()
    tokens = torch.empty([rows], dtype=torch.int64, device=logits.device)
    block = hl.register_block_size(vocabulary)
    for row in hl.grid(rows):
        seed = hl.fold_in(seeds[row], step)
        temperature = temperatures[row]
        # Each lane keeps the best that it has seen: the lanes meet only once, after the loop.
        best = hl.full([block], float("-inf"), dtype=torch.float32)
        found = hl.zeros([block], dtype=torch.int64)
        for column in hl.tile(vocabulary, block_size=block):
            noise = hl.gumbel([column], seed, packed=True)
            score = logits[row, column].to(torch.float32) + temperature * noise
            better = score > best
            best = torch.where(better, score, best)
            found = torch.where(better, column.index.to(torch.int64), found)
        top = best.amax(-1)
        tokens[row] = torch.where(best == top, found, vocabulary).amin(-1)
    return tokens


def torch_gumbel_sampling(
    logits: torch.Tensor, temperatures: torch.Tensor, seeds: torch.Tensor, step: int
) -> torch.Tensor:
    """Samples by torch, which has one generator for all: the seeds are not used."""
    del seeds, step
    return torch.multinomial(torch.softmax(logits / temperatures[:, None], -1), 1).squeeze(1)


def requests(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Temperatures from 0.5 up, and seeds."""
    temperatures = 0.5 + torch.arange(rows, dtype=torch.float32, device=DEVICE) / rows
    return temperatures, 1000 + torch.arange(rows, device=DEVICE)


# -- the checks ----------------------------------------------------------------------------------


def count_samples(
    logits: torch.Tensor, temperature: float, samples: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """How often each token of one row is sampled, and how often softmax expects it; float64."""
    classes = logits.size(0)
    temperatures = torch.full([samples], temperature, device=DEVICE)
    seeds = torch.arange(samples, device=DEVICE)
    tokens = gumbel_sampling(logits.expand(samples, classes), temperatures, seeds, 0)
    counts = torch.bincount(tokens, minlength=classes).double()
    return counts, samples * torch.softmax(logits.double() / temperature, -1)


def check_distribution(samples: int = SAMPLES) -> str:
    logits, temperature = torch.linspace(-1, 1, 8, device=DEVICE), 0.7
    counts, expected = count_samples(logits, temperature, samples)
    chi_square = ((counts - expected).square() / expected).sum().item()
    # Wilson and Hilferty's approximation; one seed in 10,000 is above 3.72 standard deviations.
    freedom = counts.numel() - 1
    bound = freedom * (1 - 2 / (9 * freedom) + 3.72 * math.sqrt(2 / (9 * freedom))) ** 3
    assert chi_square < bound
    return f"chi-square {chi_square:.1f} of {samples} samples, below {bound:.1f}"


def check_requests_stand_alone(rows: int = 6, vocabulary: int = 1000, step: int = 3) -> str:
    logits = torch.randn(rows, vocabulary, device=DEVICE)
    temperatures, seeds = requests(rows)
    tokens = gumbel_sampling(logits, temperatures, seeds, step)
    order = torch.randperm(rows, device=DEVICE)
    moved = gumbel_sampling(logits[order], temperatures[order], seeds[order], step)
    assert torch.equal(moved, tokens[order])
    assert not torch.equal(gumbel_sampling(logits, temperatures, seeds, step + 1), tokens)
    for row in range(rows):
        seed = random.fold_in(int(seeds[row]), step)
        noise = random.gumbel([vocabulary], seed, packed=True, device=DEVICE)
        scores = logits[row] + temperatures[row] * noise
        # The math libraries of host and device may differ in the last digit.
        assert scores[tokens[row]] >= scores.max() - 1e-5
    return f"{rows} requests get their tokens in any order, those that the host computes"


def check_ends() -> str:
    logits = torch.randn(5, 300, device=DEVICE)
    logits[1:, :299] = float("-inf")
    none = torch.zeros(5, device=DEVICE)
    tokens = gumbel_sampling(logits, none, requests(5)[1], 0)
    assert torch.equal(tokens, logits.argmax(-1))
    hot = gumbel_sampling(logits, none + 100, requests(5)[1], 0)
    assert torch.equal(hot[1:], tokens[1:])
    return "temperature 0 takes the largest logit; -inf is never taken"


def plot(file: str) -> None:
    """Save a picture of sampled and expected shares at three temperatures."""
    from matplotlib.figure import Figure  # pyright: ignore[reportMissingImports] - optional

    logits = torch.linspace(-1, 1, 8, device=DEVICE)
    figure = Figure(figsize=(9, 3))
    axes = figure.subplots(1, 3, sharey=True)
    for axis, temperature in zip(axes, (0.3, 0.7, 2.0), strict=True):
        counts, expected = (c.cpu() / SAMPLES for c in count_samples(logits, temperature, SAMPLES))
        axis.bar(range(8), counts, color="lightsteelblue", label="sampled")
        axis.plot(range(8), expected, "k_", markersize=14, label="softmax")
        axis.set(title=f"temperature {temperature}", xlabel="token")
    axes[0].set_ylabel("share of samples")
    axes[0].legend()
    figure.savefig(file, bbox_inches="tight")


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--plot", metavar="FILE", help="save a picture; needs matplotlib")
    options = parser.parse_args(arguments)
    for check in (check_distribution, check_requests_stand_alone, check_ends):
        print(f"ok  {check()}")
    if options.plot:
        plot(options.plot)
    if DEVICE.type == "cuda":
        from helion._testing import do_bench

        logits = torch.randn(256, 128256, device=DEVICE, dtype=torch.bfloat16)
        for function in (gumbel_sampling, torch_gumbel_sampling):
            ms = do_bench(lambda f=function: f(logits, *requests(256), 0))
            print(f"{function.__name__} {ms} ms")


if __name__ == "__main__":
    main(sys.argv[1:])
