"""What names a store: the path of a SQLite file, or the URL of a PostgreSQL database."""

from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

SQLITE = "sqlite:///"
POSTGRES = ("postgresql", "postgres")
BY_SESSION, BY_TRANSACTION = "session", "transaction"
"""What a pooler before a database gives its clients: a session each, as the database itself does, or one for the time
of a transaction."""


class Target(Struct, frozen=True):
    """Where a PostgreSQL database is. `url` has no password in it; that comes apart, and is never shown.

    `by_transaction`: a pooler is before it, and nothing of a session outlives a transaction.
    """

    url: str
    password: str | None = None
    by_transaction: bool = False

    def __str__(self) -> str:
        parts = urlsplit(self.url)
        return f"postgresql://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def __repr__(self) -> str:
        return f"Target({self})"


def is_postgres(url: str) -> bool:
    """Tell whether a URL is that of a PostgreSQL database."""
    return url.partition("://")[0] in POSTGRES


def pooling_fault(pooling: str) -> str:
    """Return what is wrong with what is said of a pooler, as the rest of a sentence; empty if nothing is."""
    if pooling in (BY_SESSION, BY_TRANSACTION):
        return ""
    return f'= "{pooling}" is neither "{BY_SESSION}" nor "{BY_TRANSACTION}"'


def url_fault(url: str) -> str:
    """Return what is wrong with the URL of a store, as the rest of a sentence; empty if nothing is."""
    if not url or url.startswith(SQLITE):
        return ""
    if not is_postgres(url):
        return 'must be "sqlite:///path" or "postgresql://user@host/database"'
    try:
        parts = urlsplit(url)
    except ValueError as error:
        return f"is no URL: {error}"
    if parts.password is not None or "password" in parse_qs(parts.query):
        return "must not hold a password; say with store.password_env or store.password_file where it is"
    return ""
