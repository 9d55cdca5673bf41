"""What the operator writes into the configuration about what is sent for callers, and their secrets."""

from msgspec import Struct

from dragoman.egress.settings import Outbound, policy_of


class VaultTable(Struct, frozen=True, forbid_unknown_fields=True):
    """`[vault]`: where the key is that callers' secrets are encrypted with; a file in the data folder if not said."""

    key_env: str = ""
    key_file: str = ""


def check_outgoing(outbound: Outbound, vault: VaultTable, retry: float) -> None:
    """Make sure that there is a policy of where requests may go, and that the vault's key is in one place.

    `retry` is `outbound.retry` in seconds.

    Raises:
        ValueError: it is not so; the message names the key.
    """
    policy_of(outbound)
    if retry <= 0:
        raise ValueError('outbound.retry must be longer than "0s"')
    if vault.key_env and vault.key_file:
        raise ValueError("vault.key_env and vault.key_file: the key can be in one place only")
