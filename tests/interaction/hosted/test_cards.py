"""Discovery: the card of a hosted agent, for those who may read it."""

import json
import time

import pytest

from dragoman.cards.verify import trusted, verify
from tests.interaction.answers import NO_AGENT, NOT_ALLOWED, VERSION, refused
from tests.interaction.callers import Request
from tests.interaction.hosted.callers import BASE, Hosted, as_http
from tests.interaction.hosted.requirements import covers


@covers("card.place", "card.standard")
def test_the_card_stands_at_the_agents_base_and_lists_json_rpc_1_0_alone(alice: Hosted) -> None:
    reply = alice.card()
    assert (reply.status, reply.content_type) == (200, "application/json")
    card = reply.json()
    endpoint = {
        "url": f"{alice.origin}{BASE}/demo/rpc",
        "protocolBinding": "JSONRPC",
        "protocolVersion": "1.0",
    }
    assert card["supportedInterfaces"] == [endpoint]
    for name in ("name", "description", "version", "skills"):
        assert card[name]
    assert card["capabilities"] == {"streaming": True, "pushNotifications": False, "extendedAgentCard": False}
    assert card["defaultInputModes"] == ["text/plain", "text/markdown"]
    assert card["defaultOutputModes"] == ["text/markdown"]


@covers("card.bearer")
def test_the_card_asks_for_a_bearer_and_claims_no_issuer(alice: Hosted) -> None:
    card = alice.card().json()
    ((name, scheme),) = card["securitySchemes"].items()
    assert list(scheme) == ["httpAuthSecurityScheme"]
    assert scheme["httpAuthSecurityScheme"]["scheme"].lower() == "bearer"
    assert [list(one["schemes"]) for one in card["securityRequirements"]] == [[name]]
    del card["signatures"]  # which may say anything
    for word in ("oauth", "openid", "flows", "token_url", "tokenUrl"):
        assert word.lower() not in json.dumps(card).lower()


@covers("card.signed")
def test_the_card_is_signed_by_keys_that_anybody_may_read(alice: Hosted) -> None:
    keys = alice.client.get(f"{alice.origin}/.well-known/jwks.json").content
    verdict = verify(alice.card().json(), trusted(keys, time.time()))
    assert (verdict.covered, [one.flaw for one in verdict.signatures]) == (("1.0",), [""])
    assert verdict.signatures[0].jku == f"{alice.origin}/.well-known/jwks.json"


@covers("card.form")
def test_the_card_is_in_the_form_of_1_0_with_and_without_a_version(alice: Hosted) -> None:
    unnamed, named = alice.card(), alice.card({"A2A-Version": "1.0"})
    assert unnamed.body == named.body
    assert unnamed.headers["etag"] == named.headers["etag"]
    assert unnamed.headers["a2a-version"] == named.headers["a2a-version"] == "1.0"
    for older in ("url", "protocolVersion", "preferredTransport", "additionalInterfaces", "security"):
        assert older not in unnamed.json()
    for version in ("0.3", "2.0", "1.0.0", "x"):
        refused(alice.card({"A2A-Version": version}), VERSION)


@covers("card.kept")
def test_the_card_is_kept_by_its_caller_alone(alice: Hosted) -> None:
    reply = alice.card()
    assert reply.headers["cache-control"].startswith("private, max-age=")
    known = alice.card({"If-None-Match": reply.headers["etag"]})
    assert (known.status, known.body) == (304, b"")
    head = alice.card(method="HEAD")
    assert (head.status, head.body, head.headers["etag"]) == (200, b"", reply.headers["etag"])
    asked_without = alice.by(None).card({"If-None-Match": reply.headers["etag"]})
    assert asked_without.status == 401


@covers("card.place")
def test_the_card_is_for_reading(alice: Hosted) -> None:
    for method in ("POST", "PUT", "DELETE"):
        reply = alice.card(method=method)
        refused(reply, NOT_ALLOWED)
        assert reply.headers["allow"] == "GET, HEAD"


@covers("card.standard")
def test_the_open_card_of_the_agent_names_no_hosted_place(alice: Hosted) -> None:
    path = "/agents/demo/.well-known/agent-card.json"
    card = as_http(alice.deliver(Request("GET", path, {"A2A-Version": "1.0"}))).json()
    urls = [entry["url"] for entry in card["supportedInterfaces"]]
    assert urls and not any(BASE in url for url in urls)


@covers("profile.feature", "profile.workspace")
@pytest.mark.parametrize(("who", "agent"), [("PAT", "plain"), ("ALICE", "nowhere"), ("BOB", "nowhere")])
def test_agents_without_the_feature_or_without_a_workspace_are_not_hosted(
    alice: Hosted, who: str, agent: str
) -> None:
    caller = alice.by(who).to(agent)
    refused(caller.card(), NO_AGENT)
    refused(caller.call("ListTasks"), NO_AGENT)
    missing = caller.to("nobody").call("ListTasks")
    assert caller.call("ListTasks").body == missing.body
