"""The configuration of Temporal as the engine. No I/O, and nothing of its SDK."""

from msgspec import Struct


class TemporalTable(Struct, frozen=True, forbid_unknown_fields=True):
    """`[engine.temporal]`: where Temporal is, and how to show who is calling. Secrets are named, never written.

    With any of the `tls_*` files or an API key the connection is encrypted; `tls` alone asks for it too.
    """

    address: str = "127.0.0.1:7233"
    namespace: str = "default"
    task_queue: str = "dragoman"
    tls: bool = False
    tls_ca_file: str = ""
    tls_cert_file: str = ""
    tls_key_file: str = ""
    tls_server_name: str = ""
    api_key_env: str = ""


def check_temporal(table: TemporalTable) -> None:
    """Make sure that a table can be right.

    Raises:
        ValueError: it cannot; the message names the key.
    """
    for key in ("address", "namespace", "task_queue"):
        if not getattr(table, key):
            raise ValueError(f"engine.temporal.{key} is empty")
    if bool(table.tls_cert_file) != bool(table.tls_key_file):
        raise ValueError(
            "engine.temporal.tls_cert_file and .tls_key_file go together: a certificate and its key"
        )
