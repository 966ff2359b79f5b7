"""Errors about a kernel as a whole: how it is declared, called, and cut into loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from helion.exc.base import BaseError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "BarrierOnlyAllowedAtTopLevel",
    "BarrierRequiresPersistent",
    "ClosureMutation",
    "ClosuresNotSupported",
    "DecoratorAfterHelionKernelDecorator",
    "DeviceLoopElseBlock",
    "EmptyDeviceLoopAfterDCE",
    "GlobalMutation",
    "GraphModuleUnsupportedOps",
    "InvalidDeviceForLoop",
    "LoopDependencyError",
    "LoopFunctionNotInFor",
    "NamingConflict",
    "NestedDeviceLoopsConflict",
    "NestedGridLoop",
    "NestedKernelCallsNotSupported",
    "NoDeviceLoopsInKernel",
    "NoTensorArgs",
    "NotInsideKernel",
    "TooManyArguments",
    "TopLevelStatementBetweenLoops",
    "UnsupportedArgument",
    "UnsupportedSignature",
]


class NotInsideKernel(BaseError):
    """An `hl` function runs outside of any kernel."""

    code = "not-inside-kernel"
    title = "`{api}` was called outside of a kernel"
    help = "call it inside a function decorated with `@helion.kernel`"
    defaults: ClassVar[Mapping[str, str]] = {"api": "helion.language"}


class NamingConflict(BaseError):
    """A parameter, local or global has a name that the generated module keeps for itself."""

    code = "naming-conflict"
    title = "the name `{name}` is reserved in kernels"
    label = "{place}"
    help = "rename it; generated code uses `{name}` for a module or value of its own"
    defaults: ClassVar[Mapping[str, str]] = {"place": "`{name}` is bound here"}


class ClosuresNotSupported(BaseError):
    """The kernel function has free variables."""

    code = "closures-not-supported"
    title = "a kernel may not capture variables of an enclosing function: `{name}`"
    help = "pass `{name}` as an argument, or make it a global of the module"


class ClosureMutation(BaseError):
    """A traced function writes to a variable that it captured."""

    code = "closure-mutation"
    title = "a function called in a kernel may not change the captured variable `{name}`"
    label = "`{name}` is written here"
    help = "return the new value instead"


class GlobalMutation(BaseError):
    """A kernel or a traced function writes to a global."""

    code = "global-mutation"
    title = "a kernel may not change the global `{name}`"
    label = "`{name}` is written here"
    help = "return the value, or store it into a tensor argument"


class DecoratorAfterHelionKernelDecorator(BaseError):
    """Another decorator sits between the kernel decorator and `def`."""

    code = "decorator-after-helion-kernel-decorator"
    title = "`@{decorator}` stands below the kernel decorator"
    help = (
        "move it above `@helion.kernel`: the kernel is read from its source, so a wrapper "
        "below it would be lost"
    )
    defaults: ClassVar[Mapping[str, str]] = {"decorator": "..."}


class NoTensorArgs(BaseError):
    """No argument says which device to run on."""

    code = "no-tensor-args"
    title = "no argument of the kernel is or contains a tensor or a `torch.device`"
    help = "pass a tensor or a `torch.device`: it decides where the kernel runs"


class UnsupportedArgument(BaseError, TypeError):
    """An argument of a kernel has a type that kernels do not take."""

    code = "unsupported-argument"
    title = "the kernel argument `{name}` has the unsupported type `{got}`"
    help = "pass tensors, numbers, strings, dtypes, devices, functions, or containers of these"


class TooManyArguments(BaseError, TypeError):
    """A call has more positional arguments than the kernel has parameters."""

    code = "too-many-arguments"
    title = "Too many arguments passed to the kernel, expected: {expected} got: {got}."
    help = "compare the call with the kernel's signature"


class UnsupportedSignature(BaseError, TypeError):
    """A kernel has `*args`, `**kwargs` or keyword-only parameters."""

    code = "unsupported-signature"
    title = "the kernel parameter `{name}` is {kind}"
    help = (
        "use plain parameters, with defaults where needed; pass a tuple or dict for a "
        "variable number of values"
    )
    defaults: ClassVar[Mapping[str, str]] = {"kind": "variadic or keyword-only"}


class GraphModuleUnsupportedOps(BaseError):
    """A `torch.fx.GraphModule` argument does more than compute."""

    code = "graph-module-unsupported-ops"
    title = "the graph module holds operations that a kernel cannot call: {ops}"
    help = "pass a graph of pure tensor functions: no submodules, no attributes"


class LoopFunctionNotInFor(BaseError):
    """A loop function is not the iterable of a `for`."""

    code = "loop-function-not-in-for"
    title = "`{api}` must be what a `for` loop iterates over"
    help = "write `for tile in {api}(...):`"
    defaults: ClassVar[Mapping[str, str]] = {"api": "hl.tile"}


class NestedGridLoop(BaseError):
    """A loop that should become the launch grid stands inside host control flow."""

    code = "nested-grid-loop"
    title = "a top-level device loop may not be inside a host `{statement}`"
    help = "move the loop to the function's body, or put the condition inside the loop"
    defaults: ClassVar[Mapping[str, str]] = {"statement": "if/for/while/with"}


class NestedDeviceLoopsConflict(BaseError):
    """Nested loops tile with one block."""

    code = "nested-device-loops-conflict"
    title = "a nested loop uses the same block as the loop around it"
    label = "this block is already in use"
    help = "give the inner loop a block size of its own, or tile `outer.begin` to `outer.end`"


class DeviceLoopElseBlock(BaseError):
    """A device loop has an `else` block."""

    code = "device-loop-else-block"
    title = "a device loop may not have an `else` block"
    help = "put those statements after the loop"


class InvalidDeviceForLoop(BaseError):
    """A `for` in device code iterates over something unsupported."""

    code = "invalid-device-for-loop"
    title = "a `for` in a device loop cannot iterate over `{got}`"
    label = "this is `{got}`"
    help = (
        "iterate over `hl.tile`, `hl.grid`, `hl.static_range`, `range`, or a tuple or list "
        "known at compile time"
    )


class LoopDependencyError(BaseError):
    """A later top-level loop touches what an earlier one wrote."""

    code = "loop-dependency-error"
    title = "this loop uses `{name}`, which an earlier top-level loop writes"
    label = "`{name}` is used here"
    help = "merge the loops, or make two kernels: loops of one kernel run at the same time"


class TopLevelStatementBetweenLoops(BaseError):
    """A host statement stands between two top-level loops."""

    code = "top-level-statement-between-loops"
    title = "no statement may stand between top-level device loops"
    help = (
        "move it before the first or after the last loop (all of them are one launch), or "
        "make two kernels"
    )


class BarrierOnlyAllowedAtTopLevel(BaseError):
    """`hl.barrier()` is not between two top-level loops."""

    code = "barrier-only-allowed-at-top-level"
    title = "`hl.barrier()` may only stand between two top-level loops"
    help = "move it to the function's body, after one device loop and before the next"


class BarrierRequiresPersistent(BaseError):
    """A kernel with a barrier meets a config whose programs do not all run at once."""

    code = "barrier-requires-persistent"
    title = "`hl.barrier()` requires pid_type 'persistent_blocked', the config has {pid_type!r}"
    help = (
        "set `pid_type='persistent_blocked'`: a barrier needs all programs to be on the "
        "device at once"
    )


class NoDeviceLoopsInKernel(BaseError):
    """The kernel has no device loop."""

    code = "no-device-loops-in-kernel"
    title = "the kernel has no device loop"
    help = "put the device part into a `for tile in hl.tile(...)` loop in the function's body"


class EmptyDeviceLoopAfterDCE(BaseError):
    """A device loop has no effect."""

    code = "empty-device-loop-after-dce"
    title = "Device loop is empty after dead-code elimination"
    label = "nothing in this loop can be seen outside"
    help = "store a result: `out[tile] = value`"


class NestedKernelCallsNotSupported(BaseError):
    """A kernel calls a kernel."""

    code = "nested-kernel-calls-not-supported"
    title = "Calling a Helion kernel from within another Helion kernel is not supported"
    help = "make `{name}` a plain function and call it from both kernels"
    defaults: ClassVar[Mapping[str, str]] = {"name": "the inner kernel"}
