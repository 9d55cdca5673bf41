"""`dragoman delegate`: have a remote agent do something, once, over a server's delegation API.

Over HTTP and not on the store, because a delegation is somebody's: the token says whose. The server records it first.
"""

import json
import sys
from typing import Annotated, Any

import typer

from dragoman.cli.credentials import VARIABLE, credential
from dragoman.cli.output import tame
from dragoman.cli.settings import JsonOption, refuse

DEFAULT_URL = "http://127.0.0.1:8080"
SECONDS = 90.0
"""Longer than a server waits for a remote agent, so that its answer comes first."""

PAGE = 500


def delegate(
    agent: Annotated[
        str, typer.Argument(help="The remote agent's id, or its name if no other of the tenant has it.")
    ],
    message: Annotated[str, typer.Argument(help="What to say to it.")],
    task_id: Annotated[
        str,
        typer.Option(
            "--task-id",
            help="The id of this delegation; the same one again is never sent again. A new one if left out.",
        ),
    ] = "",
    at_once: Annotated[
        bool,
        typer.Option(
            "--return-immediately", help="Ask the remote agent not to wait for the end of its work."
        ),
    ] = False,
    url: Annotated[
        str, typer.Option("--url", help="The server's address, with its base path.")
    ] = DEFAULT_URL,
    as_json: JsonOption = False,
) -> None:
    """Delegate to a remote agent, once, and print what came of it.

    DRAGOMAN_API_KEY holds the token of whoever delegates; it needs the scopes ai:answer and a2a:delegate. A server
    without tenants needs none. Exits 0 if the remote agent took it, 1 if it failed or if nobody knows (unknown). Say
    the same with the same --task-id to hear again what came of it.
    """
    from dragoman.model.ids import new_id

    used = task_id or new_id()
    if not task_id:
        print(f"task id: {used}", file=sys.stderr)
    body: dict[str, Any] = {"agentId": _find(url, agent), "taskId": used, "message": message}
    if at_once:
        body["returnImmediately"] = True
    told = _call("POST", url, "/tasks", body)
    if as_json:
        print(json.dumps(told, ensure_ascii=False, indent=2))
    else:
        _show(told)
    raise typer.Exit(1 if told["status"] in ("failed", "unknown") else 0)


def _show(told: dict[str, Any]) -> None:
    facts = {
        "status": told["status"],
        "delegation": told["delegationId"],
        "remote task": told.get("remoteTaskId", ""),
        "error": tame(told.get("error", {}).get("message", "")),
    }
    for name, value in facts.items():
        if value:
            print(f"{name:12} {tame(value)}", file=sys.stderr)
    text = _text(told.get("result", {}))
    if text:
        # Escaped where a terminal would obey it.
        print("\n".join(tame(line, 100_000) for line in text.splitlines()) if sys.stdout.isatty() else text)


def _text(result: Any) -> str:
    """Return the text of a message, or of a task's artifacts, or else of its status."""
    from dragoman.agents.called import as_called
    from dragoman.gateway.remotes import Outcome
    from dragoman.model.payload import pack_parsed

    return as_called(Outcome(status="", result=pack_parsed(result))).text


def _find(url: str, agent: str) -> str:
    """Return the id of a remote agent by its id or name, or end the command."""
    found, after = [], ""
    while True:
        page = _call("GET", url, f"/agents?limit={PAGE}&after={after}")
        found += page["agents"]
        after = page["after"]
        if not after:
            break
    named = [one["id"] for one in found if one["id"] == agent] or [
        one["id"] for one in found if one["name"] == agent
    ]
    if len(named) > 1:
        refuse(f"there are {len(named)} remote agents {agent}; name one by its id: {', '.join(named)}", 1)
    if not named:
        refuse(f"there is no remote agent {agent}; register it with `dragoman remotes add`", 1)
    return str(named[0])


def _call(method: str, url: str, rest: str, document: dict[str, Any] | None = None) -> Any:
    import httpx2

    place = f"{url.rstrip('/')}/v1/a2a{rest}"
    shown = credential(None, url, anywhere=True)
    try:
        reply = httpx2.request(method, place, json=document, headers=shown, timeout=SECONDS, trust_env=False)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        refuse(f"{place} cannot be reached: {error}. Is the server running?", 1)
    if reply.status_code != 200:
        missing = f"; {VARIABLE} holds no token" if reply.status_code == 401 and not shown else ""
        refuse(f"{place} answered {reply.status_code}: {_reason(reply.text)}{missing}", 1)
    return reply.json()


def _reason(body: str) -> str:
    try:
        document = json.loads(body)
        return tame(document["error"]["message"] if "error" in document else document["detail"])
    except (ValueError, KeyError, TypeError):
        return "that is no answer of a delegation API"
