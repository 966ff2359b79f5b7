"""Rolled reductions: `reduction_loops` changes how an axis is walked, and nothing else."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import helion
import helion.language as hl
from helion import exc

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
# Chunks add up in another order than one block does.
CLOSE = {"rtol": 1e-5, "atol": 1e-5}


@helion.kernel()
def sums(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    m = x.size(0)
    total, biggest, least, product = (x.new_empty([m], dtype=torch.float32) for _ in range(4))
    for a in hl.tile(m):
        row = x[a, :]
        total[a] = (row + 1).to(torch.float32).sum(-1)
        biggest[a] = row.amax(-1)
        least[a] = row.amin(-1)
        product[a] = (row.to(torch.float32) * 0.5 + 1).prod(-1)
    return total, biggest, least, product


def sums_by_torch(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    wide = x.float()
    total = (x + 1).float().sum(-1)
    return total, wide.amax(-1), wide.amin(-1), (wide * 0.5 + 1).prod(-1)


@helion.kernel()
def moments(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    m, n = x.size()
    assert weight.size(0) == n
    out = torch.empty_like(x)
    spread = x.new_empty([m])
    for a in hl.tile(m):
        row = x[a, :]
        variance, mean = torch.var_mean(row, -1, correction=0)
        out[a, :] = (row - mean[:, None]) * torch.rsqrt(variance + 1e-5)[:, None] * weight[None, :]
        spread[a] = row.std(-1)
    return out, spread


def moments_by_torch(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return F.layer_norm(x, [x.size(1)], weight), x.std(-1)


@helion.kernel()
def softmaxes(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    out, logs = torch.empty_like(x), torch.empty_like(x)
    for a in hl.tile(x.size(0)):
        out[a, :] = torch.softmax(x[a, :], -1)
        logs[a, :] = F.log_softmax(x[a, :], dim=1)
    return out, logs


def softmaxes_by_torch(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.softmax(x, -1), F.log_softmax(x, -1)


@helion.kernel()
def places(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    m = x.size(0)
    top, low = x.new_empty([m]), x.new_empty([m])
    at, under, first = (x.new_empty([m], dtype=torch.int64) for _ in range(3))
    for a in hl.tile(m):
        top[a], at[a] = torch.max(x[a, :], -1)
        value, index = torch.min(x[a, :], dim=1, keepdim=True)
        low[a], under[a] = value.squeeze(1), index.squeeze(1)
        first[a] = torch.argmax(x[a, :], -1)
    return top, at, low, under, first


def places_by_torch(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return *torch.max(x, -1), *torch.min(x, -1), torch.argmax(x, -1)


@helion.kernel()
def noisy(x: torch.Tensor, seed: int) -> torch.Tensor:
    m, n = x.size()
    out = x.new_empty([m], dtype=torch.float32)
    for a in hl.tile(m):
        out[a] = (x[a, :] + hl.rand([a, n], seed)).amax(-1)
    return out


@helion.kernel()
def nested(x: torch.Tensor) -> torch.Tensor:
    b, m = x.size(0), x.size(1)
    out = x.new_empty([b])
    for i in hl.grid(b):
        total = 0.0
        for a in hl.tile(m):
            total = total + x[i, a, :].sum(-1).sum()
        out[i] = total
    return out


def rolled(kernel: helion.Kernel, chunk: int | None, static: bool = True, **keys) -> helion.Kernel:
    config = helion.Config(reduction_loops=[chunk], **keys)
    return helion.kernel(kernel.fn, config=config, static_shapes=static)


CASES = {
    "sums": (sums, sums_by_torch, 1),
    "moments": (moments, moments_by_torch, 2),
    "softmaxes": (softmaxes, softmaxes_by_torch, 1),
    "places": (places, places_by_torch, 1),
}


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("length", [17, 64, 131])
@pytest.mark.parametrize("name", CASES)
def test_against_torch(name, length, static):
    kernel, by_torch, arguments = CASES[name]
    args = [torch.randn(5, length, device=DEVICE), torch.randn(length, device=DEVICE)][:arguments]
    got = rolled(kernel, 16, static, block_sizes=[2])(*args)
    for mine, theirs in zip(got, by_torch(*args), strict=True):
        torch.testing.assert_close(mine, theirs, **CLOSE)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.int32], ids=str)
def test_dtypes(dtype):
    x = torch.randint(-3, 3, (4, 70), device=DEVICE).to(dtype)
    for mine, theirs in zip(rolled(sums, 16, block_sizes=[4])(x), sums_by_torch(x), strict=True):
        torch.testing.assert_close(mine, theirs, **CLOSE)


def test_ties_and_nans_are_found_where_torch_finds_them():
    x = torch.zeros(5, 70, device=DEVICE)
    x[1, 40] = x[1, 60] = 7
    x[2, 33] = x[2, 50] = float("nan")
    x[3, :] = float("-inf")
    x[4, 20:] = float("inf")
    for mine, theirs in zip(
        rolled(places, 16, block_sizes=[2])(x), places_by_torch(x), strict=True
    ):
        torch.testing.assert_close(mine, theirs, equal_nan=True)


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_random_numbers_do_not_depend_on_chunks(static):
    x = torch.randn(5, 100, device=DEVICE)
    expected = rolled(noisy, None, static, block_sizes=[8])(x, 3)
    for chunk in (8, 32, 64):
        assert torch.equal(rolled(noisy, chunk, static, block_sizes=[2])(x, 3), expected)


def test_in_a_nested_loop():
    x = torch.randn(3, 10, 70, device=DEVICE)
    torch.testing.assert_close(rolled(nested, 32, block_sizes=[4])(x), x.sum((1, 2)), **CLOSE)


@helion.kernel()
def in_place(x: torch.Tensor) -> torch.Tensor:
    for a in hl.tile(x.size(0)):
        x[a, :] = torch.softmax(x[a, :], -1)
    return x


def test_the_spec_names_the_axes():
    x = torch.randn(4, 70, device=DEVICE)
    assert softmaxes.bind((x,)).config_spec.reduction_loops == [70]
    assert in_place.bind((x,)).config_spec.reduction_loops == []


def test_what_is_overwritten_is_not_read_again():
    """Such a kernel has no `reduction_loops`: the second loop would read what the first wrote."""
    x = torch.randn(4, 70, device=DEVICE)
    with pytest.raises(exc.InvalidConfig, match="expected 0, got 1"):
        rolled(in_place, 16, block_sizes=[2])(x)
    torch.testing.assert_close(in_place(x.clone()), torch.softmax(x, -1), **CLOSE)


@pytest.mark.parametrize("given", [128, 1024])
def test_a_chunk_that_covers_the_axis_is_no_chunk(given):
    x = torch.randn(4, 70, device=DEVICE)
    whole, chunk = (
        rolled(softmaxes, None, block_sizes=[2]),
        rolled(softmaxes, given, block_sizes=[2]),
    )
    codes = [k.bind((x,)).to_triton_code(k.configs[0]) for k in (whole, chunk)]
    assert codes[0] == codes[1]
