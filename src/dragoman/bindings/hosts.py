"""By which names a server may be called that asks nobody who they are.

A web page can have its own name resolved to 127.0.0.1 ("DNS rebinding"): to the browser the local server is then a part
of that page's site, which may call it and read what comes. Its requests still say the page's name in Host.
"""

from collections.abc import Iterable
from functools import lru_cache

from dragoman.model.errors import Misdirected
from dragoman.protocol.headers import Headers
from dragoman.protocol.hosts import host_of, means_loopback

_REMEMBERED = 64


class KnownHosts:
    """Names of this machine, and those that the operator has named."""

    def __init__(self, names: Iterable[str]) -> None:
        """Know `names` beside those of the machine itself: hosts in lower case, without ports."""
        self._names = frozenset(names)
        # The same few values come again and again.
        self._is_known = lru_cache(_REMEMBERED)(self._look_up)

    def check(self, headers: Headers) -> None:
        """Make sure that a request was meant for this server. One that says no host comes from no browser.

        Raises:
            Misdirected: it says another host.
        """
        for value in headers.all(b"host"):
            if not self._is_known(value):
                raise Misdirected(
                    "This server answers to names of its own machine and to those that its operator has listed, "
                    "because it asks nobody who they are and a web page could give it another name. Call it by "
                    "localhost, or list the host in server.hosts"
                )

    def _look_up(self, value: bytes) -> bool:
        host = host_of(value)
        return host is not None and (means_loopback(host) or host in self._names)
