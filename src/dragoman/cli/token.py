"""`dragoman token`: what lets a principal in. A token is shown once; the store keeps only its hash."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.administering import change, configured, read
from dragoman.cli.output import print_table, tame
from dragoman.cli.settings import DATA_FOLDER, ConfigOption, DataOption, JsonOption, refuse

app = typer.Typer(
    help="Tokens, which let principals in. A running server follows within 5 seconds.", no_args_is_help=True
)

PAGE = 500

FAR = 1e12
"""Seconds beyond every lifetime that is allowed."""


@app.command("create")
def create(
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant.")],
    principal: Annotated[str, typer.Option("--principal", help="Whom the token lets in.")],
    scopes: Annotated[
        list[str],
        typer.Option(
            "--scope",
            help="What it allows: ai:answer, a2a:read, a2a:delegate, a2a:approve, ai:*, a2a:*, *, or, to administer "
            "this server, admin:*; may be repeated.",
        ),
    ],
    expires: Annotated[
        str, typer.Option("--expires", help="How long it is good, such as 90d; for ever if left out.")
    ] = "",
    note: Annotated[str, typer.Option("--note", help="What it is for.")] = "",
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a token and print it, alone on standard output. Nobody can read it again."""
    from dragoman.protocol.protojson import timestamp_text

    lifetime = _milliseconds(expires)
    token, text = change(
        data,
        config,
        lambda desk: desk.create_token(tenant, principal, scopes, lifetime=lifetime, note=note),
    )
    if as_json:
        print(json.dumps({**_facts(token, token.created_at), "token": text}, ensure_ascii=False, indent=2))
    else:
        print(text)
    until = f"good until {timestamp_text(token.expires_at)}" if token.expires_at else "it does not expire"
    typer.echo(
        f"dragoman: token {token.id} for {principal} of {tenant}; {until}; it is not shown again", err=True
    )
    if not {"ai:answer", "ai:*", "*"} & set(scopes) and scopes != ["admin:*"]:
        typer.echo("dragoman: without ai:answer it lets nobody call an agent", err=True)


@app.command("list")
def list_tokens(
    tenant: Annotated[str, typer.Option("--tenant", help="Only tokens of this tenant.")] = "",
    principal: Annotated[str, typer.Option("--principal", help="Only tokens of this principal.")] = "",
    everything: Annotated[bool, typer.Option("--all", help="Also those that are good no more.")] = False,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List tokens, those of the configuration too, without saying them."""

    def look(book: Any, declared: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        after = ""
        while page := book.tokens(tenant, principal, after=after, limit=PAGE):
            found += [_facts(token, book.now) for token in page]
            after = page[-1].id
        return found

    rows = [row for row in read(data, config, look) if everything or row["state"] == "good"]
    rows += [
        row
        for row in _configured(configured(config))
        if tenant in ("", row["tenant"]) and principal in ("", row["principal"])
    ]
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    shown = [
        {
            "id": row["id"],
            "tenant": row["tenant"],
            "principal": row["principal"],
            "scopes": " ".join(row["scopes"]),
            "state": row["state"],
            "expires": row["expires"] or "never",
            "note": tame(row["note"]),
        }
        for row in rows
    ]
    print_table(shown, empty="no tokens")


@app.command("revoke")
def revoke(
    token_id: Annotated[str, typer.Argument(metavar="id", help="The token's id, as `token list` shows it.")],
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Make a token good for nothing; what it has open ends."""
    done = change(data, config, lambda desk: desk.revoke_token(token_id))
    print(f"token {token_id} {'is revoked' if done else 'was revoked before'}")


def _milliseconds(text: str) -> int | None:
    from dragoman.tables import ConfigError, seconds

    if not text:
        return None
    try:
        return int(min(seconds(text, "--expires"), FAR) * 1000)
    except ConfigError as error:
        refuse(error)


def _facts(token: Any, now: int) -> dict[str, Any]:
    from dragoman.protocol.protojson import timestamp_text

    return {
        "id": token.id,
        "tenant": token.tenant,
        "principal": token.principal,
        "scopes": list(token.scopes),
        "state": token.state(now),
        "created": timestamp_text(token.created_at),
        "expires": timestamp_text(token.expires_at) if token.expires_at is not None else None,
        "revoked": timestamp_text(token.revoked_at) if token.revoked_at is not None else None,
        "note": token.note,
    }


def _configured(settings: Any) -> list[dict[str, Any]]:
    return [
        {
            "id": f"tenants.{tenant}.principals.{name}.tokens[{index}]",
            "tenant": tenant,
            "principal": name,
            "scopes": list(token.scopes),
            "state": "good",
            "created": None,
            "expires": None,
            "revoked": None,
            "note": "in the configuration",
        }
        for tenant, table in settings.tenants.items()
        for name, who in table.principals.items()
        for index, token in enumerate(who.tokens)
    ]
