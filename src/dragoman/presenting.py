"""How agents are served: at which places, with which cards, in which policy."""

import time
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, structs

from dragoman import __version__
from dragoman.agents import Agent
from dragoman.agents.hosted import HostedAgent
from dragoman.bindings.directory import ServedAgent
from dragoman.bindings.fixed import JWKS_PATH
from dragoman.bindings.hosted import PREFIX as HOSTED_PREFIX
from dragoman.cards import CardFile
from dragoman.cards.build import JSON_RPC, Signers, combined, interfaces, pure, signed
from dragoman.cards.keys import SigningKey
from dragoman.config import AgentTable, Config
from dragoman.conformance import Conformance
from dragoman.gateway.policy import HOSTED
from dragoman.model import AgentInterface
from dragoman.protocol.negotiation import UNNAMED
from dragoman.protocol.spec import Deployment, ProtocolSpec
from dragoman.roster import versions_of
from dragoman.tables import seconds


class Presenter(Struct, frozen=True, kw_only=True):
    """Makes what is served of agents.

    `versions` are those of this build, newest first; `base_url` is the origin and base path that cards advertise;
    `conformance` says how conformance agents are served, if that was asked for.
    """

    config: Config
    versions: Mapping[str, ProtocolSpec]
    base_url: str
    conformance: Conformance | None = None

    def __post_init__(self) -> None:
        """Make sure that the conformance agents can be served as it was asked.

        Raises:
            ConfigError: they cannot.
        """
        if self.conformance is not None:
            self.conformance.check(self.versions)

    def served(
        self, agents: Iterable[Agent], keys: Sequence[SigningKey], *, closed: bool
    ) -> dict[str, ServedAgent]:
        """Return agents as the open surfaces serve them, by id; `closed` if callers must show who they are."""
        return {agent.id: self._served(agent, keys, closed) for agent in agents}

    def hosted(self, agents: Mapping[str, HostedAgent], keys: Sequence[SigningKey]) -> dict[str, ServedAgent]:
        """Return agents as the hosted profile serves them, each in the newest version alone."""
        newest = next(iter(self.versions))
        window = seconds(self.config.hosted.observers.window, "hosted.observers.window")
        policy = structs.replace(HOSTED, window=window)
        signers, now = Signers(keys, self.base_url + JWKS_PATH), time.time()
        served = {}
        for agent_id, agent in agents.items():
            url = f"{self.base_url}{HOSTED_PREFIX}{agent_id}/rpc"
            card = agent.card((AgentInterface(url=url, binding=JSON_RPC, version=newest),))
            form = signed(pure(card, self.versions[newest]), [newest], signers, now)
            table = self.config.agents[agent_id]
            served[agent_id] = ServedAgent(
                id=agent.id,
                settings=agent.settings,
                versions={newest: self.versions[newest]},
                cards={newest: form},
                unnamed=newest,
                unnamed_card=form,
                tenant=table.tenant,
                workspace=table.workspace,
                policy=policy,
            )
        return served

    def described(self, agents: Sequence[ServedAgent]) -> dict[str, CardFile]:
        """Return the OpenAPI document of each version that has one and in which any of these agents is served."""
        now = time.time()
        documents = {}
        for version, spec in self.versions.items():
            served = tuple(agent.id for agent in agents if version in agent.versions)
            if spec.describe is not None and served:
                body = spec.describe(Deployment(self.base_url, served, __version__))
                documents[version] = CardFile(body, now)
        return documents

    def _served(self, agent: Agent, keys: Sequence[SigningKey], closed: bool) -> ServedAgent:
        chosen: Mapping[str, ProtocolSpec] = versions_of(agent, self.config, self.versions)
        if self.conformance is not None:
            chosen = self.conformance.versions_of(agent, chosen)
        table = self.config.agents.get(agent.id, AgentTable())
        base = f"{self.base_url}/agents/{agent.id}"
        places, bearer = interfaces(base, chosen.values()), closed and not table.public
        card = agent.card(places, bearer=bearer)
        more = agent.card(places, bearer=bearer, extended=True) if agent.settings.extended_skills else None
        signers, now = Signers(keys, base + JWKS_PATH), time.time()
        forms = {version: pure(card, spec) for version, spec in chosen.items()}
        newest = next(iter(chosen))
        unnamed = UNNAMED if agent.settings.legacy_card and UNNAMED in chosen else newest
        cards = {version: signed(form, [version], signers, now) for version, form in forms.items()}
        shared = cards[newest]
        if unnamed != newest:
            both = combined(forms[newest], forms[unnamed])
            shared = signed(both, [newest, unnamed], signers, now)
        return ServedAgent(
            id=agent.id,
            settings=agent.settings,
            versions=chosen,
            cards=cards,
            extended={
                version: signed(pure(more, spec), [version], signers, now)
                for version, spec in chosen.items()
                if more is not None
            },
            unnamed=unnamed,
            unnamed_card=shared,
            tenant=table.tenant,
            public=table.public,
        )
