"""The store that the configuration names: one SQLite file, or a PostgreSQL database."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dragoman.config import Config, Store
from dragoman.engines.settings import TEMPORAL, WORKERS, EngineTable
from dragoman.gateway.dispatching import DispatchStore
from dragoman.gateway.elsewhere import Offers, Shared
from dragoman.gateway.hooks import HookStore
from dragoman.gateway.operating import RunStore
from dragoman.gateway.ports import TaskStore
from dragoman.gateway.remotes import RemoteStore
from dragoman.gateway.tenants import Book, TenantStore
from dragoman.stores import sqlite
from dragoman.stores.errors import StoreError
from dragoman.stores.operating import StoreOperator
from dragoman.stores.target import BY_TRANSACTION, SQLITE, Target, is_postgres
from dragoman.tables import ConfigError

T = TypeVar("T")
Place = Path | Target
"""Where a store is; as text it is what may be shown of it."""


class ServedStore(TaskStore, HookStore, TenantStore, RunStore, RemoteStore, DispatchStore, Protocol):
    """What a server needs of its store."""

    async def check(self) -> None:
        """Make sure that the store can be written to.

        Raises:
            Unavailable: it is not so; the message is for the operator.
        """
        ...

    def close(self) -> None:
        """Finish what is being written and let the store go; for any thread."""
        ...


class SharedStore(ServedStore, Shared, Offers, Protocol):
    """One that other servers write to as well."""


def place_of(config: Config, data: Path) -> Place:
    """Return where the store is: what `store.url` names, or `dragoman.db` in the data folder.

    Raises:
        ConfigError: the password is not where the configuration says it is.
    """
    url = config.store.url
    if is_postgres(url):
        return Target(url, _password(config.store), config.store.pooling == BY_TRANSACTION)
    return Path(url.removeprefix(SQLITE)) if url else data / "dragoman.db"


def file_of(config: Config, data: Path, instead: str) -> Path:
    """Return where the SQLite file is.

    Raises:
        ConfigError: the store is no file; `instead` says what to do then.
    """
    place = place_of(config, data)
    if isinstance(place, Target):
        raise ConfigError(f"the store is {place}, and this command is for SQLite files; {instead}")
    return place


def not_shared(config: Config) -> list[str]:
    """Return warnings about keys that other servers on the same store need too, and that are this one's own.

    One seals what webhooks and remote agents want to be shown, which any server has to open.
    """
    if not is_postgres(config.store.url):
        return []
    keys = {
        "signing.key_file": bool(config.signing.key_file),
        "vault.key_env or vault.key_file": not seals_alone(config),
    }
    return [
        f"servers may share the store, and the key in this one's data folder is its own: set {name} before another "
        "server uses the store"
        for name, is_named in keys.items()
        if not is_named
    ]


def seals_alone(config: Config) -> bool:
    """Tell whether secrets in a store that servers may share are sealed with a key of one data folder."""
    return is_postgres(config.store.url) and not (config.vault.key_env or config.vault.key_file)


def described(place: Place, engine: EngineTable) -> str:
    """Return what kind of store it is, and what executes its runs, in words."""
    how = f"Temporal at {engine.temporal.address}" if engine.kind == TEMPORAL else "the embedded engine"
    if engine.runs == WORKERS:
        how += ", at workers"
    if isinstance(place, Target):
        pooled = ", behind a pooler by transaction" if place.by_transaction else ""
        return f"PostgreSQL at {place}{pooled}, with {how} (any number of server processes)"
    return f"SQLite at {place}, with {how} (one server process)"


def consult(place: Place, work: Callable[[Book], T]) -> T:
    """Return what `work` reads of the book in a store; for commands beside a server.

    Raises:
        StoreError: there is no store, or it has another schema.
        Unavailable: it cannot be read just now.
    """
    if isinstance(place, Target):
        result: T = postgres().consult(place, work)
        return result
    return sqlite.consult(place, work)


def administer(place: Place, work: Callable[[Book], T]) -> T:
    """Have `work` write to the book in a store, in one transaction; for commands beside a server.

    Raises:
        StoreError: it is no store, or has another schema.
        Unavailable: it cannot be written to just now.
    """
    if isinstance(place, Target):
        result: T = postgres().administer(place, work)
        return result
    return sqlite.administer(place, work)


def operator_of(place: Place) -> StoreOperator:
    """Return a store in the hands of an operator.

    Raises:
        StoreError: there is none, or it has another schema.
    """
    if isinstance(place, Target):
        operator: StoreOperator = postgres().Operator(place)
        return operator
    return sqlite.Operator(place)


def kept_tenants(place: Place) -> list[str]:
    """Return the tenants that a store keeps; none if it is missing or empty.

    Raises:
        StoreError: it cannot be read.
    """
    if isinstance(place, Target):
        return consult(place, lambda book: list(book.read(tokens=False).tenants))
    return sqlite.kept_tenants(place)


def postgres() -> Any:
    """Return the room of the PostgreSQL store, which is imported for those alone who use it.

    Raises:
        StoreError: its driver is not installed.
    """
    try:
        from dragoman.stores import postgres as room
    except ModuleNotFoundError as error:
        if error.name != "asyncpg":
            raise
        raise StoreError(
            "store.url names a PostgreSQL database, and the package asyncpg is missing; install it with "
            "`pip install 'dragoman[postgres]'`"
        ) from error
    return room


def _password(store: Store) -> str | None:
    """Return the password; without one, the database may want none, or asyncpg finds it as libpq would."""
    if store.password_env:
        value = os.environ.get(store.password_env)
        if value is None:
            raise ConfigError(f"store.password_env: the variable {store.password_env} is not set")
        return value
    if store.password_file:
        try:
            return Path(store.password_file).read_text(encoding="utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(
                f"store.password_file: {store.password_file} cannot be read: {error}"
            ) from error
    return None
