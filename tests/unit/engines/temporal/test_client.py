"""What Temporal is shown, and what becomes of a key or a file that is not there."""

import asyncio
from pathlib import Path

import pytest

from dragoman.engines.temporal.client import Connector, CredentialMissingError
from dragoman.engines.temporal.settings import TemporalTable


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (TemporalTable(api_key_env="KEY"), "engine.temporal.api_key_env: the variable KEY is not set"),
        (TemporalTable(tls_ca_file="/nowhere/ca.pem"), "engine.temporal.tls_ca_file: /nowhere/ca.pem"),
        (
            TemporalTable(tls_cert_file="/nowhere/c.pem", tls_key_file="/nowhere/k.pem"),
            "engine.temporal.tls_cert_file: /nowhere/c.pem",
        ),
    ],
)
def test_what_is_missing_is_named(table: TemporalTable, said: str) -> None:
    with pytest.raises(CredentialMissingError) as refusal:
        Connector(table, {})
    assert str(refusal.value).startswith(said)


@pytest.mark.parametrize(
    ("table", "encrypted"),
    [
        (TemporalTable(), False),
        (TemporalTable(tls=True), True),
        (TemporalTable(api_key_env="KEY"), True),
        (TemporalTable(tls_server_name="temporal.internal"), True),
    ],
)
def test_a_connection_is_encrypted_where_it_is_asked_for_or_something_is_shown(
    table: TemporalTable, encrypted: bool
) -> None:
    client = asyncio.run(Connector(table, {"KEY": "k"}).connect(lazy=True))
    config = client.service_client.config
    assert bool(config.tls) is encrypted
    assert config.api_key == ("k" if table.api_key_env else None)


def test_files_are_read_when_the_server_starts(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(name)
    table = TemporalTable(
        tls_ca_file=str(tmp_path / "ca"),
        tls_cert_file=str(tmp_path / "cert"),
        tls_key_file=str(tmp_path / "key"),
    )
    tls = Connector(table, {})._tls
    assert not isinstance(tls, bool)
    assert (tls.server_root_ca_cert, tls.client_cert, tls.client_private_key) == (b"ca", b"cert", b"key")
