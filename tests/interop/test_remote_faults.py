"""Whatever a remote agent does, a run has the end that the documents say, within bounds, and is never sent twice."""

import gzip
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.harness.polling import until
from tests.harness.server import ServerProcess
from tests.interop.remotes.gateway import TOKEN, Agent, Json, agent_at, artifacts, gateway, state, words
from tests.interop.remotes.scripted import (
    HOLD,
    Reply,
    Script,
    ScriptedRemote,
    always,
    answer,
    card_of,
    chunk,
    error,
    event,
    stream,
    task,
    update,
)

STREAM, GET, SUBSCRIBE, CANCEL = "SendStreamingMessage", "GetTask", "SubscribeToTask", "CancelTask"


@contextmanager
def served(folder: Path, remote: ScriptedRemote, **more: Any) -> Iterator[Agent]:
    """An agent of ours that mirrors the scripted one; a little impatient."""
    with gateway(folder, {"clerk": remote.url}, **{"idle": "1s", "patience": "1s", **more}) as server:
        yield agent_at(server, "clerk")


class Stage:
    """One scripted agent and the agent of ours that mirrors it, for many plays."""

    def __init__(self, remote: ScriptedRemote, agent: Agent) -> None:
        self.remote = remote
        self.agent = agent
        self._before = 0

    def play(self, plays: dict[str, Script]) -> Agent:
        """Begin another play."""
        self.remote.plays = plays
        self._before = len(self.remote.calls)
        return self.agent

    def methods(self) -> list[str]:
        """What was called in this play."""
        return [call["method"] for call in self.remote.calls[self._before :]]

    def sends(self) -> int:
        """How many messages were sent in this play."""
        return self.methods().count(STREAM)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The stage."""
    with ScriptedRemote({}) as remote, served(tmp_path_factory.mktemp("stage"), remote) as agent:
        yield Stage(remote, agent)


def reason(ended: Json) -> str:
    """Why a run ended, for programs."""
    return str(ended["status"]["message"]["metadata"]["urn:dragoman:ext:remote:v1"]["reason"])


BEGUN = {"task": task("WORKING")}
WRONG = update("WORKING", "far-2")


def in_turn(states: Iterator[str]) -> Script:
    """Answers with the task in one state after the other."""

    def play(call: Json) -> Reply:
        return answer(task(next(states)))(call)

    return play


@pytest.mark.parametrize(
    ("play", "why", "says"),
    [
        pytest.param(always(Reply()), "OUTCOME_UNKNOWN", "nobody knows", id="nothing"),
        pytest.param(
            always(Reply(b"<html>Hello", Content_Type="text/html")), "OUTCOME_UNKNOWN", "nobody knows", id="HTML"
        ),
        pytest.param(
            always(Reply(b"data: <html>\n\n")), "OUTCOME_UNKNOWN", "nobody knows", id="HTML in a stream"
        ),
        pytest.param(
            lambda call: Reply(event({"id": "another"}, BEGUN)), "OUTCOME_UNKNOWN", "nobody knows", id="wrong id"
        ),
        pytest.param(
            lambda call: Reply(gzip.compress(event(call, BEGUN)), Content_Encoding="gzip"),
            "OUTCOME_UNKNOWN",
            "nobody knows",
            id="gzip",
        ),
        pytest.param(
            always(Reply(*([b"d", 0.05] * 60))), "OUTCOME_UNKNOWN", "nobody knows", id="slow drip"
        ),
        pytest.param(always(Reply(HOLD)), "OUTCOME_UNKNOWN", "nobody knows", id="silence"),
        pytest.param(
            always(Reply(status=502)), "OUTCOME_UNKNOWN", "nobody knows", id="a proxy that does not know"
        ),
        pytest.param(
            always(Reply(b"data: " + b"x" * 10 * 1024 * 1024)), "RESULT_TOO_LARGE", "more than 1048576", id="10 MiB"
        ),
        pytest.param(
            stream(BEGUN, WRONG),
            "INVALID_AGENT_RESPONSE",
            "about another task",
            id="wrong task",
        ),
        pytest.param(always(Reply(status=401)), "UNAUTHENTICATED", "did not accept", id="401"),
        pytest.param(always(Reply(status=503)), "UNAVAILABLE", "answered with an error", id="503"),
        pytest.param(error(-32603, "boom"), "INTERNAL_ERROR", "It says: boom", id="an error"),
        pytest.param(
            error(-32602, f"not with {TOKEN}", 400), "INVALID_PARAMS", "It says: not with …", id="our secret"
        ),
        pytest.param(
            stream(BEGUN, chunk("x" * 600_000, append=False), chunk("y" * 600_000)),
            "RESULT_TOO_LARGE",
            "more than 1048576",
            id="too much in all",
        ),
    ],
)  # fmt: skip
def test_a_fault_has_its_end_after_one_send(stage: Stage, play: Script, why: str, says: str) -> None:
    plays = {
        STREAM: play,
        GET: answer(task("WORKING")),
        SUBSCRIBE: stream(BEGUN, HOLD),
        CANCEL: error(-32002),
    }
    agent = stage.play(plays)
    started = time.monotonic()
    ended = agent.send("go")
    assert state(ended) in ("FAILED", "REJECTED")
    assert (reason(ended), says in words(ended)) == (why, True)
    assert time.monotonic() - started < 8
    assert stage.sends() == 1
    assert TOKEN not in json.dumps(agent.get(ended["id"]))


def test_memory_is_bounded_whatever_is_sent(tmp_path: Path) -> None:
    def flood(call: Json) -> Reply:
        return Reply(*([b"data: " + b"x" * 65536] * 640))

    with ScriptedRemote({STREAM: flood}) as remote, gateway(tmp_path, {"clerk": remote.url}) as server:
        agent = agent_at(server, "clerk")
        agent.send("warm up")
        before = server.rss_bytes()
        for _ in range(5):
            assert reason(agent.send("go")) == "RESULT_TOO_LARGE"
        assert server.rss_bytes() - before < 24 * 1024 * 1024


def test_a_remote_agent_that_is_gone_cannot_be_reached(tmp_path: Path) -> None:
    with ScriptedRemote({}) as remote, served(tmp_path, remote) as agent:
        remote.close()
        ended = agent.send("go")
        assert (state(ended), reason(ended)) == ("FAILED", "UNAVAILABLE")
        assert words(ended) == "The remote agent cannot be reached."


def test_a_stream_that_is_cut_is_found_again(stage: Stage) -> None:
    said = {"messageId": "s-1", "role": "ROLE_AGENT", "parts": [{"text": "while nobody listened"}]}
    missed = task(
        "WORKING",
        history=[said],
        artifacts=[{"artifactId": "a", "parts": [{"text": "one "}, {"text": "two "}]}],
    )
    plays = {
        STREAM: stream(BEGUN, chunk("one ", append=False)),
        GET: answer(missed),
        SUBSCRIBE: stream({"task": missed}, chunk("three"), update("COMPLETED")),
    }
    with stage.play(plays).stream("go") as events:
        told = list(events)
    assert stage.sends() == 1
    chunks = [one["artifactUpdate"] for one in told if "artifactUpdate" in one]
    assert [(one["artifact"]["parts"][0]["text"], one.get("append", False)) for one in chunks] == [
        ("one ", False), ("two ", True), ("three", True),
    ]  # fmt: skip
    statuses = [one["statusUpdate"]["status"] for one in told if "statusUpdate" in one]
    assert [one["message"]["parts"][0]["text"] for one in statuses if "message" in one] == [
        "while nobody listened"
    ]
    assert statuses[-1]["state"] == "TASK_STATE_COMPLETED"


def test_silence_is_no_end_while_the_task_goes_on(stage: Stage) -> None:
    looks = iter(["WORKING", "WORKING", "COMPLETED"])
    plays = {STREAM: stream(BEGUN, HOLD), GET: in_turn(looks), SUBSCRIBE: stream(BEGUN, HOLD)}
    assert state(stage.play(plays).send("go")) == "COMPLETED"
    assert stage.methods() == [STREAM, GET, SUBSCRIBE, GET, SUBSCRIBE, GET]


@pytest.mark.parametrize(
    ("get", "why"),
    [
        (error(-32001), "TASK_NOT_FOUND"),
        (always(Reply(b"<html>", Content_Type="text/html")), "UNAVAILABLE"),
        (always(Reply(status=503)), "UNAVAILABLE"),
        (answer(task("WORKING") | {"id": "far-2"}), "INVALID_AGENT_RESPONSE"),
        (always(Reply(b" " * 2 * 1024 * 1024, Content_Type="application/json")), "RESULT_TOO_LARGE"),
    ],
)
def test_a_task_that_cannot_be_found_again_has_an_end(stage: Stage, get: Script, why: str) -> None:
    ended = stage.play({STREAM: stream(BEGUN), GET: get}).send("go")
    assert (state(ended), reason(ended)) == ("FAILED", why)
    assert stage.sends() == 1


def test_a_task_that_has_grown_too_large_while_it_waited_has_an_end(stage: Stage) -> None:
    asks = {"task": task("INPUT_REQUIRED")}
    large = Reply(b" " * 2 * 1024 * 1024, Content_Type="application/json")
    agent = stage.play({STREAM: stream(asks), GET: always(large)})
    asked = agent.send("go")
    assert state(asked) == "INPUT_REQUIRED"
    ended = agent.send("an answer", taskId=asked["id"])
    assert (state(ended), reason(ended)) == ("FAILED", "RESULT_TOO_LARGE")
    assert stage.sends() == 1


def test_an_authorization_that_was_given_elsewhere_lets_the_task_go_on(stage: Stage) -> None:
    asks = {"task": task("AUTH_REQUIRED")}
    agent = stage.play({STREAM: stream(asks), GET: answer(task("COMPLETED"))})
    asked = agent.send("go")
    assert state(asked) == "AUTH_REQUIRED"
    # The message has our server look; the task does not wait any more, so it is not sent on.
    assert state(agent.send("I did", taskId=asked["id"])) == "COMPLETED"
    assert stage.sends() == 1


def test_a_remote_agent_that_cannot_be_listened_to_is_polled(stage: Stage) -> None:
    looks = iter(["WORKING", "WORKING", "COMPLETED"])
    plays = {STREAM: stream(BEGUN), GET: in_turn(looks), SUBSCRIBE: error(-32004)}
    assert state(stage.play(plays).send("go")) == "COMPLETED"
    assert stage.methods() == [STREAM, GET, SUBSCRIBE, GET, GET]


def test_nothing_is_sent_where_the_configuration_does_not_say(tmp_path: Path) -> None:
    with ScriptedRemote({STREAM: stream(BEGUN, update("COMPLETED"))}) as other:
        elsewhere = {"Location": f"{other.url}/rpc"}
        with (
            ScriptedRemote({STREAM: always(Reply(status=307, **elsewhere))}) as remote,
            served(tmp_path, remote) as agent,
        ):
            ended = agent.send("go")
            assert (state(ended), reason(ended)) == ("FAILED", "MISDIRECTED_REQUEST")
        folder = tmp_path / "card"
        folder.mkdir()
        # A card may be anybody's word: the credential goes to the origins of the configuration alone.
        with ScriptedRemote({}, supportedInterfaces=card_of(other.url)["supportedInterfaces"]) as remote:
            with served(folder, remote) as agent:
                ended = agent.send("go")
                assert words(ended) == "The remote agent cannot be called."
                assert other.requests == []
            with served(folder, remote, origins=[other.url]) as agent:
                assert state(agent.send("go")) == "COMPLETED"
                assert other.requests[0][2]["authorization"] == f"Bearer {TOKEN}"


def test_a_message_that_may_have_arrived_is_sent_again_where_that_is_the_same(tmp_path: Path) -> None:
    replies = iter([Reply(), None])

    def play(call: Json) -> Reply:
        return next(replies) or stream(BEGUN, update("COMPLETED"))(call)

    with ScriptedRemote({STREAM: play}) as remote, served(tmp_path, remote, idempotent=True) as agent:
        ended = agent.send("go")
        assert state(ended) == "COMPLETED"
        assert [one["messageId"] for one in remote.sent()] == [f"{ended['id']}-1"] * 2


def test_a_remote_agent_that_declares_our_extension_takes_a_message_once(tmp_path: Path) -> None:
    uri = "urn:dragoman:ext:idempotency:v1"
    replies = iter([Reply(), None])

    def play(call: Json) -> Reply:
        return next(replies) or stream(BEGUN, update("COMPLETED"))(call)

    declared = {"streaming": True, "extensions": [{"uri": uri}]}
    with ScriptedRemote({STREAM: play}, capabilities=declared) as remote, served(tmp_path, remote) as agent:
        assert state(agent.send("go")) == "COMPLETED"
        assert [one[2].get("a2a-extensions") for one in remote.requests if one[0] == "POST"] == [uri] * 2
        # It is that server's own matter, not one of our callers.
        assert "extensions" not in agent.card()["capabilities"]


def started(server: ServerProcess, remote: ScriptedRemote, count: int) -> Agent:
    """The agent, once the remote one was sent so many messages."""
    until(lambda: len(remote.sent()) == count, what=f"{count} sends")
    return agent_at(server, "clerk")


@pytest.mark.parametrize("idempotent", [False, True])
def test_a_send_that_a_crash_interrupted_is_repeated_only_where_that_is_the_same(
    tmp_path: Path, idempotent: bool
) -> None:
    with (
        ScriptedRemote({STREAM: always(Reply(HOLD))}) as remote,
        gateway(tmp_path, {"clerk": remote.url}, idempotent=idempotent) as server,
    ):
        running = agent_at(server, "clerk").send("go", now=True)
        started(server, remote, 1)
        server.kill()
        remote.plays[STREAM] = stream(BEGUN, chunk("x", append=False), update("COMPLETED"))
        server.start()
        agent = agent_at(server, "clerk")
        ended = until(
            lambda: found if state(found := agent.get(running["id"])) in ("FAILED", "COMPLETED") else None,
            what="an end",
        )
        if idempotent:
            assert (state(ended), artifacts(ended)) == ("COMPLETED", {"a": "x"})
            assert [one["messageId"] for one in remote.sent()] == [f"{running['id']}-1"] * 2
        else:
            assert (state(ended), reason(ended)) == ("FAILED", "OUTCOME_UNKNOWN")
            assert len(remote.sent()) == 1
