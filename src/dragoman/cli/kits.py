"""Upstream conformance kits (a2aproject/a2a-tck): running a checkout, and reading what it reports."""

import json
import os
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

OUTCOMES = ("passed", "failed", "skipped", "xfailed", "xpassed")
"""What may become of a test. Failed is also what broke around it; x: the kit expects that it fails."""

_NOT_COPIED = shutil.ignore_patterns(".*", "reports", "__pycache__", "*.egg-info")


class KitError(Exception):
    """A kit cannot be run; the message says why."""


class Result(Struct, frozen=True):
    """What became of one test, and what the kit says about that."""

    test: str
    outcome: str
    why: str = ""


class Report(Struct, frozen=True):
    """The results of one run of a kit, and where it left what it wrote."""

    name: str
    folder: Path
    results: tuple[Result, ...]

    @property
    def counts(self) -> Mapping[str, int]:
        """How many tests have each outcome; all outcomes are there."""
        found = Counter(result.outcome for result in self.results)
        return {outcome: found[outcome] for outcome in OUTCOMES}


class Kit(Struct, frozen=True):
    """A checkout of a kit, for one generation of A2A."""

    generation: str
    checkout: Path

    def runs(
        self, url: str, transports: Sequence[str], level: str | None, further: Sequence[str]
    ) -> Mapping[str, Sequence[str]]:
        """Return what to run, by name: the arguments of `run_tck.py`.

        Args:
            url: the agent. For 1.0 the kit reads the card below it, for 0.3 at the root of the server.
            transports: the kit's names of transports; its usual ones if there are none.
            level: the only level to run: must, should or may. Of 0.3 there are none.
            further: arguments for pytest. The kit for 0.3 takes none.

        Raises:
            KitError: this kit cannot do that.
        """
        if self.generation == "0.3":
            if level is not None or further:
                raise KitError("the kit for A2A 0.3 has neither levels nor arguments for pytest")
            named = ",".join(transports or ("jsonrpc", "rest"))
            return {"0.3": ["--sut-url", url, "--category", "all", "--transports", named, "--report"]}
        return {
            transport: [
                *("--sut-host", url, "--transport", transport),
                *(("--level", level) if level is not None else ()),
                *(("--", *further) if further else ()),
            ]
            for transport in transports or ("http_json", "jsonrpc")
        }


def kit_at(checkout: Path) -> Kit:
    """Return the kit of a checkout.

    Raises:
        KitError: there is none.
    """
    if (checkout / "run_tck.py").is_file():
        for generation, tests in (("1.0", "tests/compatibility"), ("0.3", "tests/mandatory")):
            if (checkout / tests).is_dir():
                return Kit(generation, checkout)
    raise KitError(
        f"{checkout} is no checkout of the kit; make one: git clone https://github.com/a2aproject/a2a-tck, then "
        "git checkout 1.0-dev (or 0.3.x)"
    )


def python_of(checkout: Path, named: Path | None) -> Path:
    """Return the Python that has what the kit needs: the one that is named, or that of the checkout's own `.venv`.

    Raises:
        KitError: it is not there.
    """
    python = named or checkout / ".venv" / "bin" / "python"
    if not python.is_file():
        raise KitError(
            f"{python} is not there. Install the kit: cd {checkout}, python3 -m venv .venv, "
            ".venv/bin/pip install -e . (or name another Python with --python)"
        )
    return python.absolute()


def run_kit(kit: Kit, python: Path, name: str, arguments: Sequence[str], out: Path) -> Iterator[Report]:
    """Run a kit and yield its reports; all that it wrote and said is kept in folders of `out`.

    The checkout is not written to: a copy runs.

    Args:
        kit: the kit.
        python: what runs it.
        name: what the run is called.
        arguments: those of `run_tck.py`.
        out: a folder that is there.

    Raises:
        KitError: it wrote no report.
    """
    with tempfile.TemporaryDirectory(prefix="dragoman-kit-") as folder:
        copy = Path(folder) / "kit"
        shutil.copytree(kit.checkout, copy, ignore=_NOT_COPIED)
        target = out / name
        target.mkdir(parents=True, exist_ok=True)
        log = target / "kit.log"
        with log.open("wb") as said:
            code = subprocess.run(  # noqa: S603 - the kit that the operator named
                [str(python), "run_tck.py", *arguments],
                cwd=copy,
                env={**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ.get('PATH', '')}"},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
        if (copy / "reports").is_dir():
            shutil.copytree(copy / "reports", target, dirs_exist_ok=True)
    read = _read_junit if kit.generation == "1.0" else _read_json
    found = list(read(name, target))
    if not found:
        raise KitError(f"the kit ended with exit code {code} and without a report; {log} says why")
    yield from found


def _read_junit(name: str, folder: Path) -> Iterator[Report]:
    file = folder / "junitreport.xml"
    if file.is_file():
        root = ElementTree.parse(file).getroot()  # noqa: S314 - pytest has just written it
        yield Report(name, folder, tuple(_junit(case) for case in root.iter("testcase")))


def _junit(case: ElementTree.Element) -> Result:
    module = case.get("classname", "").removeprefix("tests.").replace("compatibility.", "", 1)
    test = f"{module}::{case.get('name', '')}"
    for child in case:
        why = child.get("message", "")
        if child.tag in ("failure", "error"):
            return Result(test, "failed", why)
        if child.tag == "skipped":
            return Result(test, "xfailed" if child.get("type") == "pytest.xfail" else "skipped", why)
    return Result(test, "passed")


def _read_json(name: str, folder: Path) -> Iterator[Report]:
    ending = "_results.json"
    for file in sorted(folder.glob(f"*{ending}")):
        tests = json.loads(file.read_text(encoding="utf-8"))["tests"]
        yield Report(file.name.removesuffix(ending), folder, tuple(map(_json, tests)))


def _json(test: Mapping[str, object]) -> Result:
    outcome = str(test["outcome"])
    return Result(
        str(test["nodeid"]).rpartition("/")[2], "failed" if outcome == "error" else outcome, _why(test)
    )


def _why(test: Mapping[str, object]) -> str:
    """Return what a report says of a test that did not pass: its reason to be skipped, or where it broke."""
    for stage in ("setup", "call", "teardown"):
        told = test.get(stage)
        if isinstance(told, dict):
            if isinstance(crash := told.get("crash"), dict):
                return str(crash.get("message", ""))
            if isinstance(text := told.get("longrepr"), str) and told.get("outcome") == "skipped":
                return text.rpartition("Skipped: ")[2].rstrip("')")
    return ""


def revision_of(file: Path) -> str:
    """Return the commit, with its day, that a file of a Git checkout belongs to; empty if it is in none.

    What was changed since is said.
    """
    git = shutil.which("git")
    if git is None:
        return ""

    def ask(*arguments: str) -> str | None:
        done = subprocess.run(  # noqa: S603 - git, with arguments of ours
            [git, "-C", str(file.parent), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.strip() if done.returncode == 0 else None

    if ask("ls-files", "--error-unmatch", file.name) is None:
        return ""
    commit = ask("log", "-1", "--format=%H of %cs")
    changed = ask("status", "--porcelain", "--untracked-files=no")
    return f"{commit}, changed since" if changed else commit or ""
