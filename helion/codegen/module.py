"""The generated module: imports, one Triton kernel, one host function."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

from helion.codegen.choices import Choices
from helion.codegen.grid import emit_grid
from helion.codegen.host import HostWriter
from helion.codegen.lower import lower_graph
from helion.codegen.names import RESERVED, Names
from helion.codegen.operations import LoweringContext
from helion.codegen.ordering import order_memory
from helion.codegen.parameters import ordered
from helion.codegen.rolling import roll, rollable_lengths
from helion.frontend.statements import assigned_names
from helion.ir.passes import everywhere, passes_for
from helion.ir.symbols import expr_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import torch

    from helion.codegen.parameters import Parameter
    from helion.frontend.program import TypedProgram

_LONGEST_LINE = 96


@dataclasses.dataclass(frozen=True)
class Options:
    """What the author's settings mean for code generation."""

    index_dtype: torch.dtype
    origin_lines: bool = True
    keep_narrowing: bool = False
    dot_precision: str = "tf32"
    reserved_sms: int = 0
    indexing: frozenset[str] = frozenset()
    warp_specialize: bool = False


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
    chunks = zip(rollable_lengths(program.device), config["reduction_loops"], strict=True)
    device = roll(device, {expr_of(size): chunk for size, chunk in chunks})
    device = device.map_graphs(order_memory)
    blocks = {b: config["block_sizes"][b.position] for b in device.blocks if b.position is not None}
    choices = Choices(config, program.device, options.warp_specialize)
    kernel = LoweringContext(
        device, blocks, program.host_numbers, options.index_dtype, names, choices
    )
    kernel.dot_precision = options.dot_precision
    kernel.origin_lines = options.origin_lines
    kernel.arguments = [a.arg for a in program.source.tree.args.args]
    bound = assigned_names(program.source.tree.body)
    kernel.rebound = {*kernel.arguments} & {*bound}
    kernel.indexing = options.indexing
    grid = emit_grid(kernel, lower_graph)
    parameters = ordered(kernel.parameters.values(), [*kernel.arguments, *bound])
    launch = _launch(kernel, parameters, name, grid, options)
    constants = [f"_BLOCK_SIZE_{b.position} = {n}" for b, n in blocks.items()]
    host = HostWriter(program, module, constants, launch)
    host_body = [f"    {line}" for line in host.body()]
    kept = [f"    {kept} = {argument}" for argument, kept in kernel.kept.items()]
    host_lines = [f"def {name}({host.signature()}):", *kept, *host_body]
    return GeneratedModule(
        imports="\n".join(_imports(host, module_name, kernel, launch)),
        kernel="\n".join(_kernel_lines(kernel, parameters, name)),
        host="\n".join(host_lines),
    )


def _launch(
    kernel: LoweringContext,
    parameters: list[Parameter],
    name: str,
    grid: list[str],
    options: Options,
) -> list[str]:
    """The lines of the host function that launch the kernel."""
    config = kernel.choices.config
    lines: list[str] = []
    if "_NUM_SM" in grid[0]:
        tensor = next(p.host for p in parameters if p.is_tensor)
        reserved = options.reserved_sms
        more = f", reserved_sms={reserved}" if reserved else ""
        lines.append(f"_NUM_SM = helion.runtime.get_num_sm({tensor}.device{more})")
    arguments = [_host_value(kernel, p) for p in parameters]
    launch = [f"num_warps={config['num_warps']}", f"num_stages={config['num_stages']}"]
    if config.get("maxnreg") is not None:
        launch.append(f"maxnreg={config['maxnreg']}")
    sizes = f"({', '.join(grid)},)" if len(grid) == 1 else f"({', '.join(grid)})"
    parts = [f"_helion_{name}", sizes, ", ".join(arguments), ", ".join(launch)]
    line = f"_launcher({', '.join(parts)})"
    if len(line) <= _LONGEST_LINE:
        return [*lines, line]
    return [*lines, "_launcher(", *(f"    {part}," for part in parts), ")"]


def _host_value(kernel: LoweringContext, parameter: Parameter) -> str:
    """What the launch passes: seeds as signed 64-bit numbers, everything else as it is."""
    if not parameter.wide or parameter.host.startswith(
        ("_threshold(", "_checked_range(", "_draw_seed(")
    ):
        return parameter.host
    # An argument that does not fit in 64 bits is a mistake; a computed seed wraps.
    given = {*kernel.arguments} - kernel.rebound | {*kernel.kept.values()}
    function = "_seed64" if parameter.host in given else "_wrap64"
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
    if parameter.double:
        return ": tl.float64"
    # Undeclared, a small seed would be an int32, and a large one another specialization.
    return ": tl.int64" if parameter.wide else ""


def _imports(
    host: HostWriter, module_name: str, kernel: LoweringContext, launch: list[str]
) -> list[str]:
    modules = {"torch": "torch", "triton": "triton", **host.modules}
    if any("helion.runtime." in line for line in launch):
        modules["helion"] = "helion"
    modules.pop("tl", None)
    lines = ["from __future__ import annotations", ""]
    for alias, full in sorted(modules.items()):
        lines.append(f"import {full}" if alias == full else f"import {full} as {alias}")
    lines.append("import triton.language as tl")
    text = "\n".join(kernel.body.lines())
    if any("TensorDescriptor(" in line for line in launch):
        lines.append("from triton.tools.tensor_descriptor import TensorDescriptor")
    if "libdevice." in text:
        lines.append("from triton.language.extra import libdevice")
    if "triton_helpers." in text:
        lines.append("from helion.runtime import triton_helpers")
    lines.append("from helion.runtime import default_launcher as _default_launcher")
    lines += [
        f"from helion.runtime.launcher import {function} as _{function}"
        for function in ("cdiv", "seed64", "wrap64", "threshold", "checked_range", "draw_seed")
        if any(f"_{function}(" in line for line in launch)
    ]
    if host.uses_source:
        lines.append(f"import {module_name} as _source_module")
    return lines
