"""Who may call, by the configuration and by what is kept: put together, and put together anew when that changes."""

import asyncio
import logging
from collections.abc import Callable

from dragoman.gateway.tenants import Declared, Kept, Kind, TenantStore, Token
from dragoman.identity.gate import Gate
from dragoman.identity.registry import Credential, Registry
from dragoman.model import Principal, Right
from dragoman.model.errors import Unavailable
from dragoman.model.principal import rights_of

RETRY_SECONDS = 1.0

_LOG = logging.getLogger("dragoman.identity")


def registry_of(kept: Kept, declared: Declared) -> Registry:
    """Return what is kept as a registry, to be added to that of the configuration.

    What is kept for a tenant or a principal that is in neither counts for nothing.
    """
    tenants = {*declared.features, *kept.tenants}
    known = {*declared.principals, *(who for who in kept.principals if who[0] in tenants)}
    rights = {scopes: rights_of(scopes) for scopes in {token.scopes for token in kept.tokens.values()}}
    tokens = {
        hashed: _credential(token, rights[token.scopes])
        for hashed, token in kept.tokens.items()
        if (token.tenant, token.principal) in known
    }

    def granted(wanted: Kind) -> dict[tuple[str, str], list[str]]:
        return {
            who: [name for kind, name in grants if kind is wanted]
            for who, grants in kept.grants.items()
            if who in known
        }

    return Registry(
        {name: kept.features.get(name, frozenset()) for name in tenants},
        tokens,
        granted(Kind.WORKSPACE),
        granted(Kind.SOURCE),
        {tenant: named for tenant, named in kept.limits.items() if tenant in tenants},
    )


def _credential(token: Token, rights: frozenset[Right]) -> Credential:
    until = None if token.expires_at is None else token.expires_at / 1000
    who = Principal(token.tenant, token.principal, rights, token.id, until)
    return Credential(token.id, who, until)


class Keeper:
    """Keeps a gate in step with what is kept. Lives on the serving loop."""

    def __init__(
        self,
        gate: Gate,
        declared: Declared,
        store: TenantStore,
        changed: Callable[[], None],
    ) -> None:
        """Prepare the keeper.

        Args:
            gate: the gate, with the registry of the configuration.
            declared: the names of the configuration.
            store: what is kept.
            changed: called after a change, when somebody may have lost what they had: a token, a grant.
        """
        self._gate = gate
        self._configured = gate.registry
        self._declared = declared
        self._store = store
        self._changed = changed
        self._version = -1
        self._stale = False
        self._refreshing: asyncio.Task[None] | None = None

    async def refresh(self) -> None:
        """Have the gate go by what is kept now.

        Raises:
            Unavailable: that cannot be read.
        """
        kept = await self._store.kept(self._version)
        if kept is None or kept.version <= self._version:
            return
        # In a thread: there may be many, and callers do not wait for it.
        registry = await asyncio.to_thread(
            lambda: self._configured.with_more(registry_of(kept, self._declared))
        )
        if kept.version > self._version:
            self._version = kept.version
            self._gate.change(registry)
            self._changed()

    def look_again(self) -> None:
        """Refresh soon, and again if it is not clear that the refresh under way sees the latest change."""
        self._stale = True
        if self._refreshing is None:
            self._refreshing = asyncio.get_running_loop().create_task(self._refresh())

    def close(self) -> None:
        """Stop looking."""
        if self._refreshing is not None:
            self._refreshing.cancel()

    async def _refresh(self) -> None:
        try:
            while self._stale:
                self._stale = False
                try:
                    await self.refresh()
                except Unavailable as error:
                    _LOG.error("who may call cannot be read, and is as it was: %s", error.message)
                    self._stale = True
                    await asyncio.sleep(RETRY_SECONDS)
        finally:
            self._refreshing = None
