"""Runs the A2A Inspector's backend from a checkout and does what its page does, printing what the page would get.

    driver.py CHECKOUT CARD_URL TEXT...

The card is fetched and validated, a client initialized for it, and each TEXT sent, the first one with a file attached.
The card is also given to the validator as it is served.
Every answer comes with the errors that the Inspector's own validators found in it.
"""

import asyncio
import base64
import json
import os
import sys
from pathlib import Path
from typing import Any

import httpx
import socketio
import uvicorn

DEADLINE = 25.0


class Page:
    """The page's end of the socket."""

    def __init__(self, socket: socketio.AsyncSimpleClient) -> None:
        self.socket = socket
        self.log: list[Any] = []

    async def next(self, wanted: str) -> Any:
        """The next event, which must be the wanted one; lines of the debug log are kept for the report."""
        while True:
            name, document = await self.socket.receive(timeout=DEADLINE)
            if name == wanted:
                return document
            if name != "debug_log":
                raise RuntimeError(f"{name} instead of {wanted}: {document}")
            self.log.append(document)


def _is_last(answer: dict[str, Any]) -> bool:
    state = answer.get("status", {}).get("state")
    return "error" in answer or answer["kind"] == "message" or state in {"completed", "failed", "rejected"}


async def _answers(page: Page) -> list[Any]:
    answers = [await page.next("agent_response")]
    while not _is_last(answers[-1]):
        answers.append(await page.next("agent_response"))
    return answers


async def debug(base: str, card_url: str, texts: list[str]) -> dict[str, Any]:
    async with (
        socketio.AsyncSimpleClient() as socket,
        httpx.AsyncClient(base_url=base, timeout=DEADLINE) as http,
    ):
        page = Page(socket)
        await socket.connect(base)
        card = await http.post("/agent-card", json={"url": card_url, "sid": socket.sid})
        await socket.emit("initialize_client", {"url": card_url, "customHeaders": {}})
        initialized = await page.next("client_initialized")
        answers, context = {}, None
        for number, text in enumerate(texts):
            attached = {
                "data": base64.b64encode(b"\0\xff attached").decode(),
                "mimeType": "application/x-some",
            }
            message = {
                "message": text,
                "id": f"msg-{number}-{os.getpid()}",
                "contextId": context,
                "metadata": {"page": "inspector"},
                "attachments": [] if number else [attached],
            }
            await socket.emit("send_message", message)
            answers[text] = await _answers(page)
            context = answers[text][0].get("contextId")
        report = {"status": card.status_code, "initialized": initialized, "answers": answers, "log": page.log}
        return report | card.json() | {"served": await _served(http, card_url)}


async def _served(http: httpx.AsyncClient, card_url: str) -> dict[str, Any]:
    """The card as it is served, with what its validator says: the page is shown what the SDK made of it."""
    from validators import validate_agent_card  # noqa: PLC0415 - it is importable only now

    card = (await http.get(card_url)).json()
    return {"card": card, "validation_errors": validate_agent_card(card)}


async def main(checkout: str, card_url: str, *texts: str) -> None:
    backend = Path(checkout).resolve() / "backend"
    os.chdir(backend)  # it names its page's files relative to itself
    sys.path.insert(0, str(backend))
    from app import app  # noqa: PLC0415 - it is importable only now

    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    async with asyncio.timeout(DEADLINE):
        while not server.started:
            await asyncio.sleep(0.05)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        report = await debug(f"http://127.0.0.1:{port}", card_url, list(texts))
    finally:
        server.should_exit = True
        await serving
    print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
