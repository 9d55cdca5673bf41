"""The lock files are whole: what is declared is what is locked, everything by hash, dev on top of serve."""

import re
import tomllib

import pytest
from packaging.requirements import Requirement

from tests.architecture.sources import ROOT

PIN = re.compile(r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?P<rest>.*(?:\n    .*)*)", re.MULTILINE)


def locked(text: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Return name → (version, hashes) of a lock file."""
    return {
        pin["name"]: (pin["version"], frozenset(re.findall(r"--hash=sha256:([0-9a-f]{64})", pin["rest"])))
        for pin in PIN.finditer(text)
    }


def read(name: str) -> str:
    return (ROOT / "requirements" / name).read_text()


def declared(lines: list[str]) -> dict[str, set[str]]:
    """Return name → version bounds of requirement lines; comments and options are left out."""
    found = [Requirement(line) for line in lines if line and line[0] not in "#-"]
    return {one.name: {str(bound) for bound in one.specifier} for one in found}


def test_serve_in_repeats_the_dependencies_of_the_package_with_all_extras() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    package, serve = declared([*project["dependencies"], *extras]), declared(read("serve.in").splitlines())
    assert package.keys() == serve.keys()
    loosened = [name for name, bounds in package.items() if not bounds <= serve[name]]
    assert not loosened, "serve.in may hold a package back, never let it go further than pyproject.toml"


@pytest.mark.parametrize("name", ["serve", "dev"])
def test_the_lock_holds_every_declared_package_by_hash(name: str) -> None:
    pins = locked(read(f"{name}.lock"))
    assert declared(read(f"{name}.in").splitlines()).keys() <= pins.keys(), "run ./dev lock"
    assert not [package for package, (_, hashes) in pins.items() if not hashes]


def test_dev_holds_all_that_serve_holds() -> None:
    assert locked(read("serve.lock")).items() <= locked(read("dev.lock")).items()


def test_a_pin_without_a_hash_is_seen() -> None:
    text = (
        "good==1.0 ; python_version > '3' \\\n    --hash=sha256:"
        + "0" * 64
        + "\n    # via x\nbad==2.0\n    # via y\n"
    )
    assert locked(text) == {"good": ("1.0", frozenset({"0" * 64})), "bad": ("2.0", frozenset())}


def test_bounds_are_compared_by_name() -> None:
    assert declared(["# why", "-c x.lock", "typer>=0.15,<0.29"]) == {"typer": {">=0.15", "<0.29"}}
