"""How many runs go on and how many wait, whose turn it is, and what an agent takes when its queue is full."""

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dragoman import Agent, Run
from dragoman.agents.run import BlockingRun
from dragoman.engines import embedded
from dragoman.model import Task, TaskState
from dragoman.model.errors import MessageIdConflict, QuotaExceeded
from dragoman.model.operation import SendMessage
from tests.contract.rooms import EngineRoom, eventually, state, texts
from tests.contract.samples import message

pytestmark = pytest.mark.embedded

S = TaskState


class Gate:
    """Handlers that note who came, in order, and stand at the gate until it is opened."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.most = 0
        self.open = threading.Event()
        self._running = 0
        self._lock = threading.Lock()

    async def work(self, run: Run) -> str:
        """A handler: `hold` stands at the gate, everything else goes through."""
        with self._lock:
            self.entered.append(run.text)
            self._running += 1
            self.most = max(self.most, self._running)
        try:
            while run.text.startswith("hold") and not self.open.is_set():
                await asyncio.sleep(0.005)
            await asyncio.sleep(0)
        finally:
            with self._lock:
                self._running -= 1
        return run.text

    def agent(self, agent_id: str = "worker", **settings: int) -> Agent:
        """An agent with this handler."""
        made = Agent(id=agent_id, **settings)
        made.handler(self.work)
        return made


@pytest.fixture
def gate() -> Iterator[Gate]:
    """A gate that is open in the end."""
    made = Gate()
    yield made
    made.open.set()


async def held(
    room: EngineRoom, gate: Gate, agent: Agent, text: str = "hold", *, caller: str = "alice"
) -> str:
    """Begin a run that stands at the gate, and see it there."""
    task_id = await room.begin(agent, text, caller=caller)
    await eventually(lambda: text in gate.entered, what=f"{text} is entered")
    return task_id


@contextmanager
def refused(room: EngineRoom) -> Iterator[None]:
    """What happens inside is refused because the queue is full, and nothing is stored."""
    before = room.stored()
    with pytest.raises(QuotaExceeded) as refusal:
        yield
    assert refusal.value.retry_after > 0
    assert refusal.value.metadata == {"limit": "max_waiting"}
    assert room.stored() == before


async def test_a_first_run_is_next_but_one_behind_a_full_queue_of_another_caller(
    room: EngineRoom, gate: Gate
) -> None:
    """The queue is as long as it is by itself, and all of it one caller's."""
    agent = gate.agent(max_runs=1)
    await room.start(agent)
    await held(room, gate, agent)
    await asyncio.gather(*(room.begin(agent, f"alice {number}", caller="alice") for number in range(1000)))
    assert room.counts(agent) == (1, 1000)
    with refused(room):
        await room.begin(agent, caller="alice")
    task_id = await room.begin(agent, "bob", caller="bob")
    gate.open.set()
    assert state(await room.ended(agent, task_id, caller="bob")) is S.COMPLETED
    assert gate.entered[:3] == ["hold", "alice 0", "bob"]


async def test_callers_take_turns_and_each_ones_runs_keep_their_order(room: EngineRoom, gate: Gate) -> None:
    agent = gate.agent(max_runs=1)
    await room.start(agent)
    await held(room, gate, agent)
    sent = ["a1", "a2", "a3", "b1", "b2", "c1", "a4"]
    ids = [await room.begin(agent, text, caller=text[0]) for text in sent]
    gate.open.set()
    for text, task_id in zip(sent, ids, strict=True):
        assert texts(await room.ended(agent, task_id, caller=text[0])) == [text]
    assert gate.entered == ["hold", "a1", "b1", "c1", "a2", "b2", "a3", "a4"]


async def test_no_more_runs_go_on_at_once_in_all_agents_than_may_and_agents_take_turns(
    room: EngineRoom, gate: Gate
) -> None:
    x, y = gate.agent("x"), gate.agent("y")
    await room.start(x, y, max_runs=1)
    await held(room, gate, x)
    sent = [(x, "x1"), (x, "x2"), (x, "x3"), (x, "x4"), (y, "y1"), (y, "y2")]
    ids = [await room.begin(agent, text) for agent, text in sent]
    await eventually(lambda: room.noted() == 6, what="both agents stand in line")
    assert (room.counts(x), room.counts(y)) == ((1, 4), (0, 2))
    gate.open.set()
    for (agent, text), task_id in zip(sent, ids, strict=True):
        assert texts(await room.ended(agent, task_id)) == [text]
    assert gate.most == 1
    assert gate.entered == ["hold", "x1", "y1", "x2", "y2", "x3", "x4"]


async def test_many_runs_of_many_agents_fill_all_places_and_no_more(room: EngineRoom, gate: Gate) -> None:
    agents = [gate.agent(f"agent-{number}", max_runs=3) for number in range(4)]
    await room.start(*agents, max_runs=7)
    ids = [
        (agent, await room.begin(agent, f"hold {agent.id} {number}"))
        for agent in agents
        for number in range(8)
    ]
    await eventually(lambda: len(gate.entered) == 7, what="all places are taken")
    assert sorted(sum(pair) for pair in map(room.counts, agents)) == [8] * 4
    gate.open.set()
    for agent, task_id in ids:
        assert state(await room.ended(agent, task_id, seconds=15.0)) is S.COMPLETED
    assert gate.most == 7
    assert len(gate.entered) == 32


async def test_a_place_that_comes_free_for_an_agent_whose_runs_were_cancelled_goes_to_the_next(
    room: EngineRoom, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, and not when it is noticed that nobody comes for it."""
    monkeypatch.setattr(embedded, "_TICK", 3600)
    x, y, z = gate.agent("x"), gate.agent("y"), gate.agent("z")
    await room.start(x, y, z, max_runs=1)
    await held(room, gate, x)
    cancelled_id = await room.begin(y, "cancelled")
    await eventually(lambda: room.noted() == 1, what="y stands in line")
    next_id = await room.begin(z, "next")
    await eventually(lambda: room.noted() == 2, what="z stands in line")
    await room.cancel(y, cancelled_id)
    await eventually(lambda: room.counts(y) == (0, 0), what="nothing of y waits")
    gate.open.set()
    assert texts(await room.ended(z, next_id)) == ["next"]
    assert gate.entered == ["hold", "next"]


async def test_a_blocked_agent_keeps_no_places_but_those_of_its_runs_that_go_on(
    room: EngineRoom, gate: Gate
) -> None:
    """A place comes free while it stands in line for one; it is blocked and does not come."""
    stuck, other = Agent(id="stuck"), gate.agent("other")
    block = threading.Event()

    @stuck.handler
    async def work(run: Run) -> None:
        gate.entered.append(run.text)
        while run.text == "blocks" and not block.is_set():
            await asyncio.sleep(0.005)
        if run.text == "blocks":
            gate.entered.append("blocked")
            gate.open.wait(20)

    await room.start(stuck, other, max_runs=2)
    held_id = await room.begin(other, "hold other")
    await room.begin(stuck, "blocks")
    await eventually(lambda: len(gate.entered) == 2, what="both places are taken")
    waiting_id = await room.begin(stuck, "waiting")
    await eventually(lambda: room.noted() == 1, what="the agent stands in line")
    next_id = await room.begin(other, "next")
    block.set()
    await eventually(lambda: "blocked" in gate.entered, what="the agent is blocked")
    await room.cancel(other, held_id)
    assert texts(await room.ended(other, next_id)) == ["next"]
    for _ in range(5):
        assert texts(await room.send(other, "and again")) == ["and again"]
    assert "waiting" not in gate.entered
    gate.open.set()
    assert state(await room.ended(stuck, waiting_id)) is S.COMPLETED


async def test_a_message_that_would_begin_a_run_too_many_is_refused_and_not_stored(
    room: EngineRoom, gate: Gate
) -> None:
    agent = gate.agent(max_runs=1, max_waiting=2)
    await room.start(agent)
    await held(room, gate, agent)
    ids = [await room.begin(agent, f"{number}", caller="alice") for number in range(2)]
    repeated = SendMessage(message=message("late"), generation="1.0", return_immediately=True)
    for _ in range(3):
        with refused(room):
            await room.send(agent, repeated, caller="alice")
    gate.open.set()
    for task_id in ids:
        await room.ended(agent, task_id, caller="alice")
    task = await room.send(agent, repeated, caller="alice")
    assert isinstance(task, Task)
    assert texts(await room.ended(agent, task.id, caller="alice")) == ["late"]


async def test_nobody_fills_the_queue_for_the_others(room: EngineRoom, gate: Gate) -> None:
    agent = gate.agent(max_runs=1, max_waiting=2)
    await room.start(agent)
    await held(room, gate, agent)
    for _ in range(2):
        await room.begin(agent, caller="alice")
    for caller in ("bob", "carol"):
        await room.begin(agent, caller=caller)
        with refused(room):
            await room.begin(agent, caller=caller)
    with refused(room):
        await room.begin(agent, caller="dave")
    assert room.counts(agent) == (1, 4)


async def test_of_many_messages_at_once_exactly_as_many_are_accepted_as_have_room(
    room: EngineRoom, gate: Gate
) -> None:
    agent = gate.agent(max_runs=2, max_waiting=5)
    await room.start(agent)
    results = await asyncio.gather(*(room.begin(agent, "hold") for _ in range(60)), return_exceptions=True)
    assert [type(result) for result in results].count(QuotaExceeded) == 53
    assert room.stored() == 7
    await eventually(lambda: room.counts(agent) == (2, 5), what="two go on and five wait")
    gate.open.set()
    for result in results:
        if isinstance(result, str):
            assert state(await room.ended(agent, result)) is S.COMPLETED
    await eventually(lambda: room.counts(agent) == (0, 0), what="all have left")


async def test_callers_that_hang_up_leave_no_room_behind_and_take_none_twice(
    room: EngineRoom, gate: Gate
) -> None:
    agent = gate.agent(max_runs=1, max_waiting=5)
    await room.start(agent)
    sending = [asyncio.ensure_future(room.begin(agent, "hold")) for _ in range(20)]
    await asyncio.sleep(0)
    for one in sending:
        one.cancel()
    await asyncio.wait(sending)
    await eventually(lambda: room.stored() == 6, what="six were accepted all the same")
    with refused(room):
        await room.begin(agent)
    await eventually(lambda: room.counts(agent) == (1, 5), what="five wait")
    gate.open.set()
    await eventually(lambda: room.counts(agent) == (0, 0), what="all have ended")
    assert len(gate.entered) == 6


async def test_cancelling_is_never_refused_and_makes_room(room: EngineRoom, gate: Gate) -> None:
    agent = gate.agent(max_runs=1, max_waiting=1)
    await room.start(agent)
    running_id = await held(room, gate, agent, caller="local")
    waiting_id = await room.begin(agent, "waiting")
    with refused(room):
        await room.begin(agent)
    assert state(await room.cancel(agent, waiting_id)) is S.CANCELED
    await eventually(lambda: room.counts(agent) == (1, 0), what="there is room")
    next_id = await room.begin(agent, "next")
    assert state(await room.cancel(agent, running_id)) is S.CANCELED
    assert texts(await room.ended(agent, next_id)) == ["next"]
    assert gate.entered == ["hold", "next"]


async def test_a_waiting_run_that_another_process_cancels_makes_room(room: EngineRoom, gate: Gate) -> None:
    agent = gate.agent(max_runs=1, max_waiting=3)
    await room.start(agent)
    await held(room, gate, agent, caller="local")
    ids = [await room.begin(agent, f"{number}") for number in range(3)]
    with refused(room):
        await room.begin(agent)
    room.cancel_elsewhere(agent, ids[1])
    await eventually(lambda: room.counts(agent) == (1, 2), what="there is room")
    last_id = await room.begin(agent, "last")
    gate.open.set()
    assert texts(await room.ended(agent, last_id)) == ["last"]
    assert gate.entered == ["hold", "0", "2", "last"]


async def test_a_run_past_its_deadline_makes_room_though_it_was_never_entered(
    room: EngineRoom, gate: Gate
) -> None:
    agent = gate.agent(max_runs=1, max_waiting=1)
    await room.start(agent)
    await held(room, gate, agent)
    waiting_id = await room.begin(agent, "waiting")
    room.shift_clock(3_600_001)
    assert state(await room.ended(agent, waiting_id)) is S.FAILED
    await eventually(lambda: room.counts(agent) == (0, 0), what="there is room")
    assert gate.entered == ["hold"]


async def test_what_was_accepted_is_answered_though_the_queue_is_full(room: EngineRoom, gate: Gate) -> None:
    agent = gate.agent(max_runs=1, max_waiting=1)
    await room.start(agent)
    done = SendMessage(message=message("done"), generation="1.0")
    finished = await room.send(agent, done)
    running_id = await held(room, gate, agent, caller="local")
    waiting = SendMessage(message=message("waiting"), generation="1.0", return_immediately=True)
    accepted = await room.send(agent, waiting)
    stored = room.stored()
    assert await room.send(agent, done) == finished
    again = await room.send(agent, waiting)
    assert isinstance(accepted, Task) and isinstance(again, Task) and again.id == accepted.id
    other = message("another", message_id=done.message.message_id)
    with pytest.raises(MessageIdConflict):
        await room.send(agent, SendMessage(message=other, generation="1.0"))
    more = SendMessage(message=message("more", task_id=running_id), generation="1.0", return_immediately=True)
    joined = await room.send(agent, more)
    assert isinstance(joined, Task)
    assert [turn.text for turn in joined.history] == ["hold", "more"]
    assert room.stored() == stored
    with refused(room):
        await room.begin(agent)


@pytest.mark.parametrize("kind", ["async", "thread"])
async def test_answers_to_parked_runs_are_taken_at_a_full_queue_and_wait_their_turn(
    room: EngineRoom, gate: Gate, kind: str
) -> None:
    agent = Agent(id="worker", max_runs=1, max_waiting=1)

    async def work(run: Run) -> str:
        if run.text.startswith("ask"):
            answer = (await run.ask("Which?")).text
            gate.entered.append(answer)
            return answer
        return await gate.work(run)

    def work_in_thread(run: BlockingRun) -> str:
        if run.text.startswith("ask"):
            answer = run.ask("Which?").text
            gate.entered.append(answer)
            return answer
        gate.entered.append(run.text)
        while run.text == "hold" and not gate.open.wait(20):
            continue
        return run.text

    agent.handler(work if kind == "async" else work_in_thread)
    await room.start(agent)
    parked = [await room.send(agent, f"ask {number}") for number in range(3)]
    await eventually(lambda: room.counts(agent) == (0, 0), what="parked runs neither run nor wait")
    await held(room, gate, agent)
    await room.begin(agent, "waiting", caller="alice")
    with refused(room):
        await room.begin(agent, caller="alice")
    answering = []
    for number, task in enumerate(parked):
        assert isinstance(task, Task) and state(task) is S.INPUT_REQUIRED
        answering.append(asyncio.ensure_future(room.answer(agent, task.id, f"answer {number}")))
        await eventually(
            lambda number=number: room.counts(agent) == (1, number + 2), what="the answered run waits"
        )
    gate.open.set()
    for number, one in enumerate(answering):
        assert texts(await one) == [f"answer {number}"]
    assert gate.entered == ["hold", "waiting", "answer 0", "answer 1", "answer 2"]


async def test_a_restart_takes_up_more_runs_than_may_wait_in_their_order_and_refuses_none_of_them(
    room: EngineRoom, gate: Gate
) -> None:
    agent = gate.agent(max_runs=2)
    await room.start(agent)
    for number in range(2):
        await held(room, gate, agent, f"hold {number}")
    sent = [("alice", f"a{number}") for number in range(40)] + [("bob", f"b{number}") for number in range(3)]
    ids = [await room.begin(agent, text, caller=caller) for caller, text in sent]
    await room.crash()

    narrow = gate.agent(max_runs=1, max_waiting=1)
    gate.entered.clear()
    gate.most = 0
    await room.start(narrow)
    await eventually(lambda: len(gate.entered) == 1, what="one run is entered")
    assert room.counts(narrow) == (1, 44)
    with refused(room):
        await room.begin(narrow, caller="alice")
    gate.open.set()
    for (caller, text), task_id in zip(sent, ids, strict=True):
        assert texts(await room.ended(narrow, task_id, caller=caller, seconds=15.0)) == [text]
    assert gate.most == 1
    of_alice = [text for text in gate.entered if text[0] != "b"]
    assert of_alice == ["hold 0", "hold 1", *(text for caller, text in sent if caller == "alice")]
    assert [text for text in gate.entered[:8] if text[0] == "b"] == ["b0", "b1", "b2"]
    await eventually(lambda: room.counts(narrow) == (0, 0), what="nothing waits")
    assert texts(await room.send(narrow, "and on")) == ["and on"]


async def test_a_full_agent_costs_the_others_nothing(room: EngineRoom, gate: Gate) -> None:
    full, other = (
        gate.agent("full", max_runs=1, max_waiting=0),
        gate.agent("other", max_runs=1, max_waiting=0),
    )
    await room.start(full, other)
    await held(room, gate, full)
    for _ in range(5):
        with refused(room):
            await room.begin(full)
        began = time.monotonic()
        assert texts(await room.send(other, "free")) == ["free"]
        assert time.monotonic() - began < 5.0
        await eventually(lambda: room.counts(other) == (0, 0), what="the place is free again")
