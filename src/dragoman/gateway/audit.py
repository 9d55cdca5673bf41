"""The audit: who did what, when, on what, and what came of it. No message text and no secret is ever in it."""

from typing import Protocol

from msgspec import Struct, structs

from dragoman.model import Scope

OK = "ok"
REPLAYED = "replayed"


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One act, or the same denial so many `times`.

    `action` is an operation of A2A or a verb such as `token.create`; `target` is what it was done to, as a path. Who
    did it is a principal of a tenant, with the token `credential`, from `address`; each is empty if there is none.
    `outcome` is "ok", "replayed", or the reason of the error; `detail` a short fact, such as the scopes of a token.

    What goes with a request has no target yet: the store adds it, and the outcome, where it does what is asked.
    """

    action: str
    target: str = ""
    tenant: str = ""
    principal: str = ""
    credential: str = ""
    address: str = ""
    outcome: str = OK
    detail: str = ""
    times: int = 1

    def on(self, target: str, *, outcome: str = OK, detail: str = "") -> "AuditEntry":
        """Return the entry with what it was done to, and what came of it."""
        return structs.replace(self, target=target, outcome=outcome, detail=detail)


class AuditRow(Struct, frozen=True):
    """An entry as it is kept: numbered, and with the store's time in milliseconds since 1970 UTC."""

    id: int
    at: int
    entry: AuditEntry


def task_path(scope: Scope, task_id: str) -> str:
    """Return the target of what is done to a task."""
    return f"agents/{scope.agent}/tasks/{task_id}"


class Audit(Protocol):
    """Where denials go: they have no transaction of their own to be noted in."""

    def note(self, entry: AuditEntry) -> None:
        """Take an entry; it is written soon. Returns at once; called on the serving loop."""
        ...
