"""What needs no credential, what cards say of it, and that no secret is written or answered anywhere."""

import json
import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.harness.polling import until
from tests.interaction.callers import Request
from tests.security.conftest import APP, CAROL, FULL, SECRETS, TENANTS, Sender, started
from tests.security.surfaces import CHALLENGE, SURFACES, Surface, challenged

UNKNOWN = "Bearer nobody-has-this-token-0000"
OPEN = ("/healthz", "/readyz", "/metrics", "/agents/demo/.well-known/agent-card.json")


@pytest.mark.parametrize(
    "path", [*OPEN, "/agents/demo/card", "/agents/demo/v1/card", "/agents/demo/v1/v1/card"]
)
@pytest.mark.parametrize("credential", [None, "Bearer wrong", f"Bearer {FULL}", "Basic x"])
def test_health_and_cards_need_no_credential(sender: Sender, path: str, credential: str | None) -> None:
    headers = {} if credential is None else {"authorization": credential}
    reply = sender.get(path, **headers)
    assert (reply.status, "www-authenticate" in reply.headers) == (200, False)


def test_a_preflight_needs_no_credential_and_the_request_itself_does(
    sender: Sender, surface: Surface
) -> None:
    asked = surface.ask("SendMessage").with_headers(origin=APP)
    names = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,a2a-version",
    }
    before = sender.send(Request("OPTIONS", asked.target, {"Origin": APP, **names}))
    assert before.status == 204
    assert "Authorization" in before.headers["access-control-allow-headers"]
    assert "access-control-allow-credentials" not in before.headers
    refusal = sender.send(asked, surface)
    challenged(surface, refusal, CHALLENGE)
    assert refusal.headers["access-control-allow-origin"] == APP
    stranger = Request("OPTIONS", asked.target, {"Origin": "https://stranger.example", **names})
    assert "access-control-allow-origin" not in sender.send(stranger).headers


def test_no_secret_is_written_or_answered(sender: Sender, surface: Surface) -> None:
    guess = "a-guess-that-nobody-made-yet-" + surface.name.replace(" ", "-")
    for token in (*SECRETS.values(), guess):
        for operation in ("SendMessage", "GetTask"):
            reply = sender.send(surface.ask(operation, token=token), surface)
            told = reply.body.decode() + "".join(
                f"{name}: {value}\n" for name, value in reply.headers.items()
            )
            assert token not in told
    metrics = sender.get("/metrics").body.decode()
    logged = sender.server.log_file.read_text(encoding="utf-8")
    stored = b"".join(file.read_bytes() for file in sender.server.data.iterdir())
    for token in (*SECRETS.values(), guess):
        assert token not in metrics and token not in logged and token.encode() not in stored
    assert "Bearer" not in logged and "authorization" not in logged.lower()


def test_the_log_says_what_was_wrong_with_a_credential(sender: Sender) -> None:
    for wrong in ("Basic x", UNKNOWN):
        name = f"flaw-{len(wrong)}"
        asked = SURFACES[0].ask("GetTask").with_headers(authorization=wrong, x_request_id=name)
        sender.send(asked)
    lines: dict[Any, Any] = {}

    def logged() -> bool:
        lines.update({line.get("request_id"): line for line in sender.server.log_lines()})
        return {"flaw-7", f"flaw-{len(UNKNOWN)}"} <= set(lines)

    until(logged, what="both requests are in the log")
    assert lines["flaw-7"]["flaw"] == "it is no single bearer token"
    assert lines[f"flaw-{len(UNKNOWN)}"]["flaw"] == "no such token is known"
    assert all(lines[name]["outcome"] == "UNAUTHENTICATED" for name in lines if str(name).startswith("flaw-"))


FORMS = {
    "1.0": (
        {"bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}}},
        "securityRequirements",
        [{"schemes": {"bearer": {"list": ["ai:answer"]}}}],
    ),
    "0.3": ({"bearer": {"type": "http", "scheme": "Bearer"}}, "security", [{"bearer": []}]),
}


@pytest.mark.parametrize("agent", ["demo", "ours", "anyones", "ours-and-anyones"])
def test_a_card_tells_in_each_form_what_is_really_asked_for(sender: Sender, agent: str) -> None:
    for version, (schemes, member, wanted) in FORMS.items():
        card = sender.get(f"/agents/{agent}/.well-known/agent-card.json", **{"A2A-Version": version}).json()
        if "anyones" in agent:
            assert not {"securitySchemes", "security", "securityRequirements"} & set(card)
        else:
            assert (card["securitySchemes"], card[member]) == (schemes, wanted)
    both = sender.get(f"/agents/{agent}/.well-known/agent-card.json").json()
    if "anyones" in agent:
        assert not {"securitySchemes", "security", "securityRequirements"} & set(both)
    else:
        assert both["securitySchemes"] == {
            "bearer": {**FORMS["1.0"][0]["bearer"], **FORMS["0.3"][0]["bearer"]}
        }
        assert (both["securityRequirements"], both["security"]) == (FORMS["1.0"][2], FORMS["0.3"][2])
    # Signatures may say anything.
    told = json.dumps({name: value for name, value in both.items() if name != "signatures"})
    assert not re.search("oauth|token|openid", told, re.I)


def described(sender: Sender, token: str | None = None) -> set[str]:
    """The agents that `/openapi.json` names to whoever has a token."""
    reply = sender.get("/openapi.json", **({} if token is None else {"authorization": f"Bearer {token}"}))
    assert (reply.status, reply.headers["cache-control"]) == (200, "private, max-age=300")
    return set(reply.json()["components"]["parameters"]["agent"]["schema"]["enum"])


def test_the_description_names_agents_only_to_those_for_whom_they_are_there(sender: Sender) -> None:
    assert described(sender) == {"demo", "anyones", "ours-and-anyones"}
    assert described(sender, FULL) == {"demo", "anyones", "ours-and-anyones", "ours"}
    assert described(sender, CAROL) == {"demo", "anyones", "theirs"}
    tags = {
        sender.get("/openapi.json", authorization=f"Bearer {one}").headers["etag"] for one in (FULL, CAROL)
    }
    assert len(tags) == 2


@pytest.mark.parametrize("credential", ["Bearer wrong", "Basic x", UNKNOWN])
def test_a_credential_that_is_shown_to_the_description_must_be_good(sender: Sender, credential: str) -> None:
    reply = sender.get("/openapi.json", authorization=credential)
    assert (reply.status, reply.reason) == (401, "UNAUTHENTICATED")
    assert "ours" not in reply.body.decode()


def test_where_all_agents_are_tenants_nothing_is_described_without_a_credential(
    client: httpx2.Client, tmp_path: Path
) -> None:
    agents = '[agents.ours]\npython = "dragoman.agents.demo:demo"\ntenant = "acme"\n'
    with started(tmp_path, agents + TENANTS) as server:
        sender = Sender(client, server)
        assert sender.get("/openapi.json").status == 401
        assert described(sender, FULL) == {"ours"}
        assert sender.get("/openapi.json", authorization=f"Bearer {CAROL}").status == 404
