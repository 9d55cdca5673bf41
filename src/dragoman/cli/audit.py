"""`dragoman audit`: who did what, when, on what, and what came of it."""

import json
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from dragoman.cli.administering import read
from dragoman.cli.settings import DATA_FOLDER, ConfigOption, DataOption, JsonOption, refuse

app = typer.Typer(help="Who did what, when, on what, and what came of it.", no_args_is_help=True)

PAGE = 1000


@app.command("export")
def export(
    since: Annotated[
        str,
        typer.Option(
            "--since", help="Only what happened since: a date, a time (in UTC), or how long ago, such as 24h."
        ),
    ] = "",
    tenant: Annotated[
        str, typer.Option("--tenant", help="Only what a tenant did, or what was done to it.")
    ] = "",
    data: DataOption = Path(DATA_FOLDER),
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the audit, oldest first: tab-separated lines, or, with --json, one JSON object a line."""
    from dragoman.admin import shapes

    begin = _milliseconds(since)
    if not as_json:
        print("\t".join(_COLUMNS))
    for row in _rows(data, config, begin):
        if not tenant or _concerns(row.entry, tenant):
            _print(shapes.audit(row), as_json)
    sys.stdout.flush()


def _rows(data: Path, config: Path | None, since: int) -> Iterator[Any]:
    after = 0

    def page(book: Any, declared: Any) -> Any:
        return book.audited(since=since, after=after, limit=PAGE)

    # Each page by itself: a long read would keep the WAL from being cut.
    while rows := read(data, config, page):
        yield from rows
        after = rows[-1].id


_COLUMNS = (
    "id",
    "time",
    "tenant",
    "principal",
    "credential",
    "address",
    "action",
    "target",
    "outcome",
    "detail",
    "times",
)


def _print(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
    else:
        print("\t".join(str(facts[name]) for name in _COLUMNS))


def _concerns(entry: Any, tenant: str) -> bool:
    about = f"tenants/{tenant}"
    return bool(entry.tenant == tenant or entry.target == about or entry.target.startswith(f"{about}/"))


def _milliseconds(text: str) -> int:
    """Return the time that a text means, in milliseconds since 1970 UTC; ends the command if it means none."""
    from dragoman.tables import ConfigError, seconds

    if not text:
        return 0
    try:
        return int((time.time() - min(seconds(text, "--since"), time.time())) * 1000)
    except ConfigError:
        pass
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        refuse(
            f'--since "{text}" is no time; write 2026-01-31, 2026-01-31T12:00:00Z, or how long ago it was: "24h", "7d"'
        )
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
