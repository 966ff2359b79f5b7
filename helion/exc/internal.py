"""Errors that are about Helion, its backend or its modes, and summaries of other errors."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, ClassVar

from helion.exc.base import Base, BaseError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    from helion.exc.spans import Related, Span

__all__ = [
    "BackendImplementationMissing",
    "BackendUnsupported",
    "BreakpointInDeviceLoopRequiresInterpret",
    "DuplicateStoreIndicesError",
    "ErrorCompilingKernel",
    "IncompatibleInterpretModes",
    "InductorLoweringError",
    "InternalError",
    "RefEagerModeCodePrintError",
    "TorchOpTracingError",
    "pointing_at",
]


class _WrappingError(BaseError):
    """An error that stands for another one, which it keeps as its cause."""

    def __init__(
        self,
        span: Span | None = None,
        *,
        original: BaseException | None = None,
        related: Sequence[Related] = (),
        **fields: object,
    ) -> None:
        """Makes the error.

        Args:
            span: where in the author's source, if known.
            original: the exception to wrap; becomes `__cause__`, and its text the field `error`.
            related: second places that explain it.
            fields: values for the templates.
        """
        if original is not None:
            fields.setdefault("error", f"{type(original).__name__}: {original}")
        super().__init__(span, related=related, **fields)
        self.__cause__ = original


class InternalError(_WrappingError):
    """Something went wrong inside Helion."""

    code = "internal-error"
    title = "a bug in Helion: {error}"
    label = "while compiling this"
    help = "the kernel is not at fault; please report it with this text and the kernel"
    defaults: ClassVar[Mapping[str, str]] = {"error": "an unexpected state"}


@contextlib.contextmanager
def pointing_at(span: Span | None) -> Generator[None]:
    """Errors inside get this place if they have none; what is no error of ours is a bug of ours.

    Raises:
        InternalError: something else than an error of the catalogue was raised inside.
    """
    try:
        yield
    except Base as error:
        raise error.with_span(span) from error.__cause__
    except Exception as error:
        raise InternalError(span, original=error) from error


class TorchOpTracingError(_WrappingError):
    """A torch function raised while it was traced."""

    code = "torch-op-tracing-error"
    title = "{detail}"
    label = "torch raised this here"
    defaults: ClassVar[Mapping[str, str]] = {"detail": "{error}"}
    help = (
        "the call would fail in eager PyTorch too, or needs a value that is not known while "
        "compiling"
    )


class InductorLoweringError(BaseError):
    """An operation has no lowering."""

    code = "inductor-lowering-error"
    title = "`{api}` has no lowering to Triton"
    help = "write it with other operations"


class _BackendError(BaseError):
    """An error about a backend; takes `(backend, detail)` by position too, as kernels raise it."""

    def __init__(
        self,
        span: Span | str | None = None,
        detail: str | None = None,
        *,
        related: Sequence[Related] = (),
        **fields: object,
    ) -> None:
        """Makes the error.

        Args:
            span: where in the author's source; or the backend's name.
            detail: what it lacks.
            related: second places that explain it.
            fields: values for the templates: `backend`, `detail`.
        """
        if isinstance(span, str):
            fields.setdefault("backend", span)
            span = None
        if detail is not None:
            fields.setdefault("detail", detail)
        super().__init__(span, related=related, **fields)


class BackendUnsupported(_BackendError):
    """The backend cannot do something."""

    code = "backend-unsupported"
    title = "the backend '{backend}' does not support {detail}"
    help = "use other operations on this backend"
    defaults: ClassVar[Mapping[str, str]] = {"backend": "triton", "detail": "this"}


class BackendImplementationMissing(_BackendError):
    """The backend could do something, and nobody wrote it."""

    code = "backend-implementation-missing"
    title = "the backend '{backend}' has no implementation of {detail}"
    help = "write it with other operations"
    defaults: ClassVar[Mapping[str, str]] = {"backend": "triton", "detail": "this"}


class ErrorCompilingKernel(BaseError):
    """Summary after several errors in one kernel.

    Attributes:
        errors: the errors, in the order of the source.
    """

    code = "error-compiling-kernel"
    title = "{count} errors in the kernel"
    appendix = "{reports}"

    def __init__(
        self,
        span: Span | None = None,
        *,
        errors: Sequence[Base] = (),
        related: Sequence[Related] = (),
        **fields: object,
    ) -> None:
        """Makes the summary.

        Args:
            span: where in the author's source, if one place stands for all.
            errors: what was found; their texts follow the summary.
            related: second places that explain it.
            fields: values for the templates; `count` is the number of errors if not given.
        """
        fields.setdefault("count", len(errors))
        if errors:
            fields.setdefault("reports", "\n\n".join(error.report() for error in errors))
        super().__init__(span, related=related, **fields)
        self.errors: tuple[Base, ...] = tuple(errors)


class BreakpointInDeviceLoopRequiresInterpret(BaseError):
    """`breakpoint()` in a device loop that is compiled."""

    code = "breakpoint-in-device-loop-requires-interpret"
    title = "`breakpoint()` in a device loop needs an interpreter"
    help = "set HELION_INTERPRET=1 or TRITON_INTERPRET=1"


class IncompatibleInterpretModes(BaseError):
    """Both interpreters are asked for."""

    code = "incompatible-interpret-modes"
    title = "HELION_INTERPRET=1 and TRITON_INTERPRET=1 cannot be combined"
    help = (
        "HELION_INTERPRET runs the kernel as Python, TRITON_INTERPRET the generated code: set one"
    )


class RefEagerModeCodePrintError(BaseError):
    """Generated code is asked for in the mode that generates none."""

    code = "ref-eager-mode-code-print-error"
    title = "the eager reference mode generates no code to print"
    help = "unset `print_output_code` (HELION_PRINT_OUTPUT_CODE) or `ref_mode` (HELION_INTERPRET)"


class DuplicateStoreIndicesError(BaseError):
    """A masked store in the reference mode writes one element twice."""

    code = "duplicate-store-indices-error"
    title = "a store with `extra_mask` writes some elements of `{name}` more than once"
    help = "make the indices unique, or use `hl.atomic_add`"
    defaults: ClassVar[Mapping[str, str]] = {"name": "the tensor"}
