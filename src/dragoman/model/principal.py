"""Who calls, and what they may see."""

from msgspec import Struct

LOCAL = "local"
"""The implicit tenant and principal of a server without configured identities."""


class Principal(Struct, frozen=True):
    """An authenticated caller. Tenant and name come from the credential alone, never from a request."""

    tenant: str
    name: str


class Scope(Struct, frozen=True):
    """What a caller may see: the tasks of one principal, of one tenant, with one agent.

    Every store method that reaches a task takes one; there is no other way to a task.
    """

    tenant: str
    principal: str
    agent: str
