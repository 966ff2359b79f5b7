"""The search for configs, and the fragments that config spaces are made of."""

from helion.autotuner.config_fragment import (
    BooleanFragment,
    EnumFragment,
    Fragment,
    IntegerFragment,
    ListOf,
    PowerOfTwoFragment,
)
from helion.runtime.config_spec import ConfigSpec

__all__ = [
    "BooleanFragment",
    "ConfigSpec",
    "EnumFragment",
    "Fragment",
    "IntegerFragment",
    "ListOf",
    "PowerOfTwoFragment",
]
