"""What the operator writes into the configuration about the way out."""

from ipaddress import ip_network

from msgspec import Struct

from dragoman.egress.addresses import Network
from dragoman.egress.policy import EgressPolicy

ANY_PORT = "any"
"""What stands for every port."""


class Outbound(Struct, frozen=True, forbid_unknown_fields=True):
    """`[outbound]`: where requests to URLs of callers may go.

    `allow` opens ranges of addresses that are special, such as `10.0.0.0/8`, and `ports` may be "any". `retry` is how
    long a push notification that was not taken waits before it is sent again, the first time.
    """

    allow: tuple[str, ...] = ()
    ports: str | tuple[int, ...] = (443,)
    schemes: tuple[str, ...] = ("https",)
    retry: str = "1s"


def policy_of(outbound: Outbound) -> EgressPolicy:
    """Return the policy that these settings describe.

    Raises:
        ValueError: one is wrong; the message names its key.
    """
    for scheme in outbound.schemes:
        if scheme not in ("https", "http"):
            raise ValueError(f'outbound.schemes: "{scheme}" is none; there are "https" and "http"')
    if not outbound.schemes:
        raise ValueError('outbound.schemes is empty; write ["https"]')
    return EgressPolicy(
        schemes=outbound.schemes,
        ports=_ports(outbound.ports),
        allowed=tuple(_network(text) for text in outbound.allow),
    )


def _ports(given: str | tuple[int, ...]) -> tuple[int, ...] | None:
    if given == ANY_PORT:
        return None
    # From the environment they come as one text.
    found = given.split(",") if isinstance(given, str) else given
    try:
        numbers = tuple(int(port) for port in found)
    except ValueError:
        numbers = ()
    if not numbers or not all(0 < number < 65536 for number in numbers):
        raise ValueError(f'outbound.ports must be a list of ports, such as [443], or "{ANY_PORT}"')
    return numbers


def _network(text: str) -> Network:
    try:
        return ip_network(text)
    except ValueError:
        raise ValueError(
            f'outbound.allow: "{text}" is no range of addresses; write it as 10.0.0.0/8 or fd00::/8'
        ) from None
