"""The agent of `../remotes/server.py` on a2a-sdk 0.3.26: A2A 0.3 over one binding.

remote_server.py JSONRPC|HTTP+JSON PORT [poll]
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "remotes"))

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.apps import A2ARESTFastAPIApplication, A2AStarletteApplication
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentExtension,
    AgentSkill,
    ContentTypeNotSupportedError,
    Message,
    Part,
    Role,
    TextPart,
)
from a2a.utils import new_task
from a2a.utils.errors import ServerError
from desk import Desk, listen, serve

EXTENSION = "https://example.com/ext/tone/v1"


class Clerk(AgentExecutor):
    def __init__(self, desk: Desk) -> None:
        self.desk = desk

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message = context.message
        self.desk.messages.append(message.model_dump(mode="json", by_alias=True, exclude_none=True))
        text = context.get_user_input()
        word = text.split(" ")[0] if text else "echo"
        if word == "message":
            answer = Message(message_id="m-1", role=Role.agent, parts=[part("bare")])
            answer.context_id = message.context_id
            await event_queue.enqueue_event(answer)
            return
        if word == "refuse":
            raise ServerError(ContentTypeNotSupportedError(message="no such thing is taken here"))
        task = context.current_task
        if task is not None:
            await self.again(TaskUpdater(event_queue, task.id, task.context_id), text)
            return
        task = new_task(message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await getattr(self, f"do_{word}", self.do_echo)(updater, context)

    async def again(self, updater: TaskUpdater, text: str) -> None:
        await updater.start_work()
        if text == "Rome":
            await updater.requires_input(say(updater, "When?"), final=True)
            return
        await updater.add_artifact([part(f"answered: {text}")], artifact_id="answer")
        await updater.complete()

    async def do_echo(self, updater: TaskUpdater, context: RequestContext) -> None:
        message = context.message
        await updater.start_work(say(updater, "at work"))
        await updater.add_artifact(
            message.parts,
            artifact_id="echo",
            name="Echo",
            metadata={"told": message.metadata or {}},
            last_chunk=True,
        )
        await updater.complete(say(updater, "done"))

    async def do_hold(self, updater: TaskUpdater, context: RequestContext) -> None:
        await updater.start_work(say(updater, "begun"))
        for count, word in enumerate(("one ", "two ", "three")):
            if count:
                await self.desk.released.acquire()
            await updater.add_artifact(
                [part(word)], artifact_id="held", append=count > 0, last_chunk=count == 2
            )
        await updater.complete()

    async def do_ask(self, updater: TaskUpdater, context: RequestContext) -> None:
        await updater.add_artifact([part("so far")], artifact_id="draft")
        await updater.requires_input(say(updater, "Which one?"), final=True)

    do_a = do_ask

    async def do_slow(self, updater: TaskUpdater, context: RequestContext) -> None:
        await updater.start_work(say(updater, "slowly"))
        await asyncio.sleep(float(context.get_user_input().split(" ")[1]))
        await updater.add_artifact([part("slept")], artifact_id="slept", last_chunk=True)
        await updater.complete()

    async def do_stream(self, updater: TaskUpdater, context: RequestContext) -> None:
        count = int(context.get_user_input().split(" ")[1])
        for number in range(count):
            await updater.add_artifact(
                [part(f"{number} ")],
                artifact_id="streamed",
                append=number > 0,
                last_chunk=number == count - 1,
            )
        await updater.complete()

    async def do_auth(self, updater: TaskUpdater, context: RequestContext) -> None:
        await updater.requires_auth(say(updater, "Please log in."), final=True)

    async def do_reject(self, updater: TaskUpdater, context: RequestContext) -> None:
        await updater.reject(say(updater, "I will not."))

    async def do_fail(self, updater: TaskUpdater, context: RequestContext) -> None:
        await updater.failed(say(updater, "I cannot."))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        self.desk.cancelled.append(context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def part(text: str) -> Part:
    return Part(root=TextPart(text=text))


def say(updater: TaskUpdater, text: str) -> Message:
    return updater.new_agent_message([part(text)])


def main() -> None:
    binding, port, *options = sys.argv[1:]
    listener = listen(int(port))
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    card = AgentCard(
        name="Clerk",
        description="Does as the first word says.",
        version="3.1",
        url=f"{origin}/rpc" if binding == "JSONRPC" else origin,
        preferred_transport=binding,
        protocol_version="0.3.0",
        capabilities=AgentCapabilities(
            streaming="poll" not in options, extensions=[AgentExtension(uri=EXTENSION, description="Tone.")]
        ),
        default_input_modes=["text/plain", "image/png"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="clerk", name="Clerk", description="Obeys.", tags=["test"], examples=["echo"])],
    )
    desk = Desk()
    handler = DefaultRequestHandler(agent_executor=Clerk(desk), task_store=InMemoryTaskStore())
    application: Any
    if binding == "JSONRPC":
        application = A2AStarletteApplication(agent_card=card, http_handler=handler).build(rpc_url="/rpc")
    else:
        application = A2ARESTFastAPIApplication(agent_card=card, http_handler=handler).build()
    desk.app = application
    print(origin, flush=True)
    serve(desk, listener)


if __name__ == "__main__":
    main()
