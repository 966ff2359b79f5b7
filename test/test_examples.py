"""Every example runs and checks itself; low-memory dropout keeps what its docstring promises."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import philox
import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from examples.low_mem_dropout import (
    LowMemDropout,
    LowMemDropoutFunction,
    dropout,
    low_mem_dropout,
    low_mem_dropout_bwd,
    low_mem_dropout_tritonbench,
)
from helion._testing import DEVICE, check_example

EXAMPLES = sorted(p.stem for p in Path(__file__).parent.parent.joinpath("examples").glob("*.py"))
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
# Draws exactly 0.0 at index 27; the other draws the largest value below 1 at index 38.
SEED_OF_ZERO, SEED_OF_LARGEST = 65551043, 63156050


def kept(p: float, seed: int, *shape: int) -> torch.Tensor:
    """The mask by the contract: element i of the flattened tensor is kept where draw i >= p."""
    mask = philox.rand_full(seed, *shape) >= np.float32(p)
    return torch.from_numpy(np.asarray(mask)).to(DEVICE)


def ones(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.ones(shape, dtype=dtype, device=DEVICE)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_checks_itself(name, capsys):
    importlib.import_module(f"examples.{name}").main()
    assert "ok  " in capsys.readouterr().out


# -- kernels in small blocks: loops of several steps, ragged at their ends ------------------------


def normal(*shape: int, dtype: torch.dtype) -> torch.Tensor:
    return torch.randn(shape, device=DEVICE).to(dtype)


def matrix(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    return (normal(5, 100, dtype=dtype),)


def with_masked_start(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    return (torch.where(torch.arange(100, device=DEVICE) < 70, -torch.inf, *matrix(dtype)),)


def two_matrices(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    return *matrix(dtype), *matrix(dtype)


def with_columns(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    return *matrix(dtype), normal(100, dtype=dtype), normal(100, dtype=dtype)


def with_labels(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    return *matrix(dtype), torch.randint(100, (5,), device=DEVICE)


def distributions(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    q, p = two_matrices(torch.float32)
    return q.log_softmax(-1).to(dtype), p.softmax(-1).to(dtype)


def row_sums(x: torch.Tensor) -> torch.Tensor:
    return x.sum(-1)


def softmax(x: torch.Tensor) -> torch.Tensor:
    return x.softmax(-1)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> Any:
    var, mean = torch.var_mean(x, -1, correction=0)
    return F.layer_norm(x, weight.shape, weight, bias), mean, torch.rsqrt(var + 1e-5)


def layer_norm_alone(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return F.layer_norm(x, weight.shape, weight, bias)


def rms_norm(x: torch.Tensor, weight: torch.Tensor) -> Any:
    return F.rms_norm(x, weight.shape, weight, 1e-5), torch.rsqrt(x.square().mean(-1) + 1e-5)


def gradients(function: Callable[..., Any]) -> Callable[..., Any]:
    def backward(grad_out: torch.Tensor, *args: torch.Tensor) -> Any:
        args = tuple(a.clone().requires_grad_() for a in args)
        return torch.autograd.grad(function(*args), args, grad_out)

    return backward


def layer_norm_bwd(
    grad_out: torch.Tensor, x: torch.Tensor, mean: Any, rstd: Any, weight: torch.Tensor, _: bool
) -> Any:
    return gradients(layer_norm_alone)(grad_out, x, weight, torch.zeros_like(weight))


def rms_norm_bwd(grad_out: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, _: Any) -> Any:
    return gradients(lambda x, w: F.rms_norm(x, w.shape, w, 1e-5))(grad_out, x, weight)


def layer_norm_saved(dtype: torch.dtype) -> tuple[Any, ...]:
    grad_out, x = two_matrices(dtype)
    var, mean = torch.var_mean(x.float(), -1, correction=0)
    return grad_out, x, mean, torch.rsqrt(var + 1e-5), normal(100, dtype=dtype), True


def rms_norm_saved(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    grad_out, x = two_matrices(dtype)
    rrms = torch.rsqrt(x.float().square().mean(-1) + 1e-5)
    return grad_out, x, normal(100, dtype=dtype), rrms


ROWS, ROLLED = {"block_sizes": [2]}, {"block_sizes": [2], "reduction_loops": [32]}
# A registered block size counts where it is registered: before the loop over rows.
CHUNKS = {"block_sizes": [32, 2]}
FLAT = {"block_sizes": [64]}
# The kernel, its arguments, a config, and what torch says.
KERNELS: dict[str, tuple[str, Any, dict[str, Any], Any]] = {
    "add": ("add", two_matrices, {"block_sizes": [4, 16]}, torch.add),
    "add, flattened": (
        "add",
        two_matrices,
        {"block_sizes": [4, 16], "flatten_loops": [True]},
        torch.add,
    ),
    "exp": ("exp_fwd", matrix, {"block_sizes": [4, 16]}, torch.exp),
    "sum": ("sum_kernel", matrix, ROWS, row_sums),
    "long_sum": ("long_sum", matrix, ROLLED, row_sums),
    "long_sum, tiled": ("long_sum_tiled", matrix, CHUNKS, row_sums),
    "long_sum, lanes": ("long_sum_lanes", matrix, CHUNKS, row_sums),
    "softmax": ("softmax", matrix, ROWS, softmax),
    "softmax, rolled": ("softmax", with_masked_start, ROLLED, softmax),
    "softmax, two passes": ("softmax_two_pass", with_masked_start, CHUNKS, softmax),
    "layer_norm": ("layer_norm_fwd", with_columns, ROWS, layer_norm),
    "layer_norm, rolled": ("layer_norm_fwd", with_columns, ROLLED, layer_norm),
    "layer_norm, backward": (
        "layer_norm_bwd",
        layer_norm_saved,
        {"block_sizes": [4, 2]},
        layer_norm_bwd,
    ),
    "rms_norm": ("rms_norm_fwd", lambda dtype: with_columns(dtype)[:2], ROLLED, rms_norm),
    "rms_norm, backward": ("rms_norm_bwd", rms_norm_saved, {"block_sizes": [4, 2]}, rms_norm_bwd),
    "welford": ("welford", with_columns, CHUNKS, layer_norm_alone),
    "cross_entropy": ("cross_entropy", with_labels, ROWS, F.cross_entropy),
    "cross_entropy, rolled": ("cross_entropy", with_labels, ROLLED, F.cross_entropy),
    "kl_div": (
        "kl_div",
        distributions,
        {"block_sizes": [2, 32]},
        functools.partial(F.kl_div, reduction="batchmean"),
    ),
    "geglu": ("geglu_fwd", two_matrices, FLAT, lambda a, b: F.gelu(a, approximate="tanh") * b),
    "swiglu": ("swiglu_fwd", two_matrices, FLAT, lambda a, b: F.silu(a) * b),
    "concatenate": (
        "concatenate",
        two_matrices,
        {"block_sizes": [4, 64]},
        lambda x, y: torch.cat([x, y], 1),
    ),
    "embedding": (
        "embedding",
        lambda dtype: (torch.randint(5, (3, 7), device=DEVICE), *matrix(dtype)),
        {"block_sizes": [4, 64]},
        F.embedding,
    ),
}


@pytest.mark.parametrize(
    ("dtype", "static_shapes"), [(torch.float32, True), (torch.bfloat16, False)], ids=str
)
@pytest.mark.parametrize("case", KERNELS)
def test_kernel_in_small_blocks(case, dtype, static_shapes):
    kernel, make, config, function = KERNELS[case]
    args = make(dtype)
    wide = [
        a.double() if isinstance(a, torch.Tensor) and a.is_floating_point() else a for a in args
    ]
    # A few roundings of numbers up to a few dozen; those in between are of float32.
    eps = torch.finfo(dtype).eps
    check_example(
        case.partition(",")[0],
        args,
        function(*wide),
        kernel,
        # Sizes that broadcast are not known to be equal when shapes are dynamic.
        static_shapes=static_shapes or kernel == "add",
        rtol=4 * eps,
        atol=32 * torch.finfo(torch.float32).eps + eps * (dtype is torch.bfloat16),
        **config,
    )


# -- low-memory dropout: the mask ----------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1, 123, -1, 2**31, 2**32 + 1, 2**63 - 1])
def test_backward_drops_exactly_what_forward_dropped(seed):
    x = torch.randn(10007, device=DEVICE, requires_grad=True)
    y = LowMemDropoutFunction.apply(0.3, x, seed)
    (grad,) = torch.autograd.grad(y, x, torch.full_like(x, 3.0))
    mask = kept(0.3, seed, 10007)
    assert torch.equal(y != 0, mask)
    assert torch.equal(grad != 0, mask)
    assert torch.equal(low_mem_dropout_bwd(0.3, torch.full_like(x, 3.0), seed), grad)


def test_another_seed_drops_others():
    masks = [low_mem_dropout(0.5, ones(10000), seed) != 0 for seed in (7, 8, 7 + 2**32)]
    for i, j in [(0, 1), (0, 2), (1, 2)]:
        # Independent masks differ in half of the elements; 5 standard deviations are 250.
        assert abs(int((masks[i] != masks[j]).sum()) - 5000) < 250


@pytest.mark.parametrize("shape", [(), (1,), (0,), (3, 0, 5), (7,), (129, 33), (3, 5, 7, 11)])
def test_mask_counts_elements_in_logical_order(shape):
    x = ones(*shape)
    assert torch.equal(low_mem_dropout(0.5, x, 11) != 0, kept(0.5, 11, *shape))


VIEWS = {
    "transposed": lambda x: x.transpose(0, 1),
    "every other": lambda x: x[:, ::2],
    "shifted": lambda x: x[1:, 3:],
    "expanded": lambda x: x[:, :1].expand(-1, 50),
    "permuted": lambda x: x.reshape(5, 8, -1).permute(2, 0, 1),
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_strides_do_not_matter(view):
    x = view(torch.randn(40, 64, device=DEVICE)).requires_grad_()
    y = dropout(x, 0.5, seed=11)
    (grad,) = torch.autograd.grad(y, x, view(ones(40, 64)))
    plain = x.detach().contiguous()
    assert torch.equal(y, low_mem_dropout(0.5, plain, 11))
    assert torch.equal(grad, low_mem_dropout(0.5, torch.ones_like(plain), 11))


def test_seed_tensor_equals_int():
    x = torch.randn(1000, device=DEVICE)
    for seed in (5, -3, 2**40 + 1):
        tensor = torch.tensor(seed, device=DEVICE)
        for kernel in (low_mem_dropout, low_mem_dropout_bwd):
            assert torch.equal(kernel(0.5, x, tensor), kernel(0.5, x, seed))


# -- low-memory dropout: the values --------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_kept_elements_are_scaled(dtype, p):
    x = torch.randn(5000, dtype=torch.float64, device=DEVICE).to(dtype)
    y = low_mem_dropout(p, x, 3)
    expected = torch.where(kept(p, 3, 5000), x.double() / (1 - p), 0)
    assert y.dtype is dtype
    # The scale and the product are each rounded once, to float32 for the narrow types.
    tolerance = {"rtol": 2 * torch.finfo(dtype).eps, "atol": 1e-6 if dtype is torch.half else 0}
    torch.testing.assert_close(y.double(), expected, **tolerance)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("p", [0, 0.0, 1, 1.0])
def test_none_or_all_dropped_at_the_ends(dtype, p):
    seeds = (SEED_OF_ZERO, SEED_OF_LARGEST)  # 0.0 >= 0 is kept, 1 - 2**-24 >= 1 is not
    x = torch.randn(100, device=DEVICE).to(dtype).requires_grad_()
    for seed in seeds:
        y = dropout(x, p, seed=seed)
        (grad,) = torch.autograd.grad(y, x, torch.ones_like(x))
        assert torch.equal(y, x if p == 0 else torch.zeros_like(x))
        assert torch.equal(grad, torch.full_like(x, 1 - p))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_dropped_is_zero_whatever_was_there(dtype, bad):
    x = torch.full((1000,), bad, dtype=dtype, device=DEVICE)
    mask = kept(0.5, 3, 1000)
    for kernel in (low_mem_dropout, low_mem_dropout_bwd):
        assert torch.equal(kernel(0.5, x, 3)[~mask], torch.zeros_like(x)[~mask])
        assert torch.equal(kernel(0.5, x, 3)[mask].nan_to_num(), x[mask].nan_to_num())
        assert torch.equal(kernel(1.0, x, 3), torch.zeros_like(x))


def test_gradient():
    x = torch.randn(6, 5, dtype=torch.float64, device=DEVICE, requires_grad=True)
    function = functools.partial(dropout, p=0.4, seed=9)
    assert torch.autograd.gradcheck(function, x)
    assert torch.autograd.gradgradcheck(function, x)


# -- low-memory dropout: the module --------------------------------------------------------------


def test_no_tensor_is_saved_but_the_seed():
    saved: list[torch.Tensor] = []
    x = torch.randn(4096, device=DEVICE, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: saved.append(t) or t, lambda t: t):
        LowMemDropout(0.5)(x)
        assert [(t.shape, t.dtype) for t in saved] == [((), torch.int64)]
        saved.clear()
        dropout(x, 0.5, seed=7)
        assert not saved


def test_module_draws_a_seed_for_each_call():
    x = ones(1000)
    module = LowMemDropout(0.5)
    torch.manual_seed(1)
    first, second = module(x), module(x)
    assert not torch.equal(first, second)
    torch.manual_seed(1)
    assert torch.equal(module(x), first)
    assert torch.initial_seed() == 1


@pytest.mark.parametrize("where", ["cpu", str(DEVICE)])
def test_own_generator_leaves_torchs_alone(where):
    x = ones(1000)
    states = [torch.get_rng_state(), *torch.cuda.get_rng_state_all()]
    masks = [
        LowMemDropout(0.5, torch.Generator(where).manual_seed(seed))(x) != 0 for seed in (5, 5, 6)
    ]
    dropout(x, 0.5, seed=7)
    for before, after in zip(
        states, [torch.get_rng_state(), *torch.cuda.get_rng_state_all()], strict=True
    ):
        assert torch.equal(before, after)
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


def test_module_in_evaluation_changes_nothing():
    x = torch.randn(100, device=DEVICE)
    assert LowMemDropout(0.5).eval()(x) is x


def test_activation_checkpointing_draws_the_same_mask():
    x = torch.randn(1000, device=DEVICE, requires_grad=True)
    y = checkpoint(LowMemDropout(0.5), x, use_reentrant=False)
    assert y is not None
    (grad,) = torch.autograd.grad(y.sum(), x)
    assert torch.equal(grad != 0, y != 0)


def test_a_seed_tensor_changed_before_backward_is_an_error():
    x = ones(10).requires_grad_()
    seed = torch.tensor(7, device=DEVICE)
    y = dropout(x, 0.5, seed=seed)
    seed += 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("p", [-0.1, 1.1, float("nan")])
def test_probability_out_of_range(p):
    with pytest.raises(ValueError, match="between 0 and 1"):
        LowMemDropout(p)
    with pytest.raises(ValueError, match="between 0 and 1"):
        dropout(ones(3), p)


def test_integers_are_refused():
    with pytest.raises(TypeError, match=r"floating-point tensor, got torch\.int64"):
        dropout(torch.arange(3, device=DEVICE))


@pytest.mark.parametrize("needs_grad", [False, True])
def test_benchmark_wrapper(needs_grad):
    x = torch.randn(1000, device=DEVICE, requires_grad=needs_grad)
    y = low_mem_dropout_tritonbench(None, 0.25, x)()
    assert torch.equal(y, low_mem_dropout(0.25, x.detach(), 123))
    assert y.requires_grad == needs_grad
