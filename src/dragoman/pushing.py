"""The parts that send push notifications, by the configuration.

Imported only where an agent declares them: cryptography and an HTTP client cost every start memory and time.
"""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from dragoman import __version__
from dragoman.config import Config
from dragoman.conformance import CONFORMANCE_AGENTS, Conformance
from dragoman.egress.client import Egress
from dragoman.egress.settings import policy_of
from dragoman.gateway.push import PushConfigurer
from dragoman.outbound.vault import VaultError, configured_vault
from dragoman.outbound.ways import Ways
from dragoman.outbound.webhooks import Tasks, Webhooks
from dragoman.protocol.spec import ProtocolSpec
from dragoman.tables import ConfigError, seconds


class PushParts(Struct, frozen=True):
    """What keeps configurations, and what tells their receivers."""

    configurer: PushConfigurer
    webhooks: Webhooks


def push_parts(
    config: Config,
    data: Path,
    environment: Mapping[str, str],
    versions: Mapping[str, ProtocolSpec],
    store: Tasks,
    conformance: Conformance | None = None,
) -> PushParts:
    """Put the parts together.

    Args:
        config: the configuration.
        data: the data folder, which holds the vault's key if the configuration names no other place.
        environment: where the key may be.
        versions: the protocol versions of this build, newest first.
        store: where configurations and events are.
        conformance: how conformance agents are served, if that was asked for.

    Raises:
        ConfigError: the vault's key cannot be had.
    """
    policy = policy_of(config.outbound)
    try:
        vault, _ = configured_vault(config.vault, data, environment)
    except VaultError as error:
        raise ConfigError(str(error)) from error
    agent = f"dragoman/{__version__}"
    opened = Egress(conformance.policy(policy), user_agent=agent) if conformance is not None else None
    ways = Ways(Egress(policy, user_agent=agent), opened, CONFORMANCE_AGENTS)
    webhooks = Webhooks(
        store,
        ways,
        vault,
        {version: spec.push for version, spec in versions.items()},
        retry=seconds(config.outbound.retry, "outbound.retry"),
        look=seconds(config.engine.sweep, "engine.sweep"),
    )
    return PushParts(PushConfigurer(store, vault, ways), webhooks)
