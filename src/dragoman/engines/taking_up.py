"""Taking up runs that were lost, or ending them where they must not be entered again."""

import logging
from collections.abc import Mapping
from typing import Protocol

from dragoman.gateway.execute import AgentRuntime
from dragoman.gateway.ports import LostRun

NOT_RETRIED = "The server was interrupted; the outcome is unknown and was not retried."
"""What a task says whose handler may have begun and must not begin again."""

_LOG = logging.getLogger("dragoman.engine")


class RunStore(Protocol):
    """Where runs are taken; see `gateway.ports.TaskStore`."""

    async def take_over(self, run: LostRun) -> bool:
        """Take a lost run for this server; false if somebody else was quicker."""
        ...

    async def give_up(self, run: LostRun, text: str, *, reveal: bool) -> None:
        """End a lost run as FAILED, saying `text`."""
        ...


class TakingUp:
    """Does that as each run's agent is configured: `on_lost_worker` and `max_attempts`."""

    def __init__(self, agents: Mapping[str, AgentRuntime], store: RunStore) -> None:
        self._agents = agents
        self._store = store

    async def take_up(self, run: LostRun, *, is_new: bool = False) -> None:
        """Take a run over for this process, or end it; nothing if somebody else was quicker.

        `is_new` if nobody has had it before: then there is nothing to tell the operator.

        Raises:
            Unavailable.
        """
        settings = self._agents[run.scope.agent].settings
        if run.entered and settings.on_lost_worker == "fail":
            await self.give_up(run, NOT_RETRIED)
        elif run.entered and run.attempt >= settings.max_attempts:
            await self.give_up(
                run, f"The run was interrupted in each of its {run.attempt} attempts and is not tried again."
            )
        elif await self._store.take_over(run) and not is_new:
            attempt = run.attempt + run.entered
            _LOG.info("took over a lost run", extra={"task_id": run.task_id, "attempt": attempt})

    async def give_up(self, run: LostRun, text: str) -> None:
        """End a run as FAILED, saying `text`.

        Raises:
            Unavailable.
        """
        reveal = self._agents[run.scope.agent].settings.replies != "message"
        await self._store.give_up(run, text, reveal=reveal)
