"""An agent on a2a-sdk 1.3.0, tasks in memory, A2A 1.0 over one binding.

    server.py JSONRPC|HTTP+JSON PORT [poll]

The first word of a message says what it does; `poll`: the agent says that it cannot stream.
"""

import asyncio
import sys
from typing import Any

from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes, create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import (
    ROLE_AGENT,
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentInterface,
    AgentSkill,
    Message,
)
from a2a.utils.errors import ContentTypeNotSupportedError
from desk import Desk, listen, serve
from google.protobuf.json_format import MessageToDict
from starlette.applications import Starlette

EXTENSION = "https://example.com/ext/tone/v1"


class Clerk(AgentExecutor):
    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message = context.message
        self.desk.messages.append(MessageToDict(message))
        text = context.get_user_input()
        word = text.split(" ")[0] if text else "echo"
        if word == "message":
            answer = Message(message_id="m-1", role=ROLE_AGENT, parts=[new_text_part("bare")])
            answer.context_id = message.context_id
            await event_queue.enqueue_event(answer)
            return
        if word == "refuse":
            raise ContentTypeNotSupportedError(message="no such thing is taken here")
        task = context.current_task
        if task is None:
            task = new_task_from_user_message(message)
            await event_queue.enqueue_event(task)
            first = True
        else:
            first = False
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if not first:
            await self.again(updater, text)
            return
        act = getattr(self, f"do_{word}", self.do_echo)
        await act(updater, context)

    async def again(self, updater: TaskUpdater, text: str) -> None:
        await updater.start_work()
        if text == "Rome":
            await updater.requires_input(say(updater, "When?"))
            return
        await updater.add_artifact([new_text_part(f"answered: {text}")], artifact_id="answer")
        await updater.complete()

    async def do_echo(self, updater: TaskUpdater, context: RequestContext) -> None:
        message = context.message
        metadata = MessageToDict(message.metadata)
        await updater.start_work(say(updater, "at work"))
        await updater.add_artifact(
            list(message.parts), artifact_id="echo", name="Echo", metadata={"told": metadata}, last_chunk=True
        )
        await updater.complete(say(updater, "done"))

    async def do_hold(self, updater: TaskUpdater, context: RequestContext) -> None:
        await updater.start_work(say(updater, "begun"))
        for count, word in enumerate(("one ", "two ", "three")):
            if count:
                await self.desk.released.acquire()
            await updater.add_artifact(
                [new_text_part(word)], artifact_id="held", append=count > 0, last_chunk=count == 2
            )
        await updater.complete()

    async def do_ask(self, updater: TaskUpdater, context: RequestContext) -> None:
        await updater.add_artifact([new_text_part("so far")], artifact_id="draft")
        await updater.requires_input(say(updater, "Which one?"))

    do_a = do_ask

    async def do_slow(self, updater: TaskUpdater, context: RequestContext) -> None:
        await updater.start_work(say(updater, "slowly"))
        await asyncio.sleep(float(context.get_user_input().split(" ")[1]))
        await updater.add_artifact([new_text_part("slept")], artifact_id="slept", last_chunk=True)
        await updater.complete()

    async def do_stream(self, updater: TaskUpdater, context: RequestContext) -> None:
        count = int(context.get_user_input().split(" ")[1])
        for number in range(count):
            await updater.add_artifact(
                [new_text_part(f"{number} ")],
                artifact_id="streamed",
                append=number > 0,
                last_chunk=number == count - 1,
            )
        await updater.complete()

    async def do_auth(self, updater: TaskUpdater, context: RequestContext) -> None:
        await updater.requires_auth(say(updater, "Please log in."))

    async def do_reject(self, updater: TaskUpdater, context: RequestContext) -> None:
        await updater.reject(say(updater, "I will not."))

    async def do_fail(self, updater: TaskUpdater, context: RequestContext) -> None:
        await updater.failed(say(updater, "I cannot."))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.desk.cancelled.append(context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def say(updater: TaskUpdater, text: str) -> Message:
    return updater.new_agent_message([new_text_part(text)])


def main() -> None:
    binding, port, *options = sys.argv[1:]
    listener = listen(int(port))
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    url = f"{origin}/rpc" if binding == "JSONRPC" else origin
    card = AgentCard(
        name="Clerk",
        description="Does as the first word says.",
        version="3.1",
        supported_interfaces=[AgentInterface(url=url, protocol_binding=binding, protocol_version="1.0")],
        capabilities=AgentCapabilities(
            streaming="poll" not in options, extensions=[AgentExtension(uri=EXTENSION, description="Tone.")]
        ),
        default_input_modes=["text/plain", "image/png"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="clerk", name="Clerk", description="Obeys.", tags=["test"], examples=["echo"])],
    )
    desk = Desk()
    handler = DefaultRequestHandler(
        agent_executor=Clerk(desk), task_store=InMemoryTaskStore(), agent_card=card
    )
    routes: list[Any] = [*create_agent_card_routes(card)]
    routes += create_jsonrpc_routes(handler, "/rpc") if binding == "JSONRPC" else create_rest_routes(handler)
    desk.app = Starlette(routes=routes)
    print(origin, flush=True)
    serve(desk, listener)


if __name__ == "__main__":
    main()
