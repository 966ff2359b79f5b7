"""Wrong kernels, and the text that their authors see: `errors/NAME.py` beside `errors/NAME.err`.

Run with `EXPECTTEST_ACCEPT=1` to write the texts anew, and read what changed. `docs/errors.md` is
made of the same files: `python docs/make_errors.py`.
"""

from __future__ import annotations

import ast
import inspect
import os
import re
import runpy
import textwrap
from pathlib import Path

import pytest
import torch

import helion
import helion.language as hl
from helion import exc
from helion._testing import DEVICE

ROOT = Path(__file__).parent.parent
ERRORS = ROOT / "test" / "errors"
PROGRAMS = sorted(ERRORS.glob("*.py"))
ONES = torch.ones(8, device=DEVICE)

# Raised by the code, but by no program that is small and the same on each machine.
NOT_SHOWN = {
    "AutotuningDisallowedInEnvironment": "needs an environment variable",
    "BreakpointInDeviceLoopRequiresInterpret": "needs a GPU; see `test_debugging.py`",
    "IncompatibleInterpretModes": "needs an environment variable",
    "InternalError": "a bug of ours; tested below",
    "NoConfigFound": "needs a search that fails",
}


def said_by(program: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What a program that is run from its own folder tells its author: an error, or warnings."""
    capsys.readouterr()
    try:
        runpy.run_path(program.name, run_name=program.stem)
    except exc.Base as error:
        return f"{error}\n"
    return capsys.readouterr().err


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_text(program, capsys, monkeypatch):
    monkeypatch.chdir(ERRORS)
    monkeypatch.delenv("HELION_PRINT_OUTPUT_CODE", raising=False)
    text = said_by(program, capsys)
    assert re.match(r"error\[|WARNING\[", text), text or "the program is not refused"
    assert "[internal-error]" not in text, text
    golden = program.with_suffix(".err")
    if os.environ.get("EXPECTTEST_ACCEPT") == "1":
        golden.write_text(text, encoding="utf-8")
    assert text == golden.read_text(encoding="utf-8")


def test_each_text_has_its_program():
    assert {p.stem for p in ERRORS.glob("*.err")} == {p.stem for p in PROGRAMS}


def test_each_class_that_is_raised_has_a_program():
    raised = set()
    for path in (ROOT / "helion").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        raised |= set(re.findall(r"(?:raise|return|=|\() ?exc\.([A-Z]\w+)\b", text))
    codes = {
        name: cls.code
        for name, cls in vars(exc).items()
        if inspect.isclass(cls) and issubclass(cls, exc.Base)
    }
    tags = [
        re.match(r"\w+\[(.+?)\]", p.read_text(encoding="utf-8"))[1] for p in ERRORS.glob("*.err")
    ]
    shown = {codes.get(tag, tag) for tag in tags}
    bases = {"Base", "BaseError", "BaseWarning"}
    lacking = {name for name in raised & set(codes) - bases if codes[name] not in shown}
    assert sorted(lacking) == sorted(NOT_SHOWN)


def test_page_is_current():
    page = runpy.run_path(str(ROOT / "docs" / "make_errors.py"))["page"]()
    assert page == (ROOT / "docs" / "errors.md").read_text(encoding="utf-8"), (
        "run `python docs/make_errors.py`"
    )


# -- tables: one row for each construct, or operation --------------------------------------------


def kernel_with(line: str, tmp_path: Path, host: str = "pass"):
    """A kernel from a file of its own, with one line of device code, and one of host code."""
    path = tmp_path / "program.py"
    text = f"""\
    import torch
    import helion
    import helion.language as hl

    @helion.kernel(config=helion.Config(block_sizes=[8]))
    def kernel(x):
        out = torch.empty_like(x)
        {host}
        for tile in hl.tile(x.size(0)):
            {line}
            out[tile] = x[tile]
        return out
    """
    path.write_text(textwrap.dedent(text))
    return runpy.run_path(str(path), run_name="program")["kernel"]


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("break", "break"),
        ("continue", "continue"),
        ("del x", "del"),
        ("raise ValueError", "raise"),
        ("import math", "import"),
        ("from math import pi", "from ... import"),
        ("with torch.no_grad(): pass", "with"),
        ("def double(v): pass", "def"),
        ("class Two: pass", "class"),
        ("y = (z := 1)", ":="),
        ("y = lambda v: v", "lambda"),
        ("y = {1, 2}", "set literal"),
        ("y = {v for v in (1, 2)}", "set comprehension"),
        ("yield x", "yield"),
    ],
)
def test_a_construct_is_refused_by_name(line, name, tmp_path):
    with pytest.raises(exc.StatementNotSupported, match=re.escape(f"`{name}` is not supp")) as info:
        kernel_with(line, tmp_path).bind((ONES,))
    assert info.value.location.line == 10


@pytest.mark.parametrize("name", hl.LATER)
def test_a_later_operation_is_refused_by_name(name, tmp_path):
    assert name not in hl.__all__, "it is there now: take it out of the list"
    for where in ({"line": f"hl.{name}(x)"}, {"line": "pass", "host": f"hl.{name}(x)"}):
        with pytest.raises(exc.UnsupportedOperation, match=f"`hl.{name}` is not supported yet"):
            kernel_with(tmp_path=tmp_path, **where).bind((ONES,))


def test_a_jagged_loop_is_refused_by_name():
    @helion.kernel
    def kernel(x):
        for tile in hl.tile(x.size(0)):
            for column in hl.jagged_tile(x[tile]):
                x[tile, column] = 0

    with pytest.raises(exc.UnsupportedOperation, match="jagged_tile"):
        kernel.bind((ONES,))


# -- whose fault it is ---------------------------------------------------------------------------


def test_a_bug_of_ours_points_at_the_authors_line(monkeypatch, tmp_path):
    def broken(*args):
        raise KeyError("lost")

    def check(stage):
        with pytest.raises(exc.InternalError, match="a bug in Helion: KeyError: 'lost'") as info:
            kernel_with("y = x[tile] + 1", tmp_path)(ONES)
        assert isinstance(info.value.__cause__, KeyError), stage
        return info.value.location.line

    with monkeypatch.context() as patch:
        patch.setattr("helion.language.indexing.normalize", broken)
        assert check("types") == 10
    with monkeypatch.context() as patch:
        patch.setattr("helion.codegen.lower._lower", broken)
        assert check("lowering") in (10, 11)
    with monkeypatch.context() as patch:
        patch.setattr("helion.codegen.module.emit_grid", broken)
        assert check("module") == 6


@pytest.mark.parametrize(
    ("host", "error", "text"),
    [
        ("assert x.dim() == 2, 'a matrix, please'", AssertionError, "a matrix, please"),
        ("raise ValueError('no')", ValueError, "no"),
        ("int('seven')", ValueError, "invalid literal"),
        ("raise KeyError(x.dim())", KeyError, "1"),
    ],
)
def test_what_the_host_part_raises_is_the_authors(host, error, text, tmp_path):
    with pytest.raises(error, match=text) as info:
        kernel_with("pass", tmp_path, host=host)(ONES)
    assert not isinstance(info.value, exc.Base)
    if hasattr(info.value, "__notes__"):  # Python 3.11
        assert "program.py:8:5" in info.value.__notes__[0]


def test_the_host_part_may_catch_what_it_raises(tmp_path):
    host = "\n        ".join(
        ["try:", "    x = x.view(3, 5)", "except RuntimeError:", "    x = x.view(-1)"]
    )
    assert kernel_with("pass", tmp_path, host=host)(ONES).tolist() == [1.0] * 8


def test_warnings_are_given_once_for_each_place(capsys):
    @helion.kernel(config=helion.Config(block_sizes=[8]))
    def kernel(x, n: int):
        y = x + 1
        hl.specialize(n)
        for tile in hl.tile(x.size(0)):
            x[tile] = y[tile]

    kernel(ONES, 3)
    assert capsys.readouterr().err.count("WARNING[TensorOperationInWrapper]") == 1


def test_warnings_can_be_ignored(capsys):
    @helion.kernel(
        config=helion.Config(block_sizes=[8]), ignore_warnings=[exc.TensorOperationInWrapper]
    )
    def kernel(x):
        y = x + 1
        for tile in hl.tile(x.size(0)):
            x[tile] = y[tile]

    kernel(ONES)
    assert capsys.readouterr().err == ""


def test_no_program_holds_two_mistakes():
    # Each is short enough to be read at a glance, and does not pretend to be a module.
    for program in PROGRAMS:
        tree = ast.parse(program.read_text(encoding="utf-8"))
        assert len(ast.unparse(tree).splitlines()) <= 32, program.name
