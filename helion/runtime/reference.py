"""The eager reference mode: a kernel runs as ordinary Python, operation by operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from helion import _compat, exc
from helion.language._eager import EagerMode
from helion.runtime.settings import RefMode, Settings
from helion.runtime.specialization import find_device

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


class Reference:
    """Runs a kernel's function on real tensors; nothing is compiled.

    Args:
        fn: the function.
    """

    def __init__(self, fn: Callable[..., Any]) -> None:
        self._fn = fn
        self._warned: set[str] = set()

    def run(self, args: Sequence[Any], config: Mapping[str, Any], settings: Settings) -> Any:
        """Run with a config, of which only tunables matter here.

        Raises:
            IncompatibleInterpretModes: Triton's interpreter is asked for as well.
            RefEagerModeCodePrintError: the settings ask for generated code.
            NoTensorArgs: no argument tells on which device the kernel runs.
            SeedOutOfRange: an int of more than 64 bits.
        """
        if settings.ref_mode is RefMode.EAGER and settings.print_output_code:
            raise exc.RefEagerModeCodePrintError()
        if _compat.user_asked_for_interpreter() and Settings().ref_mode is RefMode.EAGER:
            raise exc.IncompatibleInterpretModes()
        device = find_device(args)
        if device is None:
            raise exc.NoTensorArgs()

        for value in args:
            # A larger int can only be a seed, which other modes refuse too.
            if type(value) is int and not -(2**63) <= value < 2**64:
                raise exc.SeedOutOfRange(value=value)

        def warn(warning: exc.BaseWarning) -> None:
            if str(warning) not in self._warned:
                self._warned.add(str(warning))
                exc.emit_warning(warning, settings.ignore_warnings)

        with EagerMode(device, config, warn), torch.no_grad():
            return self._fn(*args)
