"""The schema of a store: numbered SQL files, each applied once and in order."""

import re
from importlib import resources

from msgspec import Struct

_OLDEST = re.compile(r"^-- Servers of schema (\d+) and later may go on\b", re.MULTILINE)


class Migration(Struct, frozen=True):
    """One step of the schema, from that of the number before it to its own."""

    number: int
    name: str
    sql: str

    @property
    def oldest(self) -> int:
        """The oldest schema whose servers may use the store after this step, as the file says; its own if not."""
        found = _OLDEST.search(self.sql)
        return int(found[1]) if found else self.number


class SchemaStatus(Struct, frozen=True):
    """A store's schema (0: there is no store yet), that of this Dragoman, and what lies between them.

    `place` is where the store is, as it is shown. A schema above `newest` is one that this Dragoman may use.
    """

    place: str
    schema: int
    newest: int
    pending: tuple[Migration, ...]


def numbered_files(room: str) -> list[Migration]:
    """Return the migrations of a room of stores, in order."""
    folder = resources.files(f"dragoman.stores.{room}") / "migrations"
    found = sorted(
        (entry.name, entry.read_text(encoding="utf-8"))
        for entry in folder.iterdir()
        if entry.name.endswith(".sql")
    )
    return [Migration(int(name.split("_")[0]), name.removesuffix(".sql"), sql) for name, sql in found]
