"""Names of parts of the language that this package leaves out.

Programs mention them in `except` clauses and in `ignore_warnings`; nothing here raises them.
"""

from __future__ import annotations

from helion.exc.base import BaseError, BaseWarning

__all__ = [
    "AutodiffKernelNotCalled",
    "AutodiffNotSupported",
    "CuteBackendUnavailable",
    "InconsistantConfigsAcrossRanks",
    "MissingEnableTile",
    "NoAOTHeuristicWarning",
    "ProcessGroupNameNotFound",
]


class AutodiffKernelNotCalled(BaseError):
    """Automatic differentiation of a kernel that has not run."""

    code = "autodiff-kernel-not-called"
    title = "the kernel must run once before it can be differentiated"


class AutodiffNotSupported(BaseError):
    """Automatic differentiation of an operation without a derivative."""

    code = "autodiff-not-supported"
    title = "automatic differentiation does not support `{api}`"


class MissingEnableTile(BaseError):
    """The tile backend is not switched on."""

    code = "missing-enable-tile"
    title = "the tile backend is not switched on"


class CuteBackendUnavailable(BaseError):
    """The cute backend is not installed."""

    code = "cute-backend-unavailable"
    title = "the cute backend is not available"


class InconsistantConfigsAcrossRanks(BaseError):
    """Processes of one group chose different configs. The name is spelled as users know it."""

    code = "inconsistent-configs-across-ranks"
    title = "the processes of the group chose different configs"


class ProcessGroupNameNotFound(BaseWarning):
    """A kernel names a process group that does not exist."""

    code = "process-group-name-not-found"
    title = "the process group `{name}` does not exist"


class NoAOTHeuristicWarning(BaseWarning):
    """A kernel tuned ahead of time has no heuristic."""

    code = "no-aot-heuristic-warning"
    title = "no heuristic was found for the kernel `{name}`"
