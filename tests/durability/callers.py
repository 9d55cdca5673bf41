"""Callers of a server, many at a time: sends, streams, and what came of each."""

import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

VERSION = {"A2A-Version": "1.0"}
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=0)


@dataclass(frozen=True)
class Frame:
    """One event of a stream."""

    id: int | None
    data: dict[str, Any]

    @property
    def kind(self) -> str:
        """`task`, `message`, `statusUpdate` or `artifactUpdate`."""
        return next(iter(self.data))


@dataclass
class Sent:
    """A message on its way, and what is known of it so far."""

    agent: str
    text: str
    how: str = "send"
    message_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    to_task: str = ""
    task_id: str = ""
    answer: dict[str, Any] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    error: str = ""

    @property
    def is_acknowledged(self) -> bool:
        """Whether the server has said anything that tells that the message was accepted."""
        return bool(self.task_id or self.answer or self.frames)

    @property
    def state(self) -> str:
        """The last state that was seen, without its prefix."""
        seen = [self.answer.get("task", {}).get("status")]
        seen += [next(iter(frame.data.values())).get("status") for frame in self.frames]
        states = [status["state"].removeprefix("TASK_STATE_") for status in seen if status]
        return states[-1] if states else ""


def body(sent: Sent, *, at_once: bool = False) -> dict[str, Any]:
    """The request message."""
    message = {"messageId": sent.message_id, "role": "ROLE_USER", "parts": [{"text": sent.text}]}
    if sent.to_task:
        message["taskId"] = sent.to_task
    return {"message": message} | ({"configuration": {"returnImmediately": True}} if at_once else {})


@contextlib.asynccontextmanager
async def client(url: str, *, timeout: float = 60.0) -> AsyncIterator[httpx2.AsyncClient]:
    """A client without proxies and without a limit on connections."""
    async with httpx2.AsyncClient(
        base_url=url, headers=VERSION, limits=LIMITS, timeout=timeout, trust_env=False
    ) as made:
        yield made


async def send(http: httpx2.AsyncClient, sent: Sent) -> Sent:
    """Send a message in its way (`send`, `stream`, or `at once`) and note all that comes back.

    A connection that breaks is noted as `error`; what came before it stays.
    """
    path = f"/agents/{sent.agent}/message"
    try:
        if sent.how == "stream":
            async for frame in frames(http, "POST", f"{path}:stream", document=body(sent)):
                sent.frames.append(frame)
                sent.task_id = sent.task_id or frame.data.get("task", {}).get("id", "")
        else:
            reply = await http.post(f"{path}:send", json=body(sent, at_once=sent.how == "at once"))
            assert reply.status_code == 200, reply.text
            sent.answer = reply.json()
            sent.task_id = sent.answer.get("task", {}).get("id", "")
    except httpx2.TransportError as error:
        sent.error = type(error).__name__
    return sent


async def frames(
    http: httpx2.AsyncClient,
    method: str,
    path: str,
    *,
    document: object = None,
    headers: Mapping[str, str] | None = None,
) -> AsyncIterator[Frame]:
    """The events of a stream as they come; closing the iterator drops the connection."""
    async with http.stream(method, path, json=document, headers=dict(headers or {})) as reply:
        if reply.status_code != 200:
            await reply.aread()
            raise AssertionError(f"{reply.status_code}: {reply.text}")
        assert reply.headers["content-type"] == "text/event-stream"
        event_id: int | None = None
        async for line in reply.aiter_lines():
            if line.startswith("id: "):
                event_id = int(line.removeprefix("id: "))
            elif line.startswith("data: "):
                yield Frame(event_id, json.loads(line.removeprefix("data: ")))
                event_id = None


async def subscription(
    http: httpx2.AsyncClient, agent: str, task_id: str, *, last_event: int | None = None
) -> list[Frame]:
    """All events of a subscription, to its end."""
    headers = {} if last_event is None else {"Last-Event-ID": str(last_event)}
    path = f"/agents/{agent}/tasks/{task_id}:subscribe"
    return [frame async for frame in frames(http, "POST", path, headers=headers)]


def texts(task: Mapping[str, Any]) -> list[str]:
    """The text of each artifact of a task."""
    return ["".join(part["text"] for part in one["parts"]) for one in task.get("artifacts", ())]
