"""What differs between machines and versions of torch and Triton, in one small file."""

from __future__ import annotations

import logging
import os
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG = logging.getLogger("helion")
# A value that Triton takes for 1 and people do not write; processes started from here inherit it.
_NOBODY_ASKED = "on"


def use_interpreter_without_accelerator() -> None:
    """Turn Triton's interpreter on where no accelerator is.

    What `triton.jit` made before is made for a GPU; of that, only Triton's own functions are put
    right later (`helion.runtime.interpreter`).
    """
    if "TRITON_INTERPRET" in os.environ or torch.cuda.is_available():
        return
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        return
    os.environ["TRITON_INTERPRET"] = _NOBODY_ASKED
    _LOG.info("no accelerator found: kernels run under Triton's interpreter")


def use_tileir_tunables() -> bool:
    """Whether the TileIR backend is in use; it is none of ours."""
    return False


def supports_tensor_descriptor() -> bool:
    """Whether the hardware copies whole tiles: compute capability 9 and later."""
    return _supports_tensor_descriptor()


def _supports_tensor_descriptor() -> bool:  # of its own, because tests of kernels replace it
    return torch.cuda.is_available() and torch.cuda.get_device_capability() >= (9, 0)


def min_dot_block() -> int:
    """The least rows, columns and terms of the blocks that `tl.dot` multiplies."""
    return max(_min_dot_size())


def _min_dot_size() -> tuple[int, int, int]:  # of its own, as above
    return (16, 16, 16)


def triton_version() -> tuple[int, ...]:
    """Major and minor version."""
    import triton  # not before `use_interpreter_without_accelerator`

    return tuple(int(part) for part in triton.__version__.split(".")[:2])


def block_indexing() -> frozenset[str]:
    """The kinds of `indexing`, apart from pointers, that Triton and the hardware have.

    Triton 3.7 warns of block pointers, and 3.9 has none. Plain pointers, which they become on the
    way to the GPU, do the same.
    """
    kinds = {"block_ptr"} if triton_version() < (3, 7) else set[str]()
    if is_interpreting() or supports_tensor_descriptor():
        kinds.add("tensor_descriptor")
    return frozenset(kinds)


def has_warp_specialization() -> bool:
    """Whether the hardware gives warps of one program different work: capability 10 and later."""
    return torch.cuda.is_available() and torch.cuda.get_device_capability() >= (10, 0)


def user_asked_for_interpreter() -> bool:
    """Whether Triton's interpreter is on, and not just because there is no accelerator."""
    return is_interpreting() and os.environ["TRITON_INTERPRET"] != _NOBODY_ASKED


def is_interpreting() -> bool:
    """Whether Triton kernels run under its interpreter in this process."""
    return os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "on", "y", "yes")


class CudaLaunch:
    """Starts kernels that Triton compiled for CUDA, past Triton's dispatch.

    How Triton's launcher is called is no public interface: it was read in the versions below. The
    C function that it ends in takes the grid, the stream, the compiled function, whether the launch
    is cooperative, whether it overlaps with the one before, and then

        3.6         scratch memory (2), metadata, 3 hooks, and the arguments, one by one
        3.7 to 3.9  metadata, 3 hooks, scratch memory (2), annotations, signature, the arguments
    """

    FIRST, AFTER_LAST = (3, 6), (3, 10)

    def __init__(
        self, current_device: Callable[[], int], current_stream: Callable[[int], int]
    ) -> None:
        from triton import knobs  # after `use_interpreter_without_accelerator`

        self.current_device = current_device
        self.current_stream = current_stream
        self._knobs = knobs.runtime
        self._hooks = (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook)

    @classmethod
    def of_this_process(cls) -> CudaLaunch | None:
        """None if this is not a GPU and a version that are known."""
        import triton

        if not cls.FIRST <= triton_version() < cls.AFTER_LAST or not torch.cuda.is_available():
            return None
        if type(triton.runtime.driver.active).__name__ != "CudaDriver":
            return None
        private = torch._C  # pyright: ignore[reportPrivateUsage]
        device = getattr(private, "_cuda_getDevice", None)
        stream = getattr(private, "_cuda_getCurrentRawStream", None)
        return None if device is None or stream is None else cls(device, stream)

    def knows(self, kernel: Any) -> bool:
        """Whether a Triton function depends on nothing but its arguments."""
        return (
            type(kernel).__name__ == "JITFunction"
            and getattr(kernel, "used_global_vals", None) == {}
            and getattr(kernel, "pre_run_hooks", None) == []
        )

    def hooked(self) -> bool:
        """Whether a profiler watches launches by now."""
        enter, leave = self._hooks
        knobs = self._knobs
        if knobs.launch_enter_hook is enter and knobs.launch_exit_hook is leave:
            return bool(enter.calls or leave.calls)
        return True

    def start_of(self, compiled: Any) -> Callable[..., None] | None:
        """A function that starts a compiled kernel: of x, y, z, the stream and the arguments.

        Tensors are passed as addresses. None if the kernel needs more than that.
        """
        run: Any = getattr(compiled, "run", None)
        if type(run).__name__ != "CudaLauncher" or getattr(run, "gsan_enabled", False):
            return None
        launch = run.launch
        if run.global_scratch_size or run.profile_scratch_size:
            return None
        if isinstance(launch, FunctionType):
            return None  # it unpacks tensor descriptors, and calls the C function
        function, metadata = compiled.function, compiled.packed_metadata
        how = (run.launch_cooperative_grid, run.launch_pdl)
        nothing = (None, None, None)
        if hasattr(run, "arg_annotations"):
            described = (run.arg_annotations, run.kernel_signature)
            fixed = (function, *how, metadata, *nothing, None, None, *described)

            def start(x: int, y: int, z: int, stream: int, args: tuple[Any, ...]) -> None:
                launch(x, y, z, stream, *fixed, args)
        else:
            fixed = (function, *how, None, None, metadata, *nothing)

            def start(x: int, y: int, z: int, stream: int, args: tuple[Any, ...]) -> None:
                launch(x, y, z, stream, *fixed, *args)

        # Triton unloads a compiled kernel that nothing holds.
        start.compiled = compiled  # pyright: ignore[reportFunctionMemberAccess]
        return start
