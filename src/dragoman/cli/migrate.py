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
            "store": str(found.path),
            "schema": found.schema,
            "newest": found.newest,
            "pending": pending,
        }
        print(json.dumps(facts, ensure_ascii=False, indent=2))
    elif not found.schema:
        print(f"{found.path}: no store yet; `dragoman serve` makes it with schema {found.newest}")
    else:
        print(f"{found.path}: schema {found.schema}, this Dragoman needs {found.newest}")
        for name in pending:
            print(f"  to apply: {name}")
    if pending:
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

    No server may use the store meanwhile. To go back to an older Dragoman, put the copy in the store's place.
    """
    from dragoman.stores.sqlite import StoreError
    from dragoman.stores.sqlite import upgrade as carry_out

    found = _status(data, config)
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    copy = backup or found.path.with_name(f"{found.path.name}.schema-{found.schema}.{stamp}")
    if backup is not None and not copy.parent.is_dir():
        refuse(f"{copy.parent}: there is no such folder")
    try:
        with copying() as progress:
            done = carry_out(found.path, copy, progress)
    except FileExistsError:
        refuse(f"{copy} is there already and is not overwritten; name a new file")
    except StoreError as error:
        refuse(error, 1)
    if as_json:
        facts = {
            "store": str(found.path),
            "before": done.before,
            "schema": done.schema,
            "backup": str(done.backup) if done.backup else None,
        }
        print(json.dumps(facts, ensure_ascii=False, indent=2))
    elif done.backup:
        print(f"{done.backup}: the store as it was, verified")
        print(f"{found.path}: upgraded from schema {done.before} to {done.schema}")
    elif done.schema:
        print(f"{found.path}: has schema {done.schema} already; nothing was done")
    else:
        print(f"{found.path}: no store yet; `dragoman serve` makes it with schema {found.newest}")


@app.command("sql")
def sql(
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
) -> None:
    """Print the SQL that an upgrade would run, or that makes a new store where there is none; nothing is changed."""
    from dragoman.stores.sqlite import script

    found = _status(data, config)
    text = script(found)
    if text:
        print(text, end="")
    else:
        typer.echo(f"{found.path}: has schema {found.schema} already; there is nothing to run", err=True)


def _status(data: Path, config: Path | None) -> Any:
    from dragoman import app as server
    from dragoman.stores.sqlite import StoreError, schema_status
    from dragoman.tables import ConfigError

    try:
        return schema_status(server.database_path(load_config(config), data))
    except ConfigError as error:
        refuse(error)
    except StoreError as error:
        refuse(error, 1)
