"""A PostgreSQL server for Dragoman's tasks: one of the benchmark's own, with everything at its defaults.

It runs on this machine, beside what is measured, and syncs each commit to the disk as it does in production.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench.environments import Unavailable
from bench.servers import CACHE, Server
from bench.usage import cpu_seconds
from dragoman.stores.postgres import upgrade
from dragoman.stores.target import Target
from tests.harness.postgres import PostgresMissingError, PostgresServer


@dataclass(frozen=True)
class Database:
    """An empty database with Dragoman's schema, alone on its server."""

    url: str
    pid: int
    """The id of the server's first process, under which all others are."""

    def cpu_seconds(self) -> float:
        """User and system time of the server's processes, ended ones included."""
        return cpu_seconds(self.pid)

    def behind(self, server: Server) -> Server:
        """The same Dragoman, with its tasks in this database."""
        return replace(server, store_url=self.url)


@contextmanager
def new_database() -> Iterator[Database]:
    """A new server with one database, until the block ends.

    Raises:
        Unavailable: if there is no PostgreSQL that could be started.
    """
    CACHE.mkdir(parents=True, exist_ok=True)
    try:
        server = PostgresServer(place=_place())
    except PostgresMissingError as error:
        raise Unavailable(str(error)) from error
    try:
        upgrade(Target(server.url()))
        yield Database(server.url(), server.pid)
    finally:
        server.remove()


def _place() -> Path | None:
    """Where its files are: on the repository's disk, unless it runs as somebody who may not go there."""
    is_open = all(folder.stat().st_mode & 0o001 for folder in (CACHE, *CACHE.parents))
    return CACHE if is_open or os.geteuid() else None
