"""Errors about configs, their search, and generated kernels that fail while searching."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from helion.exc.base import BaseError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "AutotuneError",
    "AutotuningDisallowedInEnvironment",
    "CacheAssertionError",
    "InvalidConfig",
    "NoConfigFound",
    "NoConfigProvided",
    "NotEnoughConfigs",
    "TritonError",
    "TritonUnrecoverableRuntimeError",
]


class InvalidConfig(BaseError):
    """A config does not fit the kernel."""

    code = "invalid-config"
    title = "{detail}"
    defaults: ClassVar[Mapping[str, str]] = {"detail": "the config does not fit the kernel"}


class NoConfigProvided(BaseError):
    """Code is asked for without a config, and none is implied."""

    code = "no-config-provided"
    title = "no config was provided and no implicit config exists for `{name}`"
    help = "pass a config, give the kernel one with `config=`, or use `autotune_effort='none'`"
    defaults: ClassVar[Mapping[str, str]] = {"name": "the kernel"}


class NotEnoughConfigs(BaseError):
    """A search over given configs has fewer than two."""

    code = "not-enough-configs"
    title = "choosing among given configs needs at least two, got {got}"
    help = "give more `configs=`, or a single `config=` to use it without a search"


class NoConfigFound(BaseError):
    """Every config that the search tried failed."""

    code = "no-config-found"
    title = "no working config was found for `{name}`"
    help = "run one config by hand to see its error: `kernel.bind(args).compile_config(config)`"
    defaults: ClassVar[Mapping[str, str]] = {"name": "the kernel"}


class AutotuneError(BaseError):
    """The search for a config failed."""

    code = "autotune-error"
    title = "the search for a config failed: {detail}"
    defaults: ClassVar[Mapping[str, str]] = {"detail": "see the cause"}


class AutotuningDisallowedInEnvironment(BaseError):
    """A search is needed, and `HELION_DISALLOW_AUTOTUNING=1` is set."""

    code = "autotuning-disallowed-in-environment"
    title = "`{name}` has no single config, and HELION_DISALLOW_AUTOTUNING=1 forbids a search"
    help = "give the kernel a `config=`, or use `autotune_effort='none'`"
    defaults: ClassVar[Mapping[str, str]] = {"name": "the kernel"}


class CacheAssertionError(BaseError):
    """The cache has no config for a kernel, and `HELION_ASSERT_CACHE_HIT=1` is set."""

    code = "cache-assertion-error"
    title = "the config cache has no entry for `{name}`, and HELION_ASSERT_CACHE_HIT=1 requires one"
    help = "run once without that variable to fill the cache"
    defaults: ClassVar[Mapping[str, str]] = {"name": "the kernel"}


class TritonError(BaseError):
    """A generated kernel fails to compile or to run while tuning.

    The text ends with `decorator`, the line that brings the config back, and `program`, the
    generated module, when both are given.
    """

    code = "triton-error"
    title = "the generated Triton program failed: {error}"
    help = "set `autotune_ignore_errors=True` to skip such configs"
    appendix = "{decorator}\n\n{program}"
    defaults: ClassVar[Mapping[str, str]] = {"error": "see the cause"}


class TritonUnrecoverableRuntimeError(BaseError):
    """A generated kernel fails in a way that leaves the device unusable for this process."""

    code = "triton-unrecoverable-runtime-error"
    title = "the generated Triton program failed and left the device unusable: {error}"
    help = "start a new process; leave this config out"
    appendix = "{decorator}\n\n{program}"
    defaults: ClassVar[Mapping[str, str]] = {"error": "see the cause"}
