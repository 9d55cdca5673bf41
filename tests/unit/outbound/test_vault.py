"""Secrets at rest: unreadable, bound to a tenant and an origin, and openable by every key that is given."""

import base64
import os
from pathlib import Path

import pytest

from dragoman.outbound.vault import KEY_BYTES, Vault, VaultError, own_key

OLD, NEW = bytes(range(KEY_BYTES)), bytes(range(100, 100 + KEY_BYTES))
ORIGIN = "https://hooks.example.com"


def text(*keys: bytes) -> str:
    return "\n".join(base64.b64encode(key).decode() for key in keys)


@pytest.mark.parametrize("secret", [b"", b"s3cr3t", os.urandom(10_000)], ids=len)
def test_a_secret_comes_back_and_is_sealed_anew_each_time(secret: bytes) -> None:
    vault = Vault([NEW])
    first, second = vault.seal(secret, "acme", ORIGIN), vault.seal(secret, "acme", ORIGIN)
    assert vault.open(first, "acme", ORIGIN) == vault.open(second, "acme", ORIGIN) == secret
    assert first != second
    assert len(secret) < 4 or secret not in first


@pytest.mark.parametrize(
    ("tenant", "origin"),
    [("globex", ORIGIN), ("acme", "https://other.example.com"), ("acme", f"{ORIGIN}:8443"), ("", "")],
)
def test_a_secret_of_another_tenant_or_origin_stays_closed(tenant: str, origin: str) -> None:
    sealed = Vault([NEW]).seal(b"s3cr3t", "acme", ORIGIN)
    with pytest.raises(VaultError, match="another tenant's or another origin's"):
        Vault([NEW]).open(sealed, tenant, origin)


def test_a_changed_secret_stays_closed_wherever_it_was_changed() -> None:
    vault = Vault([NEW])
    sealed = vault.seal(b"s3cr3t", "acme", ORIGIN)
    for index in range(len(sealed)):
        changed = bytearray(sealed)
        changed[index] ^= 1
        with pytest.raises(VaultError):
            vault.open(bytes(changed), "acme", ORIGIN)
    for length in range(len(sealed)):
        with pytest.raises(VaultError):
            vault.open(sealed[:length], "acme", ORIGIN)


def test_a_key_is_replaced_while_what_it_sealed_is_still_needed() -> None:
    sealed = Vault([OLD]).seal(b"s3cr3t", "acme", ORIGIN)
    both = Vault.of_text(text(NEW, OLD), "here")
    assert both.open(sealed, "acme", ORIGIN) == b"s3cr3t"
    anew = both.seal(b"s3cr3t", "acme", ORIGIN)
    assert Vault([NEW]).open(anew, "acme", ORIGIN) == b"s3cr3t"
    with pytest.raises(VaultError, match="no key for this secret any more"):
        Vault([NEW]).open(sealed, "acme", ORIGIN)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("", "holds no key; make one with"),
        (" \n", "holds no key"),
        ("c2hvcnQ=", "32 bytes in base64"),
        (text(bytes(33)), "32 bytes in base64"),
        ("not base64!", "32 bytes in base64"),
        (f"{text(NEW)} x", "32 bytes in base64"),
    ],
)
def test_what_is_no_key_is_told_by_its_place_and_not_shown(given: str, said: str) -> None:
    with pytest.raises(VaultError, match=f"vault.key_env.*{said}") as caught:
        Vault.of_text(given, "vault.key_env: the environment variable KEY")
    assert not given.strip() or given.strip() not in str(caught.value)


def test_the_own_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / "data" / "vault.key"
    first = own_key(file)
    assert own_key(file) == first
    assert file.stat().st_mode & 0o777 == 0o600
    assert Vault.of_text(first, "here").seal(b"x", "acme", ORIGIN)


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "vault.key"
    own_key(file)
    file.chmod(0o640)
    with pytest.raises(VaultError, match=f"chmod 600 {file}"):
        own_key(file)


def test_a_key_that_cannot_be_made_or_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(VaultError, match="cannot be made"):
        own_key(Path("/proc/vault.key"))
    (tmp_path / "vault.key").mkdir(mode=0o700)
    with pytest.raises(VaultError, match="cannot be read"):
        own_key(tmp_path / "vault.key")
