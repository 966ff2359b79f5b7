"""Lists, tuples and dicts that loops and branches change: each item is a variable of its own."""

from __future__ import annotations

from typing import Any


def leaves(name: str, value: Any) -> dict[str, Any]:
    """The items of a container by name, `acc[0]`, nested ones too; of another value, itself."""
    if not isinstance(value, (tuple, list, dict)) or not value:
        return {name: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {k: v for key, item in items for k, v in leaves(f"{name}[{key!r}]", item).items()}


def rebuild(name: str, value: Any, changes: dict[str, Any]) -> Any:
    """The value with other leaves; lists and dicts are new ones, so that they can be changed."""
    if not isinstance(value, (tuple, list, dict)):
        return changes.get(name, value)
    if isinstance(value, dict):
        return {k: rebuild(f"{name}[{k!r}]", v, changes) for k, v in value.items()}
    items = [rebuild(f"{name}[{i!r}]", v, changes) for i, v in enumerate(value)]
    if isinstance(value, list):
        return items
    if all(new is old for new, old in zip(items, value, strict=True)):
        return value
    return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)


def variable_of(leaf: str) -> str:
    """The variable that a leaf belongs to."""
    return leaf.partition("[")[0]
