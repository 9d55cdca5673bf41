"""An upstream conformance kit (a2aproject/a2a-tck), run by `dragoman conformance` as anybody would run it."""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.harness.clients import ClientEnvironment
from tests.harness.paths import CHECKOUT

RUN_SECONDS = 400.0


class KitError(Exception):
    """The kit could not be run; the message says why."""


@dataclass(frozen=True)
class Report:
    """How many tests have each outcome (only outcomes that there are), and those that failed."""

    counts: Mapping[str, int]
    failed: frozenset[str]


def digest(checkout: Path) -> str:
    """Return a digest of the kit's code, which tells one revision from another where there is no history."""
    found = hashlib.sha256()
    for path in sorted(_code(checkout)):
        found.update(path.relative_to(checkout).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def run(
    environment: str, checkout: Path, url: str, folder: Path, arguments: Sequence[str] = ()
) -> Mapping[str, Report]:
    """Run the kit on an agent, and give each report by its name.

    Args:
        environment: the folder of `tests/interop/clients/` with what the kit needs.
        checkout: the kit; it is not written to.
        url: the agent.
        folder: a folder for what the kit writes.
        arguments: further ones of `dragoman conformance`.

    Raises:
        KitError: the kit took too long, wrote no report, or ended otherwise than its report tells.
    """
    python = ClientEnvironment(environment)
    command = [sys.executable, "-m", "dragoman", "conformance", "--json", "--tck", str(checkout)]
    command += ["--python", str(python.program("python")), "--url", url, "--out", str(folder), *arguments]
    source = {"PYTHONPATH": str(CHECKOUT / "src")}
    code, out, err = python.run(command, folder.parent, timeout=RUN_SECONDS, environment=source)
    if code not in (0, 1) or not out:
        raise KitError(f"exit code {code}\n{out[-8000:]}\n{err[-2000:]}")
    reports = {
        report["run"]: Report(
            {outcome: count for outcome, count in report["counts"].items() if count},
            frozenset(report["failed"]),
        )
        for report in json.loads(out)["reports"]
    }
    if (code == 1) != any(report.failed for report in reports.values()):
        raise KitError(f"exit code {code}, but {reports}")
    return reports


def _code(checkout: Path) -> Iterator[Path]:
    yield checkout / "run_tck.py"
    for folder in ("tck", "tests"):
        yield from (checkout / folder).rglob("*.py")
