"""Tasks in one SQLite file: WAL, synchronous=FULL, one writer thread with group commit, readers beside it."""

from dragoman.stores.errors import StoreBusy, StoreError
from dragoman.stores.sqlite.backup import Backup, back_up
from dragoman.stores.sqlite.migrating import Upgraded, schema_status, script, upgrade
from dragoman.stores.sqlite.operator import Operator
from dragoman.stores.sqlite.store import SqliteStore
from dragoman.stores.sqlite.tenants import administer, consult, kept_tenants

__all__ = [
    "Backup",
    "Operator",
    "SqliteStore",
    "StoreBusy",
    "StoreError",
    "Upgraded",
    "administer",
    "back_up",
    "consult",
    "kept_tenants",
    "schema_status",
    "script",
    "upgrade",
]
