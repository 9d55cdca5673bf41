"""Observers: every committed event, in order and once, whatever the hub has missed."""

import asyncio
import itertools
from collections.abc import Sequence

import pytest

from dragoman.gateway.call import Committed
from dragoman.gateway.observe import MAX_BYTES, MAX_EVENTS, WAKES, Hub, Observer, committed
from dragoman.model import (
    Artifact,
    ArtifactChunk,
    Change,
    DataPart,
    Message,
    RawPart,
    Received,
    Reply,
    Resumed,
    Role,
    StatusChange,
    TaskEvent,
    TaskState,
    TextPart,
    UrlPart,
    Used,
)
from dragoman.model.errors import TaskNotFound
from tests.unit.gateway.memory_store import MemoryStore


def event(seq: int, change: Change | None = None, task_id: str = "t") -> TaskEvent:
    return TaskEvent(task_id, "c", seq, seq, 1, change or StatusChange(TaskState.WORKING))


def chunk(size: int) -> ArtifactChunk:
    return ArtifactChunk(Artifact(artifact_id="a", parts=(TextPart(text="x" * size),)))


def store(*numbers: int) -> MemoryStore:
    """A store with these events of task `t`."""
    kept = MemoryStore()
    kept.logs["t"] = [event(number) for number in numbers]
    return kept


def numbers(batch: Sequence[Committed] | None) -> list[int] | None:
    return None if batch is None else [item.event.seq for item in batch]


def taken(observer: Observer, kept: MemoryStore, after: int, timeout: float | None = 0) -> list[int] | None:
    """What an observer gives out at once."""
    return numbers(asyncio.run(observer.next(kept, after, timeout)))


def test_events_are_given_out_in_order_and_once() -> None:
    hub, kept = Hub(), store()
    with hub.observe("t") as observer:
        hub.publish([event(1), event(2)])
        hub.publish([event(3)])
        assert taken(observer, kept, 0) == [1, 2, 3]
        assert taken(observer, kept, 3) == []
    assert kept.reads == 0


def test_events_that_the_snapshot_has_are_not_given_out_again() -> None:
    hub, kept = Hub(), store()
    with hub.observe("t") as observer:
        hub.publish([event(number) for number in range(1, 6)])
        assert taken(observer, kept, 3) == [4, 5]
        hub.publish([event(5), event(6)])
        assert taken(observer, kept, 5) == [6]
    assert kept.reads == 0


def test_a_gap_is_filled_from_the_store() -> None:
    hub, kept = Hub(), store(1, 2, 3, 4)
    with hub.observe("t") as observer:
        hub.publish([event(4)])
        assert taken(observer, kept, 1) == [2, 3, 4]
        assert kept.reads == 1
        hub.publish([event(5)])
        assert taken(observer, kept, 4) == [5]
        assert kept.reads == 1


def test_only_events_of_its_own_task_reach_an_observer() -> None:
    hub, kept = Hub(), store()
    with hub.observe("t") as observer:
        hub.publish([event(1, task_id="u"), event(1), event(2, task_id="u")])
        assert taken(observer, kept, 0) == [1]


def test_every_observer_of_a_task_is_given_the_same_event_weighed_once() -> None:
    hub = Hub()
    with hub.observe("t") as one, hub.observe("t") as other:
        hub.publish([event(1)])

        async def both() -> tuple[Committed, Committed]:
            (first,), (second,) = await one.next(store(), 0, 0) or (), await other.next(store(), 0, 0) or ()
            return first, second

        first, second = asyncio.run(both())
        assert first is second


def test_too_many_events_send_an_observer_back_to_a_snapshot_and_it_goes_on_from_there() -> None:
    hub, kept = Hub(), store()
    with hub.observe("t") as observer:
        hub.publish([event(number) for number in range(1, MAX_EVENTS + 2)])
        hub.publish([event(MAX_EVENTS + 2)])
        assert taken(observer, kept, 0) is None
        hub.publish([event(MAX_EVENTS + 3)])
        assert taken(observer, kept, MAX_EVENTS + 2) == [MAX_EVENTS + 3]
    assert kept.reads == 0


def test_as_many_events_as_there_is_room_for_are_kept() -> None:
    hub, kept = Hub(), store()
    with hub.observe("t") as observer:
        hub.publish([event(number) for number in range(1, MAX_EVENTS + 1)])
        assert taken(observer, kept, 0) == list(range(1, MAX_EVENTS + 1))


def test_too_many_bytes_send_an_observer_back_to_a_snapshot() -> None:
    hub, kept = Hub(), store()
    with hub.observe("t") as observer:
        hub.publish([event(1, chunk(MAX_BYTES // 2)), event(2, chunk(MAX_BYTES // 2 + 1))])
        assert taken(observer, kept, 0) is None


def test_one_event_is_kept_however_large_and_room_is_free_again_once_it_is_taken() -> None:
    hub, kept = Hub(), store()
    with hub.observe("t") as observer:
        for seq in (1, 2, 3):
            hub.publish([event(seq, chunk(MAX_BYTES * 2))])
            assert taken(observer, kept, seq - 1) == [seq]


def test_an_observer_that_is_told_to_look_again_reads_the_store_once() -> None:
    hub, kept = Hub(), store(1, 2, 3)
    with hub.observe("t") as observer:
        hub.look_again()
        assert taken(observer, kept, 1) == [2, 3]
        assert taken(observer, kept, 3) == []
    assert kept.reads == 1


def test_looking_again_finds_nothing_where_nothing_is() -> None:
    hub, kept = Hub(), store(1)
    with hub.observe("t") as observer:
        observer.look_again()
        assert taken(observer, kept, 1) == []
    assert kept.reads == 1


def test_an_observer_whose_task_is_gone_is_told_so_when_it_looks() -> None:
    hub, kept = Hub(), store(1)

    async def scenario() -> None:
        with hub.observe("t") as observer:
            waiting = asyncio.create_task(observer.next(kept, 1))
            await asyncio.sleep(0)
            del kept.logs["t"]
            hub.look_again()
            with pytest.raises(TaskNotFound):
                await asyncio.wait_for(waiting, 5)

    asyncio.run(scenario())


def test_events_that_come_while_the_store_is_read_are_not_lost_and_not_given_twice() -> None:
    hub = Hub()

    class Meanwhile(MemoryStore):
        async def events(self, task_id: str, after: int) -> tuple[TaskEvent, ...]:
            found = await super().events(task_id, after)
            hub.publish([event(3), event(4)])
            return found

    kept = Meanwhile()
    kept.logs["t"] = [event(1), event(2), event(3)]
    with hub.observe("t") as observer:
        observer.look_again()
        assert taken(observer, kept, 1) == [2, 3]
        assert taken(observer, kept, 3) == [4]


@pytest.mark.parametrize("what", ["an event", "many events", "told to look"])
def test_what_comes_while_nothing_is_found_in_the_store_is_not_waited_for(what: str) -> None:
    """A database takes a moment to answer: who waits for it is not woken by what comes meanwhile."""
    hub = Hub()

    class Meanwhile(MemoryStore):
        async def events(self, task_id: str, after: int) -> tuple[TaskEvent, ...]:
            found = await super().events(task_id, after)
            if not found and what != "told to look":
                hub.publish([event(seq) for seq in range(2, 3 if what == "an event" else MAX_EVENTS + 3)])
            elif not found:
                self.logs["t"].append(event(2))
                hub.look_again()
            return found

    kept = Meanwhile()
    kept.logs["t"] = [event(1)]

    async def scenario() -> Sequence[Committed] | None:
        with hub.observe("t") as observer:
            observer.look_again()
            return await asyncio.wait_for(observer.next(kept, 1), 5)

    found = asyncio.run(scenario())
    assert found is None if what == "many events" else found is not None and numbers(found) == [2]


@pytest.mark.parametrize("wake", ["publish", "look_again"])
def test_a_waiting_observer_is_woken(wake: str) -> None:
    hub, kept = Hub(), store(1)

    async def scenario() -> list[int] | None:
        with hub.observe("t") as observer:
            waiting = asyncio.create_task(observer.next(kept, 0))
            await asyncio.sleep(0)
            assert not waiting.done()
            if wake == "publish":
                hub.publish([event(1)])
            else:
                hub.look_again()
            return numbers(await asyncio.wait_for(waiting, 5))

    assert asyncio.run(scenario()) == [1]


def test_waiting_ends_empty_when_its_time_is_over() -> None:
    hub, kept = Hub(), store()

    async def scenario() -> Sequence[Committed] | None:
        with hub.observe("t") as observer:
            waiting = asyncio.create_task(observer.next(kept, 0, 0.05))
            await asyncio.sleep(0)
            hub.publish([event(1, task_id="u")])
            assert not waiting.done()
            return await asyncio.wait_for(waiting, 5)

    assert asyncio.run(scenario()) == ()


def test_a_wait_that_is_given_up_leaves_the_events_for_the_next() -> None:
    hub, kept = Hub(), store()

    async def scenario() -> list[int] | None:
        with hub.observe("t") as observer:
            waiting = asyncio.create_task(observer.next(kept, 0))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
            hub.publish([event(1)])
            return numbers(await observer.next(kept, 0))

    assert asyncio.run(scenario()) == [1]


@pytest.mark.parametrize("wake", ["publish", "look_again"])
def test_a_crowd_is_woken_a_few_at_a_time_and_lets_others_between(wake: str) -> None:
    """Each is woken in the order in which they came, and with all that has happened meanwhile."""
    hub, kept = Hub(), store(1, 2)
    count = 10 * WAKES + 3
    woken: list[int] = []

    async def watch(number: int, observer: Observer) -> None:
        after = 0
        while after < 2:
            batch = await observer.next(kept, after)
            assert batch
            after = batch[-1].event.seq
        woken.append(number)

    async def scenario() -> None:
        observers = [hub.observe("t", streams=True).attach() for _ in range(count)]
        watching = [asyncio.create_task(watch(*numbered)) for numbered in enumerate(observers)]
        await asyncio.sleep(0)
        if wake == "publish":
            hub.publish([event(1)])
            hub.publish([event(2)])
        else:
            hub.look_again()
        turns = [0]
        while len(woken) < count:
            await asyncio.sleep(0)
            turns.append(len(woken))
        assert max(after - before for before, after in itertools.pairwise(turns)) <= WAKES
        await asyncio.gather(*watching)

    asyncio.run(asyncio.wait_for(scenario(), 10))
    assert sorted(woken) == list(range(count))


def test_who_waits_for_an_answer_does_not_queue_behind_a_crowd() -> None:
    hub, kept = Hub(), store()

    async def scenario() -> list[int]:
        crowd = [hub.observe("t", streams=True).attach() for _ in range(100 * WAKES)]
        watching = [asyncio.create_task(observer.next(kept, 0)) for observer in crowd]
        waiting = [asyncio.create_task(hub.observe("t").attach().next(kept, 0)) for _ in range(2 * WAKES)]
        await asyncio.sleep(0)
        hub.publish([event(1)])
        await asyncio.wait_for(asyncio.gather(*waiting), 10)
        ahead = sum(one.done() for one in watching)
        await asyncio.gather(*watching)
        return [ahead]

    (ahead,) = asyncio.run(scenario())
    assert ahead <= 4 * WAKES


def test_an_observer_that_leaves_or_is_woken_by_its_time_loses_nothing_in_the_queue() -> None:
    hub, kept = Hub(), store()

    async def scenario() -> list[int] | None:
        crowd = [hub.observe("t", streams=True).attach() for _ in range(4 * WAKES)]
        watching = [asyncio.create_task(observer.next(kept, 0)) for observer in crowd[:-1]]
        last = crowd[-1]
        timed = asyncio.create_task(last.next(kept, 0, 0.0))
        assert await timed == ()
        again = asyncio.create_task(last.next(kept, 0))
        await asyncio.sleep(0)
        hub.publish([event(1)])
        for observer in crowd[1:-1]:
            observer.detach()
        found = numbers(await asyncio.wait_for(again, 10))
        hub.publish([event(2)])
        assert numbers(await last.next(kept, 1)) == [2]
        await asyncio.gather(*watching)
        return found

    assert asyncio.run(scenario()) == [1]


def test_an_observer_counts_from_entering_to_leaving() -> None:
    hub = Hub()
    observer = hub.observe("t")
    assert hub.count() == 0
    with observer, hub.observe("t"), hub.observe("u"):
        assert hub.count() == 3
    assert hub.count() == 0
    hub.detach(observer)
    hub.publish([event(1)])
    assert taken(observer, store(), 0) == []


@pytest.mark.parametrize("size", [0, 1000, 1_000_000])
def test_what_an_event_holds_weighs(size: int) -> None:
    message = Message(message_id="m", role=Role.AGENT, parts=(TextPart(text="x" * size),))
    for change in (Received(message), Reply(message), StatusChange(TaskState.WORKING, message), chunk(size)):
        assert size <= committed(event(1, change)).size <= size + 1000


@pytest.mark.parametrize(
    "part", [RawPart(raw=b"x" * 500_000), DataPart.of("x" * 500_000), UrlPart(url="https://" + "x" * 500_000)]
)
def test_every_kind_of_part_weighs_what_it_holds(part: RawPart | DataPart | UrlPart) -> None:
    change = ArtifactChunk(Artifact(artifact_id="a", parts=(part,)))
    assert committed(event(1, change)).size >= 500_000


@pytest.mark.parametrize("change", [Resumed(1), Used("wiki"), StatusChange(TaskState.WORKING)])
def test_an_event_without_content_weighs_a_little(change: Change) -> None:
    assert 0 < committed(event(1, change)).size < 1000
