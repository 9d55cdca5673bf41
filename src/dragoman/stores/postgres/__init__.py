"""Tasks in PostgreSQL, shared by as many servers as there are: group commit, a pool of readers, LISTEN and NOTIFY."""

from dragoman.stores.postgres.connection import Target
from dragoman.stores.postgres.migrating import Upgraded, schema_status, script, upgrade
from dragoman.stores.postgres.store import PostgresStore

__all__ = ["PostgresStore", "Target", "Upgraded", "schema_status", "script", "upgrade"]
