"""The random numbers of kernels, on plain tensors: to debug a mask, or to replay a run.

Each function takes what the operation of the same name in `helion.language` takes, with ints for
tiles, and draws the same numbers:

>>> import helion.random
>>> keep = helion.random.bernoulli([4, 64], 0.9, seed=7)
>>> part = helion.random.bernoulli([2, 64], 0.9, seed=7, origin=[2, 0], extents=[4, 64])
>>> bool((part == keep[2:]).all())
True
"""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import torch

from helion import exc, language
from helion.language import _philox
from helion.language._op import host_function
from helion.language.random import keys
from helion.language.random.draws import eager_seed

if TYPE_CHECKING:
    from collections.abc import Callable

    from helion.language._op import Op

__all__ = [
    "bernoulli",
    "exponential",
    "fold_in",
    "gumbel",
    "philox",
    "rand",
    "rand4x",
    "randint",
    "randint4x",
    "randn",
    "random_bits",
    "split_seed",
    "uniform",
]


@dataclasses.dataclass(frozen=True)
class _Place:
    """Stands for the eager mode, of which random operations ask only where they are."""

    device: torch.device


def _on_host(op: Op) -> Callable[..., Any]:
    """An operation as a function of plain tensors, on `device`, or where its first tensor is."""

    @functools.wraps(op, assigned=("__doc__", "__name__"), updated=())
    def draw(*args: Any, **kwargs: Any) -> Any:
        bound = op.signature.bind(*args, **kwargs)
        _check_range(bound.arguments["seed"])
        tensors = [a for a in bound.arguments.values() if isinstance(a, torch.Tensor)]
        device = bound.arguments.get("device") or (tensors[0].device if tensors else "cpu")
        return op.run_reference(_Place(torch.device(device)), args, kwargs)

    return draw


def _check_range(seed: Any) -> None:
    # A kernel refuses such an argument too; what it computes from one wraps.
    if isinstance(seed, int) and not -(2**63) <= seed < 2**64:
        raise exc.SeedOutOfRange(value=seed)


bernoulli = _on_host(language.bernoulli)
exponential = _on_host(language.exponential)
gumbel = _on_host(language.gumbel)
rand = _on_host(language.rand)
rand4x = _on_host(language.rand4x)
randint = _on_host(language.randint)
randint4x = _on_host(language.randint4x)
randn = _on_host(language.randn)
random_bits = _on_host(language.random_bits)
uniform = _on_host(language.uniform)


def philox(seed: int | torch.Tensor, offsets: torch.Tensor) -> _philox.Words:
    """The four words of Philox4x32-10 for each offset.

    Args:
        seed: int, or integer tensor that broadcasts to `offsets`; modulo 2**64.
        offsets: integer tensor; modulo 2**64.

    Returns:
        Four int64 tensors shaped like `offsets`, each value from 0 to 2**32 - 1.
    """
    return _philox.philox4x32(eager_seed(seed), offsets)


@host_function(lambda seed, data: int)
def fold_in(seed: int | torch.Tensor, data: int | torch.Tensor) -> int | torch.Tensor:
    """A seed for one of many uses of a seed, as `hl.fold_in`; an int if both arguments are.

    >>> fold_in(1234, 0), fold_in(1234, 1)
    (2302677523364888914, -3859832455208542931)
    """
    made = keys.derived(eager_seed(seed), eager_seed(data), keys.FOLD)
    both = isinstance(seed, int) and isinstance(data, int)
    return int(made) if both else made


@host_function(lambda seed, n: (int,) * n)
def split_seed(seed: int | torch.Tensor, n: int) -> tuple[int | torch.Tensor, ...]:
    """Several seeds from one, as `hl.split_seed`; ints if the seed is."""
    made = [keys.derived(eager_seed(seed), i, keys.SPLIT) for i in range(n)]
    return tuple(int(m) for m in made) if isinstance(seed, int) else tuple(made)
