"""Decorators that skip tests, each a condition and a reason.

All take an optional reason and go on functions and classes, with or without brackets. A condition
is asked when a test runs (for a class: when it is made), so importing a test touches no device.
"""

from __future__ import annotations

import functools
import unittest
from typing import TYPE_CHECKING, Any, TypeAlias

import torch

from helion import _compat
from helion._testing import machine
from helion._testing.modes import in_ref_eager_mode

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Condition: TypeAlias = Callable[[], bool]
    Decorator: TypeAlias = Callable[[Any], Any]


def skipIfFn(cond_fn: Condition, reason: str) -> Decorator:
    """Skip where `cond_fn()` is true."""

    def decorate(test: Any) -> Any:
        if isinstance(test, type):
            return unittest.skipIf(cond_fn(), reason)(test)

        @functools.wraps(test)
        def checked(*args: Any, **kwargs: Any) -> Any:
            if cond_fn():
                raise unittest.SkipTest(reason)
            return test(*args, **kwargs)

        return checked

    return decorate


def xfailIfFn(cond_fn: Condition, reason: str) -> Decorator:
    """Expect the test to fail where `cond_fn()` is true."""
    del reason  # `unittest` has no place for it

    def decorate(test: Any) -> Any:
        return unittest.expectedFailure(test) if cond_fn() else test

    return decorate


def _skip(cond_fn: Condition, default: str) -> Callable[..., Any]:
    """A decorator with an optional reason: `@skip`, `@skip()`, `@skip("reason")`."""

    def skip(reason: Any = None, **keyword: Any) -> Any:
        reason = keyword.pop("reason", reason)
        if callable(reason):
            return skipIfFn(cond_fn, default)(reason)
        return skipIfFn(cond_fn, reason or default)

    skip.__doc__ = f"Skip where it holds: {default}."
    return skip


def _always() -> bool:
    return True


def _never() -> bool:
    return False


# -- the mode and the machine --------------------------------------------------------------------

skipIfRefEager = _skip(in_ref_eager_mode, "the eager reference mode is on")
skipIfNormalMode = _skip(lambda: not in_ref_eager_mode(), "the eager reference mode is off")
skipIfRocm = _skip(lambda: torch.version.hip is not None, "the GPU is AMD's")
skipIfXPU = _skip(lambda: machine.DEVICE.type == "xpu", "the GPU is Intel's")
skipIfMTIA = _skip(lambda: machine.DEVICE.type == "mtia", "the device is an MTIA")
skipIfA10G = _skip(lambda: "A10G" in machine.get_nvidia_gpu_model(), "the GPU is an A10G")
skipIfNotCUDA = _skip(lambda: not machine.is_cuda(), "no NVIDIA GPU is there")
skipUnlessTensorDescriptor = _skip(
    lambda: not _compat.supports_tensor_descriptor(), "the GPU has no tensor descriptors"
)
skipUnlessTf32Supported = _skip(lambda: machine.capability() < (8, 0), "the GPU has no TF32")
skipUnlessAMDCDNA = _skip(lambda: torch.version.hip is None, "the GPU is none of AMD's")
skipUnlessMultiXCD = _skip(lambda: torch.version.hip is None, "the GPU has a single XCD")


def skipIfCudaCapabilityLessThan(
    min_capability: tuple[int, int], *, reason: str | None = None
) -> Decorator:
    """Skip on NVIDIA GPUs of a compute capability below `min_capability`, and without one."""
    major, minor = min_capability
    reason = reason or f"needs compute capability {major}.{minor}"
    return skipIfFn(lambda: machine.capability() < min_capability, reason)


def skipIfSharedMemoryLessThan(required_bytes: int, *, reason: str | None = None) -> Decorator:
    """Skip on GPUs whose programs have less shared memory; Triton's interpreter needs none."""
    reason = reason or f"needs {required_bytes} bytes of shared memory"
    return skipIfFn(lambda: machine.is_cuda() and machine.shared_memory() < required_bytes, reason)


def skipIfLowVRAM(
    reason: str = "needs more GPU memory", *, required_bytes: int = 30 * 2**30
) -> Decorator:
    """Skip where less GPU memory is free, and without a GPU."""
    return skipIfFn(lambda: machine.free_memory() < required_bytes, reason)


def skipIfPyTorchBaseVerLessThan(min_version: str) -> Decorator:
    """Skip with a torch older than `min_version`, whatever its suffix."""

    def release(version: str) -> tuple[int, ...]:
        return tuple(int(part) for part in version.split("+")[0].split(".")[:3] if part.isdigit())

    too_old = release(torch.__version__) < release(min_version)
    return skipIfFn(lambda: too_old, f"needs torch {min_version}")


# -- backends: Triton is the only one ------------------------------------------------------------

skipIfNotTriton = _skip(_never, "the backend is not Triton")
skipIfTileIR = _skip(_never, "the backend is TileIR")
skipIfCute = _skip(_never, "the backend is CuTe")
skipIfPallas = _skip(_never, "the backend is Pallas")
skipIfPallasInterpret = _skip(_never, "Pallas is interpreted")
skipIfMetal = _skip(_never, "the backend is Metal")
xfailIfCute = _skip(_never, "CuTe cannot do it yet")
xfailIfPallas = _skip(_never, "Pallas cannot do it yet")
xfailIfPallasTpu = _skip(_never, "Pallas cannot do it yet on a TPU")
xfailIfPallasInterpret = _skip(_never, "interpreted Pallas cannot do it yet")
skipUnlessTileIR = _skip(_always, "the backend is not TileIR")
skipUnlessPallas = _skip(_always, "the backend is not Pallas")
skipUnlessCuteAvailable = _skip(_always, "CuTe is not there")


def matchesBackends(backends: Sequence[str]) -> bool:
    """Whether Triton is among the backends."""
    return "triton" in backends


def skipUnlessBackends(backends: Sequence[str], reason: str | None = None) -> Decorator:
    """Skip unless Triton is among the backends."""
    reason = reason or f"for {', '.join(backends)} alone"
    return skipIfFn(lambda: not matchesBackends(backends), reason)


onlyBackends = skipUnlessBackends
