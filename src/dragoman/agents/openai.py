"""Agents that are a model behind an OpenAI-compatible endpoint: chat completions, streamed, and no code."""

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing

import httpx2
import msgspec

from dragoman.agents.completion import Completion, ModelFailed, fault_of
from dragoman.agents.event_stream import EventStream, EventTooLarge
from dragoman.agents.run import Run
from dragoman.agents.spoken import NotText, spoken

_LOG = logging.getLogger("dragoman.model_server")

PATH = "/chat/completions"
CONNECT_SECONDS = 10.0
RETRIES = (0.2, 1.0)
"""Seconds before a further try to connect. Nothing was sent then, so nothing is done twice."""

LAST_SECONDS = 1.0
"""Seconds that the end of a stream is waited for once the answer is whole: so the connection can be used again."""

MAX_FAULT = 64 * 1024
FAULT_SECONDS = 5.0
"""Bytes and seconds of an error's body that are read, to find its kind."""

_WAIT = re.compile(r"[1-9]\d{0,4}")


def open_client(headers: Mapping[str, str], idle: float) -> httpx2.AsyncClient:
    """Return the way to a model server, the operator's own: no redirects, nothing taken from the environment.

    All that goes to model servers goes through here.
    """
    return httpx2.AsyncClient(
        headers=headers,
        timeout=httpx2.Timeout(idle, connect=CONNECT_SECONDS, pool=None),
        limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=5.0),
        follow_redirects=False,
        trust_env=False,
    )


class ChatModel:
    """The handler of an agent that is a model."""

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        headers: Mapping[str, str],
        system: str = "",
        idle: float,
        max_output: int,
        user_agent: str = "dragoman",
    ) -> None:
        """Prepare to ask a model.

        Args:
            base_url: what `/chat/completions` comes after.
            model: the model's name there.
            headers: further headers of each request; some are secret.
            system: what the model is told before each conversation; nothing if empty.
            idle: seconds of silence after which an answer is given up.
            max_output: bytes of an answer.
            user_agent: what this server calls itself.
        """
        self._url = base_url.rstrip("/") + PATH
        self._model = model
        self._headers = {
            **headers,
            "Accept": "text/event-stream",
            # What comes compressed can be far larger than what was counted, and waits for more than it says.
            "Accept-Encoding": "identity",
            "Content-Type": "application/json",
            "User-Agent": user_agent,
        }
        self._system = system
        self._idle = idle
        self._max_output = max_output
        self._client: httpx2.AsyncClient | None = None

    async def startup(self) -> None:
        """Open the client, on the agent's loop."""
        # In a thread: reading the system's certificates takes as long as many requests.
        self._client = await asyncio.to_thread(open_client, self._headers, self._idle)

    async def shutdown(self) -> None:
        """Let go of connections."""
        if self._client is not None:
            await self._client.aclose()

    async def answer(self, run: Run) -> AsyncIterator[str]:
        """Ask the model, and give its answer as it comes."""
        try:
            body = self._body(run)
        except NotText as refusal:
            await run.reject(str(refusal))
            return
        try:
            async with aclosing(self._ask(body)) as pieces:
                async for text in pieces:
                    yield text
        except ModelFailed as error:
            facts = {"task_id": run.task_id, "attempt": run.attempt}
            _LOG.warning("%s%s", error, f" ({error.detail})" if error.detail else "", extra=facts)
            await run.fail(str(error))

    def _body(self, run: Run) -> bytes:
        """Return the request: what the caller said to this task, oldest first."""
        messages = [{"role": "system", "content": self._system}] if self._system else []
        messages += [{"role": "user", "content": spoken(message.parts)} for message in run.history]
        return msgspec.json.encode({"model": self._model, "messages": messages, "stream": True})

    async def _ask(self, body: bytes) -> AsyncGenerator[str, None]:
        """Yield an answer as it comes, to its end.

        Raises:
            ModelFailed: there is none, or it is not whole.
        """
        try:
            reply = await self._send(body)
            try:
                await _check(reply)
                async with aclosing(self._read(reply)) as pieces:
                    async for text in pieces:
                        yield text
            finally:
                await reply.aclose()
        except (httpx2.ReadTimeout, httpx2.WriteTimeout):
            raise ModelFailed(f"The model server was silent for {self._idle:g} s.") from None
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise ModelFailed(
                "The model server cannot be reached.", f"{type(error).__name__}: {error}"
            ) from None
        except httpx2.HTTPError as error:
            raise ModelFailed("The model server broke off its answer.", type(error).__name__) from None

    async def _send(self, body: bytes) -> httpx2.Response:
        """Send a request, and return the reply when its head is there."""
        if self._client is None:
            raise AssertionError("startup comes before the first run")
        for wait in RETRIES:
            try:
                return await self._client.send(self._request(self._client, body), stream=True)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                await asyncio.sleep(wait)
        return await self._client.send(self._request(self._client, body), stream=True)

    def _request(self, client: httpx2.AsyncClient, body: bytes) -> httpx2.Request:
        return client.build_request("POST", self._url, content=body)

    async def _read(self, reply: httpx2.Response) -> AsyncGenerator[str, None]:
        events, completion = EventStream(), Completion()
        left = self._max_output
        async with aclosing(reply.aiter_raw()) as pieces:
            while True:
                try:
                    async with asyncio.timeout(LAST_SECONDS if completion.finished else None):
                        piece = await anext(pieces, None)
                except (TimeoutError, httpx2.HTTPError):
                    if not completion.finished:
                        raise
                    break
                if piece is None:
                    break
                try:
                    text = "".join([completion.read(event) for event in events.feed(piece)])
                except EventTooLarge:
                    raise ModelFailed("The model server sent an event that is too large.") from None
                left -= len(text.encode())
                if left < 0:
                    raise ModelFailed(f"The model gave more than {self._max_output} bytes.")
                if text:
                    yield text
        completion.end()


async def _check(reply: httpx2.Response) -> None:
    """Make sure that a reply is a stream of events.

    Raises:
        ModelFailed: it is not.
    """
    status = reply.status_code
    if status != 200:
        raise ModelFailed(_refusal(status, reply.headers.get("retry-after", "")), await _fault(reply))
    if reply.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise ModelFailed("The model server answered compressed although it was asked not to.")
    if reply.headers.get("content-type", "").partition(";")[0].strip().lower() != "text/event-stream":
        raise ModelFailed("The model server answered with something else than a stream of events.")


def _refusal(status: int, retry_after: str) -> str:
    """Return what to tell the caller of a status."""
    if status in (401, 403):
        return f"The model server did not accept this server's credential ({status})."
    if status == 429:
        later = f"in {retry_after} s" if _WAIT.fullmatch(retry_after) else "later"
        return f"The model server has too much to do ({status}); try again {later}."
    if status >= 500:
        return f"The model server failed ({status})."
    if 300 <= status < 400:
        return f"The model server sent this server elsewhere ({status}), which is not followed."
    return f"The model server refused the request ({status})."


async def _fault(reply: httpx2.Response) -> str:
    """Return what kind of error a reply tells of, for the log; whatever is wrong with it, that is none."""
    body = b""
    try:
        async with asyncio.timeout(FAULT_SECONDS), aclosing(reply.aiter_raw()) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > MAX_FAULT:
                    return ""
    except (TimeoutError, httpx2.HTTPError):
        return ""
    return fault_of(body)
