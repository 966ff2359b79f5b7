"""The machine that tests run on."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from collections.abc import Generator

PROJECT_ROOT: Path = Path(__file__).parent.parent.parent
EXAMPLES_DIR: Path = PROJECT_ROOT / "examples"


def _device() -> torch.device:
    for kind in ("cuda", "xpu"):
        if getattr(torch, kind).is_available():
            return torch.device(kind)
    return torch.device("cpu")


DEVICE: torch.device = _device()
"""Where kernels run: an accelerator, or the CPU under Triton's interpreter."""
HALF_DTYPE: torch.dtype = torch.float16
LONG_INT_TYPE: torch.dtype = torch.int64


def is_cuda() -> bool:
    """Whether kernels run on an NVIDIA GPU."""
    return DEVICE.type == "cuda" and torch.version.cuda is not None


def get_nvidia_gpu_model() -> str:
    """The name of the GPU, such as `NVIDIA H200`; empty without one."""
    return torch.cuda.get_device_name() if is_cuda() else ""


def capability() -> tuple[int, int]:
    """The compute capability of the GPU; (0, 0) without one."""
    return torch.cuda.get_device_capability() if is_cuda() else (0, 0)


def shared_memory() -> int:
    """Bytes of shared memory that a program can have; 0 without a GPU."""
    if not is_cuda():
        return 0
    return torch.cuda.get_device_properties(DEVICE).shared_memory_per_block_optin


def free_memory() -> int:
    """Bytes of free GPU memory; 0 without a GPU."""
    return torch.cuda.mem_get_info()[0] if is_cuda() else 0


def synchronize() -> None:
    """Wait until the device has done what was asked of it."""
    if DEVICE.type != "cpu":
        torch.accelerator.synchronize()


def get_test_float32_matmul_precision() -> str:
    """Torch's precision of float32 products in tests."""
    return "high"


def get_test_dot_precision() -> str:
    """Triton's name for the same."""
    return "tf32"


@contextlib.contextmanager
def float32_matmul_precision(precision: str) -> Generator[None]:
    """Torch's precision of float32 matrix products ("highest", "high", "medium") in a block."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
