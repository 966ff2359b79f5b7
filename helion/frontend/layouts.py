"""Which strides of host tensors are known before the host part runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._pytree import tree_leaves

from helion.ir.symbols import HostNumber, known_int

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from helion.ir.symbols import Symbols

# The result is contiguous, whatever went in.
_CONTIGUOUS = frozenset({"contiguous", "ravel", "new_empty", "new_zeros", "new_ones", "new_full"})
# The result is a view or a copy, as sizes and strides permit.
_VIEW_OR_COPY = frozenset({"reshape", "reshape_as", "flatten"})


class Layouts:
    """Host tensors whose strides only running can tell.

    Whether a reshape copies, and how `empty_like` lays out its result, torch decides from the sizes
    and strides that it is given. For symbolic ones that is a guess, unless all are contiguous: the
    launch then passes the strides that there are.
    """

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols
        # By id; the tensors are kept, so that no id is used again.
        self._guessed: dict[int, FakeTensor] = {}
        self._at_launch: dict[tuple[str, int], torch.Tensor] = {}

    def note(
        self, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any], value: Any
    ) -> None:
        """Remember the tensors in the result of a host call whose strides are guesses."""
        operands = [getattr(function, "__self__", None), *args, *kwargs.values()]
        given = [t for t in tree_leaves(operands) if isinstance(t, torch.Tensor)]
        name = getattr(function, "__name__", "")
        if name in _CONTIGUOUS or kwargs.get("memory_format") is torch.contiguous_format:
            return
        for made in tree_leaves(value):
            fake = isinstance(made, FakeTensor)
            numbers = (*made.shape, *made.stride()) if fake else ()
            symbolic = any(known_int(n) is None for n in numbers)
            if symbolic and self._is_guess(name, given, made):
                self._guessed[id(made)] = made

    def _is_guess(self, name: str, given: Sequence[torch.Tensor], made: FakeTensor) -> bool:
        if any(id(g) in self._guessed for g in given):
            return True
        if all(g.is_contiguous() for g in given):
            return False
        storages = [StorageWeakRef(g.untyped_storage()) for g in given]
        is_view = StorageWeakRef(made.untyped_storage()) in storages
        return not is_view or name in _VIEW_OR_COPY

    def at_launch(self, value: FakeTensor, text: str) -> torch.Tensor:
        """The tensor that host text `text` holds, with strides that the launch passes if needed."""
        if id(value) not in self._guessed:
            return value
        key = (text, id(value))
        if key not in self._at_launch:
            origins = [HostNumber(f"{text}.stride({d})", int) for d in range(value.dim())]
            strides = [self._symbols.size(origin) for origin in origins]
            with self._symbols.fake_mode:
                self._at_launch[key] = torch.empty_strided(
                    value.shape, strides, dtype=value.dtype, device=value.device
                )
        return self._at_launch[key]
