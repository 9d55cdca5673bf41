"""`./dev` hands its arguments, directory and process on untouched, shown with a stand-in for .venv/bin/python."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from tests.architecture.sources import ROOT

# Prints what it was given, one item a line.
PYTHON = '#!/bin/sh\nprintf "%s\\n" "pid=$$" "cwd=$PWD" "path=$PYTHONPATH" "$@"\n'


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout, in a folder with a space, whose environment is already installed."""
    root = tmp_path / "a checkout"
    (root / ".venv/bin").mkdir(parents=True)
    shutil.copytree(ROOT / "requirements", root / "requirements")
    shutil.copy(ROOT / "dev", root / "dev")
    python = root / ".venv/bin/python"
    python.write_text(PYTHON)
    python.chmod(0o755)
    install(root, "dev")
    return root


def install(root: Path, name: str) -> None:
    """Write the stamp that says: this lock is installed."""
    lock = (root / f"requirements/{name}.lock").read_bytes()
    checksum = subprocess.run(["cksum"], input=lock, capture_output=True, check=True).stdout
    (root / ".venv/.installed").write_text(f"{name} {checksum.decode()}")


def call(root: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `./dev` from a directory that is not the checkout."""
    elsewhere = root.parent / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    process = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(
        [str(root / "dev"), *arguments],
        cwd=elsewhere,
        env={**process, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_is_valid_shell_and_executable() -> None:
    subprocess.run(["sh", "-n", str(ROOT / "dev")], check=True)
    for script in ("dev", ".ci/run"):
        assert (ROOT / script).stat().st_mode & stat.S_IXUSR, f"{script} is not executable"


@pytest.mark.parametrize("lock", ["serve", "dev"])
@pytest.mark.parametrize(("verb", "command"), [("serve", ["serve"]), ("run", [])])
def test_the_server_runs_in_the_callers_directory_with_its_arguments(
    checkout: Path, verb: str, command: list[str], lock: str
) -> None:
    install(checkout, lock)
    result = call(checkout, verb, "my agents.py", "--listen", "", "*")
    assert result.stdout.splitlines()[1:] == [
        f"cwd={checkout.parent / 'elsewhere'}",
        f"path={checkout / 'src'}",
        *["-P", "-m", "dragoman", *command, "my agents.py", "--listen", "", "*"],
    ]
    assert result.stderr == ""


@pytest.mark.parametrize(("verb", "module"), [("test", "pytest"), ("bench", "bench")])
def test_tests_and_benchmarks_run_in_the_checkout(checkout: Path, verb: str, module: str) -> None:
    (checkout / "wrk").write_text("#!/bin/sh\n")
    (checkout / "wrk").chmod(0o755)
    result = call(checkout, verb, "-k", "a or b", PATH=f"{checkout}:{os.environ['PATH']}")
    assert result.stdout.splitlines()[1:] == [
        f"cwd={checkout}",
        f"path={checkout / 'src'}:{checkout}",
        *["-m", module, "-k", "a or b"],
    ]


# Prints what pytest was given in one line, and fails where that has the word of the environment.
PYTEST = '#!/bin/sh\necho "$@"\ncase "$*" in *"$FAILS"*) exit 1 ;; esac\n'


@pytest.mark.parametrize("arguments", [(), ("--every-store", "--soak")], ids=["a part", "all"])
def test_all_tests_are_several_runs_and_every_one_is_made(checkout: Path, arguments: tuple[str, ...]) -> None:
    (checkout / ".venv/bin/python").write_text(PYTEST)
    for fails in ("nothing", "-m alone", "--engine temporal"):
        result = call(checkout, "test", *arguments, FAILS=fails)
        runs = [line for line in result.stdout.splitlines() if line.startswith("-m pytest ")]
        assert [("--store postgres" in run, "--engine temporal" in run) for run in runs] == [
            (False, False),
            (False, False),
            (True, False),
            (True, False),
            (True, True),
        ]
        reports = [run.partition("--junitxml=")[2].partition(".xml")[0] for run in runs]
        assert len(set(reports)) == 5, "no report is written over another one"
        places = [word for word in runs[2].split() if word.startswith("tests/")]
        assert places
        assert [place for place in places if not (ROOT / place).exists()] == []
        assert all("--soak" in run for run in runs) == bool(arguments)
        assert result.returncode == (0 if fails == "nothing" else 1)
        named = {"nothing": "all tests passed", "-m alone": "FAILED: tests alone, tests postgres-alone"}
        assert named.get(fails, "FAILED: tests temporal") in result.stdout.splitlines()[-1]


def test_a_callers_own_modules_stay_importable(checkout: Path) -> None:
    result = call(checkout, "run", PYTHONPATH="mine")
    assert f"path={checkout / 'src'}:mine" in result.stdout.splitlines()


def test_signals_reach_the_server(checkout: Path) -> None:
    with subprocess.Popen([str(checkout / "dev"), "serve"], stdout=subprocess.PIPE, text=True) as process:
        output, _ = process.communicate()
    assert output.splitlines()[0] == f"pid={process.pid}"


def test_a_changed_lock_is_installed_anew(checkout: Path) -> None:
    with (checkout / "requirements/serve.lock").open("a") as lock:
        lock.write("# changed\n")
    install(checkout, "serve")
    with (checkout / "requirements/serve.lock").open("a") as lock:
        lock.write("# changed again\n")
    result = call(checkout, "run", PYTHON="no-such-python")
    assert result.returncode == 1
    assert "no Python 3.11 or newer found (tried: no-such-python)" in result.stderr


def test_a_python_without_ensurepip_is_told_what_to_install(checkout: Path, tmp_path: Path) -> None:
    crippled = tmp_path / "python3"
    crippled.write_text('#!/bin/sh\ncase "$2" in *ensurepip*) exit 1 ;; *print*) echo 3.12 ;; esac\n')
    crippled.chmod(0o755)
    (checkout / ".venv/.installed").unlink()
    result = call(checkout, "serve", PYTHON=str(crippled))
    assert result.returncode == 1
    assert "python3.12-venv" in result.stderr
    assert not (checkout / ".cache/installing").exists()


def test_an_unknown_verb_is_refused(checkout: Path) -> None:
    result = call(checkout, "srve")
    assert result.returncode == 2
    assert "no such verb: srve" in result.stderr
