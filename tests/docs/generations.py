"""The generated parts of the reference that tell of A2A 0.3 beside 1.0, made from the SPECs of both."""

import json
from collections.abc import Iterator

from dragoman.model import Task, TaskState, TaskStatus
from dragoman.model.errors import DragomanError, InternalError
from dragoman.protocol.spec import HttpDialect
from dragoman.protocol.v0_3 import SPEC
from dragoman.protocol.v0_3.differences import DIFFERENCES
from dragoman.protocol.v0_3.errors import TABLE, known
from dragoman.protocol.v1_0 import SPEC as NEWER
from tests.docs.tables import table
from tests.docs.words import METHODS

CARD = "GetAgentCard"

BASE, ALIAS, OFFICIAL = SPEC.http


def routes_part() -> str:
    """Return the paths of each operation, at the alias and the base, and where official clients call."""
    kinds, proto = dict(_paths(ALIAS)), dict(_paths(OFFICIAL))
    rows = [[operation, paths, proto.get(operation, "–")] for operation, paths in kinds.items()]
    return table(["operation", "at `/v1` and at the base", "at `/v1/v1`"], rows)


def _paths(dialect: HttpDialect) -> Iterator[tuple[str, str]]:
    found: dict[str, list[str]] = {}
    for template, methods in dialect.routes:
        by_operation: dict[str, list[str]] = {}
        for method, endpoint in methods.items():
            by_operation.setdefault(endpoint.operation.value, []).append(method)
        for operation, verbs in by_operation.items():
            *others, last = [f"`{verb}`" for verb in verbs[:-1]] + [f"`{verbs[-1]} {template}`"]
            found.setdefault(operation, []).append(" or ".join([*others, last]))
    found[CARD] = [f"`GET {path}`" for path in dialect.card_paths]
    return ((operation, ", ".join(paths)) for operation, paths in found.items())


def methods_part() -> str:
    """Return the JSON-RPC methods of 0.3 with what they take and give."""
    rows = [
        [f"`{name}`", method.operation.value, *METHODS[name]] for name, method in SPEC.jsonrpc.methods.items()
    ]
    return table(["method", "operation", "`params`", "`result`"], rows)


def errors_part() -> str:
    """Return how each error shows in 0.3."""
    rows = []
    kinds: list[type[DragomanError]] = [*TABLE, InternalError]
    for kind in kinds:
        shown = known(kind.__new__(kind))
        rows.append([f"`{shown.name}`", str(shown.code), str(shown.status), f"`{kind.reason}`"])
    return table(["`type`", "`code`", "HTTP", "`reason`"], rows)


def states_part() -> str:
    """Return the names of every state, as each form writes them."""
    rows = [
        [f"`{_state(NEWER.http[0], state)}`", f"`{_state(ALIAS, state)}`", f"`{_state(OFFICIAL, state)}`"]
        for state in TaskState
    ]
    return table(["1.0", "0.3, JSON with kinds", "0.3, ProtoJSON"], rows)


def _state(dialect: HttpDialect, state: TaskState) -> str:
    task = Task(id="t", context_id="c", status=TaskStatus(state=state, timestamp=0))
    return str(json.loads(dialect.codec.task(task))["status"]["state"])


def differences_part() -> str:
    """Return the table of differences."""
    rows = [
        [f"`{one.name}`", one.about, one.way, one.dialect, one.lost or "nothing", one.done]
        for one in DIFFERENCES
    ]
    return table(
        ["name", "what it is about", "which way", "form of 0.3", "what is lost", "what is done"], rows
    )
