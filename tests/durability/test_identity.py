"""The same message is accepted once, however often, in whatever form and across whatever crash it is sent."""

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import httpx2
import pytest

from dragoman.gateway.extensions import IDEMPOTENCY
from tests.durability.callers import Sent, client, request, send, texts
from tests.durability.dialects import DIALECTS, Dialect
from tests.durability.ledger import LedgerServer
from tests.harness.polling import until

HOWS = ("send", "stream", "at once")
CONFLICT = "MESSAGE_ID_CONFLICT"
GENERATIONS = sorted({dialect.generation for dialect in DIALECTS})


def forms(generation: str) -> list[Dialect]:
    """The forms of A2A of one generation."""
    return [dialect for dialect in DIALECTS if dialect.generation == generation]


def many(first: Sent, count: int) -> list[Sent]:
    """The same message again and again, in all ways and all forms of its generation in turn."""
    ways = [(how, dialect) for dialect in forms(first.dialect.generation) for how in HOWS]
    return [first.again(*ways[number % len(ways)]) for number in range(count)]


def rows(server: LedgerServer) -> list[tuple[int, ...]]:
    """How many rows of each kind the store has."""
    tables = ("task", "event", "identity")
    return server.store.rows(f"SELECT {', '.join(f'(SELECT count(*) FROM {name})' for name in tables)}")  # noqa: S608


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize(("agent", "text"), [("worker", "slow 0.5"), ("talker", "say 0.5")])
async def test_fifty_equal_messages_at_once_are_one_run(
    standing: LedgerServer, generation: str, agent: str, text: str
) -> None:
    first = Sent(agent, text, dialect=forms(generation)[0])
    messages = many(first, 50)
    before = rows(standing)[0]
    async with client(standing.url) as http:
        await asyncio.gather(*(send(http, message) for message in messages))
    assert [message.error for message in messages] == [""] * 50
    assert Counter(message.replayed for message in messages) == {True: 49, False: 1}
    entered = [line for line in standing.noted(what="entered") if line["message"] == first.message_id]
    assert [line["attempt"] for line in entered] == [1]
    after = rows(standing)[0]
    assert (after[0] - before[0], after[2] - before[2]) == (1, 1)
    if agent == "worker":
        assert {message.task_id for message in messages} == {entered[0]["task"]}
        assert {message.state for message in messages if message.how != "at once"} == {"COMPLETED"}
    else:
        assert len({said_in(message) for message in messages}) == 1
    standing.store.check()


def said_in(message: Sent) -> tuple[str, str]:
    """The id and the text of the bare message that was the answer."""
    answer = message.answer or message.frames[-1].data
    told = answer["message"]
    return told["messageId"], "".join(part["text"] for part in told.get("parts", told.get("content")))


@pytest.mark.parametrize(("agent", "text"), [("worker", "steps 4"), ("talker", "say 0.4")])
async def test_fifty_equal_messages_across_a_crash_are_one_run(
    server: LedgerServer, agent: str, text: str
) -> None:
    """All are sent before it; whoever was not answered sends again after it, all at once."""
    server.start()
    first = Sent(agent, text)
    messages = many(first, 50)
    async with client(server.url) as http:
        sending = [asyncio.ensure_future(send(http, message)) for message in messages]
        await asyncio.to_thread(server.await_note, "entered")
        await asyncio.to_thread(server.kill)
        await asyncio.gather(*sending)
    assert sum(bool(message.error) for message in messages) > 20
    server.start()
    again = [message.again() for message in messages]
    async with client(server.url) as http:
        await asyncio.gather(*(send(http, message) for message in again))
    assert [message.error for message in again] == [""] * 50
    assert [message.replayed for message in again] == [True] * 50
    entered = server.noted(what="entered")
    assert [(line["message"], line["attempt"]) for line in entered] == [
        (first.message_id, 1),
        (first.message_id, 2),
    ]
    assert rows(server)[0][0] == 1
    if agent == "worker":
        known = {message.task_id for message in (*messages, *again)} - {""}
        assert known == {entered[0]["task"]}
        task = await asyncio.to_thread(server.ended, agent, entered[0]["task"])
        assert texts(task) == ["steps done"]
    else:
        assert len({said_in(message) for message in again}) == 1
    server.store.check()


def pairs() -> Iterator[tuple[Dialect, Dialect, str]]:
    """Every form that a message is sent in first, every form that it is sent in again, and how."""
    return ((one, other, how) for one in DIALECTS for other in DIALECTS for how in HOWS)


async def refusals(http: httpx2.AsyncClient, messages: Sequence[Sent]) -> list[str]:
    """Why each message was refused; empty for one that was not."""
    replies = await asyncio.gather(*(request(http, message.request()) for message in messages))
    return [message.dialect.reason(reply) for message, reply in zip(messages, replies, strict=True)]


async def test_in_another_form_a_message_is_the_same_and_in_another_generation_it_is_a_conflict(
    standing: LedgerServer,
) -> None:
    async with client(standing.url) as http:
        firsts = {dialect: await send(http, Sent("worker", "quick", dialect=dialect)) for dialect in DIALECTS}
        before = rows(standing)
        for one, other, how in pairs():
            again = firsts[one].again(how, other)
            if one.generation == other.generation:
                await send(http, again)
                assert again.replayed and again.task_id == firsts[one].task_id
            else:
                assert await refusals(http, [again]) == [CONFLICT]
        assert rows(standing) == before


async def test_one_changed_character_is_a_conflict_in_every_form_and_stores_nothing(
    standing: LedgerServer,
) -> None:
    async with client(standing.url) as http:
        for agent, text in (("worker", "quick"), ("either", "quick"), ("talker", "say 0")):
            firsts = {dialect: await send(http, Sent(agent, text, dialect=dialect)) for dialect in DIALECTS}
            before = rows(standing)
            for one, other, how in pairs():
                changed = Sent(agent, text.upper(), how, message_id=firsts[one].message_id, dialect=other)
                assert await refusals(http, [changed]) == [CONFLICT]
            assert rows(standing) == before
            ids = {first.message_id for first in firsts.values()}
            entered = [line["message"] for line in standing.noted(what="entered", agent=agent)]
            assert sorted(one for one in entered if one in ids) == sorted(ids)


def runs_of(server: LedgerServer, message_id: str) -> list[dict[str, Any]]:
    """What the handlers noted of the runs of a message."""
    return [line for line in server.noted(what="entered") if line["message"] == message_id]


async def test_of_different_messages_racing_under_one_id_one_is_accepted_and_the_others_are_refused(
    standing: LedgerServer,
) -> None:
    async with client(standing.url) as http:
        for number in range(10):
            first = Sent("worker", f"slow 0.1 {number}")
            messages = [
                Sent("worker", f"slow 0.1{letter}", how, message_id=first.message_id, dialect=dialect)
                for dialect, how, letter in zip(DIALECTS * 3, HOWS * 5, "11122233344455", strict=False)
            ]
            replies = await asyncio.gather(*(request(http, message.request()) for message in messages))
            reasons = [
                message.dialect.reason(reply) if reply.headers["content-type"] != "text/event-stream" else ""
                for message, reply in zip(messages, replies, strict=True)
            ]
            won = {
                (message.text, message.dialect.generation)
                for message, reason in zip(messages, reasons, strict=True)
                if not reason
            }
            assert len(won) == 1
            assert set(reasons) == {"", CONFLICT}
            # The reply to one that does not wait may be quicker than its run.
            entered = await asyncio.to_thread(
                until,
                partial(runs_of, standing, first.message_id),
                what="the message that was accepted to be run",
            )
            assert len(entered) == 1


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
async def test_an_agent_may_have_it_asked_for_by_the_extension(
    standing: LedgerServer, dialect: Dialect
) -> None:
    async with client(standing.url) as http:
        plain = [
            await send(http, Sent("on-request", "quick", message_id="free", dialect=dialect)) for _ in "ab"
        ]
        assert len({message.task_id for message in plain}) == 2
        assert [message.replayed for message in plain] == [False, False]
        http.headers[dialect.extension_header] = IDEMPOTENCY.uri
        first = Sent("on-request", "slow 0.3", dialect=dialect)
        bound = many(first, 20)
        await asyncio.gather(*(send(http, message) for message in bound))
        assert len({message.task_id for message in bound}) == 1
        assert Counter(message.replayed for message in bound) == {True: 19, False: 1}
        changed = Sent("on-request", "slow 0.4", message_id=first.message_id, dialect=dialect)
        assert await refusals(http, [changed]) == [CONFLICT]
    assert len(standing.noted(what="entered", task=bound[0].task_id)) == 1
