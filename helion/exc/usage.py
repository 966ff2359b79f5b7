"""Errors about single operations and about tunables: wrong arguments, wrong place."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from helion.exc.base import BaseError
from helion.exc.internal import InternalError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "ConfigSpecFragmentWithSymInt",
    "InvalidAPIUsage",
    "InvalidAtomicSemantics",
    "InvalidPrintArgument",
    "RegisterTunableArgTypes",
    "SpecializeArgType",
    "SpecializeOnDevice",
    "StackTensorDevPtrDtype",
    "StackTensorDevPtrOnHost",
    "StackTensorExampleOnDevice",
    "StackTensorcOnHost",
    "TunableNameConflict",
    "TunableTypeNotSupported",
    "UnsupportedOperation",
]


class InvalidAPIUsage(BaseError):
    """An operation is called in a way that means nothing."""

    code = "invalid-api-usage"
    title = "{detail}"
    help = "{advice}"
    defaults: ClassVar[Mapping[str, str]] = {"advice": ""}


class InvalidAtomicSemantics(InternalError, ValueError):
    """The `sem=` of an atomic is unknown.

    An `InternalError` because existing programs catch it as one.
    """

    code = "invalid-atomic-semantics"
    label = "this is {got!r}"
    title = "`{api}` does not know sem={got!r}"
    help = "use 'relaxed', 'acquire', 'release' or 'acq_rel'"
    defaults: ClassVar[Mapping[str, str]] = {"api": "hl.atomic_add"}


class InvalidPrintArgument(InternalError, TypeError, ValueError):
    """`hl.device_print` gets a prefix that is no literal, or a value that it cannot print.

    An `InternalError` because existing programs catch it as one.
    """

    code = "invalid-print-argument"
    label = ""
    title = "`{api}`: {detail}"
    help = "give a string literal first, then tensors or numbers: `hl.device_print('x', x)`"
    defaults: ClassVar[Mapping[str, str]] = {"api": "hl.device_print", "detail": "wrong arguments"}


class UnsupportedOperation(BaseError, NotImplementedError):
    """An operation of the language that this version does not have yet."""

    code = "unsupported-operation"
    title = "`{api}` is not supported yet"
    help = "write it with other operations; a later version will have it"


class SpecializeOnDevice(BaseError):
    """`hl.specialize` is called in a device loop."""

    code = "specialize-on-device"
    title = "`hl.specialize` works in the host part only"
    help = "move the call before the device loop"


class SpecializeArgType(BaseError):
    """`hl.specialize` gets something that is no size."""

    code = "specialize-arg-type"
    title = (
        "`hl.specialize` needs a size, a stride, an integer, or a sequence of these, got `{got}`"
    )
    label = "this is `{got}`"
    help = "pass `x.size(0)`, `x.shape`, or an int argument of the kernel"


class StackTensorcOnHost(BaseError):
    """`hl.stacktensor_like` is called in the host part. The name is spelled as users know it."""

    code = "stack-tensor-on-host"
    title = "`hl.stacktensor_like` works in device loops only"
    help = "move the call into the loop that uses the stack"


class StackTensorDevPtrOnHost(BaseError):
    """The addresses of a stack are not a device value."""

    code = "stack-tensor-dev-ptr-on-host"
    title = "the addresses given to `hl.stacktensor_like` are a host tensor"
    help = "load them first: `hl.stacktensor_like(example, dev_ptrs[tile])`"


class StackTensorDevPtrDtype(BaseError):
    """The addresses of a stack are no 64-bit integers."""

    code = "stack-tensor-dev-ptr-dtype"
    title = "the addresses given to `hl.stacktensor_like` must be uint64 or int64, got `{got}`"
    help = "make them with `torch.tensor([t.data_ptr() for t in tensors], dtype=torch.uint64)`"


class StackTensorExampleOnDevice(BaseError):
    """The example of a stack is a device value."""

    code = "stack-tensor-example-on-device"
    title = "the example given to `hl.stacktensor_like` is a device value"
    help = "pass one of the stacked tensors, as an argument of the kernel"


class RegisterTunableArgTypes(BaseError):
    """`hl.register_tunable` gets something else than a literal name and a fragment."""

    code = "register-tunable-arg-types"
    title = "`hl.register_tunable` needs a string literal and a fragment, got `{got}`"
    help = "write `hl.register_tunable('unroll', PowerOfTwoFragment(1, 8))`"


class TunableTypeNotSupported(BaseError):
    """A tunable has a value that kernels cannot hold."""

    code = "tunable-type-not-supported"
    title = "a tunable must be an int, a float or a bool, got `{got}`"
    help = "number the choices, and pick by number in the kernel"


class TunableNameConflict(BaseError):
    """A tunable has the name of a config key, or of another tunable."""

    code = "tunable-name-conflict"
    title = "the tunable name `{name}` is already taken"
    label = "`{name}` is registered here"
    help = "choose a name that is neither a config key nor another tunable's"


class ConfigSpecFragmentWithSymInt(BaseError):
    """A bound of a fragment is a run-time size."""

    code = "config-spec-fragment-with-symint"
    title = "a bound of the fragment is not known at compile time: `{got}`"
    help = "use numbers, or fix the size with `hl.specialize(size)` first"
    defaults: ClassVar[Mapping[str, str]] = {"got": "a size"}
