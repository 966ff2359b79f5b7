"""Names in generated code: the author's where possible, never one twice."""

from __future__ import annotations

import keyword
import re

RESERVED = frozenset(
    {"math", "operator", "torch", "helion", "hl", "triton", "tl", "libdevice", "tl_math"}
    | {"triton_helpers", "_default_launcher", "_source_module", "_launcher", "float", "range"}
    | {"_NUM_SM", "_NUM_XCDS"}
)


class Names:
    """Hands out names that are free."""

    def __init__(self, taken: frozenset[str] = RESERVED) -> None:
        self._taken = set(taken)

    def fresh(self, wish: str) -> str:
        """`wish` as an identifier, with a number behind it if it is taken."""
        base = re.sub(r"\W+", "_", wish).rstrip("_") or "value"
        if base[0].isdigit() or keyword.iskeyword(base):
            base = f"v_{base}"
        name, count = base, 0
        while name in self._taken:
            count += 1
            name = f"{base}_{count}"
        self._taken.add(name)
        return name


class Block:
    """Lines of code, with blocks among them that may still grow."""

    def __init__(self, parent: Block | None = None) -> None:
        self._parts: list[str | tuple[int, Block]] = []
        self._parent = parent
        self._comment: str | None = None

    def comment(self, text: str) -> None:
        """A comment on what comes next; one that another follows at once is left out."""
        self._comment = f"# {text}"

    def line(self, text: str) -> None:
        """Append a line."""
        self._append(text)

    def block(self, indent: int = 0) -> Block:
        """Append a block and return it."""
        inner = Block(self)
        self._append((indent, inner))
        return inner

    def attach(self, block: Block, indent: int) -> None:
        """Append a block that was filled before."""
        self._append((indent, block))

    def _append(self, part: str | tuple[int, Block]) -> None:
        if self._comment is not None:
            self._parts.append(self._comment)
            self._comment = None
        self._parts.append(part)

    def is_inside(self, other: Block) -> bool:
        """Whether what `other` assigned so far is visible here."""
        block: Block | None = self
        while block is not None and block is not other:
            block = block._parent
        return block is other

    def lines(self, indent: int = 0) -> list[str]:
        """The finished lines."""
        result: list[str] = []
        for part in self._parts:
            if isinstance(part, str):
                result.append("    " * indent + part if part else "")
            else:
                result.extend(part[1].lines(indent + part[0]))
        return result

    def __bool__(self) -> bool:
        return any(isinstance(p, str) or bool(p[1]) for p in self._parts)
