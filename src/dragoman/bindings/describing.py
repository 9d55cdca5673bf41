"""The descriptions of the server: each caller gets one of the agents that are there for it (see `Directory.find`)."""

from collections.abc import Callable, Mapping

from dragoman.bindings.directory import CardForm, Gate, ServedAgent
from dragoman.bindings.exchange import Exchange

Documents = Mapping[str, CardForm]
"""Documents by version, newest first."""

Describe = Callable[[list[ServedAgent]], Documents]


class Descriptions:
    """Finds the documents for whoever asks. All are made at the start: there is one set for each tenant of an agent."""

    def __init__(self, gate: Gate, agents: Mapping[str, ServedAgent], describe: Describe) -> None:
        """Have `describe` make the documents of those `agents` that somebody can call."""
        everybodys = [agent for agent in agents.values() if not agent.tenant]
        tenants = {agent.tenant for agent in agents.values() if agent.tenant}
        self._gate = gate
        self._strangers = describe([agent for agent in agents.values() if agent.public or not agent.tenant])
        self._others = describe(everybodys)
        self._tenants = {
            tenant: describe([agent for agent in agents.values() if agent.tenant in ("", tenant)])
            for tenant in tenants
        }

    @property
    def differ(self) -> bool:
        """Whether not everybody gets the same."""
        return bool(self._tenants)

    async def of(self, exchange: Exchange) -> Documents:
        """Return the documents for whoever asks; without a credential, those of what needs none to be seen.

        Raises:
            Unauthenticated, Forbidden, RateLimited, Unavailable: a credential is shown that is not good, or there is
                nothing for callers without one.
        """
        credentials = exchange.request.headers.all(b"authorization")
        if self._gate.is_open or not self._tenants:
            return self._others
        if not credentials and self._strangers:
            return self._strangers
        exchange.principal = await self._gate.identify(credentials, exchange.request.address)
        return self._tenants.get(exchange.principal.tenant, self._others)
