"""Callers of a server, many at a time: sends, streams, and what came of each."""

import asyncio
import contextlib
import json
import uuid
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx2

from tests.durability.dialects import HTTP, Dialect, Request, Said

VERSION = {"A2A-Version": "1.0"}
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=0)


@dataclass(frozen=True)
class Frame:
    """One event of a stream, in the words of 1.0."""

    id: int | None
    data: dict[str, Any]

    @property
    def kind(self) -> str:
        """`task`, `message`, `statusUpdate` or `artifactUpdate`."""
        return next(iter(self.data))


class Refused(AssertionError):
    """A stream was refused, which most tests do not expect; `reason` says why."""

    def __init__(self, reason: str, reply: httpx2.Response) -> None:
        super().__init__(f"{reply.status_code}: {reply.text}")
        self.reason = reason


@dataclass
class Sent:
    """A message on its way, and what is known of it so far, in the words of 1.0.

    `how` it is sent: `send`, `stream`, or `at once`, which does not wait.
    """

    agent: str
    text: str
    how: str = "send"
    message_id: str = field(default_factory=lambda: str(uuid.uuid4()))
    to_task: str = ""
    dialect: Dialect = HTTP
    task_id: str = ""
    replayed: bool = False
    answer: dict[str, Any] = field(default_factory=dict)
    frames: list[Frame] = field(default_factory=list)
    error: str = ""

    def again(self, how: str = "", dialect: Dialect | None = None) -> "Sent":
        """The same message, to be sent once more, perhaps in another way."""
        return Sent(
            self.agent,
            self.text,
            how or self.how,
            message_id=self.message_id,
            to_task=self.to_task,
            dialect=dialect or self.dialect,
        )

    def request(self) -> Request:
        """The request that sends it."""
        said = Said(self.message_id, self.text, self.to_task)
        if self.how == "stream":
            return self.dialect.stream(self.agent, said)
        return self.dialect.send(self.agent, said, at_once=self.how == "at once")

    @property
    def is_acknowledged(self) -> bool:
        """Whether the server has said anything that tells that the message was accepted."""
        return bool(self.task_id or self.answer or self.frames)

    @property
    def state(self) -> str:
        """The last state that was seen, without its prefix."""
        return state_of(self.answer, *(frame.data for frame in self.frames))


def body(sent: Sent, *, at_once: bool = False) -> dict[str, Any]:
    """The request message of 1.0."""
    said = Said(sent.message_id, sent.text, sent.to_task)
    document: dict[str, Any] = HTTP.send(sent.agent, said, at_once=at_once).document
    return document


def state_of(*seen: Mapping[str, Any]) -> str:
    """The last state that answers or events tell of, without its prefix."""
    statuses = [one.get("status") for document in seen for one in document.values()]
    states = [status["state"].removeprefix("TASK_STATE_") for status in statuses if status]
    return states[-1] if states else ""


@contextlib.asynccontextmanager
async def client(url: str, *, timeout: float = 60.0) -> AsyncIterator[httpx2.AsyncClient]:
    """A client without proxies and without a limit on connections; it speaks 1.0 where no other version is named."""
    async with httpx2.AsyncClient(
        base_url=url, headers=VERSION, limits=LIMITS, timeout=timeout, trust_env=False
    ) as made:
        yield made


async def send(http: httpx2.AsyncClient, sent: Sent) -> Sent:
    """Send a message in its way and note all that comes back.

    A connection that breaks is noted as `error`; what came before it stays.
    """
    try:
        if sent.how == "stream":
            async for frame in streamed(http, sent):
                sent.frames.append(frame)
        else:
            reply = await request(http, sent.request())
            assert sent.dialect.reason(reply) == "", reply.text
            sent.answer = sent.dialect.read(reply.json())
            sent.task_id = sent.answer.get("task", {}).get("id", "")
            sent.replayed = "idempotent-replayed" in reply.headers
    except httpx2.TransportError as error:
        sent.error = type(error).__name__
    return sent


async def request(http: httpx2.AsyncClient, made: Request) -> httpx2.Response:
    """Send a request and return its reply, whatever its status."""
    return await http.request(made.method, made.path, json=made.document, headers=dict(made.headers))


async def streamed(http: httpx2.AsyncClient, sent: Sent) -> AsyncIterator[Frame]:
    """Send a message and give the events of its stream; closing the iterator drops the connection."""
    made = sent.request()
    async with http.stream(made.method, made.path, json=made.document, headers=dict(made.headers)) as reply:
        sent.replayed = "idempotent-replayed" in reply.headers
        async for frame in read_frames(reply, sent.dialect):
            sent.task_id = sent.task_id or frame.data.get("task", {}).get("id", "")
            yield frame


async def frames(
    http: httpx2.AsyncClient,
    method: str,
    path: str,
    *,
    document: object = None,
    headers: Mapping[str, str] | None = None,
    dialect: Dialect = HTTP,
) -> AsyncIterator[Frame]:
    """The events of a stream as they come; closing the iterator drops the connection."""
    async with http.stream(method, path, json=document, headers=dict(headers or {})) as reply:
        async for frame in read_frames(reply, dialect):
            yield frame


async def read_frames(reply: httpx2.Response, dialect: Dialect) -> AsyncIterator[Frame]:
    """The events of a stream that has begun. Raises `Refused` if it was refused."""
    if reply.headers["content-type"] != "text/event-stream":
        await reply.aread()
        raise Refused(dialect.reason(reply), reply)
    event_id: int | None = None
    async for line in reply.aiter_lines():
        if line.startswith("id: "):
            event_id = int(line.removeprefix("id: "))
        elif line.startswith("data: "):
            yield Frame(event_id, dialect.read(json.loads(line.removeprefix("data: "))))
            event_id = None


async def subscription(
    http: httpx2.AsyncClient,
    agent: str,
    task_id: str,
    *,
    last_event: int | None = None,
    dialect: Dialect = HTTP,
) -> list[Frame]:
    """All events of a subscription, to its end."""
    return [frame async for frame in followed(http, agent, task_id, last_event=last_event, dialect=dialect)]


def followed(
    http: httpx2.AsyncClient,
    agent: str,
    task_id: str,
    *,
    last_event: int | None = None,
    dialect: Dialect = HTTP,
) -> AsyncIterator[Frame]:
    """The events of a subscription as they come."""
    headers = {} if last_event is None else {"Last-Event-ID": str(last_event)}
    made = dialect.subscribe(agent, task_id)
    return frames(
        http,
        made.method,
        made.path,
        document=made.document,
        headers=headers | dict(made.headers),
        dialect=dialect,
    )


async def connected(url: str, made: Request) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection of its own on which a request was sent, and nothing was read yet. To be dropped by its writer."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=1024)
    body = json.dumps(made.document).encode()
    lines = [f"{made.method} {made.path} HTTP/1.1", f"Host: {host}", "Content-Type: application/json"]
    lines += [f"{name}: {value}" for name, value in made.headers.items()]
    writer.write("\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body)
    await writer.drain()
    return reader, writer


def texts(task: Mapping[str, Any]) -> list[str]:
    """The text of each artifact of a task."""
    return ["".join(part["text"] for part in one["parts"]) for one in task.get("artifacts", ())]
