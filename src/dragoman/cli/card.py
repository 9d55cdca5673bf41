"""`dragoman card`: fetch the card of any A2A agent, and say what it offers and what is wrong with it."""

import asyncio
import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import urlsplit, urlunsplit

import typer

from dragoman.cli.output import print_table, tame
from dragoman.cli.settings import JsonOption, refuse

CARD_PATH = "/.well-known/agent-card.json"
SECONDS = 10.0
LARGEST = 1024 * 1024
SHOWN_FINDINGS = 100
SHOWN_HEADERS = ("content-type", "etag", "cache-control", "last-modified", "vary", "a2a-version")

_AGENT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}", re.ASCII)


class NoCardError(Exception):
    """No card came; the message says why."""


def card(
    url: Annotated[
        str,
        typer.Argument(
            help="The agent's base URL or the full URL of its card, or the id of an agent on 127.0.0.1:8080."
        ),
    ],
    version: Annotated[
        str,
        typer.Option(
            "--a2a-version", help="The A2A-Version to ask for; without it, for the form that everybody gets."
        ),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Check the card of any A2A agent.

    Names every member that the standard does not allow, with what it wants, and shows what the agent offers to
    callers of A2A 1.0 and 0.3. Exits 1 if there is anything to name, or no card.
    """
    from dragoman.cards.validate import validate

    place = card_url(url)
    try:
        body, headers = asyncio.run(_fetch(place, version))
    except NoCardError as error:
        refuse(f"{place}: {error}", 1)
    report = validate(body)
    shown = {name: headers[name] for name in SHOWN_HEADERS if name in headers}
    if as_json:
        print(json.dumps(_document(place, report, shown), indent=2))
    else:
        _print(place, report, shown)
    raise typer.Exit(1 if report.findings else 0)


def card_url(text: str) -> str:
    """Return where an agent's card is: at the URL itself if that is a card's, else at the usual place below it."""
    if _AGENT_ID.fullmatch(text):
        return f"http://127.0.0.1:8080/agents/{text}{CARD_PATH}"
    try:
        parts = urlsplit(text)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        refuse(f"{text} is no URL of an agent; write one such as https://agents.example.com/agents/demo")
    if "@" in parts.netloc:
        refuse("the URL holds a credential; cards are public, leave it out")
    path = parts.path
    if not path.endswith(".json") and "/.well-known/" not in path:
        path = path.rstrip("/") + CARD_PATH
    return urlunsplit(parts._replace(path=path, fragment=""))


async def _fetch(url: str, version: str) -> tuple[bytes, dict[str, str]]:
    """Return a card's text and its headers, names in lower case.

    Raises:
        NoCardError: there is none, or not in time, or it is too large.
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
            body = await _read(reply)
    except TimeoutError:
        raise NoCardError(f"no whole answer within {SECONDS:g} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        raise NoCardError(f"cannot be reached: {tame(str(error)) or type(error).__name__}") from error
    _check_reply(reply.status_code, reply.headers, body)
    return body, {name.lower(): value for name, value in reply.headers.items()}


async def _read(reply: Any) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in reply.aiter_raw():
        size += len(chunk)
        if size > LARGEST:
            raise NoCardError("the answer is larger than 1 MiB, which no card is")
        chunks.append(chunk)
    return b"".join(chunks)


def _check_reply(status: int, headers: Mapping[str, str], body: bytes) -> None:
    encoding = headers.get("content-encoding", "identity")
    if 300 <= status < 400:
        location = tame(headers.get("location", "nowhere"))
        raise NoCardError(f"answers {status} and points to {location}; redirects are not followed, ask there")
    if status in (401, 403):
        raise NoCardError(f"answers {status}: this card is not public, and this command sends no credential")
    if status != 200:
        raise NoCardError(f"answers {status} and no card: {_reason(body)}")
    if encoding != "identity":
        raise NoCardError(f"came compressed ({tame(encoding)}), which was not asked for")


def _reason(body: bytes) -> str:
    try:
        document = json.loads(body)
        return tame(document["error"]["message"])
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return tame(body[:600].decode(errors="replace"), 200) or "no reason given"


def _document(url: str, report: Any, headers: Mapping[str, str]) -> dict[str, Any]:
    import msgspec

    return {
        "url": url,
        "valid": not report.findings,
        "generations": list(report.generations),
        "name": report.card.get("name"),
        "version": report.card.get("version"),
        "interfaces": msgspec.to_builtins(report.interfaces),
        "findings": msgspec.to_builtins(report.findings),
        "signature": "not verified by this version" if report.is_signed else "absent",
        "headers": headers,
    }


def _print(url: str, report: Any, headers: Mapping[str, str]) -> None:
    facts = {"card": url, **_facts(report), **headers}
    if report.is_signed:
        facts["signature"] = "signature present, not verified by this version"
    for name, value in facts.items():
        print(f"{name:14} {tame(value)}" if sys.stdout.isatty() else f"{name}\t{tame(value)}")
    print()
    print_table(_rows(report.interfaces), empty="no interfaces")
    print()
    _print_findings(report)


def _rows(interfaces: Sequence[Any]) -> list[dict[str, str]]:
    """Return a row for each interface; the tenant only if there is one somewhere."""
    rows = []
    for shown in interfaces:
        row = {"a2a": tame(shown.version), "binding": tame(shown.binding), "url": tame(shown.url)}
        if any(other.tenant for other in interfaces):
            row["tenant"] = tame(shown.tenant)
        rows.append({**row, "listed in": shown.place})
    return rows


def _print_findings(report: Any) -> None:
    if not report.findings:
        print(f"valid by A2A {' and '.join(report.generations)}")
        return
    print_table(
        [
            {"where": tame(found.path) or "(card)", "wrong": tame(found.problem), "wanted": found.wanted}
            for found in report.findings[:SHOWN_FINDINGS]
        ]
    )
    print()
    more = len(report.findings) - SHOWN_FINDINGS
    print(f"not valid: {len(report.findings)} findings{f', {more} of them not shown' if more > 0 else ''}")


def _facts(report: Any) -> dict[str, str]:
    """Return what a card says of its agent, as far as it can be read."""
    read = report.card
    capabilities, provider = _object(read.get("capabilities")), _object(read.get("provider"))
    skills = [_object(skill) for skill in _array(read.get("skills"))]
    facts = {
        "name": f"{read.get('name', '')} {read.get('version', '')}".strip(),
        "description": str(read.get("description", "")),
        "provider": str(provider.get("organization", "")),
        "speaks": ", ".join(f"A2A {version}" for version in _versions(report)),
        "capabilities": ", ".join(name for name, value in capabilities.items() if value is True),
        "extensions": ", ".join(
            str(_object(extension).get("uri", "")) for extension in _array(capabilities.get("extensions"))
        ),
        "security": ", ".join(map(str, _object(read.get("securitySchemes")))),
        "skills": ", ".join(str(skill.get("id", "")) for skill in skills),
        "takes": ", ".join(map(str, _array(read.get("defaultInputModes")))),
        "gives": ", ".join(map(str, _array(read.get("defaultOutputModes")))),
    }
    return {name: value for name, value in facts.items() if value}


def _versions(report: Any) -> list[str]:
    return list(dict.fromkeys(shown.version for shown in report.interfaces if shown.version))


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _array(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
