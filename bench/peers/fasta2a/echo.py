# fasta2a is in this peer's own environment only.
# mypy: disable-error-code="import-not-found,misc,unused-ignore"
"""An echo agent on fasta2a, tasks in memory: JSON-RPC at /. Its sends never block."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fasta2a import FastA2A, Worker
from fasta2a.broker import InMemoryBroker
from fasta2a.schema import Artifact, Message, Skill, TaskIdParams, TaskSendParams
from fasta2a.storage import InMemoryStorage

from bench.peers.announced import loopback_socket, serve


class Echo(Worker[list[Message]]):
    """One task, one artifact with the caller's text, completed; the text `hold` is kept working."""

    async def run_task(self, params: TaskSendParams) -> None:
        """Answer one message."""
        task_id, context_id = params["id"], params["context_id"]
        text = "".join(part.get("text", "") for part in params["message"]["parts"])
        if text == "hold":
            await self.storage.update_task(task_id, state="working")
            await self.publish_status(task_id, context_id, "working")
            await asyncio.sleep(3600)
        artifacts = self.build_artifacts(text)
        await self.publish_artifact(task_id, context_id, artifacts[0])
        await self.storage.update_task(task_id, state="completed", new_artifacts=artifacts)

    async def cancel_task(self, params: TaskIdParams) -> None:
        """The benchmark cancels nothing."""
        raise NotImplementedError

    def build_message_history(self, history: list[Message]) -> list[Any]:
        """The history as it is."""
        return history

    def build_artifacts(self, result: Any) -> list[Artifact]:
        """One text artifact."""
        return [{"artifact_id": str(uuid.uuid4()), "name": "echo", "parts": [{"text": result}]}]


def main() -> None:
    """Serve until SIGTERM."""
    listener = loopback_socket()
    broker = InMemoryBroker()
    storage = InMemoryStorage[list[Message]]()
    worker = Echo(broker=broker, storage=storage)

    @asynccontextmanager
    async def lifespan(application: FastA2A) -> AsyncIterator[None]:
        async with application.task_manager, worker.run():
            yield

    application = FastA2A(
        storage=storage,
        broker=broker,
        name="Echo",
        description="Echoes its text.",
        version="1.0",
        url=f"http://127.0.0.1:{listener.getsockname()[1]}",
        skills=[
            Skill(
                id="echo",
                name="Echo",
                description="Echoes its text.",
                tags=["echo"],
                input_modes=["text/plain"],
                output_modes=["text/plain"],
            )
        ],
        lifespan=lifespan,
    )
    serve(application, listener)


if __name__ == "__main__":
    main()
