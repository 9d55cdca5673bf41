"""What holds of every remote agent that we serve, whatever it speaks: run by the tests of each version."""

from typing import Any

from tests.harness.polling import until
from tests.harness.wire import call
from tests.interop.remotes.gateway import TOKEN, Agent, artifacts, said, state, text_of, words
from tests.interop.remotes.processes import RemoteServer

RAW = {"raw": "AAEC/w==", "mediaType": "application/octet-stream", "filename": "bytes.bin"}
URL = {"url": "https://example.org/a%20b?c=d", "mediaType": "image/png", "filename": "link"}
DATA = {"data": {"kind": "file", "n": [1, None, {"é": "名"}]}, "metadata": {"origin": {"kind": "part"}}}
NAMED = {"text": "named", "filename": "notes.txt", "mediaType": "text/x-notes"}
LIST = {"data": [1, "2", None]}


def check_card(agent: Agent, remote: RemoteServer) -> None:
    """Our card says what the remote one says, with our places and our signature."""
    card = agent.card()
    assert (card["name"], card["description"], card["version"]) == (
        "Clerk",
        "Does as the first word says.",
        "3.1",
    )
    assert card["skills"][0] == {
        "id": "clerk", "name": "Clerk", "description": "Obeys.", "tags": ["test"], "examples": ["echo"],
    }  # fmt: skip
    assert card["defaultInputModes"] == ["text/plain", "image/png"]
    assert card["capabilities"]["extensions"] == [
        {"uri": "https://example.com/ext/tone/v1", "description": "Tone."}
    ]
    assert {one["url"].rpartition("/agents/")[0] for one in card["supportedInterfaces"]} == {
        agent.url.rpartition("/agents/")[0]
    }
    assert card["signatures"]
    assert remote.url not in str(card)


def check_parts(agent: Agent, remote: RemoteServer) -> None:
    """Every kind of part and all metadata come there and back; the credential goes along, and no context of ours."""
    sent: list[dict[str, Any]] = [{"text": "echo"}, NAMED, RAW, URL, DATA, LIST]
    before = len(remote.desk()["requests"])
    task = agent.send("", parts=sent, metadata={"trace": {"n": 3}})
    assert state(task) == "COMPLETED"
    (artifact,) = task["artifacts"]
    assert artifact["parts"] == sent
    assert (artifact["artifactId"], artifact["name"]) == ("echo", "Echo")
    assert artifact["metadata"] == {"told": {"trace": {"n": 3}}}
    assert words(task) == "done"
    assert [text_of(one) for one in task["history"] if one["role"] == "ROLE_AGENT"] == ["at work"]
    requests = remote.desk()["requests"][before:]
    assert {one["headers"]["authorization"] for one in requests} == {f"Bearer {TOKEN}"}
    assert [one["method"] for one in requests if "send" in one["path"] or "stream" in one["path"]] in (
        ["POST"],
        [],
    )
    message = remote.desk()["messages"][-1]
    # One for each run, and one for each caller's context.
    assert message["messageId"] == f"{task['id']}-1"
    assert task["contextId"] not in str(message)


def check_stream(agent: Agent, remote: RemoteServer) -> None:
    """What the remote agent tells is told as it comes, the marks of its chunks among it."""
    told: list[str] = []
    flags = []
    statuses = []
    with agent.stream("hold") as events:
        for event in events:
            if "statusUpdate" in event:
                statuses.append(event["statusUpdate"])
            if "artifactUpdate" in event:
                update = event["artifactUpdate"]
                told.append(text_of(update["artifact"]))
                flags.append((update.get("append", False), update.get("lastChunk", False)))
                if len(told) < 3:
                    # Only now does the remote agent go on: what was told before it was told in time.
                    remote.release()
    assert told == ["one ", "two ", "three"]
    streams = "poll" not in remote.options
    # A task as it stands does not tell whether a chunk was the last.
    assert flags == [(False, False), (True, False), (True, streams)]
    said_by = [text_of(one["status"]["message"]) for one in statuses if "message" in one["status"]]
    assert (said_by, state(statuses[-1])) == (["begun"], "COMPLETED")
    if streams:
        assert [state(one) for one in statuses] == ["WORKING", "COMPLETED"]


def check_questions(agent: Agent, remote: RemoteServer) -> None:
    """A question comes to the caller, and the answer to the same task of the remote agent."""
    for word, waits, says in (
        ("ask", "INPUT_REQUIRED", "Which one?"),
        ("auth", "AUTH_REQUIRED", "Please log in."),
    ):
        asked = agent.send(word)
        assert (state(asked), words(asked)) == (waits, says)
        answered = agent.send("the red one", taskId=asked["id"])
        assert state(answered) == "COMPLETED"
        assert artifacts(answered)["answer"] == "answered: the red one"
        first, second = remote.desk()["messages"][-2:]
        assert (first["messageId"], second["messageId"]) == (f"{asked['id']}-1", f"{asked['id']}-2")
        assert first["contextId"] == second["contextId"]
        assert second["taskId"]
    assert artifacts(agent.send("ask"))["draft"] == "so far"


def check_two_questions(agent: Agent) -> None:
    """A remote agent may ask again, and the next question is told from the one that was answered."""
    asked = agent.send("a journey")
    again = agent.send("Rome", taskId=asked["id"])
    assert (state(again), words(again)) == ("INPUT_REQUIRED", "When?")
    done = agent.send("Monday", taskId=asked["id"])
    assert (state(done), artifacts(done)["answer"]) == ("COMPLETED", "answered: Monday")


def check_endings(agent: Agent) -> None:
    """How the remote agent ends its task is how ours ends, and a bare message is one here too."""
    for word, ends, says in (("reject", "REJECTED", "I will not."), ("fail", "FAILED", "I cannot.")):
        task = agent.send(word)
        assert (state(task), words(task)) == (ends, says)
    message = agent.send("message")["message"]
    assert (message["role"], text_of(message), message.get("taskId")) == ("ROLE_AGENT", "bare", None)


def check_refusal(agent: Agent) -> None:
    """An error of the remote agent has its meaning here."""
    refused = agent.send("refuse")
    assert state(refused) == "REJECTED"
    assert words(refused) == (
        "The remote agent refused the message (CONTENT_TYPE_NOT_SUPPORTED). It says: no such thing is taken here"
    )
    assert refused["status"]["message"]["metadata"] == {
        "urn:dragoman:ext:remote:v1": {"reason": "CONTENT_TYPE_NOT_SUPPORTED"}
    }


def check_cancel(agent: Agent, remote: RemoteServer) -> None:
    """A cancel comes to the task of the remote agent."""
    running = agent.send("hold", now=True)
    came = len(remote.desk()["cancelled"])
    until(lambda: state(agent.get(running["id"])) == "WORKING", what="the task works")
    assert state(agent.cancel(running["id"]).json()) == "CANCELED"
    until(lambda: len(remote.desk()["cancelled"]) == came + 1, what="the remote agent is told")
    assert state(agent.get(running["id"])) == "CANCELED"


def check_extensions(agent: Agent, remote: RemoteServer) -> None:
    """An extension of the remote agent that a caller activates is activated there."""
    uri = "https://example.com/ext/tone/v1"
    before = len(remote.desk()["requests"])
    reply = call(
        "POST", f"{agent.url}/message:send", said("echo", False, None, {}), headers={"A2A-Extensions": uri}
    )
    assert reply.headers["a2a-extensions"] == uri
    headers = remote.desk()["requests"][before]["headers"]
    assert uri in (headers.get("a2a-extensions"), headers.get("x-a2a-extensions"))
