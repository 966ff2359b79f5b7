"""Operations: one object holds the signature, type rule, lowering and eager reference of one op.

@op
def rand(shape, seed): ...docs...

@rand.type_rule      # abstract arguments in, abstract result out; errors of use are found here
@rand.lowering       # a graph node in, Triton text out
@rand.reference      # plain tensors in, plain tensor out
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Protocol

import torch.overrides

from helion import exc

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from helion.exc import Span
    from helion.ir.graph import Node
    from helion.ir.symbols import Symbols
    from helion.ir.tiles import BlockSize, HostTensor, TileAxis
    from helion.language.fragments import Fragment


class TypeCtx(Protocol):
    """What a type rule may ask of the front end."""

    symbols: Symbols
    device: torch.device
    index_dtype: torch.dtype

    def span(self, argument: str | None = None) -> Span:
        """The author's source of the call, or of one of its arguments."""
        ...

    def item_span(self, position: int, argument: str = "index") -> Span:
        """The author's source of one item of a subscript, or of an argument that is a list."""
        ...

    def cause(self, value: Any) -> tuple[exc.Related, ...]:
        """Where a value enters the kernel, if it is one of its parameters."""
        ...

    def target(self) -> str | None:
        """The variable that the author assigns the call's result to."""
        ...

    def record(self, op: Op, args: Sequence[Any], value: Any) -> Any:
        """Append a node that computes `value`, and return the value."""
        ...

    def fake(self, sizes: Sequence[Any], dtype: torch.dtype) -> torch.Tensor:
        """A new fake tensor on the kernel's device."""
        ...

    def is_device(self, value: object) -> bool:
        """Whether a value is a tensor that device code computed."""
        ...

    def is_literal(self, argument: str) -> bool:
        """Whether the author wrote an argument as a literal."""
        ...

    def tunable(self, name: str, fragment: Fragment) -> Any:
        """Register a tunable; returns its value in the config that is compiled for."""
        ...

    def new_block(self, name: str, extent: Any = None, minimum: int = 1) -> BlockSize:
        """A new block size, for the config to choose: the next entry of `block_sizes`."""
        ...

    def show(self, sizes: Sequence[Any]) -> str:
        """Sizes in the author's names, for messages."""
        ...

    def specialize(self, value: Any) -> int:
        """Compile in the value that a number has in this call."""
        ...

    def enclosing_serial(self) -> Sequence[TileAxis]:
        """The axes of the loops inside of the program around the call, outermost first."""
        ...

    def depends(self, axis: TileAxis, values: Any) -> bool:
        """Whether any of the values depends on an axis."""
        ...

    def node_of(self, value: Any) -> Any:
        """The node that computes a device tensor; other values unchanged."""
        ...

    def enclosing(self) -> Sequence[TileAxis]:
        """The axes of all loops around the call, outermost first."""
        ...

    def load(self, tensor: HostTensor, index: Sequence[Any]) -> torch.Tensor:
        """A load from a host tensor, as if the author had written it."""
        ...

    def new_call(self) -> int:
        """A number that no other call in this compilation has."""
        ...

    def number_tensor(self, value: Any) -> torch.Tensor:
        """A number as a 0-d device tensor."""
        ...

    def call_torch(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a torch function, as if the author had."""
        ...

    def warn(self, warning: exc.BaseWarning) -> None:
        """Report a warning, unless the author's settings silence its class."""
        ...


class LowerCtx(Protocol):
    """What a lowering may ask of the code generator. Expressions are opaque to it."""

    def operand(self, value: Any) -> Any:
        """The expression of a node or a number."""
        ...

    def number(self, value: Any) -> Any:
        """The expression of a scalar."""
        ...

    def statement(self, text: str) -> None:
        """Emit a statement."""
        ...

    def seed(self, value: Any) -> Any:
        """The expression of a seed, 64 bits wide."""
        ...

    def cast(self, value: Any, dtype: torch.dtype) -> Any:
        """A value in another dtype."""
        ...

    def call(self, function: str, args: list[Any], dtype: torch.dtype) -> Any:
        """A pointwise call of a Triton function."""
        ...

    def add(self, left: Any, right: Any) -> Any:
        """A sum."""
        ...

    def mul(self, left: Any, right: Any) -> Any:
        """A product."""
        ...

    def broadcast(self, value: Any, sizes: Sequence[Any]) -> Any:
        """A value in its full shape."""
        ...

    def shared(self, value: Any, wish: str) -> Any:
        """An offset or mask of several dimensions under one name, wherever it is used."""
        ...

    def axis_index(
        self, tile: TileAxis | None, size: Any, dim: int, rank: int, origin: Any, wide: bool
    ) -> Any:
        """The global index along one axis of `rank`; `wide` for 64 bits."""
        ...

    def axis_begin(self, tile: TileAxis) -> str:
        """The name of a tile's first index."""
        ...

    def known_size(self, size: Any) -> int | None:
        """The number of elements that a dimension has in this config, if known."""
        ...

    def size_text(self, size: Any) -> str:
        """The length of a dimension in Triton: a power of two that covers it."""
        ...

    def place(self, value: Any, width: int, at: int, rank: int) -> Any:
        """A block of `width` dimensions as dimensions `at` and on of `rank` ones."""
        ...

    def sub(self, left: Any, right: Any) -> Any:
        """A difference."""
        ...

    def less(self, left: Any, right: Any) -> Any:
        """`left < right`."""
        ...

    def value(
        self, text: str, dtype: torch.dtype, shape: Sequence[Any], loose: bool = False
    ) -> Any:
        """Triton text as an expression; `loose` if it needs parentheses inside of another."""
        ...

    def assign(self, wishes: Sequence[str], text: str) -> list[str]:
        """Give the results of a piece of Triton text names, and emit the assignment."""
        ...

    def set_results(self, node: Node, values: Sequence[Any]) -> None:
        """The expressions of a node with several results; its lowering returns None."""
        ...

    def wide_number(self, value: Any) -> Any:
        """An int expression modulo 2**64."""
        ...

    def are_sizes_of_an_argument(self, sizes: Sequence[Any]) -> bool:
        """Whether a tensor argument with 32-bit offsets has as many elements as these sizes."""
        ...

    def is_host_number(self, value: Any) -> bool:
        """Whether the host can compute a number at the launch."""
        ...

    def launch_number(self, wish: str, function: str, *args: Any) -> Any:
        """A 64-bit number that a function of the launcher makes of numbers of the host."""
        ...


class Op:
    """An operation of the language, as the author calls it."""

    def __init__(self, signature: Callable[..., Any]) -> None:
        functools.update_wrapper(self, signature)
        self.name = signature.__name__
        self.signature = inspect.signature(signature)
        self.type_rule_fn: Callable[..., Any] | None = None
        self.lowering_fn: Callable[..., Any] | None = None
        self.reference_fn: Callable[..., Any] | None = None
        self.host_rule_fn: Callable[..., Any] | None = None
        self.is_loop = False
        # Whether it does something beside computing a value.
        self.has_effect = False

    def type_rule(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Set the type rule: `(ctx, *arguments) -> value`."""
        self.type_rule_fn = fn
        return fn

    def host_rule(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Set what the operation means in the host part of a kernel."""
        self.host_rule_fn = fn
        return fn

    def bind(
        self, span: Span | None, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> inspect.BoundArguments:
        """The arguments of a call, with defaults.

        Raises:
            InvalidAPIUsage: they do not fit the signature.
        """
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            advice = f"it is called as `hl.{self.name}{_without_types(self.signature)}`"
            detail = f"`hl.{self.name}`: {error}"
            raise exc.InvalidAPIUsage(span, detail=detail, advice=advice) from error
        bound.apply_defaults()
        return bound

    def misuse(self, span: Span | None, detail: str) -> exc.BaseError:
        """The error for arguments that do not fit the signature."""
        return exc.InvalidAPIUsage(span, detail=f"`hl.{self.name}`: {detail}")

    def lowering(self, fn: Callable[[Any, Node], Any]) -> Callable[[Any, Node], Any]:
        """Set the lowering: `(ctx, node) -> expression`."""
        self.lowering_fn = fn
        return fn

    def reference(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        """Set the eager reference: `(*arguments) -> result` on real tensors."""
        self.reference_fn = fn
        return fn

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Reached outside of compiled kernels: the reference in eager mode, else an error.

        The eager mode is one of torch's function modes, so that torch keeps its stack.
        """
        if _modes():
            return torch.overrides.handle_torch_function(self, (), *args, **kwargs)
        raise exc.NotInsideKernel(api=f"hl.{self.name}")

    def run_reference(self, mode: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Run the eager reference under a mode."""
        if self.reference_fn is None:
            raise exc.UnsupportedOperation(api=f"hl.{self.name}", detail="not in eager mode")
        bound = self.bind(None, args, kwargs)
        if not isinstance(bound.arguments.get("shape", ()), (tuple, list)):
            raise self.misuse(None, f"the shape must be a list: `hl.{self.name}([tile], ...)`")
        return self.reference_fn(mode, *bound.args, **bound.kwargs)

    def __repr__(self) -> str:
        return f"hl.{self.name}"


def _without_types(signature: inspect.Signature) -> inspect.Signature:
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return inspect.Signature(plain)


def _modes() -> bool:
    return torch._C._len_torch_function_stack() > 0  # pyright: ignore[reportPrivateUsage]


def host_function(result: Callable[..., Any]) -> Callable[[Any], Any]:
    """Declare a function that the host part of a kernel may call with numbers not known yet.

    Args:
        result: from the arguments to the type of the result, or a tuple of types.
    """

    def mark(function: Any) -> Any:
        function.result_type = result
        return function

    return mark


def op(signature: Callable[..., Any]) -> Op:
    """Make an operation of a documented signature; its parts are added by decorators."""
    return Op(signature)
