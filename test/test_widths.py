"""64-bit indices where a tensor that the host part makes is too large for 32 bits."""

from __future__ import annotations

import pytest
import torch

import helion
import helion.language as hl
from helion.runtime.widths import needs_wide_index


@helion.kernel(config=helion.Config(block_sizes=[4, 4]))
def outer(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty([x.size(0), y.size(0)], device=x.device)
    for a, b in hl.tile(out.size()):
        out[a, b] = x[a][:, None] * y[b][None, :]
    return out


@helion.kernel(config=helion.Config(block_sizes=[4, 4]))
def like(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    total = x.new_empty([x.size(0)])
    for a, b in hl.tile(x.size()):
        out[a, b] = x[a, b]
        total[a] = x[a, b].sum(-1)
    return out


def kernel(function: helion.Kernel, static: bool, **settings) -> helion.Kernel:
    return helion.kernel(function.fn, config=function.configs[0], static_shapes=static, **settings)


# A tensor of a huge size that takes no memory.
DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
HUGE = torch.empty(1, device=DEVICE).expand(100_000)


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_a_huge_result_of_small_arguments(static):
    fresh = kernel(outer, static)
    x = torch.empty(5, device=DEVICE)
    assert fresh.bind((x, x)).index_dtype is torch.int32
    bound = fresh.bind((HUGE, HUGE))
    assert bound.index_dtype is torch.int64
    assert ".to(tl.int64)" in bound.show("triton") or "tl.cast(" in bound.show("triton")
    # In either order, each call finds its own.
    assert fresh.bind((x, x)).index_dtype is torch.int32
    ones = torch.ones(5, 7, device=DEVICE)
    assert torch.equal(fresh(ones[:, 0], ones[0]), ones)


def test_the_author_may_say_otherwise():
    bound = kernel(outer, True, index_dtype=torch.int32).bind((HUGE, HUGE))
    assert bound.index_dtype is torch.int32


def test_what_is_no_larger_than_an_argument_needs_no_look():
    bound = kernel(like, False).bind((torch.empty(3, 5),))
    assert needs_wide_index(bound.program, ["x"]) is False
    assert not bound.constants


def test_what_the_arguments_tell():
    bound = kernel(outer, False).bind((torch.empty(3), torch.empty(5)))
    assert needs_wide_index(bound.program, ["x", "y"]) == "x.size(0) * y.size(0) > 2147483647"


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
def test_a_size_with_a_block_size_in_it_is_bounded(static):
    @helion.kernel(static_shapes=static, config=helion.Config(block_sizes=[4]))
    def partial(x: torch.Tensor) -> torch.Tensor:
        block = hl.register_block_size(x.size(0))
        out = x.new_empty([helion.cdiv(x.size(0), block), 40_000])
        for a in hl.tile(x.size(0), block_size=block):
            out[a.id, :] = hl.zeros([40_000]) + x[a].sum()
        return out

    assert partial.bind((torch.empty(5),)).index_dtype is torch.int32
    assert partial.bind((HUGE,)).index_dtype is torch.int64
