# The SDK is in this peer's own environment only.
# mypy: disable-error-code="import-not-found,misc,unused-ignore"
"""An echo agent on a2a-sdk's own parts, tasks in memory: JSON-RPC at /rpc, HTTP+JSON at /."""

import asyncio

from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import (
    create_agent_card_routes,
    create_jsonrpc_routes,
    create_rest_routes,
)
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette

from bench.peers.announced import loopback_socket, serve


class Echo(AgentExecutor):
    """One task, one artifact with the caller's text, completed; the text `hold` is kept working."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Answer one message."""
        text = context.get_user_input()
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        if text == "hold":
            await updater.start_work()
            await asyncio.sleep(3600)
        await updater.add_artifact([new_text_part(text)], name="echo")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """The benchmark cancels nothing."""
        raise NotImplementedError


def card(origin: str) -> AgentCard:
    """The agent's card at `origin`."""
    return AgentCard(
        name="Echo",
        description="Echoes its text.",
        version="1.0",
        supported_interfaces=[
            AgentInterface(url=f"{origin}/rpc", protocol_binding="JSONRPC", protocol_version="1.0"),
            AgentInterface(url=origin, protocol_binding="HTTP+JSON", protocol_version="1.0"),
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="Echo", description="Echoes its text.", tags=["echo"])],
    )


def main() -> None:
    """Serve until SIGTERM."""
    listener = loopback_socket()
    agent_card = card(f"http://127.0.0.1:{listener.getsockname()[1]}")
    handler = DefaultRequestHandler(
        agent_executor=Echo(), task_store=InMemoryTaskStore(), agent_card=agent_card
    )
    routes = [
        *create_agent_card_routes(agent_card),
        *create_jsonrpc_routes(handler, "/rpc"),
        *create_rest_routes(handler),
    ]
    serve(Starlette(routes=routes), listener)


if __name__ == "__main__":
    main()
