"""The arguments of a launch, with the types that the compiler gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import triton.language as tl

from helion.runtime.interpreter.upstream import interpreter, jit
from helion.runtime.interpreter.values import fits, new_scalar

if TYPE_CHECKING:
    from collections.abc import Sequence

_SCALARS = {
    "i1": tl.int1, "u1": tl.int1, "i8": tl.int8, "i16": tl.int16, "i32": tl.int32, "i64": tl.int64,
    "u8": tl.uint8, "u16": tl.uint16, "u32": tl.uint32, "u64": tl.uint64,
    "fp16": tl.float16, "bf16": tl.bfloat16, "fp32": tl.float32, "fp64": tl.float64,
}  # fmt: skip


_plain_argument = interpreter._implicit_cvt


def argument(arg: Any) -> Any:
    """A kernel argument, with the type that the compiler gives it."""
    if isinstance(arg, bool):
        return new_scalar(arg, tl.int1)
    if isinstance(arg, int):
        for dtype in (tl.int32, tl.int64):
            if fits(arg, dtype):
                return new_scalar(arg, dtype)
        if not 0 <= arg < 2**64:
            raise OverflowError(f"a kernel argument cannot hold {arg}")
        return new_scalar(arg, tl.uint64)
    if isinstance(arg, float):
        return new_scalar(arg, tl.float32)
    return _plain_argument(arg)


class Grid(interpreter.GridExecutor):
    """A launch: every program of the grid, one after the other."""

    def _init_args_hst(self, args_dev: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        args, named = super()._init_args_hst(args_dev, kwargs)
        # Where annotations are strings, a string that was written as one has quotes of its own.
        notes = {
            n: a.strip("'\"") if isinstance(a, str) else a
            for n, a in self.fn.__annotations__.items()
        }
        types = {name: _SCALARS.get(jit._normalize_ty(note)) for name, note in notes.items()}

        def declared(name: str, arg: Any) -> Any:
            dtype = types.get(name) if isinstance(arg, (bool, int, float)) else None
            return arg if dtype is None else new_scalar(arg, dtype)

        args = [declared(name, arg) for name, arg in zip(self.arg_names, args, strict=False)]
        return args, {name: declared(name, arg) for name, arg in named.items()}

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Without floating-point warnings: a GPU has none."""
        with np.errstate(all="ignore"):
            super().__call__(*args, **kwargs)
