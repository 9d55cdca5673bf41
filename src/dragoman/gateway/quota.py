"""Quotas: how many tasks a principal and its tenant may have, unfinished and altogether."""

from msgspec import Struct

from dragoman.model.allowance import Allowance
from dragoman.model.errors import QuotaExceeded

FINISHING = 5
"""Seconds after which a caller with too many unfinished tasks should send its message again."""

PURGING = 60
"""The same with too many tasks altogether: they go when their time is over."""


class Tally(Struct):
    """How many tasks there are of somebody: `running`, which are not finished, and `stored`, which can be seen.

    A task that waits for its caller is not finished: the answer, which is never refused, has it go on at once.
    """

    running: int = 0
    stored: int = 0


def refusal(allowance: Allowance, own: Tally, tenant: Tally) -> QuotaExceeded | None:
    """Return why a message for a new task is to be refused: there are as many as its principal or tenant may have."""
    for whose, tally in (("principal", own), ("tenant", tenant)):
        running, stored = getattr(allowance.running, whose), getattr(allowance.stored, whose)
        if running is not None and tally.running >= running:
            return QuotaExceeded(
                f"This {whose} has {running} tasks that are not finished, as many as it may have; this message was not "
                "stored. Send it again when one is finished, or cancel one",
                metadata={"limit": f"running.{whose}"},
                retry_after=FINISHING,
            )
        if stored is not None and tally.stored >= stored:
            return QuotaExceeded(
                f"{stored} tasks of this {whose} are kept, as many as may be; this message was not stored. Send it "
                "again when older ones have been purged, or ask the operator",
                metadata={"limit": f"stored.{whose}"},
                retry_after=PURGING,
            )
    return None
