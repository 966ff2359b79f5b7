"""Non-contiguous tensors with dynamic shapes: the host part's tensors have their real strides."""

from __future__ import annotations

import pytest
import torch

import helion
import helion.language as hl

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")


def tensor(*shape: int) -> torch.Tensor:
    return torch.arange(torch.Size(shape).numel(), dtype=torch.float32, device=DEVICE).view(shape)


@helion.kernel(static_shapes=False, ignore_warnings=[helion.exc.TensorOperationInWrapper])
def through_like(x):
    out = torch.empty_like(x)
    for tile in hl.tile(x.size()):
        out[tile] = x[tile] + 1
    return out


@helion.kernel(static_shapes=False, ignore_warnings=[helion.exc.TensorOperationInWrapper])
def through_reshape(x):
    flat = x.reshape(-1)
    out = torch.empty_like(flat)
    for tile in hl.tile(flat.size(0)):
        out[tile] = flat[tile] + 1
    return out.view(x.shape)


@helion.kernel(static_shapes=False, ignore_warnings=[helion.exc.TensorOperationInWrapper])
def through_flatten_and_view(x):
    flat = x.flatten()[:, None].mT
    out = torch.empty(flat.shape, device=x.device)
    for tile in hl.tile(flat.size()):
        out[tile] = flat[tile] + 1
    return out.view(x.shape)


@helion.kernel(static_shapes=False, ignore_warnings=[helion.exc.TensorOperationInWrapper])
def through_arithmetic(x):
    halves = [x * 0.5, x * 0.5]
    out = x.clone()
    for tile in hl.tile(x.size()):
        out[tile] = halves[0][tile] + halves[1][tile] + 1
    return out


@helion.kernel(static_shapes=False)
def through_contiguous(x):
    flat = x.contiguous().view(-1)
    out = torch.empty_like(flat)
    for tile in hl.tile(flat.size(0)):
        out[tile] = flat[tile] + 1
    return out.view(x.shape)


KERNELS = [
    through_like,
    through_reshape,
    through_flatten_and_view,
    through_arithmetic,
    through_contiguous,
]
LAYOUTS = {
    "contiguous": tensor(6, 8),
    "transposed": tensor(6, 8).t(),
    "a view when flat": tensor(6, 8)[:, ::2],
    "a copy when flat": tensor(6, 8)[:, 1:5],
    "rows apart": tensor(6, 8)[::2],
    "expanded": tensor(6, 1).expand(6, 8),
    "permuted": tensor(3, 4, 5).permute(2, 0, 1),
    "channels last": tensor(2, 3, 4, 5).to(memory_format=torch.channels_last),
}


@pytest.mark.parametrize("x", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.name)
def test_values_do_not_depend_on_strides(kernel, x):
    assert torch.equal(kernel(x), x + 1)


def test_strides_are_passed_only_where_torch_had_to_guess():
    code = through_reshape.bind((tensor(6, 8)[:, ::2],)).to_triton_code()
    assert "flat + tile_index * flat_stride_0" in code
    code = through_reshape.bind((tensor(6, 8),)).to_triton_code()
    assert "flat + tile_index," in code
    code = through_contiguous.bind((tensor(6, 8)[:, ::2],)).to_triton_code()
    assert "flat + tile_index," in code


@helion.kernel(static_shapes=False)
def rebinds(x, y):
    x, y = x.t(), y[1:]
    out = torch.empty([x.size(0), x.size(1)], device=x.device)
    for tile in hl.tile(x.size()):
        out[tile] = x[tile] + y[tile]
    return out


def test_an_argument_bound_again_keeps_its_sizes():
    x, y = tensor(5, 7), tensor(8, 5)
    assert torch.equal(rebinds(x, y), x.t() + y[1:])
