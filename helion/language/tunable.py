"""Tunables: numbers of the author's that the config chooses."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from helion import exc
from helion.ir.describe import type_name
from helion.ir.symbols import SYMBOLIC
from helion.language._op import TypeCtx, op
from helion.language.fragments import EnumFragment, Fragment, ListOf

if TYPE_CHECKING:
    from helion.language._eager import EagerMode


@op
def register_tunable(name: str, fragment: Fragment) -> Any:
    """A number that the config chooses, known at compile time. Host part only.

    Args:
        name: a string literal; the key in the config.
        fragment: the values it may have, from `helion.autotuner`.

    Returns:
        int, float or bool: the config's value, or the fragment's default.

    Raises:
        RegisterTunableArgTypes: the name is no literal, or the second argument no fragment.
        TunableTypeNotSupported: a value that is neither int, float nor bool.
        TunableNameConflict: the name is a config key, or another tunable's.
        ConfigSpecFragmentWithSymInt: a bound is a size that is known at run time only.

    Example: `split = hl.register_tunable("split_k", PowerOfTwoFragment(1, 64))`
    """
    raise exc.NotInsideKernel(api="hl.register_tunable")


@register_tunable.host_rule
def _(ctx: TypeCtx, name: Any, fragment: Any) -> Any:
    if not isinstance(name, str) or not ctx.is_literal("name"):
        raise exc.RegisterTunableArgTypes(ctx.span("name"), got=type_name(name))
    if not isinstance(fragment, Fragment) or isinstance(fragment, ListOf):
        raise exc.RegisterTunableArgTypes(ctx.span("fragment"), got=type_name(fragment))
    for field in dataclasses.fields(fragment):  # pyright: ignore[reportArgumentType]
        bound = getattr(fragment, field.name)
        if isinstance(bound, SYMBOLIC):
            raise exc.ConfigSpecFragmentWithSymInt(ctx.span("fragment"), got=field.name)
    choices = fragment.choices if isinstance(fragment, EnumFragment) else [fragment.default()]
    for value in choices:
        if not isinstance(value, (int, float)):
            raise exc.TunableTypeNotSupported(ctx.span("fragment"), got=type_name(value))
    return ctx.tunable(name, fragment)


@register_tunable.type_rule
def _(ctx: TypeCtx, name: Any, fragment: Any) -> Any:
    del name, fragment
    raise register_tunable.misuse(
        ctx.span(), "works in the host part only; move it before the loop"
    )


@register_tunable.reference
def _(mode: EagerMode, name: str, fragment: Fragment) -> Any:
    return mode.config.get(name, fragment.default())
