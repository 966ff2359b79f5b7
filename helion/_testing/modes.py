"""Which way kernels ran: generated code, or the eager reference."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from unittest import mock

from helion.runtime import RefMode, Settings, reference
from helion.runtime.bound import BoundKernel

if TYPE_CHECKING:
    from collections.abc import Generator


def in_ref_eager_mode() -> bool:
    """Whether kernels run in the eager reference mode unless they say otherwise."""
    return Settings().ref_mode is RefMode.EAGER


@contextlib.contextmanager
def track_run_ref_calls() -> Generator[mock.MagicMock]:
    """Count runs of kernels in the eager reference mode: `.call_count` of what it yields."""
    with mock.patch.object(reference, "EagerMode", wraps=reference.EagerMode) as calls:
        yield calls


@contextlib.contextmanager
def assert_ref_eager_mode() -> Generator[None]:
    """Fail unless a kernel in the block runs in the eager reference mode, and none is compiled."""
    with _track_compilations() as compiled, track_run_ref_calls() as calls:
        yield
    assert calls.call_count, "no kernel ran in the eager reference mode"
    assert not compiled.call_count, "a kernel was compiled"


@contextlib.contextmanager
def assert_helion_compilation() -> Generator[None]:
    """Fail unless a kernel in the block is compiled, and none runs in the eager reference mode."""
    with _track_compilations() as compiled, track_run_ref_calls() as calls:
        yield
    assert compiled.call_count, "no kernel was compiled"
    assert not calls.call_count, "a kernel ran in the eager reference mode"


def assert_helion_ref_mode(
    ref_mode: RefMode = RefMode.OFF,
) -> contextlib.AbstractContextManager[None]:
    """Fail unless the kernels in the block run as `ref_mode` says."""
    return assert_ref_eager_mode() if ref_mode is RefMode.EAGER else assert_helion_compilation()


def _track_compilations() -> contextlib.AbstractContextManager[mock.MagicMock]:
    compile_config = BoundKernel.compile_config
    return mock.patch.object(
        BoundKernel, "compile_config", autospec=True, side_effect=compile_config
    )
