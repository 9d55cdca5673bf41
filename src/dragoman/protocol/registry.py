"""Finds the protocol versions: every folder `v<major>_<minor>` beside this file, for its `SPEC` and its `client`.

Adding a version is adding its folder, removing it is removing the folder; no list names them.
"""

import importlib
import pkgutil
import re
from collections.abc import Mapping
from types import MappingProxyType

import dragoman.protocol as protocol_room
from dragoman.protocol.client import ClientBinding
from dragoman.protocol.spec import ProtocolSpec


def load_versions() -> Mapping[str, ProtocolSpec]:
    """Return the protocol versions of this build by `Major.Minor`, newest first."""
    specs: list[ProtocolSpec] = [
        importlib.import_module(f"{protocol_room.__name__}.{folder}").SPEC for folder in _folders()
    ]
    return MappingProxyType({spec.version: spec for spec in specs})


def load_clients() -> Mapping[str, Mapping[str, ClientBinding]]:
    """Return how agents of other people are called: by version, newest first, and binding.

    Apart from `load_versions`, because a server that calls nobody has no need of it.
    """
    clients: dict[str, Mapping[str, ClientBinding]] = {
        folder[1:].replace("_", "."): importlib.import_module(
            f"{protocol_room.__name__}.{folder}.client"
        ).CLIENT
        for folder in _folders()
    }
    return MappingProxyType(clients)


def _folders() -> list[str]:
    """Return the folders of the versions, newest first."""
    names = [module.name for module in pkgutil.iter_modules(protocol_room.__path__)]
    folders = [name for name in names if re.fullmatch(r"v\d+_\d+", name)]
    return sorted(folders, key=lambda folder: tuple(map(int, folder[1:].split("_"))), reverse=True)
