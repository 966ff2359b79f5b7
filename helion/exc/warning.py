"""Warnings: the program is legal, and probably not what its author wants."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from helion.exc.base import BaseWarning

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "BlockSizeIgnoredInInterpretMode",
    "InexactProbability",
    "RepeatedRandomNumbers",
    "TensorOperationInWrapper",
    "TensorOperationsInHostCall",
    "TiledKMatmulAccumulationWarning",
    "WrongDevice",
]


class TensorOperationInWrapper(BaseWarning):
    """The host part of a kernel computes with tensors."""

    code = "tensor-operation-in-wrapper"
    title = "`{api}` runs on the host side of the kernel, as a launch of its own"
    help = "move it into a device loop, or ignore this class with `ignore_warnings=`"
    defaults: ClassVar[Mapping[str, str]] = {"api": "a tensor operation"}


class TensorOperationsInHostCall(TensorOperationInWrapper):
    """A function that the host part calls computes with tensors."""

    code = "tensor-operations-in-host-call"
    title = "`{api}` computes with tensors on the host side of the kernel"


class WrongDevice(BaseWarning):
    """The host part makes a tensor on another device than the kernel's."""

    code = "wrong-device"
    title = "`{api}` makes a tensor on `{got}`, but the kernel runs on `{expected}`"
    help = "pass `device=x.device`"
    defaults: ClassVar[Mapping[str, str]] = {"api": "this call"}


class BlockSizeIgnoredInInterpretMode(BaseWarning):
    """The eager reference mode cannot follow a block size."""

    code = "block-size-ignored-in-interpret-mode"
    title = "the eager reference mode ignores the block size {block_size}"
    help = "results do not depend on it, unless the kernel reads `tile.block_size` or `tile.id`"


class TiledKMatmulAccumulationWarning(BaseWarning):
    """`acc += a @ b` rounds each product before adding it."""

    code = "tiled-k-matmul-accumulation-warning"
    title = "`acc += a @ b` rounds each product to the operands' dtype before it adds"
    help = "write `acc = torch.addmm(acc, a, b)` or `acc = hl.dot(a, b, acc=acc)`"


class RepeatedRandomNumbers(BaseWarning):
    """Neither shape, seed nor offsets of random numbers depend on a loop around them."""

    code = "repeated-random-numbers"
    title = "`{api}` draws the same numbers in each iteration of the loop over `{loop}`"
    label = "nothing here depends on `{loop}`"
    help = "name `{loop}` in the shape, or make the seed depend on it: `seed + {loop}.id`"
    defaults: ClassVar[Mapping[str, str]] = {"api": "hl.rand"}


class InexactProbability(BaseWarning):
    """A few random bits cannot represent a probability well."""

    code = "inexact-probability"
    title = "`hl.bernoulli` with bits={bits} makes the probability {near}, not {p}"
    help = "pass more `bits=`: 8, 16 or 32; the error is at most 2**-(bits + 1)"
