"""The GPU suite's own logic, on parts that need no GPU."""

from __future__ import annotations

import json
import sys
import time

from benchmarks import gpu_suite
from benchmarks.gpu_suite import Part, run_part, run_suite


def python(name: str, code: str, measures: bool = False) -> Part:
    return Part(name, (sys.executable, "-c", code), measures)


def test_a_part_logs_its_output(tmp_path):
    outcome = run_part(python("hello", "print('one'); print('== 2 passed ==')"), tmp_path, 60)
    assert (outcome.status, outcome.note) == ("ok", "2 passed")
    assert (tmp_path / "hello.log").read_text() == "one\n== 2 passed ==\n"


def test_a_failing_part_does_not_stop_the_others(tmp_path, capsys):
    parts = [python("bad", "raise SystemExit('broken')"), python("good", "print('fine')")]
    assert [outcome.status for outcome in run_suite(parts, tmp_path, 600)] == ["failed", "ok"]
    assert "    broken" in capsys.readouterr().out


def test_measurements_are_collected(tmp_path):
    write = (
        "import sys; assert sys.argv[1] == '--json'; open(sys.argv[2], 'w').write('{\"gbps\": 7}')"
    )
    assert run_part(python("speed", write, measures=True), tmp_path, 60).measured == {"gbps": 7}


def test_a_benchmark_draws_beside_its_log(tmp_path):
    write = "import sys; [open(path, 'w').write('{}') for path in sys.argv[2::2]]"
    part = Part("speed", (sys.executable, "-c", write), measures=True, draws=True)
    assert run_part(part, tmp_path, 60).status == "ok"
    assert (tmp_path / "speed.png").exists()


def test_a_benchmark_without_a_result_failed(tmp_path):
    outcome = run_part(python("speed", "print('done')", measures=True), tmp_path, 60)
    assert outcome.status == "failed"
    assert outcome.note.startswith("no result")


def test_time_limit_ends_a_part_with_its_children(tmp_path):
    # The child would write after the limit if it were left alive.
    mark = tmp_path / "alive"
    child = f"import time, pathlib; time.sleep(3); pathlib.Path({str(mark)!r}).touch()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    assert run_part(python("slow", code), tmp_path, 1).status == "timeout"
    time.sleep(3)
    assert not mark.exists()


def test_nothing_starts_without_time(tmp_path):
    assert run_part(python("late", "print(1)"), tmp_path, 0).status == "not run"


def test_suite_reports_and_exits_with_one_after_a_failure(tmp_path, monkeypatch, capsys):
    parts = [python("good", "print('fine')"), python("bad", "raise SystemExit(3)")]
    monkeypatch.setattr(gpu_suite, "all_parts", lambda workers: parts)
    monkeypatch.setattr(gpu_suite, "machine_facts", lambda: {"gpu": "some GPU"})
    assert gpu_suite.main(["--out", str(tmp_path / "out")]) == 1
    report = json.loads((tmp_path / "out" / "suite.json").read_text())
    assert [(part["name"], part["status"]) for part in report["parts"]] == [
        ("good", "ok"),
        ("bad", "failed"),
    ]
    assert gpu_suite.main(["--out", str(tmp_path / "out"), "--only", "good"]) == 0
    assert "fine" in capsys.readouterr().out


def test_all_parts_run_tests_before_benchmarks():
    names = [part.name for part in gpu_suite.all_parts(workers=4)]
    assert names == ["tests", "large", *gpu_suite.BENCHMARKS]
