"""Launching a compiled kernel at the cost of the driver call and one look-up.

Triton's own dispatch (`JITFunction.run`) binds arguments, reads environment variables and walks the
arguments in Python at every call: 10 microseconds and more. Here each Triton function gets a
`Launcher`, which writes one Python function for the types of its arguments. That function computes
what Triton specializes on (dtype and alignment of tensors; whether integers are 1, divisible by 16,
or wider than 32 bits), finds the compiled kernel and starts it. A miss, and whatever is unfamiliar,
goes through Triton's dispatch, which compiles.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion._compat import CudaLaunch, is_interpreting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Dispatch", "Launcher", "default_launcher"]

_INTERPRETER = threading.Lock()
# A Triton function that is started in more ways than this forgets them, and finds them again.
_MOST_STARTS = 4096
_INT32, _INT64_MAX = (-(2**31), 2**31 - 1), 2**63 - 1


def default_launcher(
    kernel: Any, grid: tuple[int, ...], *args: Any, num_warps: int, num_stages: int, **options: Any
) -> None:
    """Launch a Triton kernel on the current stream; an empty grid launches nothing.

    Args:
        kernel: what `triton.jit` made.
        grid: the number of programs along one to three axes.
        args: its arguments, by position.
        num_warps: the number of warps of a program.
        num_stages: the depth of software pipelining.
        options: further options of Triton's compiler.
    """
    kinds = tuple(map(type, args))
    try:
        start = kernel.helion_launcher.starts[kinds]
    except (AttributeError, KeyError):
        start = _launcher_of(kernel).start_for(kinds)
    start(grid, args, num_warps, num_stages, options)


def _launcher_of(kernel: Any) -> Dispatch:
    launcher = getattr(kernel, "helion_launcher", None)
    if launcher is None:
        launcher = Dispatch(kernel)
        cuda = None if is_interpreting() else CudaLaunch.of_this_process()
        if cuda is not None and cuda.knows(kernel):
            launcher = Launcher(kernel, cuda)
        kernel.helion_launcher = launcher
    return launcher


class Dispatch:
    """Launches as Triton does.

    Attributes:
        kernel: what `triton.jit` made.
        starts: a function that launches, by the types of the arguments.
    """

    def __init__(self, kernel: Any) -> None:
        self.kernel = kernel
        self.starts: dict[tuple[type, ...], Callable[..., Any]] = {}

    def start_for(self, kinds: tuple[type, ...]) -> Callable[..., Any]:
        """The function that launches with arguments of these types."""
        if kinds not in self.starts:
            self.starts[kinds] = self._write_start(kinds) or self.dispatch
        return self.starts[kinds]

    def _write_start(self, kinds: tuple[type, ...]) -> Callable[..., None] | None:
        """One that knows a shorter way than `dispatch`, if there is one."""
        del kinds
        return None

    def dispatch(
        self, grid: tuple[int, ...], args: Sequence[Any], warps: int, stages: int, options: Any
    ) -> Any:
        """Launch; returns the compiled kernel where Triton compiles."""
        if 0 in grid:
            return None
        if not is_interpreting():
            self._check_devices(args)
        options = {"num_warps": warps, "num_stages": stages, **options}
        if not is_interpreting():
            # As in torch, `a * b + c` may round once. Triton's own default is about to change.
            return self.kernel[grid](*args, enable_fp_fusion=True, **options)
        # The interpreter puts its own functions into `triton.language` while a kernel runs.
        with _INTERPRETER:
            return self.kernel[grid](*args, **options)

    def _check_devices(self, args: Sequence[Any]) -> None:
        """Refuse what only crashes later, or has a text of Triton's own: several GPUs, the CPU.

        A GPU reads pinned memory.
        """
        tensors = [(i, a) for i, a in enumerate(args) if isinstance(a, torch.Tensor)]
        devices = [a.device for _, a in tensors if not a.is_cpu]
        expected = devices[0] if devices else torch.accelerator.current_accelerator()
        for i, tensor in tensors:
            if tensor.device != expected and not (tensor.is_cpu and tensor.is_pinned()):
                name = self.kernel.arg_names[i]
                raise exc.DeviceMismatch(name=name, got=tensor.device, expected=expected)


class Launcher(Dispatch):
    """Starts compiled kernels itself, on the current stream of the device that the tensors are on.

    Attributes:
        cuda: knows how.
    """

    def __init__(self, kernel: Any, cuda: CudaLaunch) -> None:
        super().__init__(kernel)
        self.cuda = cuda
        self._compiled: dict[Any, Callable[..., None]] = {}

    def _on_device(
        self, device: int, grid: tuple[int, ...], args: Sequence[Any], *rest: Any
    ) -> None:
        """The same launch, with the tensors' device as the current one."""
        with torch.cuda.device(device):
            self.start_for(tuple(map(type, args)))(grid, args, *rest)

    def _first(self, key: Any, *call: Any) -> None:
        """Launch through Triton, and remember the compiled kernel."""
        compiled = self.dispatch(*call)
        start = self.cuda.start_of(compiled)
        # Which globals a function reads is known when it has been compiled.
        if start is not None and self.cuda.knows(self.kernel):
            if len(self._compiled) >= _MOST_STARTS:
                self._compiled.clear()
            self._compiled[key] = start

    def _write_start(self, kinds: tuple[type, ...]) -> Callable[..., None] | None:
        """A function that launches with arguments of these types."""
        parameters = self.kernel.params
        if len(kinds) != len(parameters):
            return None  # defaults, which Triton fills in
        names = [f"a{i}" for i in range(len(kinds))]
        tensors = [
            n for n, kind in zip(names, kinds, strict=True) if issubclass(kind, torch.Tensor)
        ]
        parts: list[str] = []
        for name, kind, parameter in zip(names, kinds, parameters, strict=True):
            part = _key_part(name, kind, parameter)
            if part is None:
                return None
            parts += part
        if not tensors:
            return None
        values = ", ".join(f"{name}_pointer" if name in tensors else name for name in names)
        others = "".join(f" or {name}.get_device() != device" for name in tensors[1:])
        lines = [
            "def start(grid, args, warps, stages, options):",
            f"    {', '.join(names)}, = args",
            *(f"    {name}_pointer = {name}.data_ptr()" for name in tensors),
            f"    device = {tensors[0]}.get_device()",
            f"    if device < 0{others} or hooked() or pre_run_hooks:",
            "        return slowly(grid, args, warps, stages, options)",
            "    if device != current_device():",
            "        return on_device(device, grid, args, warps, stages, options)",
            "    options_key = tuple(options.items()) if options else None",
            f"    key = (device, warps, stages, options_key, {', '.join(parts)},)",
            "    run = get(key)",
            "    if run is None or 0 in grid:",
            "        return first(key, grid, args, warps, stages, options)",
            "    x, y, z = grid if len(grid) == 3 else (*grid, 1, 1)[:3]",
            f"    run(x, y, z, current_stream(device), ({values},))",
        ]
        scope: dict[str, Any] = {
            "slowly": self.dispatch,
            "pre_run_hooks": self.kernel.pre_run_hooks,
            "on_device": self._on_device,
            "first": self._first,
            "get": self._compiled.get,
            "hooked": self.cuda.hooked,
            "current_device": self.cuda.current_device,
            "current_stream": self.cuda.current_stream,
        }
        exec("\n".join(lines), scope)
        return scope["start"]


def _key_part(name: str, kind: type, parameter: Any) -> list[str] | None:
    """Expressions for what Triton specializes on in an argument; None for unfamiliar kinds."""
    if parameter.is_constexpr:
        known = kind in (int, bool, str, type(None), torch.dtype)
        return [name] if known else [f"repr({name})"] if kind is float else None
    if issubclass(kind, torch.Tensor):
        return [f"{name}.dtype", f"{name}_pointer & 15 == 0"]
    if kind is int:
        (low, high), most = _INT32, _INT64_MAX
        width = f"(2 if {low} <= {name} <= {high} else {name} > {most})"
        special = [f"{name} == 1", f"{name} & 15 == 0"]
        return [
            *([] if parameter.do_not_specialize else special),
            *([] if parameter.annotation_type else [width]),
        ]
    if kind is bool:
        return [name]
    return [] if kind in (float, type(None)) else None
