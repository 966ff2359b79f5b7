"""The examples that draw numbers: what their own checks do not see."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import helion
from examples import (
    dropout_residual_layernorm,
    gumbel_sampling,
    monte_carlo,
    random_projection,
    sharded_dropout,
    stochastic_rounding,
)
from helion._testing import DEVICE
from helion.random import bernoulli, randn, random_bits

# -- dropout of a tensor in parts ----------------------------------------------------------------


@pytest.mark.parametrize("seed", [5, -1, 2**40 + 3])
@pytest.mark.parametrize(("dim", "ranks"), [(0, 3), (1, 2), (1, 5)])
def test_parts_drop_what_the_host_draws_for_the_whole(dim, ranks, seed):
    whole = (9, 150)
    x = torch.arange(1.0, 1 + 9 * 150, device=DEVICE).reshape(whole)
    expected = torch.where(bernoulli(whole, 0.5, seed, device=DEVICE), x * 2, 0)
    for rank in range(ranks):
        part = sharded_dropout.shard(whole, dim, rank, ranks)
        found = sharded_dropout.sharded_dropout(part.of(x), 0.5, seed, part)
        assert torch.equal(found, part.of(expected))


def test_two_processes_compute_what_one_computes():
    results = sharded_dropout.across_processes(2)
    assert len(results) == 2  # split by rows, and by columns
    for seed, found in results:
        x = sharded_dropout.inputs(DEVICE)
        keep = bernoulli(sharded_dropout.SHAPE, 1 - sharded_dropout.P, seed, device=DEVICE)
        scale = torch.tensor(1 / (1 - sharded_dropout.P), device=DEVICE)
        y = torch.where(keep, x * scale, 0)
        gradient = torch.where(keep, 2 * y * scale, 0)
        assert torch.equal(found, torch.stack([y, gradient]).cpu())


# -- dropout, residual and layer normalization ----------------------------------------------------


@pytest.mark.parametrize("blocks", [[2], [4]])
def test_the_mask_of_a_layer_is_that_of_the_host_in_both_passes(blocks):
    example, (m, n), p, seed = dropout_residual_layernorm, (10, 100), 0.25, -7
    x, residual, grad, none = torch.randn(4, m, n, device=DEVICE)
    weight, bias = torch.randn(2, n, device=DEVICE)
    keep = bernoulli([m, n], 1 - p, seed, device=DEVICE)
    args = (x, residual, weight, bias, p, seed)
    run = example.dropout_residual_layernorm_fwd.bind(args).compile_config(
        helion.Config(block_sizes=blocks)
    )
    out, summed, mean, rstd = run(*args)
    expected = torch.where(keep, residual + x / (1 - p), residual)
    # One rounding of the scale, of the product and of the sum.
    torch.testing.assert_close(summed, expected, rtol=1e-6, atol=1e-6)
    assert torch.equal(summed[~keep], residual[~keep])
    torch.testing.assert_close(out, F.layer_norm(summed, [n], weight, bias))
    # The sum's own gradient alone: it passes to the residual whole, to x where it was kept.
    args = (none * 0, grad, summed, mean, rstd, weight, p, seed)
    config = helion.Config(block_sizes=[4, *blocks])
    grad_x, grad_residual, *_ = example.dropout_residual_layernorm_bwd.bind(args).compile_config(
        config
    )(*args)
    assert torch.equal(grad_residual, grad)
    torch.testing.assert_close(grad_x, torch.where(keep, grad / (1 - p), 0), rtol=1e-6, atol=0)


# -- Gumbel sampling ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_token_does_not_depend_on_the_block(dtype):
    logits = torch.randn(4, 333, device=DEVICE).to(dtype)
    args = (logits, *gumbel_sampling.requests(4), 7)
    bound = gumbel_sampling.gumbel_sampling.bind(args)
    runs = [bound.compile_config(helion.Config(block_sizes=[block])) for block in (32, 128, 512)]
    tokens = [run(*args) for run in runs]
    assert torch.equal(tokens[0], tokens[1])
    assert torch.equal(tokens[0], tokens[2])
    assert len(set(tokens[0].tolist())) > 1


# -- stochastic rounding --------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1e-39, 1e38])  # normal, subnormal, near the largest
def test_a_number_is_rounded_up_where_its_dropped_bits_and_the_drawn_ones_carry(scale):
    x = (torch.randn(7, 50, device=DEVICE) * scale).clamp(-3.3e38, 3.3e38)
    drawn = random_bits([350], 3, torch.uint16, packed=True, device=DEVICE).long().view(7, 50)
    bits = x.view(torch.int32).long() & 0xFFFFFFFF
    expected = ((bits + drawn) >> 16).to(torch.int32).to(torch.uint16).view(torch.bfloat16)
    found = stochastic_rounding.stochastic_rounding(x, 3)
    assert torch.equal(found, expected)
    assert not torch.equal(found, x.to(torch.bfloat16))


# -- random projection ----------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [[16, 16, 16], [32, 64, 16]])
def test_a_projection_multiplies_with_the_matrix_of_the_host(blocks):
    n, k, seed = 50, 100, -3
    matrix = random_projection.random_matrix(n, k, seed)
    config = helion.Config(block_sizes=blocks)
    # A product with the unit matrix is the matrix; rounded to TF32 on a GPU, to 2**-11 of it.
    rtol = 1e-3 if DEVICE.type == "cuda" else 1e-6
    unit = torch.eye(n, device=DEVICE)
    run = random_projection.project.bind((unit, k, seed)).compile_config(config)
    torch.testing.assert_close(run(unit, k, seed), matrix, rtol=rtol, atol=1e-7)
    unit = torch.eye(k, device=DEVICE)
    run = random_projection.project_back.bind((unit, n, seed)).compile_config(config)
    torch.testing.assert_close(run(unit, n, seed), matrix.T, rtol=rtol, atol=1e-7)


# -- the price of an option -----------------------------------------------------------------------


@pytest.mark.parametrize("paths", [1000, 4096])
def test_a_price_is_the_mean_over_the_paths_of_the_host(paths):
    call = monte_carlo.Call(years=2.0)
    normal = randn([paths], 5, packed=True, device=DEVICE).double()
    payoff = (call.spot * torch.exp(call.drift + call.spread * normal) - call.strike).clamp(min=0)
    price, error = monte_carlo.simulated(call, paths, 5)
    # Sums of float32.
    assert price == pytest.approx(call.discount * payoff.mean().item(), rel=1e-5)
    deviation = payoff.std(correction=1).item() / paths**0.5
    assert error == pytest.approx(call.discount * deviation, rel=1e-4)
