"""The bound on failed authentication: by address, told by 429, and no way to lock others out."""

import time
from collections.abc import Iterator

import httpx2
import pytest

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
