"""The fragments under the name that kernels import them by."""

from helion.language.fragments import (
    BooleanFragment,
    EnumFragment,
    Fragment,
    IntegerFragment,
    ListOf,
    PowerOfTwoFragment,
)

__all__ = [
    "BooleanFragment",
    "EnumFragment",
    "Fragment",
    "IntegerFragment",
    "ListOf",
    "PowerOfTwoFragment",
]
