"""Base classes of tests: fresh caches, expected texts, and runs in the eager reference mode."""

from __future__ import annotations

import contextlib
import difflib
import io
import logging
import os
import sys
import tempfile
import unittest
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple
from unittest import mock

from helion._testing.journal import AssertExpectedJournal, same_text
from helion._testing.modes import in_ref_eager_mode, track_run_ref_calls
from helion.runtime import Kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping


class CapturedOutput(NamedTuple):
    """What was printed."""

    out: str
    err: str


class OutputCapture:
    """Collects what is printed.

    Attributes:
        stdout: a file that takes the place of standard output.
        stderr: a file that takes the place of standard error.
    """

    def __init__(self) -> None:
        self.stdout = io.StringIO()
        self.stderr = io.StringIO()

    def readouterr(self) -> CapturedOutput:
        """What was printed since the last call."""
        texts: list[str] = []
        for file in (self.stdout, self.stderr):
            texts.append(file.getvalue())
            file.seek(0)
            file.truncate()
        return CapturedOutput(*texts)


class LogCapture(logging.Handler):
    """Collects what helion logs.

    Attributes:
        records: the records, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a record."""
        self.records.append(record)

    @property
    def output(self) -> list[str]:
        """The messages."""
        return [record.getMessage() for record in self.records]

    @property
    def text(self) -> str:
        """The messages, one a line."""
        return "\n".join(self.output)


_CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "HELION_CACHE_DIR")


class TestCase(unittest.TestCase):
    """A test with empty caches of compiled code, and with kernels that know of no earlier test."""

    maxDiff = 16384

    def setUp(self) -> None:
        """Give the test caches of its own."""
        super().setUp()
        stack = contextlib.ExitStack()
        self.addCleanup(stack.close)
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        caches = {name: f"{folder}/{name.lower()}" for name in _CACHES}
        stack.enter_context(mock.patch.dict(os.environ, caches))
        for value in vars(sys.modules[type(self).__module__]).values():
            if isinstance(value, Kernel):
                value.reset()
        self._journal = AssertExpectedJournal(type(self))
        self._texts = 0

    def assertExpectedJournal(self, value: str) -> None:
        """Compare a text with the next one that the `.expected` file has for this test."""
        name = self.id().removeprefix(f"{type(self).__module__}.")
        expected = self._journal.expected(name, self._texts, value)
        self._texts += 1
        if not same_text(expected, value):
            hint = "run the test with EXPECTTEST_ACCEPT=1 to accept the new text"
            difference = difflib.unified_diff(
                (expected or "").splitlines(), value.splitlines(), "expected", "actual", lineterm=""
            )
            self.fail("\n".join([f"the text differs from {self._journal.path}", *difference, hint]))

    @contextlib.contextmanager
    def capture_output(self) -> Generator[OutputCapture]:
        """Collect what is printed in the block: `.readouterr()` gives `out` and `err`."""
        capture = OutputCapture()
        with contextlib.redirect_stdout(capture.stdout), contextlib.redirect_stderr(capture.stderr):
            yield capture

    @contextlib.contextmanager
    def capture_logs(self, level: int = logging.INFO) -> Generator[LogCapture]:
        """Collect what helion logs in the block: `.records`, `.output`, `.text`."""
        logger = logging.getLogger("helion")
        capture, before = LogCapture(), logger.level
        logger.addHandler(capture)
        logger.setLevel(level)
        try:
            yield capture
        finally:
            logger.setLevel(before)
            logger.removeHandler(capture)


# What generated code looks like says nothing about the eager reference.
_ABOUT_TEXT = frozenset(
    {
        "assertExpectedJournal",
        "assertIn",
        "assertIs",
        "assertIsInstance",
        "assertIsNot",
        "assertNotIn",
    }
)


class RefEagerTestBase:
    """A mixin for tests that also run with HELION_INTERPRET=1; stands before `TestCase`.

    There each test must run a kernel in the eager reference mode and assert something, and
    assertions about texts always hold.
    """

    _in_ref_eager_mode: ClassVar[bool] = in_ref_eager_mode()

    def _callTestMethod(self, method: Callable[[], Any]) -> None:
        base: Any = super()
        if not self._in_ref_eager_mode:
            base._callTestMethod(method)
            return
        self._asserted = False
        with track_run_ref_calls() as calls, _calls_of_assert_close(self):
            base._callTestMethod(method)
        assert calls.call_count, "the test ran no kernel in the eager reference mode"
        assert self._asserted, "the test asserted nothing"

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("assert") and type(self)._in_ref_eager_mode:
            self._asserted = True
            if name in _ABOUT_TEXT:
                return lambda *args, **kwargs: None
        return super().__getattribute__(name)

    def assertTrueIfInNormalMode(self, condition: object, msg: str | None = None) -> None:
        """Like `assertTrue`, except in the eager reference mode."""
        assert self._in_ref_eager_mode or condition, msg

    def assertEqualCode(self, first: str, second: str, msg: str | None = None) -> None:
        """Both texts of code are the same, except in the eager reference mode."""
        assert self._in_ref_eager_mode or first == second, msg or "the codes differ"

    def assertNotEqualCode(self, first: str, second: str, msg: str | None = None) -> None:
        """The texts of code differ, except in the eager reference mode."""
        assert self._in_ref_eager_mode or first != second, msg or "the codes are the same"

    def getUserDefinedTunable(self, tunables: Mapping[str, Any], name: str) -> Any:
        """A tunable of a config space; None in the eager reference mode, which has none."""
        return None if self._in_ref_eager_mode else tunables.get(name)


class RefEagerTestDisabled:
    """A mixin for tests that mean nothing with HELION_INTERPRET=1; stands before `TestCase`."""

    _in_ref_eager_mode: ClassVar[bool] = in_ref_eager_mode()

    def setUp(self) -> None:
        """Skip in the eager reference mode."""
        if self._in_ref_eager_mode:
            raise unittest.SkipTest("not in the eager reference mode")
        super().setUp()  # pyright: ignore[reportAttributeAccessIssue]


@contextlib.contextmanager
def _calls_of_assert_close(test: Any) -> Generator[None]:
    """Count `torch.testing.assert_close` among the test's assertions."""
    import torch

    compare = torch.testing.assert_close

    def counted(*args: Any, **kwargs: Any) -> None:
        test._asserted = True
        compare(*args, **kwargs)

    with mock.patch.object(torch.testing, "assert_close", counted):
        yield
