"""Credentials: what is none, what is a wrong one, and how both are refused on every operation of every surface."""

import pytest

from tests.interaction.callers import Request
from tests.interaction.sockets import Socket
from tests.security.conftest import FULL, READ, Sender
from tests.security.surfaces import CHALLENGE, INVALID, SURFACES, Surface, challenged, reason, same_refusal


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("agent", ["demo", "ours", "theirs", "unknown", "DEMO", "..%2fdemo"])
def test_without_a_credential_every_operation_asks_for_one(
    sender: Sender, surface: Surface, agent: str
) -> None:
    for operation in surface.operations:
        challenged(surface, sender.send(surface.ask(operation, agent), surface), CHALLENGE)


@pytest.mark.usefixtures("nothing_stored")
def test_a_credential_is_asked_for_before_a_body_is_read(sender: Sender, surface: Surface) -> None:
    for body in (b"", b"{", b"nonsense", b"\xff", b'{"message": 5}', b"[" * 1000):
        asked = surface.ask("SendMessage")
        challenged(
            surface, sender.send(Request(asked.method, asked.target, asked.headers, body), surface), CHALLENGE
        )
    kind = surface.ask("SendMessage").with_headers(content_type="text/plain")
    challenged(surface, sender.send(kind, surface), CHALLENGE)


WRONG = {
    "unknown": "Bearer nobody-has-this-token-0000",
    "empty": "Bearer",
    "cut": f"Bearer {FULL[:-1]}",
    "longer": f"Bearer {FULL}x",
    "other case": f"Bearer {FULL.swapcase()}",
    "bare": FULL,
    "basic": "Basic YWxpY2U6c2VjcmV0",
    "basic with the token": f"Basic {FULL}",
    "digest": 'Digest username="alice"',
    "token": f"Token {FULL}",
    "api key": f"ApiKey {FULL}",
    "quoted": f'Bearer "{FULL}"',
    "list": f"Bearer {FULL}, Basic x",
    "parameters": f"Bearer token={FULL}",
    "two tokens": f"Bearer {FULL} {READ}",
    "tab": f"Bearer\t{FULL}",
    "prefix": f"Bearer dgm_{FULL}",
    "signed": "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbGljZSIsInRlbmFudCI6ImFjbWUifQ.",
    "environment": "Bearer ALICE_FULL",
    "injection": "Bearer ' OR '1'='1",
    "huge": "Bearer " + "a" * 60_000,
}


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_a_wrong_credential_is_refused_on_every_surface(sender: Sender, wrong: str) -> None:
    for surface in SURFACES:
        asked = surface.ask("SendMessage").with_headers(authorization=wrong)
        challenged(surface, sender.send(asked, surface), INVALID)


@pytest.mark.usefixtures("nothing_stored")
def test_a_wrong_credential_is_refused_on_every_operation_in_the_same_words(
    sender: Sender, surface: Surface
) -> None:
    told = [
        sender.send(surface.ask(operation, agent).with_headers(authorization=wrong), surface)
        for operation in surface.operations
        for agent in ("demo", "theirs", "unknown")
        for wrong in (WRONG["unknown"], WRONG["basic"])
    ]
    for reply in told:
        challenged(surface, reply, INVALID)
        assert same_refusal(surface, reply, told[0])


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "values",
    [
        (f"Bearer {FULL}", f"Bearer {FULL}"),
        (f"Bearer {FULL}", "Basic x"),
        ("Basic x", f"Bearer {FULL}"),
        (f"Bearer {READ}", f"Bearer {FULL}"),
        (f"Bearer {FULL}", ""),
    ],
)
def test_several_credentials_are_none(sender: Sender, surface: Surface, values: tuple[str, ...]) -> None:
    lines = b"".join(f"authorization: {value}\r\n".encode() for value in values)
    head, _, body = surface.ask("SendMessage").text().partition(b"\r\n\r\n")
    with Socket(sender.server.url) as socket:
        socket.send(head + b"\r\n" + lines + b"\r\n" + body)
        challenged(surface, socket.reply(surface.binding), INVALID)


@pytest.mark.parametrize("name", ["authorization", "AUTHORIZATION", "Authorization"])
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer  "])
def test_a_good_credential_is_taken_in_any_case(
    sender: Sender, surface: Surface, name: str, scheme: str
) -> None:
    asked = surface.ask("GetTask", task=sender.task(FULL))
    answer = sender.send(
        Request(asked.method, asked.target, {**asked.headers, name: f"{scheme} {FULL}"}, asked.body), surface
    )
    assert reason(surface, answer) == ""


@pytest.mark.usefixtures("nothing_stored")
@pytest.mark.parametrize(
    "place",
    [
        {"x_api_key": FULL},
        {"proxy_authorization": f"Bearer {FULL}"},
        {"cookie": f"authorization=Bearer {FULL}; token={FULL}"},
        {"x_authorization": f"Bearer {FULL}"},
        {"x_forwarded_authorization": f"Bearer {FULL}"},
        {"x_forwarded_user": "alice", "x_tenant": "acme", "x_dragoman_tenant": "acme"},
        {"x_forwarded_for": "127.0.0.1", "forwarded": "for=127.0.0.1", "x_real_ip": "127.0.0.1"},
    ],
    ids=lambda place: next(iter(place)),
)
def test_a_credential_is_looked_for_in_its_own_header_alone(
    sender: Sender, surface: Surface, place: dict[str, str]
) -> None:
    asked = surface.ask("SendMessage").with_headers(**place)
    challenged(surface, sender.send(asked, surface), CHALLENGE)
    in_query = Request(
        asked.method, f"{asked.target}?access_token={FULL}&token={FULL}", asked.headers, asked.body
    )
    challenged(surface, sender.send(in_query, surface), CHALLENGE)
