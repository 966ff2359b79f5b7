"""Errors about Python in kernels: statements, names, types, the line between host and device."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from helion.exc.base import BaseError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "AssignmentMultipleTargets",
    "CannotModifyHostVariableOnDevice",
    "CannotReadDeviceVariableOnHost",
    "CantCombineTypesInControlFlow",
    "CantReadOnDevice",
    "ControlFlowTensorMismatch",
    "DeviceAPIOnHost",
    "FailedToUnpackTupleAssign",
    "HostTensorDirectUsage",
    "InvalidAssignment",
    "InvalidSequenceSubscription",
    "LoopVariableTypeChange",
    "NotAllowedInHelperFunction",
    "NotAllowedOnDevice",
    "StarredArgsNotSupportedOnDevice",
    "StatementNotSupported",
    "StaticAssertionFailed",
    "TracedArgNotSupported",
    "TypeInferenceError",
    "UndefinedVariable",
    "UnsupportedPythonType",
]


class StatementNotSupported(BaseError):
    """Python syntax that kernels do not have."""

    code = "statement-not-supported"
    title = "`{statement}` is not supported in a kernel"
    help = "{advice}"
    defaults: ClassVar[Mapping[str, str]] = {"advice": "move it outside of the kernel function"}


class UnsupportedPythonType(BaseError):
    """A Python value of a type that kernels do not have."""

    code = "unsupported-python-type"
    title = "values of type `{got}` are not supported in a kernel"
    label = "this is `{got}`"
    help = "use tensors, numbers, strings, tuples, lists or dicts"


class NotAllowedOnDevice(BaseError):
    """A statement or call that works on the host only."""

    code = "not-allowed-on-device"
    title = "{what} is not allowed in a device loop"
    help = "{advice}"
    defaults: ClassVar[Mapping[str, str]] = {
        "what": "this",
        "advice": "move it to the host part, before or after the loop",
    }


class AssignmentMultipleTargets(NotAllowedOnDevice):
    """`a = b = value` in device code."""

    code = "assignment-multiple-targets"
    title = "an assignment in a device loop may have one target only"
    help = "write one assignment for each name"


class InvalidAssignment(NotAllowedOnDevice):
    """A target that device code cannot assign to."""

    code = "invalid-assignment"
    title = "a device loop cannot assign to `{target}`"
    help = "assign to a name, a tuple of names, or a subscript of a host tensor"


class StarredArgsNotSupportedOnDevice(BaseError):
    """`*values` in device code."""

    code = "starred-args-not-supported-on-device"
    title = "`*` arguments and targets are not supported in a device loop"
    help = "write the values out"


class HostTensorDirectUsage(BaseError):
    """A host tensor is used in device code without loading it."""

    code = "host-tensor-direct-usage"
    title = "the host tensor `{name}` is used in a device loop without loading it"
    label = "`{name}` lives in memory, it is not a block of values"
    help = "load it: `{name}[tile]`, or `hl.load({name}, [])` for a tensor without dimensions"


class DeviceAPIOnHost(BaseError):
    """A device function is called in the host part."""

    code = "device-api-on-host"
    title = "`{api}` works in device loops only, and is called in the host part of the kernel"
    help = "move the call into a `for tile in hl.tile(...)` loop"


class CantReadOnDevice(BaseError):
    """Device code reads a value that exists on the host only."""

    code = "cant-read-on-device"
    title = "{what} cannot be read in a device loop"
    help = "compute what you need from it on the host, and use the result in the loop"
    defaults: ClassVar[Mapping[str, str]] = {"what": "this host value"}


class CannotModifyHostVariableOnDevice(BaseError):
    """Device code rebinds a name of the host part."""

    code = "cannot-modify-host-variable-on-device"
    title = "the host variable `{name}` cannot be assigned in a device loop"
    label = "`{name}` is assigned here"
    help = (
        "store into it (`{name}[tile] = ...`) if it is a tensor; else use another name in the loop"
    )


class CannotReadDeviceVariableOnHost(BaseError):
    """The host part reads a name that a device loop bound."""

    code = "cannot-read-device-variable-on-host"
    title = "the device variable `{name}` cannot be read in the host part"
    label = "`{name}` exists inside the device loop only"
    help = "store it into a tensor made before the loop, and read that"


class UndefinedVariable(BaseError):
    """A name that nothing binds."""

    code = "undefined-variable"
    title = "`{name}` is not defined"
    label = "nothing has bound `{name}` here"
    help = "bind it first; what one branch or a loop body alone binds does not exist after it"


class TypeInferenceError(BaseError):
    """The type of an expression cannot be found."""

    code = "type-inference-error"
    title = "{detail}"
    help = "{advice}"
    defaults: ClassVar[Mapping[str, str]] = {"advice": ""}


class TracedArgNotSupported(BaseError):
    """An argument that a traced function cannot take."""

    code = "traced-arg-not-supported"
    title = "a function called in a kernel cannot take a `{got}`"
    label = "this is `{got}`"
    help = "pass tensors, tiles, numbers, functions, or containers of these"


class StaticAssertionFailed(BaseError, AssertionError):
    """An `assert` in a device loop does not hold; it is checked once, while compiling."""

    code = "static-assertion-failed"
    title = "the assertion does not hold{message}"
    help = "an `assert` in a device loop is about types and sizes, and is checked while compiling"
    defaults: ClassVar[Mapping[str, str]] = {"message": ""}


class NotAllowedInHelperFunction(BaseError):
    """A combine function does what needs a kernel around it."""

    code = "not-allowed-in-helper-function"
    title = "{what} is not allowed in a combine function"
    help = "compute it before, and let the combine function work on its arguments alone"
    defaults: ClassVar[Mapping[str, str]] = {"what": "this"}


class CantCombineTypesInControlFlow(BaseError):
    """Two branches, or two iterations, leave values of different kinds in a variable."""

    code = "cant-combine-types-in-control-flow"
    title = "`{name}` is `{before}` on one way through the program and `{after}` on another"
    help = "give `{name}` the same type on every way"


class ControlFlowTensorMismatch(BaseError):
    """Two branches, or two iterations, leave tensors of different rank, shape, dtype or device."""

    code = "control-flow-tensor-mismatch"
    title = "`{name}` is `{before}` on one way through the program and `{after}` on another"
    help = (
        "make rank, shape, dtype and device the same, for instance with `.to(dtype)` or "
        "`.expand(...)`"
    )


class LoopVariableTypeChange(ControlFlowTensorMismatch, CantCombineTypesInControlFlow):
    """A variable that a loop carries has another type after an iteration than before it."""

    code = "loop-variable-type-change"
    title = (
        "the loop variable `{name}` is `{before}` before the loop and `{after}` after an iteration"
    )
    label = "`{name}` becomes `{after}`"
    help = "start with the type it has later, for instance `{name} = hl.zeros([tile], dtype=...)`"


class FailedToUnpackTupleAssign(BaseError):
    """A sequence has another length than the targets that it is assigned to."""

    code = "failed-to-unpack-tuple-assign"
    title = "{got} cannot be unpacked into {expected} names"
    help = "give as many names as there are values"
    defaults: ClassVar[Mapping[str, str]] = {"got": "this value", "expected": "several"}


class InvalidSequenceSubscription(BaseError):
    """A list, tuple or dict is indexed with something that is not known at compile time."""

    code = "invalid-sequence-subscription"
    title = "a sequence cannot be indexed with {got}"
    help = "{advice}"
    defaults: ClassVar[Mapping[str, str]] = {
        "got": "this",
        "advice": "use an index known at compile time, such as the variable of an "
        "`hl.static_range` loop",
    }
