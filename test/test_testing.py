"""`helion._testing`: what it compares, skips, runs and expects."""

# ruff: noqa: PT009, PT027 - what is tested are classes for `unittest`

from __future__ import annotations

import math
import os
import unittest

import pytest
import torch

import helion
import helion.language as hl
from helion import _testing as testing
from helion._testing import machine, running
from helion._testing.comparing import compare, tensor_check

DEVICE = testing.DEVICE
EAGER, OFF = helion.RefMode.EAGER, helion.RefMode.OFF


@helion.kernel(config=helion.Config(block_sizes=[16]), ref_mode=OFF)
def double(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] * 2
    return out


@helion.kernel(autotune_effort="none", ref_mode=OFF)
def block_size(x: torch.Tensor) -> torch.Tensor:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] * 0 + tile.block_size
    return out


eager_double = helion.kernel(double.fn, ref_mode=EAGER)


def ones(n: int) -> torch.Tensor:
    return torch.ones(n, device=DEVICE)


# -- comparing -----------------------------------------------------------------------------------


def test_every_name_is_there():
    assert not [name for name in testing.__all__ if not hasattr(testing, name)]


NINES = [9.0] * 100
MISMATCHES = {
    "equal": (NINES, {}, None),
    "within the share": ([9.5, *NINES[1:]], {}, None),
    "beyond the share": ([9.5, 9.5, *NINES[2:]], {}, r"Mismatched elements: 2 of 100 \(2.00%\)"),
    "a larger share": ([9.5] * 50 + NINES[50:], {"max_mismatch_pct": 0.5}, None),
    "far": ([99.0, *NINES[1:]], {"max_abs_diff": 10}, "^Absolute diff too large: 90"),
    "far in ratio": ([99.0, *NINES[1:]], {"max_rel_diff": 9}, "^Relative diff too large: 10"),
    "near in ratio": ([99.0, *NINES[1:]], {"max_rel_diff": 10}, None),
    "mismatched and far": (
        [99.0, *NINES[1:]],
        {"max_mismatched_abs_diff": 89},
        "^Mismatched absolute diff too large: 90, allowed 89",
    ),
    "matched and far": ([9.0005, *NINES[1:]], {"max_mismatched_abs_diff": 0}, None),
    "nan": ([math.nan, *NINES[1:]], {"max_abs_diff": 10}, "Absolute diff too large: inf"),
    "shape": (NINES[1:], {}, r"shape \(99,\), expected \(100,\)"),
}


@pytest.mark.parametrize("case", MISMATCHES)
def test_mismatch_tolerance(case):
    values, limits, message = MISMATCHES[case]
    actual, expected = torch.tensor(values), torch.tensor(NINES)
    if message is None:
        testing.assert_close_with_mismatch_tolerance(actual, expected, **limits)
    else:
        with pytest.raises(AssertionError, match=message):
            testing.assert_close_with_mismatch_tolerance(actual, expected, **limits)


def test_cosine_similarity_is_that_of_rows():
    rows = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0]])
    testing.CosSimilarity(1, 0.999).check(rows * 5, rows)
    with pytest.raises(AssertionError, match=r"0\.7071\d*, expected 0\.9"):
        testing.CosSimilarity(1, 0.9).check(rows + torch.tensor([[0.0, 1.0], [0, 0], [0, 0]]), rows)
    with pytest.raises(AssertionError, match="-1"):
        testing.CosSimilarity(1, 0.9).check(rows * math.nan, rows)


def test_results_are_compared_by_structure():
    check = tensor_check(rtol=1e-3, atol=0)
    x = torch.tensor([1.0, 2.0])
    compare((x, {"n": 3}, None), (x.to(torch.bfloat16), {"n": 3}, None), check)
    with pytest.raises(AssertionError, match=r"^output 1: got 3, expected 4"):
        compare((x, 3), (x, 4), check)
    with pytest.raises(AssertionError, match=r"^output 0: Tensor-likes are not close"):
        compare((x, x), (x + 1, x), check)
    with pytest.raises(AssertionError, match="expected"):
        compare((x, x), x, check)


# -- skipping ------------------------------------------------------------------------------------

H200 = {"is_cuda": True, "capability": (9, 0), "free_memory": 2**37, "shared_memory": 232448}
NOTHING = {"is_cuda": False, "capability": (0, 0), "free_memory": 0, "shared_memory": 0}
ON_BOTH = object()
SKIPPED = {  # a decorator, and on which machine it skips
    "not_cuda": (lambda: testing.skipIfNotCUDA(), NOTHING),
    "tf32": (lambda: testing.skipUnlessTf32Supported(), NOTHING),
    "capability": (lambda: testing.skipIfCudaCapabilityLessThan((9, 0), reason="old"), NOTHING),
    "new capability": (lambda: testing.skipIfCudaCapabilityLessThan((10, 0)), ON_BOTH),
    "shared memory": (lambda: testing.skipIfSharedMemoryLessThan(2**18), H200),
    "little shared memory": (lambda: testing.skipIfSharedMemoryLessThan(2**16), None),
    "memory": (lambda: testing.skipIfLowVRAM("large", required_bytes=2**35), NOTHING),
    "old torch": (lambda: testing.skipIfPyTorchBaseVerLessThan("99.1"), ON_BOTH),
    "new torch": (lambda: testing.skipIfPyTorchBaseVerLessThan("2.9.0"), None),
    "eager": (lambda: testing.skipIfRefEager("compiled only"), None),
    "normal": (lambda: testing.skipIfNormalMode("eager only"), ON_BOTH),
    "rocm": (lambda: testing.skipIfRocm("reason"), None),
    "xcd": (lambda: testing.skipUnlessMultiXCD("reason"), ON_BOTH),
    "fn": (lambda: testing.skipIfFn(machine.is_cuda, "reason"), H200),
    "without brackets": (lambda: testing.skipIfNotTriton, None),
    "pallas": (lambda: testing.skipUnlessPallas("reason"), ON_BOTH),
    "xfail": (lambda: testing.xfailIfCute("reason"), None),
    "backends": (lambda: testing.skipUnlessBackends(["cute", "triton"]), None),
    "other backends": (lambda: testing.onlyBackends(["cute"]), ON_BOTH),
}


@pytest.mark.parametrize("on_class", [False, True], ids=["function", "class"])
@pytest.mark.parametrize("on", [H200, NOTHING], ids=["H200", "nothing"])
@pytest.mark.parametrize("name", SKIPPED)
def test_decorators_skip(name, on, on_class, monkeypatch):
    for attribute, value in on.items():
        monkeypatch.setattr(machine, attribute, lambda value=value: value)
    monkeypatch.delenv("HELION_INTERPRET", raising=False)
    decorator, where = SKIPPED[name]

    class Case(unittest.TestCase):
        def test(self):
            pass

    if on_class:
        Case = decorator()(Case)
    else:
        Case.test = decorator()(Case.test)
    outcome = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Case).run(outcome)
    assert not outcome.failures
    assert not outcome.errors
    assert bool(outcome.skipped) == (where is on or where is ON_BOTH)


def test_an_expected_failure():
    class Case(unittest.TestCase):
        @testing.xfailIfFn(lambda: True, "reason")
        def test(self):
            self.fail()

    outcome = unittest.TestResult()
    Case("test").run(outcome)
    assert len(outcome.expectedFailures) == 1


# -- running -------------------------------------------------------------------------------------


def test_code_and_output_chooses_the_config():
    code, result = testing.code_and_output(double, (ones(20),))
    assert "_BLOCK_SIZE_0 = 16" in code
    assert result.tolist() == [2.0] * 20
    code, result = testing.code_and_output(
        double, (ones(20),), block_sizes=[32], num_ctas=2, pallas_loop_type="x"
    )
    assert "_BLOCK_SIZE_0 = 32" in code
    assert testing.output_only(block_size, (ones(20),), block_sizes=[8]).tolist() == [8.0] * 20
    default = block_size.bind((ones(20),)).config_spec.default_config().block_sizes[0]
    assert testing.output_only(block_size, (ones(20),)).tolist() == [default] * 20


def test_code_of_the_eager_reference_is_the_source():
    code, result = testing.code_and_output(eager_double, (ones(3),), block_sizes=[8])
    assert code == double.kernel_source()
    assert result.tolist() == [2.0] * 3


EXAMPLE = """
import torch
import helion
import helion.language as hl

@helion.kernel(config=helion.Config(block_sizes=[8]), ref_mode=helion.RefMode.OFF)
def halve(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    out = torch.empty_like(x)
    for tile in hl.tile(x.size(0)):
        out[tile] = x[tile] / 2
    return out, 3
"""


def test_check_example(tmp_path, monkeypatch):
    (tmp_path / "half.py").write_text(EXAMPLE)
    monkeypatch.setattr(running, "EXAMPLES_DIR", tmp_path)
    args, want = (ones(20) * 8,), (ones(20) * 4, 3)
    code = testing.check_example("half", args, want, fn_name="halve", static_shapes=False)
    assert "x_size_0" in code
    assert "x_size_0" not in testing.check_example("half", args, want, fn_name="halve")
    longer = (want[0] * 7, 3)
    directions = {"cos_sim": testing.CosSimilarity(0, 0.999), "emit_code": False}
    assert testing.check_example("half", args, longer, "halve", **directions) == ""
    with pytest.raises(AssertionError, match="output 0"):
        testing.check_example("half", args, longer, "halve")
    testing.check_example("half", args, longer, "halve", skip_accuracy=True)


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        return grad * 2 * ctx.saved_tensors[0] ** 2  # wrong: it should be 3


def test_run_example_checks_times_and_prints(capsys):
    times = testing.run_example(
        {"kernel": double, "eager": eager_double}, lambda x: x + x, (ones(64),), baseline_name="add"
    )
    assert list(times) == ["kernel", "eager", "add"]
    assert all(ms > 0 for ms in times.values())
    lines = capsys.readouterr().err.splitlines()
    assert lines[1].split() == ["implementation", "time", "(ms)", "speedup"]
    assert [line.split()[0] for line in lines[3:6]] == list(times)
    assert lines[5].split()[2] == "1.00x"
    assert ("mean nothing" in lines[6]) == (DEVICE.type == "cpu")


def test_run_example_names_what_is_wrong():
    def three(x):
        return x * 3

    with pytest.raises(AssertionError, match=r"^helion differs from torch: "):
        testing.run_example(three, lambda x: x * 2, (ones(64),))
    x = torch.linspace(1, 2, 64, device=DEVICE, requires_grad=True)
    testing.run_example(three, lambda x: x + x + x, (x,), bwd=True)
    testing.run_example(Cube.apply, lambda x: x**3, (x,))
    with pytest.raises(AssertionError, match="output 1"):
        testing.run_example(Cube.apply, lambda x: x**3, (x,), bwd=True)


def test_run_example_writes_a_trace(tmp_path):
    path = tmp_path / "trace.json"
    testing.run_example(torch.exp, torch.exp, (ones(4),), trace_path=str(path))
    assert '"helion"' in path.read_text()


def test_timing():
    calls = []
    times = testing.interleaved_bench([lambda: calls.append(1), lambda: calls.append(2)], repeat=3)
    assert calls == [1, 2] * 4
    assert len(times) == 2
    assert testing.compute_repeat(lambda: None, min_repeat=1, max_repeat=7) == 7
    assert testing.do_bench(lambda: None, warmup=1, rep=1, return_mode="min") >= 0
    low, high = testing.do_bench(lambda: None, warmup=1, rep=1, quantiles=[0.1, 0.9])
    assert low <= high
    assert testing.sync_object([7]) == [7]


# -- modes and cases -----------------------------------------------------------------------------


def test_modes_are_told_apart():
    fresh = helion.kernel(double.fn, config=helion.Config(block_sizes=[16]), ref_mode=OFF)
    with testing.assert_helion_ref_mode(EAGER):
        eager_double(ones(3))
    with testing.assert_helion_ref_mode():
        fresh(ones(3))
    missing = pytest.raises(AssertionError, match="no kernel ran in the eager")
    with missing, testing.assert_ref_eager_mode():
        fresh(ones(3))
    missing = pytest.raises(AssertionError, match="no kernel was compiled")
    with missing, testing.assert_helion_compilation():
        eager_double(ones(3))
    with testing.track_run_ref_calls() as calls:
        eager_double(ones(3))
        eager_double(ones(3))
    assert calls.call_count == 2


def outcome_of(case: type[unittest.TestCase]) -> unittest.TestResult:
    outcome = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(outcome)
    return outcome


def test_cases_in_the_eager_reference_mode():
    class Cases(testing.RefEagerTestBase, testing.TestCase):
        _in_ref_eager_mode = True

        def test_a_good_one(self):
            code, result = testing.code_and_output(eager_double, (ones(3),))
            self.assertIn("no such text", code)
            self.assertExpectedJournal("no such text")
            self.assertNotEqualCode(code, code)
            torch.testing.assert_close(result, ones(3) * 2)

        def test_b_runs_nothing(self):
            self.assertEqual(1, 1)

        def test_c_asserts_nothing(self):
            eager_double(ones(3))

        def test_d_fails(self):
            self.assertEqual(eager_double(ones(1)).item(), 3)

        def test_e_is_skipped(self):
            self.skipTest("reason")

    outcome = outcome_of(Cases)
    failed = {case.id().rpartition(".")[2]: text for case, text in outcome.failures}
    assert not outcome.errors
    assert len(outcome.skipped) == 1
    assert "ran no kernel" in failed.pop("test_b_runs_nothing")
    assert "asserted nothing" in failed.pop("test_c_asserts_nothing")
    assert "2.0 != 3" in failed.pop("test_d_fails")
    assert not failed


def test_cases_outside_of_it():
    class Cases(testing.RefEagerTestBase, testing.TestCase):
        _in_ref_eager_mode = False

        def test_texts_count(self):
            self.assertIn("no such text", "code")

        def test_tunable(self):
            self.assertEqual(self.getUserDefinedTunable({"a": 1}, "a"), 1)
            self.assertTrueIfInNormalMode(True)
            with self.assertRaises(AssertionError):
                self.assertTrueIfInNormalMode(False)
            with self.assertRaises(AssertionError):
                self.assertEqualCode("a", "b")

    class Disabled(testing.RefEagerTestDisabled, testing.TestCase):
        _in_ref_eager_mode = True

        def test(self):
            self.fail()

    assert [case.id().rpartition(".")[2] for case, _ in outcome_of(Cases).failures] == [
        "test_texts_count"
    ]
    assert len(outcome_of(Disabled).skipped) == 1


JOURNAL = """
from helion._testing import TestCase

class TestTexts(TestCase):
    def test_two(self):
        self.assertExpectedJournal("one\\n  two  \\n\\n")
        self.assertExpectedJournal(SECOND)

    def test_one(self):
        self.assertExpectedJournal("three")
"""


def test_expected_texts(tmp_path, monkeypatch):
    file = tmp_path / "test_texts.py"
    file.write_text(JOURNAL)
    module = testing.import_path(file)
    module.SECOND = "four"
    monkeypatch.delenv("EXPECTTEST_ACCEPT", raising=False)
    assert len(outcome_of(module.TestTexts).failures) == 2
    monkeypatch.setenv("EXPECTTEST_ACCEPT", "1")
    assert not outcome_of(module.TestTexts).failures
    assert (
        file.with_suffix(".expected").read_text()
        == """\
The texts that the tests beside this file expect.
Run a test with EXPECTTEST_ACCEPT=1 to write them anew, and read the difference.

--- assertExpectedJournal(TestTexts.test_one)
three

--- assertExpectedJournal(TestTexts.test_two)
one
  two

--- assertExpectedJournal(TestTexts.test_two)
four
"""
    )
    monkeypatch.delenv("EXPECTTEST_ACCEPT")
    assert not outcome_of(module.TestTexts).failures
    module.SECOND = "five"
    ((case, text),) = outcome_of(module.TestTexts).failures
    assert case.id().endswith("test_two")
    assert "-four\n+five\nrun the test with EXPECTTEST_ACCEPT=1" in text


def test_a_case_has_caches_of_its_own_and_captures(monkeypatch):
    class Cases(testing.TestCase):
        def test(self):
            with self.capture_output() as output, self.capture_logs() as logs:
                print("printed")
                double(ones(5))
            self.assertEqual(output.readouterr().out, "printed\n")
            self.assertEqual(output.readouterr().out, "")
            self.assertTrue(any("compiled double" in line for line in logs.output), logs.text)
            path = double.bind((ones(5),)).get_cached_path()
            self.assertTrue(path.startswith(os.environ["HELION_CACHE_DIR"]))

    outcome = outcome_of(Cases)
    assert not outcome.failures
    assert not outcome.errors
