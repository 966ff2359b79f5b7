"""The diagnostics: how they are drawn, and that every class of the catalogue can be."""

import ast
import inspect
import linecache
import pickle
import re

import pytest

from helion import exc

# Not every machine with a GPU has it.
assert_expected_inline = pytest.importorskip("expecttest").assert_expected_inline

SOURCE = """\
import helion


@helion.kernel
def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):

        # fill the tile
        keep = hl.rand([tile], seed=p) > p
        out[tile] = torch.where(
            keep,

            x[tile],
            0,
        )
\ty = f("日本", é, tail)
    return out
"""
FILE = "dropout.py"


@pytest.fixture(autouse=True)
def _source(monkeypatch):
    lines = SOURCE.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, FILE, (len(SOURCE), None, lines, FILE))


def span_of(text, line, filename=FILE):
    """The span of a piece of one line, columns in bytes as `ast` counts them."""
    before, _, _ = SOURCE.splitlines()[line - 1].partition(text)
    start = len(before.encode())
    return exc.Span(filename, line, start, line, start + len(text.encode()), "dropout")


def catalogue():
    found = [item for item in vars(exc).values() if inspect.isclass(item)]
    return sorted((item for item in found if issubclass(item, exc.Base)), key=lambda c: c.__name__)


def concrete():
    return [cls for cls in catalogue() if cls not in (exc.Base, exc.BaseError, exc.BaseWarning)]


def test_single_span():
    error = exc.UndefinedVariable(span_of("hl.rand", 10), name="hl")
    assert_expected_inline(
        str(error),
        """\
error[undefined-variable]: `hl` is not defined
  --> dropout.py:10:16
   |
10 |         keep = hl.rand([tile], seed=p) > p
   |                ^^^^^^^ nothing has bound `hl` here
   |
   = help: bind it first; what one branch or a loop body alone binds does not exist after it""",
    )


def test_related_span():
    error = exc.SeedNotInteger(
        exc.Span(FILE, 10, 36, 10, 37),
        related=[exc.Related(span_of("p: float", 5), "`p` enters the kernel here")],
        got=float,
    )
    assert_expected_inline(
        str(error),
        """\
error[seed-not-integer]: `hl.rand` needs an integer seed, got `float`
  --> dropout.py:10:37
   |
10 |         keep = hl.rand([tile], seed=p) > p
   |                                     ^ this is `float`
   |
 5 | def dropout(x: torch.Tensor, p: float, seed: int) -> torch.Tensor:
   |                              -------- `p` enters the kernel here
   |
   = help: pass an int, or an integer tensor that broadcasts to the shape: `seed=seed`""",
    )


def test_related_spans_on_the_same_line():
    error = exc.ShapeMismatch(
        span_of("hl.rand([tile], seed=p) > p", 10),
        related=[
            exc.Related(span_of("hl.rand([tile], seed=p)", 10), "[tile]"),
            exc.Related(exc.Span(FILE, 10, 41, 10, 42), "[4]"),
        ],
        lhs="[tile]",
        rhs="[4]",
    )
    assert_expected_inline(
        str(error),
        """\
error[shape-mismatch]: the shapes [tile] and [4] do not fit together
  --> dropout.py:10:16
   |
10 |         keep = hl.rand([tile], seed=p) > p
   |                ^^^^^^^^^^^^^^^^^^^^^^^^^^^
   |                ----------------------- [tile]
   |                                          - [4]
   |
   = help: a tile axis matches only itself; insert axes with `[:, None]` to broadcast""",
    )


def test_related_span_in_another_file(monkeypatch):
    monkeypatch.setitem(linecache.cache, "helper.py", (10, None, ["x = 1\n"], "helper.py"))
    error = exc.GlobalMutation(
        span_of("out", 6),
        related=[exc.Related(exc.Span("helper.py", 1, 0, 1, 1), "bound here")],
        name="out",
    )
    assert_expected_inline(
        str(error),
        """\
error[global-mutation]: a kernel may not change the global `out`
 --> dropout.py:6:5
  |
6 |     out = torch.empty_like(x)
  |     ^^^ `out` is written here
  |
 ::: helper.py:1:1
1 | x = 1
  | - bound here
  |
  = help: return the value, or store it into a tensor argument""",
    )


def test_multi_line_span():
    error = exc.TypeInferenceError(exc.Span(FILE, 10, 8, 11, 17), detail="no type")
    assert_expected_inline(
        str(error),
        """\
error[type-inference-error]: no type
  --> dropout.py:10:9
   |
10 |         keep = hl.rand([tile], seed=p) > p
   |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
11 |         out[tile] = torch.where(
   |         ^^^^^^^^^""",
    )


def test_long_span_shows_its_ends():
    error = exc.InvalidIndexingType(exc.Span(FILE, 11, 20, 16, 9), got=slice)
    assert_expected_inline(
        str(error),
        """\
error[invalid-indexing-type]: `slice` cannot be used as an index
  --> dropout.py:11:21
   |
11 |         out[tile] = torch.where(
   |                     ^^^^^^^^^^^^
12 |             keep,
   |             ^^^^^
   ...
16 |         )
   |         ^ this is `slice`
   |
   = help: index with tiles, integers, slices, `None`, `...`, or integer tensors""",
    )


def test_blank_line_in_a_span():
    error = exc.TypeInferenceError(exc.Span(FILE, 12, 12, 14, 19), detail="no type")
    assert_expected_inline(
        str(error),
        """\
error[type-inference-error]: no type
  --> dropout.py:12:13
   |
12 |             keep,
   |             ^^^^^
13 |
14 |             x[tile],
   |             ^^^^^^^""",
    )


def test_no_span():
    assert_expected_inline(
        str(exc.NoTensorArgs()),
        """\
error[no-tensor-args]: no argument of the kernel is or contains a tensor or a `torch.device`
  = help: pass a tensor or a `torch.device`: it decides where the kernel runs""",
    )


def test_missing_file():
    error = exc.SeedNotInteger(
        exc.Span("gone.py", 10, 36, 10, 37),
        related=[exc.Related(exc.Span("gone.py", 5, 29, 5, 37), "`p` enters the kernel here")],
        got=float,
    )
    assert_expected_inline(
        str(error),
        """\
error[seed-not-integer]: `hl.rand` needs an integer seed, got `float`
 --> gone.py:10:37
  = note: this is `float`
  = note: gone.py:5:30: `p` enters the kernel here
  = help: pass an int, or an integer tensor that broadcasts to the shape: `seed=seed`""",
    )


def test_tabs_and_wide_characters():
    error = exc.UndefinedVariable(
        span_of("tail", 17),
        related=[
            exc.Related(span_of("é", 17), "one column"),
            exc.Related(span_of('"日本"', 17), "two columns a character"),
        ],
        name="tail",
    )
    # Compared as it is: expecttest cannot write such characters.
    assert str(error).splitlines()[2:-2] == [
        "   |",
        '17 |     y = f("日本", é, tail)',
        "   |                      ^^^^ nothing has bound `tail` here",
        "   |                   - one column",
        "   |           ------ two columns a character",
    ]


def test_detail_that_no_template_uses_is_a_note():
    error = exc.NestedGridLoop(statement="while", detail="first line\nsecond line")
    assert_expected_inline(
        str(error),
        """\
error[nested-grid-loop]: a top-level device loop may not be inside a host `while`
  = note: first line
          second line
  = help: move the loop to the function's body, or put the condition inside the loop""",
    )


def test_report_names_the_class():
    assert_expected_inline(
        exc.TileOfTile(span_of("tile", 7)).report(),
        """\
ERROR[TileOfTile]: a tile cannot be a bound of `hl.tile`
 --> dropout.py:7:9
  |
7 |     for tile in hl.tile(x.size(0)):
  |         ^^^^
  |
  = help: to split a tile further, use `hl.tile(tile.begin, tile.end)`""",
    )
    warning = exc.RepeatedRandomNumbers(loapi="row")
    assert warning.report().startswith("WARNING[RepeatedRandomNumbers]: `hl.rand` draws the same")


def test_column_past_the_line_does_not_fail():
    text = str(exc.TypeInferenceError(exc.Span(FILE, 3, 70, 3, 90), detail="no type"))
    assert "dropout.py:3:1\n" in text
    assert text.endswith("\n3 |\n  | ^")


@pytest.mark.parametrize("cls", catalogue(), ids=lambda c: c.__name__)
def test_every_class_renders_without_fields(cls):
    error = cls(span_of("keep", 10))
    for text in (str(error), error.report(), repr(error), str(cls())):
        assert "{" not in text
    assert f"[{cls.code}]: " in str(error)
    assert "10 |         keep = hl.rand" in str(error)
    assert cls.title


@pytest.mark.parametrize("cls", catalogue(), ids=lambda c: c.__name__)
def test_every_class_survives_pickling(cls):
    error = cls(span_of("keep", 10), got=int, detail="why")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is cls
    assert str(again) == str(error)


def test_codes_are_unique_kebab_case():
    codes = [cls.code for cls in concrete()]
    assert len(set(codes)) == len(codes) > 100
    assert [code for code in codes if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+", code)] == []


def test_our_own_classes_and_errors_of_arguments_offer_help():
    lacking = {cls.__name__ for cls in concrete() if not cls.help}
    outside = {cls.__name__ for cls in concrete() if cls.__module__.endswith(".outside")}
    # Their title is the caller's text, which says what to do itself.
    assert lacking == outside | {"AutotuneError", "ErrorCompilingKernel", "InvalidConfig"}


@pytest.mark.parametrize(
    ("cls", "bases"),
    [
        (exc.Base, RuntimeError),
        (exc.AssignmentMultipleTargets, exc.NotAllowedOnDevice),
        (exc.InvalidAssignment, exc.NotAllowedOnDevice),
        (exc.TensorOperationsInHostCall, exc.TensorOperationInWrapper),
        (exc.LoopVariableTypeChange, exc.ControlFlowTensorMismatch),
        (exc.SeedShapeMismatch, exc.ShapeMismatch),
        (exc.InvalidDotDtype, TypeError),
        (exc.InvalidDotShape, ValueError),
        (exc.InvalidRandintRange, ValueError),
        (exc.JoinDtypeMismatch, TypeError),
        (exc.TooManyArguments, TypeError),
        (exc.InvalidAtomicSemantics, exc.InternalError),
    ],
)
def test_base_classes(cls, bases):
    assert issubclass(cls, bases)


@pytest.mark.parametrize(
    ("error", "fragment"),
    [
        (exc.RankMismatch(expected=1, got=2), "too many indices: Expected ndim=1, but got ndim=2"),
        (exc.RankMismatch(expected=3, got=2), "too few indices: Expected ndim=3, but got ndim=2"),
        (exc.InputTensorNumelExceedsIndexType(index_dtype="int32"), "index_dtype is int32"),
        (exc.IndexOffsetOutOfRangeForInt32(), "index_dtype is torch.int32"),
        (exc.BarrierRequiresPersistent(pid_type="flat"), "requires pid_type"),
        (exc.EmptyDeviceLoopAfterDCE(), "Device loop is empty after dead-code elimination"),
        (
            exc.NestedKernelCallsNotSupported(),
            "Calling a Helion kernel from within another Helion kernel is not supported",
        ),
        (
            exc.DotBatchDimensionMismatch(lhs=2, rhs=3),
            "2 from LHS tensor vs. 3 from RHS tensor",
        ),
        (exc.InvalidTileRange(begin=192, end=128), "begin=192, end=128"),
        (exc.AtomicOnDeviceTensor(api="hl.atomic_add"), "hl.atomic_add()"),
        (
            exc.TooManyArguments(expected=2, got=3),
            "Too many arguments passed to the kernel, expected: 2 got: 3.",
        ),
        (exc.ImplicitRandomDtype(), "implicit RNG only supports floating-point dtypes"),
        (exc.TorchOpTracingError(original=IndexError("boom")), "IndexError: boom"),
    ],
)
def test_texts_that_users_match_are_in_the_first_line(error, fragment):
    assert fragment in str(error).splitlines()[0]


def test_split_error_names_the_alternative():
    text = str(exc.UnsupportedSplitOperation(api="torch.chunk"))
    assert re.search(r"torch.chunk is not supported in Helion device loops.*hl\.split\(\)", text)


def test_with_span_fills_only_an_unknown_place():
    first, second = span_of("keep", 10), span_of("out", 6)
    error = exc.TileOfTile()
    assert error.location is None
    assert error.with_span(first) is error
    assert error.with_span(second).location == first


def test_fields_are_text_from_the_start():
    shape = [1, 2]
    error = exc.SeedShapeMismatch(seed_shape=shape, shape=(3,))
    shape.append(3)
    assert "shape [1, 2] does not" in str(error)


def test_value_that_cannot_be_shown():
    class Broken:
        def __str__(self):
            raise RuntimeError

    assert "got `<Broken>`" in str(exc.SeedNotInteger(got=Broken()))


def test_internal_error_keeps_its_cause_and_says_whose_fault_it_is():
    cause = KeyError("lost")
    error = exc.InternalError(original=cause)
    assert error.__cause__ is cause
    assert "a bug in Helion: KeyError: 'lost'" in str(error)
    assert "the kernel is not at fault" in str(error)


def test_backend_errors_take_positions():
    assert "the backend 'cute' does not support dots" in str(exc.BackendUnsupported("cute", "dots"))
    error = exc.BackendUnsupported(span_of("keep", 10), backend="triton", detail="dots")
    assert error.location == span_of("keep", 10)
    assert "the backend 'triton' does not support dots" in str(error)


def test_summary_holds_the_errors():
    errors = [exc.TileOfTile(), exc.UndefinedVariable(name="y")]
    summary = exc.ErrorCompilingKernel(errors=errors)
    assert summary.errors == tuple(errors)
    assert "2 errors in the kernel" in str(summary)
    assert all(error.report() in str(summary) for error in errors)


def test_triton_error_ends_with_the_program():
    error = exc.TritonError(error="out of registers", decorator="@helion.kernel()", program="x = 1")
    assert str(error).endswith("\n\n@helion.kernel()\n\nx = 1")
    assert "helion.kernel" not in str(exc.TritonError(error="out of registers"))


def test_emit_warning_asks_subclasses_too(capsys):
    warning = exc.TensorOperationsInHostCall(api="torch.add")
    exc.emit_warning(warning, [exc.WrongDevice])
    assert capsys.readouterr().err == warning.report() + "\n"
    for ignored in (exc.TensorOperationInWrapper, exc.BaseWarning):
        exc.emit_warning(warning, [ignored])
    captured = capsys.readouterr()
    assert captured.err == captured.out == ""


@pytest.mark.parametrize(
    ("text", "head"),
    [
        ("for i in f(n):\n    pass\nelse:\n    pass", "for i in f(n)"),
        ("while a:\n    pass", "while a"),
        ("if a and b:\n    pass\nelif c:\n    pass", "if a and b"),
        ("with a as b, c:\n    pass", "with a as b, c"),
        ("with a:\n    pass", "with a"),
        ("try:\n    pass\nfinally:\n    pass", "try"),
        ("@d(1)\ndef f(a, b=2):\n    pass", "def f(a, b=2"),
        ("def f() -> int:\n    pass", "def f() -> int"),
        ("def f():\n    pass", "def f"),
        ("async def f():\n    pass", "async def f"),
        ("class C(D):\n    pass", "class C(D"),
        ("class C:\n    pass", "class C"),
        ("match a:\n    case 1:\n        pass", "match a"),
        ("x = (1 if a else 2)", "x = (1 if a else 2)"),
        ("x = lambda: 0", "x = lambda: 0"),
    ],
)
def test_span_of_a_statement_is_its_head(text, head):
    node = ast.parse(text).body[0]
    span = exc.Span.of_node(node, FILE)
    assert span.line == span.end_line == node.lineno
    assert text.splitlines()[span.line - 1][span.column : span.end_column] == head


def test_span_of_dedented_source():
    dedented = ast.parse("x = 1\ny = a + b").body[1].value
    span = exc.Span.of_node(dedented, FILE, line_offset=40, column_offset=8, function="f")
    assert span == exc.Span(FILE, 42, 12, 42, 17, "f")


def test_span_of_a_node_without_position():
    with pytest.raises(ValueError, match="`arguments` nodes carry no position"):
        exc.Span.of_node(ast.parse("lambda x: x").body[0].value.args, FILE)


def test_path_below_the_current_folder_is_shown_relative(tmp_path, monkeypatch):
    file = tmp_path / "kernels" / "k.py"
    file.parent.mkdir()
    file.write_text("x = y\n")
    span = exc.Span(str(file), 1, 4, 1, 5)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert f"--> {file}:1:5" in str(exc.UndefinedVariable(span, name="y"))
    monkeypatch.chdir(tmp_path)
    assert "--> kernels/k.py:1:5" in str(exc.UndefinedVariable(span, name="y"))
