"""Which tests this machine can run, and what makes every run the same."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile

import hypothesis
import pytest
from golden import Golden

DEFAULT_GIB = 32

# The same examples in each run, none remembered; no deadline, since an interpreted kernel is slow.
hypothesis.settings.register_profile("same", derandomize=True, database=None, deadline=None)
hypothesis.settings.load_profile("same")


def pytest_configure(config: pytest.Config) -> None:
    # No test reads what an earlier run compiled.
    config.helion_cache = tempfile.mkdtemp(prefix="helion_test_")
    os.environ["HELION_CACHE_DIR"] = config.helion_cache


def pytest_unconfigure(config: pytest.Config) -> None:
    shutil.rmtree(config.helion_cache, ignore_errors=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--large", action="store_true", help="also run the tests marked `large`")


def pytest_runtest_setup(item: pytest.Item) -> None:
    large = item.get_closest_marker("large")
    if large and not item.config.getoption("--large"):
        pytest.skip("needs --large")
    if large or item.get_closest_marker("gpu"):
        _skip_without_memory(large.kwargs.get("gib", DEFAULT_GIB) if large else 0)
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """Compares texts with those in the `.expected` file beside the test."""
    return Golden(request.path.with_suffix(".expected"))


def _skip_without_memory(gib: int) -> None:
    # Not at the top: the tests that read files alone should not wait seconds for torch.
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    if gib:
        torch.cuda.empty_cache()
        free = torch.cuda.mem_get_info()[0] / 2**30
        if free < gib:
            pytest.skip(f"needs {gib} GiB of free GPU memory, finds {free:.0f}")
