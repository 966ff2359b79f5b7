"""`Kernel`: what `@helion.kernel` makes of a function."""

from __future__ import annotations

import functools
import inspect
import threading
from types import FunctionType
from typing import TYPE_CHECKING, Any

from helion import exc
from helion.frontend.source import parse
from helion.language.constants import constexpr
from helion.runtime import specialization
from helion.runtime.bound import BoundKernel
from helion.runtime.config import Config
from helion.runtime.reference import run_reference
from helion.runtime.settings import RefMode, Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    import torch

_REFUSED = {
    inspect.Parameter.VAR_POSITIONAL: "variadic",
    inspect.Parameter.VAR_KEYWORD: "variadic",
    inspect.Parameter.KEYWORD_ONLY: "keyword-only",
}


class Kernel:
    """A kernel: compiled for each kind of arguments that it is called with.

    Attributes:
        fn: the author's function.
        name: its name.
        signature: its signature.
        settings: how it is compiled; may be changed before the first call.
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
        self.fn = fn
        self.name = fn.__name__
        self.signature = inspect.signature(fn)
        self.settings = settings
        self.configs = [c if isinstance(c, Config) else Config(**c) for c in configs]
        self._key = key
        self._bound: dict[Hashable, BoundKernel] = {}
        self._lock = threading.RLock()
        self._parameters = list(self.signature.parameters.values())
        for parameter in self._parameters:
            if parameter.kind in _REFUSED:
                kind = _REFUSED[parameter.kind]
                raise exc.UnsupportedSignature(name=parameter.name, kind=kind)
        self._constexprs = [_is_constexpr(p.annotation) for p in self._parameters]
        if fn.__code__.co_freevars:
            raise exc.ClosuresNotSupported(name=fn.__code__.co_freevars[0])
        self.__code__ = fn.__code__
        self.__globals__ = fn.__globals__
        self.__defaults__ = fn.__defaults__
        self.source = parse(fn)
        self._check_decorators()

    def _check_decorators(self) -> None:
        """Only the kernel decorator may stand directly above `def`."""
        decorators = self.source.tree.decorator_list
        for decorator in decorators:
            text = ast_text(decorator)
            if "kernel" in text or "jit" in text:
                if decorator is not decorators[-1]:
                    below = decorators[-1]
                    raise exc.DecoratorAfterHelionKernelDecorator(
                        self.source.span(below), decorator=ast_text(below)
                    )
                return

    # -- calling ---------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the kernel; the first call with a new kind of arguments compiles it."""
        if kwargs or len(args) != len(self._parameters):
            args = self.normalize_args(*args, **kwargs)
        if self.settings.ref_mode is RefMode.EAGER:
            return run_reference(self.fn, self._unwrapped(args), self._config_for_reference())
        return self.bind(args)(*args)

    def normalize_args(self, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """All arguments by position, defaults filled in."""
        if len(args) > len(self._parameters):
            raise exc.TooManyArguments(expected=len(self._parameters), got=len(args))
        bound = self.signature.bind(*args, **kwargs)
        bound.apply_defaults()
        return bound.args

    def bind(self, args: Sequence[Any]) -> BoundKernel:
        """The kernel compiled for arguments of this kind; nothing runs."""
        if len(args) != len(self._parameters):
            args = self.normalize_args(*args)
        key = self.specialization_key(args)
        bound = self._bound.get(key)
        if bound is None:
            with self._lock:
                bound = self._bound.get(key)
                if bound is None:
                    bound = self._bound[key] = self._make_bound(args)
        return bound.for_args(args)

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
                parts.append(("constexpr", type(raw), raw))
            else:
                parts.append(specialization.argument_key(value, tensor_key, parameter.name))
        if self._key is not None:
            parts.append(self._key(*args))
        return tuple(parts)

    def _make_bound(self, args: Sequence[Any]) -> BoundKernel:
        device = specialization.find_device(args)
        if device is None:
            raise exc.NoTensorArgs(self.source.span(self.source.tree))
        self._check_devices(args, device)
        arguments = {
            p.name: constexpr(v.value if isinstance(v, constexpr) else v)
            if c or isinstance(v, constexpr)
            else v
            for p, v, c in zip(self._parameters, args, self._constexprs, strict=True)
        }
        return BoundKernel(self, arguments, device)

    def _check_devices(self, args: Sequence[Any], device: torch.device) -> None:
        for value, parameter in zip(args, self._parameters, strict=True):
            for tensor in specialization.tensors_in(value):
                if tensor.device != device and not (tensor.dim() == 0 and tensor.is_cpu):
                    raise exc.DeviceMismatch(
                        self.source.span(self.source.tree),
                        name=parameter.name,
                        got=tensor.device,
                        expected=device,
                    )

    def _unwrapped(self, args: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(a.value if isinstance(a, constexpr) else a for a in args)

    def _config_for_reference(self) -> Config:
        return self.configs[0] if self.configs else Config()

    # -- the rest --------------------------------------------------------------------------------

    def kernel_source(self) -> str:
        """The author's source text."""
        return inspect.getsource(self.fn)

    def reset(self) -> None:
        """Forget everything that was compiled."""
        with self._lock:
            self._bound.clear()

    def __repr__(self) -> str:
        return f"<helion.Kernel {self.name}>"


def ast_text(node: Any) -> str:
    """A decorator as the author wrote it."""
    import ast

    return ast.unparse(node)


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
