"""Hygiene of the files in the tree, code or not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# Folders that tools make, beside those whose name begins with a dot.
MADE = {"build", "dist", "results", "__pycache__"}
LARGEST = 256 * 1024
MACHINE_PATH = re.compile(r"(?<![\w.])/(work|root|home|farm|opt|tmp|Users)/")


def text_files() -> list[Path]:
    """The project's own files, all of which are text."""

    def ours(path: Path) -> bool:
        folders = path.relative_to(ROOT).parts[:-1]
        return path.is_file() and not any(
            folder in MADE or folder.endswith(".egg-info") or (folder[0] == "." and folder != ".ci")
            for folder in folders
        )

    return sorted(filter(ours, ROOT.rglob("*")))


def places(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in text_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_file_names_a_path_of_some_machine():
    found = places(MACHINE_PATH)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("folder", ["work", "home", "tmp"])
def test_machine_paths_are_recognised(folder):
    assert MACHINE_PATH.search(f'open("/{folder}/x")')
    assert not MACHINE_PATH.search(f"look in docs/{folder}/x")


def test_files_end_in_one_newline():
    texts = {path.relative_to(ROOT): path.read_bytes() for path in text_files()}
    wrong = [
        str(name)
        for name, text in texts.items()
        if text and (text[-1:] != b"\n" or text[-2:] == b"\n\n")
    ]
    assert not wrong, wrong


def test_files_are_small():
    wrong = [str(path.relative_to(ROOT)) for path in text_files() if path.stat().st_size > LARGEST]
    assert not wrong, wrong
