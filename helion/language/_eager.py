"""The eager reference: tiles over real tensors, and the mode that routes calls to references."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

from helion.language._op import Op

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclasses.dataclass(frozen=True)
class EagerTile:
    """A tile while a kernel runs eagerly: the real indices [begin, end), without padding."""

    begin: int
    end: int
    block_size: int
    range_begin: int
    range_end: int
    device: torch.device
    shift: int = 0

    @property
    def index(self) -> torch.Tensor:
        """The indices of its elements."""
        first, last = self.begin + self.shift, self.end + self.shift
        return torch.arange(first, last, dtype=torch.int32, device=self.device)

    @property
    def id(self) -> int:
        """The ordinal of the tile."""
        return self.begin // self.block_size

    @property
    def count(self) -> int:
        """How many tiles the loop has."""
        return -(-(self.range_end - self.range_begin) // self.block_size)

    def __add__(self, by: int) -> EagerTile:
        return dataclasses.replace(self, shift=self.shift + by)

    def __sub__(self, by: int) -> EagerTile:
        return self + -by

    def __len__(self) -> int:
        return self.end - self.begin

    def __index__(self) -> int:
        return self.end - self.begin


class EagerMode(TorchFunctionMode):
    """Runs a kernel as ordinary Python: operations of the language go to their references.

    Attributes:
        device: where the kernel runs.
        block_sizes: block sizes that the author's loops name; a tile without one is the whole axis.
    """

    def __init__(self, device: torch.device, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.device = device
        self.config = config

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """References for the language's operations, subscripts with tiles, and torch as it is."""
        del types
        kwargs = kwargs or {}
        if isinstance(func, Op):
            return func.run_reference(self, args, kwargs)
        if func is torch.Tensor.__getitem__ and _mentions_tile(args[1]):
            return load_eagerly(args[0], as_items(args[1]), None)
        if func is torch.Tensor.__setitem__ and _mentions_tile(args[1]):
            store_eagerly(args[0], as_items(args[1]), args[2], None)
            return None
        args, kwargs = tree_map(_as_size, (args, kwargs))
        return func(*args, **kwargs)


def _as_size(value: Any) -> Any:
    return len(value) if isinstance(value, EagerTile) else value


def as_items(index: Any) -> list[Any]:
    """The items of a subscript."""
    if isinstance(index, (tuple, list)):
        return [i for item in index for i in (item if isinstance(item, tuple) else (item,))]
    return [index]


def _mentions_tile(index: Any) -> bool:
    return any(isinstance(i, (EagerTile, torch.Tensor)) for i in as_items(index))


def load_eagerly(tensor: torch.Tensor, items: list[Any], mask: torch.Tensor | None) -> torch.Tensor:
    """The elements that a subscript names; 0 where the mask is False, clamped where out of range."""
    places = index_tensors(tensor, items)
    value = tensor[places]
    if mask is not None:
        value = torch.where(mask, value, torch.zeros((), dtype=value.dtype, device=value.device))
    return value


def store_eagerly(
    tensor: torch.Tensor, items: list[Any], value: Any, mask: torch.Tensor | None
) -> None:
    """Write the elements that a subscript names, where the mask is True."""
    places = index_tensors(tensor, items)
    shape = tensor[places].shape
    if not isinstance(value, torch.Tensor):
        value = torch.tensor(value, device=tensor.device)
    while value.dim() > len(shape) and value.shape[0] == 1:
        value = value[0]
    value = value.to(tensor.dtype)
    if mask is not None:
        value = torch.where(mask, value.expand(shape), tensor[places])
    tensor[places] = value


def index_tensors(tensor: torch.Tensor, items: list[Any]) -> tuple[Any, ...]:
    """The subscript in torch's terms: tiles as slices, several index tensors as an outer product."""
    items = _expand(items, tensor.dim())
    rows = [i for i in items if isinstance(i, torch.Tensor) and i.dim()]
    if not any(isinstance(i, EagerTile) and _past_end(i, items, tensor) for i in items) and (
        len(rows) == 0
        or (
            len(rows) == 1
            and all(not isinstance(i, (int, torch.Tensor)) or i is rows[0] for i in items)
        )
    ):
        return tuple(_plain(i, tensor, d) for d, i in _with_dims(items))
    return _outer(tensor, items)


def _past_end(tile: EagerTile, items: Sequence[Any], tensor: torch.Tensor) -> bool:
    dim = next(d for d, i in _with_dims(items) if i is tile)
    return tile.end + tile.shift > tensor.shape[dim] or tile.begin + tile.shift < 0


def _with_dims(items: Sequence[Any]) -> list[tuple[int, Any]]:
    dims: list[tuple[int, Any]] = []
    dim = 0
    for item in items:
        dims.append((dim, item))
        dim += item is not None
    return dims


def _plain(item: Any, tensor: torch.Tensor, dim: int) -> Any:
    if isinstance(item, EagerTile):
        return slice(item.begin + item.shift, item.end + item.shift)
    if isinstance(item, torch.Tensor) and item.dim():
        return item.long().clamp(0, max(tensor.shape[dim] - 1, 0))
    return int(item) if isinstance(item, torch.Tensor) else item


def _outer(tensor: torch.Tensor, items: list[Any]) -> tuple[Any, ...]:
    """Every item as an index tensor of its own dimensions."""
    rows = [k for k, i in enumerate(items) if isinstance(i, torch.Tensor) and i.dim()]
    together = (
        len(rows) > 1
        and any(items[k].dim() > 1 for k in rows)
        and rows == list(range(rows[0], rows[-1] + 1))
    )
    joint = torch.broadcast_shapes(*(items[k].shape for k in rows)) if together else ()
    spans: list[tuple[Any, int, int]] = []
    at = 0
    start = 0
    for k, (dim, item) in enumerate(_with_dims(items)):
        if item is None:
            at += 1
            continue
        values = _values(item, tensor.shape[dim], tensor.device)
        if k in rows and together:
            if k == rows[0]:
                start, at = at, at + len(joint)
            spans.append((values, start + len(joint) - values.dim(), dim))
        else:
            spans.append((values, at, dim))
            at += values.dim()
    return tuple(
        v.reshape([*[1] * begin, *v.shape, *[1] * (at - begin - v.dim())]) for v, begin, _ in spans
    )


def _values(item: Any, size: int, device: torch.device) -> torch.Tensor:
    if isinstance(item, EagerTile):
        item = item.index
    if isinstance(item, slice):
        return torch.arange(*item.indices(size), device=device)
    values = item if isinstance(item, torch.Tensor) else torch.tensor(item, device=device)
    values = values.long()
    values = torch.where(values < 0, values + size, values) if isinstance(item, int) else values
    return values.clamp(0, max(size - 1, 0))


def _expand(items: list[Any], rank: int) -> list[Any]:
    given = sum(i is not None and i is not Ellipsis for i in items)
    at = next((k for k, i in enumerate(items) if i is Ellipsis), len(items))
    return [*items[:at], *[slice(None)] * (rank - given), *items[at + 1 :]]


def sizes_of(shape: Sequence[Any]) -> list[int]:
    """The sizes that a shape list stands for."""
    return [len(s) if isinstance(s, EagerTile) else int(s) for s in shape]
