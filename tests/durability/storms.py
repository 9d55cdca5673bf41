"""What callers go through in a storm of crashes, and what the handlers wrote down meanwhile."""

import asyncio
import json
import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from tests.durability.callers import Frame, Sent, followed, send, state_of
from tests.durability.dialects import Dialect
from tests.durability.ledger_store import TERMINAL


@dataclass
class Storm:
    """What callers know of the server, and what they were told so far."""

    http: httpx2.AsyncClient
    up: asyncio.Event = field(default_factory=asyncio.Event)
    acknowledged: dict[str, str] = field(default_factory=dict)
    """The task of each message that was acknowledged in any way; empty where the task is not shown."""

    def note(self, sent: Sent) -> None:
        """Note what came back of a message; its task is the same every time."""
        if sent.is_acknowledged:
            known = self.acknowledged.get(sent.message_id) or sent.task_id
            assert sent.task_id in (known, ""), "a message has become another task"
            self.acknowledged[sent.message_id] = known


@dataclass
class Conversation:
    """A message, and the answers to the questions that it brought, sent by one caller until there is an end."""

    agent: str
    text: str
    how: str
    dialect: Dialect
    messages: list[Sent] = field(default_factory=list)
    last: dict[str, Any] = field(default_factory=dict)

    async def hold(self, storm: Storm) -> None:
        """Send, wait, and after every crash send again or follow, until it is over."""
        sent = Sent(self.agent, self.text, self.how, dialect=self.dialect)
        self.messages.append(sent)
        while True:
            state = await self._turn(storm, sent)
            if state in TERMINAL or "message" in self.last:
                return
            if state == "INPUT_REQUIRED":
                answer = f"answer-{uuid.uuid4()}"
                sent = Sent(self.agent, answer, self.how, to_task=sent.task_id, dialect=self.dialect)
                self.messages.append(sent)

    async def _turn(self, storm: Storm, sent: Sent) -> str:
        """Bring one message to what it is answered with, whatever becomes of the server meanwhile."""
        last_event, how = None, self.how
        while True:
            await storm.up.wait()
            if last_event is None:
                got = await send(storm.http, sent.again(how))
                broken, frames = bool(got.error), got.frames
                storm.note(got)
                sent.task_id = sent.task_id or got.task_id
                self.last = got.answer or self.last
            else:
                frames, broken = await self._followed(storm, sent.task_id, last_event)
            see_no_gap(frames, last_event)
            for frame in frames:
                self.last = frame.data
                last_event = frame.id if sent.task_id else None
            if how == "at once":
                how = "send"  # the same message again, which waits for the end
            elif not broken:
                return state_of(self.last)

    async def _followed(self, storm: Storm, task_id: str, last_event: int) -> tuple[list[Frame], bool]:
        frames: list[Frame] = []
        try:
            async for frame in followed(
                storm.http, self.agent, task_id, last_event=last_event, dialect=self.dialect
            ):
                frames.append(frame)
                if state_of(frame.data) == "INPUT_REQUIRED":
                    break
        except httpx2.TransportError:
            return frames, True
        # A server that stops ends its streams in good order; these are killed.
        return frames, False


def see_no_gap(frames: Sequence[Frame], last_event: int | None) -> None:
    """See that a stream has every event, in order, from the first one that it shows."""
    ids = [frame.id for frame in frames]
    first = ids[0] if ids and last_event is None else (last_event or 0) + 1
    assert ids == list(range(first or 0, (first or 0) + len(ids)))


class Ledger:
    """What the handlers wrote down, read on from where it was read to."""

    def __init__(self, path: Path) -> None:
        self.lines: list[dict[str, Any]] = []
        self.entered: dict[int, dict[str, float]] = defaultdict(dict)
        """For each process, the tasks whose handlers it has entered, and when it did so first."""
        self._path = path
        self._at = 0

    def read(self) -> None:
        """Read what is new."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._at)
            for raw in file:
                if not raw.endswith(b"\n"):
                    break
                self._at += len(raw)
                line = json.loads(raw)
                self.lines.append(line)
                if line["what"] == "in":
                    self.entered[line["pid"]].setdefault(line["task"], line["at"])
