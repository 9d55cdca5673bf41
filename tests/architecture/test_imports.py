"""The import contracts of pyproject.toml catch what they are there for, shown on small trees made for it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

ROOMS = [
    "agents",
    "app",
    "bindings",
    "callers",
    "cards",
    "cli",
    "conformance",
    "config",
    "configured",
    "delegating",
    "egress",
    "endpoints",
    "engines",
    "executing",
    "gateway",
    "issuers",
    "mirroring",
    "model",
    "outbound",
    "presenting",
    "protocol",
    "protocol/v0_3",
    "protocol/v1_0",
    "pushing",
    "remote",
    "roster",
    "serving",
    "storage",
    "stores",
    "tables",
    "telemetry",
    "temporal",
    "worker",
]


def lint(
    folder: Path, rooms: list[str], path: str = "model/task.py", text: str = ""
) -> subprocess.CompletedProcess[str]:
    """Make a package `dragoman` of empty rooms and one file with `text`, and check its imports by our contracts."""
    package = folder / "dragoman"
    for room in [".", *rooms, str(Path(path).parent)]:
        (package / room).mkdir(parents=True, exist_ok=True)
        (package / room / "__init__.py").touch()
    (package / "__main__.py").touch()
    (package / path).write_text(text)
    program = "from importlinter.cli import lint_imports_command as command; command()"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-logo", "--no-cache", str(ROOT / "pyproject.toml")],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("path", "text", "contract"),
    [
        ("model/task.py", "import dragoman.protocol", "floors below"),
        ("stores/sqlite.py", "from dragoman.agents import Agent", "floors below"),
        ("bindings/http.py", "import dragoman.engines", "floors below"),
        ("agents/run.py", "import dragoman.app", "floors below"),
        ("surprise/__init__.py", "", "floors below"),
        ("protocol/v0_3/decode.py", "from dragoman.protocol.v1_0 import decode", "do not know each other"),
        ("gateway/send.py", "import sqlite3", "gateway knows no wire"),
        ("gateway/send.py", "import uvicorn.config", "gateway knows no wire"),
        ("gateway/send.py", "import dragoman.protocol.v1_0", "gateway knows no wire"),
        ("protocol/negotiation.py", "import asyncio", "Protocol code is pure"),
    ],
)
def test_a_forbidden_import_breaks_its_contract(tmp_path: Path, path: str, text: str, contract: str) -> None:
    result = lint(tmp_path, ROOMS, path, text)
    assert result.returncode == 1, result.stdout + result.stderr
    broken = [line for line in result.stdout.splitlines() if line.endswith("BROKEN")]
    assert any(contract in line for line in broken), result.stdout


def test_a_tree_that_keeps_the_floors_passes(tmp_path: Path) -> None:
    result = lint(
        tmp_path, ROOMS, "app/wiring.py", "import dragoman.config, dragoman.stores, dragoman.protocol.v1_0"
    )
    assert result.returncode == 0, result.stdout + result.stderr


def test_the_contracts_do_not_need_the_old_version(tmp_path: Path) -> None:
    result = lint(tmp_path, [room for room in ROOMS if room != "protocol/v0_3"])
    assert result.returncode == 0, result.stdout + result.stderr
