"""`dragoman backup`: a verified copy of the store, also beside a running server."""

import json
from pathlib import Path
from typing import Annotated

import typer

from dragoman.cli.output import copying
from dragoman.cli.settings import DATA_FOLDER, ConfigOption, DataOption, JsonOption, load_config, refuse


def backup(
    file: Annotated[Path, typer.Argument(help="The copy to make; it must not be there yet.")],
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Copy the store into a new file and verify the copy.

    The copy holds the store as it is at this moment; a server may go on running meanwhile. To serve it, put it as
    dragoman.db into an empty folder (a WAL of another store beside it would spoil it) and name that with --data.
    """
    from dragoman.storage import file_of
    from dragoman.stores.errors import StoreError
    from dragoman.stores.sqlite import back_up
    from dragoman.tables import ConfigError

    try:
        source = file_of(load_config(config), data, "copy a database with pg_dump")
    except ConfigError as error:
        refuse(error)
    if not file.parent.is_dir():
        refuse(f"{file.parent}: there is no such folder")
    try:
        with copying() as progress:
            made = back_up(source, file, progress)
    except FileExistsError:
        refuse(f"{file} is there already and is not overwritten; name a new file")
    except StoreError as error:
        refuse(error, 1)
    if as_json:
        facts = {"file": str(file), "bytes": made.bytes, "tasks": made.tasks, "schema": made.schema}
        print(json.dumps(facts, ensure_ascii=False, indent=2))
    else:
        print(
            f"{file}: {made.tasks} tasks, {made.bytes / 1024 / 1024:.1f} MiB, schema {made.schema}, verified"
        )
