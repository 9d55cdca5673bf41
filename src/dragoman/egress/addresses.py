"""Which addresses are special: those that lead to this machine, its network, or nowhere in the public internet.

The tables follow the IANA registries of special-purpose addresses (RFC 6890 and its updates). An IPv6 address that
holds an IPv4 one is refused whatever that is: there is no need for such a form, and many ways to be deceived by it.
"""

from collections.abc import Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from msgspec import Struct

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class Range(Struct, frozen=True):
    """A special range, and what it is."""

    network: Network
    name: str


def _ranges(lines: str) -> Sequence[Range]:
    pairs = (line.split(maxsplit=1) for line in lines.strip().splitlines())
    return tuple(Range(ip_network(network), name) for network, name in pairs)


SPECIAL_V4 = _ranges(
    """
    0.0.0.0/8           this network (RFC 791)
    10.0.0.0/8          private (RFC 1918)
    100.64.0.0/10       shared by carriers (RFC 6598), metadata services among them
    127.0.0.0/8         loopback (RFC 1122)
    168.63.129.16/32    the metadata service of a cloud
    169.254.0.0/16      link-local (RFC 3927), metadata services among them
    172.16.0.0/12       private (RFC 1918)
    192.0.0.0/24        protocol assignments (RFC 6890)
    192.0.2.0/24        documentation (RFC 5737)
    192.31.196.0/24     AS112 (RFC 7535)
    192.52.193.0/24     AMT relays (RFC 7450)
    192.88.99.0/24      6to4 relays (RFC 7526)
    192.168.0.0/16      private (RFC 1918)
    192.175.48.0/24     AS112 (RFC 7534)
    198.18.0.0/15       benchmarks (RFC 2544)
    198.51.100.0/24     documentation (RFC 5737)
    203.0.113.0/24      documentation (RFC 5737)
    224.0.0.0/4         multicast (RFC 5771)
    240.0.0.0/4         reserved, and broadcast (RFC 1112, RFC 8190)
    """
)

SPECIAL_V6 = _ranges(
    """
    ::/128              unspecified (RFC 4291)
    ::1/128             loopback (RFC 4291)
    ::ffff:0:0/96       an IPv4 address, mapped (RFC 4291)
    ::/96               an IPv4 address, the old way (RFC 4291)
    64:ff9b::/96        an IPv4 address behind NAT64 (RFC 6052)
    64:ff9b:1::/48      an IPv4 address behind NAT64 (RFC 8215)
    100::/64            discarded (RFC 6666)
    2001::/23           protocol assignments, Teredo among them (RFC 2928, RFC 4380)
    2001:db8::/32       documentation (RFC 3849)
    2002::/16           an IPv4 address behind 6to4 (RFC 3056)
    2620:4f:8000::/48   AS112 (RFC 7534)
    3fff::/20           documentation (RFC 9637)
    5f00::/16           segment routing (RFC 9602)
    fc00::/7            unique local (RFC 4193), metadata services among them
    fe80::/10           link-local (RFC 4291)
    fec0::/10           site-local (RFC 3879)
    ff00::/8            multicast (RFC 4291)
    """
)

GLOBAL_V6 = ip_network("2000::/3")
"""All that is given out of IPv6 for the public internet (RFC 4291 §2.4); what lies outside is refused too."""


def refusal(address: Address, allowed: Iterable[Network] = ()) -> str | None:
    """Return why nothing may be sent to an address; `None` if it may be, or is in a range that is `allowed`."""
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return f"{address} names an interface of this machine"
    if any(address.version == network.version and address in network for network in allowed):
        return None
    for one in SPECIAL_V4 if address.version == 4 else SPECIAL_V6:
        if address in one.network:
            return f"{address} is in {one.network}: {one.name}"
    if address.version == 6 and address not in GLOBAL_V6:
        return f"{address} is not in {GLOBAL_V6}, which holds all public addresses"
    return None
