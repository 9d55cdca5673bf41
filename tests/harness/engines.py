"""What executes the runs of a server under test: its embedded engine, or, with `--engine temporal`, a real Temporal."""

import hashlib
import os
from pathlib import Path

from tests.harness.paths import ENGINE_VARIABLE
from tests.harness.temporal import temporal_address


def is_temporal() -> bool:
    """Tell whether Temporal executes the runs of servers under test."""
    return os.environ.get(ENGINE_VARIABLE) == "temporal"


def environment(data: Path, config: str) -> dict[str, str]:
    """Return the variables that give a server with this data folder its engine.

    Whoever serves the same folder again works for the same task queue. A run that lost its process is executed again
    after the lease: tests do not wait for the usual one, unless the text of their configuration names one.
    """
    if not is_temporal():
        return {}
    queue = hashlib.sha256(str(data).encode()).hexdigest()[:16]
    temporal = {
        "DRAGOMAN_ENGINE_KIND": "temporal",
        "DRAGOMAN_ENGINE_TEMPORAL_ADDRESS": temporal_address(),
        "DRAGOMAN_ENGINE_TEMPORAL_TASK_QUEUE": queue,
    }
    hurried = {"DRAGOMAN_ENGINE_LEASE": "2s", "DRAGOMAN_ENGINE_SWEEP": "1s"}
    return temporal | ({} if "lease = " in config else hurried)
