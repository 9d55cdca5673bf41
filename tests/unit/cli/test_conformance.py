"""`dragoman conformance` runs a kit as it is, keeps what it writes, and tells what came of it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.cli.kits import Kit, KitError, kit_at, python_of, revision_of
from tests.harness.paths import CHECKOUT, SOURCE

CASE = '<testcase classname="tests.compatibility.a.test_a.TestA" name="{}">{}</testcase>'
CASES = (
    ("test_good", ""),
    ("test_bad", '<failure message="so | it is&#10;not"/>'),
    ("test_broken", '<error message="setup"/>'),
    ("test_left", '<skipped type="pytest.skip" message="why"/>'),
    ("test_left[2]", '<skipped type="pytest.skip" message="why"/>'),
    ("test_may", '<skipped type="pytest.xfail" message="SHOULD"/>'),
)
JUNIT = f"<testsuites><testsuite>{''.join(CASE.format(*case) for case in CASES)}</testsuite></testsuites>"
GOOD = (
    "<testsuites><testsuite><testcase classname='tests.compatibility.a' name='t'/></testsuite></testsuites>"
)

RUNNER = """
import pathlib, sys
print("said:", *sys.argv[1:])
pathlib.Path("reports").mkdir()
pathlib.Path("left-behind").touch()
for name, text in {files!r}.items():
    pathlib.Path("reports", name).write_text(text)
sys.exit(1)
"""


def checkout(folder: Path, files: dict[str, str], tests: str = "tests/compatibility") -> Path:
    """A kit that writes these reports."""
    kit = folder / "a2a-tck"
    (kit / tests).mkdir(parents=True)
    (kit / "run_tck.py").write_text(RUNNER.format(files=files))
    return kit


def run(folder: Path, kit: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragoman", "conformance", "--tck", str(kit), "--python", sys.executable]
    command += ["--url", "http://127.0.0.1:9/agents/tck/", "--out", "out", *arguments]
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_each_transport_is_run_and_what_it_wrote_is_kept(tmp_path: Path) -> None:
    kit = checkout(tmp_path, {"junitreport.xml": GOOD, "compatibility.html": "<p>"})
    done = run(tmp_path, kit)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "run\tpassed\tfailed\tskipped\txfailed\txpassed",
        "http_json\t1\t0\t0\t0\t0",
        "jsonrpc\t1\t0\t0\t0\t0",
    ]
    for transport in ("http_json", "jsonrpc"):
        kept = tmp_path / "out" / transport
        assert (kept / "compatibility.html").read_text() == "<p>"
        said = f"said: --sut-host http://127.0.0.1:9/agents/tck --transport {transport}\n"
        assert (kept / "kit.log").read_text() == said
    # A copy ran: nothing is left in the checkout.
    assert {path.name for path in kit.iterdir()} == {"run_tck.py", "tests"}


def test_the_summary_names_each_failure_and_counts_reasons(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        checkout(tmp_path, {"junitreport.xml": JUNIT}),
        "--transport",
        "grpc",
        "--level",
        "must",
        "--",
        "-k",
        "x",
    )
    assert done.returncode == 1
    assert (
        (tmp_path / "out" / "grpc" / "kit.log")
        .read_text()
        .endswith("--transport grpc --level must -- -k x\n")
    )
    summary = (tmp_path / "out" / "summary.md").read_text()
    assert "| grpc | 1 | 2 | 2 | 1 | 0 |\n" in summary
    assert "- grpc: `a.test_a.TestA::test_bad`: so \\| it is not\n" in summary
    assert "- grpc: `a.test_a.TestA::test_broken`: setup\n" in summary
    assert "| grpc | 2 | why |\n" in summary and "| grpc | 1 | SHOULD |\n" in summary
    assert "| kit revision | unknown: the checkout has no history |" in summary


def test_json_holds_facts_counts_and_failures(tmp_path: Path) -> None:
    done = run(tmp_path, checkout(tmp_path, {"junitreport.xml": JUNIT}), "--json", "--transport", "jsonrpc")
    document = json.loads(done.stdout)
    assert document["agent"] == "http://127.0.0.1:9/agents/tck/"
    (report,) = document["reports"]
    assert report["counts"] == {"passed": 1, "failed": 2, "skipped": 2, "xfailed": 1, "xpassed": 0}
    assert report["failed"] == ["a.test_a.TestA::test_bad", "a.test_a.TestA::test_broken"]


def test_the_kit_of_0_3_is_one_run_with_a_report_for_each_category(tmp_path: Path) -> None:
    tests = [
        {"nodeid": "tests/mandatory/test_m.py::test_a", "outcome": "passed"},
        {
            "nodeid": "tests/mandatory/test_m.py::test_b",
            "outcome": "error",
            "setup": {"crash": {"message": "no card"}},
        },
        {
            "nodeid": "tests/mandatory/test_m.py::test_c",
            "outcome": "skipped",
            "setup": {"outcome": "skipped", "longrepr": "('/x/test_m.py', 3, 'Skipped: not declared')"},
        },
    ]
    files = {f"mandatory_{one}_results.json": json.dumps({"tests": tests}) for one in ("jsonrpc", "rest")}
    kit = checkout(tmp_path, files, "tests/mandatory")
    done = run(tmp_path, kit)
    assert done.returncode == 1, done.stderr
    assert [line.split("\t")[:4] for line in done.stdout.splitlines()[1:]] == [
        ["mandatory_jsonrpc", "1", "1", "1"],
        ["mandatory_rest", "1", "1", "1"],
    ]
    summary = (tmp_path / "out" / "summary.md").read_text()
    assert "- mandatory_rest: `test_m.py::test_b`: no card\n" in summary
    assert "| mandatory_rest | 1 | not declared |\n" in summary
    assert "--category all --transports jsonrpc,rest" in (tmp_path / "out" / "0.3" / "kit.log").read_text()
    assert "has neither levels" in run(tmp_path, kit, "--level", "must").stderr


def test_a_kit_that_writes_no_report_is_a_failure_with_the_place_of_its_log(tmp_path: Path) -> None:
    done = run(tmp_path, checkout(tmp_path, {}))
    assert done.returncode == 1
    assert "exit code 1 and without a report" in done.stderr and "http_json/kit.log says why" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--url", "tck"), "is no URL of an agent"),
        (("--level", "shall"), "there is must, should, may"),
        (("--tck", "nowhere"), "is no checkout of the kit; make one: git clone"),
        (("--python", "no-python"), "no-python is not there. Install the kit"),
    ],
)
def test_what_was_asked_wrongly_is_refused_with_what_to_do(
    tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = run(tmp_path, checkout(tmp_path, {}), *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert not (tmp_path / "out").exists()


def test_the_python_of_the_checkout_is_taken_unless_another_is_named(tmp_path: Path) -> None:
    own = tmp_path / ".venv" / "bin" / "python"
    own.parent.mkdir(parents=True)
    own.touch()
    assert python_of(tmp_path, None) == own
    assert python_of(tmp_path, Path(sys.executable)) == Path(sys.executable)
    with pytest.raises(KitError, match="is no checkout"):
        kit_at(tmp_path)


def test_a_revision_is_that_of_a_tracked_file_alone(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c", *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    for name in ("known", "other"):
        (tmp_path / name).touch()
    git("add", "known")
    git("commit", "-q", "-m", "first", "--date", "2026-05-05T12:00:00Z")
    commit = git("log", "-1", "--format=%H of %cs")
    assert revision_of(tmp_path / "known") == commit
    assert revision_of(tmp_path / "other") == ""
    (tmp_path / "known").write_text("more")
    assert revision_of(tmp_path / "known") == f"{commit}, changed since"


def test_the_arguments_of_a_run_are_those_that_the_kit_documents() -> None:
    kit = Kit("1.0", CHECKOUT)
    assert kit.runs("http://a", ("grpc",), None, ()) == {
        "grpc": ["--sut-host", "http://a", "--transport", "grpc"]
    }
    assert list(kit.runs("http://a", (), "may", ())) == ["http_json", "jsonrpc"]
    assert kit.runs("http://a", ("grpc",), "may", ("-x",))["grpc"][4:] == ["--level", "may", "--", "-x"]
