"""The protocol versions of this build."""

from pathlib import Path

import dragoman.protocol
from dragoman.protocol.registry import load_clients, load_versions

ROOM = Path(dragoman.protocol.__file__).parent


def test_every_version_folder_is_found_under_the_version_that_its_name_says() -> None:
    folders = {path.name for path in ROOM.glob("v*_*") if (path / "__init__.py").exists()}
    versions = load_versions()
    assert {f"v{version.replace('.', '_')}" for version in versions} == folders
    assert "1.0" in versions


def test_versions_come_newest_first() -> None:
    numbers = [tuple(map(int, version.split("."))) for version in load_versions()]
    assert numbers == sorted(numbers, reverse=True)


def test_a_spec_is_found_under_its_own_version() -> None:
    assert all(spec.version == version for version, spec in load_versions().items())


def test_no_two_dialects_of_a_version_stand_at_the_same_place() -> None:
    for spec in load_versions().values():
        mounts = [dialect.mount for dialect in spec.http]
        assert len(mounts) == len(set(mounts))
        assert all(mount == "" or mount.startswith("/") for mount in mounts)


def test_every_version_can_be_called_over_both_bindings() -> None:
    clients = load_clients()
    assert list(clients) == list(load_versions())
    assert all(set(bindings) == {"JSONRPC", "HTTP+JSON"} for bindings in clients.values())
