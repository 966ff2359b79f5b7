"""What differs between machines and versions of torch and Triton, in one small file."""

from __future__ import annotations

import logging
import os

import torch

_LOG = logging.getLogger("helion")


def use_interpreter_without_accelerator() -> None:
    """Turn Triton's interpreter on where no accelerator is.

    What `triton.jit` made before is made for a GPU; of that, only Triton's own functions are put
    right later (`helion.runtime.interpreter`).
    """
    if "TRITON_INTERPRET" in os.environ or torch.cuda.is_available():
        return
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        return
    os.environ["TRITON_INTERPRET"] = "1"
    _LOG.info("no accelerator found: kernels run under Triton's interpreter")


def use_tileir_tunables() -> bool:
    """Whether the TileIR backend is in use; it is none of ours."""
    return False


def supports_tensor_descriptor() -> bool:
    """Whether the hardware copies whole tiles: compute capability 9 and later."""
    return _supports_tensor_descriptor()


def _supports_tensor_descriptor() -> bool:  # of its own, because tests of kernels replace it
    return torch.cuda.is_available() and torch.cuda.get_device_capability() >= (9, 0)


def is_interpreting() -> bool:
    """Whether Triton kernels run under its interpreter in this process."""
    return os.environ.get("TRITON_INTERPRET", "0").lower() in ("1", "true", "on", "y", "yes")
