"""A remote agent on the official SDK's own parts: JSON-RPC at /rpc, for callers with the token in AGENT_BEARER.

The first word says what it does: `message` answers with a bare message, `hold` works until it is asked a second time,
`ask` asks, `fail` fails; any other text comes back as an artifact. Prints where it listens, and then, a line for each
request that reaches the agent, the id of the message.
"""

import asyncio
import os
import socket

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types.a2a_pb2 import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse


class Agent(AgentExecutor):
    """Does what its caller says."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Answer one message."""
        text = context.get_user_input()
        print(f"got {context.message.message_id}", flush=True)
        if text.startswith("message"):
            await event_queue.enqueue_event(new_text_message(text))
            return
        task = context.current_task or new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        if text.startswith("hold"):
            await asyncio.sleep(1.5)
        if text.startswith("fail"):
            await updater.failed()
        elif text.startswith("ask"):
            await updater.requires_input(message=updater.new_agent_message([new_text_part("Which one?")]))
        else:
            await updater.add_artifact([new_text_part(text)], name="echo")
            await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Nobody cancels here."""
        raise NotImplementedError


class Guard:
    """Lets nobody to the agent who does not show the token."""

    def __init__(self, app: Starlette) -> None:
        self._app = app
        self._wanted = f"Bearer {os.environ['AGENT_BEARER']}".encode()

    async def __call__(self, scope, receive, send) -> None:
        """Serve a request."""
        shown = dict(scope.get("headers", ())).get(b"authorization")
        barred = scope["type"] == "http" and scope["path"] == "/rpc" and shown != self._wanted
        app = PlainTextResponse("who are you?", 401) if barred else self._app
        await app(scope, receive, send)


class Announced(uvicorn.Server):
    """Says where it listens once it does."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then print the address."""
        await super().startup(sockets)
        host, port = (sockets or [])[0].getsockname()
        print(f"listening on http://{host}:{port}", flush=True)


def card(origin: str) -> AgentCard:
    """The agent's card at `origin`."""
    return AgentCard(
        name="Official",
        description="Does what its caller says.",
        version="1.0",
        supported_interfaces=[
            AgentInterface(url=f"{origin}/rpc", protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="Echo", description="Echoes.", tags=["echo"])],
    )


def main() -> None:
    """Serve until SIGTERM."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    agent_card = card(origin)
    handler = DefaultRequestHandler(
        agent_executor=Agent(), task_store=InMemoryTaskStore(), agent_card=agent_card
    )
    app = Starlette(routes=[*create_agent_card_routes(agent_card), *create_jsonrpc_routes(handler, "/rpc")])
    config = uvicorn.Config(Guard(app), access_log=False, log_level="warning")
    Announced(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
