"""What `run.py` compares: for each example, its inputs, its rivals, and what a right result is."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from benchmarks import rivals
from benchmarks.measure import DEVICE, ON_GPU
from examples.low_mem_dropout import low_mem_dropout_tritonbench

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


def dropout_inputs(size: int, dtype: torch.dtype) -> tuple[float, torch.Tensor]:
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

OPERATORS = {operator.example: operator for operator in [LOW_MEM_DROPOUT]}


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
