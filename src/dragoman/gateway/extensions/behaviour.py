"""What an extension of ours does, as the gateway sees it."""

from msgspec import Raw

from dragoman.gateway.ports import Acceptance
from dragoman.model import Extension, RunFacts
from dragoman.model.payload import ABSENT


class Behaviour:
    """What an extension does in the calls in which it is active. A hook that is not overridden changes nothing.

    Its data stand in metadata under its URI and nowhere else (A2A 1.0 §4.6.2).

    Attributes:
        declaration: how an agent declares it, unless it has more to say.
    """

    def __init__(self, declaration: Extension) -> None:
        self.declaration = declaration

    @property
    def uri(self) -> str:
        """What it is called."""
        return self.declaration.uri

    def accept(self, acceptance: Acceptance) -> Acceptance:
        """Return how a message is accepted."""
        return acceptance

    def facts(self, run: RunFacts) -> Raw:
        """Return what is to be said of a run wherever its task or an event of it is shown; absent for nothing."""
        return ABSENT
