"""What an engine makes of a handler's answer: every kind of handler, every kind of result, every act."""

from collections.abc import Callable
from typing import Any

import pytest

from dragoman import Agent, Run
from dragoman.agents.run import BlockingRun
from dragoman.model import (
    Artifact,
    ArtifactChunk,
    DataPart,
    Message,
    RawPart,
    Role,
    StatusChange,
    Task,
    TaskState,
    TextPart,
)
from dragoman.model.errors import IllegalChange, InvalidAgentResponse, TaskNotFound
from dragoman.model.operation import SendMessage
from dragoman.model.payload import pack
from tests.contract.rooms import EngineRoom, eventually, said, state, texts
from tests.contract.samples import message

S = TaskState


async def coroutine(run: Run) -> str:
    return f"Hello, {run.text}!"


def function(run: BlockingRun) -> str:
    return f"Hello, {run.text}!"


async def async_text(text: str) -> str:
    return f"Hello, {text}!"


def plain_text(text: str) -> str:
    return f"Hello, {text}!"


def agent_of(handler: Callable[..., Any], **settings: Any) -> Agent:
    agent = Agent(id="worker", **settings)
    agent.handler(handler)
    return agent


def chunk_marks(changes: list[Any]) -> list[tuple[bool, bool]]:
    return [(one.append, one.last_chunk) for one in changes if isinstance(one, ArtifactChunk)]


@pytest.mark.parametrize("handler", [coroutine, function], ids=lambda handler: handler.__name__)
async def test_what_a_function_returns_is_one_whole_artifact(
    room: EngineRoom, handler: Callable[..., Any]
) -> None:
    agent = agent_of(handler)
    await room.start(agent)
    task = await room.send(agent, "world")
    assert isinstance(task, Task)
    assert (state(task), texts(task)) == (S.COMPLETED, ["Hello, world!"])
    assert [turn.text for turn in task.history] == ["world"]
    changes = said(await room.events(task.id))
    assert chunk_marks(changes) == [(False, True)]
    assert changes[-1] == StatusChange(S.COMPLETED)


@pytest.mark.parametrize("function", [async_text, plain_text], ids=lambda function: function.__name__)
async def test_an_ordinary_function_of_text_is_an_agent(
    room: EngineRoom, function: Callable[[str], Any]
) -> None:
    agent = Agent.from_function(function)
    await room.start(agent)
    assert texts(await room.send(agent, "world")) == ["Hello, world!"]


@pytest.mark.parametrize(
    ("result", "parts"),
    [
        ("", [[TextPart(text="")]]),
        ({"n": 10**30, "z": None}, [[DataPart.of({"n": 10**30, "z": None})]]),
        ([1, "two", {}], [[DataPart.of([1, "two", {}])]]),
        (b"\x00\xff", [[RawPart(raw=b"\x00\xff", media_type="application/octet-stream")]]),
        (TextPart(text="t", metadata=pack({"a": 1})), [[TextPart(text="t", metadata=pack({"a": 1}))]]),
        ([TextPart(text="a"), RawPart(raw=b"b")], [[TextPart(text="a"), RawPart(raw=b"b")]]),
        (Artifact(artifact_id="x", parts=(TextPart(text="whole"),)), [[TextPart(text="whole")]]),
        (
            [Artifact(artifact_id=name, parts=(TextPart(text=name),)) for name in "ab"],
            [[TextPart(text="a")], [TextPart(text="b")]],
        ),
        (None, []),
    ],
    ids=["text", "object", "list", "bytes", "part", "parts", "artifact", "artifacts", "nothing"],
)
async def test_every_kind_of_result_becomes_the_artifacts_it_stands_for(
    room: EngineRoom, result: object, parts: list[list[object]]
) -> None:
    async def give(run: Run) -> object:
        return result

    agent = agent_of(give)
    await room.start(agent)
    task = await room.send(agent, "go")
    assert isinstance(task, Task)
    assert state(task) is S.COMPLETED
    assert [list(artifact.parts) for artifact in task.artifacts or ()] == parts


@pytest.mark.parametrize("handler", [coroutine, function], ids=lambda handler: handler.__name__)
async def test_an_agent_that_replies_with_messages_never_shows_a_task(
    room: EngineRoom, handler: Callable[..., Any]
) -> None:
    agent = agent_of(handler, replies="message")
    await room.start(agent)
    sent = SendMessage(message=message("world", context_id="talk"), generation="1.0")
    reply = await room.send(agent, sent)
    assert isinstance(reply, Message)
    assert (reply.text, reply.role, reply.task_id, reply.context_id) == (
        "Hello, world!",
        Role.AGENT,
        "",
        "talk",
    )
    assert await room.send(agent, sent) == reply


async def test_a_message_agent_without_a_reply_is_an_error_of_the_agent(room: EngineRoom) -> None:
    async def silent(run: Run) -> None:
        return None

    agent = agent_of(silent, replies="message")
    await room.start(agent)
    with pytest.raises(InvalidAgentResponse):
        await room.send(agent, "Hello?")


@pytest.mark.parametrize(("replies", "kind"), [("task", Task), ("either", Message), ("message", Message)])
async def test_a_bare_reply_is_a_message_unless_the_agent_replies_with_tasks(
    room: EngineRoom, replies: str, kind: type
) -> None:
    task_ids = []

    async def answer(run: Run) -> None:
        task_ids.append(run.task_id)
        await run.reply("Hi")

    agent = agent_of(answer, replies=replies)
    await room.start(agent)
    result = await room.send(agent, "Hello")
    assert isinstance(result, kind)
    if isinstance(result, Task):
        assert (state(result), result.status.message and result.status.message.text) == (S.COMPLETED, "Hi")
    else:
        assert isinstance(result, Message)
        assert (result.text, result.task_id) == ("Hi", "")
        with pytest.raises(TaskNotFound):
            await room.read(agent, task_ids[0])


async def test_acts_become_events_in_their_order(room: EngineRoom) -> None:
    async def act(run: Run) -> None:
        await run.working("reading")
        report = await run.artifact("one ", name="report", last=False)
        await run.append(report, "two ")
        await run.append(report, "three", last=True)
        await run.artifact({"total": 3}, artifact_id="numbers")
        await run.working("writing", metadata={"done": 0.5})
        await run.complete("all done")

    def same_in_a_thread(run: BlockingRun) -> None:
        run.working("reading")
        report = run.artifact("one ", name="report", last=False)
        run.append(report, "two ")
        run.append(report, "three", last=True)
        run.artifact({"total": 3}, artifact_id="numbers")
        run.working("writing", metadata={"done": 0.5})
        run.complete("all done")

    first, second = Agent(id="first"), Agent(id="second")
    first.handler(act)
    second.handler(same_in_a_thread)
    await room.start(first, second)
    for agent in (first, second):
        task = await room.send(agent, "go")
        assert isinstance(task, Task)
        assert texts(task) == ["one two three", ""]
        assert task.artifacts is not None
        assert (task.artifacts[0].name, task.artifacts[1].artifact_id) == ("report", "numbers")
        assert task.artifacts[1].parts == (DataPart.of({"total": 3}),)
        assert [turn.text for turn in task.history] == ["go", "reading", "writing"]
        assert task.status.message is not None
        assert (state(task), task.status.message.text) == (S.COMPLETED, "all done")
        changes = said(await room.events(task.id))
        kinds = ["artifact" if isinstance(one, ArtifactChunk) else one.state.name for one in changes]
        assert kinds == ["WORKING", *["artifact"] * 4, "WORKING", "COMPLETED"]
        assert chunk_marks(changes) == [(False, False), (True, False), (True, True), (False, True)]
        assert changes[-2].metadata == pack({"done": 0.5})


@pytest.mark.parametrize(("act", "ending"), [("fail", S.FAILED), ("reject", S.REJECTED)])
async def test_a_handler_can_end_its_run_in_another_way(
    room: EngineRoom, act: str, ending: TaskState
) -> None:
    later: list[BaseException] = []

    async def end(run: Run) -> str:
        await getattr(run, act)("because")
        for again in (run.complete(), run.artifact("late"), run.working("late")):
            try:
                await again
            except IllegalChange as error:
                later.append(error)
        return "ignored, the run has ended"

    agent = agent_of(end)
    await room.start(agent)
    task = await room.send(agent, "go")
    assert isinstance(task, Task)
    assert task.status.message is not None
    assert (state(task), task.status.message.text, texts(task)) == (ending, "because", [])
    await eventually(lambda: len(later) == 3, what="every later act is refused")
    assert len(await room.events(task.id)) == 2


@pytest.mark.parametrize("blocking", [False, True], ids=["async", "thread"])
async def test_a_run_knows_its_request(room: EngineRoom, blocking: bool) -> None:
    facts: dict[str, Any] = {}
    names = (
        "text parts id task_id context_id attempt principal tenant accepted_output_modes metadata cancelled"
    )

    async def note(run: Run) -> None:
        facts.update({name: getattr(run, name) for name in names.split()}, deadline=run.deadline)

    def note_in_thread(run: BlockingRun) -> None:
        facts.update({name: getattr(run, name) for name in names.split()}, deadline=run.deadline)

    agent = agent_of(note_in_thread if blocking else note, deadline=60.0)
    await room.start(agent)
    sent = message("What?", context_id="talk")
    task = await room.send(
        agent,
        SendMessage(
            message=sent, generation="1.0", accepted_output_modes=("text/html",), metadata=pack({"k": [1]})
        ),
    )
    assert isinstance(task, Task)
    deadline = facts.pop("deadline")
    assert deadline == pytest.approx((await room.events(task.id))[0].at / 1000 + 60.0)
    assert facts == {
        "text": "What?",
        "parts": sent.parts,
        "id": task.id,
        "task_id": task.id,
        "context_id": "talk",
        "attempt": 1,
        "principal": "local",
        "tenant": "local",
        "accepted_output_modes": ("text/html",),
        "metadata": {"k": [1]},
        "cancelled": False,
    }
