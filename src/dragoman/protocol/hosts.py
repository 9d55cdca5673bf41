"""Names of hosts, as a Host header has them (RFC 9110 §7.2), and which of them mean this machine alone."""

import ipaddress
import re

_FORM = re.compile(r"(?:\[([0-9a-f:.]{2,45})\]|([a-z0-9._-]{1,253}))(?::\d{0,5})?", re.ASCII)
_NAME = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*", re.ASCII)


def host_of(value: bytes) -> str | None:
    """Return the host of a Host header, in lower case, without port, brackets and final dot; `None` if it is none."""
    form = _FORM.fullmatch(value.decode("latin-1").lower())
    if form is None:
        return None
    return form[1] or form[2].removesuffix(".")


def is_host(text: str) -> bool:
    """Tell whether a text is a host as `host_of` gives it: a name in lower case or an address, without a port."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return _NAME.fullmatch(text) is not None
    return True


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach a host name or address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def means_loopback(host: str) -> bool:
    """Tell whether a host can mean this machine alone, whoever says it: names below `localhost` too (RFC 6761 §6.3)."""
    return is_loopback(host) or host.endswith(".localhost")
