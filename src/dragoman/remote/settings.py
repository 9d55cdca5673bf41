"""What the configuration says of a remote agent. Read by every command, so nothing that calls one is imported here."""

from msgspec import Struct


class RemoteTable(Struct, frozen=True, forbid_unknown_fields=True):
    """`[agents.ID.a2a]`: an agent of somebody else, by its URL or that of its card.

    `bearer_env` and `headers_env` name what it is to be shown. `origins` are further ones that its card may lead to,
    and the credential with it. `version` and `binding` are the only ones to use. `jwks_file` holds the keys that must
    have signed its card. `idempotent`: it takes a message that is sent again under its id for the same one. `idle` is
    how long it may be silent, `patience` how long a task that cannot be reached is looked for, `refresh` how often the
    card is fetched.
    """

    url: str = ""
    bearer_env: str = ""
    headers_env: dict[str, str] = {}
    origins: tuple[str, ...] = ()
    version: str = ""
    binding: str = ""
    jwks_file: str = ""
    idempotent: bool = False
    idle: str = "30s"
    patience: str = "60s"
    refresh: str = "5m"
