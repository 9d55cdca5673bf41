"""The vault: secrets of callers, encrypted at rest (AES-256-GCM), each bound to a tenant and an origin.

A sealed secret is a byte for the form, the first bytes of the key's hash, a nonce and the ciphertext. Several keys may
be given: the first one seals, and all of them open, so that a key can be replaced while what it sealed is still needed.
"""

import base64
import binascii
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from dragoman.gateway.remotes import SEAL_BYTES, Seal
from dragoman.outbound.settings import VaultTable

KEY_BYTES = 32
KEY_FILE = "vault.key"
"""The file in the data folder that holds the key where the configuration names none."""

_FORM = b"\x01"
_NONCE_BYTES = 12
_ID_BYTES = 4


class VaultError(Exception):
    """The vault's key is missing or wrong, or a secret cannot be opened; the message says what to do."""


class Vault:
    """Seals and opens. Implements `gateway.push.Sealer`."""

    def __init__(self, keys: Sequence[bytes]) -> None:
        """Use keys of `KEY_BYTES` each, the first one to seal."""
        self._keys = {_id_of(key): AESGCM(key) for key in reversed(keys)}
        self._first = _id_of(keys[0])

    @classmethod
    def of_text(cls, text: str, place: str) -> "Vault":
        """Return a vault with the keys in a text, in base64 and with white space between; `place` is where it stands.

        Raises:
            VaultError: there is none, or one is no key.
        """
        keys = []
        for word in text.split():
            try:
                key = base64.b64decode(word, validate=True)
            except binascii.Error:
                key = b""
            if len(key) != KEY_BYTES:
                raise VaultError(
                    f"{place} holds something that is no key; a key is {KEY_BYTES} bytes in base64"
                )
            keys.append(key)
        if not keys:
            raise VaultError(f"{place} holds no key; make one with: openssl rand -base64 {KEY_BYTES}")
        return cls(keys)

    def has_key_of(self, sealed: bytes) -> bool:
        """Tell whether a key of this vault has sealed a secret, by its first `SEAL_BYTES`."""
        return sealed[:1] == _FORM and sealed[1:SEAL_BYTES] in self._keys

    def seal(self, secret: bytes, tenant: str, origin: str) -> bytes:
        """See `Sealer.seal`."""
        nonce = os.urandom(_NONCE_BYTES)
        head = _FORM + self._first
        return head + nonce + self._keys[self._first].encrypt(nonce, secret, head + _bound(tenant, origin))

    def open(self, sealed: bytes, tenant: str, origin: str) -> bytes:
        """Return a secret.

        Raises:
            VaultError: it was sealed with another key, or for another tenant or origin.
        """
        head, rest = sealed[: 1 + _ID_BYTES], sealed[1 + _ID_BYTES :]
        key = self._keys.get(head[1:])
        if head[:1] != _FORM or key is None:
            raise VaultError("the vault has no key for this secret any more")
        try:
            return key.decrypt(rest[:_NONCE_BYTES], rest[_NONCE_BYTES:], head + _bound(tenant, origin))
        except (InvalidTag, ValueError):
            raise VaultError("the secret was changed, or is another tenant's or another origin's") from None


def configured_vault(table: VaultTable, data: Path, environment: Mapping[str, str]) -> tuple[Vault, str]:
    """Return the vault with the keys that the configuration names, and where these stand.

    Args:
        table: the configuration.
        data: the data folder; a key is made there if the configuration names no place.
        environment: where the key may be.

    Raises:
        VaultError: the keys cannot be had.
    """
    if table.key_env:
        text, place = (
            environment.get(table.key_env, ""),
            f"vault.key_env: the environment variable {table.key_env}",
        )
    elif table.key_file:
        place = f"vault.key_file: {table.key_file}"
        try:
            text = Path(table.key_file).read_text(encoding="ascii")
        except (OSError, UnicodeDecodeError) as error:
            raise VaultError(f"{place} cannot be read: {error}") from error
    else:
        text, place = own_key(data / KEY_FILE), str(data / KEY_FILE)
    return Vault.of_text(text, place), place


def check_seals(vault: Vault, place: str, seals: Iterable[Seal]) -> None:
    """Make sure that a vault has the keys of secrets that are needed yet; `place` is where its keys stand.

    Raises:
        VaultError: it has not.
    """
    for seal in seals:
        if not vault.has_key_of(seal.head):
            raise VaultError(
                f"{place}: the secrets of {seal.number} {seal.what} in the store were sealed with another key. Write "
                "that one behind the one that is there, with a space or a line break between"
            )


def own_key(file: Path) -> str:
    """Return the text of the key file in the data folder; one is made (0600) if there is none.

    Raises:
        VaultError: it cannot be made or read, or others may read it.
    """
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return _read(file)
    except OSError as error:
        raise VaultError(f"{file} cannot be made: {error.strerror}") from error
    with os.fdopen(descriptor, "wb") as made:
        made.write(base64.b64encode(os.urandom(KEY_BYTES)) + b"\n")
        made.flush()
        os.fsync(made.fileno())
    return _read(file)


def _read(file: Path) -> str:
    try:
        if file.stat().st_mode & 0o077:
            raise VaultError(f"{file} may be read by others; chmod 600 {file}")
        return file.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise VaultError(f"{file} cannot be read: {error}") from error


def _id_of(key: bytes) -> bytes:
    return hashlib.sha256(key).digest()[:_ID_BYTES]


def _bound(tenant: str, origin: str) -> bytes:
    # Names of tenants have no line break.
    return f"{tenant}\n{origin}".encode()
