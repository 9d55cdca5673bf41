"""The extensions that come with Dragoman. Any agent can declare them."""

from collections.abc import Mapping
from types import MappingProxyType

from dragoman.gateway.extensions.behaviour import Behaviour
from dragoman.gateway.extensions.flow_graph import FlowGraph
from dragoman.gateway.extensions.idempotency import Idempotency
from dragoman.gateway.extensions.run_facts import RunFactsShown
from dragoman.model import Extension

IDEMPOTENCY = Extension(
    uri="urn:dragoman:ext:idempotency:v1",
    description="A message sent again under its messageId is the same message: it is accepted once.",
)
RUN_FACTS = Extension(
    uri="urn:dragoman:ext:run-facts:v1",
    description="Tasks and updates tell in their metadata how far the run has come: sequence, attempt, deadline.",
)
FLOW_GRAPH = Extension(
    uri="urn:dragoman:ext:flow-graph:v1",
    description="What the first message has under this URI in its metadata stays with the task and each of its states.",
)

SHIPPED: Mapping[str, Behaviour] = MappingProxyType(
    {
        behaviour.uri: behaviour
        for behaviour in (Idempotency(IDEMPOTENCY), RunFactsShown(RUN_FACTS), FlowGraph(FLOW_GRAPH))
    }
)
"""URI → what it does."""
