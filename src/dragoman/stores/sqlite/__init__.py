"""Tasks in one SQLite file: WAL, synchronous=FULL, one writer thread with group commit, readers beside it."""

from dragoman.stores.sqlite.backup import Backup, back_up
from dragoman.stores.sqlite.connection import StoreBusy, StoreError
from dragoman.stores.sqlite.migrating import SchemaStatus, Upgraded, schema_status, script, upgrade
from dragoman.stores.sqlite.operator import Operator
from dragoman.stores.sqlite.store import SqliteStore

__all__ = [
    "Backup",
    "Operator",
    "SchemaStatus",
    "SqliteStore",
    "StoreBusy",
    "StoreError",
    "Upgraded",
    "back_up",
    "schema_status",
    "script",
    "upgrade",
]
