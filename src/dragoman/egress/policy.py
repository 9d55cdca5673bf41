"""Where requests may go. A URL is taken apart once, here, and what goes out is made of these parts alone.

Checked without a look-up when a URL is registered, and again for every request; the addresses of a name are checked at
every connect (`connect.py`), because names change what they stand for.
"""

import re
from collections.abc import Collection, Sequence
from ipaddress import ip_address

from msgspec import Struct

from dragoman.egress.addresses import Address, Network, refusal

LONGEST_URL = 2048

_PORTS = {"https": 443, "http": 80}
# Strict on purpose: whatever another reader might take for another host is none for us.
_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::(?P<port>\d{1,5}))?"
    r"(?P<target>[/?][!\"$-\[\]^-~]*)?",
    re.ASCII,
)
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMBER = re.compile(r"\d+|0x[0-9a-f]*")


class Refused(ValueError):
    """A request may not go where it was to go; the message says why, for whoever named the place."""


class Origin(Struct, frozen=True):
    """Scheme, host in lower case, and port."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if _PORTS[self.scheme] == self.port else f":{self.port}")


class Target(Struct, frozen=True):
    """A URL, taken apart."""

    origin: Origin
    path: str


class EgressPolicy(Struct, frozen=True, kw_only=True):
    """What the operator allows.

    `ports` is `None` for any. `allowed` are ranges that are open although they are special. `trusted` are origins that
    the operator wrote into the configuration: for exactly these, neither scheme nor port nor addresses are checked.
    """

    schemes: Collection[str] = ("https",)
    ports: Collection[int] | None = (443,)
    allowed: Sequence[Network] = ()
    trusted: Collection[Origin] = ()

    def check(self, url: str) -> Target:
        """Return a URL's parts, if a request may go there as far as its text tells.

        Raises:
            Refused: it may not.
        """
        target = parse_url(url)
        origin = target.origin
        if origin in self.trusted:
            return target
        if origin.scheme not in self.schemes:
            raise Refused(f"must begin with {' or '.join(f'{one}://' for one in self.schemes)}")
        if self.ports is not None and origin.port not in self.ports:
            raise Refused(f"leads to port {origin.port}, not to {' or '.join(map(str, sorted(self.ports)))}")
        known = literal(origin.host)
        self.check_addresses(known)
        if not known and "." not in origin.host:
            raise Refused(f"{origin.host} is no public name: it has no domain")
        return target

    def place_of(self, url: str) -> str:
        """Return the origin of a URL that requests may go to.

        Raises:
            Refused: they may not.
        """
        return str(self.check(url).origin)

    def check_addresses(self, addresses: Sequence[Address]) -> None:
        """Make sure that every address of a host may be reached: one that may not makes all of them suspect.

        Raises:
            Refused: one may not.
        """
        for address in addresses:
            why = refusal(address, self.allowed)
            if why is not None:
                raise Refused(f"leads to an address that is not public: {why}")

    def is_trusted(self, host: str, port: int) -> bool:
        """Tell whether a host and port are those of an origin that the operator wrote down."""
        return any((one.host, one.port) == (host, port) for one in self.trusted)


def origin_of(url: str) -> Origin:
    """Return the origin of a URL.

    Raises:
        Refused: it is no URL that a request could go to.
    """
    return parse_url(url).origin


def parse_url(url: str) -> Target:
    """Take a URL apart.

    Raises:
        Refused: it is none, or could be read in more than one way.
    """
    if len(url) > LONGEST_URL:
        raise Refused(f"must not be longer than {LONGEST_URL} characters")
    found = _URL.fullmatch(url)
    if found is None:
        raise Refused(_hint(url))
    scheme, host = found["scheme"].lower(), found["host"].lower()
    if scheme not in _PORTS:
        raise Refused("must be an https URL")
    port = int(found["port"]) if found["port"] else _PORTS[scheme]
    if not 0 < port < 65536:
        raise Refused(f"has a port that does not exist: {port}")
    target = found["target"] or "/"
    address = _address(host)
    if address is None:
        _check_name(host)
    return Target(
        Origin(scheme, host if address is None else str(address), port),
        target if target[0] == "/" else f"/{target}",
    )


def is_local(host: str) -> bool:
    """Tell whether a host is this machine's own name: loopback, whatever a resolver says (RFC 6761 §6.3)."""
    return host == "localhost" or host.endswith(".localhost")


def literal(host: str) -> Sequence[Address]:
    """Return the addresses of a host that needs no look-up: one that is an address, or this machine's own name."""
    if is_local(host):
        return (ip_address("127.0.0.1"),)
    try:
        return (ip_address(host),)
    except ValueError:
        return ()


def _hint(url: str) -> str:
    authority = url.partition("://")[2].partition("/")[0]
    if "@" in authority:
        return "must not hold a user name or password; credentials belong into authentication"
    if "#" in url:
        return "must not have a fragment (#)"
    if not url.isascii():
        return "must be ASCII; write a name in its xn-- form, and other characters as %XX"
    return "must be a URL such as https://hooks.example.com/a2a, with nothing that could be read in two ways"


def _address(host: str) -> Address | None:
    """Return the address that a host is; `None` if it is a name.

    Raises:
        Refused: it is an address in a form that some readers take for another one.
    """
    if host.startswith("["):
        try:
            return ip_address(host[1:-1])
        except ValueError:
            raise Refused(f"{host} is no IPv6 address") from None
    if _NUMBER.fullmatch(host.rstrip(".").rpartition(".")[2]) is None:
        return None
    # Decimal, octal, hexadecimal, shortened: what ends in a number is an IPv4 address (URL Standard §3.5).
    try:
        return ip_address(host)
    except ValueError:
        raise Refused(f"{host} is an address in an unusual form; write it as four decimal numbers") from None


def _check_name(host: str) -> None:
    if host.endswith("."):
        raise Refused("its host must not end with a dot")
    if len(host) > 253 or not all(_LABEL.fullmatch(label) for label in host.split(".")):
        raise Refused(f"{host[:100]} is no host name")
