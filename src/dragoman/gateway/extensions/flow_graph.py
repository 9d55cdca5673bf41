"""Flow graph: a task keeps its place in the graph that its caller runs."""

from msgspec import structs

from dragoman.gateway.extensions.behaviour import Behaviour
from dragoman.gateway.ports import Acceptance
from dragoman.model.payload import ABSENT, is_present, members, with_members


class FlowGraph(Behaviour):
    """What the first message of a task has under this URI in its metadata, the task has in its own.

    From there it comes with the task and with each change of its state, to its end, as the text that it is: nobody
    here reads it.
    """

    def accept(self, acceptance: Acceptance) -> Acceptance:
        """See `Behaviour`."""
        place = members(acceptance.message.metadata).get(self.uri, ABSENT)
        if not is_present(place):
            return acceptance
        return structs.replace(acceptance, metadata=with_members(acceptance.metadata, {self.uri: place}))
