"""The parts that delegate to remote agents, by the configuration.

The HTTP client costs memory and time at import, so it is made when something is sent for the first time, and the vault
when a secret is sealed or opened, or when the store holds some.
"""

import asyncio
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from msgspec import Struct

from dragoman import __version__
from dragoman.bindings.delegations import DelegationSurface
from dragoman.bindings.directory import HostedGate
from dragoman.bindings.membership import Membership
from dragoman.bindings.remotes import Outside, RemoteSurface
from dragoman.config import Config
from dragoman.egress import EgressPolicy
from dragoman.egress.settings import policy_of
from dragoman.gateway.calls import Calls
from dragoman.gateway.delegate import Delegations, Sender
from dragoman.gateway.remotes import Outcome, Remote, RemoteStore, Seal
from dragoman.model import Message
from dragoman.model.errors import Unavailable
from dragoman.outbound.vault import KEY_FILE, Vault, VaultError, check_seals, configured_vault
from dragoman.protocol.spec import ProtocolSpec
from dragoman.tables import ConfigError


class Abroad(Sender, Outside):
    """The way out to remote agents, and the vault for their bearer tokens; each is made when it is first needed."""

    def __init__(self, config: Config, data: Path, environment: Mapping[str, str]) -> None:
        """Prepare by the configuration; `data` is the data folder and `environment` where the vault's key may be."""
        self._table = config.vault
        self._data = data
        self._environment = environment
        self._policy = policy_of(config.outbound)
        self._opened = False

    @property
    def places(self) -> EgressPolicy:
        """See `Outside.places`."""
        return self._policy

    def seal(self, secret: bytes, tenant: str, origin: str) -> bytes:
        """See `Sealer.seal`."""
        try:
            return self.vault.seal(secret, tenant, origin)
        except VaultError as error:
            raise Unavailable(
                "The key that bearer tokens are encrypted with cannot be had; nothing was stored"
            ) from error

    @property
    def vault(self) -> Vault:
        """The vault.

        Raises:
            VaultError: its keys cannot be had.
        """
        return self._keys[0]

    def check(self, seals: Iterable[Seal], *, hooks: bool) -> None:
        """Make sure that the keys of the secrets in a store are there, those of push notifications only if `hooks`.

        Raises:
            ConfigError: they are not.
        """
        needed = [seal for seal in seals if hooks or seal.of_remotes]
        if not needed:
            return
        table, own = self._table, self._data / KEY_FILE
        if not (table.key_env or table.key_file or own.is_file()):
            kept = sum(seal.number for seal in needed)
            raise ConfigError(
                f"{own} is not there, and {kept} secrets in the store were sealed with it; put it back"
            )
        try:
            check_seals(*self._keys, needed)
        except VaultError as error:
            raise ConfigError(str(error)) from error

    async def send(self, remote: Remote, delegation_id: str, message: Message, *, at_once: bool) -> Outcome:
        """See `Sender.send`."""
        return await self._agents.send(remote, delegation_id, message, at_once=at_once)

    async def ask(self, remote: Remote, task_id: str) -> Outcome:
        """See `Sender.ask`."""
        return await self._agents.ask(remote, task_id)

    async def discover(self, remote: Remote) -> dict[str, Any]:
        """See `Outside.discover`."""
        from dragoman.cards.discover import NoCard, discover  # noqa: PLC0415 - for whoever discovers alone

        try:
            token = self.vault.open(remote.sealed, remote.tenant, remote.origin) if remote.sealed else b""
            found = await discover(self._egress, remote.endpoint_url, token.decode())
        except VaultError as error:
            raise Unavailable(f"The card cannot be asked for: {error}") from error
        except NoCard as error:
            raise Unavailable(f"There is no card to show: {error}") from error
        return found.document()

    async def close(self) -> None:
        """Let go of connections."""
        if self._opened:
            await self._egress.close()

    @cached_property
    def _keys(self) -> tuple[Vault, str]:
        return configured_vault(self._table, self._data, self._environment)

    @cached_property
    def _egress(self) -> Any:
        from dragoman.egress.client import Egress  # noqa: PLC0415 - see above

        self._opened = True
        return Egress(self._policy, user_agent=f"dragoman/{__version__}", idle_seconds=0)

    @cached_property
    def _agents(self) -> Sender:
        from dragoman.outbound.delegation import RemoteAgents  # noqa: PLC0415 - see above

        return RemoteAgents(self._egress, lambda: self.vault)


class Calling(Struct, frozen=True):
    """What delegates, for handlers and for callers."""

    store: RemoteStore
    abroad: Abroad
    delegations: Delegations
    calls: Calls

    async def start(self, *, hooks: bool) -> None:
        """Make sure that secrets can be opened, those of push notifications only if `hooks`, and begin.

        Raises:
            ConfigError: the store holds secrets that the vault has no key for.
        """
        self.abroad.check(await self.store.seals(), hooks=hooks)
        await self.delegations.start()

    async def close(self, drain: float) -> None:
        """Wait for what is under way, up to `drain` seconds, and let go."""
        await self.delegations.close(drain)
        await self.abroad.close()


def calling_parts(
    config: Config, data: Path, environment: Mapping[str, str], store: RemoteStore, gate: HostedGate
) -> Calling:
    """Put the parts together, on the serving loop.

    Args:
        config: the configuration.
        data: the data folder.
        environment: where the vault's key may be.
        store: where registrations and delegations are kept.
        gate: knows the tenants.
    """
    abroad = Abroad(config, data, environment)
    delegations = Delegations(store, abroad)
    calls = Calls(
        delegations,
        store,
        asyncio.get_running_loop(),
        is_member=Membership(gate).is_member,
        audited=lambda: not gate.is_open,
    )
    return Calling(store, abroad, delegations, calls)


def delegation_surfaces(
    calling: Calling, gate: HostedGate, newest: ProtocolSpec
) -> tuple[RemoteSurface, DelegationSurface]:
    """Return what serves the parts to callers; `newest` is the newest protocol version, which reads messages."""
    membership = Membership(gate)
    return (
        RemoteSurface(calling.store, membership, calling.abroad),
        DelegationSurface(calling.delegations, membership, newest),
    )
