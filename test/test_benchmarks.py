"""Every benchmark runs on a small input, and notices a kernel that is wrong."""

from __future__ import annotations

import csv
import json
import sys
import types
from pathlib import Path

import pytest
import torch

from benchmarks import compile_time, dropout_bandwidth, launch, report, rivals, run
from benchmarks.operators import OPERATORS, dropout_fault, dropout_inputs

# The modules that `torch.compile` imports warn of one another.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

COLUMNS = ["torch_dropout", "triton_dropout", "seeded_dropout", "helion_low_mem_dropout"]
ON_GPU = torch.cuda.is_available()


def test_every_example_is_an_operator():
    examples = Path(__file__).parent.parent.joinpath("examples").glob("*.py")
    assert sorted(OPERATORS) == sorted(path.stem for path in examples)


@pytest.mark.parametrize("name", [name for name in OPERATORS if name != "low_mem_dropout"])
def test_operators_like_torch(name):
    operator = OPERATORS[name]
    args = run.with_gradients(operator.inputs(operator.small_sizes[0], torch.float32))
    for implementation in operator.implementations.values():
        assert operator.fault(implementation, args) is None
    assert operator.moved(*args) > 0


def test_results_and_gradients_unlike_torch_are_noticed():
    operator = OPERATORS["exp"]
    args = run.with_gradients(operator.inputs(8, torch.float32))
    double, double_gradient = (lambda x: lambda: 2 * x.exp()), (lambda x: lambda: Doubled.apply(x))
    assert "the result is off" in str(operator.fault(double, args))
    assert "the gradient of input 0 is off" in str(operator.fault(double_gradient, args))


class Doubled(torch.autograd.Function):
    """The exponential, with twice its gradient."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x.exp())
        return x.exp()

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0]


# -- run.py --------------------------------------------------------------------------------------


def run_dropout(*arguments: str) -> int:
    return run.main(["--kernel", "low_mem_dropout", *arguments])


def test_command_of_the_mission(tmp_path, capsys):
    path = tmp_path / "table.csv"
    arguments = ["--metrics", "accuracy,speedup", "--num-inputs", "2", "--output", str(path)]
    assert run_dropout(*arguments) == 0
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [row["size"] for row in rows] == ["32", "128", "average"]
    for name in COLUMNS:
        assert [float(row[f"{name}-accuracy"]) for row in rows] == [1, 1, 1]
    for name in COLUMNS[1:]:
        values = [float(row[f"{name}-speedup"]) for row in rows]
        assert min(values) > 0
        assert values[2] == pytest.approx((values[0] + values[1]) / 2)
    printed = capsys.readouterr().out
    assert "| average |" in printed
    assert ("timings mean nothing" in printed) == (not ON_GPU)


def test_sizes_grow_by_four_from_32_to_524288():
    operator = OPERATORS["low_mem_dropout"]
    assert list(operator.sizes) == [32, 128, 512, 2048, 8192, 32768, 131072, 524288]
    assert operator.baseline == "torch_dropout"
    assert list(operator.implementations) == [
        *COLUMNS[:3],
        *(["torch_compile_dropout"] if ON_GPU else []),
        COLUMNS[3],
    ]


def test_other_metrics_and_backward(tmp_path):
    path = tmp_path / "table.json"
    metrics = "latency,gbps,tflops,peak_memory,compile_time"
    only = ["--only", "helion_low_mem_dropout", "--sizes", "1000", "--dtype", "bf16"]
    assert run_dropout("--metrics", metrics, *only, "--bwd", "--output", str(path)) == 0
    (row,) = json.loads(path.read_text())["rows"]
    assert list(row["values"]) == ["torch_dropout", "helion_low_mem_dropout"]
    for values in row["values"].values():
        assert values["gbps"] == pytest.approx(2 * 2000 / values["latency"] / 1e6)
        assert values["tflops"] is None  # memory alone limits dropout
        assert values["compile_time"] > 0
        assert (values["peak_memory"] is None) == (not ON_GPU)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kernel", "dropuot"], "no kernel dropuot; there are low_mem_dropout"),
        (["--kernel", "low_mem_dropout", "--metrics", "speed"], "no metric speed; there are acc"),
        (["--kernel", "low_mem_dropout", "--only", "x"], "no implementation x; there are torch_"),
        (["--kernel", "low_mem_dropout", "--output", "a.txt"], "ends in .csv or .json, not a.txt"),
        ([], "--kernel is needed; there are low_mem_dropout"),
    ],
)
def test_a_wrong_argument_is_named(arguments, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        run.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_list(capsys):
    assert run.main(["--list"]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in [*OPERATORS, *run.METRICS, *COLUMNS])


def wrong_scale(p, x):
    return lambda: rivals.seeded_dropout(p, x)() * 1.01


def wrong_rate(p, x):
    return lambda: rivals.seeded_dropout(0.5, x)() * (0.5 / (1 - p))


def wrong_mask(p, x):
    class OtherMask(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return rivals.launch(rivals.seeded_kernel, p, x, 1)

        @staticmethod
        def backward(ctx, grad):
            return rivals.launch(rivals.seeded_kernel, p, grad, 2)

    return lambda: OtherMask.apply(x)


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (wrong_scale, "kept is not x / (1 - p)"),
        (wrong_rate, "not within 3.3275% of 25.00%"),
        (wrong_mask, "drops other elements"),
    ],
)
def test_a_wrong_kernel_is_noticed(wrong, fault, monkeypatch, capsys):
    operator = OPERATORS["low_mem_dropout"]
    monkeypatch.setitem(operator.implementations, "wrong", wrong)
    assert run_dropout("--sizes", "4096", "--only", "wrong", "--metrics", "accuracy") == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("WRONG")]
    assert line.startswith("WRONG wrong at size 4096: ")
    assert fault in line


def test_operators_of_tritonbench_join(monkeypatch, tmp_path):
    class Dropout:
        def __init__(self, tb_args, extra_args):
            assert (tb_args.op, extra_args) == ("low_mem_dropout", [])

        def theirs(self, p, x):
            return lambda: torch.nn.functional.dropout(x, p)

    class Parser:
        def parse_args(self, arguments):
            return types.SimpleNamespace(op=arguments[1])

    modules = {
        "tritonbench": {"__spec__": object()},
        "tritonbench.operators": {"load_opbench_by_name": lambda name: Dropout},
        "tritonbench.utils": {},
        "tritonbench.utils.triton_op": {
            "REGISTERED_BENCHMARKS": {"low_mem_dropout": {"theirs": None}}
        },
        "tritonbench.utils.parser": {"get_parser": Parser},
    }
    for name, content in modules.items():
        module = types.ModuleType(name)
        vars(module).update(content)
        monkeypatch.setitem(sys.modules, name, module)
    path = tmp_path / "table.json"
    only = ["--only", "tritonbench_theirs", "--metrics", "accuracy", "--sizes", "64"]
    assert run_dropout(*only, "--output", str(path)) == 0
    (row,) = json.loads(path.read_text())["rows"]
    assert row["values"]["tritonbench_theirs"]["accuracy"] == 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_accuracy_accepts_what_is_right(dtype):
    p, x = dropout_inputs(2048, dtype)
    x.requires_grad_()
    for name, implementation in OPERATORS["low_mem_dropout"].implementations.items():
        assert dropout_fault(implementation, (p, x)) is None, name


# -- the others ----------------------------------------------------------------------------------


def test_bandwidth(tmp_path, capsys):
    path = tmp_path / "result.json"
    arguments = ["--sizes", "1024", "3000", "--seconds", "0.01", "--json", str(path)]
    assert dropout_bandwidth.main(arguments) == 0
    result = json.loads(path.read_text())
    assert set(result["gbps"]) == {"float32", "bfloat16"}
    for rows in result["gbps"].values():
        assert [row["size"] for row in rows] == [1024, 3000]
        for row in rows:
            assert {"copy", "F.dropout", "tl.rand", "ours", "ours, backward"} <= set(
                row["candidates"]
            )
            for speed in row["candidates"].values():
                assert 0 < speed["low"] <= speed["gbps"] <= speed["high"]
    printed = capsys.readouterr().out
    assert "|     2^10 |" in printed
    assert "|     3000 |" in printed


def test_plots(tmp_path):
    pytest.importorskip("matplotlib")
    for script, arguments in [
        (dropout_bandwidth.main, ["--sizes", "64", "128", "--seconds", "0.01"]),
        (run.main, ["--kernel", "low_mem_dropout", "--sizes", "64", "128"]),
    ]:
        path = tmp_path / f"{script.__module__}.png"
        assert script([*arguments, "--plot", str(path)]) == 0
        assert path.read_bytes().startswith(b"\x89PNG")


def test_launch(tmp_path):
    path = tmp_path / "result.json"
    assert launch.main(["--rounds", "1", "--repeats", "1", "--json", str(path)]) == 0
    microseconds = json.loads(path.read_text())["microseconds"]
    assert {"torch.add", "F.dropout", "Triton launch", "ours"} <= set(microseconds)
    assert all(found["us"] > 0 for found in microseconds.values())


def test_compile_time(tmp_path, monkeypatch):
    # One process instead of four, each of which takes seconds to import torch; and no inductor,
    # which compiles for half a minute.
    monkeypatch.setattr(compile_time, "TORCH_COMPILE", "")
    monkeypatch.setattr(compile_time, "imports", lambda _: compile_time.child(compile_time.IMPORTS))
    path = tmp_path / "result.json"
    assert compile_time.main(["--json", str(path)]) == 0
    seconds = json.loads(path.read_text())["seconds"]
    assert set(seconds["imports"]) == {"torch", "helion"}
    assert {"ours", "ours, backward", "tl.rand by hand"} <= set(seconds["first"])
    assert set(seconds["first"]) == set(seconds["second"])
    # What was compiled is kept in the process: a call with another seed compiles nothing.
    assert seconds["first"]["ours, again"] < seconds["first"]["ours"]


def test_markdown_is_aligned():
    expected = """\
|    n | us |
|-----:|---:|
| 2^10 |  7 |"""
    assert report.markdown(["n", "us"], [[report.power(1024), "7"]]) == expected
