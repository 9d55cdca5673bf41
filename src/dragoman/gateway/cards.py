"""The extended card: which callers are shown one (A2A 1.0 §3.1.11). What it looks like is for the bindings to say."""

from msgspec import Struct

from dragoman.gateway.call import Call
from dragoman.gateway.capability import check_capability
from dragoman.model.errors import ExtendedAgentCardNotConfigured, Unauthenticated
from dragoman.model.operation import Operation


class ExtendedCard(Struct, frozen=True):
    """The result of asking for the extended card: the caller may have it."""


def extended_card(call: Call) -> ExtendedCard:
    """Return that the caller may have the extended card of the agent.

    Raises:
        UnsupportedOperation: the agent declares none.
        Unauthenticated: it does, but nobody knows who asks.
        ExtendedAgentCardNotConfigured: it does, but there is nothing that would be in it.
    """
    settings = call.settings
    check_capability(settings, Operation.GET_EXTENDED_CARD)
    if call.principal.is_anonymous:
        raise Unauthenticated(
            "The extended card is for callers who show who they are; send the header Authorization: Bearer TOKEN",
            invalid=False,
        )
    if not settings.extended_skills:
        raise ExtendedAgentCardNotConfigured(
            "This agent declares an extended card, but has nothing to add to its card; whoever runs it can say more"
        )
    return ExtendedCard()
