"""The audit: who did what, when, on what, and what came of it. No message text and no secret is ever in it."""

from msgspec import Struct

OK = "ok"


class AuditEntry(Struct, frozen=True, kw_only=True):
    """One act, or the same denial so many `times`.

    `action` is an operation of A2A or a verb such as `token.create`; `target` is what it was done to, as a path. Who
    did it is a principal of a tenant, with the token `credential`, from `address`; each is empty if there is none.
    `outcome` is "ok", "replayed", or the reason of the error; `detail` a short fact, such as the scopes of a token.
    """

    action: str
    target: str
    tenant: str = ""
    principal: str = ""
    credential: str = ""
    address: str = ""
    outcome: str = OK
    detail: str = ""
    times: int = 1


class AuditRow(Struct, frozen=True):
    """An entry as it is kept: numbered, and with the store's time in milliseconds since 1970 UTC."""

    id: int
    at: int
    entry: AuditEntry
