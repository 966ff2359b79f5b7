"""`indexing`, eviction and caching: how a tile is read and written, never what."""

from __future__ import annotations

import pytest
import torch

import helion
import helion.language as hl
from helion import _compat

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
KINDS = ["pointer", "block_ptr", "tensor_descriptor"]
THERE = _compat.block_indexing()  # the others are left to pointers


@helion.kernel()
def scaled(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for a, b in hl.tile(x.size()):
        out[a, b] = x[a, b] * 2 + y[a, b]
    return out


@helion.kernel()
def planes(x: torch.Tensor) -> torch.Tensor:
    g, m, _ = x.size()
    out = torch.empty_like(x)
    for i in hl.grid(g):
        for a in hl.tile(m):
            out[i, a, :] = torch.softmax(x[i, a, :], -1)
    return out


@helion.kernel()
def shifted(x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    out = torch.zeros_like(x)
    for a, b in hl.tile(x.size()):
        out[a, b] = hl.load(x, [a, b], extra_mask=(a.index < 9)[:, None]) + x[a + 1, b]
        out[a, b] += x[index[a], b]
    return out


@helion.kernel()
def first_half(x: torch.Tensor) -> torch.Tensor:
    m, n = x.size()
    out = torch.zeros_like(x)
    for a, b in hl.tile([m // 2, n]):
        out[a, b] = x[a, b] + 1
    return out


def with_config(kernel: helion.Kernel, static: bool = True, **keys) -> helion.Kernel:
    return helion.kernel(kernel.fn, config=helion.Config(**keys), static_shapes=static)


def code_of(kernel: helion.Kernel, *args) -> str:
    return kernel.bind(args).to_triton_code(kernel.configs[0])


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int32], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_ragged_tiles(kind, dtype, static):
    x = torch.randint(-9, 9, (50, 72), device=DEVICE).to(dtype)
    y = torch.randint(-9, 9, (50, 72), device=DEVICE).to(dtype)
    got = with_config(scaled, static, block_sizes=[16, 32], indexing=kind)(x, y)
    assert torch.equal(got, x * 2 + y)


def test_one_kind_for_each_access():
    x, y = torch.randn(2, 50, 64, device=DEVICE)
    kernel = with_config(scaled, block_sizes=[16, 32], indexing=KINDS)
    assert torch.equal(kernel(x, y), x * 2 + y)
    code = code_of(kernel, x, y)
    assert code.count("tl.make_block_ptr(y") == ("block_ptr" in THERE)
    if "tensor_descriptor" in THERE:
        assert code.count("out_desc.store([a_begin, b_begin]") == 1
        assert "TensorDescriptor(out, [50, 64], [64, 1], [_BLOCK_SIZE_0, _BLOCK_SIZE_1])" in code


@pytest.mark.parametrize("kind", KINDS)
def test_scalars_and_whole_axes(kind):
    x = torch.randn(3, 20, 64, device=DEVICE)
    kernel = with_config(planes, block_sizes=[8], indexing=kind)
    torch.testing.assert_close(kernel(x), torch.softmax(x, -1))
    assert ("tl.load(x +" in code_of(kernel, x)) == (kind not in THERE)


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_block_cannot_do_is_left_to_pointers(kind):
    x = torch.randn(20, 64, device=DEVICE)
    index = torch.randint(0, 20, (20,), device=DEVICE)
    below = torch.cat([x[1:], torch.zeros_like(x[:1])])
    rows = torch.arange(20, device=DEVICE)[:, None]
    expected = torch.where(rows < 9, x, 0) + below + x[index]
    got = with_config(shifted, block_sizes=[8, 32], indexing=kind)(x, index)
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_loop_over_a_part_does_not_touch_the_rest(kind):
    x = torch.randn(50, 64, device=DEVICE)
    got = with_config(first_half, block_sizes=[16, 32], indexing=kind)(x)
    assert torch.equal(got[:25], x[:25] + 1)
    assert not got[25:].any()


@pytest.mark.parametrize("kind", KINDS)
def test_other_strides(kind):
    x = torch.randn(64, 50, device=DEVICE).t()
    y = torch.randn(50, 128, device=DEVICE)[:, ::2]
    assert torch.equal(with_config(scaled, block_sizes=[16, 32], indexing=kind)(x, y), x * 2 + y)


CACHES = {
    "load_eviction_policies": (["first", "last"], "eviction_policy='evict_first'"),
    "load_cache_modifiers": ([".cg"], "cache_modifier='.cg'"),
    "store_cache_modifiers": ([".wt"], "cache_modifier='.wt'"),
}


@pytest.mark.parametrize("key", CACHES)
def test_caches(key):
    value, text = CACHES[key]
    x, y = torch.randn(2, 50, 64, device=DEVICE)
    kernel = with_config(scaled, block_sizes=[16, 32], **{key: value})
    assert torch.equal(kernel(x, y), x * 2 + y)
    assert code_of(kernel, x, y).count(text) == 1
