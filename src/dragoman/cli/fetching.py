"""Fetching a small public document, such as a card, from wherever the person at the command line says."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from dragoman.cli.output import tame

SECONDS = 10.0
LARGEST = 1024 * 1024


class NothingThereError(Exception):
    """Nothing came; the message says why."""


async def fetch(url: str, what: str, version: str = "") -> tuple[bytes, dict[str, str]]:
    """Return the text at a URL and its headers, names in lower case.

    Args:
        url: where it is.
        what: what should be there, a word for messages.
        version: the A2A-Version to ask for, if any.

    Raises:
        NothingThereError: there is none, or not in time, or it is too large.
    """
    import httpx2

    from dragoman import __version__

    asked = {
        "Accept": "application/json, */*;q=0.1",
        # What is not compressed cannot grow on arrival.
        "Accept-Encoding": "identity",
        "User-Agent": f"dragoman/{__version__}",
    }
    if version:
        asked["A2A-Version"] = version
    try:
        async with (
            asyncio.timeout(SECONDS),
            httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=None) as client,
            client.stream("GET", url, headers=asked) as reply,
        ):
            body = await _read(reply, what)
    except TimeoutError:
        raise NothingThereError(f"no whole answer within {SECONDS:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise NothingThereError(f"cannot be reached: {tame(str(error)) or type(error).__name__}") from error
    _check_reply(reply.status_code, reply.headers, body, what)
    return body, {name.lower(): value for name, value in reply.headers.items()}


async def _read(reply: Any, what: str) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in reply.aiter_raw():
        size += len(chunk)
        if size > LARGEST:
            raise NothingThereError(f"the answer is larger than 1 MiB, which no {what} is")
        chunks.append(chunk)
    return b"".join(chunks)


def _check_reply(status: int, headers: Mapping[str, str], body: bytes, what: str) -> None:
    encoding = headers.get("content-encoding", "identity")
    if 300 <= status < 400:
        location = tame(headers.get("location", "nowhere"))
        raise NothingThereError(
            f"answers {status} and points to {location}; redirects are not followed, ask there"
        )
    if status in (401, 403):
        raise NothingThereError(
            f"answers {status}: this {what} is not public, and this command sends no credential"
        )
    if status != 200:
        raise NothingThereError(f"answers {status} and no {what}: {_reason(body)}")
    if encoding != "identity":
        raise NothingThereError(f"came compressed ({tame(encoding)}), which was not asked for")


def _reason(body: bytes) -> str:
    try:
        document = json.loads(body)
        return tame(document["error"]["message"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return tame(body[:600].decode(errors="replace"), 200) or "no reason given"
