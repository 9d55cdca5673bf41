"""Drives the official Python SDK against one agent and prints what its caller saw, as one JSON document.

    driver.py AGENT_URL JSONRPC|HTTP+JSON[@VERSION] [SCENARIO[=VALUE] ...]

With a protocol version, such as 0.3, the client is given the card with the interfaces of that version alone. The
variable AGENT_BEARER is a token to send with every request.
Without scenarios every one that needs no value runs, all at the same time over shared clients. A scenario that raises
is reported as {"raised": traceback}; judging what the others saw is the test's business. Messages are given in the
SDK's own dict form (ProtoJSON). The same script drives a2a-sdk 1.2.2 and 1.3.0.
"""

import asyncio
import json
import os
import sys
import time
import traceback
import uuid
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path
from typing import Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, create_client
from a2a.types import a2a_pb2 as a2a
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict, ParseDict

DEADLINE = 25.0
UNKNOWN_TASK = "0198f0a0-0000-7000-8000-000000000000"


class Caller:
    """A blocking and a streaming client, made from the card, over one HTTP client that notes its calls."""

    def __init__(self, agent_url: str, binding: str) -> None:
        self.agent_url = agent_url
        self.binding, _, self.version = binding.partition("@")
        self.calls: set[str] = set()
        bearer = os.environ.get("AGENT_BEARER")
        self.http = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {bearer}"} if bearer else {},
            event_hooks={"request": [self._note]},
        )

    async def _note(self, request: httpx.Request) -> None:
        self.calls.add(f"{request.method} {request.url.path}")

    async def connect(self) -> None:
        agent = await self._card_of_version() if self.version else self.agent_url
        self.blocking = await create_client(agent, self._config(streaming=False))
        self.streaming = await create_client(agent, self._config(streaming=True))

    async def _card_of_version(self) -> a2a.AgentCard:
        card = await A2ACardResolver(self.http, self.agent_url).get_agent_card()
        kept = [each for each in card.supported_interfaces if each.protocol_version == self.version]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(kept)
        return card

    def _config(self, streaming: bool) -> ClientConfig:
        return ClientConfig(
            streaming=streaming, supported_protocol_bindings=[self.binding], httpx_client=self.http
        )

    async def send(self, text: str, *, now: bool = False, **ids: str) -> dict[str, Any]:
        """What a non-streaming send answers: {"task": …} or {"message": …}."""
        return await self.send_message(user_message(a2a.Part(text=text), **ids), now=now)

    async def send_message(self, message: a2a.Message, *, now: bool = False) -> dict[str, Any]:
        request = a2a.SendMessageRequest(message=message)
        request.configuration.return_immediately = now
        (answer,) = await collect(self.blocking.send_message(request))
        return answer

    async def send_task(self, text: str, *, now: bool = False, **ids: str) -> dict[str, Any]:
        return (await self.send(text, now=now, **ids))["task"]

    async def get(self, task_id: str, **options: int) -> dict[str, Any]:
        return as_dict(await self.blocking.get_task(a2a.GetTaskRequest(id=task_id, **options)))

    async def cancel(self, task_id: str) -> dict[str, Any]:
        return as_dict(await self.blocking.cancel_task(a2a.CancelTaskRequest(id=task_id)))

    async def subscribe(self, task_id: str) -> list[dict[str, Any]]:
        return await collect(self.streaming.subscribe(a2a.SubscribeToTaskRequest(id=task_id)))

    async def stream(self, text: str) -> list[dict[str, Any]]:
        request = a2a.SendMessageRequest(message=user_message(a2a.Part(text=text)))
        return await collect(self.streaming.send_message(request))

    async def list(self, **filters: Any) -> dict[str, Any]:
        return as_dict(await self.blocking.list_tasks(a2a.ListTasksRequest(**filters)))


async def card(caller: Caller, _: str) -> Any:
    return as_dict(await A2ACardResolver(caller.http, caller.agent_url).get_agent_card())


async def echo(caller: Caller, text: str) -> Any:
    return await caller.send(text or "A dragoman carries words, not opinions. Größe: 名前 🕊")


async def return_immediately(caller: Caller, _: str) -> Any:
    started = time.monotonic()
    first = await caller.send_task("slow 2", now=True)
    return {
        "seconds": time.monotonic() - started,
        "first": first,
        "last": await finished(caller, first["id"]),
    }


async def stream_chunks(caller: Caller, _: str) -> Any:
    events = await caller.stream("stream 5")
    return {"events": events, "task": await caller.get(events[0]["task"]["id"])}


async def stream_progress(caller: Caller, _: str) -> Any:
    return await caller.stream("slow 1")


async def history(caller: Caller, _: str) -> Any:
    task_id = (await caller.send_task("remember this"))["id"]
    return {
        "absent": await caller.get(task_id),
        "zero": await caller.get(task_id, history_length=0),
        "one": await caller.get(task_id, history_length=1),
    }


async def listing(caller: Caller, _: str) -> Any:
    context = str(uuid.uuid4())
    texts = ["one", "two", "fail", "three", "four"]
    sent = [(await caller.send_task(text, context_id=context))["id"] for text in texts]
    pages, token = [], ""
    while not pages or token:
        pages.append(await caller.list(context_id=context, page_size=2, page_token=token))
        token = pages[-1].get("nextPageToken", "")
        assert len(pages) < 9, "the pages never end"
    return {
        "sent": sent,
        "pages": pages,
        "failed": await caller.list(context_id=context, status=a2a.TASK_STATE_FAILED),
        "with_artifacts": await caller.list(context_id=context, include_artifacts=True),
        "elsewhere": await caller.list(context_id=str(uuid.uuid4())),
        "everything": await caller.list(page_size=1),
    }


async def own_listing(caller: Caller, _: str) -> Any:
    """As `listing`, where contexts are given out by the server: all that this caller has is listed."""
    sent = [await caller.send_task(text) for text in ("one", "two", "fail", "three", "four")]
    pages, token = [], ""
    while not pages or token:
        pages.append(await caller.list(page_size=2, page_token=token))
        token = pages[-1].get("nextPageToken", "")
        assert len(pages) < 9, "the pages never end"
    return {
        "sent": [task["id"] for task in sent],
        "pages": pages,
        "failed": await caller.list(status=a2a.TASK_STATE_FAILED),
        "with_artifacts": await caller.list(include_artifacts=True),
        "of one context": await caller.list(context_id=sent[1]["contextId"]),
    }


async def cancel(caller: Caller, _: str) -> Any:
    running = await caller.send_task("slow 30", now=True)
    started = time.monotonic()
    canceled = await caller.cancel(running["id"])
    return {
        "seconds": time.monotonic() - started,
        "running": running,
        "canceled": canceled,
        "read": await caller.get(running["id"]),
        "again": await error_of(caller.cancel(running["id"])),
    }


async def subscribe(caller: Caller, _: str) -> Any:
    running = await caller.send_task("slow 2", now=True)
    return {"running": running, "events": await caller.subscribe(running["id"])}


async def errors(caller: Caller, _: str) -> Any:
    done = await caller.send_task("done soon")
    config = a2a.TaskPushNotificationConfig(task_id=done["id"], url="http://127.0.0.1:9/hook")
    return {
        "get unknown": await error_of(caller.get(UNKNOWN_TASK)),
        "cancel unknown": await error_of(caller.cancel(UNKNOWN_TASK)),
        "subscribe unknown": await error_of(caller.subscribe(UNKNOWN_TASK)),
        "message to unknown": await error_of(caller.send("more", task_id=UNKNOWN_TASK)),
        "message to finished": await error_of(caller.send("more", task_id=done["id"])),
        "subscribe finished": await error_of(caller.subscribe(done["id"])),
        "cancel finished": await error_of(caller.cancel(done["id"])),
        "push create": await error_of(caller.blocking.create_task_push_notification_config(config)),
    }


async def bare_message(caller: Caller, _: str) -> Any:
    return {"sent": await caller.send("message hello"), "streamed": await caller.stream("message hello")}


async def same_context(caller: Caller, _: str) -> Any:
    first = await caller.send_task("first turn")
    second = await caller.send_task("second turn", context_id=first["contextId"])
    return {"first": first, "second": second}


async def repeat(caller: Caller, _: str) -> Any:
    """The same message twice, then another one under its id."""
    message = user_message(a2a.Part(text="once only"))
    first, second = await caller.send_message(message), await caller.send_message(message)
    message.parts[0].text = "something else"
    return {"first": first, "second": second, "changed": await error_of(caller.send_message(message))}


async def outcomes(caller: Caller, _: str) -> Any:
    return {text: await caller.send_task(text) for text in ("fail", "reject", "crash")}


async def artifacts(caller: Caller, _: str) -> Any:
    return {text: (await caller.send_task(text))["artifacts"] for text in ("file", "data", "big 256")}


async def parts(caller: Caller, _: str) -> Any:
    """Files, an address and data there and back: the agent echoes every part."""
    contents = {"binary": bytes(range(256)), "base64": b"dGV4dA==", "empty": b""}
    sent = [
        a2a.Part(raw=content, media_type="application/octet-stream", filename=name)
        for name, content in contents.items()
    ]
    sent.append(a2a.Part(url="https://example.org/a%20b?c=d", media_type="image/png", filename="link"))
    sent += [ParseDict({"data": value}, a2a.Part()) for value in ({"kind": "file", "n": [1, None]}, [1, "2"])]
    message = a2a.Message(message_id=str(uuid.uuid4()), role=a2a.ROLE_USER, parts=sent)
    task = (await caller.send_message(message))["task"]
    return {"sent": as_dict(message), "task": task, "read": await caller.get(task["id"])}


async def digest(caller: Caller, path: str) -> Any:
    """Markdown goes as a file's bytes, everything else as text."""
    file = Path(path)
    part = a2a.Part(text=file.read_text(encoding="utf-8"))
    if file.suffix == ".md":
        part = a2a.Part(raw=file.read_bytes(), media_type="text/markdown", filename=file.name)
    return (await collect(caller.blocking.send_message(a2a.SendMessageRequest(message=user_message(part)))))[
        0
    ]


async def leave(caller: Caller, _: str) -> Any:
    """Finish tasks of several kinds in one context, then read them back."""
    context = str(uuid.uuid4())
    for text in ("keep this", "stream 5", "fail", "file", "data"):
        await caller.send_task(text, context_id=context)
    return await recall(caller, context)


async def recall(caller: Caller, context: str) -> Any:
    """Every task of a context, as listed and as read one by one."""
    listed = (await caller.list(context_id=context, include_artifacts=True))["tasks"]
    return {"context": context, "listed": listed, "read": [await caller.get(task["id"]) for task in listed]}


async def push(caller: Caller, url: str) -> Any:
    """A configuration that comes with a message, and one that is created, read, listed and deleted."""
    request = a2a.SendMessageRequest(message=user_message(a2a.Part(text="stream 3")))
    authentication = a2a.AuthenticationInfo(scheme="Bearer", credentials="s3cr3t")
    request.configuration.task_push_notification_config.CopyFrom(
        a2a.TaskPushNotificationConfig(id="sent", url=url, token="t0k3n", authentication=authentication)
    )
    (answer,) = await collect(caller.blocking.send_message(request))
    client, task_id = caller.blocking, answer["task"]["id"]
    made = a2a.TaskPushNotificationConfig(task_id=task_id, id="made", url=url, authentication=authentication)
    one = a2a.GetTaskPushNotificationConfigRequest(task_id=task_id, id="made")
    both = a2a.ListTaskPushNotificationConfigsRequest(task_id=task_id)
    seen = {
        "task": answer["task"],
        "created": as_dict(await client.create_task_push_notification_config(made)),
        "read": as_dict(await client.get_task_push_notification_config(one)),
        "listed": as_dict(await client.list_task_push_notification_configs(both)),
    }
    away = a2a.DeleteTaskPushNotificationConfigRequest(task_id=task_id, id="made")
    for _ in range(2):
        await client.delete_task_push_notification_config(away)
    return seen | {
        "read after": await error_of(client.get_task_push_notification_config(one)),
        "listed after": as_dict(await client.list_task_push_notification_configs(both)),
    }


STANDARD = (
    card, echo, return_immediately, stream_chunks, stream_progress, history, listing, cancel, subscribe, errors,
    bare_message, same_context, repeat, outcomes, artifacts,
)  # fmt: skip
SCENARIOS = {
    scenario.__name__: scenario for scenario in (*STANDARD, own_listing, parts, digest, leave, recall, push)
}


def user_message(part: a2a.Part, **ids: str) -> a2a.Message:
    return a2a.Message(message_id=str(uuid.uuid4()), role=a2a.ROLE_USER, parts=[part], **ids)


def as_dict(message: Any) -> dict[str, Any]:
    return MessageToDict(message)


async def collect(stream: AsyncIterator[Any]) -> list[dict[str, Any]]:
    async with asyncio.timeout(DEADLINE):
        return [as_dict(event) async for event in stream]


async def finished(caller: Caller, task_id: str) -> dict[str, Any]:
    """The task once it is no longer submitted or working."""
    async with asyncio.timeout(DEADLINE):
        while (task := await caller.get(task_id))["status"]["state"] in {
            "TASK_STATE_SUBMITTED",
            "TASK_STATE_WORKING",
        }:
            await asyncio.sleep(0.1)
        return task


async def error_of(call: Awaitable[Any]) -> dict[str, Any]:
    """The type and text of the SDK's own error, or what came instead of one."""
    try:
        return {"type": None, "answer": repr(await call)}
    except A2AError as error:
        return {"type": type(error).__name__, "message": str(error)}


def outcome(result: Any) -> Any:
    if isinstance(result, BaseException):
        return {"raised": "".join(traceback.format_exception(result))}
    return result


async def main(agent_url: str, binding: str, *wanted: str) -> None:
    caller = Caller(agent_url, binding)
    async with caller.http:
        await caller.connect()
        chosen = [tuple(item.partition("=")[::2]) for item in wanted] or [(s.__name__, "") for s in STANDARD]
        running = [SCENARIOS[name](caller, value) for name, value in chosen]
        results = await asyncio.gather(*running, return_exceptions=True)
    report = {name: outcome(result) for (name, _), result in zip(chosen, results, strict=True)}
    print(json.dumps(report | {"calls": sorted(caller.calls)}))


asyncio.run(main(*sys.argv[1:]))
