"""Comparison of results, with tolerances for the share, the size and the direction of errors."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

import torch
from torch.nn import functional as F
from torch.utils import _pytree as pytree

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


@dataclasses.dataclass(frozen=True)
class CosSimilarity:
    """A tolerance for directions: rows may differ in size, but must point the same way.

    Attributes:
        dim: the dimension along which a row lies.
        min_similarity: the least cosine of the angle between a row and the expected one.
    """

    dim: int
    min_similarity: float

    def check(self, actual: torch.Tensor, expected: torch.Tensor) -> None:
        """Raise AssertionError if any row points elsewhere; two rows of zeros agree."""
        actual, expected = actual.double(), expected.double()
        cosine = F.cosine_similarity(actual, expected, dim=self.dim)
        zeros = (actual == 0).all(self.dim) & (expected == 0).all(self.dim)
        least = torch.where(zeros, 1.0, cosine.nan_to_num(-1.0)).min().item()
        if least < self.min_similarity:
            raise AssertionError(f"cosine similarity {least:.6f}, expected {self.min_similarity}")


def assert_close_with_mismatch_tolerance(
    actual: torch.Tensor,
    expected: torch.Tensor,
    *,
    atol: float = 1e-4,
    rtol: float = 1e-4,
    max_mismatch_pct: float = 0.01,
    max_mismatched_abs_diff: float | None = None,
    max_abs_diff: float | None = None,
    max_rel_diff: float | None = None,
) -> None:
    """Like `torch.testing.assert_close`, but a share of the elements may differ more.

    Args:
        actual: the result.
        expected: what it should be; of the same shape.
        atol: absolute tolerance.
        rtol: relative tolerance.
        max_mismatch_pct: the share of elements that may be beyond the tolerances; 0.01 is 1%.
        max_mismatched_abs_diff: how far from the expected value those elements may be.
        max_abs_diff: the largest absolute difference of any element.
        max_rel_diff: the largest relative difference of any element.

    Raises:
        AssertionError: which of the limits is passed, and by how much.
    """
    if actual.shape != expected.shape:
        raise AssertionError(f"shape {tuple(actual.shape)}, expected {tuple(expected.shape)}")
    if actual.numel() == 0:
        return
    actual, expected = actual.detach().double(), expected.detach().double()
    difference = torch.where(actual == expected, 0.0, (actual - expected).abs())
    difference = difference.nan_to_num(torch.inf, torch.inf)
    relative = torch.where(difference == 0, 0.0, difference / expected.abs())
    wrong = ~torch.isclose(actual, expected, rtol=rtol, atol=atol)
    count = int(wrong.sum())
    limits = [
        ("Absolute diff too large", difference, max_abs_diff),
        ("Relative diff too large", relative, max_rel_diff),
        ("Mismatched absolute diff too large", difference[wrong], max_mismatched_abs_diff),
    ]
    for text, found, limit in limits:
        if limit is not None and found.numel() and found.max() > limit:
            raise AssertionError(f"{text}: {found.max():.6g}, allowed {limit:.6g}")
    if count > max_mismatch_pct * wrong.numel():
        raise AssertionError(
            f"Mismatched elements: {count} of {wrong.numel()} ({count / wrong.numel():.2%}), "
            f"allowed {max_mismatch_pct:.2%}; the largest difference is {difference.max():.6g}"
        )


def tensor_check(
    rtol: float,
    atol: float,
    max_mismatch_pct: float | None = None,
    max_mismatched_abs_diff: float | None = None,
    cos_sim: CosSimilarity | None = None,
) -> Callable[[torch.Tensor, torch.Tensor], None]:
    """A function that compares two tensors with these tolerances, floats as float32."""

    def check(actual: torch.Tensor, expected: torch.Tensor) -> None:
        if expected.is_floating_point():
            actual, expected = actual.to(torch.float32), expected.to(torch.float32)
        expected = expected.to(actual.device)
        if cos_sim is not None:
            cos_sim.check(actual, expected)
        elif max_mismatch_pct is None and max_mismatched_abs_diff is None:
            torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol)
        else:
            assert_close_with_mismatch_tolerance(
                actual,
                expected,
                rtol=rtol,
                atol=atol,
                max_mismatch_pct=1.0 if max_mismatch_pct is None else max_mismatch_pct,
                max_mismatched_abs_diff=max_mismatched_abs_diff,
            )

    return check


def compare(
    actual: Any, expected: Any, check: Callable[[torch.Tensor, torch.Tensor], None]
) -> None:
    """Compare results of any structure: tensors by `check`, everything else by `==`."""
    parts, structure = pytree.tree_flatten(actual)
    wanted, wanted_structure = pytree.tree_flatten(expected)
    if len(parts) != len(wanted):
        raise AssertionError(f"the result is {structure}, expected {wanted_structure}")
    for place, (part, want) in enumerate(zip(parts, wanted, strict=True)):
        with prefixed_errors(f"output {place}: " if len(parts) > 1 else ""):
            if isinstance(part, torch.Tensor) and isinstance(want, torch.Tensor):
                check(part, want)
            elif part != want:
                raise AssertionError(f"got {part!r}, expected {want!r}")


@contextlib.contextmanager
def prefixed_errors(prefix: str) -> Generator[None]:
    """Put a text before the message of a failed assertion."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{prefix}{error}") from error
