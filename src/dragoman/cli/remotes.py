"""`dragoman remotes`: the remote agents that tenants have registered, kept in the store beside a running server."""

import asyncio
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.output import print_table, tame
from dragoman.cli.settings import DATA_FOLDER, ConfigOption, DataOption, JsonOption, load_config, refuse

app = typer.Typer(
    help="List, add, discover and remove remote agents of a tenant (for operators). A server goes by it at once.",
    no_args_is_help=True,
)

PAGE = 500

TenantOption = Annotated[
    str,
    typer.Option("--tenant", help="Whose they are; on a server without tenants it is left out."),
]
RemoteArgument = Annotated[
    str, typer.Argument(metavar="AGENT", help="The agent's id, or its name if no other has it.")
]


@app.command("list")
def list_remotes(
    tenant: TenantOption = "",
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the remote agents of a tenant, oldest first. A bearer token is never shown, only that there is one."""
    operator, whose = _open(data, config, tenant)
    rows = [_row(remote) for remote in _all(operator, whose)]
    operator.close()
    if as_json:
        print(json.dumps(rows, ensure_ascii=False, indent=2))
        return
    shown = [
        {
            name: tame(value) if isinstance(value, str) else ("yes" if value else "no")
            for name, value in row.items()
        }
        for row in rows
    ]
    print_table(shown, empty=f"no remote agents of {whose}")


@app.command("add")
def add(
    name: Annotated[str, typer.Argument(help="What it is called here.")],
    endpoint_url: Annotated[str, typer.Argument(metavar="URL", help="Its JSON-RPC endpoint, exactly.")],
    token_env: Annotated[
        str, typer.Option("--token-env", help="The environment variable that holds its bearer token.")
    ] = "",
    token_file: Annotated[
        Path | None, typer.Option("--token-file", help="The file that holds its bearer token.")
    ] = None,
    tenant: TenantOption = "",
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Register a remote agent and print its id. Its token is encrypted, and sent to the origin of the URL alone."""
    from dragoman.cli.administering import done_here, guarded
    from dragoman.gateway.remotes import registered
    from dragoman.tables import ConfigError

    token = _token(token_env, token_file)
    if token:
        _check_key(data, config)
    operator, whose = _open(data, config, tenant)
    abroad = _abroad(data, config)

    def work() -> Any:
        # What is sealed with another key than the rest would keep the server from starting.
        abroad.check(operator.seals(), hooks=False)
        remote = registered(whose, name, endpoint_url, token, abroad.places, abroad)
        return operator.add_remote(remote, done_here("RegisterRemote"))

    try:
        kept = guarded(work)
    except ConfigError as error:
        refuse(error)
    operator.close()
    print(json.dumps(_row(kept), ensure_ascii=False, indent=2) if as_json else kept.id)


@app.command("discover")
def discover(
    agent: RemoteArgument,
    tenant: TenantOption = "",
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fetch and judge the card of a remote agent. It is untrusted, and changes nothing here.

    Exits 1 if there is none, or if there is anything wrong with it.
    """
    from dragoman.cli.administering import done_here, guarded
    from dragoman.gateway.remotes import remote_path

    operator, whose = _open(data, config, tenant)
    remote = _find(operator, whose, agent)
    guarded(lambda: operator.note(done_here("DiscoverRemote", remote_path(remote.id))))
    operator.close()
    abroad = _abroad(data, config)

    async def look() -> Any:
        try:
            return await abroad.discover(remote)
        finally:
            await abroad.close()

    found = guarded(lambda: asyncio.run(look()))
    if as_json:
        print(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        _show(found)
    raise typer.Exit(0 if found["valid"] and found["signature"] != "bad" else 1)


@app.command("remove")
def remove(
    agent: RemoteArgument,
    tenant: TenantOption = "",
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Remove a remote agent and its token. What was delegated to it stays recorded."""
    from dragoman.cli.administering import done_here, guarded

    operator, whose = _open(data, config, tenant)
    remote = _find(operator, whose, agent)
    guarded(lambda: operator.remove_remote(remote, done_here("RemoveRemote")))
    operator.close()
    print(f"{remote.id} is removed")


def _row(remote: Any) -> dict[str, Any]:
    from dragoman.bindings.remotes import shown

    document = shown(remote)
    return {name: document[name] for name in ("id", "name", "endpoint_url", "has_credential", "created_at")}


def _show(found: dict[str, Any]) -> None:
    card = found["card"]
    facts = {
        "card": found["url"],
        "name": f"{card.get('name', '')} {card.get('version', '')}".strip(),
        "description": str(card.get("description", "")),
        "signature": found["signature"],
    }
    for name, value in facts.items():
        print(f"{name}\t{tame(value)}")
    print()
    # A card for callers of both generations names some of them twice.
    interfaces = dict.fromkeys((one["version"], one["binding"], one["url"]) for one in found["interfaces"])
    print_table(
        [
            {"a2a": tame(version), "binding": tame(binding), "url": tame(url)}
            for version, binding, url in interfaces
        ],
        empty="no interfaces",
    )
    if found["findings"]:
        print()
        print_table(
            [
                {
                    "where": tame(one["path"]) or "(card)",
                    "wrong": tame(one["problem"]),
                    "wanted": one["wanted"],
                }
                for one in found["findings"]
            ]
        )


def _all(operator: Any, tenant: str) -> Iterator[Any]:
    from dragoman.cli.administering import guarded

    def after(place: str) -> Any:
        return guarded(lambda: operator.remotes(tenant, place, PAGE))

    page = after("")
    while page:
        yield from page
        page = after(page[-1].id)


def _find(operator: Any, tenant: str, agent: str) -> Any:
    """Return a remote agent by its id or name, or end the command."""
    remotes = list(_all(operator, tenant))
    found = [one for one in remotes if one.id == agent] or [one for one in remotes if one.name == agent]
    if len(found) > 1:
        refuse(f"there are {len(found)} remote agents {agent} of {tenant}; name one by its id", 1)
    if not found:
        refuse(
            f"there is no remote agent {agent} of {tenant}; `dragoman remotes list` shows those there are", 1
        )
    return found[0]


def _token(variable: str, file: Path | None) -> str:
    """Return the bearer token from where it is; empty if there is none."""
    if variable and file is not None:
        refuse("the token can be in one place only; say --token-env or --token-file")
    if variable:
        token = os.environ.get(variable, "").strip()
        if not token:
            refuse(f"the environment variable {variable} holds no token")
        return token
    if file is None:
        return ""
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        refuse(f"{file} cannot be read: {error}")
    if not token:
        refuse(f"{file} holds no token")
    return token


def _check_key(data: Path, config: Path | None) -> None:
    """End the command if it would have to make a key that no server on the store has."""
    from dragoman.outbound.vault import KEY_FILE
    from dragoman.storage import seals_alone

    if seals_alone(load_config(config)) and not (data / KEY_FILE).is_file():
        refuse(
            f"there is no key in {data}, and the servers on the store could not open what one made here seals; "
            "set vault.key_env or vault.key_file to the key that they have"
        )


def _abroad(data: Path, config: Path | None) -> Any:
    from dragoman.delegating import Abroad

    return Abroad(load_config(config), data, os.environ)


def _open(data: Path, config: Path | None, tenant: str) -> tuple[Any, str]:
    """Return the store and the tenant that is meant, or end the command."""
    from dragoman.admin import Overview
    from dragoman.callers import declared
    from dragoman.cli.administering import guarded
    from dragoman.model import LOCAL
    from dragoman.storage import consult, operator_of, place_of
    from dragoman.stores.errors import StoreError
    from dragoman.tables import ConfigError

    try:
        settings = load_config(config)
        place = place_of(settings, data)
        operator = operator_of(place)
    except ConfigError as error:
        refuse(error)
    except StoreError as error:
        refuse(error, 1)
    known = guarded(
        lambda: consult(place, lambda book: Overview(book.read(tokens=False), declared(settings)))
    )
    tenants = [one.name for one in known.tenants()]
    if not tenant and not tenants:
        return operator, LOCAL
    if not tenant:
        refuse(f"say whose remote agents with --tenant; there are {', '.join(tenants)}")
    guarded(lambda: known.require_tenant(tenant))
    return operator, tenant
