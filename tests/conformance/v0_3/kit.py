"""The upstream conformance kit of A2A 0.3 (a2aproject/a2a-tck, branch 0.3.x): run on a copy of a checkout."""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.harness.clients import ClientEnvironment

VARIABLE = "A2A_TCK_03"
"""The environment variable that names a checkout of the kit."""

TRANSPORTS = ("jsonrpc", "rest")
RUN_SECONDS = 400.0


class KitError(Exception):
    """The kit could not be run; the message says why."""


@dataclass(frozen=True)
class Report:
    """The outcome (`passed`, `failed`, `error`, `skipped`, `xfailed`, `xpassed`) of each test, by its name."""

    outcomes: Mapping[str, str]

    @property
    def counts(self) -> Mapping[str, int]:
        """How many tests have each outcome; only outcomes that there are."""
        return dict(Counter(self.outcomes.values()))

    @property
    def failed(self) -> set[str]:
        """The tests that failed, whether in the test or around it."""
        return {name for name, outcome in self.outcomes.items() if outcome in ("failed", "error")}


def digest(checkout: Path) -> str:
    """Return a digest of the kit's code, which tells one revision from another where there is no history."""
    found = hashlib.sha256()
    for path in sorted(_code(checkout)):
        found.update(path.relative_to(checkout).as_posix().encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def run(checkout: Path, url: str, folder: Path) -> Mapping[str, Report]:
    """Run every category of the kit on the agent that a JSON-RPC URL names, and give each report by its name.

    Args:
        checkout: the kit; it is not written to.
        url: the agent's JSON-RPC URL. Its card must stand at the root of the server.
        folder: a folder that is not there yet.

    Raises:
        KitError: the kit took too long or wrote no report.
    """
    unwanted = shutil.ignore_patterns(".*", "reports", "__pycache__")
    shutil.copytree(checkout, folder, ignore=unwanted)
    environment = ClientEnvironment("a2a-tck-0.3")
    command = [str(environment.program("python")), "run_tck.py", "--sut-url", url, "--category", "all"]
    command += ["--transports", ",".join(TRANSPORTS)]
    code, out, err = environment.run(command, folder, timeout=RUN_SECONDS)
    if code is None:
        raise KitError(f"no end within {RUN_SECONDS} s\n{out[-8000:]}\n{err[-2000:]}")
    ending = "_results.json"
    reports = {
        path.name.removesuffix(ending): _read(path) for path in (folder / "reports").glob(f"*{ending}")
    }
    if not reports:
        raise KitError(f"exit code {code} and no report\n{out[-8000:]}\n{err[-2000:]}")
    return reports


def _code(checkout: Path) -> Iterator[Path]:
    yield checkout / "run_tck.py"
    for folder in ("tck", "tests"):
        yield from (checkout / folder).rglob("*.py")


def _read(path: Path) -> Report:
    tests = json.loads(path.read_text(encoding="utf-8"))["tests"]
    outcomes = {test["nodeid"].rpartition("/")[2]: test["outcome"] for test in tests}
    if len(outcomes) != len(tests):
        raise KitError(f"{path.name}: two tests have one name")
    return Report(outcomes)
