"""Following other servers: what they tell is a hint, and what is observed here is whole whether it comes or not."""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from dragoman.gateway import elsewhere
from dragoman.gateway.elsewhere import Elsewhere, Spans
from dragoman.gateway.observe import Hub, Observer
from dragoman.model import Artifact, ArtifactChunk, TaskEvent, TextPart
from dragoman.model.errors import TaskNotFound, Unavailable
from tests.unit.gateway.memory_store import MemoryStore

TASK, OTHER = "task", "other"


class SharedStore(MemoryStore):
    """A store that other servers write to: `commit` is what one of them does."""

    def __init__(self) -> None:
        super().__init__()
        self.log: dict[str, list[TaskEvent]] = {}
        self.reads: list[Spans] = []
        self.asked: list[list[str]] = []
        self.down = False

    def commit(self, task_id: str, count: int = 1) -> Spans:
        """Commit further events, and return what is told of them."""
        events = self.log.setdefault(task_id, [])
        first = len(events) + 1
        for seq in range(first, first + count):
            piece = ArtifactChunk(Artifact(artifact_id="a", parts=(TextPart(text=f"{seq}"),)), append=True)
            events.append(TaskEvent(task_id, "context", seq, seq, 1, piece))
        return {task_id: (first, len(events))}

    async def committed(self, spans: Spans) -> Sequence[TaskEvent]:
        self.reads.append(dict(spans))
        if self.down:
            raise Unavailable("down")
        return [
            event for task_id, (first, last) in spans.items() for event in self.log[task_id][first - 1 : last]
        ]

    async def heads(self, task_ids: Sequence[str]) -> Mapping[str, int]:
        self.asked.append(list(task_ids))
        if self.down:
            raise Unavailable("down")
        return {task_id: len(self.log[task_id]) for task_id in task_ids if task_id in self.log}

    async def events(self, task_id: str, after: int) -> tuple[TaskEvent, ...]:
        if task_id not in self.log:
            raise TaskNotFound(task_id)
        return tuple(self.log[task_id][after:])


class Server:
    """One server's end."""

    def __init__(self, *running: str) -> None:
        self.store = SharedStore()
        self.hub = Hub()
        self.stopped = 0
        self.elsewhere = Elsewhere(
            self.store, self.hub, runs_here=set(running).__contains__, stopped=self._stop
        )

    def _stop(self) -> None:
        self.stopped += 1

    async def follow(self, observer: Observer, after: int, upto: int) -> list[int]:
        """The numbers of the events that an observer is handed after one, up to another."""
        seen: list[int] = []
        async with asyncio.timeout(5):
            while after < upto:
                for item in await observer.next(self.store, after) or ():
                    seen.append(item.event.seq)
                    after = item.event.seq
        return seen


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elsewhere, "SWEEP_SECONDS", 0.05)
    monkeypatch.setattr(elsewhere, "RETRY_SECONDS", 0.01)


def test_what_is_observed_is_read_once_for_all_and_the_rest_never() -> None:
    async def run() -> None:
        server = Server()
        server.elsewhere.start()
        with server.hub.observe(TASK) as one, server.hub.observe(TASK) as two:
            for _ in range(3):
                server.elsewhere.hear(server.store.commit(TASK) | server.store.commit(OTHER))
            assert await server.follow(one, 0, 3) == await server.follow(two, 0, 3) == [1, 2, 3]
        server.elsewhere.close()
        assert server.store.reads == [{TASK: (1, 3)}]
        assert server.stopped == 0

    asyncio.run(run())


@pytest.mark.parametrize(
    "told", [[], [1], [2], [0, 2]], ids=["none", "the second", "the last", "not the second"]
)
def test_hints_that_are_lost_cost_time_and_no_event(told: list[int]) -> None:
    async def run() -> None:
        server = Server()
        server.elsewhere.start()
        with server.hub.observe(TASK) as observer:
            for number in range(3):
                span = server.store.commit(TASK, 2)
                if number in told:
                    server.elsewhere.hear(span)
            assert await server.follow(observer, 0, 6) == [1, 2, 3, 4, 5, 6]
        server.elsewhere.close()

    asyncio.run(run())


def test_an_event_of_here_that_comes_before_one_of_elsewhere_leaves_no_gap() -> None:
    async def run() -> None:
        server = Server()
        with server.hub.observe(TASK) as observer:
            server.store.commit(TASK, 3)
            first, _, third = server.store.log[TASK]
            server.hub.publish([first, third])
            assert await server.follow(observer, 0, 3) == [1, 2, 3]

    asyncio.run(run())


def test_a_store_that_is_down_is_asked_again() -> None:
    async def run() -> None:
        server = Server()
        server.store.down = True
        server.elsewhere.start()
        with server.hub.observe(TASK) as observer:
            server.elsewhere.hear(server.store.commit(TASK, 2))
            while len(server.store.asked) < 2:
                await asyncio.sleep(0)
            server.store.down = False
            assert await server.follow(observer, 0, 2) == [1, 2]
        server.elsewhere.close()

    asyncio.run(run())


def test_a_quiet_task_is_looked_at_once_and_then_only_asked_about() -> None:
    async def run() -> None:
        server = Server()
        server.store.commit(TASK, 4)
        with server.hub.observe(TASK) as observer:
            looks = 0

            async def events(task_id: str, after: int) -> tuple[TaskEvent, ...]:
                nonlocal looks
                looks += 1
                return ()

            server.store.events = events  # type: ignore[method-assign]  # counts
            waiting = asyncio.ensure_future(observer.next(server.store, 4))
            await asyncio.sleep(0)
            server.elsewhere.start()
            while len(server.store.asked) < 4:
                await asyncio.sleep(0.01)
            server.elsewhere.close()
            waiting.cancel()
        assert looks == 1
        assert set(map(tuple, server.store.asked)) == {(TASK,)}

    asyncio.run(run())


def test_who_observes_a_task_that_another_server_has_purged_is_told_so() -> None:
    async def run() -> None:
        server = Server()
        server.store.commit(TASK, 2)
        with server.hub.observe(TASK) as observer:
            waiting = asyncio.ensure_future(observer.next(server.store, 2))
            await asyncio.sleep(0)
            del server.store.log[TASK]
            server.elsewhere.start()
            with pytest.raises(TaskNotFound):
                await asyncio.wait_for(waiting, 10)
        server.elsewhere.close()

    asyncio.run(run())


def test_a_run_of_here_that_others_have_written_to_may_have_been_stopped() -> None:
    server = Server(TASK)
    server.elsewhere.hear({OTHER: (1, 1)})
    assert server.stopped == 0
    server.elsewhere.hear({OTHER: (2, 2), TASK: (1, 1)})
    assert server.stopped == 1
    server.elsewhere.miss()
    assert server.stopped == 2
