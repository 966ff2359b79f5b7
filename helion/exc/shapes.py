"""Errors about tiles, subscripts, shapes, reductions and matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from helion.exc.base import BaseError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from helion.exc.spans import Related, Span

__all__ = [
    "AtomicOnDeviceTensor",
    "DataDependentOutputShapeNotSupported",
    "DeviceMismatch",
    "DeviceTensorSubscriptAssignmentNotAllowed",
    "DeviceValueIndexing",
    "DotBatchDimensionMismatch",
    "FailedToUnpackTile",
    "IncorrectTileUsage",
    "IndexOffsetOutOfRangeForInt32",
    "IndexOutOfRange",
    "InputTensorNumelExceedsIndexType",
    "InvalidDotDtype",
    "InvalidDotShape",
    "InvalidIndexingType",
    "InvalidJaggedTileUsage",
    "InvalidReductionDim",
    "InvalidShapeElement",
    "InvalidTileRange",
    "JoinDtypeMismatch",
    "MultipleReductionDims",
    "NonTensorSubscriptAssign",
    "OverpackedTile",
    "RankMismatch",
    "ReductionDimInvalidForShape",
    "ReductionOnNonTile",
    "RequiresTensorInAssignment",
    "ShapeMismatch",
    "ShapeSpecializingAllocation",
    "ShapeSpecializingCall",
    "TileOfTile",
    "UnsupportedDtype",
    "UnsupportedSplitOperation",
]


class RankMismatch(BaseError):
    """The number of indices, or the rank of a value, does not fit."""

    code = "rank-mismatch"
    title = "{direction}: Expected ndim={expected}, but got ndim={got}"
    help = "give one index for each dimension; `:` takes a whole one"

    def __init__(
        self, span: Span | None = None, *, related: Sequence[Related] = (), **fields: object
    ) -> None:
        """Makes the error; `direction` follows from the integers `expected` and `got`."""
        expected, got = fields.get("expected"), fields.get("got")
        if isinstance(expected, int) and isinstance(got, int):
            direction = "too many indices" if got > expected else "too few indices"
            fields.setdefault("direction", direction)
        fields.setdefault("direction", "wrong number of dimensions")
        super().__init__(span, related=related, **fields)


class InvalidIndexingType(BaseError):
    """Something in a subscript that is no index."""

    code = "invalid-indexing-type"
    title = "`{got}` cannot be used as an index"
    label = "this is `{got}`"
    help = "index with tiles, integers, slices, `None`, `...`, or integer tensors"


class IndexOutOfRange(BaseError, IndexError):
    """An index that is known at compile time lies outside of its dimension."""

    code = "index-out-of-range"
    title = "index {index} is out of range for dimension {dim} with size {size}"
    help = "count from 0 to {size} - 1, or from -1 back for the last elements"


class DeviceValueIndexing(InvalidIndexingType):
    """An element of a device value is read."""

    code = "device-value-indexing"
    title = "a device value can be indexed with `None` and `:` only, got `{got}`"
    help = "reduce it, or read the element from memory: `x[i]` of a tensor made on the host"


class OverpackedTile(BaseError):
    """A tuple of several tiles stands where one tile is needed."""

    code = "overpacked-tile"
    title = "a tuple of {count} tiles is used as one index among others"
    help = "unpack it: `for tile_i, tile_j in hl.tile([m, n])`"
    defaults: ClassVar[Mapping[str, str]] = {"count": "several"}


class FailedToUnpackTile(BaseError):
    """One tile is unpacked as if it were several."""

    code = "failed-to-unpack-tile"
    title = "one tile cannot be unpacked"
    help = "`hl.tile(n)` yields one tile; pass a list, `hl.tile([m, n])`, to get a tuple"


class InvalidTileRange(BaseError):
    """A range is known to end before it begins."""

    code = "invalid-tile-range"
    title = "the range of `{api}` ends before it begins: begin={begin}, end={end}"
    help = "swap the bounds"
    defaults: ClassVar[Mapping[str, str]] = {"api": "hl.tile"}


class TileOfTile(BaseError):
    """A tile is used as a bound of a loop."""

    code = "tile-of-tile"
    title = "a tile cannot be a bound of `{api}`"
    help = "to split a tile further, use `hl.tile(tile.begin, tile.end)`"
    defaults: ClassVar[Mapping[str, str]] = {"api": "hl.tile"}


class IncorrectTileUsage(BaseError):
    """A tile, or a function that makes tiles, is used in a way that means nothing."""

    code = "incorrect-tile-usage"
    title = "{detail}"
    help = "{advice}"
    defaults: ClassVar[Mapping[str, str]] = {
        "detail": "a tile cannot be used this way: got `{got}`",
        "advice": "a tile is an index or a size; use `tile.index` for arithmetic on its elements",
    }


class InvalidJaggedTileUsage(BaseError):
    """`hl.jagged_tile` gets a wrong parent, or its tile stands without the parent's axes."""

    code = "invalid-jagged-tile-usage"
    title = "{detail}"
    help = (
        "`hl.jagged_tile(lengths)` needs an integer device tensor over enclosing tiles, "
        "and its tile needs those tiles in the same subscript"
    )
    defaults: ClassVar[Mapping[str, str]] = {"detail": "wrong use of `hl.jagged_tile`"}


class ShapeMismatch(BaseError):
    """Shapes do not broadcast, in an operation or a store."""

    code = "shape-mismatch"
    title = "the shapes {lhs} and {rhs} do not fit together"
    label = "{place}"
    help = "a tile axis matches only itself; insert axes with `[:, None]` to broadcast"


class DotBatchDimensionMismatch(BaseError):
    """The batch dimensions of a product of 3-D tensors differ."""

    code = "dot-batch-dimension-mismatch"
    title = "Batch dimension mismatch: {lhs} from LHS tensor vs. {rhs} from RHS tensor"
    help = "batch dimensions must be equal, 1, or absent"


class InvalidDotShape(ShapeMismatch, ValueError):
    """Operands or accumulator of `hl.dot` have shapes that do not fit."""

    code = "invalid-dot-shape"
    title = "`{api}`: {detail}"
    help = "the product of [M, K] and [K, N] is [M, N]; `acc` must have exactly that shape"
    defaults: ClassVar[Mapping[str, str]] = {"api": "hl.dot", "detail": "the shapes do not fit"}


class InvalidDotDtype(BaseError, TypeError):
    """Operands or accumulator of `hl.dot` have dtypes that it does not take."""

    code = "invalid-dot-dtype"
    title = "`{api}` does not take {detail}"
    help = (
        "operands: float16, bfloat16, float32, int8, float8_e4m3fn or float8_e5m2; "
        "accumulator: float16 or float32, int32 for int8 operands"
    )
    defaults: ClassVar[Mapping[str, str]] = {"api": "hl.dot", "detail": "these dtypes"}


class JoinDtypeMismatch(BaseError, TypeError):
    """`hl.join` gets tensors of different dtypes."""

    code = "join-dtype-mismatch"
    title = "`hl.join` needs one dtype, got {lhs} and {rhs}"
    help = "convert one of them: `.to(dtype)`"


class IndexOffsetOutOfRangeForInt32(BaseError):
    """An offset does not fit the `index_dtype` that the author asked for."""

    code = "index-offset-out-of-range-for-int32"
    title = "index_dtype is {index_dtype}, but offsets into `{name}` do not fit in it"
    help = (
        "use `index_dtype=torch.int64`, or leave the setting out: the width is then chosen "
        "from the sizes"
    )
    defaults: ClassVar[Mapping[str, str]] = {"index_dtype": "torch.int32", "name": "a tensor"}


class InputTensorNumelExceedsIndexType(BaseError):
    """An argument has more elements than the `index_dtype` that the author asked for can count."""

    code = "input-tensor-numel-exceeds-index-type"
    title = "index_dtype is {index_dtype}, but the argument `{name}` spans {numel} elements"
    help = (
        "use `index_dtype=torch.int64`, or leave the setting out: the width is then chosen "
        "from the sizes"
    )
    defaults: ClassVar[Mapping[str, str]] = {"index_dtype": "torch.int32"}


class DataDependentOutputShapeNotSupported(BaseError):
    """The shape of a result would depend on values."""

    code = "data-dependent-output-shape-not-supported"
    title = "the result of {api} has a shape that depends on values"
    help = "keep the shape and mask the values: `torch.where(mask, x, other)`"
    defaults: ClassVar[Mapping[str, str]] = {"api": "this operation"}


class UnsupportedSplitOperation(BaseError):
    """A torch function that cuts a tensor into pieces."""

    code = "unsupported-split-operation"
    title = (
        "{api} is not supported in Helion device loops; a last dimension of size 2 can be cut "
        "with hl.split()"
    )
    help = "reshape so that the pieces are the last dimension, or load the pieces one by one"
    defaults: ClassVar[Mapping[str, str]] = {"api": "torch.chunk"}


class RequiresTensorInAssignment(BaseError):
    """The value of `x[...] = value` is neither a tensor nor a number."""

    code = "requires-tensor-in-assignment"
    title = "the value stored must be a tensor or a number, got `{got}`"
    label = "this is `{got}`"
    help = "store a tensor whose shape broadcasts to the index, or a number"


class NonTensorSubscriptAssign(BaseError):
    """The target of `x[...] = value` is not a tensor."""

    code = "non-tensor-subscript-assign"
    title = "`{got}` does not take `x[...] = value` in a device loop"
    label = "this is `{got}`"
    help = (
        "store into a tensor made on the host, or into a list with an index known at compile time"
    )


class DeviceTensorSubscriptAssignmentNotAllowed(BaseError):
    """An element of a device value is assigned."""

    code = "device-tensor-subscript-assignment-not-allowed"
    title = "an element of a device value cannot be assigned"
    label = "this value was computed in the loop"
    help = "make a new value, for instance `{name} = torch.where(mask, new, {name})`"
    defaults: ClassVar[Mapping[str, str]] = {"name": "x"}


class AtomicOnDeviceTensor(BaseError):
    """The target of an atomic is a device value."""

    code = "atomic-on-device-tensor"
    title = "{api}() needs a tensor in memory, but its target is a device value"
    help = "use a tensor argument, or one allocated in the host part"
    defaults: ClassVar[Mapping[str, str]] = {"api": "hl.atomic_add"}


class ShapeSpecializingCall(BaseError):
    """A call would turn a symbolic size into a number."""

    code = "shape-specializing-call"
    title = "`{api}` needs a number where the size is not known at compile time"
    help = "fix the size with `hl.specialize(size)` in the host part, or pass it as `hl.constexpr`"
    defaults: ClassVar[Mapping[str, str]] = {"api": "this call"}


class ShapeSpecializingAllocation(BaseError):
    """A device allocation has a size that is not known at compile time."""

    code = "shape-specializing-allocation"
    title = "a device tensor cannot have the run-time size `{size}`"
    help = "use a tile, or fix the size with `hl.specialize(size)` in the host part"


class InvalidShapeElement(BaseError, TypeError):
    """An entry of a shape is neither a tile nor an integer."""

    code = "invalid-shape-element"
    title = "the shape of `{api}` may hold tiles and integers, got `{got}`"
    label = "this is `{got}`"
    help = "list the axes of the result: `[tile, 4]`"


class ReductionOnNonTile(BaseError):
    """The reduced dimension is neither a tile nor a whole axis."""

    code = "reduction-on-non-tile"
    title = "dimension {dim} is neither a tile nor a whole axis, and cannot be reduced"
    help = "reduce over a tile axis, or over an axis loaded with `:`"


class InvalidReductionDim(BaseError):
    """The `dim` of a reduction is not an integer."""

    code = "invalid-reduction-dim"
    title = "the dimension of a reduction must be an integer, got `{got}`"
    help = "pass `dim=` as an integer known at compile time"


class MultipleReductionDims(BaseError):
    """Several dimensions at once where one is possible."""

    code = "multiple-reduction-dims"
    title = "`{api}` cannot reduce several dimensions at once: {dims}"
    help = "reduce one dimension after the other"


class ReductionDimInvalidForShape(BaseError):
    """The `dim` of a reduction is outside the shape."""

    code = "reduction-dim-invalid-for-shape"
    title = "dimension {dim} does not exist in the shape {shape}"
    help = "count from 0, or from -1 for the last one"


class UnsupportedDtype(BaseError, TypeError):
    """A dtype that Triton does not have."""

    code = "unsupported-dtype"
    title = "kernels cannot compute with {dtype}"
    help = "convert it, or view it as one that Triton has: `torch.view_as_real` for complex numbers"


class DeviceMismatch(BaseError, ValueError):
    """A tensor or a `device=` is not on the kernel's device."""

    code = "device-mismatch"
    title = "`{name}` is on `{got}`, but the kernel runs on `{expected}`"
    help = "move it with `.to({expected!r})` before the call, or leave `device=` out"
