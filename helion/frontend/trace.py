"""Recording torch operations as nodes of a device graph."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch
import torch._refs
import torch._refs.nn.functional
import torch._refs.special
from torch._decomp import decomposition_table
from torch._prims_common import elementwise_dtypes
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

from helion import exc
from helion.frontend.decompositions import (
    ACCUMULATING,
    CREATIONS,
    DECOMPOSITIONS,
    KEPT,
    MEANS,
    PRODUCTS,
    RESHAPES,
    fill_of,
    out_of_place,
    promotion_of,
)
from helion.ir.control import getitem
from helion.ir.dtypes import TRITON_DTYPES
from helion.ir.graph import emit, facts, set_facts
from helion.ir.masking import count_inside
from helion.ir.printer import ValuePrinter
from helion.ir.symbols import AxisNumber, BlockSymbol, DeviceNumber, known_int
from helion.language import creation
from helion.language.matmul import FP8

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from helion.exc import Span
    from helion.ir.graph import Node
    from helion.ir.symbols import Symbols
    from helion.ir.tiles import TileAxis

# Numbers that are no sizes: the launch does not know them.
_IN_KERNEL = (AxisNumber, DeviceNumber)

aten = torch.ops.aten
prims = torch.ops.prims

_BROADCAST = prims.broadcast_in_dim.default

# Say something about a tensor and compute nothing.
_QUERIES = frozenset({torch.ops.prim.device.default, aten.sym_size.int, aten.sym_stride.int})

_CASTS = frozenset({aten.to.dtype, aten.to.device, aten.to.dtype_layout, aten._to_copy.default})


class GraphBuilder:
    """A graph under construction. Nodes of outer graphs enter it as placeholders."""

    def __init__(self, parent: GraphBuilder | None = None) -> None:
        self.graph = torch.fx.Graph()
        self.parent = parent
        self.captured: dict[Node, Node] = {}

    def local(self, node: Node) -> Node:
        """The node itself, or the placeholder that stands for an outer one."""
        if node.graph is self.graph:
            return node
        if node not in self.captured:
            if self.parent is None:
                detail = "a value that a loop or branch computed is used outside of it"
                advice = "keep it in a variable that is bound before, or store it to memory"
                raise exc.TypeInferenceError(detail=detail, advice=advice)
            self.parent.local(node)
            self.captured[node] = self.placeholder(node.name, facts(node).value)
        return self.captured[node]

    def placeholder(self, name: str, value: Any) -> Node:
        """A new input of this graph, placed before every other kind of node."""
        first = next((n for n in self.graph.nodes if n.op != "placeholder"), None)
        at = self.graph.inserting_before(first) if first else contextlib.nullcontext()
        with at:
            node = self.graph.placeholder(name)
        set_facts(node, value=value)
        return node


class Recorder(TorchDispatchMode):
    """Runs torch operations on fake tensors and records the prims that they come down to.

    before:  torch.where(keep, x * scale, 0.0)            with x: bf16[tile]
    after:   %a = prims.convert_element_type(x, float32)
             %b = prims.mul(a, scale)
             %c = prims.convert_element_type(b, bfloat16)
             %d = prims.where(keep, c, 0.0)
    """

    def __init__(self, symbols: Symbols, loops: Callable[[], Sequence[TileAxis]]) -> None:
        super().__init__()
        self.symbols = symbols
        self.loops = loops
        self.builder = GraphBuilder()
        self.span: Span | None = None
        # The fake tensor is kept beside its node, so that its id is not used again.
        self._nodes: dict[int, tuple[FakeTensor, Node]] = {}
        # A number in the shape of a block, and the number.
        self._spread: dict[int, tuple[FakeTensor, FakeTensor]] = {}

    def node_of(self, value: Any) -> Any:
        """The node that computes a device tensor, in the graph being built."""
        if id(value) in self._spread:
            source = self.node_of(self._spread[id(value)][1])
            args = (source, tuple(value.shape), ())
            return emit(self.builder.graph, _BROADCAST, args, value, self.span)
        if isinstance(value, FakeTensor):
            value = self._nodes[id(value)][1]
        # What an inner graph captured may come from further out than the graph around it.
        return self.builder.local(value) if isinstance(value, torch.fx.Node) else value

    def is_device(self, value: object) -> bool:
        """Whether a value is a tensor that device code computed."""
        return id(value) in self._nodes or id(value) in self._spread

    def _operands(self, target: Any, args: Sequence[Any], value: Any) -> list[Any]:
        """The operands of a node; a prim of several tensors takes a number as it is.

        Torch broadcasts numbers that are on a GPU and not those on the CPU, and the device IR is
        to be the same for both.
        """
        blocks = [a for a in args if isinstance(a, FakeTensor) and id(a) not in self._spread]
        is_prim = getattr(target, "namespace", "") == "prims" and isinstance(value, FakeTensor)
        if is_prim and any(block.shape == value.shape for block in blocks):
            args = [self._spread[id(a)][1] if id(a) in self._spread else a for a in args]
        return tree_map(self.node_of, list(args))

    def bind(self, value: FakeTensor, node: Node) -> FakeTensor:
        """Let `node` be what computes `value`."""
        self._nodes[id(value)] = (value, node)
        self._spread.pop(id(value), None)
        return value

    def record(self, target: Callable[..., Any], args: Sequence[Any], value: Any) -> Node:
        """Append a node; its fake results become device tensors."""
        self._check(value)
        operands = self._operands(target, args, value)
        node = emit(self.builder.graph, target, operands, value, self.span)
        if isinstance(value, FakeTensor):
            self.bind(value, node)
        elif isinstance(value, (tuple, list)):
            for i, item in enumerate(value):
                if isinstance(item, FakeTensor):
                    getter = emit(self.builder.graph, getitem, (node, i), item, self.span)
                    self.bind(item, getter)
        return node

    def _check(self, value: Any) -> None:
        """Whether Triton has the dtype of a value, and the launch knows its shape."""
        for item in value if isinstance(value, (tuple, list)) else [value]:
            if not isinstance(item, FakeTensor):
                continue
            if item.dtype not in TRITON_DTYPES:
                raise exc.UnsupportedDtype(self.span, dtype=item.dtype)
            for size in item.shape:
                if not self.symbols.has_origins(size):
                    raise exc.DataDependentOutputShapeNotSupported(self.span)
                if any(isinstance(o, _IN_KERNEL) for o in self.symbols.origins_in(size)):
                    text = ValuePrinter(self.symbols).number(size)
                    raise exc.ShapeSpecializingAllocation(self.span, size=text)

    @contextlib.contextmanager
    def inner(self) -> Generator[GraphBuilder]:
        """Record into a new inner graph: the body of a loop or the branch of an if."""
        outer = self.builder
        self.builder = GraphBuilder(outer)
        try:
            yield self.builder
        finally:
            self.builder = outer

    @contextlib.contextmanager
    def resume(self, builder: GraphBuilder) -> Generator[None]:
        """Go on recording into an inner graph that was left."""
        outer, self.builder = self.builder, builder
        try:
            yield
        finally:
            self.builder = outer

    def name(self, value: torch.Tensor, name: str) -> None:
        """Note the author's name for a device tensor; the first one stays."""
        node = self._nodes[id(value)][1] if id(value) in self._nodes else None
        if node is not None and facts(node).name is None:
            set_facts(node, name=name)

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Decompose `func`, or record it if nothing is left to decompose."""
        del types
        kwargs = kwargs or {}
        if func in _QUERIES:
            return func(*args, **kwargs)
        if func in _CASTS:
            return self._cast(func, args, kwargs)
        if func in RESHAPES:
            value = func(*args, **kwargs)
            self.record(prims.reshape.default, (args[0], tuple(value.shape)), value)
            return value
        if func in CREATIONS:
            return self._create(func, args, kwargs)
        if func is aten.copy_.default:
            return self._copy(*args)
        if func is aten.view.dtype:
            return self._reinterpret(*args)
        if func in PRODUCTS:
            return self._product(PRODUCTS[func], *args, **kwargs)
        if func in ACCUMULATING:
            return self._accumulate(func, *args, **kwargs)
        if (kind := promotion_of(func, kwargs.get("rounding_mode"))) is not None:
            return self._promoted(func, args, kwargs, kind)
        if func in MEANS and self._spans_tile(*args):
            with self:
                return self._mean(*args, **kwargs)
        if (plain := out_of_place(func)) is not None:
            return self._in_place(plain, args, kwargs)
        if func.namespace == "prims" or func in KEPT:
            return self._leaf(func, args, kwargs)
        rule = DECOMPOSITIONS.get(func) or decomposition_table.get(func)
        with self:
            result = rule(*args, **kwargs) if rule is not None else func.decompose(*args, **kwargs)
        if result is not NotImplemented:
            return result
        return self._leaf(func, args, kwargs)

    def _create(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        value = func(*args, **kwargs)
        number = fill_of(func, args)
        if value.dtype.is_floating_point and isinstance(number, int):
            number = float(number)
        self.record(creation.full, (tuple(value.shape), number, value.dtype), value)
        return value

    def _copy(self, target: Any, source: Any, non_blocking: bool = False) -> Any:
        """Writing into a device tensor binds it to another node: nodes do not change."""
        del non_blocking
        with self:
            value = source.to(target.dtype)
            if value.shape != target.shape:
                value = value.expand(target.shape)
        return self.bind(target, self.node_of(value))

    def _in_place(self, plain: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        with self:
            value = plain(*args, **kwargs)
        target = args[0]
        if not torch.can_cast(value.dtype, target.dtype):
            # No TypeError: Python would try `a + b` where `a += b` raises one.
            raise RuntimeError(f"{value.dtype} cannot be cast to {target.dtype}, in place")
        return self._copy(target, value)

    def _reinterpret(self, value: Any, dtype: torch.dtype) -> Any:
        result = aten.view.dtype(value, dtype)
        if dtype.itemsize != value.dtype.itemsize:
            detail = f"{value.dtype}.view({dtype}), which changes the number of elements"
            raise exc.BackendUnsupported(backend="triton", detail=detail)
        # Copied in the fake, so that it is a value of its own.
        result = torch.empty_like(result)
        self.record(aten.view.dtype, (value,), result)
        return result

    def _check_product(self, a: torch.Tensor, b: torch.Tensor) -> None:
        """What torch's products take: one dtype, and no float8, which sums do not fit in."""
        api = "torch's matrix products"
        if a.dtype != b.dtype:
            detail = f"operands of two dtypes, {a.dtype} and {b.dtype}"
            raise exc.InvalidDotDtype(self.span, api=api, detail=detail)
        if a.dtype in FP8:
            detail = f"{a.dtype}: `hl.dot` does"
            raise exc.InvalidDotDtype(self.span, api=api, detail=detail)

    def _product(self, func: Any, a: Any, b: Any, out_dtype: torch.dtype | None = None) -> Any:
        """`mm`, `bmm`; the result's dtype tells whether it is rounded to that of the operands."""
        self._check_product(a, b)
        value = func(a, b)
        if out_dtype is not None:
            value = torch.empty_like(value, dtype=out_dtype)
        self.record(func, (a, b), value)
        return value

    def _accumulate(
        self, func: Any, acc: Any, a: Any, b: Any, *, beta: Any = 1, alpha: Any = 1
    ) -> Any:
        """`addmm`, `baddbmm`: the accumulator may have another dtype, which is the result's."""
        self._check_product(a, b)
        plain = func(acc.to(a.dtype), a, b)
        if beta == 1 and alpha == 1:
            value = torch.empty_like(plain, dtype=acc.dtype)
            self.record(func, (acc, a, b), value)
            return value
        wide = torch.float64 if a.dtype is torch.float64 else torch.float32
        with self:
            product = (torch.bmm if a.dim() == 3 else torch.mm)(a, b, out_dtype=wide)
            return (acc * beta + product * alpha).to(acc.dtype)

    def _is_tiled(self, size: Any) -> bool:
        """Whether a dimension may be a tile's, which has fewer elements at the end of its range."""
        if any(isinstance(o, BlockSymbol) for o in self.symbols.origins_in(size)):
            return True
        fixed = {known_int(axis.size) for axis in self.loops() if axis.block is not None}
        return known_int(size) in fixed - {None, 1}

    def _spans_tile(self, value: torch.Tensor, dims: Sequence[int] | None = None, *_: Any) -> bool:
        chosen = value.shape if not dims else [value.shape[d] for d in dims]
        return value.dtype.is_floating_point and any(map(self._is_tiled, chosen))

    def _mean(
        self,
        value: torch.Tensor,
        dims: Sequence[int] | None = None,
        keepdim: bool = False,
        *,
        dtype: torch.dtype | None = None,
    ) -> Any:
        """A mean divides by the elements that a tile has, not by its block size."""
        chosen = [d % value.dim() for d in dims or range(value.dim())]
        result = dtype or value.dtype
        wide = torch.float64 if result is torch.float64 else torch.float32
        total = torch.sum(value.to(wide), chosen, keepdim)
        count = torch.empty([], dtype=wide, device=value.device)
        self.record(count_inside, (value, chosen), count)
        return (total / count).to(result)

    def _promoted(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], kind: Any) -> Any:
        compute, dtype = elementwise_dtypes(*args, type_promotion_kind=kind)
        with self:
            args = tuple(a.to(compute) if isinstance(a, torch.Tensor) else a for a in args)
        value = self._leaf(func, args, kwargs)
        with self:
            return value.to(dtype)

    def _cast(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        # Composite in C++, where the mode would not see what becomes of it.
        value = func(*args, **kwargs)
        if value is args[0]:
            return value
        self.record(prims.convert_element_type.default, (args[0], value.dtype), value)
        return value

    def _leaf(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        value = func(*args, **kwargs)
        if func is _BROADCAST and args[0].dim() == 0 and self.is_device(args[0]):
            self._spread[id(value)] = (value, args[0])
            return value
        schema = func._schema.arguments
        named = [kwargs.get(a.name, a.default_value) for a in schema[len(args) :]]
        self.record(func, (*args, *named), value)
        return value
