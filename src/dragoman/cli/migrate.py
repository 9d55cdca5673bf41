"""`dragoman migrate`: the schema of the store, and bringing an older one up to this Dragoman's."""

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.output import copying
from dragoman.cli.settings import DATA_FOLDER, ConfigOption, DataOption, JsonOption, load_config, refuse

app = typer.Typer(help="Bring an older store up to this Dragoman.", no_args_is_help=True)


@app.command("status")
def status(
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show the schema of the store and what an upgrade would apply; exits 1 if there is anything."""
    found = _status(data, config)
    pending = [one.name for one in found.pending] if found.schema else []
    if as_json:
        facts = {
            "store": found.place,
            "schema": found.schema,
            "newest": found.newest,
            "pending": pending,
        }
        print(json.dumps(facts, ensure_ascii=False, indent=2))
    elif not found.schema:
        print(_none(found))
    elif found.schema > found.newest:
        print(f"{found.place}: schema {found.schema}, which this Dragoman, of schema {found.newest}, may use")
    else:
        print(f"{found.place}: schema {found.schema}, this Dragoman needs {found.newest}")
        for name in pending:
            print(f"  to apply: {name}")
    if pending or _is_due(found):
        raise typer.Exit(1)


@app.command("upgrade")
def upgrade(
    backup: Annotated[
        Path | None,
        typer.Option(
            "--backup", help="The copy to make first; beside the store, with its schema and the time."
        ),
    ] = None,
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the store, then bring it up to the newest schema: all of it, or nothing.

    No server may use a SQLite store meanwhile; those of a PostgreSQL store may where the new schema allows it. To go
    back to an older Dragoman, put the copy in the store's place.
    """
    from dragoman.stores.errors import StoreError
    from dragoman.stores.sqlite import upgrade as carry_out

    found = _status(data, config)
    place = _place(data, config)
    if not isinstance(place, Path):
        _upgrade_database(place, backup, as_json)
        return
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    copy = backup or place.with_name(f"{place.name}.schema-{found.schema}.{stamp}")
    if backup is not None and not copy.parent.is_dir():
        refuse(f"{copy.parent}: there is no such folder")
    try:
        with copying() as progress:
            done = carry_out(place, copy, progress)
    except FileExistsError:
        refuse(f"{copy} is there already and is not overwritten; name a new file")
    except StoreError as error:
        refuse(error, 1)
    if as_json:
        facts = {
            "store": found.place,
            "before": done.before,
            "schema": done.schema,
            "backup": str(done.backup) if done.backup else None,
        }
        print(json.dumps(facts, ensure_ascii=False, indent=2))
    elif done.backup:
        print(f"{done.backup}: the store as it was, verified")
        print(f"{found.place}: upgraded from schema {done.before} to {done.schema}")
    elif done.schema:
        print(f"{found.place}: has schema {done.schema} already; nothing was done")
    else:
        print(_none(found))


@app.command("sql")
def sql(
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Print the SQL that an upgrade would run, or that makes a new store where there is none; nothing is changed."""
    from dragoman.storage import postgres
    from dragoman.stores.sqlite import script

    found = _status(data, config)
    is_file = isinstance(_place(data, config), Path)
    text = script(found) if is_file else postgres().script(found)
    if text:
        print(text, end="")
    else:
        typer.echo(f"{found.place}: has schema {found.schema} already; there is nothing to run", err=True)


def _upgrade_database(place: Any, backup: Path | None, as_json: bool) -> None:
    """Bring a PostgreSQL database to the newest schema; its backups are made with its own tools."""
    from dragoman.storage import postgres
    from dragoman.stores.errors import StoreError

    if backup is not None:
        refuse(f"--backup is for SQLite files; copy {place} with pg_dump before you upgrade it")
    try:
        done = postgres().upgrade(place)
    except StoreError as error:
        refuse(error, 1)
    if as_json:
        facts = {"store": str(place), "before": done.before, "schema": done.schema, "backup": None}
        print(json.dumps(facts, ensure_ascii=False, indent=2))
    elif not done.before:
        print(f"{place}: made with schema {done.schema}")
    elif done.before < done.schema:
        print(f"{place}: upgraded from schema {done.before} to {done.schema}")
    else:
        print(f"{place}: has schema {done.schema} already; nothing was done")


def _none(found: Any) -> str:
    verb = "migrate upgrade" if _is_due(found) else "serve"
    return f"{found.place}: no store yet; `dragoman {verb}` makes it with schema {found.newest}"


def _is_due(found: Any) -> bool:
    """Tell whether a store is still to be made by an upgrade: a file is made by serving."""
    return not found.schema and found.place.startswith("postgresql://")


def _status(data: Path, config: Path | None) -> Any:
    from dragoman.storage import postgres
    from dragoman.stores.errors import StoreError
    from dragoman.stores.sqlite import schema_status

    place = _place(data, config)
    try:
        return schema_status(place) if isinstance(place, Path) else postgres().schema_status(place)
    except StoreError as error:
        refuse(error, 1)


def _place(data: Path, config: Path | None) -> Any:
    from dragoman.storage import place_of
    from dragoman.tables import ConfigError

    try:
        return place_of(load_config(config), data)
    except ConfigError as error:
        refuse(error)
