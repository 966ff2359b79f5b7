"""The state of one compilation: everything that the front end's parts share, as an argument."""

from __future__ import annotations

import dataclasses
import itertools
import re
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from helion import exc
from helion.frontend.evaluate import Unwinding
from helion.frontend.trace import Recorder
from helion.frontend.types import TypePrinter
from helion.ir.symbols import (
    SYMBOLIC,
    HostNumber,
    HostSize,
    Origin,
    Symbols,
    is_number,
    kind_of,
    known_int,
    same,
)
from helion.ir.tiles import HostTensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from helion.frontend.scope import HostImports
    from helion.ir.tiles import BlockSize, TileAxis
    from helion.language.fragments import Fragment


@dataclasses.dataclass(frozen=True)
class Options:
    """What the author's settings mean for the front end.

    Attributes:
        static_shapes: whether sizes and strides are compiled in.
        index_dtype: the dtype of indices.
        warn: reports a warning.
        tunables: the config's values of what `hl.register_tunable` names; else their defaults.
        config_keys: names that no tunable may have.
    """

    static_shapes: bool
    index_dtype: torch.dtype
    warn: Callable[[exc.BaseWarning], None]
    tunables: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    config_keys: frozenset[str] = frozenset()


class Restart(Unwinding):
    """Start again with what was learned of some numbers.

    Attributes:
        constants: numbers that are to be compiled in.
        equal: numbers that an assertion says are another number, or a known one.
    """

    def __init__(
        self,
        constants: Mapping[Origin, int] | None = None,
        equal: Mapping[Origin, Origin | int] | None = None,
    ) -> None:
        super().__init__()
        self.constants = constants or {}
        self.equal = equal or {}


@dataclasses.dataclass
class Compilation:
    """State of one compilation.

    Attributes:
        options: settings.
        device: where the kernel runs.
        symbols: its symbols.
        recorder: records torch operations of device code.
        imports: host values that device code reads.
        blocks: block sizes, in order of their first appearance.
        calls: numbers for calls that need one of their own.
        loops: axes of the loops around the code that is being interpreted, outermost first.
        constants: sizes and ints that `hl.specialize` asked for, with their values.
        tunables: what `hl.register_tunable` registered.
        equal: numbers that host assertions say are another number, or a known one.
        actual: the values that sizes, strides and ints have in the call that is compiled for.
        grid_rank: how many of `loops` belong to the grid.
        parameters: where each parameter of the kernel stands.
    """

    options: Options
    device: torch.device
    symbols: Symbols
    imports: HostImports
    recorder: Recorder = dataclasses.field(init=False)
    blocks: list[BlockSize] = dataclasses.field(default_factory=list)
    calls: Iterator[int] = dataclasses.field(default_factory=itertools.count)
    loops: list[TileAxis] = dataclasses.field(default_factory=list)
    constants: dict[Origin, int] = dataclasses.field(default_factory=dict)
    tunables: dict[str, Fragment] = dataclasses.field(default_factory=dict)
    equal: dict[Origin, Origin | int] = dataclasses.field(default_factory=dict)
    actual: dict[Origin, int] = dataclasses.field(default_factory=dict)
    _numbers: dict[Origin, Any] = dataclasses.field(default_factory=dict)
    grid_rank: int = 0
    parameters: dict[str, exc.Span] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        self.recorder = Recorder(self.symbols, lambda: self.loops)

    def fake(self, value: Any, text: str) -> Any:
        """A real value of the host as the front end interprets it: tensors become fake ones."""
        if isinstance(value, FakeTensor):
            return value
        if isinstance(value, torch.Tensor):
            return self.fake_tensor(value, text)
        if isinstance(value, (tuple, list)) and not hasattr(value, "_fields"):
            return type(value)(self.fake(v, f"{text}[{i}]") for i, v in enumerate(value))
        if isinstance(value, dict):
            return {k: self.fake(v, f"{text}[{k!r}]") for k, v in value.items()}
        return value

    def fake_tensor(self, value: torch.Tensor, text: str) -> torch.Tensor:
        """A fake tensor of the same dtype and layout; sizes are symbols for dynamic shapes."""
        if self.options.static_shapes:
            sizes, strides = list(value.shape), list(value.stride())
        else:
            static = getattr(value, "_dynamo_static_indices", None) or ()  # `mark_static` sets it
            sizes = [
                n if d in static else self.size(n, HostSize(text, d, "size"))
                for d, n in enumerate(value.shape)
            ]
            strides = self._strides(value, text, sizes)
        with self.symbols.fake_mode:
            return torch.empty_strided(sizes, strides, dtype=value.dtype, device=value.device)

    def size(self, value: int, origin: HostSize) -> Any:
        """A size or stride of an argument: a symbol, or the value that was asked for."""
        self.actual[origin] = value
        known = self._known(origin)
        if known is None:
            known = self._numbers[origin] = self.symbols.size(origin)
        return known

    def number(self, value: Any, text: str) -> Any:
        """A run-time number of the host: a symbol, or the value that was asked for."""
        origin = HostNumber(text, kind_of(value))
        if isinstance(value, int):
            self.actual[origin] = value
        known = self._known(origin)
        if known is None:
            known = self._numbers[origin] = self.symbols.number(origin.kind, origin)
        return known

    def _known(self, origin: Origin) -> Any:
        """The constant that a number is, or the symbol that stands for it too."""
        if origin in self.constants:
            return self.constants[origin]
        same_as = self.equal.get(origin)
        return same_as if isinstance(same_as, int) else self._numbers.get(same_as or origin)

    def unify(self, left: Any, right: Any) -> None:
        """Note that two numbers are the same; asks for a new start if that was not known."""
        if not (is_number(left) and is_number(right)) or same(left, right):
            return
        origins = [self.symbols.origin(v) for v in (left, right)]
        known = [known_int(v) for v in (left, right)]
        order = list(self._numbers)
        places = [order.index(o) if o in order else -1 for o in origins]
        later = places.index(max(places))
        target = known[1 - later] if known[1 - later] is not None else origins[1 - later]
        if places[later] >= 0 and (isinstance(target, int) or places[1 - later] >= 0):
            raise Restart(equal={origins[later]: target})  # pyright: ignore[reportArgumentType]

    def specialize(self, value: Any) -> Any:
        """The value of a number in this call; asks for a new start with its symbols constant."""
        if known_int(value) is not None:
            return known_int(value)
        origins = self.symbols.origins_in(value)
        raise Restart({o: self.actual[o] for o in origins})

    def cause(self, value: Any) -> tuple[exc.Related, ...]:
        """Where a value enters the kernel, if it is one of its parameters or an item of one."""
        origin = self.symbols.origin(value) if isinstance(value, SYMBOLIC) else value
        text = origin.text if isinstance(origin, (HostNumber, HostTensor)) else ""
        name = re.split(r"[.\[]", text)[0]
        if name not in self.parameters:
            return ()
        return (exc.Related(self.parameters[name], f"`{name}` enters the kernel here"),)

    def show(self, value: Any) -> str:
        """A value's type, for messages."""
        return TypePrinter(self.symbols).show(value)

    def show_sizes(self, sizes: Any) -> str:
        """Sizes in the author's names, for messages."""
        return TypePrinter(self.symbols).sizes(sizes)

    def _strides(self, value: torch.Tensor, text: str, sizes: list[Any]) -> list[Any]:
        if not value.is_contiguous():
            return [self.size(n, HostSize(text, d, "stride")) for d, n in enumerate(value.stride())]
        strides: list[Any] = [1] * value.dim()
        for d in range(value.dim() - 2, -1, -1):
            strides[d] = strides[d + 1] * sizes[d + 1]
        return strides

    def number_tensor(self, value: Any, dtype: torch.dtype | None = None) -> torch.Tensor:
        """A number as a 0-d device tensor: int32 or int64, float32 or bool if not said."""
        if dtype is None:
            kind = kind_of(value)
            dtype = {bool: torch.bool, int: self.options.index_dtype, float: torch.float32}[kind]
            if kind is int and isinstance(value, int) and not -(2**31) <= value < 2**31:
                dtype = torch.int64
        with self.symbols.fake_mode:
            result = torch.empty([], dtype=dtype, device=self.device)
        self.recorder.record(torch.ops.prims.scalar_tensor.default, (value,), result)
        return result

    def new_tensor(self, sizes: Any, dtype: torch.dtype) -> torch.Tensor:
        """A fake tensor on the kernel's device."""
        with self.symbols.fake_mode:
            return torch.empty(list(sizes), dtype=dtype, device=self.device)
