"""Many callers at once."""

import asyncio

from tests.durability.callers import Sent, client, send, texts
from tests.durability.ledger import LedgerServer
from tests.harness import engines

CHUNKS = 6
MANY = 40 if engines.is_temporal() else 200
"""Temporal's development server makes two to three runs a second."""


async def test_hundreds_of_sends_at_once_half_of_them_streams_all_complete(standing: LedgerServer) -> None:
    messages = [
        Sent(
            "worker", f"stream {CHUNKS}" if number % 4 < 2 else "slow 0.3", "stream" if number % 2 else "send"
        )
        for number in range(MANY)
    ]
    async with client(standing.url) as http:
        await asyncio.gather(*(send(http, message) for message in messages))

    assert [message.error for message in messages] == [""] * MANY
    assert [message.state for message in messages] == ["COMPLETED"] * MANY
    assert len({message.task_id for message in messages}) == MANY
    numbers = "".join(f"{number} " for number in range(1, CHUNKS + 1))
    for message in messages:
        streams = message.text.startswith("stream")
        if message.how == "send":
            expected = [numbers, "stream done"] if streams else ["slow done"]
            assert texts(message.answer["task"]) == expected
            continue
        ids = [frame.id for frame in message.frames]
        assert message.frames[0].kind == "task"
        assert ids == list(range(ids[0] or 0, len(ids) + (ids[0] or 0)))
        chunks = [frame for frame in message.frames if frame.kind == "artifactUpdate"]
        assert len(chunks) == (CHUNKS + 1 if streams else 1)
    stored = standing.store.messages()
    assert {message.message_id: message.task_id for message in messages}.items() <= stored.items()
    standing.store.check()
    ids = {message.task_id for message in messages}
    for what in ("entered", "left"):
        assert sum(line["task"] in ids for line in standing.noted(what=what)) == MANY
