"""`dragoman approvals`: what waits to be allowed, and allowing or denying it, over a server's approval API.

Over HTTP and not on the store, because a decision is somebody's: the token says whose, and what they may see.
"""

import json
import sys
from typing import Annotated, Any

import typer

from dragoman.cli.credentials import VARIABLE, credential
from dragoman.cli.output import print_table, tame
from dragoman.cli.settings import JsonOption, refuse

app = typer.Typer(
    help=(
        "List, approve and deny what agents want to do. DRAGOMAN_API_KEY holds the token of whoever decides; "
        "it needs the scopes ai:answer and a2a:approve. A server without tenants needs none."
    ),
    no_args_is_help=True,
)

UrlOption = Annotated[str, typer.Option("--url", help="The server's address, with its base path.")]
IdArgument = Annotated[str, typer.Argument(help="The approval's id.")]
NoteOption = Annotated[str, typer.Option("--note", help="A word about it, for the agent.")]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask again on a terminal.")]

DEFAULT_URL = "http://127.0.0.1:8080"
SECONDS = 30.0


@app.command("list")
def list_approvals(url: UrlOption = DEFAULT_URL, as_json: JsonOption = False) -> None:
    """List the approvals that wait for a decision, oldest first."""
    found = _open(url)
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=2))
        return
    rows = [
        {
            "id": one["id"],
            "agent": one["agent"],
            "for": one["principal"],
            "action": tame(one["action"]),
            "details": tame(json.dumps(one["details"], ensure_ascii=False)) if "details" in one else "",
            "since": one["createdAt"],
            "until": one["expiresAt"],
        }
        for one in found
    ]
    print_table(rows, empty="nothing waits for an approval")


@app.command("approve")
def approve(
    approval_id: IdArgument,
    note: NoteOption = "",
    url: UrlOption = DEFAULT_URL,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Allow what an agent wants to do. It goes on at once, and the decision cannot be taken back."""
    _decide(url, approval_id, "approve", note, yes, as_json)


@app.command("deny")
def deny(
    approval_id: IdArgument,
    note: NoteOption = "",
    url: UrlOption = DEFAULT_URL,
    yes: YesOption = False,
    as_json: JsonOption = False,
) -> None:
    """Deny what an agent wants to do. It goes on without, and the decision cannot be taken back."""
    _decide(url, approval_id, "deny", note, yes, as_json)


def _decide(url: str, approval_id: str, decision: str, note: str, yes: bool, as_json: bool) -> None:
    """Show an approval, then decide exactly what was shown."""
    shown = next((one for one in _open(url) if one["id"] == approval_id), None)
    if shown is None:
        refuse(f"no approval {approval_id} waits for you; `dragoman approvals list` shows what does", 1)
    _show(shown)
    if not yes and sys.stdin.isatty() and not typer.confirm(f"{decision}?", err=True):
        refuse("nothing was decided", 1)
    document = {"decision": decision, "note": note, "digest": shown["digest"]}
    decided = _call("POST", url, f"/{approval_id}", document)
    if as_json:
        print(json.dumps(decided, ensure_ascii=False, indent=2))
    else:
        verdict = "approved" if decision == "approve" else "denied"
        print(f"{approval_id} is {verdict} by {decided['decidedBy']}")


def _show(approval: dict[str, Any]) -> None:
    """Show what would be done, on standard error: standard output is for what came of it."""
    said = {
        "agent": approval["agent"],
        "for": approval["principal"],
        "action": tame(approval["action"], 2000),
        "task": approval["taskId"],
        "until": approval["expiresAt"],
    }
    for name, value in said.items():
        print(f"{name:8} {value}", file=sys.stderr)
    if "details" in approval:
        # Escaped, so that nothing in it is obeyed by a terminal.
        print(json.dumps(approval["details"], indent=2), file=sys.stderr)


def _open(url: str) -> list[dict[str, Any]]:
    """Return all approvals that wait for whoever asks."""
    found: list[dict[str, Any]] = []
    after = ""
    while True:
        page = _call("GET", url, f"?after={after}" if after else "")
        found += page["approvals"]
        after = page["after"]
        if not after:
            return found


def _call(method: str, url: str, rest: str, document: dict[str, Any] | None = None) -> Any:
    import httpx2

    place = f"{url.rstrip('/')}/v1/a2a/approvals{rest}"
    shown = credential(None, url, anywhere=True)
    try:
        reply = httpx2.request(
            method,
            place,
            json=document,
            headers=shown,
            timeout=SECONDS,
            trust_env=False,
        )
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        refuse(f"{place} cannot be reached: {error}. Is the server running?", 1)
    if reply.status_code != 200:
        missing = f"; {VARIABLE} holds no token" if reply.status_code == 401 and not shown else ""
        refuse(f"{place} answered {reply.status_code}: {_reason(reply.text)}{missing}", 1)
    return reply.json()


def _reason(body: str) -> str:
    try:
        return tame(json.loads(body)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return "that is no answer of an approval API"
