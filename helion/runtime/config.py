"""A config: the tunable choices for one kernel, as an immutable mapping.

Nothing is checked here. Whether a config fits a kernel is known where its `config_spec` is; that
code finds the tables it needs (`DEFAULTS`, `PLURAL_OF`, keys of other backends) in this file.
"""

from __future__ import annotations

import copy
import json
import keyword
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeVar, overload

__all__ = [
    "AMD_ONLY_KEYS",
    "DEFAULTS",
    "IGNORED_KEYS",
    "KNOWN_KEYS",
    "OTHER_BACKEND_KEYS",
    "OTHER_BACKEND_PREFIXES",
    "PLURAL_OF",
    "Config",
    "ConfigSpecLike",
    "is_other_backend_key",
]

DEFAULTS: Mapping[str, object] = MappingProxyType(
    {
        "loop_orders": [],
        "flatten_loops": [],
        "l2_groupings": [],
        "reduction_loops": [],
        "range_unroll_factors": [],
        "range_num_stages": [],
        "range_multi_buffers": [],
        "range_flattens": [],
        "range_warp_specializes": [],
        "static_ranges": [],
        "num_warps": 4,
        "num_stages": 1,
        "pid_type": "flat",
        "num_sm_multiplier": 1,
        "maxnreg": None,
        "indexing": "pointer",
        "atomic_indexing": "pointer",
        "load_eviction_policies": [],
        "load_cache_modifiers": [],
        "store_cache_modifiers": [],
        "epilogue_subtile": None,
        "advanced_controls_file": "",
    }
)
"""What a key means when it is left out; `block_sizes` has no default."""

KNOWN_KEYS: frozenset[str] = frozenset({"block_sizes", *DEFAULTS})
"""Keys of the Triton backend. Any other key is a tunable of the kernel, or a mistake."""

PLURAL_OF: Mapping[str, str] = MappingProxyType(
    {
        "block_size": "block_sizes",
        "loop_order": "loop_orders",
        "flatten_loop": "flatten_loops",
        "l2_grouping": "l2_groupings",
        "reduction_loop": "reduction_loops",
        "range_unroll_factor": "range_unroll_factors",
        "range_num_stage": "range_num_stages",
        "range_multi_buffer": "range_multi_buffers",
        "range_flatten": "range_flattens",
        "range_warp_specialize": "range_warp_specializes",
        "static_range": "static_ranges",
    }
)
"""The key for which a singular spelling stands."""

IGNORED_KEYS: frozenset[str] = frozenset({"xcd_remap"})
"""Keys that mean nothing here and do no harm."""

AMD_ONLY_KEYS: frozenset[str] = frozenset({"waves_per_eu", "matrix_instr_nonkdim"})
"""Keys that only AMD devices know."""

OTHER_BACKEND_KEYS: frozenset[str] = frozenset({"num_threads", "num_ctas", "occupancy"})
"""Keys of backends that this package does not have; see also `OTHER_BACKEND_PREFIXES`."""

OTHER_BACKEND_PREFIXES: tuple[str, ...] = ("pallas_", "tcgen05_", "cute_")

_T = TypeVar("_T")


def is_other_backend_key(key: str) -> bool:
    """Whether a config key belongs to a backend that this package does not have."""
    return key in OTHER_BACKEND_KEYS or key.startswith(OTHER_BACKEND_PREFIXES)


class ConfigSpecLike(Protocol):
    """The part of a kernel's search space that `Config.minimize` needs."""

    def default_config(self) -> Config:
        """The config that is used when none is given."""
        ...


class _Key(Generic[_T]):
    """A property that reads one key, or its default when the config leaves it out."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, config: None, owner: type) -> _Key[_T]: ...
    @overload
    def __get__(self, config: Config, owner: type) -> _T: ...
    def __get__(self, config: Config | None, owner: type) -> Any:
        if config is None:
            return self
        if self.name in config.config or self.name not in DEFAULTS:
            return config.config[self.name]
        # A copy: writing into an absent list must not change the default of every other config.
        return copy.copy(DEFAULTS[self.name])


class Config(Mapping[str, Any]):
    """Tunable choices for one kernel; no choice changes what the kernel computes.

    Keys that are not known here are values of the kernel's own tunables (`hl.register_tunable`).

    Example: `Config(block_sizes=[64, 128], num_warps=8)`

    Attributes:
        config: the keys that were given, as a plain dict.
    """

    block_sizes = _Key[list[int]]()
    loop_orders = _Key[list[list[int]]]()
    flatten_loops = _Key[list[bool]]()
    l2_groupings = _Key[list[int]]()
    reduction_loops = _Key[list[int | None]]()
    range_unroll_factors = _Key[list[int]]()
    range_num_stages = _Key[list[int]]()
    range_multi_buffers = _Key[list[bool | None]]()
    range_flattens = _Key[list[bool | None]]()
    range_warp_specializes = _Key[list[bool | None]]()
    static_ranges = _Key[list[bool]]()
    num_warps = _Key[int]()
    num_stages = _Key[int]()
    pid_type = _Key[str]()
    num_sm_multiplier = _Key[int]()
    maxnreg = _Key[int | None]()
    indexing = _Key[str | list[str]]()
    atomic_indexing = _Key[str | list[str]]()
    load_eviction_policies = _Key[list[str]]()
    load_cache_modifiers = _Key[list[str]]()
    store_cache_modifiers = _Key[list[str]]()
    epilogue_subtile = _Key[int | None]()
    advanced_controls_file = _Key[str]()

    def __init__(self, /, **keys: Any) -> None:
        """Makes a config of the keys that are not None; lists are copied, tuples become lists."""
        self.config: dict[str, Any] = {
            name: _own(value) for name, value in keys.items() if value is not None
        }

    def __getitem__(self, key: str) -> Any:
        return self.config[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self.config)

    def __len__(self) -> int:
        return len(self.config)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Config):
            return self.config == other.config
        return self.config == other if isinstance(other, dict) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset((name, _hashable(value)) for name, value in self.config.items()))

    def __str__(self) -> str:
        names = sorted(self.config)
        plain = [name for name in names if name.isidentifier() and not keyword.iskeyword(name)]
        parts = [f"{name}={self.config[name]!r}" for name in plain]
        # A tunable may have a name that no keyword argument can have.
        odd = {name: self.config[name] for name in names if name not in plain}
        return f"Config({', '.join([*parts, f'**{odd!r}'] if odd else parts)})"

    def __repr__(self) -> str:
        return f"helion.{self}"

    def to_json(self) -> str:
        """The config as a JSON object."""
        return json.dumps(self.config, indent=2)

    @classmethod
    def from_json(cls, text: str) -> Config:
        """Reads what `to_json` wrote.

        Raises:
            ValueError: the text is not a JSON object.
        """
        keys = json.loads(text)
        if not isinstance(keys, dict):
            raise ValueError(f"a config must be a JSON object, got a {type(keys).__name__}")
        return cls.from_dict(keys)

    @classmethod
    def from_dict(cls, keys: Mapping[str, Any]) -> Config:
        """A config of a mapping's keys; the mapping stays as it is."""
        return cls(**keys)

    def save(self, path: str | Path) -> None:
        """Writes the config as JSON; makes parent folders.

        Whoever reads the path meanwhile sees the old file or the new one, never half of one.
        """
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        # In the same folder: a rename is atomic within one file system only. Not by `tempfile`,
        # whose files are private to the user even where the umask would share a cache.
        draft = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        try:
            draft.write_text(self.to_json())
            draft.replace(target)
        finally:
            draft.unlink(missing_ok=True)

    @classmethod
    def load(cls, path: str | Path) -> Config:
        """Reads what `save` wrote."""
        return cls.from_json(Path(path).read_text())

    def minimize(self, config_spec: ConfigSpecLike) -> Config:
        """The same choices without those equal to the kernel's defaults; `block_sizes` stay."""
        defaults = {**DEFAULTS, **config_spec.default_config()}
        absent = object()
        return Config(
            **{
                name: value
                for name, value in self.config.items()
                if name == "block_sizes" or value != defaults.get(name, absent)
            }
        )


def _own(value: Any) -> Any:
    """A copy that shares no list with the caller; tuples become lists, as they do in JSON."""
    return [_own(item) for item in value] if isinstance(value, (list, tuple)) else value


def _hashable(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_hashable(item) for item in value)
    if isinstance(value, dict):
        return frozenset((name, _hashable(item)) for name, item in value.items())
    return value
