"""The dtypes that kernels compute with."""

from __future__ import annotations

import torch

# Each with Triton's name for it; what is not here, Triton lacks (complex numbers, packed formats).
TRITON_DTYPES = {
    torch.float64: "tl.float64",
    torch.float32: "tl.float32",
    torch.float16: "tl.float16",
    torch.bfloat16: "tl.bfloat16",
    torch.float8_e4m3fn: "tl.float8e4nv",
    torch.float8_e5m2: "tl.float8e5",
    torch.int64: "tl.int64",
    torch.int32: "tl.int32",
    torch.int16: "tl.int16",
    torch.int8: "tl.int8",
    torch.uint64: "tl.uint64",
    torch.uint32: "tl.uint32",
    torch.uint16: "tl.uint16",
    torch.uint8: "tl.uint8",
    torch.bool: "tl.int1",
}
