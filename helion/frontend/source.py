"""The author's source: a function's syntax tree, and spans that point back into the file."""

from __future__ import annotations

import ast
import dataclasses
import dis
import inspect
import textwrap
import threading
from types import CodeType
from typing import TYPE_CHECKING, Any

from helion.exc import Span

if TYPE_CHECKING:
    from types import FunctionType

_PARSING = threading.Lock()
# The same instruction, or none, however a function is called.
_CALLS = {"LOAD_METHOD": "LOAD_ATTR", "CALL_METHOD": "CALL_FUNCTION", "PUSH_NULL": ""}


@dataclasses.dataclass(frozen=True)
class FunctionSource:
    """A parsed function.

    Attributes:
        tree: its definition; positions count from the dedented text.
        filename: the file that it stands in.
        name: the function's name.
        line_offset: what to add to a line of the tree.
        column_offset: what to add to a column of the tree.
    """

    tree: ast.FunctionDef
    filename: str
    name: str
    line_offset: int
    column_offset: int

    def span(self, node: ast.AST) -> Span:
        """Where a node of the tree stands in the file."""
        return Span.of_node(node, self.filename, self.line_offset, self.column_offset, self.name)

    def target_of(self, value: ast.AST) -> str | None:
        """The variable that a statement assigns an expression to, also as part of a tuple."""
        for statement in ast.walk(self.tree):
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                for target, part in _pairs(statement.targets[0], statement.value):
                    if part is value and isinstance(target, ast.Name):
                        return target.id
        return None


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def parse_text(text: str, mode: str = "exec") -> Any:
    """The syntax tree of a text, from any thread.

    Python 3.11 counts the depth of a tree once for all threads, and then raises SystemError.
    """
    with _PARSING:
        return ast.parse(text, mode=mode)


def parse(function: FunctionType) -> FunctionSource:
    """Parse a `def` function or a lambda.

    Raises:
        OSError: the source cannot be found, as for functions made with `exec`.
    """
    lines, first = inspect.getsourcelines(function)
    text = "".join(lines)
    dedented = textwrap.dedent(text)
    column = len(lines[0]) - len(lines[0].lstrip())
    filename = inspect.getsourcefile(function) or function.__code__.co_filename
    name = function.__name__
    if name == "<lambda>":
        tree = _lambda_definition(function, text)
        return FunctionSource(tree, filename, name, first - 1, 0)
    (tree,) = parse_text(dedented).body
    assert isinstance(tree, ast.FunctionDef)
    return FunctionSource(tree, filename, name, first - 1, column)


def _lambda_definition(function: FunctionType, text: str) -> ast.FunctionDef:
    """The lambda on these source lines whose code is the function's, as a definition."""
    code = function.__code__
    for node in _lambdas(text):
        # Inside of a function that binds the free names, as where the lambda was made.
        outer = ast.Lambda(_parameters(code.co_freevars), node)
        tree = ast.fix_missing_locations(ast.Expression(outer))
        found = _code_in(_code_in(compile(tree, "<lambda>", "eval")))
        if _instructions(found) == _instructions(code):
            body = ast.copy_location(ast.Return(node.body), node.body)
            definition = ast.FunctionDef("lambda_", node.args, [body], [])
            return ast.fix_missing_locations(ast.copy_location(definition, node))
    raise OSError(f"cannot find the source of {function}")


def _parameters(names: tuple[str, ...]) -> ast.arguments:
    arguments = [ast.arg(name) for name in names]
    return ast.arguments([], arguments, None, [], [], None, [])


def _code_in(code: CodeType) -> CodeType:
    return next(c for c in code.co_consts if isinstance(c, CodeType))


def _instructions(code: CodeType) -> list[tuple[str, str]]:
    """What a code object does, whatever surrounds it in its file."""
    found: list[tuple[str, str]] = []
    for instruction in dis.get_instructions(code):
        # A function of a module that the file imports is not called like a method.
        name = _CALLS.get(instruction.opname, instruction.opname)
        # Jumps have other targets then, and nested code objects print with the name of their file.
        jumps = instruction.opcode in dis.hasjrel or instruction.opcode in dis.hasjabs
        value = None if jumps or hasattr(instruction.argval, "co_code") else instruction.argval
        if name:
            found.append((name, repr(value)))
    return found


def _lambdas(text: str) -> list[ast.Lambda]:
    # The lines of a lambda are rarely a statement: try shorter and shorter pieces of them.
    start = text.find("lambda")
    found: list[ast.Lambda] = []
    while start >= 0:
        for end in range(len(text), start, -1):
            try:
                tree = parse_text("(" + text[start:end].strip() + ")", "eval")
            except SyntaxError:
                continue
            found += [n for n in ast.walk(tree) if isinstance(n, ast.Lambda)]
            break
        start = text.find("lambda", start + 1)
    return found
