"""The generated module: imports, one Triton kernel, one host function."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

from helion.codegen.grid import choices, emit_program_ids, grid_text
from helion.codegen.host import HostWriter
from helion.codegen.lower import lower_graph
from helion.codegen.names import RESERVED, Block, Names
from helion.codegen.operations import LoweringContext
from helion.ir.passes import everywhere, passes_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from helion.codegen.kernel import Parameter
    from helion.frontend.program import TypedProgram


@dataclasses.dataclass(frozen=True)
class Options:
    """What the author's settings mean for code generation."""

    index_dtype: torch.dtype
    origin_lines: bool = True
    keep_narrowing: bool = False
    dot_precision: str = "tf32"


@dataclasses.dataclass(frozen=True)
class GeneratedModule:
    """The module that runs a kernel with one config.

    Attributes:
        imports: its imports.
        kernel: the Triton function.
        host: the host function, which launches it.
    """

    imports: str
    kernel: str
    host: str

    @property
    def text(self) -> str:
        """The whole file."""
        return f"{self.imports}\n\n\n{self.kernel}\n\n\n{self.host}\n"


def generate(
    program: TypedProgram,
    module: Mapping[str, Any],
    module_name: str,
    config: Mapping[str, Any],
    options: Options,
) -> GeneratedModule:
    """The module that runs a kernel with one config.

    Args:
        program: the typed program.
        module: the globals of the author's module.
        module_name: its name, for imports.
        config: a complete config.
        options: settings.
    """
    name = program.source.name
    names = Names(RESERVED | {f"_helion_{name}"})
    device = program.device
    for rewrite in passes_for(keep_narrowing=options.keep_narrowing):
        device = device.map_graphs(partial(everywhere, rewrite))
    blocks = {b: config["block_sizes"][b.position] for b in device.blocks if b.position is not None}
    kernel = LoweringContext(device, blocks, program.host_numbers, options.index_dtype, names)
    kernel.dot_precision = options.dot_precision
    kernel.origin_lines = options.origin_lines
    kernel.arguments = [a.arg for a in program.source.tree.args.args]
    grids = _emit_loops(kernel, config)
    parameters = kernel.ordered_parameters(kernel.arguments)
    launch = _launch(kernel, parameters, name, config, grids, blocks)
    host = HostWriter(program, module, launch)
    host_body = [f"    {line}" for line in host.body()]
    host_lines = [f"def {name}({host.signature()}):", *host_body]
    return GeneratedModule(
        imports="\n".join(_imports(host, module_name, kernel, launch)),
        kernel="\n".join(_kernel_lines(kernel, parameters, name)),
        host="\n".join(host_lines),
    )


def _emit_loops(kernel: LoweringContext, config: Mapping[str, Any]) -> list[str]:
    """Emit every top-level loop; returns the number of programs of each, as host text."""
    loops = kernel.program.loops
    root = kernel.body
    root.attach(kernel.head, 0)
    grids = [grid_text(kernel, loop.axes) for loop in loops]
    pid = "tl.program_id(0)"
    if len(loops) > 1 or any(len(loop.axes) > 1 for loop in loops):
        pid = kernel.names.fresh("pid")
        root.line(f"{pid} = tl.program_id(0)")
    parts = [(root, pid)] if len(loops) == 1 else _branches(kernel, root, grids, pid)
    chosen = choices(config, [loop.axes for loop in loops])
    for loop, choice, (body, own_pid) in zip(loops, chosen, parts, strict=True):
        kernel.body = body
        kernel.origin(loop.span)
        emit_program_ids(kernel, loop.axes, choice, own_pid, body.block())
        kernel.body = body.block()
        lower_graph(kernel, loop.graph)
    kernel.body = root
    return grids


def _branches(
    kernel: LoweringContext, root: Block, grids: list[str], pid: str
) -> list[tuple[Block, str]]:
    """A branch for each loop: its programs are numbered after those of the loops before it."""
    counts = [kernel.parameter("_PROGRAMS", grid) for grid in grids[:-1]]
    parts: list[tuple[Block, str]] = []
    for i in range(len(grids)):
        first = " - ".join([pid, *counts[:i]])
        if i == len(grids) - 1:
            root.line("else:")
        else:
            root.line(f"{'elif' if i else 'if'} {first} < {counts[i]}:")
        body = root.block(1)
        name = pid if i == 0 else kernel.names.fresh("pid")
        if i > 0:
            body.line(f"{name} = {first}")
        parts.append((body, name))
    return parts


def _launch(
    kernel: LoweringContext,
    parameters: list[Parameter],
    name: str,
    config: Mapping[str, Any],
    grids: list[str],
    blocks: Mapping[Any, int],
) -> list[str]:
    lines = [f"_BLOCK_SIZE_{b.position} = {size}" for b, size in blocks.items()]
    arguments = ", ".join(_host_value(kernel, p) for p in parameters)
    options = f"num_warps={config['num_warps']}, num_stages={config['num_stages']}"
    grid = " + ".join(grids)
    lines.append(f"_launcher(_helion_{name}, ({grid},), {arguments}, {options})")
    return lines


def _host_value(kernel: LoweringContext, parameter: Parameter) -> str:
    """What the launch passes: seeds as signed 64-bit numbers, everything else as it is."""
    if not parameter.wide:
        return parameter.host
    # An argument that does not fit in 64 bits is a mistake; a computed seed wraps.
    function = "_seed64" if parameter.host in kernel.arguments else "_wrap64"
    return f"{function}({parameter.host})"


def _kernel_lines(kernel: LoweringContext, parameters: list[Parameter], name: str) -> list[str]:
    texts = [p.name + _annotation(p) for p in parameters]
    decorator = "@triton.jit"
    wide = [p.name for p in parameters if p.wide]
    if wide:
        decorator += f"(do_not_specialize={wide!r})"
    body = kernel.body.lines(1) or ["    pass"]
    return [decorator, f"def _helion_{name}({', '.join(texts)}):", *body]


def _annotation(parameter: Parameter) -> str:
    if parameter.constexpr:
        return ": tl.constexpr"
    # Undeclared, a small seed would be an int32, and a large one another specialization.
    return ": tl.int64" if parameter.wide else ""


def _imports(
    host: HostWriter, module_name: str, kernel: LoweringContext, launch: list[str]
) -> list[str]:
    modules = {"torch": "torch", "triton": "triton", **host.modules}
    modules.pop("tl", None)
    lines = ["from __future__ import annotations", ""]
    for alias, full in sorted(modules.items()):
        lines.append(f"import {full}" if alias == full else f"import {full} as {alias}")
    lines.append("import triton.language as tl")
    text = "\n".join(kernel.body.lines())
    if "libdevice." in text:
        lines.append("from triton.language.extra import libdevice")
    if "triton_helpers." in text:
        lines.append("from helion.runtime import triton_helpers")
    lines.append("from helion.runtime import default_launcher as _default_launcher")
    lines += [
        f"from helion.runtime.launcher import {function} as _{function}"
        for function in ("seed64", "wrap64")
        if any(f"_{function}(" in line for line in launch)
    ]
    if host.uses_source:
        lines.append(f"import {module_name} as _source_module")
    return lines
