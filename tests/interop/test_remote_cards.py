"""The card of a remote agent: mirrored, kept for when it is gone, verified, and compared with what it was."""

import json
from pathlib import Path
from typing import Any

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interop.remotes.gateway import Json, agent_at, gateway, state, words
from tests.interop.remotes.scripted import ScriptedRemote, chunk, stream, task, update
from tests.interop.signing import dragoman, keys

PLAYS = {
    "SendStreamingMessage": stream(
        {"task": task("WORKING")}, chunk("done", append=False), update("COMPLETED")
    )
}


def told(server: ServerProcess, words: str) -> list[Json]:
    """The log lines about the remote agent that hold these words, once there are some."""
    return until(
        lambda: [
            one
            for one in server.log_lines()
            if one.get("logger") == "dragoman.remote" and words in one["message"]
        ],
        what=f"{words!r} in the log",
    )


def named(server: ServerProcess, name: str) -> Json:
    """Our card, once it says this name."""
    agent = agent_at(server, "clerk")
    return until(lambda: card if (card := agent.card())["name"] == name else None, what=f"the name {name}")


def check(config: Path, data: Path) -> Any:
    """What `dragoman check` makes of a configuration."""
    return dragoman("check", "--config", str(config), "--data", str(data))


def test_a_server_starts_without_the_remote_agent_and_says_so(tmp_path: Path) -> None:
    with ScriptedRemote(PLAYS) as gone:
        port = gone.port
    with gateway(tmp_path, {"clerk": f"http://127.0.0.1:{port}"}, bearer_env="") as server:
        agent = agent_at(server, "clerk")
        card = agent.card()
        assert (card["name"], card["description"]) == (
            "clerk",
            "An agent elsewhere, whose own card could not be had yet.",
        )
        ended = agent.send("go")
        assert (state(ended), words(ended)) == ("FAILED", "The remote agent cannot be called.")
        assert [one["level"] for one in told(server, "there is none to go by")] == ["warning"]
        with ScriptedRemote(PLAYS, port=port):
            # As soon as it is there, it is found.
            assert named(server, "Scripted")["skills"][0]["id"] == "play"
            assert state(agent.send("go")) == "COMPLETED"


def test_a_card_that_was_seen_counts_when_the_remote_agent_is_gone(tmp_path: Path) -> None:
    with ScriptedRemote(PLAYS) as remote, gateway(tmp_path, {"clerk": remote.url}) as server:
        named(server, "Scripted")
        server.terminate()
        remote.close()
        server.start()
        assert named(server, "Scripted")["skills"][0]["id"] == "play"
        assert told(server, "the one that was seen last counts")
        assert words(agent_at(server, "clerk").send("go")) == "The remote agent cannot be reached."
    kept = tmp_path / "data" / "remotes" / "clerk.json"
    assert (kept.stat().st_mode & 0o777, kept.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_card_that_changes_is_mirrored_anew_and_told(tmp_path: Path) -> None:
    with ScriptedRemote(PLAYS) as remote, gateway(tmp_path, {"clerk": remote.url}, refresh="200ms") as server:
        before = named(server, "Scripted")
        assert isinstance(remote.card, dict)
        remote.card = {
            **remote.card,
            "name": "Renamed",
            "version": "2",
            "skills": [*remote.card["skills"], SKILL],
        }
        after = named(server, "Renamed")
        assert [skill["id"] for skill in after["skills"]] == ["play", "more"]
        assert after["signatures"] != before["signatures"]
        assert [one["message"] for one in told(server, "has changed")] == [
            "the card of a remote agent has changed since it was seen last: name, skills, version"
        ]


SKILL = {"id": "more", "name": "More", "description": "More.", "tags": ["test"]}


def test_check_tells_what_a_card_says_and_how_it_has_changed(tmp_path: Path) -> None:
    with ScriptedRemote(PLAYS) as remote:
        server = gateway(tmp_path, {"clerk": remote.url}, bearer_env="")
        config = tmp_path / "dragoman.toml"
        seen = check(config, tmp_path / "data")
        assert seen.returncode == 0
        assert (
            f"remote agent clerk: A2A 1.0 over JSONRPC at {remote.url}/rpc; its card was not seen before"
            in seen.stdout
        )
        with server:
            named(server, "Scripted")
        assert "its card is as it was seen last" in check(config, tmp_path / "data").stdout
        assert isinstance(remote.card, dict)
        remote.card = {**remote.card, "version": "2"}
        assert (
            "its card has changed since it was seen last: version" in check(config, tmp_path / "data").stdout
        )
    gone = check(config, tmp_path / "data")
    assert (gone.returncode, "remote agent clerk: its card cannot be had" in gone.stderr) == (0, True)


def signed_card(card: Json, folder: Path) -> Json:
    """A card with a signature by the keys in a data folder."""
    file = folder / "card.json"
    file.write_text(json.dumps(card), encoding="utf-8")
    made: Json = json.loads(keys(folder, "sign", str(file)))
    return made


def test_a_card_must_be_signed_by_the_keys_that_are_pinned(tmp_path: Path) -> None:
    folder, jwks = tmp_path / "signer", tmp_path / "jwks.json"
    keys(folder, "create")
    jwks.write_text(keys(folder, "public"), encoding="utf-8")
    with (
        ScriptedRemote(PLAYS) as remote,
        gateway(
            tmp_path, {"clerk": remote.url}, jwks_file=str(jwks), refresh="200ms", bearer_env=""
        ) as server,
    ):
        agent = agent_at(server, "clerk")
        assert agent.card()["name"] == "clerk"
        assert words(agent.send("go")) == "The remote agent cannot be called."
        assert told(server, "is not signed by the pinned keys for what A2A 1.0 reads of it")
        failed = check(tmp_path / "dragoman.toml", tmp_path / "data")
        assert (failed.returncode, "is not signed by the pinned keys" in failed.stderr) == (1, True)
        assert isinstance(remote.card, dict)
        good = signed_card(remote.card, folder)
        remote.card = good
        named(server, "Scripted")
        assert state(agent.send("go")) == "COMPLETED"
        # What was signed is changed on the way: the card that was seen last counts.
        remote.card = {**good, "name": "Forged"}
        assert told(server, "does not fit")
        assert agent.card()["name"] == "Scripted"
        assert json.loads((tmp_path / "data" / "remotes" / "clerk.json").read_bytes())["card"] == json.dumps(
            good
        )
