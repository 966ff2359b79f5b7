"""Closes the gaps of Triton's interpreter, so that a kernel computes there what a GPU computes.

Without an accelerator the generated kernels run under Triton's interpreter, in NumPy. It keeps the
formats that NumPy lacks as raw bits and computes on the bits, returns None from `libdevice`, and
differs from compiled code in arguments, loops, conditions and reductions. `install` puts subclasses
of the interpreter's own classes in their place; what a version already does right stays as it is.

What remains different: `tl.dot` does not shorten float32 operands to TF32, accumulates in float32
also where the accumulator is float16, and reductions round 16-bit floats once, at the end.
"""

from __future__ import annotations

from helion._compat import is_interpreting

__all__ = ["install", "unsupported"]

# Triton takes a while to import. The functions below do so, and only where its interpreter runs.


def install() -> None:
    """Put the parts of this package in the place of the interpreter's own, once.

    Does nothing where the interpreter is off. Call it before the first launch: what has been
    launched keeps the Python that it was rewritten to.
    """
    if is_interpreting():
        from helion.runtime.interpreter import installation

        installation.install()


def unsupported(feature: str) -> str | None:
    """Why a kernel that uses `feature` cannot run in the interpreter, or None if it can.

    Args:
        feature: a name of `triton.language`, such as `dot_scaled`, or `libdevice.NAME`.

    Returns:
        A sentence for a log or an error; None for all else, and where the interpreter is off.
    """
    if not is_interpreting():
        return None
    from helion.runtime.interpreter.installation import is_missing
    from helion.runtime.interpreter.upstream import lacks

    return lacks(feature) if is_missing(feature) else None
