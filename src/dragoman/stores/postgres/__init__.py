"""Tasks in PostgreSQL, shared by as many servers as there are: group commit, a pool of readers, LISTEN and NOTIFY."""

from dragoman.stores.postgres.migrating import Upgraded, schema_status, script, upgrade
from dragoman.stores.postgres.operator import Operator
from dragoman.stores.postgres.store import PostgresStore
from dragoman.stores.postgres.tenants import administer, consult

__all__ = [
    "Operator",
    "PostgresStore",
    "Upgraded",
    "administer",
    "consult",
    "schema_status",
    "script",
    "upgrade",
]
