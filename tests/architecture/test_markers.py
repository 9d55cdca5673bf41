"""The markers of tests/conftest.py do what they say, shown by a pytest run of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

SAMPLE = """
import pytest

def test_ordinary(): pass

@pytest.mark.soak
def test_long(): pass

@pytest.mark.needs("sh", "no-such-program")
def test_real(): pass

@pytest.mark.sqlite
def test_file(): pass

@pytest.mark.embedded
def test_turn(): pass

@pytest.mark.own_store
def test_pair(): pass
"""
NAMES = "\n    ".join(("soak", "needs", "sqlite", "embedded", "own_store"))


@pytest.mark.parametrize(
    ("arguments", "require_all", "outcome"),
    [
        ([], "", "4 passed, 1 skipped, 1 deselected"),
        (["--soak"], "", "5 passed, 1 skipped"),
        ([], "1", "4 passed, 1 deselected, 1 error"),
        (["--store", "postgres"], "", "2 passed, 1 skipped, 3 deselected"),
        (["--engine", "temporal"], "", "2 passed, 1 skipped, 3 deselected"),
        (["--store", "postgres", "--engine", "temporal"], "", "1 passed, 1 skipped, 4 deselected"),
    ],
)
def test_each_leaves_out_what_it_is_to_leave_out(
    tmp_path: Path, arguments: list[str], require_all: str, outcome: str
) -> None:
    (tmp_path / "test_sample.py").write_text(SAMPLE)
    (tmp_path / "pytest.ini").write_text(f"[pytest]\nmarkers =\n    {NAMES}\n")
    result = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "tests.conftest",
            "-p",
            "no:cacheprovider",
            "--strict-markers",
            *arguments,
        ],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "DRAGOMAN_REQUIRE_ALL": require_all},
        capture_output=True,
        text=True,
        check=False,
    )
    assert outcome in result.stdout, result.stdout + result.stderr


def test_what_names_its_own_store_is_not_run_again_on_another() -> None:
    files = [file for file in (ROOT / "tests/durability").rglob("test_*.py") if "[store]" in file.read_text()]
    unmarked = [file.name for file in files if not re.search(r"mark\.(own_store|sqlite)", file.read_text())]
    assert files
    assert unmarked == [], "pytestmark = pytest.mark.own_store"
