"""Connecting to what was checked: a name is resolved here, and the connection goes to the address that was looked at.

TLS, above this, verifies the name: the address is only the way there.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

import httpcore2

from dragoman.egress.addresses import Address
from dragoman.egress.policy import EgressPolicy, Refused, is_local, literal

Resolve = Callable[[str, int], Awaitable[Sequence[Address]]]
"""Returns the addresses of a name; raises OSError if it has none."""

MOST_ADDRESSES = 4
"""Addresses of a name that are tried."""

_THREADS = 16


class SystemResolver:
    """Asks the system, in threads of its own: names that take long to resolve wait for each other and nobody else."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="resolver")

    async def __call__(self, host: str, port: int) -> Sequence[Address]:
        """See `Resolve`."""
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(
            self._threads, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        )
        return tuple(dict.fromkeys(ip_address(one[4][0]) for one in found))

    def close(self) -> None:
        """Let the threads go."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class PinnedBackend(httpcore2.AsyncNetworkBackend):
    """Connects within a policy."""

    def __init__(self, policy: EgressPolicy, resolve: Resolve) -> None:
        self._policy = policy
        self._resolve = resolve
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to one of the addresses of a host, each checked before anything is sent to any.

        Raises:
            Refused: one of them may not be reached.
            httpcore2.ConnectError, httpcore2.ConnectTimeout: none of them can be.
        """
        try:
            async with asyncio.timeout(timeout):
                addresses = await self._addresses(host, port)
                return await self._connect(addresses, port, local_address, socket_options)
        except TimeoutError:
            raise httpcore2.ConnectTimeout from None

    async def _addresses(self, host: str, port: int) -> Sequence[Address]:
        trusted = self._policy.is_trusted(host, port)
        # What the operator calls localhost may listen on either kind of address.
        addresses = () if trusted and is_local(host) else literal(host)
        if not addresses:
            try:
                addresses = await self._resolve(host, port)
            except (OSError, UnicodeError) as error:
                raise httpcore2.ConnectError(f"{host} has no address") from error
        if not addresses:
            raise httpcore2.ConnectError(f"{host} has no address")
        if not trusted:
            self._policy.check_addresses(addresses)
        return addresses

    async def _connect(
        self,
        addresses: Sequence[Address],
        port: int,
        local_address: str | None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None,
    ) -> httpcore2.AsyncNetworkStream:
        failure: httpcore2.ConnectError | None = None
        for address in addresses[:MOST_ADDRESSES]:
            try:
                return await self._network.connect_tcp(
                    str(address), port, None, local_address, socket_options
                )
            except httpcore2.ConnectError as error:
                failure = error
        raise failure or httpcore2.ConnectError("no address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: nothing leads from a URL to a file.

        Raises:
            Refused: always.
        """
        raise Refused("leads to a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)
