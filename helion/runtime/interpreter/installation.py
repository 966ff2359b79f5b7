"""Puts the parts of this package in the place of the interpreter's own."""

from __future__ import annotations

import dataclasses
import functools
import sys
from typing import TYPE_CHECKING, Any

import triton.language as tl
from triton.language.extra import libdevice as stubs
from triton.language.extra.cuda import libdevice as cuda

from helion.runtime.interpreter import libdevice
from helion.runtime.interpreter.arguments import Grid, argument
from helion.runtime.interpreter.control_flow import IN_KERNELS, Transformer, patch_language
from helion.runtime.interpreter.formats import convert_float
from helion.runtime.interpreter.operations import HAS_DOT_SCALED, Builder
from helion.runtime.interpreter.reductions import Reduce, Scan
from helion.runtime.interpreter.upstream import interpreter, jit

if TYPE_CHECKING:
    from helion.runtime.interpreter.upstream import Function

_MISSING = {
    "dot_scaled": not HAS_DOT_SCALED,
    "make_block_ptr": not hasattr(interpreter, "BlockPointerHandle"),
    "inline_asm_elementwise": True,
    "map_elementwise": True,
    "float8e4b15": True,
}


def is_missing(feature: str) -> bool:
    """Whether the interpreter cannot run a name of `triton.language`, or `libdevice.NAME`."""
    scope, _, name = feature.rpartition(".")
    return _MISSING.get(feature, scope == "libdevice" and libdevice.function(name) is None)


def install() -> None:
    """See the package; here the interpreter is on."""
    if isinstance(interpreter.interpreter_builder, Builder):
        return
    builder = interpreter.interpreter_builder
    builder.__class__ = Builder
    # Integers wrap without a check at each operation, as in code compiled without `debug`.
    builder.options = dataclasses.replace(
        builder.options,
        sanitize_overflow=False,
        allowed_dot_input_precisions=("tf32", "tf32x3", "ieee", "bf16x3", "bf16x6"),
    )
    interpreter.InterpreterBuilder = Builder
    interpreter.ReduceOps, interpreter.ScanOps, interpreter.GridExecutor = Reduce, Scan, Grid
    interpreter.FunctionRewriter.ast_transformer = Transformer()
    interpreter._convert_float, interpreter._implicit_cvt = convert_float, argument
    interpreter._patch_lang = patch_language
    for name, function in IN_KERNELS.items():
        setattr(interpreter, name, function)
    _interpret_library()
    _bind_libdevice()


@functools.cache
def _interpreted(function: Function) -> Any:
    return interpreter.InterpretedFunction(function)


def _interpret_library() -> None:
    """Exchange Triton's own functions, if it was imported before the interpreter was turned on."""
    for module in [m for name, m in sys.modules.items() if name.startswith("triton.language")]:
        for name, value in vars(module).copy().items():
            if isinstance(value, jit.JITFunction):
                setattr(module, name, _interpreted(value.fn))
    for name, value in vars(tl.tensor).copy().items():
        if isinstance(value, jit.JITFunction):
            setattr(tl.tensor, name, _as_method(_interpreted(value.fn)))


def _as_method(function: Function) -> Function:
    return lambda *args, **kwargs: function(*args, **kwargs)


def _bind_libdevice() -> None:
    # The first module is stubs, which give None; the compiler exchanges them for the second.
    for name, function in vars(cuda).copy().items():
        if tl.core.is_builtin(function):
            for module in (stubs, cuda):
                setattr(module, name, _with_semantic(function))


def _with_semantic(function: Function) -> Function:
    @functools.wraps(function)
    def interpreted(*args: Any, _semantic: Any = None) -> Any:
        return function(*args, _semantic=interpreter.interpreter_semantic)

    return interpreted
