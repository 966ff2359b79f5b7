"""Program ids: every way to map tiles to programs computes the same, bit for bit."""

from __future__ import annotations

import itertools

import pytest
import torch

import helion
import helion.language as hl
from helion import exc

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


@helion.kernel()
def two_loops(x: torch.Tensor, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    m, n = x.size()
    out = torch.empty_like(x)
    noise = torch.empty_like(x)
    for a, b in hl.tile([m, n]):
        out[a, b] = x[a, b] + hl.rand([a, b], seed)
    for a in hl.tile(m):
        for b in hl.tile(n):
            noise[a, b] = hl.rand([a, b], seed)
    return out, noise


@helion.kernel()
def cube(x: torch.Tensor, seed: int) -> torch.Tensor:
    out = torch.empty_like(x)
    for a, b, c in hl.tile(x.size()):
        out[a, b, c] = x[a, b, c] * hl.rand([a, b, c], seed)
    return out


@helion.kernel()
def inner(x: torch.Tensor) -> torch.Tensor:
    g, m, n = x.size()
    out = torch.zeros_like(x)
    for i in hl.grid(g):
        for a, b in hl.tile([m, n]):
            out[i, a, b] = x[i, a, b] * 2
        for j in hl.grid(3):
            out[i, 0, j] = out[i, 0, j] + j
    return out


@helion.kernel()
def upto(x: torch.Tensor, n: torch.Tensor, seed: int) -> torch.Tensor:
    out = torch.zeros_like(x)
    for a in hl.tile(n):
        out[a] = x[a] + hl.rand([a], seed)
    return out


@helion.kernel()
def between(x: torch.Tensor, bounds: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    begin = bounds[0].item()
    end = bounds[1].item()
    for a in hl.tile(begin, end):
        out[a] = x[a] + 1
    return out


def with_config(kernel: helion.Kernel, static: bool = True, **keys) -> helion.Kernel:
    return helion.kernel(kernel.fn, config=helion.Config(**keys), static_shapes=static)


PROGRAMS = [
    {"pid_type": "flat"},
    {"pid_type": "persistent_blocked"},
    {"pid_type": "persistent_blocked", "num_sm_multiplier": 4},
    {"pid_type": "persistent_interleaved", "num_sm_multiplier": 4, "range_num_stages": [2]},
    {"pid_type": "persistent_interleaved", "range_flattens": [True], "maxnreg": 128},
]


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("programs", PROGRAMS, ids=lambda p: "-".join(map(str, p.values())))
def test_several_loops(programs, static):
    x = torch.randn(37, 45, device=DEVICE)
    expected = with_config(two_loops, block_sizes=[64, 64, 64, 64])(x, 5)
    order = {"loop_orders": [[1, 0]], "l2_groupings": [2]}
    for more in ({}, order):
        kernel = with_config(two_loops, static, block_sizes=[16, 32, 8, 32], **programs, **more)
        got = kernel(x, 5)
        assert torch.equal(got[0], expected[0])
        assert torch.equal(got[1], expected[1])


@pytest.mark.parametrize("pid_type", ["flat", "xyz", "persistent_blocked"])
def test_orders_of_three_axes(pid_type):
    x = torch.randn(6, 9, 20, device=DEVICE)
    expected = with_config(cube, block_sizes=[8, 16, 32])(x, 3)
    for order in itertools.permutations(range(3)):
        keys = {"loop_orders": [list(order)], "pid_type": pid_type}
        if pid_type != "xyz":
            keys["l2_groupings"] = [2]
        assert torch.equal(with_config(cube, block_sizes=[2, 4, 16], **keys)(x, 3), expected)


RANGES = [
    {},
    {"loop_orders": [[1, 0]]},
    {"range_unroll_factors": [0, 2, 0, 1], "range_num_stages": [0, 2]},
    {"range_multi_buffers": [None, True, False], "range_flattens": [None, False]},
    {"static_ranges": [True]},
]


@pytest.mark.parametrize("keys", RANGES, ids=lambda k: "-".join(k) or "none")
def test_options_of_inner_loops(keys):
    x = torch.randn(3, 10, 20, device=DEVICE)
    expected = x * 2
    expected[:, 0, :3] += torch.arange(3, device=DEVICE)
    torch.testing.assert_close(with_config(inner, block_sizes=[4, 8], **keys)(x), expected)


@pytest.mark.parametrize("pid_type", ["persistent_blocked", "persistent_interleaved"])
@pytest.mark.parametrize("length", [0, 1, 37, 100])
def test_bounds_in_device_memory(length, pid_type):
    x = torch.randn(100, device=DEVICE)
    n = torch.tensor(length, device=DEVICE)
    got = with_config(upto, block_sizes=[16], pid_type=pid_type, num_sm_multiplier=2)(x, n, 3)
    whole = with_config(upto, block_sizes=[128], pid_type=pid_type)(x, torch.tensor(100).to(n), 3)
    assert torch.equal(got[:length], whole[:length])
    assert not got[length:].any()


def test_bounds_in_device_memory_need_persistent_programs():
    args = (torch.randn(100, device=DEVICE), torch.tensor(3, device=DEVICE), 3)
    assert upto.bind(args).config_spec.default_config()["pid_type"].startswith("persistent")
    with pytest.raises(exc.InvalidConfig, match="pid_type is one of"):
        with_config(upto, block_sizes=[16], pid_type="flat")(*args)


@pytest.mark.parametrize("bounds", [(10, 50), (0, 100), (50, 50), (50, 10)])
def test_bounds_read_by_the_host(bounds):
    x = torch.randn(100, device=DEVICE)
    got = with_config(between, block_sizes=[16])(x, torch.tensor(bounds, device=DEVICE))
    inside = torch.zeros(100, dtype=torch.bool, device=DEVICE)
    inside[bounds[0] : bounds[1]] = True
    assert torch.equal(got, torch.where(inside, x + 1, 0))


WRONG = [
    ({"num_sm_multiplier": 2}, "num_sm_multiplier needs a persistent pid_type"),
    ({"maxnreg": 64}, "maxnreg needs a persistent pid_type"),
    ({"pid_type": "xyz"}, "pid_type is one of"),
    ({"pid_type": "round"}, "pid_type is one of"),
    ({"loop_orders": [[0, 1], [0, 1]]}, "expected 1, got 2"),
    ({"loop_orders": [[0, 0]]}, "no permutation of 2 axes"),
    ({"l2_groupings": [3]}, "a power of two up to 64"),
    ({"range_num_stages": [0, 5]}, "an int from 0 to 4"),
    ({"range_unroll_factors": [0, 0, 0]}, "expected 2, got 3"),
    ({"range_flattens": ["yes"]}, "None, True or False"),
    ({"static_ranges": [True]}, "expected 0, got 1"),
    ({"num_warps": 3}, "a power of two up to 32"),
    ({"num_stages": 9}, "an int from 1 to 8"),
    ({"indexing": "magic"}, "one of 'pointer'"),
    ({"load_eviction_policies": ["first", "last"]}, "expected 1, got 2"),
    ({"block_size": 16}, "both `block_size` and `block_sizes`"),
    ({"colour": 1}, "Unsupported config keys"),
    ({"waves_per_eu": 1}, "Unsupported config keys"),
]


@pytest.mark.parametrize(("keys", "message"), WRONG, ids=lambda v: next(iter(v), ""))
def test_a_config_that_does_not_fit(keys, message):
    with pytest.raises(exc.InvalidConfig) as caught:
        with_config(two_loops, block_sizes=[16, 16, 16, 16], **keys)(
            torch.randn(70, 45, device=DEVICE), 1
        )
    assert message in str(caught.value)


@helion.kernel()
def bias(x: torch.Tensor, y: torch.Tensor, w: torch.Tensor, seed: int) -> torch.Tensor:
    out = torch.empty_like(x)
    for a, b in hl.tile(x.size()):
        noise = hl.rand([a, b], seed) + hl.rand([b], seed)[None, :]
        out[a, b] = torch.where(x[a, b] > 0, y[a, b], 0.0) + w[b][None, :] * noise
    return out


@helion.kernel()
def numbers(x: torch.Tensor, seed: int) -> torch.Tensor:
    out = torch.empty_like(x)
    for a, b in hl.tile(x.size()):
        out[a, b] = hl.rand([a, b], seed)
    return out


@helion.kernel()
def with_begins(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for a, b in hl.tile(x.size()):
        out[a, b] = x[a, b] + a.begin
    return out


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("order", [[0, 1], [1, 0]], ids=str)
@pytest.mark.parametrize("pid_type", ["flat", "persistent_interleaved"])
def test_flattened(pid_type, order, static):
    x, w = torch.randn(37, 45, device=DEVICE), torch.randn(45, device=DEVICE)
    y = torch.randn(45, 37, device=DEVICE).t()
    plain = with_config(bias, static, block_sizes=[64, 64])
    keys = {"block_sizes": [4, 32], "loop_orders": [order], "pid_type": pid_type}
    kernel = with_config(bias, static, flatten_loops=[True], **keys)
    # A GPU's compiler chooses where `a + w * b` is rounded once: the last bit of a term differs.
    torch.testing.assert_close(kernel(x, y, w, 5), plain(x, y, w, 5), rtol=1e-6, atol=1e-6)
    assert "flat_index" in kernel.bind((x, y, w, 5)).to_triton_code(kernel.configs[0])


@pytest.mark.parametrize("order", [[0, 1], [1, 0]], ids=str)
@pytest.mark.parametrize("pid_type", ["flat", "persistent_interleaved"])
def test_flattened_random_numbers(pid_type, order):
    x = torch.zeros(37, 45, device=DEVICE)
    keys = {"loop_orders": [order], "pid_type": pid_type, "flatten_loops": [True]}
    kernel = with_config(numbers, block_sizes=[4, 32], **keys)
    assert torch.equal(kernel(x, 5), with_config(numbers, block_sizes=[64, 64])(x, 5))


def test_flattened_contiguous_memory_is_one_row():
    x, y = torch.randn(37, 45, device=DEVICE), torch.randn(37, 45, device=DEVICE)
    kernel = with_config(bias, block_sizes=[4, 32], flatten_loops=[True])
    code = kernel.bind((x, y, x[0], 1)).to_triton_code(kernel.configs[0])
    assert "tl.load(x + flat_index, flat_mask, other=0)" in code
    assert "tl.load(w + b_index, flat_mask, other=0)" in code


def test_what_cannot_be_flattened_is_left_as_it_is():
    x = torch.randn(37, 45, device=DEVICE)
    kernel = with_config(with_begins, block_sizes=[4, 32], flatten_loops=[True])
    begins = torch.arange(37, device=DEVICE)[:, None] // 4 * 4
    assert torch.equal(kernel(x), x + begins)
    assert "flat_index" not in kernel.bind((x,)).to_triton_code(kernel.configs[0])
