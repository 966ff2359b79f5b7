"""The eager reference: tiles over real tensors, and the mode that routes calls to references.

A kernel runs as ordinary Python. In device loops three things differ from torch, because they do in
compiled code: a load is a copy, `x += y` binds a new value, and subscripts are those of tiles.
"""

from __future__ import annotations

import dataclasses
import dis
import inspect
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from helion import exc
from helion.language._op import Op
from helion.language.indexing import joint_tensors
from helion.language.matmul import EAGER_PRODUCTS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
    from types import FrameType


@dataclasses.dataclass(frozen=True)
class EagerTile:
    """A tile while a kernel runs eagerly: the real indices [begin, end), without padding.

    Attributes:
        mode: the mode that it runs in.
        begin: its first index.
        end: one past its last index.
        width: the length of a tile of its loop, the last one aside.
        range_begin: the first index of the loop.
        range_end: one past the last index of the loop.
        is_free: whether the width is for a config to choose, which here is the whole range.
        shift: `k` of `tile + k`.
    """

    mode: EagerMode
    begin: int
    end: int
    width: int
    range_begin: int
    range_end: int
    is_free: bool = False
    shift: int = 0

    @property
    def index(self) -> torch.Tensor:
        """The indices of its elements."""
        first, last = self.begin + self.shift, self.end + self.shift
        index = torch.arange(first, last, dtype=torch.int32, device=self.mode.device)
        index.helion_tile = self  # pyright: ignore[reportAttributeAccessIssue] - see `_tile_of`
        return index

    @property
    def block_size(self) -> int:
        """The length of a tile of its loop."""
        self._read_width()
        return self.width

    @property
    def id(self) -> int:
        """The ordinal of the tile."""
        self._read_width()
        return self.begin // self.width

    @property
    def count(self) -> int:
        """How many tiles the loop has."""
        self._read_width()
        return -(-(self.range_end - self.range_begin) // self.width)

    def _read_width(self) -> None:
        if self.is_free:
            self.mode.ignore_block_sizes()

    def __add__(self, by: int) -> EagerTile:
        return dataclasses.replace(self, shift=self.shift + by)

    __radd__ = __add__

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
        config: its config, for tunables. Block sizes are not followed: a tile for which the author
            gives no block size is the whole axis.
    """

    def __init__(
        self,
        device: torch.device,
        config: Mapping[str, Any],
        warn: Callable[[exc.BaseWarning], None],
    ) -> None:
        super().__init__()
        self.device = device
        self.config = config
        self._warn = warn
        self._loops = 0

    def __torch_function__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """References for the language's operations, subscripts with tiles, and torch as it is."""
        del types
        named = kwargs or {}
        if isinstance(func, Op):
            return func.run_reference(self, args, named)
        if self._loops:
            if func is torch.Tensor.__getitem__:
                return load_eagerly(args[0], as_items(args[1]), None)
            if func is torch.Tensor.__setitem__:
                return store_eagerly(args[0], as_items(args[1]), args[2], None)
            if func in _IN_PLACE and _is_operator(inspect.currentframe()):
                args = (args[0].clone(), *args[1:])
            func = EAGER_PRODUCTS.get(func, func)
        args, named = pytree.tree_map(_as_size, (args, named))
        result = func(*args, **named)
        if sign := _SHIFTS.get(func):
            _carry_tile(args, sign, result)
        return result

    def loop(self, values: Iterable[Any]) -> Generator[Any]:
        """The iterations of a device loop."""
        self._loops += 1
        try:
            yield from values
        finally:
            self._loops -= 1

    def ignore_block_sizes(self) -> None:
        """Warn that the kernel reads a block size, if the config has others."""
        if "block_sizes" in self.config:
            sizes = self.config["block_sizes"]
            self._warn(exc.BlockSizeIgnoredInInterpretMode(block_size=sizes))


# What `x += y` and its like call, except for `x **= y`.
_IN_PLACE = frozenset(
    getattr(torch.Tensor, name)
    for name in ("add_", "sub_", "mul_", "div_", "floor_divide_", "remainder_", "__iand__",
                 "__ior__", "__ixor__", "__ilshift__", "__irshift__")
)  # fmt: skip


def _is_operator(function: FrameType | None) -> bool:
    """Whether `x += y` called a function mode, and not `x.add_(y)`, which looks the same there."""
    frame = function.f_back if function is not None else None
    if frame is None:
        return False
    instruction = dis.opname[frame.f_code.co_code[frame.f_lasti]]
    return instruction == "BINARY_OP" or instruction.startswith("INPLACE_")


_SHIFTS: dict[Any, int] = {
    torch.Tensor.add: 1, torch.add: 1, torch.Tensor.sub: -1, torch.sub: -1,
}  # fmt: skip


def _carry_tile(args: Sequence[Any], sign: int, result: torch.Tensor) -> None:
    """`tile.index + k` is the tile `tile + k`, as in compiled code: outside of a tensor it is 0."""
    tile, by = _tile_of(args[0]), args[1]
    if isinstance(tile, EagerTile) and isinstance(by, int):
        result.helion_tile = tile + sign * by  # pyright: ignore[reportAttributeAccessIssue]


def _tile_of(item: Any) -> Any:
    """The tile whose indices a tensor holds; other items of a subscript as they are."""
    return getattr(item, "helion_tile", item) if isinstance(item, torch.Tensor) else item


def _as_size(value: Any) -> Any:
    return len(value) if isinstance(value, EagerTile) else value


def sizes_of(shape: Sequence[Any]) -> list[int]:
    """The sizes that a shape list stands for."""
    return [len(s) if isinstance(s, EagerTile) else int(s) for s in shape]


# -- subscripts ----------------------------------------------------------------------------------


def as_items(index: Any) -> list[Any]:
    """The items of a subscript."""
    if isinstance(index, (tuple, list)):
        return [i for item in index for i in (item if isinstance(item, tuple) else (item,))]
    return [index]


def load_eagerly(tensor: torch.Tensor, items: list[Any], mask: torch.Tensor | None) -> torch.Tensor:
    """The elements that a subscript names, copied.

    An index tensor is clamped to its dimension. A tile gives 0 outside of it, and so does a mask.
    """
    places = locate(tensor, items)
    # What is stored later must not show in it.
    value = tensor[places.index].clone()
    for keep in (places.in_tiles, mask):
        if keep is not None:
            value = torch.where(keep, value, value.new_zeros(()))
    return value


def store_eagerly(
    tensor: torch.Tensor, items: list[Any], value: Any, mask: torch.Tensor | None
) -> None:
    """Write the elements that a subscript names, where they exist and the mask is True.

    Raises:
        DuplicateStoreIndicesError: with a mask, an element would be written twice.
    """
    places = locate(tensor, items)
    value = torch.as_tensor(value, device=tensor.device).to(tensor.dtype)
    if places.inside is None and mask is None:
        target = tensor[places.index]
        tensor[places.index] = _as_shape(value, target.shape)
        return
    numbers = torch.arange(tensor.numel(), device=tensor.device).reshape(tensor.shape)
    targets = numbers[places.index]
    keep = torch.ones_like(targets, dtype=torch.bool)
    for condition in (places.inside, mask):
        if condition is not None:
            keep = keep & condition
    written = targets[keep]
    if mask is not None and len(written.unique()) < len(written):
        raise exc.DuplicateStoreIndicesError()
    flat = tensor.view(1) if tensor.dim() == 0 else tensor
    flat[torch.unravel_index(written, flat.shape)] = _as_shape(value, targets.shape)[keep]


def _as_shape(value: torch.Tensor, shape: torch.Size) -> torch.Tensor:
    """A value for elements of this shape: broadcast, or without its dimensions of size 1."""
    return value.reshape(shape) if value.dim() > len(shape) else value.expand(shape)


@dataclasses.dataclass(frozen=True)
class Places:
    """Which elements of a tensor a subscript names.

    Attributes:
        index: a subscript in torch's terms, without elements that do not exist.
        inside: which of them were meant; None for all.
        in_tiles: the same, but an index tensor is taken to mean what is there.
    """

    index: tuple[Any, ...]
    inside: torch.Tensor | None = None
    in_tiles: torch.Tensor | None = None


def locate(tensor: torch.Tensor, items: list[Any]) -> Places:
    """The elements of a tensor that a subscript of the language names."""
    items = [_tile_of(i) for i in _expand(items, tensor.dim())]
    slices = _slices(tensor, items)
    if slices is not None:
        return Places(slices)
    index: list[torch.Tensor] = []
    inside = in_tiles = None
    for values, size, is_tile in _spread(tensor, items):
        exists = (values >= 0) & (values < size)
        if not exists.all():
            inside = exists if inside is None else inside & exists
            if is_tile:
                in_tiles = exists if in_tiles is None else in_tiles & exists
        index.append(values.clamp(0, max(size - 1, 0)))
    return Places(tuple(index), inside, in_tiles)


def _slices(tensor: torch.Tensor, items: Sequence[Any]) -> tuple[Any, ...] | None:
    """The subscript with tiles as slices, if it needs no index tensors."""
    result: list[Any] = []
    for dim, item in _with_dims(items):
        size = tensor.shape[dim] if item is not None else 0
        if isinstance(item, EagerTile):
            first, last = item.begin + item.shift, item.end + item.shift
            if first < 0 or last > size or _is_broadcast(item, size):
                return None
            result.append(slice(first, last))
        elif isinstance(item, torch.Tensor):
            if item.dim() or not 0 <= int(item) < size:
                return None
            result.append(int(item))
        else:
            result.append(item)
    return tuple(result)


def _is_broadcast(tile: EagerTile, size: int) -> bool:
    """Whether the one element of a dimension stands for all that a tile covers."""
    return size == 1 and tile.range_end != 1


def _spread(tensor: torch.Tensor, items: list[Any]) -> list[tuple[torch.Tensor, int, bool]]:
    """Every item as an index tensor in dimensions of its own; see `indexing.result_shape`.

    Returns:
        For each dimension of `tensor` the indices, its size, and whether they are those of a tile.
    """
    together = joint_tensors(items)
    joint = len(torch.broadcast_shapes(*(items[k].shape for k in together)))
    found: list[tuple[torch.Tensor, int, int, bool]] = []
    at = joint_at = 0
    for k, (dim, item) in enumerate(_with_dims(items)):
        if item is None:
            at += 1
            continue
        size = tensor.shape[dim]
        values = _values(item, size, tensor.device)
        if k in together:
            if k == together[0]:
                joint_at, at = at, at + joint
            begin = joint_at + joint - values.dim()
        else:
            begin, at = at, at + values.dim()
        found.append((values, begin, size, isinstance(item, EagerTile)))
    return [
        (v[(None,) * begin + (...,) + (None,) * (at - begin - v.dim())], size, is_tile)
        for v, begin, size, is_tile in found
    ]


def _values(item: Any, size: int, device: torch.device) -> torch.Tensor:
    """The indices that an item of a subscript stands for."""
    if isinstance(item, EagerTile):
        index = item.index.long()
        return torch.zeros_like(index) if _is_broadcast(item, size) else index
    if isinstance(item, slice):
        return torch.arange(*item.indices(size), device=device)
    if isinstance(item, torch.Tensor):
        return item.long()
    return torch.tensor(item + size if item < 0 else item, device=device)


def _with_dims(items: Sequence[Any]) -> list[tuple[int, Any]]:
    """The items, each with the dimension of the tensor that it stands for."""
    dims: list[tuple[int, Any]] = []
    dim = 0
    for item in items:
        dims.append((dim, item))
        dim += item is not None
    return dims


def _expand(items: list[Any], rank: int) -> list[Any]:
    given = sum(i is not None and i is not Ellipsis for i in items)
    at = next((k for k, i in enumerate(items) if i is Ellipsis), len(items))
    return [*items[:at], *[slice(None)] * (rank - given), *items[at + 1 :]]
