"""`BoundKernel`: a kernel for one kind of arguments, with its configs."""

from __future__ import annotations

import dataclasses
import functools
import logging
import sys
from typing import TYPE_CHECKING, Any, get_args

import torch

from helion import exc
from helion._compat import block_indexing, has_warp_specialization, is_interpreting
from helion.codegen import module as codegen
from helion.frontend.compilation import Options
from helion.frontend.declaration import parameter_span
from helion.frontend.program import analyze
from helion.ir.symbols import HostNumber, HostSize
from helion.language.constants import constexpr
from helion.runtime import interpreter, repro, specialization
from helion.runtime.calls import unwrapped, without_history
from helion.runtime.choice import choose_config, implied_config, search_config
from helion.runtime.config import KNOWN_KEYS, PLURAL_OF, Config
from helion.runtime.config_spec import ConfigSpec
from helion.runtime.modules import SourceGlobals, content_key, load_module
from helion.runtime.settings import OutputCodeOptions, RefMode, Settings
from helion.runtime.show import Stage, show_graph, show_passes, show_types
from helion.runtime.standalone import without_helion
from helion.runtime.widths import needs_wide_index

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from helion.frontend.program import TypedProgram
    from helion.ir.symbols import Origin
    from helion.runtime.kernel import Kernel

_LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class CompileEnvironment:
    """What a kernel was typed and traced under."""

    device: torch.device
    settings: Settings
    index_dtype: torch.dtype
    config_spec: ConfigSpec
    program: TypedProgram


class BoundKernel:
    """A kernel for one kind of arguments.

    Attributes:
        kernel: the kernel.
        settings: its settings.
        device: the device of the first call; another one of its kind may come later.
        key: the specialization key of the arguments.
        config_spec: the configs that it can run with.
        constants: sizes and ints that `hl.specialize` compiled in.
        warned: whether there were warnings.
        run: runs with the chosen config; takes arguments of this kind, by position.
    """

    def __init__(
        self, kernel: Kernel, arguments: Mapping[str, Any], device: torch.device, key: Hashable
    ) -> None:
        self.kernel = kernel
        self.settings = kernel.settings
        self.device = device
        self.key = key
        self.warned = False
        self.index_dtype = self._index_dtype(arguments)
        self._globals = kernel.fn.__globals__
        self.program = self._analyze(arguments, {})
        widths = self._widen(arguments)
        # A tunable's value is compiled in: another one starts again from the arguments.
        self._again = dict(arguments) if self.program.tunables else {}
        self._programs: dict[tuple[Any, ...], TypedProgram] = {}
        self.constants = {**self.program.constants, **widths}
        names = list(arguments)
        self._read_constants = self._reader(names, list(self.constants))
        self._others: dict[tuple[int, ...], BoundKernel] = {}
        sizes = [o for o in self.program.device.symbols.origins.values() if isinstance(o, HostSize)]
        values = self._reader(names, sizes)(*arguments.values())
        actual: dict[Origin, int] = dict(zip(sizes, values, strict=True))
        self._place = kernel.source.span(kernel.source.tree)
        with exc.pointing_at(self._place):
            self.config_spec = ConfigSpec(self.program, actual, is_interpreting())
        self._arguments = [repro.argument_text(v, self._globals) for v in arguments.values()]
        self._wraps = any(isinstance(value, constexpr) for value in arguments.values())
        self._compiled: dict[Config, tuple[Callable[..., Any], str]] = {}
        self._config: Config | None = None
        self.run: Callable[..., Any] = self._first_run

    @property
    def configs(self) -> list[Config]:
        """The configs that the author gave."""
        return self.kernel.configs

    @property
    def env(self) -> CompileEnvironment:
        """What the kernel was typed and traced under."""
        return CompileEnvironment(
            self.device, self.settings, self.index_dtype, self.config_spec, self.program
        )

    def _index_dtype(self, arguments: Mapping[str, Any]) -> torch.dtype:
        chosen = self.settings.index_dtype
        for name, value in arguments.items():
            wide = [t for t in specialization.tensors_in(value) if specialization.is_wide(t)]
            if wide and chosen is None:
                return torch.int64
            if wide and chosen is torch.int32:
                numel = max(wide[0].numel(), specialization.spanned(wide[0]))
                span = parameter_span(self.kernel.source, name)
                raise exc.InputTensorNumelExceedsIndexType(
                    span, index_dtype=chosen, name=name, numel=numel
                )
        return chosen or torch.int32

    def _widen(self, arguments: Mapping[str, Any]) -> Mapping[Origin, int]:
        """Make indices 64 bits wide where a tensor that the host part makes needs it.

        Returns:
            What has to be so for that choice to hold, if it depends on the arguments.
        """
        if self.index_dtype is torch.int64 or self.settings.index_dtype is not None:
            return {}
        facts: dict[Origin, int] = {}
        need = needs_wide_index(self.program, arguments)
        if isinstance(need, bool):
            holds = need
        else:
            origin = HostNumber(need, int)
            (holds,) = self._reader(list(arguments), [origin])(*arguments.values())
            facts[origin] = holds
        if holds:
            self.index_dtype = torch.int64
            self.program = self._analyze(arguments, {})
        return facts

    def _analyze(self, arguments: Mapping[str, Any], tunables: Mapping[str, Any]) -> TypedProgram:
        options = self._frontend_options(tunables)
        return analyze(self.kernel.source, self._globals, arguments, self.device, options)

    def _program_for(self, config: Mapping[str, Any]) -> TypedProgram:
        """The program with the values that a config gives to tunables."""
        registered = self.program.tunables
        tunables = {name: config[name] for name in registered}
        if all(registered[n].default() == v for n, v in tunables.items()):
            return self.program
        key = tuple(tunables.values())
        if key not in self._programs:
            self._programs[key] = self._analyze(self._again, tunables)
        return self._programs[key]

    def _frontend_options(self, tunables: Mapping[str, Any]) -> Options:
        ignored = self.settings.ignore_warnings

        def warn(warning: exc.BaseWarning) -> None:
            self.warned = True
            exc.emit_warning(warning, ignored)

        return Options(
            static_shapes=self.settings.static_shapes,
            index_dtype=self.index_dtype,
            warn=warn,
            tunables=tunables,
            config_keys=KNOWN_KEYS | PLURAL_OF.keys(),
        )

    def _reader(
        self, names: Sequence[str], origins: Sequence[Origin]
    ) -> Callable[..., tuple[int, ...]]:
        """A function of the arguments that reads sizes, strides and ints of them."""
        parts = "".join(f"{_origin_text(o)}, " for o in origins)
        outside = {"_source_module": SourceGlobals(self._globals)}
        return eval(f"lambda {', '.join(names)}: ({parts})", outside)

    # -- running ---------------------------------------------------------------------------------

    def __call__(self, *args: Any) -> Any:
        """Run with the chosen config, choosing one first if needed.

        Arguments of another kind go to the kernel that is bound for them.
        """
        if len(args) != len(self._arguments):
            args = self.kernel.normalize_args(*args)
        if self.settings.ref_mode is RefMode.EAGER:
            return self.run_ref(*args)
        bound = self.kernel.remembered(args)
        if bound is not self and self.kernel.specialization_key(args) != self.key:
            bound = self.kernel.bind(args)
        else:
            bound = self.for_args(args)
        return without_history(bound.run, args)

    def run_ref(self, *args: Any) -> Any:
        """Run in the eager reference mode, whatever the settings say."""
        config = self._config or (self.configs[0] if self.configs else Config())
        return self._run_reference(config, *args)

    def _run_reference(self, config: Config, *args: Any) -> Any:
        return self.kernel.reference.run(unwrapped(args), config, self.settings)

    def for_args(self, args: Sequence[Any]) -> BoundKernel:
        """This kernel, or the one for other values of what `hl.specialize` compiled in."""
        if not self.constants:
            return self
        values = self._read_constants(*args)
        if values == tuple(self.constants.values()):
            return self
        other = self._others.get(values)
        if other is None:
            with self.kernel.lock:
                other = self._others.get(values)
                if other is None:
                    other = self._others[values] = self.kernel.make_bound(args, self.key)
        # It may have specialized on more than this one.
        return other.for_args(args)

    # -- configs ---------------------------------------------------------------------------------

    def _first_run(self, *args: Any) -> Any:
        self.ensure_config_exists(args)
        return self.run(*args)

    def ensure_config_exists(self, args: Sequence[Any]) -> None:
        """Choose a config for arguments like these, unless one is set."""
        with self.kernel.lock:
            if self._config is None:
                self.set_config(choose_config(self, args))

    def set_config(self, config: Config | Mapping[str, Any]) -> None:
        """Compile a config and use it for later calls.

        Raises:
            InvalidConfig: it does not fit the kernel.
        """
        function = self.compile_config(config)
        self._config = config if isinstance(config, Config) else Config(**config)
        self.run = (lambda *args: function(*unwrapped(args))) if self._wraps else function

    def autotune(self, args: Sequence[Any], *, force: bool = True, **options: Any) -> Config:
        """Choose a config, use it for later calls, and return it.

        Args:
            args: the arguments to time with.
            force: choose anew; otherwise a config that is given or known is enough.
            options: for the search.
        """
        config = None if force else self._config or implied_config(self)
        if config is None:
            if not self.configs and not callable(self.settings.autotuner_fn):
                _LOG.warning("`%s` uses its default config: nothing searches", self.kernel.name)
            config = search_config(self, args, force=force, **options)
        self.set_config(config)
        return config

    def chosen_config(self, config: Config | Mapping[str, Any] | None = None) -> Config:
        """A given config, the one that is set, or the one that is implied."""
        if config is None:
            config = self._config or implied_config(self)
        if config is None:
            if self.configs:
                raise exc.NoConfigProvided(name=self.kernel.name)
            config = self.config_spec.default_config()
        return config if isinstance(config, Config) else Config(**config)

    def _complete(self, config: Config | Mapping[str, Any] | None) -> Config:
        with exc.pointing_at(self._place):
            chosen = dict(Config(**self.chosen_config(config)))  # a copy that shares no list
            self.config_spec.normalize(chosen)
            return Config(**chosen)

    # -- code ------------------------------------------------------------------------------------

    def compile_config(
        self, config: Config | Mapping[str, Any] | None = None, *, allow_print: bool = True
    ) -> Callable[..., Any]:
        """The generated host function for a config; takes the kernel's arguments by position.

        In the eager reference mode nothing is generated: it runs the kernel's own function.

        Raises:
            InvalidConfig: the config does not fit the kernel.
            NoConfigProvided: several configs were given, and none is chosen yet.
        """
        complete = self._complete(config)
        if self.settings.ref_mode is RefMode.EAGER:
            return functools.partial(self._run_reference, self.chosen_config(config))
        known = self._compiled.get(complete)
        if known is not None:
            return known[0]
        with self.kernel.lock, exc.pointing_at(self._place):
            text = self._generate(complete).text
            interpreter.install()
            name = self.kernel.name
            module = load_module(name, text, self._globals)
            function, path = getattr(module, name), module.__file__ or ""
            self._compiled[complete] = (function, path)
        _LOG.info("compiled %s with %r: %s", name, complete, path)
        if allow_print:
            self._print(self.chosen_config(config), path)
        return function

    def _print(self, config: Config, path: str) -> None:
        if self.settings.print_output_code:
            code = self.to_triton_code(config, emit_repro_caller=True)
            print(f"# {path}\n{code}", file=sys.stderr)
        if self.settings.print_repro:
            decorator = self.format_kernel_decorator(config, self.settings)
            print(repro.script_text(self.kernel, decorator, self._arguments), file=sys.stderr)

    def _generate(
        self, config: Config, origin_lines: bool | None = None
    ) -> codegen.GeneratedModule:
        settings = self.settings
        if origin_lines is None:
            origin_lines = settings.output_origin_lines
        options = codegen.Options(
            self.index_dtype,
            origin_lines,
            settings.keep_narrowing,
            settings.dot_precision,
            settings.persistent_reserved_sms,
            block_indexing(),
            settings.allow_warp_specialize and has_warp_specialization(),
        )
        full = dict(config)  # a `Config` leaves out what is None
        self.config_spec.normalize(full)
        name = self.kernel.fn.__module__ or ""
        module = codegen.generate(self._program_for(full), self._globals, name, full, options)
        source = sys.modules.get(name)
        if source is not None and source.__dict__ is self._globals:
            return module
        # It cannot be imported by its name; `load_module` hands its globals over.
        lines = module.imports.splitlines()
        kept = [line for line in lines if line != f"import {name} as _source_module"]
        return dataclasses.replace(module, imports="\n".join(kept))

    def to_triton_code(
        self,
        config: Config | Mapping[str, Any] | None = None,
        *,
        emit_repro_caller: bool = False,
        output_origin_lines: bool | None = None,
    ) -> str:
        """The text of the generated module.

        Args:
            config: the config; None: the one that is set or implied.
            emit_repro_caller: append a routine that makes arguments like those bound, and calls.
            output_origin_lines: comments that name the author's lines; None: as the settings say.
        """
        complete = self._complete(config)
        with exc.pointing_at(self._place):
            text = self._generate(complete, output_origin_lines).text
        if emit_repro_caller:
            text += repro.caller_text(self.kernel.name, self._arguments)
        return text

    def to_code(
        self,
        config: Config | Mapping[str, Any] | None = None,
        *,
        options: OutputCodeOptions | None = None,
        emit_repro_caller: bool = False,
        output_origin_lines: bool | None = None,
    ) -> str:
        """The text of the generated module; `options` can ask for one that needs no helion."""
        text = self.to_triton_code(
            config, emit_repro_caller=emit_repro_caller, output_origin_lines=output_origin_lines
        )
        if options is None or options.allow_helion_deps:
            return text
        return without_helion(text)

    def get_cached_path(self, config: Config | Mapping[str, Any] | None = None) -> str | None:
        """The file of the generated module, if it was compiled."""
        known = self._compiled.get(self._complete(config))
        return None if known is None else known[1]

    def backend_cache_key(self, config: Config | Mapping[str, Any] | None = None) -> str:
        """What the generated module for a config is known by on disk."""
        return content_key(self.to_triton_code(config))

    def format_kernel_decorator(self, config: Config, settings: Settings) -> str:
        """The decorator that fixes a config, as one line to paste."""
        return repro.config_decorator(config, settings)

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

    def __repr__(self) -> str:
        return f"<helion.BoundKernel {self.kernel.name}>"


def _origin_text(origin: Origin) -> str:
    """Host text that reads a size, a stride or an int argument."""
    if isinstance(origin, HostNumber):
        return f"int({origin.text})"
    assert isinstance(origin, HostSize)
    if origin.what == "size":
        return f"{origin.text}.shape[{origin.dim}]"
    return f"{origin.text}.stride({origin.dim})"
