"""The generated host function: the author's host statements, with one launch for the loops."""

from __future__ import annotations

import ast
import builtins
import copy
from types import ModuleType
from typing import TYPE_CHECKING, Any

from helion.ir.symbols import BlockSymbol, is_number, known_int

if TYPE_CHECKING:
    from collections.abc import Mapping

    from helion.frontend.program import TypedProgram


class HostWriter(ast.NodeTransformer):
    """Rewrites the author's host statements for the generated module.

    The block sizes come first: `hl.register_block_size` in the author's statements is one of them.

    Attributes:
        modules: modules that the statements name, to be imported by the generated module.
        uses_source: whether they read other globals of the author's module.
    """

    def __init__(
        self,
        program: TypedProgram,
        module: Mapping[str, Any],
        constants: list[str],
        launch: list[str],
    ) -> None:
        self._program = program
        self._module = module
        self._constants = constants
        self._launch = launch
        self._locals = _local_names(program.source.tree)
        self.modules: dict[str, str] = {}
        self.uses_source = False

    def body(self) -> list[str]:
        """The statements of the host function, as lines."""
        lines = list(self._constants)
        for i, statement in enumerate(self._program.source.tree.body):
            if statement in self._program.loops:
                if statement is self._program.loops[0]:
                    lines += self._launch
                continue
            if i == 0 and isinstance(statement, ast.Expr) and _is_text(statement.value):
                continue
            fresh: Any = self.visit(statement)
            lines += ast.unparse(ast.fix_missing_locations(fresh)).splitlines()
        return lines

    def signature(self) -> str:
        """The author's parameters, and the launcher."""
        arguments = copy.deepcopy(self._program.source.tree.args)
        arguments.kwonlyargs.append(ast.arg("_launcher"))
        arguments.kw_defaults.append(ast.Name("_default_launcher", ast.Load()))
        arguments.defaults = [self.visit(d) for d in self._program.source.tree.args.defaults]
        return ast.unparse(ast.fix_missing_locations(arguments))

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Rewrites a copy: the author's tree is analyzed again for other arguments."""
        fresh = copy.copy(node)
        for field, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(fresh, field, list(value))
        return super().generic_visit(fresh)

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A global is reached through the author's module; a module is imported."""
        if node.id in self._locals or node.id not in self._module:
            return node
        value = self._module[node.id]
        if isinstance(value, ModuleType):
            self.modules[node.id] = value.__name__
            return node
        if value is getattr(builtins, node.id, None):
            return node
        self.uses_source = True
        return ast.Attribute(ast.Name("_source_module", ast.Load()), node.id, ast.Load())

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """What `hl.specialize` and its like computed."""
        known = self._program.host_calls.get(node)
        if known is None:
            return self.generic_visit(node)
        op, value = known
        if op.name == "specialize":
            return self.visit(node.args[0])
        origin = self._program.device.symbols.origin(value) if is_number(value) else None
        if isinstance(origin, BlockSymbol):
            return ast.Name(f"_BLOCK_SIZE_{origin.block.position}", ast.Load())
        known = None if isinstance(value, bool) else known_int(value)
        return ast.Constant(value if known is None else known)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _local_names(tree: ast.FunctionDef) -> set[str]:
    arguments = {a.arg for a in ast.walk(tree.args) if isinstance(a, ast.arg)}
    bound = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    return arguments | bound
