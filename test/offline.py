"""Compiles generated kernels for a GPU that is not there, in a process without the interpreter."""

from __future__ import annotations

import collections
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

_POINTEES = {
    torch.float64: "fp64", torch.float32: "fp32", torch.float16: "fp16", torch.bfloat16: "bf16",
    torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8",
    torch.uint64: "u64", torch.uint32: "u32", torch.uint16: "u16", torch.uint8: "u8",
    torch.bool: "i1", torch.float8_e4m3fn: "fp8e4nv", torch.float8_e5m2: "fp8e5",
}  # fmt: skip


def case(bound: Any, config: Any, *args: Any) -> dict[str, Any]:
    """What the other process needs to know of one kernel and one call."""
    text = bound.to_triton_code(config, output_origin_lines=False)
    seen: dict[str, Any] = {"text": text}

    def launcher(kernel: Any, grid: Any, *values: Any, num_warps: int, num_stages: int) -> None:
        del grid
        names = list(kernel.fn.__code__.co_varnames[: len(values)])
        notes = kernel.fn.__annotations__
        constants = [n for n in names if "constexpr" in notes.get(n, "")]
        given = dict(zip(names, values, strict=True))
        seen.update(
            name=kernel.fn.__name__,
            constants={n: given[n] for n in constants},
            signature={
                n: "constexpr" if n in constants else _type(v, notes.get(n, ""))
                for n, v in given.items()
            },
            divisible=[n for n, v in given.items() if _is_divisible(v, notes.get(n, ""))],
            options={"num_warps": num_warps, "num_stages": num_stages},
        )

    bound.compile_config(config)(*args, _launcher=launcher)
    return seen


def _type(value: Any, note: str) -> str:
    if isinstance(value, torch.Tensor):
        return "*" + _POINTEES[value.dtype]
    if isinstance(value, float):
        return "fp64" if "float64" in note else "fp32"
    return "i64" if "int64" in note or not -(2**31) <= value < 2**31 else "i32"


def _is_divisible(value: Any, note: str) -> bool:
    """Whether Triton compiles in that a value is a multiple of 16; seeds are declared, and not."""
    if isinstance(value, torch.Tensor):
        return True
    return type(value) is int and not note and value % 16 == 0


def compile_offline(cases: list[dict[str, Any]], *capabilities: int) -> list[dict[str, Any]]:
    """Facts of each kernel for each compute capability.

    Returns:
        For each capability, and in it for each case: `memory`, PTX instructions that load, store,
        synchronize or exchange, with their number; `instructions`, how many there are in all;
        `wide`, those that multiply or combine 64-bit integers; `conversions`, the dtypes of values
        that are exchanged between threads; `shared`, bytes of shared memory; `wgmma`, products of
        Hopper's tensor cores; `spilled`, stores of registers to memory.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cases.json"
        path.write_text(json.dumps([cases, capabilities]))
        # Kernels of examples read their module's globals.
        path_of_imports = os.pathsep.join(p for p in sys.path if p)
        environment = {**os.environ, "TRITON_INTERPRET": "0", "PYTHONPATH": path_of_imports}
        command = [sys.executable, __file__, str(path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def compiled(given: dict[str, Any], capability: int, path: Path) -> Any:
    """Compile one case; `path` is where its text is written to."""
    # Here, because the process that runs the tests must import helion before Triton.
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    path.write_text(given["text"])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    divisible = [i for i, n in enumerate(given["signature"]) if n in given["divisible"]]
    source = ASTSource(
        getattr(module, given["name"]),
        signature=given["signature"],
        constexprs=given["constants"],
        attrs={(i,): [["tt.divisibility", 16]] for i in divisible},
    )
    target = GPUTarget("cuda", capability, 32)
    return triton.compile(source, target=target, options=given["options"])


def facts_of(made: Any) -> dict[str, Any]:
    """What `compile_offline` says of a compiled kernel."""
    ptx = re.findall(r"(?m)^\t(?:@!?%p\d+\s+)?([a-z][\w.:]*)\s", made.asm["ptx"])
    touching = ("ld.global", "st.global", "ld.shared", "st.shared", "bar", "shfl", "ldmatrix")
    converted = re.findall(r"convert_layout .* -> tensor<(?:\d+x)+(\w+),", made.asm["ttgir"])
    return {
        "memory": collections.Counter(i for i in ptx if i.startswith(touching)),
        "instructions": len(ptx),
        "wide": [i for i in ptx if re.match(r"(mul\.(lo|hi)|xor)\.[bsu]64", i)],
        "conversions": sorted(set(converted)),
        "shared": made.metadata.shared,
        "wgmma": sum(i.startswith("wgmma.mma_async") for i in ptx),
        "spilled": len(re.findall(r"\bSTL\b", made.asm["sass"])),
    }


def machine_instructions(made: Any) -> int:
    """How many instructions a compiled kernel has; the disassembler needs no GPU."""
    return len(re.findall(r";\s*$", made.asm["sass"], re.MULTILINE))


def _main(path: Path) -> None:
    cases, capabilities = json.loads(path.read_text())
    facts = [
        [
            facts_of(compiled(c, cc, path.with_name(f"case_{cc}_{i}.py")))
            for i, c in enumerate(cases)
        ]
        for cc in capabilities
    ]
    print(json.dumps(facts))


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
