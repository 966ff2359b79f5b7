"""What the keys of a config may say, apart from block sizes: one table, one rule for each key."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from helion import exc

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, MutableMapping


@dataclasses.dataclass(frozen=True)
class Sites:
    """How many entries each list of a config may have: one for each place that it speaks of.

    Attributes:
        loop_ranks: the number of axes of each loop with several, in source order.
        grouped: loops with several axes that become the grid.
        flat: calls of `hl.tile` with several axes.
        reductions: whole axes whose reductions may be cut into chunks.
        inner_axes: axes of loops inside of programs.
        unrollable: those of them that may be unrolled.
        loads: loads, in order of execution.
        stores: stores.
        atomics: atomic operations.
    """

    loop_ranks: tuple[int, ...] = ()
    grouped: int = 0
    flat: int = 0
    reductions: int = 0
    inner_axes: int = 0
    unrollable: int = 0
    loads: int = 0
    stores: int = 0
    atomics: int = 0


@dataclasses.dataclass(frozen=True)
class ListRule:
    """A key whose value is a list: how many entries, and what an entry is."""

    count: Callable[[Sites], int]
    is_legal: Callable[[Any], bool]
    text: str
    default: Any


@dataclasses.dataclass(frozen=True)
class ValueRule:
    """A key with one value."""

    is_legal: Callable[[Any], bool]
    text: str


def is_power_of_2(value: Any) -> bool:
    """Whether a value is 1, 2, 4, ..."""
    return is_int(value) and value > 0 and value & (value - 1) == 0


def is_int(value: Any) -> bool:
    """Whether a value is an int and no bool."""
    return isinstance(value, int) and not isinstance(value, bool)


def _one_of(*values: Any) -> Callable[[Any], bool]:
    return lambda v: any(v is w or (type(v) is type(w) and v == w) for w in values)


def _loops(sites: Sites) -> int:
    return sites.inner_axes + 1


_SWITCH = _one_of(None, True, False)
_SWITCH_TEXT = "None, True or False"

LIST_RULES: Mapping[str, ListRule] = {
    "l2_groupings": ListRule(
        lambda s: s.grouped, lambda v: is_power_of_2(v) and v <= 64, "a power of two up to 64", 1
    ),
    "flatten_loops": ListRule(lambda s: s.flat, _one_of(True, False), "True or False", False),
    "reduction_loops": ListRule(
        lambda s: s.reductions,
        lambda v: v is None or is_power_of_2(v),
        "None or a power of two",
        None,
    ),
    "range_unroll_factors": ListRule(
        _loops, lambda v: is_int(v) and 0 <= v <= 4, "an int from 0 to 4", 0
    ),
    "range_num_stages": ListRule(
        _loops, lambda v: is_int(v) and 0 <= v <= 4, "an int from 0 to 4", 0
    ),
    "range_multi_buffers": ListRule(_loops, _SWITCH, _SWITCH_TEXT, None),
    "range_flattens": ListRule(_loops, _SWITCH, _SWITCH_TEXT, None),
    "range_warp_specializes": ListRule(_loops, _SWITCH, _SWITCH_TEXT, None),
    "static_ranges": ListRule(lambda s: s.unrollable, _one_of(True, False), "True or False", False),
    "load_eviction_policies": ListRule(
        lambda s: s.loads, _one_of("", "first", "last"), '"", "first" or "last"', ""
    ),
    "load_cache_modifiers": ListRule(lambda s: s.loads, _one_of("", ".cg"), '"" or ".cg"', ""),
    "store_cache_modifiers": ListRule(
        lambda s: s.stores, _one_of("", ".cs", ".wt"), '"", ".cs" or ".wt"', ""
    ),
}

_INDEXING = ("pointer", "block_ptr", "tensor_descriptor")

VALUE_RULES: Mapping[str, ValueRule] = {
    "num_warps": ValueRule(lambda v: is_power_of_2(v) and v <= 32, "a power of two up to 32"),
    "num_stages": ValueRule(lambda v: is_int(v) and 1 <= v <= 8, "an int from 1 to 8"),
    "num_sm_multiplier": ValueRule(
        lambda v: is_power_of_2(v) and v <= 128, "a power of two up to 128"
    ),
    "maxnreg": ValueRule(_one_of(None, 32, 64, 128, 256), "None, 32, 64, 128 or 256"),
    "epilogue_subtile": ValueRule(_one_of(None, True, 2, 4), "None, 2 or 4"),
    "advanced_controls_file": ValueRule(lambda v: isinstance(v, str), "a path"),
}


def check(config: MutableMapping[str, Any], sites: Sites, pid_types: tuple[str, ...]) -> None:
    """Refuse illegal values, and fill up short lists; changes the mapping.

    Raises:
        InvalidConfig: a value is not legal; the text says which and why.
    """
    for key, rule in LIST_RULES.items():
        config[key] = _entries(key, config[key], rule, rule.count(sites))
    for key, value_rule in VALUE_RULES.items():
        if not value_rule.is_legal(config[key]):
            raise _illegal(f"{key} is {value_rule.text}, not {config[key]!r}")
    _check_orders(config, sites)
    _check_indexing(config, "indexing", sites.loads + sites.stores, _INDEXING)
    _check_indexing(config, "atomic_indexing", sites.atomics, ("pointer", "tensor_descriptor"))
    _check_programs(config, pid_types)


def _entries(key: str, given: Any, rule: ListRule, count: int) -> list[Any]:
    values = list(given) if isinstance(given, (list, tuple)) else [given]
    if len(values) > count:
        raise _illegal(f"Too many values for config['{key}']: expected {count}, got {len(values)}")
    for value in values:
        if not rule.is_legal(value):
            raise _illegal(f"an entry of config['{key}'] is {rule.text}, not {value!r}")
    return values + [rule.default] * (count - len(values))


def _check_orders(config: MutableMapping[str, Any], sites: Sites) -> None:
    orders: list[Any] = list(config["loop_orders"])
    ranks = sites.loop_ranks
    if len(orders) > len(ranks):
        raise _illegal(
            f"Too many values for config['loop_orders']: expected {len(ranks)}, got {len(orders)}"
        )
    for order, rank in zip(orders, ranks, strict=False):
        if not isinstance(order, (list, tuple)) or sorted(order) != list(range(rank)):
            raise _illegal(f"{order!r} in config['loop_orders'] is no permutation of {rank} axes")
    config["loop_orders"] = orders + [list(range(rank)) for rank in ranks[len(orders) :]]


def _check_indexing(
    config: MutableMapping[str, Any], key: str, count: int, legal: tuple[str, ...]
) -> None:
    given = config[key]
    values = [given] * count if isinstance(given, str) else list(given)
    if len(values) > count:
        raise _illegal(f"Too many values for config['{key}']: expected {count}, got {len(values)}")
    for value in [given] if isinstance(given, str) else values:
        if value not in legal:
            names = ", ".join(repr(v) for v in legal)
            raise _illegal(f"an entry of config['{key}'] is one of {names}, not {value!r}")
    config[key] = values + ["pointer"] * (count - len(values))


def _check_programs(config: MutableMapping[str, Any], pid_types: tuple[str, ...]) -> None:
    pid_type = config["pid_type"]
    if pid_type not in pid_types:
        raise _illegal(f"pid_type is one of {list(pid_types)} for this kernel, not {pid_type!r}")
    if pid_type.startswith("persistent"):
        return
    for key, default in (("num_sm_multiplier", 1), ("maxnreg", None)):
        if config[key] != default:
            raise _illegal(f"{key} needs a persistent pid_type, not {pid_type!r}")


def _illegal(detail: str) -> exc.InvalidConfig:
    return exc.InvalidConfig(detail=detail)
