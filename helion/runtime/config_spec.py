"""The config space of one kernel: which keys it has, their defaults, and what is legal."""

from __future__ import annotations

import collections
import itertools
from typing import TYPE_CHECKING, Any

from helion import exc
from helion._compat import min_dot_block
from helion.codegen.choices import is_unrollable
from helion.codegen.rolling import rollable_lengths
from helion.ir.control import all_loops, is_flattenable, loop_axes, nodes_within
from helion.ir.graph import value_of
from helion.ir.symbols import BlockSymbol, expr_of, is_number, known_int
from helion.language import memory
from helion.language.matmul import PRODUCTS
from helion.runtime.config import (
    DEFAULTS,
    IGNORED_KEYS,
    KNOWN_KEYS,
    PLURAL_OF,
    Config,
    is_other_backend_key,
)
from helion.runtime.config_rules import Sites, check, is_power_of_2
from helion.runtime.defaults import BlockSizeSpec, default_keys, next_power_of_2

if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

    import torch

    from helion.frontend.program import TypedProgram
    from helion.ir.graph import DeviceProgram
    from helion.ir.symbols import Origin
    from helion.ir.tiles import BlockSize
    from helion.language.fragments import Fragment

_LARGEST_TILE = 1 << 20


class ConfigSpec:
    """What a config of one kernel may say.

    Attributes:
        block_sizes: one entry for each block size that the config chooses.
        reduction_loops: the length of each axis whose reductions may be cut into chunks.
        allowed_pid_types: legal values of `pid_type`.
    """

    def __init__(self, program: TypedProgram, actual: dict[Origin, int], interpreted: bool) -> None:
        self._program = program
        self._interpreted = interpreted
        minimums = dot_blocks(program.device)
        self.block_sizes = [
            self._block_spec(b.extent, min_dot_block() if b in minimums else b.minimum, actual)
            for b in program.device.blocks
        ]
        self.reduction_loops: list[Any] = rollable_lengths(program.device)
        self._sites = sites_of(program.device, len(self.reduction_loops))
        self.allowed_pid_types = pid_types_of(program.device)
        self.user_defined_tunables: dict[str, Fragment] = dict(program.tunables)

    def _block_spec(self, extent: Any, minimum: int, actual: dict[Origin, int]) -> BlockSizeSpec:
        hint = _evaluate(self._program, extent, actual)
        known = known_int(extent) if extent is not None else None
        largest = next_power_of_2(known) if known is not None else _LARGEST_TILE
        return BlockSizeSpec(max(hint, 1), minimum, max(largest, minimum))

    # -- defaults --------------------------------------------------------------------------------

    def default_config(self) -> Config:
        """The config that is used when none is given."""
        device = self._program.device
        keys = default_keys(
            device, _nodes(device), self.block_sizes, self._interpreted, self.reduction_loops
        )
        return self._config(**keys)

    def _config(self, **keys: Any) -> Config:
        if self.allowed_pid_types[0] != DEFAULTS["pid_type"]:
            keys["pid_type"] = self.allowed_pid_types[0]
        return Config(**keys)

    # -- validation ------------------------------------------------------------------------------

    def normalize(self, config: MutableMapping[str, Any]) -> None:
        """Fill in defaults, and refuse what does not fit the kernel; changes the mapping.

        Raises:
            InvalidConfig: the config does not fit; the text says why.
        """
        self._expand(config)
        foreign = [k for k in config if is_other_backend_key(k) and k not in KNOWN_KEYS]
        foreign += [k for k in config if k not in KNOWN_KEYS and k not in IGNORED_KEYS | {*foreign}]
        foreign = [k for k in foreign if k not in self.user_defined_tunables]
        if foreign:
            detail = f"Unsupported config keys for backend 'triton': {sorted(set(foreign))}"
            raise exc.InvalidConfig(detail=detail)
        for key, value in DEFAULTS.items():
            config.setdefault(key, list(value) if isinstance(value, list) else value)
        self._check_tunables(config)
        self._check_block_sizes(config)
        check(config, self._sites, self.allowed_pid_types)
        self._fit_chunks(config)

    def _check_tunables(self, config: MutableMapping[str, Any]) -> None:
        for name, fragment in self.user_defined_tunables.items():
            value = config.setdefault(name, fragment.default())
            if not fragment.accepts(value):
                detail = f"config[{name!r}] is {value!r}, which {fragment} does not have"
                raise exc.InvalidConfig(detail=detail)

    def _fit_chunks(self, config: MutableMapping[str, Any]) -> None:
        """A chunk that covers the whole axis is none; a very small one costs more than it saves."""
        lengths = [known_int(size) for size in self.reduction_loops]
        config["reduction_loops"] = [
            None if chunk is None or (length is not None and chunk >= length) else max(chunk, 8)
            for chunk, length in zip(config["reduction_loops"], lengths, strict=True)
        ]

    def _expand(self, config: MutableMapping[str, Any]) -> None:
        for single, plural in PLURAL_OF.items():
            if single not in config:
                continue
            if plural in config:
                raise exc.InvalidConfig(detail=f"both `{single}` and `{plural}` are given")
            value = config.pop(single)
            whole = isinstance(value, (list, tuple)) and plural != "loop_orders"
            config[plural] = list(value) if whole else [value]

    def _check_block_sizes(self, config: MutableMapping[str, Any]) -> None:
        given = config.get("block_sizes", [])
        sizes = _flatten(given if isinstance(given, (list, tuple)) else [given])
        expected = len(self.block_sizes)
        if len(sizes) < expected:
            detail = (
                f"Not enough values for config['block_sizes']: expected {expected} block sizes "
                f"(one for each tile dimension), got {len(sizes)}. Did you forget to specify block "
                "sizes for all your hl.tile() dimensions?"
            )
            raise exc.InvalidConfig(detail=detail)
        if len(sizes) > expected:
            detail = (
                f"Too many values for config['block_sizes']: expected {expected}, got {len(sizes)}"
            )
            raise exc.InvalidConfig(detail=detail)
        for size in sizes:
            if not is_power_of_2(size):
                detail = f"a block size must be a power of two, not {size!r}"
                raise exc.InvalidConfig(detail=detail)
        config["block_sizes"] = [
            max(min(size, spec.max_size), spec.min_size)
            for size, spec in zip(sizes, self.block_sizes, strict=True)
        ]


def _nodes(program: DeviceProgram) -> Iterator[torch.fx.Node]:
    """Every node, those in regions included."""
    return itertools.chain.from_iterable(nodes_within(loop.graph) for loop in program.loops)


def sites_of(program: DeviceProgram, reductions: int) -> Sites:
    """The places that the lists of a config speak of."""
    loops = all_loops(program)
    several = [loop for loop in loops if len(loop.axes) > 1]
    targets = collections.Counter(n.target for n in _nodes(program))
    return Sites(
        loop_ranks=tuple(len(loop.axes) for loop in several),
        grouped=sum(loop.is_grid for loop in several),
        flat=sum(is_flattenable(loop) for loop in loops),
        reductions=reductions,
        inner_axes=len(loop_axes(program)),
        unrollable=sum(is_unrollable(a) for a in loop_axes(program)),
        loads=targets[memory.load],
        stores=targets[memory.store],
    )


def pid_types_of(program: DeviceProgram) -> tuple[str, ...]:
    """The legal values of `pid_type`; the first is the default."""
    persistent = ("persistent_blocked", "persistent_interleaved")
    bounds = [b for loop in program.loops for a in loop.axes for b in (a.begin, a.end)]
    if not all(is_number(b) for b in bounds):
        # The host does not know how many programs there would be.
        return persistent
    axes = program.loops[0].axes
    if len(program.loops) == 1 and 2 <= len(axes) <= 3:
        return ("flat", "xyz", *persistent)
    return ("flat", *persistent)


def dot_blocks(program: DeviceProgram) -> set[BlockSize]:
    """The block sizes that are rows, columns or terms of a matrix product."""
    found: set[BlockSize] = set()
    for node in _nodes(program):
        if node.target in PRODUCTS:
            values = [value_of(a) for a in node.all_input_nodes]
            origins = [program.symbols.origin(s) for v in values for s in v.shape[-2:]]
            found |= {o.block for o in origins if isinstance(o, BlockSymbol)}
    return found


def _evaluate(program: TypedProgram, value: Any, actual: dict[Origin, int]) -> int:
    """The value that a size has in the call that is compiled for; a guess where that is unknown."""
    if value is None or not is_number(value):
        return 1024
    known = known_int(value)
    if known is not None:
        return known
    expr = expr_of(value)
    for symbol in expr.free_symbols:
        origin = program.device.symbols.origins.get(symbol)  # pyright: ignore[reportArgumentType]
        expr = expr.subs(symbol, actual.get(origin, 1024))  # pyright: ignore[reportArgumentType, reportCallIssue]
    return int(expr) if expr.is_number else 1024  # pyright: ignore[reportArgumentType]


def _flatten(values: Any) -> list[Any]:
    result: list[Any] = []
    for value in values:
        result.extend(_flatten(value) if isinstance(value, (list, tuple)) else [value])
    return result
