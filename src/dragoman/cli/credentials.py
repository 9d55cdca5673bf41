"""The token that a command shows to a server. It is named, never said: command lines are seen by everybody."""

import os
import re
from typing import Annotated
from urllib.parse import urlsplit

import typer

from dragoman.cli.settings import refuse

VARIABLE = "DRAGOMAN_API_KEY"

TokenEnvOption = Annotated[
    str | None,
    typer.Option(
        "--token-env", metavar="NAME", help="The environment variable that holds the token to show."
    ),
]


def credential(named: str | None, url: str, *, anywhere: bool = False) -> dict[str, str]:
    """Return the header that shows a token to the server at a URL; none if there is no token for it.

    `DRAGOMAN_API_KEY` is shown without being named to a server on this machine alone, or, with `anywhere`, to any: a
    command that calls whatever URL it is given must not hand somebody's token to all of them.
    """
    if named is None and not (anywhere or _is_here(url)):
        return {}
    variable = named or VARIABLE
    token = os.environ.get(variable, "").strip()
    if not token:
        if named is not None:
            refuse(f"the environment variable {variable} holds no token")
        return {}
    if not re.fullmatch(r"[A-Za-z0-9._~+/=-]+", token, re.ASCII):
        refuse(f"{variable} holds something that is no token")
    if url.lower().startswith("http:") and not _is_here(url):
        typer.echo(
            "dragoman: the token crosses the network unencrypted; https would not let others read it",
            err=True,
        )
    return {"Authorization": f"Bearer {token}"}


def hint(status: int, shown: dict[str, str]) -> str:
    """Return what to say beside the refusal of a request that showed no token, if that is why."""
    if status != 401 or shown:
        return ""
    return f"; name the variable that holds a token with --token-env, such as --token-env {VARIABLE}"


def _is_here(url: str) -> bool:
    # Only here: most commands need no address of anything.
    from dragoman.protocol.hosts import means_loopback

    try:
        return means_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False
