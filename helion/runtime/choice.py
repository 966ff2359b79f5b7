"""Which config a kernel runs with."""

from __future__ import annotations

import logging
import os
import statistics
import sys
from typing import TYPE_CHECKING, Any

import torch
from torch.utils import _pytree as pytree

from helion import exc
from helion._compat import is_interpreting

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from helion.runtime.bound import BoundKernel
    from helion.runtime.config import Config
    from helion.runtime.kernel import Kernel
    from helion.runtime.settings import Settings

__all__ = ["announce", "choose_config", "implied_config", "needs_no_search", "search_config"]

_LOG = logging.getLogger(__name__)
_WARM_UP, _RUNS = 3, 20
# Candidates differ in the order of their sums; a wrong mask or index is farther off than this.
_TOLERANCE = 1e-2


def needs_no_search(kernel: Kernel) -> bool:
    """Whether the config follows from the kernel and the sizes alone, in every process."""
    settings, configs = kernel.settings, kernel.configs
    if _is_implied(settings, configs):
        return True
    searches = settings.force_autotune or callable(settings.autotuner_fn)
    return not configs and not searches and not _is_search_forbidden()


def _is_implied(settings: Settings, configs: Sequence[Config]) -> bool:
    if len(configs) == 1 and not settings.force_autotune:
        return True
    return settings.autotune_effort == "none" and (settings.force_autotune or not configs)


def implied_config(bound: BoundKernel) -> Config | None:
    """The config that needs no search; None if several are given, or a search is forced."""
    if not _is_implied(bound.settings, bound.configs):
        return None
    if len(bound.configs) == 1 and not bound.settings.force_autotune:
        return bound.configs[0]
    return bound.config_spec.default_config()


def choose_config(bound: BoundKernel, args: Sequence[Any]) -> Config:
    """The config for a call that came without one.

    Raises:
        AutotuningDisallowedInEnvironment: there is a choice, and the environment forbids a search.
    """
    config = implied_config(bound)
    if config is None:
        return search_config(bound, args, force=bound.settings.force_autotune)
    announce(bound.kernel, repr(config))
    return config


def announce(kernel: Kernel, config: str) -> None:
    """Say which config runs, if the author asked for the default one."""
    given = len(kernel.configs) == 1 and not kernel.settings.force_autotune
    if not given and kernel.settings.autotune_effort == "none":
        print(f"Using implicit config: {config}", file=sys.stderr)


def _is_search_forbidden() -> bool:
    return os.environ.get("HELION_DISALLOW_AUTOTUNING", "0") not in ("", "0")


def search_config(
    bound: BoundKernel, args: Sequence[Any], *, force: bool, **options: Any
) -> Config:
    """The best config: of those given, or what the search of the settings finds.

    Without either it is the default config, which is good but not measured.
    """
    name = bound.kernel.name
    if _is_search_forbidden():
        raise exc.AutotuningDisallowedInEnvironment(name=name)
    make_search = bound.settings.autotuner_fn
    if callable(make_search):
        return make_search(bound, args, **options).autotune(skip_cache=force)
    if not bound.configs:
        return bound.config_spec.default_config()
    if len(bound.configs) == 1:
        return bound.configs[0]
    if bound.device.type != "cuda" or is_interpreting():
        _LOG.warning("`%s` uses the first of its configs: there is no GPU to time them on", name)
        return bound.configs[0]
    return _fastest(bound, args)


def _fastest(bound: BoundKernel, args: Sequence[Any]) -> Config:
    """The fastest of the given configs that agree with the first one that works."""
    # Not at the top: helion imports before Triton, and turns its interpreter on where needed.
    from triton.errors import TritonError

    expected: Any = None
    best, best_time = None, float("inf")
    for config in bound.configs:
        try:
            run = bound.compile_config(config, allow_print=False)
            result = _outcome(run, args)
            torch.cuda.synchronize(bound.device)
        except (exc.Base, RuntimeError, TritonError) as error:  # and out of shared memory
            _LOG.warning("`%s` fails with %r: %s", bound.kernel.name, config, error)
            continue
        if expected is None:
            expected = result
        elif not _agree(result, expected):
            _LOG.warning("`%s` gives another result with %r", bound.kernel.name, config)
            continue
        time = _milliseconds(run, _copied(args))
        _LOG.info("%s: %.4f ms with %r", bound.kernel.name, time, config)
        if time < best_time:
            best, best_time = config, time
    if best is None:
        raise exc.NoConfigFound(name=bound.kernel.name)
    return best


def _outcome(run: Callable[..., Any], args: Sequence[Any]) -> Any:
    """What a run returns, and what it leaves in its arguments; the arguments stay as they are."""
    copies = _copied(args)
    return run(*copies), copies


def _copied(args: Sequence[Any]) -> list[Any]:
    return pytree.tree_map_only(torch.Tensor, lambda t: t.detach().clone(), list(args))


def _agree(result: Any, expected: Any) -> bool:
    ours, theirs = pytree.tree_leaves(result), pytree.tree_leaves(expected)
    pairs = zip(ours, theirs, strict=True)
    return all(
        torch.allclose(a.float(), b.float(), rtol=_TOLERANCE, atol=_TOLERANCE, equal_nan=True)
        for a, b in pairs
        if isinstance(a, torch.Tensor)
    )


def _milliseconds(run: Callable[..., Any], args: Sequence[Any]) -> float:
    """The median time of a run on the current stream."""
    for _ in range(_WARM_UP):
        run(*args)
    times: list[float] = []
    for _ in range(_RUNS):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run(*args)
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)
