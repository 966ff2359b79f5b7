"""Loads and stores: through pointers, block pointers or tensor descriptors, as the config says.

A request that an access does not fit falls back to pointers. Block pointers and descriptors fill
what is outside of the *tensor* with zeros, so they are used only where the loop ends with it.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import torch

from helion.codegen.expression import Expression
from helion.codegen.memory import access, stored_value
from helion.ir.graph import Node, args_of, value_of
from helion.ir.symbols import expr_of, is_number, known_int, same
from helion.ir.tiles import HostTensor, SliceItem, TileItem
from helion.language.matmul import FP8

if TYPE_CHECKING:
    from collections.abc import Sequence

    from helion.codegen.operations import LoweringContext

# The longest block that the copy engine takes along one dimension.
_LONGEST_BOX = 256
_LONGEST_LINE = 92


@dataclasses.dataclass(frozen=True)
class _Span:
    """Where a block lies along one dimension of its tensor.

    Attributes:
        begin: its first index, as text.
        length: its length, as text; a power of two.
        known: its length in this config, if known.
        is_whole: whether it is inside of the tensor, whatever the tile.
        is_kept: whether the dimension is one of the result's.
    """

    begin: str
    length: str
    known: int | None
    is_whole: bool
    is_kept: bool = True


def load(kernel: LoweringContext, node: Node) -> Expression:
    """`hl.load`."""
    target, items, extra, eviction = args_of(node)
    kind = kernel.choices.next("indexing", "pointer")
    policy = kernel.choices.next("load_eviction_policies", "")
    modifier = kernel.choices.next("load_cache_modifiers", "")
    options = [f"cache_modifier={modifier!r}"] if modifier else []
    policy = eviction or (f"evict_{policy}" if policy else None)
    if policy is not None:
        options.append(f"eviction_policy={policy!r}")
    dtype = kernel.dtype_of(node)
    spans = _spans(kernel, kind, target, items, extra)
    if spans is not None:
        return _load_block(kernel, kind, target, spans, node, options)
    where = access(kernel, target, items, extra)
    args = [where.pointer.text]
    if where.mask is not None:
        # Triton makes no float8 of an integer.
        args += [where.mask.text, "other=0.0" if dtype in FP8 else "other=0"]
    return Expression(f"tl.load({', '.join([*args, *options])})", dtype, where.pointer.shape)


def store(kernel: LoweringContext, node: Node) -> None:
    """`hl.store`."""
    target, items, value, extra = args_of(node)
    kind = kernel.choices.next("indexing", "pointer")
    modifier = kernel.choices.next("store_cache_modifiers", "")
    options = [f"cache_modifier={modifier!r}"] if modifier else []
    spans = _spans(kernel, kind, target, items, extra)
    if spans is not None:
        _store_block(kernel, kind, target, spans, node, options)
        return
    where = access(kernel, target, items, extra)
    stored = stored_value(kernel, value, where.pointer, target.fake.dtype)
    mask = [] if where.mask is None else [where.mask.text]
    line = f"tl.store({', '.join([where.pointer.text, stored.text, *mask, *options])})"
    if len(line) > _LONGEST_LINE and not stored.text.isidentifier():
        name = kernel.names.fresh("value")
        kernel.body.line(f"{name} = {stored.text}")
        line = f"tl.store({', '.join([where.pointer.text, name, *mask, *options])})"
    kernel.body.line(line)


# -- blocks ---------------------------------------------------------------------------------------


def _spans(
    kernel: LoweringContext, kind: str, target: HostTensor, items: Sequence[Any], extra: Any
) -> list[_Span] | None:
    """The block that an access reads or writes; None if it is none, or not one of this kind."""
    tensor = target.fake
    if kind not in kernel.indexing or extra is not None or len(items) != tensor.dim():
        return None
    spans = [_span(kernel, i, s) for i, s in zip(items, tensor.shape, strict=True)]
    if any(s is None for s in spans) or tensor.dtype is torch.bool:
        return None
    found = [s for s in spans if s is not None]
    if not any(s.is_kept for s in found):
        return None
    if kernel.wide_index:
        # Both take 32-bit coordinates.
        return None
    return found if kind == "block_ptr" or _fits_descriptor(tensor, found) else None


def _span(kernel: LoweringContext, item: Any, size: Any) -> _Span | None:
    if isinstance(item, TileItem):
        axis = item.axis
        if expr_of(item.shift) != 0 or not is_number(axis.end) or not same(axis.end, size):
            return None
        length = kernel.size_text(axis.size)
        whole = kernel.covers(axis)
        return _Span(kernel.axes[axis].begin, length, kernel.known_size(axis.size), whole)
    if isinstance(item, SliceItem):
        if item.step != 1 or expr_of(item.start) != 0 or not same(item.length, size):
            return None
        known = known_int(size)
        text = kernel.size_text(size)
        padded = int(text) if text.isdigit() else None
        return _Span("0", text, padded, known is not None and known == padded)
    if isinstance(item, Node) and value_of(item).dim():
        return None
    return None if item is None else _Span(kernel.operand(item).text, "1", 1, True, False)


def _fits_descriptor(tensor: torch.Tensor, spans: Sequence[_Span]) -> bool:
    """Whether the copy engine takes such a block (CUDA driver: `cuTensorMapEncodeTiled`)."""
    width = tensor.dtype.itemsize
    sizes = [known_int(s) for s in tensor.shape]
    *strides, last = [known_int(s) for s in tensor.stride()]
    if not 2 <= tensor.dim() <= 5 or last != 1:
        return False
    if any(s is None or s == 0 or s * width % 16 for s in strides):
        return False
    for span, size in zip(spans, sizes, strict=True):
        if size is None or span.known is None or span.known > min(size, _LONGEST_BOX):
            return False
    return (spans[-1].known or 0) * width >= 16


def _load_block(
    kernel: LoweringContext,
    kind: str,
    target: HostTensor,
    spans: Sequence[_Span],
    node: Node,
    options: Sequence[str],
) -> Expression:
    begins = ", ".join(s.begin for s in spans)
    if kind == "tensor_descriptor":
        text = f"{_descriptor(kernel, target, spans)}.load([{begins}])"
    else:
        more = [_boundary(spans), *options]
        args = [_block_pointer(kernel, target, spans), *(m for m in more if m)]
        if more[0]:
            args.append('padding_option="zero"')
        text = f"tl.load({', '.join(args)})"
    if not all(s.is_kept for s in spans):
        kept = ", ".join(s.length for s in spans if s.is_kept)
        text = f"tl.reshape({text}, [{kept}])"
    return Expression(text, kernel.dtype_of(node), tuple(value_of(node).shape))


def _store_block(
    kernel: LoweringContext,
    kind: str,
    target: HostTensor,
    spans: Sequence[_Span],
    node: Node,
    options: Sequence[str],
) -> None:
    _, items, value, _ = args_of(node)
    kept = [_size(i) for i, s in zip(items, spans, strict=True) if s.is_kept]
    like = Expression("", target.fake.dtype, tuple(kept))
    stored = stored_value(kernel, value, like, target.fake.dtype)
    text = kernel.broadcast(stored.typed(target.fake.dtype), kept).text
    if not all(s.is_kept for s in spans):
        text = f"tl.reshape({text}, [{', '.join(s.length for s in spans)}])"
    begins = ", ".join(s.begin for s in spans)
    if kind == "tensor_descriptor":
        kernel.body.line(f"{_descriptor(kernel, target, spans)}.store([{begins}], {text})")
        return
    more = [m for m in (_boundary(spans), *options) if m]
    pointer = _block_pointer(kernel, target, spans)
    kernel.body.line(f"tl.store({', '.join([pointer, text, *more])})")


def _size(item: TileItem | SliceItem) -> Any:
    return item.axis.size if isinstance(item, TileItem) else item.length


def _descriptor(kernel: LoweringContext, target: HostTensor, spans: Sequence[_Span]) -> str:
    """The parameter that carries a tensor's descriptor; the host makes one for each block shape."""
    fake = target.fake
    shape, strides = (
        ", ".join(str(known_int(n)) for n in ns) for ns in (fake.shape, fake.stride())
    )
    box = ", ".join(s.length if s.length.startswith("_BLOCK_SIZE") else str(s.known) for s in spans)
    host = f"TensorDescriptor({target.text}, [{shape}], [{strides}], [{box}])"
    return kernel.parameter(f"{target.text}_desc", host)


def _block_pointer(kernel: LoweringContext, target: HostTensor, spans: Sequence[_Span]) -> str:
    fake = target.fake
    parts = [
        [kernel.number(n).text for n in fake.shape],
        [kernel.number(n).text for n in fake.stride()],
        [s.begin for s in spans],
        [s.length for s in spans],
        [str(d) for d in reversed(range(fake.dim()))],
    ]
    lists = ", ".join(f"[{', '.join(part)}]" for part in parts)
    name = kernel.names.fresh(f"{target.text}_block")
    kernel.body.line(f"{name} = tl.make_block_ptr({kernel.tensor(target)}, {lists})")
    return name


def _boundary(spans: Sequence[_Span]) -> str:
    """The dimensions in which a block may reach past the end of its tensor."""
    dims = [str(d) for d, s in enumerate(spans) if not s.is_whole]
    return f"boundary_check=[{', '.join(dims)}]" if dims else ""
