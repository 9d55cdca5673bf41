"""Idempotency: a message is accepted once."""

from msgspec import structs

from dragoman.gateway.extensions.behaviour import Behaviour
from dragoman.gateway.ports import Acceptance


class Idempotency(Behaviour):
    """A message that is sent again under its messageId is the same message, also where that is not so unasked."""

    def accept(self, acceptance: Acceptance) -> Acceptance:
        """See `Behaviour`."""
        return structs.replace(acceptance, idempotent=True)
