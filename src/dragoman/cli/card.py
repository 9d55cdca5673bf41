"""`dragoman card`: fetch the card of any A2A agent, and say what it offers, what is wrong with it and who signed it."""

import asyncio
import json
import re
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any
from urllib.parse import urlsplit, urlunsplit

import typer

from dragoman.cli.fetching import NothingThereError, fetch
from dragoman.cli.output import print_table, tame
from dragoman.cli.settings import JsonOption, refuse
from dragoman.cli.signatures import Signed, look_at_signatures, unverified

CARD_PATH = "/.well-known/agent-card.json"
SHOWN_FINDINGS = 100
SHOWN_HEADERS = ("content-type", "etag", "cache-control", "last-modified", "vary", "a2a-version")

_AGENT_ID = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}", re.ASCII)


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
    verify: Annotated[
        bool, typer.Option("--verify", help="Verify the signatures, by keys that stand beside the card.")
    ] = False,
    pinned: Annotated[
        str,
        typer.Option("--jwks", help="Verify the signatures by the keys of this file or URL, and no others."),
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Check the card of any A2A agent.

    Names every member that the standard does not allow, with what it wants, and shows what the agent offers to
    callers of A2A 1.0 and 0.3. Exits 1 if there is anything to name, or no card, or if what a version of A2A reads
    of it is not signed well where that is to be verified.
    """
    from dragoman.cards.validate import validate

    place = card_url(url)
    try:
        body, headers = asyncio.run(fetch(place, "card", version))
    except NothingThereError as error:
        refuse(f"{place}: {error}", 1)
    report = validate(body)
    signed = look_at_signatures(place, report, version, pinned) if verify or pinned else unverified(report)
    shown = {name: headers[name] for name in SHOWN_HEADERS if name in headers}
    if as_json:
        print(json.dumps(_document(place, report, signed, shown), indent=2))
    else:
        _print(place, report, signed, shown)
    raise typer.Exit(0 if signed.is_good and not report.findings else 1)


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


def _document(url: str, report: Any, signed: Signed, headers: Mapping[str, str]) -> dict[str, Any]:
    import msgspec

    return {
        "url": url,
        "valid": not report.findings,
        "generations": list(report.generations),
        "name": report.card.get("name"),
        "version": report.card.get("version"),
        "interfaces": msgspec.to_builtins(report.interfaces),
        "findings": msgspec.to_builtins(report.findings),
        **signed.document(),
        "headers": headers,
    }


def _print(url: str, report: Any, signed: Signed, headers: Mapping[str, str]) -> None:
    facts = {"card": url, **_facts(report), **headers, **signed.facts()}
    for name, value in facts.items():
        print(f"{name:14} {tame(value)}" if sys.stdout.isatty() else f"{name}\t{tame(value)}")
    print()
    print_table(_rows(report.interfaces), empty="no interfaces")
    print()
    if signed.rows:
        print_table(signed.rows)
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
