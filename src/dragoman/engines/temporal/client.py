"""Connecting to Temporal, and what its errors mean."""

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode, TLSConfig

from dragoman.engines.temporal.settings import TemporalTable

RPC_SECONDS = 3.0
"""How long one call may take; the SDK itself would go on for much longer where nobody answers."""

UNREACHABLE = (TimeoutError, OSError, RuntimeError)
"""What a call raises, beside RPCError, when nobody answers: the outcome is not known."""

_SILENT = (
    RPCStatusCode.UNAVAILABLE,
    RPCStatusCode.CANCELLED,
    RPCStatusCode.DEADLINE_EXCEEDED,
    RPCStatusCode.RESOURCE_EXHAUSTED,
)


class CredentialMissingError(Exception):
    """What Temporal wants to be shown is not where the configuration says; the message names the key."""


class Connector:
    """Makes clients of one Temporal namespace."""

    def __init__(self, table: TemporalTable, environment: Mapping[str, str]) -> None:
        """Read what Temporal is to be shown.

        Raises:
            CredentialMissingError: it is not there.
        """
        self._table = table
        self._key = None
        if table.api_key_env:
            self._key = environment.get(table.api_key_env)
            if not self._key:
                raise CredentialMissingError(
                    f"engine.temporal.api_key_env: the variable {table.api_key_env} is not set"
                )
        self._tls = self._tls_of(table)

    def _tls_of(self, table: TemporalTable) -> TLSConfig | bool:
        config = TLSConfig(
            server_root_ca_cert=_bytes(table.tls_ca_file, "tls_ca_file"),
            domain=table.tls_server_name or None,
            client_cert=_bytes(table.tls_cert_file, "tls_cert_file"),
            client_private_key=_bytes(table.tls_key_file, "tls_key_file"),
        )
        return config if config != TLSConfig() else table.tls or self._key is not None

    async def connect(self, *, lazy: bool) -> Client:
        """Return a client; a lazy one connects with its first call.

        Raises:
            RPCError, UNREACHABLE: nobody answers, or refuses; never if it is lazy.
        """
        async with asyncio.timeout(RPC_SECONDS * 2):
            return await Client.connect(
                self._table.address,
                namespace=self._table.namespace,
                api_key=self._key,
                tls=self._tls,
                lazy=lazy,
            )


def rpc_timeout() -> timedelta:
    """Return how long a call may take, as the SDK wants it."""
    return timedelta(seconds=RPC_SECONDS)


def is_silent(error: BaseException) -> bool:
    """Tell whether nobody answered, so that nothing is known of what became of a call."""
    return isinstance(error, UNREACHABLE) or (isinstance(error, RPCError) and error.status in _SILENT)


def is_unknown(error: RPCError) -> bool:
    """Tell whether Temporal knows no workflow of the id that it was asked about."""
    return error.status is RPCStatusCode.NOT_FOUND


def _bytes(file: str, key: str) -> bytes | None:
    if not file:
        return None
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise CredentialMissingError(
            f"engine.temporal.{key}: {file} cannot be read: {error.strerror}"
        ) from error
