"""The configuration of engines: who executes runs, and how. No I/O."""

from msgspec import Struct

from dragoman.engines.temporal.settings import TemporalTable, check_temporal

HERE, WORKERS = "here", "workers"
"""Where handlers run."""

EMBEDDED, TEMPORAL = "embedded", "temporal"
KINDS = (EMBEDDED, TEMPORAL)


class EngineTable(Struct, frozen=True, forbid_unknown_fields=True):
    """`[engine]`: how runs are executed. `lease` and `sweep` bound how long a lost run lies.

    `runs` says where the handlers of what a server accepts run: "here", or at "workers" that share its store.
    """

    kind: str = EMBEDDED
    runs: str = HERE
    lease: str = "15s"
    sweep: str = "5s"
    max_runs: int = 1000
    temporal: TemporalTable = TemporalTable()


class WorkerTable(Struct, frozen=True, forbid_unknown_fields=True):
    """`[worker]`: where a worker answers to health checks."""

    listen: str = "127.0.0.1:8081"


def check_engine(engine: EngineTable, *, shares_store: bool) -> None:
    """Make sure that runs can be executed so; durations are checked by whoever reads them.

    Args:
        engine: the table.
        shares_store: whether the store is one that several processes can share.

    Raises:
        ValueError: they cannot; the message names the key.
    """
    if engine.max_runs < 1:
        raise ValueError("engine.max_runs must be at least 1")
    if engine.kind not in KINDS:
        raise ValueError(f'engine.kind = "{engine.kind}" is neither "{EMBEDDED}" nor "{TEMPORAL}"')
    check_temporal(engine.temporal)
    if engine.runs not in (HERE, WORKERS):
        raise ValueError(f'engine.runs = "{engine.runs}" is neither "{HERE}" nor "{WORKERS}"')
    if engine.runs == WORKERS and not shares_store:
        raise ValueError(
            f'engine.runs = "{WORKERS}": a store in a file belongs to one process, which executes its runs. Set '
            f'store.url = "postgresql://..." as well, or engine.runs = "{HERE}"'
        )
