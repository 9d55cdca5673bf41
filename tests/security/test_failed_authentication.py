"""The bound on failed authentication: by address, told by 429, and no way to lock others out."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx2
import pytest

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.security.conftest import AGENTS, BOB, FULL, TENANTS, Sender, started
from tests.security.surfaces import RATE_LIMITED, SURFACES, UNAUTHENTICATED, Surface, reason, refused

BURST = 3
WRONG = "nobody-has-this-token-0000"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that bears few failures."""
    config = f"[limits]\nfailed_auth = {BURST}\n{AGENTS}{TENANTS}"
    with started(tmp_path_factory.mktemp("failures"), config) as running:
        yield running


@pytest.fixture
def address(request: pytest.FixtureRequest, server: ServerProcess) -> Iterator[Sender]:
    """A sender with an address of its own, so that no test is held against another."""
    request.config.stash.setdefault(_USED, [1]).append(1)
    local = f"127.0.3.{len(request.config.stash[_USED])}"
    transport = httpx2.HTTPTransport(local_address=local)
    with httpx2.Client(transport=transport, timeout=20, trust_env=False) as client:
        yield Sender(client, server)


_USED = pytest.StashKey[list[int]]()


def fail(address: Sender, times: int, surface: Surface = SURFACES[0]) -> None:
    for _ in range(times):
        refused(surface, address.send(surface.ask("GetTask", token=WRONG), surface), UNAUTHENTICATED)


def test_an_address_with_too_many_failures_has_to_wait(address: Sender, surface: Surface) -> None:
    with address.rows.unchanged():
        fail(address, BURST, surface)
        for operation in surface.operations:
            for token in (WRONG, FULL):
                reply = address.send(surface.ask(operation, token=token), surface)
                refused(surface, reply, RATE_LIMITED)
                assert 1 <= int(reply.headers["retry-after"]) <= 5
                assert "www-authenticate" not in reply.headers


def test_after_the_time_that_was_named_a_credential_is_looked_at_again(address: Sender) -> None:
    fail(address, BURST)
    reply = address.send(SURFACES[0].ask("GetTask", token=FULL))
    refused(SURFACES[0], reply, RATE_LIMITED)
    deadline = time.monotonic() + int(reply.headers["retry-after"]) + 0.2
    while reason(SURFACES[0], address.send(SURFACES[0].ask("GetTask", token=FULL))) == "RATE_LIMITED":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert reason(SURFACES[0], address.send(SURFACES[0].ask("GetTask", token=FULL))) == "TASK_NOT_FOUND"


def test_a_credential_that_was_good_from_there_before_is_not_locked_out(
    address: Sender, surface: Surface
) -> None:
    assert reason(surface, address.send(surface.ask("GetTask", token=FULL), surface)) == "TASK_NOT_FOUND"
    fail(address, BURST, surface)
    for _ in range(3):
        assert reason(surface, address.send(surface.ask("GetTask", token=FULL), surface)) == "TASK_NOT_FOUND"
        refused(surface, address.send(surface.ask("GetTask", token=BOB), surface), RATE_LIMITED)


def test_what_needs_no_credential_goes_on(address: Sender) -> None:
    fail(address, BURST)
    assert address.get("/healthz").status == 200
    assert address.get("/agents/demo/.well-known/agent-card.json").status == 200
    assert reason(SURFACES[0], address.send(SURFACES[0].ask("GetTask", "anyones"))) == "TASK_NOT_FOUND"
    refused(SURFACES[0], address.send(SURFACES[0].ask("GetTask")), UNAUTHENTICATED)
    refused(SURFACES[0], address.send(SURFACES[0].ask("GetTask", "anyones", token=WRONG)), RATE_LIMITED)


@pytest.mark.parametrize("name", ["x_forwarded_for", "forwarded", "x_real_ip", "true_client_ip"])
def test_no_header_gives_an_address_another_one(address: Sender, name: str) -> None:
    for number in range(BURST):
        asked = SURFACES[0].ask("GetTask", token=WRONG).with_headers(**{name: f"192.0.2.{number}"})
        refused(SURFACES[0], address.send(asked), UNAUTHENTICATED)
    asked = SURFACES[0].ask("GetTask", token=WRONG).with_headers(**{name: "192.0.2.99"})
    refused(SURFACES[0], address.send(asked), RATE_LIMITED)


def test_requests_without_a_credential_are_no_failures(address: Sender) -> None:
    for _ in range(BURST + 5):
        refused(SURFACES[0], address.send(SURFACES[0].ask("GetTask")), UNAUTHENTICATED)
    assert reason(SURFACES[0], address.send(SURFACES[0].ask("GetTask", token=FULL))) == "TASK_NOT_FOUND"


def test_one_address_is_not_another(address: Sender, server: ServerProcess) -> None:
    fail(address, BURST)
    with httpx2.Client(timeout=20, trust_env=False) as client:
        other = Sender(client, server)
        assert reason(SURFACES[0], other.send(SURFACES[0].ask("GetTask", token=FULL))) == "TASK_NOT_FOUND"


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server behind proxies at 127.0.4.x and 10.x.x.x that bears few failures."""
    config = '[server]\ntrusted_proxies = ["127.0.4.0/24", "10.0.0.0/8"]\n'
    config += f"[limits]\nfailed_auth = {BURST}\n{AGENTS}{TENANTS}"
    with started(tmp_path_factory.mktemp("proxied"), config) as running:
        yield running


@contextmanager
def by(server: ServerProcess, local: str) -> Iterator[Sender]:
    """A sender with this address."""
    transport = httpx2.HTTPTransport(local_address=local)
    with httpx2.Client(transport=transport, timeout=20, trust_env=False) as client:
        yield Sender(client, server)


def told(proxy: Sender, token: str = WRONG, **headers: str) -> str:
    """The reason that a request passed on with these headers is refused with."""
    asked = SURFACES[0].ask("GetTask", token=token).with_headers(**headers)
    return reason(SURFACES[0], proxy.send(asked))


@pytest.mark.parametrize("header", ["x_forwarded_for", "forwarded"])
def test_behind_a_trusted_proxy_the_callers_have_addresses_of_their_own(
    proxied: ServerProcess, header: str
) -> None:
    number = {"x_forwarded_for": 1, "forwarded": 2}[header]
    say = "{}".format if header == "x_forwarded_for" else "for={}".format
    bad, good = say(f"192.0.2.{number}"), say(f"192.0.2.{100 + number}")
    with by(proxied, "127.0.4.1") as proxy:
        for spoofed in range(BURST):
            way = f"{say(f'198.51.100.{spoofed}')}, {bad}, {say('10.1.1.1')}"
            assert told(proxy, **{header: way}) == "UNAUTHENTICATED"
        assert told(proxy, **{header: bad}) == "RATE_LIMITED"
        assert told(proxy, FULL, **{header: bad}) == "RATE_LIMITED"
        assert told(proxy, FULL, **{header: good}) == "TASK_NOT_FOUND"

    def logged() -> list[str]:
        lines = [line for line in proxied.log_lines() if line.get("address") == f"192.0.2.{number}"]
        return [line["outcome"] for line in lines]

    expected = ["UNAUTHENTICATED"] * BURST + ["RATE_LIMITED"] * 2
    until(lambda: logged() == expected, what="the log says where they came from")


def test_nobody_but_a_trusted_proxy_has_another_address(proxied: ServerProcess) -> None:
    with by(proxied, "127.0.5.1") as stranger:
        for number in range(BURST):
            assert told(stranger, x_forwarded_for=f"192.0.2.{200 + number}") == "UNAUTHENTICATED"
        assert told(stranger, FULL, x_forwarded_for="192.0.2.222") == "RATE_LIMITED"
