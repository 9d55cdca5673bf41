"""What a server tells of runs whose agents it does not serve: nothing; it does not know how they are executed."""

import asyncio
from collections.abc import Mapping

import pytest

from dragoman.engines.taking_up import TakingUp
from dragoman.engines.temporal.client import Connector
from dragoman.engines.temporal.dispatcher import LONGEST_WAIT_MS, Dispatcher, queue_of, workflow_id
from dragoman.engines.temporal.settings import TemporalTable
from dragoman.gateway.dispatching import DispatchedRun, DispatchStore, Notice
from dragoman.gateway.ports import LostRun
from dragoman.model import Scope, TaskState

RUN = LostRun(scope=Scope("acme", "alice", "elsewhere"), task_id="t-1", epoch=1, attempt=1, entered=False)


class Notes(DispatchStore):
    """A store with one run that is due; it notes what became of it."""

    def __init__(self, due: DispatchedRun) -> None:
        self._due = [due]
        self.told: list[int] = []
        self.not_told: list[int] = []

    async def offered(self) -> Mapping[str, int]:
        return {}

    async def due(self, limit: int, hold: int) -> tuple[DispatchedRun, ...]:
        due, self._due = self._due, []
        return tuple(due)

    async def told_engine(self, run: DispatchedRun, wait: int) -> None:
        self.told.append(wait)

    async def not_told_engine(self, run: DispatchedRun, wait: int) -> None:
        self.not_told.append(wait)

    async def standing(self, task_id: str) -> DispatchedRun | None:
        return None


class Untouched:
    """Runs that nobody may touch."""

    async def take_over(self, run: LostRun) -> bool:
        raise AssertionError(run)

    async def give_up(self, run: LostRun, text: str, *, reveal: bool) -> None:
        raise AssertionError(run)


@pytest.mark.parametrize("notice", [Notice.START, Notice.RESUME, Notice.NONE])
def test_a_run_of_an_agent_that_is_not_served_here_is_left_to_those_who_serve_it(notice: Notice) -> None:
    store = Notes(
        DispatchedRun(task_id="t-1", notice=notice, epoch=1, tries=0, run=RUN, state=TaskState.SUBMITTED)
    )

    async def go() -> None:
        dispatcher = Dispatcher(
            Connector(TemporalTable(address="127.0.0.1:1"), {}),
            store,
            {},
            TakingUp({}, Untouched()),
            task_queue="q",
            lease=1.0,
            sweep=60.0,
        )
        working = asyncio.create_task(dispatcher.run())
        while not (store.told or store.not_told):
            await asyncio.sleep(0)
        working.cancel()
        assert not dispatcher.is_down, "nobody was called"

    asyncio.run(asyncio.wait_for(go(), 10))
    assert (store.told, store.not_told) == ([], [LONGEST_WAIT_MS])


def test_ids_and_queues_are_what_operators_look_for() -> None:
    assert workflow_id("01a2") == "dragoman-01a2"
    assert queue_of("dragoman", "digest") == "dragoman.digest"
