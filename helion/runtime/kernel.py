"""`Kernel`: what `@helion.kernel` makes of a function."""

from __future__ import annotations

import functools
import inspect
import logging
import threading
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch

from helion import exc
from helion.frontend.declaration import check_declaration, check_names, parameter_span
from helion.frontend.source import parse
from helion.language.constants import constexpr
from helion.runtime import specialization
from helion.runtime.calls import unwrapped, without_history
from helion.runtime.config import Config
from helion.runtime.recall import RecalledKernel, fingerprint, keep, recall
from helion.runtime.reference import Reference
from helion.runtime.settings import RefMode, Settings
from helion.runtime.specialization import Probe, make_probe

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from helion.runtime.bound import BoundKernel

_LOG = logging.getLogger(__name__)
_is_dynamo_compiling = torch.compiler.is_dynamo_compiling
_REFUSED = {
    inspect.Parameter.VAR_POSITIONAL: "variadic",
    inspect.Parameter.VAR_KEYWORD: "variadic",
    inspect.Parameter.KEYWORD_ONLY: "keyword-only",
}


class Kernel:
    """A kernel: compiled for each kind of arguments that it is called with.

    A call looks its arguments up in three steps. Their types choose a probe, an expression that
    computes a short key; the key finds the bound kernel. What a probe does not know goes through
    `specialization_key`, which is exact, and is remembered.

    Attributes:
        fn: the author's function.
        name: its name.
        signature: its signature.
        settings: how it is compiled; may be changed, and is read when a kernel is bound.
        configs: the configs to choose from; empty if none was given.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        configs: Sequence[Config | Mapping[str, Any]],
        settings: Settings,
        key: Callable[..., Hashable] | None,
    ) -> None:
        if not isinstance(fn, FunctionType):
            raise TypeError(f"helion.kernel needs a plain function, not {type(fn).__name__}")
        functools.update_wrapper(self, fn)
        self.fn: FunctionType = fn
        self.name = fn.__name__
        self.signature = inspect.signature(fn)
        self.settings = settings
        self.configs = [c if isinstance(c, Config) else Config(**c) for c in configs]
        self._key = key
        self._bound: dict[Hashable, BoundKernel] = {}
        self._recalled: dict[Hashable, RecalledKernel] = {}
        # Made when it is needed: `torch._dynamo` takes a second to import.
        self._opaque: Callable[..., Any] | None = None
        self.lock = threading.RLock()
        self.reference = Reference(fn)
        self._parameters = list(self.signature.parameters.values())
        self._arity = len(self._parameters)
        self._constexprs = [_is_constexpr(p.annotation) for p in self._parameters]
        self.__code__ = fn.__code__
        self.__globals__ = fn.__globals__
        self.__defaults__ = fn.__defaults__
        self.source = parse(fn)
        for parameter in self._parameters:
            if parameter.kind in _REFUSED:
                span = parameter_span(self.source, parameter.name)
                kind = _REFUSED[parameter.kind]
                raise exc.UnsupportedSignature(span, name=parameter.name, kind=kind)
        check_names(self.source, fn)
        self._read_settings()

    def _read_settings(self) -> None:
        """Take over what calls depend on."""
        self._state = self.settings.state
        self._eager = self.settings.ref_mode is RefMode.EAGER
        self._probes: dict[tuple[type, ...], Probe | None] = {}

    # -- calling ---------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel; the first call with a new kind of arguments compiles it.

        No autograd history is recorded: wrap the kernel in a `torch.autograd.Function`.

        Raises:
            DeviceMismatch: tensors on several devices, or on the CPU where a GPU runs the kernels.
        """
        if _is_dynamo_compiling():
            if self._opaque is None:
                self._opaque = torch.compiler.disable(self.__call__)
            return self._opaque(*args, **kwargs)  # a break of the graph
        if kwargs or len(args) != self._arity:
            args = self.normalize_args(*args, **kwargs)
        if self._state is not self.settings.state:
            self._read_settings()
        if self._eager:
            return self.reference.run(unwrapped(args), self._config_for_reference(), self.settings)
        # This is `remembered`, written out.
        probe = self._probes.get(tuple(map(type, args)))
        bound = None if probe is None else probe.find(*args)
        if bound is None:
            bound = self._bind_or_recall(args)
        elif bound.constants:
            bound = bound.for_args(args)
        return without_history(bound.run, args)

    def _bind_or_recall(self, args: tuple[Any, ...]) -> BoundKernel | RecalledKernel:
        """As `bind`, for a call; without the compiler if an earlier process did its work."""
        key = self.specialization_key(args)
        self._checked_device(args)
        with self.lock:
            if key not in self._bound and key not in self._recalled:
                place = fingerprint(self, args)
                recalled = None if place is None else recall(self, place)
                if recalled is not None:
                    self._recalled[key] = recalled
                else:
                    bound = self.bind(args)
                    bound.ensure_config_exists(args)
                    if place is not None:
                        keep(self, place, bound)
            if key in self._bound:
                return self.bind(args)
        recalled = self._recalled[key]
        probe = self._probe(args)
        if probe is not None:
            probe.remember(args, recalled)
        return recalled

    def normalize_args(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """All arguments by position, defaults filled in.

        Raises:
            TypeError: too many arguments, one that is missing, or an unknown keyword.
        """
        if len(args) > self._arity:
            span = self.source.span(self.source.tree)
            raise exc.TooManyArguments(span, expected=self._arity, got=len(args))
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args

    def bind(self, args: Sequence[Any]) -> BoundKernel:
        """The kernel compiled for arguments of this kind; nothing runs.

        Raises:
            UnsupportedArgument: an argument of a type that kernels do not take.
            NoTensorArgs: no argument tells on which device the kernel runs.
            DeviceMismatch: tensors on several devices.
        """
        args = tuple(args) if len(args) == self._arity else self.normalize_args(*args)
        if self._state is not self.settings.state:
            self._read_settings()
        bound = self.remembered(args)
        if bound is None:
            bound = self._bind_exactly(args)
            probe = self._probe(args)
            if probe is not None:
                probe.remember(args, bound)
        return bound.for_args(args)

    def _probe(self, args: Sequence[Any]) -> Probe | None:
        """The probe for arguments of these types; made if there is none."""
        kinds = tuple(map(type, args))
        if kinds not in self._probes:
            static = self.settings.static_shapes
            self._probes[kinds] = make_probe(kinds, self._constexprs, static, self._key)
        return self._probes[kinds]

    def remembered(self, args: Sequence[Any]) -> BoundKernel | None:
        """The bound kernel for arguments of this kind, if a short look finds it."""
        probe = self._probes.get(tuple(map(type, args)))
        found = None if probe is None else probe.find(*args)
        return None if isinstance(found, RecalledKernel) else found

    def _bind_exactly(self, args: tuple[Any, ...]) -> BoundKernel:
        """The bound kernel by the exact key; made if there is none."""
        key = self.specialization_key(args)
        device = self._checked_device(args)
        bound = self._bound.get(key)
        if bound is None:
            with self.lock:
                bound = self._bound.get(key)
                if bound is None:
                    bound = self._bound[key] = self.make_bound(args, key, device)
        return bound

    def specialization_key(self, args: Sequence[Any]) -> tuple[Hashable, ...]:
        """What the compiled code depends on in these arguments; hashable."""
        static = self.settings.static_shapes
        tensor_key = specialization.static_tensor if static else specialization.dynamic_tensor
        parts: list[Hashable] = []
        for value, parameter, constant in zip(
            args, self._parameters, self._constexprs, strict=True
        ):
            if constant:
                raw = value.value if isinstance(value, constexpr) else value
                parts.append(("constexpr", specialization.constant_key(raw)))
            else:
                try:
                    parts.append(specialization.argument_key(value, tensor_key, parameter.name))
                except exc.UnsupportedArgument as error:
                    raise error.with_span(parameter_span(self.source, parameter.name)) from None
        device = specialization.find_device(args)
        if device is not None:
            parts.append(specialization.device_key(device))
        if self._key is not None:
            parts.append(self._key(*args))
        return tuple(parts)

    def make_bound(
        self, args: Sequence[Any], key: Hashable, device: torch.device | None = None
    ) -> BoundKernel:
        """Type and trace the kernel for these arguments."""
        check_declaration(self.source, self.fn)
        # The compiler takes a second or two to import, with sympy and torch's symbolic shapes.
        from helion.runtime.bound import BoundKernel

        arguments = {
            p.name: constexpr(v.value if isinstance(v, constexpr) else v)
            if c or isinstance(v, constexpr)
            else v
            for p, v, c in zip(self._parameters, args, self._constexprs, strict=True)
        }
        bound = BoundKernel(self, arguments, device or self._checked_device(args), key)
        _LOG.info("bound %s for %s", self.name, key)
        return bound

    def _checked_device(self, args: Sequence[Any]) -> torch.device:
        """The device that the kernel runs on, where every tensor must be."""
        device = specialization.find_device(args)
        if device is None:
            raise exc.NoTensorArgs(self.source.span(self.source.tree))
        for value, parameter in zip(args, self._parameters, strict=True):
            stray = specialization.stray_tensor(value, device)
            if stray is not None:
                raise exc.DeviceMismatch(
                    parameter_span(self.source, parameter.name),
                    name=parameter.name,
                    got=stray.device,
                    expected=device,
                )
        return device

    def _config_for_reference(self) -> Config:
        return self.configs[0] if self.configs else Config()

    # -- the rest --------------------------------------------------------------------------------

    def autotune(self, args: Sequence[Any], *, force: bool = True, **options: Any) -> Config:
        """Choose a config for arguments like these, use it for later calls, and return it.

        Args:
            args: the arguments to time with.
            force: choose anew; otherwise a config that is given or known is enough.
            options: for the search.
        """
        args = self.normalize_args(*args)
        return self.bind(args).autotune(args, force=force, **options)

    def kernel_source(self) -> str:
        """The author's source text."""
        return inspect.getsource(self.fn)

    def reset(self) -> None:
        """Forget everything that was compiled."""
        with self.lock:
            self._bound.clear()
            self._recalled.clear()
            self._probes.clear()

    def __reduce__(self) -> str:
        # Like a function, a kernel is copied and pickled by its name.
        return self.fn.__qualname__

    def __repr__(self) -> str:
        return f"<helion.Kernel {self.name}>"


def _is_constexpr(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return "constexpr" in annotation.lower()
    return annotation is constexpr


def kernel(
    fn: Callable[..., Any] | None = None,
    *,
    config: Config | Mapping[str, Any] | None = None,
    configs: Sequence[Config | Mapping[str, Any]] | None = None,
    key: Callable[..., Hashable] | None = None,
    settings: Settings | None = None,
    **fields: Any,
) -> Any:
    """Make a kernel of a function; a decorator, with or without arguments.

    Args:
        fn: the function.
        config: the config to run with.
        configs: several, of which the fastest is chosen on the first call.
        key: an extra part of the specialization key, computed from the arguments.
        settings: ready settings.
        fields: fields of `Settings`.

    Raises:
        TypeError: an unknown setting, or a function whose parameters kernels do not have.

    Example: `@helion.kernel(static_shapes=False)`
    """
    assert config is None or configs is None, "give either config= or configs="
    assert settings is None or not fields, "give either settings= or single settings"
    chosen = [config] if config is not None else list(configs or [])
    made = settings if settings is not None else Settings(**fields)
    if fn is None:
        return functools.partial(_make, chosen=chosen, settings=made, key=key)
    return _make(fn, chosen, made, key)


def _make(
    fn: Callable[..., Any],
    chosen: Sequence[Config | Mapping[str, Any]],
    settings: Settings,
    key: Callable[..., Hashable] | None,
) -> Kernel:
    return Kernel(fn, chosen, settings, key)
