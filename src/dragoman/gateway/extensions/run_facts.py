"""Run facts: how far the run of a task has come, for whoever asks."""

from datetime import UTC, datetime

from msgspec import Raw

from dragoman.gateway.extensions.behaviour import Behaviour
from dragoman.model import RunFacts
from dragoman.model.payload import pack


class RunFactsShown(Behaviour):
    """Every task and every update that is shown tells sequence, attempt and, while there is one, deadline."""

    def facts(self, run: RunFacts) -> Raw:
        """See `Behaviour`."""
        shown: dict[str, int | str] = {"sequence": run.sequence, "attempt": run.attempt}
        if run.deadline is not None:
            at = datetime.fromtimestamp(run.deadline / 1000, UTC)
            shown["deadline"] = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return pack(shown)
