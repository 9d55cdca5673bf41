"""Finds the protocol versions: every folder `v<major>_<minor>` beside this file that exports a `SPEC`.

Adding a version is adding its folder, removing it is removing the folder; no list names them.
"""

import importlib
import pkgutil
import re
from collections.abc import Mapping
from types import MappingProxyType

import dragoman.protocol as protocol_room
from dragoman.protocol.spec import ProtocolSpec


def load_versions() -> Mapping[str, ProtocolSpec]:
    """Return the protocol versions of this build by `Major.Minor`, newest first."""
    names = [module.name for module in pkgutil.iter_modules(protocol_room.__path__)]
    folders = [name for name in names if re.fullmatch(r"v\d+_\d+", name)]
    specs: list[ProtocolSpec] = [
        importlib.import_module(f"{protocol_room.__name__}.{folder}").SPEC for folder in folders
    ]
    specs.sort(key=lambda spec: tuple(map(int, spec.version.split("."))), reverse=True)
    return MappingProxyType({spec.version: spec for spec in specs})
