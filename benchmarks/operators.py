"""What `run.py` compares: for each example, its inputs, its rivals, and what a right result is."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils import _pytree as pytree

from benchmarks import rivals
from benchmarks.measure import DEVICE, ON_GPU
from examples.add import add
from examples.attention import attention, torch_attention
from examples.attention_dropout import attention_dropout, dropped_by_torch
from examples.bmm import bmm
from examples.broadcast_matmul import broadcast_matmul
from examples.concatenate import concatenate, torch_concatenate
from examples.cross_entropy import cross_entropy
from examples.dropout_residual_layernorm import (
    dropout_residual_layernorm,
    torch_dropout_residual_layernorm,
)
from examples.embedding import embedding
from examples.exp import exp
from examples.fp8_gemm import fp8_gemm, torch_fp8_gemm
from examples.fp8_gemm import operands as fp8_operands
from examples.geglu import geglu, torch_geglu
from examples.grouped_gemm import KERNELS as GROUPED_GEMMS
from examples.grouped_gemm import operands as grouped_operands
from examples.grouped_gemm import torch_grouped_gemm
from examples.gumbel_sampling import gumbel_sampling, requests, torch_gumbel_sampling
from examples.kl_div import kl_div, torch_kl_div
from examples.layer_norm import layer_norm, torch_layer_norm
from examples.long_sum import KERNELS as LONG_SUMS
from examples.low_mem_dropout import low_mem_dropout_tritonbench
from examples.matmul import MatMul
from examples.matmul_layernorm import matmul_layernorm, torch_matmul_layernorm
from examples.matmul_split_k import matmul_split_k, torch_matmul_bias
from examples.monte_carlo import Call as Option
from examples.monte_carlo import closed_form, payoff_sums, simulated, torch_payoff_mean
from examples.noisy_linear import noisy_linear, torch_noisy_linear
from examples.random_projection import random_projection, torch_random_projection
from examples.rms_norm import rms_norm, torch_rms_norm
from examples.sharded_dropout import sharded_dropout
from examples.softmax import KERNELS as SOFTMAXES
from examples.stochastic_rounding import fault as rounding_fault
from examples.stochastic_rounding import stochastic_rounding, torch_stochastic_rounding
from examples.sum import sum_kernel
from examples.swiglu import swiglu, torch_swiglu
from examples.welford import welford
from helion.random import randn

Function = Callable[..., torch.Tensor]
Call = Callable[[], torch.Tensor]
# Takes the arguments of `Operator.inputs`, and gives the call to time.
Implementation = Callable[..., Call]


@dataclasses.dataclass(frozen=True)
class Operator:
    """One example and its rivals.

    Attributes:
        example: the name of the example.
        sizes: the sizes to run, on a GPU.
        small_sizes: the sizes to run without one.
        inputs: the arguments for a size and a dtype; gradients are asked of those that are
            floating-point tensors.
        implementations: the first is the baseline.
        fault: what is wrong with an implementation, given it and arguments that need gradients;
            None if nothing is.
        moved: the bytes that a call reads and writes at least, from its arguments.
        flops: the arithmetic of a call, from its arguments; None if memory alone limits it.
        agreement: what `fault` checks, for the reader.
    """

    example: str
    sizes: Sequence[int]
    small_sizes: Sequence[int]
    inputs: Callable[[int, torch.dtype], tuple[Any, ...]]
    implementations: Mapping[str, Implementation]
    fault: Callable[[Implementation, tuple[Any, ...]], str | None]
    moved: Callable[..., int]
    agreement: str
    flops: Callable[..., int] | None = None

    @property
    def baseline(self) -> str:
        """The implementation that the others are compared with."""
        return next(iter(self.implementations))


# -- low-memory dropout ----------------------------------------------------------------------------

DROPOUT_P = 0.25


def dropout_inputs(size: int | tuple[int, ...], dtype: torch.dtype) -> tuple[float, torch.Tensor]:
    """The probability, and a tensor without zeros, so that an element that is 0 was dropped."""
    x = torch.randn(size, device=DEVICE).to(dtype)
    return DROPOUT_P, torch.where(x == 0, 1, x)


def dropout_fault(implementation: Implementation, args: tuple[Any, ...]) -> str | None:
    """Masks of two libraries differ, so each is checked for itself."""
    p, x = args
    y = implementation(p, x)()
    kept = y != 0
    if not scaled(y, x.detach(), kept, p):
        return "an element that is kept is not x / (1 - p)"
    if y.requires_grad:
        (grad,) = torch.autograd.grad(y, x, torch.ones_like(y))
        if not torch.equal(grad != 0, kept):
            return "the backward pass drops other elements than the forward pass"
        if not scaled(grad, torch.ones_like(grad), kept, p):
            return "the gradient of an element that is kept is not 1 / (1 - p)"
    rate = 1 - kept.double().mean().item()
    # One seed in a million is further off, by the normal approximation and half a step.
    margin = 4.9 * math.sqrt(p * (1 - p) / x.numel()) + 0.5 / x.numel()
    if abs(rate - p) > margin:
        return f"the drop rate is {rate:.4%}, not within {margin:.4%} of {p:.2%}"
    return None


def scaled(got: torch.Tensor, whole: torch.Tensor, kept: torch.Tensor, p: float) -> bool:
    # The scale may be rounded to float32, then the product to the dtype.
    rounding = 2 * max(torch.finfo(got.dtype).eps, torch.finfo(torch.float32).eps)
    expected = torch.where(kept, whole.double() / (1 - p), 0)
    return torch.allclose(got.double(), expected, rtol=rounding, atol=1e-6)


def seeded_low_mem_dropout(p: float, x: torch.Tensor) -> Call:
    return low_mem_dropout_tritonbench(None, p, x)


LOW_MEM_DROPOUT = Operator(
    example="low_mem_dropout",
    sizes=[2**k for k in range(5, 20, 2)],
    small_sizes=[2**k for k in range(5, 14, 2)],
    inputs=dropout_inputs,
    implementations={
        "torch_dropout": rivals.torch_dropout,
        "triton_dropout": rivals.triton_dropout,
        "seeded_dropout": rivals.seeded_dropout,
        # Without a GPU it compiles C++, for longer than all else takes.
        **({"torch_compile_dropout": rivals.torch_compile_dropout} if ON_GPU else {}),
        "helion_low_mem_dropout": seeded_low_mem_dropout,
    },
    fault=dropout_fault,
    moved=lambda p, x: 2 * x.nbytes,
    agreement=(
        "masks of different libraries differ; right is: what is kept is x / (1 - p), the drop "
        "rate is within its margin of p, the backward pass drops what the forward pass dropped"
    ),
)

# -- functions that torch has too ------------------------------------------------------------------

ROWS = 4096 if ON_GPU else 8


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """`torch.compile` of a function, asked for at the first call: it imports for seconds."""
    compiled = functools.cache(lambda: torch.compile(function))
    return lambda *args: compiled()(*args)


def like_torch(
    example: str,
    kernel: Function | Mapping[str, Function],
    baseline: Function,
    inputs: Callable[[int, torch.dtype], tuple[Any, ...]],
    sizes: Sequence[int],
    small_sizes: Sequence[int] = (40, 129),
    moved: Callable[..., int] | None = None,
    flops: Callable[..., int] | None = None,
) -> Operator:
    """An example that computes what a torch function computes of the same arguments.

    Args:
        example: the name of the example.
        kernel: the example, or its several forms by name.
        baseline: the torch function; in float64 it also says what is right.
        inputs: the arguments for a size and a dtype.
        sizes: the sizes to run, on a GPU.
        small_sizes: the sizes to run without one.
        moved: the bytes of a call; those of all arguments and of the result if left out.
        flops: the arithmetic of a call.
    """
    forms = {example: kernel} if callable(kernel) else kernel
    compiled = {f"torch_compile_{example}": _compiled(baseline)} if ON_GPU else {}
    ours = {f"helion_{name}": form for name, form in forms.items()}
    functions = {f"torch_{example}": baseline, **compiled, **ours}
    return Operator(
        example=example,
        sizes=sizes,
        small_sizes=small_sizes,
        inputs=inputs,
        implementations={name: called(function) for name, function in functions.items()},
        fault=lambda implementation, args: unlike(implementation, baseline, args),
        moved=moved or (lambda *args: bytes_of(args) + bytes_of(baseline(*meta(args)))),
        agreement="results and gradients are those of torch in float64, but for rounding",
        flops=flops,
    )


def called(function: Function) -> Implementation:
    return lambda *args: lambda: function(*args)


def bytes_of(values: Any) -> int:
    return sum(t.nbytes for t in pytree.tree_leaves(values) if isinstance(t, torch.Tensor))


def meta(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments with tensors that hold nothing, to learn about a result without computing."""
    return pytree.tree_map_only(torch.Tensor, lambda t: t.detach().to("meta"), args)


def unlike(implementation: Implementation, baseline: Function, args: tuple[Any, ...]) -> str | None:
    """What differs from the baseline in float64: the result, or a gradient if there is one."""
    y = implementation(*args)()
    exact = pytree.tree_map_only(torch.Tensor, widened, args)
    expected = baseline(*exact)
    if (error := distance(y, expected)) > 1:
        return f"the result is off by {error:.1f} times the tolerance"
    if not y.requires_grad:
        return None
    grad = torch.randn_like(expected)
    leaves, exact_leaves = ([a for a in of if is_differentiable(a)] for of in (args, exact))
    found = torch.autograd.grad(y, leaves, grad.to(y.dtype))
    for i, pair in enumerate(
        zip(found, torch.autograd.grad(expected, exact_leaves, grad), strict=True)
    ):
        if (error := distance(*pair)) > 1:
            return f"the gradient of input {i} is off by {error:.1f} times the tolerance"
    return None


def widened(tensor: torch.Tensor) -> torch.Tensor:
    wide = tensor.detach().double() if tensor.is_floating_point() else tensor
    return wide.requires_grad_(tensor.requires_grad)


def is_differentiable(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


def distance(got: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest error, of which 1 is tolerated: some roundings of the largest element.

    Kernels compute in float32 at best; a sum of thousands of elements has some dozen roundings.
    """
    eps = max(torch.finfo(got.dtype).eps, torch.finfo(torch.float32).eps)
    error = (got.double() - expected).abs().max() / expected.abs().max().clamp(min=1e-30)
    return (error / (16 * eps)).item()


def tensors(*shapes: Any) -> Callable[[int, torch.dtype], tuple[torch.Tensor, ...]]:
    """Inputs of normal numbers; in a shape, None stands for the size."""

    def inputs(size: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
        filled = ([size if n is None else n for n in shape] for shape in shapes)
        return tuple(torch.randn(shape, device=DEVICE).to(dtype) for shape in filled)

    return inputs


def logits_and_labels(classes: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    (logits,) = tensors((ROWS, None))(classes, dtype)
    return logits, torch.randint(classes, (ROWS,), device=DEVICE)


def distributions(classes: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    q, p = torch.randn(2, ROWS, classes, device=DEVICE)
    return q.log_softmax(-1).to(dtype), p.softmax(-1).to(dtype)


def ids_and_table(width: int, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    rows = 4 * ROWS
    return torch.randint(rows, (ROWS,), device=DEVICE), *tensors((rows, None))(width, dtype)


POWERS = [2**k for k in range(10, 16)]
LONG = [2**k for k in range(16, 21)]
matrix, column = (ROWS, None), (None,)

LIKE_TORCH = [
    like_torch("add", add, torch.add, tensors(matrix, matrix), POWERS),
    like_torch("exp", exp, torch.exp, tensors(matrix), POWERS),
    like_torch("sum", sum_kernel, lambda x: x.sum(-1), tensors(matrix), POWERS),
    like_torch("long_sum", LONG_SUMS, lambda x: x.sum(-1), tensors((256, None)), LONG, (5000,)),
    like_torch("softmax", SOFTMAXES, lambda x: x.softmax(-1), tensors(matrix), POWERS),
    like_torch("layer_norm", layer_norm, torch_layer_norm, tensors(matrix, column, column), POWERS),
    like_torch("rms_norm", rms_norm, torch_rms_norm, tensors(matrix, column), POWERS),
    like_torch("welford", welford, torch_layer_norm, tensors(matrix, column, column), POWERS),
    like_torch("cross_entropy", cross_entropy, F.cross_entropy, logits_and_labels, POWERS),
    like_torch("kl_div", kl_div, torch_kl_div, distributions, POWERS),
    like_torch("geglu", geglu, torch_geglu, tensors(matrix, matrix), POWERS),
    like_torch("swiglu", swiglu, torch_swiglu, tensors(matrix, matrix), POWERS),
    like_torch(
        "embedding",
        embedding,
        F.embedding,
        ids_and_table,
        POWERS,
        moved=lambda ids, table: ids.nbytes + 2 * ids.numel() * table[0].nbytes,
    ),
    like_torch(
        "concatenate",
        concatenate,
        torch_concatenate,
        tensors(matrix, (ROWS, 1000)),
        POWERS,
    ),
]

# -- matrix products -------------------------------------------------------------------------------

BATCH = 16 if ON_GPU else 2
SQUARES = [2**k for k in range(9, 14)]
square, batched, heads = (None, None), (BATCH, None, None), (1, BATCH, None, 64)


def products(count: int) -> Callable[..., int]:
    """The flops of that many products [..., M, D] @ [..., D, M] of the first argument."""
    return lambda x, *_: count * 2 * x.numel() * x.size(-2)


PRODUCTS = [
    like_torch(
        "matmul", MatMul.apply, torch.matmul, tensors(square, square), SQUARES, flops=products(1)
    ),
    like_torch("bmm", bmm, torch.bmm, tensors(batched, batched), SQUARES, flops=products(1)),
    like_torch(
        "broadcast_matmul",
        broadcast_matmul,
        torch.matmul,
        tensors(batched, square),
        SQUARES,
        flops=lambda x, y: 2 * x.numel() * y.size(1),
    ),
    like_torch(
        "matmul_split_k",
        matmul_split_k,
        torch_matmul_bias,
        tensors((64, None), (None, 64), (64,)),
        LONG,
        (500,),
        flops=lambda x, y, bias: 2 * x.numel() * y.size(1),
    ),
    like_torch(
        "matmul_layernorm",
        matmul_layernorm,
        torch_matmul_layernorm,
        tensors(matrix, (None, 256), (256,), (256,)),
        SQUARES,
        flops=lambda x, y, *_: 2 * x.numel() * y.size(1),
    ),
    like_torch(
        "fp8_gemm",
        fp8_gemm,
        torch_fp8_gemm,
        lambda size, dtype: fp8_operands(size, size, size),
        SQUARES,
        (64,),
        flops=products(1),
    ),
    like_torch(
        "grouped_gemm",
        GROUPED_GEMMS,
        torch_grouped_gemm,
        lambda size, dtype: grouped_operands([size, size // 3, 0, 2 * size], size, size, dtype),
        SQUARES,
        moved=lambda x, y, offsets: 2 * x.nbytes + y.nbytes,
        flops=lambda x, y, offsets: 2 * x.numel() * y.size(-1),
    ),
    like_torch(
        "attention",
        attention,
        torch_attention,
        tensors(heads, heads, heads),
        SQUARES,
        flops=products(2),
    ),
    like_torch(
        "attention_dropout",
        lambda q, k, v: attention_dropout(q, k, v, 26 / 256, 7),
        lambda q, k, v: dropped_by_torch(q, k, v, 230 / 256, 7),
        tensors(heads, heads, heads),
        SQUARES[:4],
        moved=lambda q, k, v: 2 * q.nbytes + k.nbytes + v.nbytes,
        flops=products(2),
    ),
]


# -- other functions that draw: masks and numbers of two libraries differ --------------------------

SHARDED_DROPOUT = Operator(
    example="sharded_dropout",
    sizes=POWERS,
    small_sizes=(40, 129),
    inputs=lambda columns, dtype: dropout_inputs((ROWS, columns), dtype),
    implementations={
        "torch_dropout": rivals.torch_dropout,
        "helion_sharded_dropout": lambda p, x: lambda: sharded_dropout(x, p, rivals.SEED),
    },
    fault=dropout_fault,
    moved=LOW_MEM_DROPOUT.moved,
    agreement=LOW_MEM_DROPOUT.agreement,
)


def torch_normalized(*args: Any) -> torch.Tensor:
    return torch_dropout_residual_layernorm(*args)[0]


def normalized(*args: Any) -> torch.Tensor:
    return dropout_residual_layernorm(*args, seed=rivals.SEED)[0]


DROPOUT_RESIDUAL_LAYERNORM = Operator(
    example="dropout_residual_layernorm",
    sizes=POWERS,
    small_sizes=(40, 129),
    inputs=lambda n, dtype: (*tensors(matrix, matrix, column, column)(n, dtype), DROPOUT_P),
    implementations={
        "torch_dropout_residual_layernorm": called(torch_normalized),
        "helion_dropout_residual_layernorm": called(normalized),
    },
    fault=lambda implementation, args: unlike(implementation, torch_normalized, (*args[:4], 0.0)),
    moved=lambda x, *others: 4 * x.nbytes,
    agreement="results and gradients are those of torch in float64 where nothing is dropped",
)


def sampling_inputs(vocabulary: int, dtype: torch.dtype) -> tuple[Any, ...]:
    return *tensors((ROWS, None))(vocabulary, dtype), *requests(ROWS), 0


def sampling_fault(implementation: Implementation, args: tuple[Any, ...]) -> str | None:
    """Where one token is certain, all libraries sample it."""
    logits, *others = args
    certain = torch.randint(logits.size(1), (logits.size(0),), device=DEVICE)
    peaked = logits.detach().scatter(1, certain[:, None], 1000)
    if not torch.equal(implementation(peaked, *others)(), certain):
        return "a token of probability 1 is not sampled"
    return None


GUMBEL_SAMPLING = Operator(
    example="gumbel_sampling",
    sizes=[*POWERS, 128256],
    small_sizes=(40, 129),
    inputs=sampling_inputs,
    implementations={
        "torch_gumbel_sampling": called(torch_gumbel_sampling),
        "helion_gumbel_sampling": called(gumbel_sampling),
    },
    fault=sampling_fault,
    moved=lambda logits, *others: logits.nbytes,
    agreement="samples of libraries differ; right is: a token of probability 1 is sampled",
)

STOCHASTIC_ROUNDING = Operator(
    example="stochastic_rounding",
    sizes=POWERS,
    small_sizes=(40, 129),
    # From float32 whatever the dtype that is asked for.
    inputs=lambda columns, dtype: (torch.randn(ROWS, columns, device=DEVICE), rivals.SEED),
    implementations={
        "torch_stochastic_rounding": called(torch_stochastic_rounding),
        "helion_stochastic_rounding": called(stochastic_rounding),
    },
    fault=lambda implementation, args: rounding_fault(
        implementation(args[0].detach(), args[1])(), args[0].detach()
    ),
    moved=lambda x, seed: 6 * x.numel(),
    agreement="a result is one of the two neighbours, and the mean error is near 0",
)


def payoff_mean(option: Option, paths: int) -> torch.Tensor:
    args = (option.strike, option.drift, option.spread, rivals.SEED, DEVICE)
    return payoff_sums(paths, option.spot, *args)[0].sum() / paths


def payoff_fault(implementation: Implementation, args: tuple[Any, ...]) -> str | None:
    option, paths = args
    error = implementation(*args)().item() * option.discount - closed_form(option)
    # One seed in a million is further off.
    margin = 4.9 * simulated(option, paths, rivals.SEED)[1]
    return None if abs(error) < margin else f"the price is off by {error:.3f}, over {margin:.3f}"


MONTE_CARLO = Operator(
    example="monte_carlo",
    sizes=[2**k for k in range(20, 29, 2)],
    small_sizes=(2000, 8192),
    inputs=lambda paths, dtype: (Option(), paths),
    implementations={
        "torch_payoff_mean": called(torch_payoff_mean),
        "helion_payoff_mean": called(payoff_mean),
    },
    fault=payoff_fault,
    moved=lambda option, paths: 4,  # the result alone
    agreement="the price is within its margin of the closed form",
)

COORDINATES = 256


def projection_fault(implementation: Implementation, args: tuple[Any, ...]) -> str | None:
    """Matrices of two libraries differ, so each is checked for itself."""
    x = args[0]
    y = implementation(*args)()
    ratios = y.double().square().sum(-1) / x.double().square().sum(-1)
    # Each ratio has a deviation of sqrt(2 / k).
    if (ratios - 1).abs().max() > 6 * math.sqrt(2 / COORDINATES):
        return "the projection does not keep the lengths of rows"
    if y.requires_grad:
        (grad,) = torch.autograd.grad(y, x, y.detach())
        along, length = (grad.double() * x.double()).sum(), y.double().square().sum()
        # A dozen roundings of bfloat16, which partly cancel.
        if abs(along / length - 1) > 1e-2:
            return "the gradient is not that of a product with the same matrix"
    return None


RANDOM_PROJECTION = Operator(
    example="random_projection",
    sizes=[2**k for k in range(10, 14)],
    small_sizes=(40, 129),
    inputs=lambda n, dtype: (*tensors(matrix)(n, dtype), COORDINATES, rivals.SEED),
    implementations={
        "torch_random_projection": called(torch_random_projection),
        "helion_random_projection": called(random_projection),
    },
    fault=projection_fault,
    moved=lambda x, k, seed: x.nbytes + x.size(0) * k * x.itemsize,
    agreement="lengths of rows are kept, and the gradient multiplies with the same matrix",
    flops=lambda x, k, seed: 2 * x.numel() * k,
)


def noise_beforehand(
    x: torch.Tensor, mean: torch.Tensor, deviation: torch.Tensor, seed: int
) -> Call:
    """The layer by torch: the noise is drawn beforehand, and read from memory."""
    noise = randn(list(mean.shape), seed, packed=True, device=x.device).to(x.dtype)
    return lambda: x @ (mean + deviation * noise).T


NOISY_LINEAR = Operator(
    example="noisy_linear",
    sizes=[2**k for k in range(10, 14)],
    small_sizes=(40, 129),
    inputs=lambda n, dtype: (*tensors(matrix, (256, None), (256, None))(n, dtype), rivals.SEED),
    implementations={
        "torch_noise_beforehand": noise_beforehand,
        "helion_noisy_linear": called(noisy_linear),
    },
    fault=lambda implementation, args: unlike(implementation, torch_noisy_linear, args),
    moved=lambda x, mean, *others: (
        bytes_of((x, mean, others)) + x.size(0) * mean.size(0) * x.itemsize
    ),
    agreement="results and gradients are those of torch in float64, with the noise of the host",
    flops=lambda x, mean, deviation, seed: 2 * x.numel() * mean.size(0),
)

DRAWING = [
    LOW_MEM_DROPOUT,
    SHARDED_DROPOUT,
    DROPOUT_RESIDUAL_LAYERNORM,
    GUMBEL_SAMPLING,
    STOCHASTIC_ROUNDING,
    MONTE_CARLO,
    RANDOM_PROJECTION,
    NOISY_LINEAR,
]
OPERATORS = {operator.example: operator for operator in [*DRAWING, *LIKE_TORCH, *PRODUCTS]}


def of_tritonbench(name: str) -> dict[str, Implementation]:
    """What tritonbench has of the same operator, taking the same inputs; {} if not installed.

    An operator there is a class whose registered methods take the inputs and give the call to time.
    """
    if importlib.util.find_spec("tritonbench") is None:
        return {}
    registered = importlib.import_module("tritonbench.utils.triton_op").REGISTERED_BENCHMARKS
    load = importlib.import_module("tritonbench.operators").load_opbench_by_name
    options = importlib.import_module("tritonbench.utils.parser").get_parser()
    operator = load(name)(tb_args=options.parse_args(["--op", name]), extra_args=[])
    return {f"tritonbench_{method}": getattr(operator, method) for method in registered[name]}
