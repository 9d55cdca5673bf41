"""Drives the official Python SDK of A2A 0.3 against one agent and prints what its caller saw, as one JSON document.

    driver.py AGENT_URL JSONRPC|HTTP+JSON|A2AClient [SCENARIO[=VALUE] ...]

`A2AClient` is the SDK's older client, JSON-RPC only; the other two are clients of its factory. Without scenarios every
one that needs no value runs, all at the same time over shared clients. A scenario that raises is reported as
{"raised": traceback}; judging what the others saw is the test's business. Tasks, messages and events are reported in
the SDK's own form, with `kind`.
"""

import asyncio
import base64
import json
import sys
import time
import traceback
import uuid
import warnings
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import httpx
from a2a import types as a2a
from a2a.client import A2ACardResolver, A2AClient, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError, A2AClientHTTPError, A2AClientJSONRPCError

DEADLINE = 25.0
UNKNOWN_TASK = "0198f0a0-0000-7000-8000-000000000000"
DATA = {
    "kind": "file",
    "role": 7,
    "status": None,
    "nested": {"list": [1, "2", {"three": 3.5}, [], {}], "yes": True},
    "größe": "名前 🕊\u2028",
    "large": 12345678901234567890,
}


class FactoryCaller:
    """A blocking, a polling and a streaming client from the factory, over one HTTP client."""

    def __init__(self, http: httpx.AsyncClient, card: a2a.AgentCard, binding: str) -> None:
        def client(**options: bool) -> Any:
            config = ClientConfig(httpx_client=http, supported_transports=[binding], **options)
            return ClientFactory(config).create(card)

        self.blocking = client(streaming=False)
        self.polling = client(streaming=False, polling=True)
        self.streaming = client(streaming=True)

    async def send(self, message: a2a.Message, *, now: bool, history: int | None, metadata: Any) -> Any:
        client = self.polling if now else self.blocking
        configuration = None if history is None else a2a.MessageSendConfiguration(history_length=history)
        answers = client.send_message(message, configuration=configuration, request_metadata=metadata)
        (answer,) = [answer async for answer in answers]
        return answer[0] if isinstance(answer, tuple) else answer

    async def stream(self, message: a2a.Message) -> AsyncIterator[Any]:
        async for event in self.streaming.send_message(message):
            yield _of_client_event(event)

    async def get(self, query: a2a.TaskQueryParams) -> Any:
        return await self.blocking.get_task(query)

    async def cancel(self, task: a2a.TaskIdParams) -> Any:
        return await self.blocking.cancel_task(task)

    async def resubscribe(self, task: a2a.TaskIdParams) -> AsyncIterator[Any]:
        async for event in self.streaming.resubscribe(task):
            yield _of_client_event(event)

    async def push(self, config: a2a.TaskPushNotificationConfig) -> Any:
        return await self.blocking.set_task_callback(config)

    async def pushed(self, wanted: a2a.GetTaskPushNotificationConfigParams) -> Any:
        return await self.blocking.get_task_callback(wanted)

    async def card(self) -> Any:
        return await self.blocking.get_card()


class OlderCaller:
    """The deprecated client: whole JSON-RPC requests in, whole responses out, errors among them."""

    def __init__(self, http: httpx.AsyncClient, card: a2a.AgentCard) -> None:
        self.client = A2AClient(http, agent_card=card)

    async def send(self, message: a2a.Message, *, now: bool, history: int | None, metadata: Any) -> Any:
        params = a2a.MessageSendParams(message=message, metadata=metadata)
        if now or history is not None:  # otherwise the request goes without a configuration at all
            options = {"blocking": not now, "history_length": history}
            params.configuration = a2a.MessageSendConfiguration(**options)
        request = a2a.SendMessageRequest(id=str(uuid.uuid4()), params=params)
        return _result(await self.client.send_message(request))

    async def stream(self, message: a2a.Message) -> AsyncIterator[Any]:
        params = a2a.MessageSendParams(message=message)
        request = a2a.SendStreamingMessageRequest(id=str(uuid.uuid4()), params=params)
        async for response in self.client.send_message_streaming(request):
            yield _result(response)

    async def get(self, query: a2a.TaskQueryParams) -> Any:
        return _result(await self.client.get_task(a2a.GetTaskRequest(id=str(uuid.uuid4()), params=query)))

    async def cancel(self, task: a2a.TaskIdParams) -> Any:
        return _result(
            await self.client.cancel_task(a2a.CancelTaskRequest(id=str(uuid.uuid4()), params=task))
        )

    async def resubscribe(self, task: a2a.TaskIdParams) -> AsyncIterator[Any]:
        request = a2a.TaskResubscriptionRequest(id=str(uuid.uuid4()), params=task)
        async for response in self.client.resubscribe(request):
            yield _result(response)

    async def push(self, config: a2a.TaskPushNotificationConfig) -> Any:
        request = a2a.SetTaskPushNotificationConfigRequest(id=str(uuid.uuid4()), params=config)
        return _result(await self.client.set_task_callback(request))

    async def pushed(self, wanted: a2a.GetTaskPushNotificationConfigParams) -> Any:
        request = a2a.GetTaskPushNotificationConfigRequest(id=str(uuid.uuid4()), params=wanted)
        return _result(await self.client.get_task_callback(request))

    async def card(self) -> Any:
        return await self.client.get_card()


class ReturnedError(A2AClientError):
    """An error that the older client gave back as a response instead of raising it."""

    def __init__(self, error: Any) -> None:
        super().__init__(error.message)
        self.error = error


def _result(response: Any) -> Any:
    if isinstance(response.root, a2a.JSONRPCErrorResponse):
        raise ReturnedError(response.root.error)
    return response.root.result


def _of_client_event(event: Any) -> Any:
    """The event itself, of the pair of the folded task and its newest update."""
    if not isinstance(event, tuple):
        return event
    task, update = event
    return update or task


class Caller:
    """What the scenarios do, over either kind of client; notes the calls that were made."""

    def __init__(self, agent_url: str, binding: str) -> None:
        self.agent_url, self.binding = agent_url, binding
        self.calls: set[str] = set()
        self.http = httpx.AsyncClient(event_hooks={"request": [self._note]})

    async def _note(self, request: httpx.Request) -> None:
        self.calls.add(f"{request.method} {request.url.path}")

    async def connect(self) -> None:
        self.card = await A2ACardResolver(self.http, self.agent_url).get_agent_card()
        if self.binding == "A2AClient":
            self.client: Any = OlderCaller(self.http, self.card)
        else:
            self.client = FactoryCaller(self.http, self.card, self.binding)

    async def send_message(
        self, message: a2a.Message, *, now: bool = False, history: int | None = None, metadata: Any = None
    ) -> dict[str, Any]:
        return as_dict(await self.client.send(message, now=now, history=history, metadata=metadata))

    async def send(self, text: str, *, now: bool = False, **ids: str) -> dict[str, Any]:
        return await self.send_message(user_message([text_part(text)], **ids), now=now)

    async def get(self, task_id: str, **options: int) -> dict[str, Any]:
        return as_dict(await self.client.get(a2a.TaskQueryParams(id=task_id, **options)))

    async def cancel(self, task_id: str) -> dict[str, Any]:
        return as_dict(await self.client.cancel(a2a.TaskIdParams(id=task_id)))

    async def resubscribe(self, task_id: str) -> list[dict[str, Any]]:
        return await collect(self.client.resubscribe(a2a.TaskIdParams(id=task_id)))

    async def stream(self, text: str, **ids: str) -> list[dict[str, Any]]:
        return await collect(self.client.stream(user_message([text_part(text)], **ids)))

    async def push(self, task_id: str) -> dict[str, Any]:
        config = a2a.PushNotificationConfig(id="hook", url="http://127.0.0.1:9/hook")
        wanted = a2a.TaskPushNotificationConfig(task_id=task_id, push_notification_config=config)
        return as_dict(await self.client.push(wanted))


async def card(caller: Caller, _: str) -> Any:
    return as_dict(caller.card)


async def own_card(caller: Caller, _: str) -> Any:
    """What the client gives as its agent's card, the extended one if the agent has it."""
    return as_dict(await caller.client.card())


async def echo(caller: Caller, text: str) -> Any:
    return await caller.send(text or "A dragoman carries words, not opinions. Größe: 名前 🕊")


async def not_blocking(caller: Caller, _: str) -> Any:
    started = time.monotonic()
    first = await caller.send("slow 2", now=True)
    seconds = time.monotonic() - started
    return {"seconds": seconds, "first": first, "last": await finished(caller, first["id"])}


async def stream_chunks(caller: Caller, _: str) -> Any:
    events = await caller.stream("stream 5")
    return {"events": events, "task": await caller.get(events[0]["id"])}


async def stream_progress(caller: Caller, _: str) -> Any:
    return await caller.stream("slow 1")


async def history(caller: Caller, _: str) -> Any:
    """A task of several messages, read with and without a history length."""
    sent = {}
    for length in (None, 2):
        sent[str(length)] = await caller.send_message(user_message([text_part("slow 1")]), history=length)
    task_id = sent["None"]["id"]
    return {
        "sent": sent["None"],
        "sent two": sent["2"],
        "absent": await caller.get(task_id),
        "zero": await caller.get(task_id, history_length=0),
        "one": await caller.get(task_id, history_length=1),
    }


async def cancel(caller: Caller, _: str) -> Any:
    running = await caller.send("slow 30", now=True)
    started = time.monotonic()
    canceled = await caller.cancel(running["id"])
    return {
        "seconds": time.monotonic() - started,
        "running": running,
        "canceled": canceled,
        "read": await caller.get(running["id"]),
        "again": await error_of(caller.cancel(running["id"])),
    }


async def resubscribe(caller: Caller, _: str) -> Any:
    running = await caller.send("slow 2", now=True)
    return {"running": running, "events": await caller.resubscribe(running["id"])}


async def resubscribe_finished(caller: Caller, _: str) -> Any:
    done = await caller.send("all done")
    return {"done": done, "events": await caller.resubscribe(done["id"])}


async def errors(caller: Caller, _: str) -> Any:
    done = await caller.send("done soon")
    return {
        "get unknown": await error_of(caller.get(UNKNOWN_TASK)),
        "cancel unknown": await error_of(caller.cancel(UNKNOWN_TASK)),
        "resubscribe unknown": await error_of(caller.resubscribe(UNKNOWN_TASK)),
        "message to unknown": await error_of(caller.send("more", task_id=UNKNOWN_TASK)),
        "stream to unknown": await error_of(caller.stream("more", task_id=UNKNOWN_TASK)),
        "message to finished": await error_of(caller.send("more", task_id=done["id"])),
        "cancel finished": await error_of(caller.cancel(done["id"])),
        "push set": await error_of(caller.push(done["id"])),
    }


async def bare_message(caller: Caller, _: str) -> Any:
    return {"sent": await caller.send("message hello"), "streamed": await caller.stream("message hello")}


async def same_context(caller: Caller, _: str) -> Any:
    first = await caller.send("first turn")
    second = await caller.send("second turn", context_id=first["contextId"])
    return {"first": first, "second": second}


async def repeat(caller: Caller, _: str) -> Any:
    """The same message twice, then another one under its id."""
    message = user_message([text_part("once only")])
    first, second = await caller.send_message(message), await caller.send_message(message)
    message.parts = [text_part("something else")]
    return {"first": first, "second": second, "changed": await error_of(caller.send_message(message))}


async def outcomes(caller: Caller, _: str) -> Any:
    return {text: await caller.send(text) for text in ("fail", "reject", "crash")}


async def artifacts(caller: Caller, _: str) -> Any:
    return {text: (await caller.send(text))["artifacts"] for text in ("file", "data words words", "big 256")}


async def parts(caller: Caller, _: str) -> Any:
    """Files and data there and back: the agent echoes every part."""
    contents = {
        "binary": bytes(range(256)),
        "base64": base64.b64encode(b"text that is base64 itself"),
        "empty": b"",
    }
    sent = [file_part(name, content) for name, content in contents.items()]
    link = a2a.FileWithUri(uri="https://example.org/a%20b?c=d", mime_type="image/png", name="link")
    sent += [
        a2a.Part(root=a2a.FilePart(file=link)),
        a2a.Part(root=a2a.DataPart(data=DATA, metadata={"origin": {"kind": "part"}})),
    ]
    message = user_message(sent, metadata={"trace": {"kind": "x", "n": 3, "list": [1, None]}})
    task = await caller.send_message(message, metadata={"request": "wide"})
    return {"sent": as_dict(message), "task": task, "read": await caller.get(task["id"])}


async def dialogue(caller: Caller, _: str) -> Any:
    """Two turns with an agent that asks, the second one streamed; and its question as the end of a stream."""
    asked = await caller.send("a journey")
    ids = {"task_id": asked["id"], "context_id": asked["contextId"]}
    return {
        "asked": asked,
        "asked again": await caller.send("Rome", **ids),
        "streamed": await caller.stream("Monday", **ids),
        "read": await caller.get(asked["id"]),
        "streamed question": await caller.stream("a journey"),
    }


async def answer_within_stream(caller: Caller, _: str) -> Any:
    """A task that waits for its caller while that one watches: answered beside the open stream."""
    events: list[dict[str, Any]] = []
    async with asyncio.timeout(DEADLINE):
        async for event in caller.client.stream(user_message([text_part("open up")])):
            events.append(as_dict(event))
            if events[-1].get("status", {}).get("state") == "auth-required":
                task = events[0]
                await caller.send("a friend", task_id=task["id"], context_id=task["contextId"])
    return events


async def read(caller: Caller, task_ids: str) -> Any:
    return [await caller.get(task_id) for task_id in task_ids.split(",")]


async def leave(caller: Caller, context: str) -> Any:
    """Finish tasks of several kinds in one context, then read them back."""
    texts = ("keep this", "stream 5", "fail", "file", "data")
    sent = [await caller.send(text, context_id=context) for text in texts]
    return await read(caller, ",".join(task["id"] for task in sent))


async def follow_and_cancel(caller: Caller, task_id: str) -> Any:
    """Watch a task that somebody else started, and cancel it once it is seen."""
    events: list[dict[str, Any]] = []
    async with asyncio.timeout(DEADLINE):
        async for event in caller.client.resubscribe(a2a.TaskIdParams(id=task_id)):
            events.append(as_dict(event))
            if len(events) == 1:
                canceled = await caller.cancel(task_id)
    return {"events": events, "canceled": canceled}


async def push(caller: Caller, url: str) -> Any:
    """A configuration of a task that waits for its caller, set and read, and then the caller's answer."""
    asked = await caller.send("ask")
    authentication = a2a.PushNotificationAuthenticationInfo(schemes=["Bearer"], credentials="s3cr3t")
    config = a2a.PushNotificationConfig(id="hook", url=url, token="t0k3n", authentication=authentication)
    wanted = a2a.TaskPushNotificationConfig(task_id=asked["id"], push_notification_config=config)
    one = a2a.GetTaskPushNotificationConfigParams(id=asked["id"], push_notification_config_id="hook")
    other = a2a.GetTaskPushNotificationConfigParams(id=asked["id"], push_notification_config_id="other")
    return {
        "asked": asked,
        "set": as_dict(await caller.client.push(wanted)),
        "read": as_dict(await caller.client.pushed(one)),
        "read other": await error_of(caller.client.pushed(other)),
        "answered": await caller.send("an answer", task_id=asked["id"]),
    }


STANDARD = (
    card, own_card, echo, not_blocking, stream_chunks, stream_progress, history, cancel, resubscribe,
    resubscribe_finished, errors, bare_message, same_context, repeat, outcomes, artifacts, parts,
)  # fmt: skip
SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        *STANDARD,
        dialogue,
        answer_within_stream,
        read,
        leave,
        follow_and_cancel,
        push,
    )
}


def text_part(text: str) -> a2a.Part:
    return a2a.Part(root=a2a.TextPart(text=text))


def file_part(name: str, content: bytes) -> a2a.Part:
    encoded = base64.b64encode(content).decode()
    file = a2a.FileWithBytes(bytes=encoded, mime_type="application/octet-stream", name=name)
    return a2a.Part(root=a2a.FilePart(file=file))


def user_message(parts: list[a2a.Part], **members: Any) -> a2a.Message:
    return a2a.Message(message_id=str(uuid.uuid4()), role=a2a.Role.user, parts=parts, **members)


def as_dict(value: Any) -> dict[str, Any]:
    return value.model_dump(mode="json", by_alias=True, exclude_none=True)


async def collect(stream: AsyncIterator[Any]) -> list[dict[str, Any]]:
    async with asyncio.timeout(DEADLINE):
        return [as_dict(event) async for event in stream]


async def finished(caller: Caller, task_id: str) -> dict[str, Any]:
    """The task once it is no longer submitted or working."""
    async with asyncio.timeout(DEADLINE):
        while (task := await caller.get(task_id))["status"]["state"] in {"submitted", "working"}:
            await asyncio.sleep(0.1)
        return task


async def error_of(call: Awaitable[Any]) -> dict[str, Any]:
    """The SDK's own error with its code (of JSON-RPC, else of HTTP), or what came instead of one."""
    try:
        return {"type": None, "answer": repr(await call)}
    except (A2AClientJSONRPCError, ReturnedError) as error:
        return {"type": type(error).__name__, "code": error.error.code, "message": error.error.message}
    except A2AClientHTTPError as error:
        return {"type": type(error).__name__, "code": error.status_code, "message": error.message}


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


warnings.simplefilter("ignore", DeprecationWarning)  # the older client says that it is one
asyncio.run(main(*sys.argv[1:]))
