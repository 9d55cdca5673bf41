"""Extensions (A2A 1.0 §4.6): which are active in a call, and what those of ours do there.

An agent declares extensions in its card. One is active in a call if the agent declares it and the caller names it. What
an extension of an agent's own does, its handler does, which is told what is active. What one of ours does is a
`Behaviour`, found by its URI: whoever declares the URI gets it.
"""

from dragoman.gateway.extensions.active import accepted, activated, check_required, marked, retold
from dragoman.gateway.extensions.behaviour import Behaviour
from dragoman.gateway.extensions.shipped import FLOW_GRAPH, IDEMPOTENCY, RUN_FACTS, SHIPPED

__all__ = [
    "FLOW_GRAPH",
    "IDEMPOTENCY",
    "RUN_FACTS",
    "SHIPPED",
    "Behaviour",
    "accepted",
    "activated",
    "check_required",
    "marked",
    "retold",
]
