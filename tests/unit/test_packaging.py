"""What is published works: a wheel built from the tree, installed into a new environment, runs its command."""

import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

import dragoman

ROOT = Path(__file__).parents[2]


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command outside the tree, without the tree on its path and without any registry."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PIP_"))
    }
    result = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={
            **environment,
            "PIP_NO_INDEX": "1",
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built offline by the build backend that is installed here."""
    folder = tmp_path_factory.mktemp("wheel")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-build-isolation",
        "--check-build-dependencies",
    ]
    run(*pip, "--wheel-dir", folder, ROOT, cwd=folder)
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    assert wheel.name == f"dragoman-{dragoman.__version__}-py3-none-any.whl"
    names = zipfile.ZipFile(wheel).namelist()
    info = f"dragoman-{dragoman.__version__}.dist-info/"
    assert {name.partition("/")[0] for name in names} == {"dragoman", info.rstrip("/")}
    assert {"dragoman/py.typed", f"{info}licenses/LICENSE"} <= set(names)
    package = ROOT / "src/dragoman"
    sources = {f"dragoman/{path.relative_to(package).as_posix()}" for path in package.rglob("*.py")}
    assert sources == {name for name in names if name.endswith(".py")}


def test_the_installed_command_runs(wheel: Path, tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv, cwd=tmp_path)
    python = venv / "bin/python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", wheel, cwd=tmp_path)

    # The dependencies are those of the environment that runs this test, seen through a path file.
    site_packages = Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path).strip()
    )
    (site_packages / "dependencies.pth").write_text(f"{sysconfig.get_path('purelib')}\n")

    location = run(python, "-c", "import dragoman; print(dragoman.__file__)", cwd=tmp_path).strip()
    assert Path(location).is_relative_to(site_packages)
    assert dragoman.__version__ in run(venv / "bin/dragoman", "--version", cwd=tmp_path).split()
