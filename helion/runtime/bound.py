"""`BoundKernel`: a kernel for one kind of arguments, with its configs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, get_args

import torch

from helion import exc
from helion._compat import is_interpreting
from helion.codegen import module as codegen
from helion.frontend.compilation import Options
from helion.frontend.program import analyze
from helion.ir.symbols import HostNumber, HostSize
from helion.runtime import interpreter, specialization
from helion.runtime.config import Config
from helion.runtime.config_spec import ConfigSpec
from helion.runtime.modules import load_module
from helion.runtime.show import Stage, show_graph, show_passes, show_types

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from helion.frontend.program import TypedProgram
    from helion.ir.symbols import Origin
    from helion.runtime.kernel import Kernel


class BoundKernel:
    """A kernel for one kind of arguments.

    Attributes:
        kernel: the kernel.
        settings: its settings.
        config_spec: the configs that it can run with.
    """

    def __init__(self, kernel: Kernel, arguments: Mapping[str, Any], device: torch.device) -> None:
        self.kernel = kernel
        self.settings = kernel.settings
        self.device = device
        tensors = [t for value in arguments.values() for t in specialization.tensors_in(value)]
        self.index_dtype = self._index_dtype(tensors)
        self.program: TypedProgram = analyze(
            kernel.source, kernel.fn.__globals__, arguments, device, self._frontend_options()
        )
        self._constants = self.program.constants
        self._others: dict[tuple[int, ...], BoundKernel] = {}
        actual = {o: _read(o, arguments) for o in _origins(self.program)}
        self.config_spec = ConfigSpec(self.program, actual, is_interpreting())
        self._compiled: dict[Config, Callable[..., Any]] = {}
        self._paths: dict[Config, str] = {}
        self._run: Callable[..., Any] | None = None
        self._names = list(arguments)
        self._strip = [i for i, v in enumerate(arguments.values()) if hasattr(v, "_fields")]

    @property
    def configs(self) -> list[Config]:
        """The configs that the author gave."""
        return self.kernel.configs

    def _index_dtype(self, tensors: Sequence[torch.Tensor]) -> torch.dtype:
        needed = any(specialization.spanned(t) > 2**31 - 1 for t in tensors)
        chosen = self.settings.index_dtype
        if chosen is None:
            return torch.int64 if needed else torch.int32
        if needed and chosen is torch.int32:
            largest = max(specialization.spanned(t) for t in tensors)
            raise exc.InputTensorNumelExceedsIndexType(
                index_dtype=chosen, name="a tensor", numel=largest
            )
        return chosen

    def _frontend_options(self) -> Options:
        ignored = self.settings.ignore_warnings
        return Options(
            static_shapes=self.settings.static_shapes,
            index_dtype=self.index_dtype,
            warn=lambda warning: exc.emit_warning(warning, ignored),
        )

    # -- running ---------------------------------------------------------------------------------

    def __call__(self, *args: Any) -> Any:
        """Run with the chosen config; without one, the default config is chosen."""
        if self._run is None:
            self.set_config(self._implicit_config())
            assert self._run is not None
        for i in self._strip:
            args = (*args[:i], getattr(args[i], "value", args[i]), *args[i + 1 :])
        return self._run(*args)

    def for_args(self, args: Sequence[Any]) -> BoundKernel:
        """This kernel, or the one for other values of what `hl.specialize` compiled in."""
        if not self._constants:
            return self
        arguments = dict(zip(self._names, args, strict=True))
        values = tuple(_read(o, arguments) for o in self._constants)
        if values == tuple(self._constants.values()):
            return self
        if values not in self._others:
            self._others[values] = self.kernel._make_bound(args)  # pyright: ignore[reportPrivateUsage]
        return self._others[values]

    # -- configs ---------------------------------------------------------------------------------

    def set_config(self, config: Config | Mapping[str, Any]) -> None:
        """Compile a config and use it for later calls."""
        self._run = self.compile_config(config)

    def _implicit_config(self) -> Config:
        if len(self.configs) >= 1:
            return self.configs[0]
        return self.config_spec.default_config()

    def _complete(self, config: Config | Mapping[str, Any] | None) -> Config:
        chosen = dict(config if config is not None else self._implicit_config())
        self.config_spec.normalize(chosen)
        return Config(**chosen)

    def compile_config(
        self, config: Config | Mapping[str, Any] | None = None, *, allow_print: bool = True
    ) -> Callable[..., Any]:
        """The generated host function for a config; takes the kernel's arguments by position."""
        complete = self._complete(config)
        if complete not in self._compiled:
            text = self._generate(complete).text
            interpreter.install()
            module = load_module(self.kernel.name, text)
            self._compiled[complete] = getattr(module, self.kernel.name)
            self._paths[complete] = module.__file__ or ""
            if allow_print and self.settings.print_output_code:
                print(f"# {module.__file__}\n{text}", file=sys.stderr)
        return self._compiled[complete]

    def _generate(
        self, config: Config, origin_lines: bool | None = None
    ) -> codegen.GeneratedModule:
        if origin_lines is None:
            origin_lines = self.settings.output_origin_lines
        settings = self.settings
        options = codegen.Options(
            self.index_dtype, origin_lines, settings.keep_narrowing, settings.dot_precision
        )
        fn = self.kernel.fn
        return codegen.generate(self.program, fn.__globals__, fn.__module__, config, options)

    def to_triton_code(
        self,
        config: Config | Mapping[str, Any] | None = None,
        *,
        output_origin_lines: bool | None = None,
    ) -> str:
        """The text of the generated module."""
        return self._generate(self._complete(config), output_origin_lines).text

    to_code = to_triton_code

    def get_cached_path(self, config: Config | Mapping[str, Any] | None = None) -> str | None:
        """The file that the generated module was loaded from, if it was compiled."""
        return self._paths.get(self._complete(config))

    def format_kernel_decorator(self, config: Config, settings: Any) -> str:
        """The decorator that fixes a config, as one line to paste."""
        parts = [f"config={config!r}", f"static_shapes={settings.static_shapes}"]
        if settings.index_dtype is not None:
            parts.append(f"index_dtype={settings.index_dtype}")
        return f"@helion.kernel({', '.join(parts)})"

    def show(self, stage: Stage, config: Config | Mapping[str, Any] | None = None) -> str:
        """What the kernel looks like after a stage of its compilation.

        Args:
            stage: "types", the author's source with its types; "graph", the device IR as traced;
                "passes", the device IR after each pass; "triton", the generated kernel; "launch",
                the generated host function.
            config: the config to generate code for; without one, the config that a call would use.
        """
        if stage == "types":
            return show_types(self.program)
        if stage == "graph":
            return show_graph(self.program)
        if stage == "passes":
            return show_passes(self.program, keep_narrowing=self.settings.keep_narrowing)
        if stage not in ("triton", "launch"):
            raise ValueError(f"no stage {stage!r}; there are {', '.join(get_args(Stage))}")
        module = self._generate(self._complete(config))
        return module.kernel if stage == "triton" else module.host

    def debug_str(self) -> str:
        """The author's source with its types; `show("types")`."""
        return show_types(self.program)


def _origins(program: TypedProgram) -> list[Origin]:
    origins = program.device.symbols.origins.values()
    return [o for o in origins if isinstance(o, HostSize)]


def _read(origin: Origin, arguments: Mapping[str, Any]) -> int:
    """The value of a size, a stride or an int argument in one call."""
    if isinstance(origin, HostNumber):
        return int(eval(origin.text, {}, dict(arguments)))
    assert isinstance(origin, HostSize)
    tensor = eval(origin.text, {}, dict(arguments))
    return tensor.shape[origin.dim] if origin.what == "size" else tensor.stride(origin.dim)
