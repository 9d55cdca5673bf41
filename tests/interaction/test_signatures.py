"""Signatures of cards as they are served: who made them, where the keys are, and what a rotation changes."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from dragoman.cards.verify import Verdict, trusted, verify
from tests.harness.paths import SOURCE
from tests.harness.polling import until
from tests.harness.server import ServerDidNotStartError, ServerProcess
from tests.interaction.answers import Reply
from tests.interaction.callers import READY, HttpCaller, Request
from tests.interaction.requirements import covers

CARD = "/.well-known/agent-card.json"
KEYS = "/.well-known/jwks.json"
AGENTS = ["demo", "digest", "hold", "still", "teller", "modern"]


def get(http: HttpCaller, path: str, **headers: str | None) -> Reply:
    return http.deliver(Request("GET", path, READY).with_headers(**headers))


def judged(http: HttpCaller, agent: str, version: str | None = "1.0") -> Verdict:
    """What becomes of a card by the keys beside it."""
    base = f"/agents/{agent}"
    card = get(http, base + CARD, a2a_version=version).json()
    return verify(card, trusted(get(http, base + KEYS).body, time.time()))


@covers("card.signed")
@pytest.mark.parametrize("agent", AGENTS)
def test_every_form_of_a_card_is_signed_by_the_keys_beside_it(http: HttpCaller, agent: str) -> None:
    for version in ("1.0", None):
        verdict = judged(http, agent, version)
        assert "1.0" in verdict.covered
        for one in verdict.signatures:
            assert (one.flaw, one.algorithm) == ("", "ES256")
            assert one.jku == f"{http.origin}/agents/{agent}{KEYS}"


@covers("card.keys")
def test_the_keys_stand_at_the_root_and_beside_every_card(http: HttpCaller) -> None:
    root = get(http, KEYS)
    assert (root.status, root.headers["content-type"]) == (200, "application/jwk-set+json")
    assert root.headers["cache-control"] == "public, max-age=300"
    assert get(http, f"/agents/demo{KEYS}").body == root.body
    (key,) = json.loads(root.body)["keys"]
    assert (key["kty"], key["crv"], key["use"]) == ("EC", "P-256", "sig")
    assert not {"d", "k", "p", "q"} & set(key)
    # The protocol has no say about them, so neither has its version.
    for version in (None, "0.3", "7.5", "x"):
        assert get(http, KEYS, a2a_version=version).body == root.body


@covers("card.keys")
@pytest.mark.parametrize("path", [KEYS, f"/agents/demo{KEYS}"])
def test_the_keys_are_for_reading_only_and_may_be_kept(http: HttpCaller, path: str) -> None:
    whole = get(http, path)
    known = get(http, path, if_none_match=whole.headers["etag"])
    assert (known.status, known.body) == (304, b"")
    head = http.deliver(Request("HEAD", path, READY))
    assert (head.status, head.body, head.headers["etag"]) == (200, b"", whole.headers["etag"])
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        reply = http.deliver(Request(method, path, READY))
        assert reply.headers["allow"] == "GET, HEAD"
        assert (reply.status, reply.reason) == (405, "METHOD_NOT_ALLOWED")


@covers("card.keys")
def test_there_are_no_keys_of_an_agent_that_is_not_here(http: HttpCaller) -> None:
    assert get(http, f"/agents/nobody{KEYS}").status == 404


def run(*words: str) -> None:
    """Run a command, which must end well."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    command = [sys.executable, "-m", "dragoman", *words]
    subprocess.run(
        command, env=kept | {"PYTHONPATH": str(SOURCE)}, check=True, capture_output=True, timeout=60
    )


class Own:
    """A server of these tests, whose keys they change."""

    def __init__(self, server: ServerProcess, client: httpx2.Client) -> None:
        self.server = server
        self.client = client

    def get(self, path: str, **headers: str) -> httpx2.Response:
        return self.client.get(self.server.url + path, headers=headers)

    def card(self, version: str = "1.0") -> httpx2.Response:
        return self.get(f"/agents/demo{CARD}", **{"A2A-Version": version} if version else {})

    def status(self, known: str) -> int:
        """How the card is answered to whoever has the form with this tag."""
        return self.get(f"/agents/demo{CARD}", **{"A2A-Version": "1.0", "If-None-Match": known}).status_code

    def kids(self) -> list[str]:
        return [one["kid"] for one in self.get(KEYS).json()["keys"]]

    def keys(self, *words: str) -> None:
        run("keys", *words, "--data", str(self.server.data))

    def follows(self, count: int) -> list[str]:
        """The keys once so many are published, which must be within 5 s."""
        return until(lambda: k if len(k := self.kids()) == count else None, what=f"{count} keys", seconds=5)

    def signers(self, version: str = "1.0") -> list[str]:
        """Whose signatures a form of the card has; each must be good."""
        verdict = verify(self.card(version).json(), trusted(self.get(KEYS).content, time.time()))
        assert [one.flaw for one in verdict.signatures] == [""] * len(verdict.signatures)
        return [one.kid for one in verdict.signatures]


@pytest.fixture
def own(tmp_path: Path, client: httpx2.Client) -> Iterator[Own]:
    """A server with the demo agents."""
    with ServerProcess(tmp_path / "data") as server:
        yield Own(server, client)


@covers("card.keys")
def test_a_rotation_beside_the_server_is_followed_with_two_signatures_and_then_one(own: Own) -> None:
    (old,) = own.kids()
    before = own.card()
    own.keys("rotate")
    new, older = own.follows(2)
    assert older == old and own.signers() == [new, old]
    during = own.card()
    assert during.headers["etag"] != before.headers["etag"]
    assert own.status(before.headers["etag"]) == 200
    own.keys("retire", old)
    own.follows(1)
    assert own.signers() == [new]
    assert len({reply.headers["etag"] for reply in (before, during, own.card())}) == 3


@covers("card.keys", "card.signed")
def test_keys_and_tags_outlive_a_restart_although_signatures_differ(own: Own) -> None:
    kids, before = own.kids(), own.card()
    own.server.restart(keep_port=True)
    after = own.card()
    assert own.kids() == kids
    assert after.headers["etag"] == before.headers["etag"]
    assert after.json()["signatures"] != before.json()["signatures"]
    assert own.status(before.headers["etag"]) == 304


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A configuration with a file of keys for many servers of one public address; the file is not there."""
    config = tmp_path / "dragoman.toml"
    config.write_text(
        '[server]\npublic_url = "https://agents.example.com"\nbase_path = "/a"\n'
        f'[signing]\nkey_file = "{tmp_path / "keys.json"}"\n',
        encoding="utf-8",
    )
    return config


@covers("card.keys")
def test_servers_that_share_a_file_of_keys_have_the_same_card(shared: Path, client: httpx2.Client) -> None:
    run("keys", "create", "--config", str(shared))
    found = []
    for name in ("one", "two"):
        with ServerProcess(shared.parent / name, config=shared) as server:
            card = client.get(f"{server.url}/a/agents/demo{CARD}", headers={"A2A-Version": "1.0"})
            keys = client.get(f"{server.url}/a{KEYS}")
            verdict = verify(card.json(), trusted(keys.content, time.time()))
            found.append((card.headers["etag"], keys.content, verdict))
            assert not (shared.parent / name / "signing-keys.json").exists()
    assert found[0] == found[1]
    verdict = found[0][2]
    assert (verdict.covered, verdict.signatures[0].jku) == (
        ("1.0",),
        f"https://agents.example.com/a/agents/demo{KEYS}",
    )


@covers("card.keys")
def test_a_server_does_not_start_without_the_keys_that_it_was_told_to_use(shared: Path) -> None:
    """A slip in a path must not become a new identity."""
    with pytest.raises(
        ServerDidNotStartError, match=r"keys\.json is not there; make it with `dragoman keys create`"
    ):
        ServerProcess(shared.parent / "data", config=shared).start()
    run("keys", "create", "--config", str(shared))
    (shared.parent / "keys.json").chmod(0o644)
    with pytest.raises(ServerDidNotStartError, match="is open to others, and whoever reads it can sign"):
        ServerProcess(shared.parent / "data", config=shared).start()
