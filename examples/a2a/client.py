"""Send one message to an agent and print its result, once, however often the network fails (docs/reference/hosted.md).

    DRAGOMAN_AGENT_URL=https://agents.example.com/v1/a2a/agents/demo DRAGOMAN_API_KEY=… python client.py [TEXT]

It needs the official SDK, a2a-sdk 1.2.2 or later. The agent that it calls is a real one; the text is made up unless
you give one. DRAGOMAN_MESSAGE_ID is the message's identity: the same one again is the same message, so whoever keeps
it can always find out what became of it. Without one, a new one is made and told.
"""

import asyncio
import hashlib
import os
import sys
import uuid

import httpx
from a2a.client import Client, ClientConfig, create_client
from a2a.helpers import get_artifact_text, new_text_message
from a2a.types import Artifact, Role, SendMessageRequest, Task, TaskState
from a2a.utils.errors import A2AError

LONGEST_WAIT = 130.0  # seconds: the server answers after 110 at the latest, with the task as it stands
PAUSES = (0.5, 1.0, 2.0, 4.0)  # seconds before each further try
GOES_ON = (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING)


async def send(client: Client, request: SendMessageRequest) -> Task:
    """Send a message until its task has come to something.

    A reply that is lost, and a task that is still at work, are the same to the caller: the same message is sent
    again, and gives the task that it began the first time.
    """
    pauses = iter(PAUSES)
    while True:
        try:
            async for response in client.send_message(request):
                if response.task.status.state not in GOES_ON:
                    return response.task
        except A2AError as error:
            pause = next(pauses, None)
            if pause is None or not is_uncertain(error):
                raise
            print(f"no reply ({error}); the same message is sent again", file=sys.stderr)
            await asyncio.sleep(pause)


def is_uncertain(error: A2AError) -> bool:
    """Tell whether there was no reply, so that the message may have been accepted or not."""
    return isinstance(error.__cause__, httpx.RequestError)


def verified(artifact: Artifact) -> str:
    """Return the text of a result, which must be what its checksum says."""
    text = get_artifact_text(artifact)
    if hashlib.sha256(text.encode()).hexdigest() != artifact.metadata["sha256"]:
        raise SystemExit("the result is not what its checksum says")
    return text


async def main() -> int:
    """Return 0 if the agent gave a result."""
    message_id = os.environ.get("DRAGOMAN_MESSAGE_ID") or str(uuid.uuid4())
    message = new_text_message(" ".join(sys.argv[1:]) or "What does a dragoman do?", role=Role.ROLE_USER)
    message.message_id = message_id
    print(f"DRAGOMAN_MESSAGE_ID={message_id}", file=sys.stderr)
    headers = {"Authorization": f"Bearer {os.environ['DRAGOMAN_API_KEY']}"}
    async with httpx.AsyncClient(headers=headers, timeout=LONGEST_WAIT) as http:
        config = ClientConfig(streaming=False, httpx_client=http)
        try:
            client = await create_client(os.environ["DRAGOMAN_AGENT_URL"], config)
            task = await send(client, SendMessageRequest(message=message))
        except A2AError as error:
            print(error, file=sys.stderr)
            if is_uncertain(error):
                print("what became of it is not known: run this again with the id above", file=sys.stderr)
            return 1
    for artifact in task.artifacts:
        print(verified(artifact))
    print(f"{TaskState.Name(task.status.state)} {task.id}", file=sys.stderr)
    return 0 if task.status.state == TaskState.TASK_STATE_COMPLETED else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
