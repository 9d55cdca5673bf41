"""Push notification configurations as every store keeps them: rows as values, and the bounds that hold in all."""

from collections.abc import Iterable, Sequence
from typing import Any

from dragoman.gateway.hooks import Hook, HookState, KeptConfig
from dragoman.model import Scope, TaskEvent
from dragoman.model.errors import QuotaExceeded
from dragoman.model.push import MOST_CONFIGS
from dragoman.stores.records import event_from_row

MOST_EVENTS = 64
MOST_BYTES = 1024 * 1024
"""What `HookStore.to_tell` returns at once: so many events, or so much of them, and one at least."""


def check_room(task_id: str, others: int) -> None:
    """Refuse one more configuration of a task that has `others` beside it, if those are as many as it may have.

    Raises:
        QuotaExceeded.
    """
    if others >= MOST_CONFIGS:
        raise QuotaExceeded(
            f"Task {task_id} has {MOST_CONFIGS} push notification configurations, as many as a task may; "
            "delete one first",
            metadata={"limit": "push_configs"},
        )


def hook_from_row(row: Sequence[Any]) -> Hook:
    """Return the configuration of a row: its task, that one's scope, itself, how far it is, and if the task shows."""
    task_id, tenant, principal, agent, config_id, generation, url, scheme, sealed, state, *rest = row
    sent, tries, waits, changed, error, visible = rest
    return Hook(
        task_id=task_id,
        scope=Scope(tenant, principal, agent),
        config=KeptConfig(id=config_id, generation=generation, url=url, scheme=scheme, sealed=sealed),
        state=HookState(state),
        sent=sent,
        tries=tries,
        waits=waits,
        changed=changed,
        error=error,
        visible=bool(visible),
    )


def events_at_once(task_id: str, context_id: str, rows: Iterable[Any]) -> Sequence[TaskEvent]:
    """Return the first events of rows, as many as are told at once."""
    events: list[TaskEvent] = []
    size = 0
    for row in rows:
        size += len(row[3])
        if events and size > MOST_BYTES:
            break
        events.append(event_from_row(task_id, context_id, row))
    return events
