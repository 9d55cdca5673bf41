"""Results: one verified text, gathered from whatever an agent gives, and bounded."""

import hashlib
from typing import Any

import pytest

from tests.harness.polling import until
from tests.interaction.answers import Reply, refused
from tests.interaction.following import ended, got, sent
from tests.interaction.hosted.callers import TOO_LARGE_RESULT, Hosted
from tests.interaction.hosted.requirements import covers
from tests.interaction.messages import send_params

MIB = 1024 * 1024


def result_of(task: dict[str, Any]) -> str:
    """The text of a task's one artifact, which must be what its checksum and byte count say."""
    assert task["status"]["state"] == "TASK_STATE_COMPLETED", task["status"]
    assert "message" not in task["status"]
    (artifact,) = task["artifacts"]
    (part,) = artifact["parts"]
    content = part["text"].encode()
    assert part == {"text": part["text"], "mediaType": "text/markdown"}
    assert artifact["metadata"] == {
        "sha256": hashlib.sha256(content).hexdigest(),
        "byteCount": len(content),
    }
    return str(part["text"])


def failure_of(task: dict[str, Any]) -> str:
    """What a failed task says; it has no artifact."""
    assert task["status"]["state"] == "TASK_STATE_FAILED", task
    assert not task.get("artifacts")
    (part,) = task["status"]["message"]["parts"]
    return str(part["text"])


@covers("output.result", "get.verified")
@pytest.mark.parametrize("text", ["hello", "# Größe\n\n- 名前 🕊\n", "\0\u2028"])
def test_a_result_is_one_markdown_text_with_its_checksum_and_byte_count(alice: Hosted, text: str) -> None:
    task = sent(alice, text)
    assert result_of(task) == text
    assert result_of(got(alice, task["id"])) == text


@covers("output.result")
def test_its_id_stays_the_same_wherever_it_is_read(alice: Hosted) -> None:
    params = send_params("hello")
    with alice.open("SendStreamingMessage", params) as stream:
        (streamed,) = [item.value["artifact"] for item in stream.rest() if item.kind == "artifactUpdate"]
    task = alice.call("SendMessage", params).task
    (listed,) = alice.call("ListTasks", {"contextId": task["contextId"], "includeArtifacts": True}).result[
        "tasks"
    ]
    read = got(alice, task["id"])
    assert [streamed] == task["artifacts"] == read["artifacts"] == listed["artifacts"]
    assert streamed["artifactId"] == f"{task['id']}-1"


@covers("output.gathered")
@pytest.mark.parametrize(
    ("agent", "text", "result"),
    [
        ("demo", "stream 3", "chunk 1 chunk 2 chunk 3 "),
        ("demo", "message hello", "hello"),
        ("probe", "pieces", "one two three\n\nfour\n\nfive"),
        ("bare", "hello", "told hello"),
        ("mixed", "hello", "told hello"),
    ],
)
def test_whatever_pieces_of_text_an_agent_gives_are_one_result(
    alice: Hosted, agent: str, text: str, result: str
) -> None:
    assert result_of(sent(alice.to(agent), text)) == result


@covers("output.entered-again")
def test_what_steps_gave_is_in_the_result_of_a_run_that_was_entered_again(probe: Hosted) -> None:
    task = sent(probe, "steps")
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    assert not task.get("artifacts")
    assert probe.resume(task["id"], "on").status == 200
    assert result_of(ended(probe, task["id"])) == "drawn\n\nthen on"


@covers("output.other")
@pytest.mark.parametrize("kind", ["file", "url", "data"])
@pytest.mark.parametrize("how", ["other", "shown", "asked"])
def test_an_agent_that_gives_anything_but_text_has_failed(probe: Hosted, kind: str, how: str) -> None:
    task = sent(probe, f"{how} {kind}")
    assert failure_of(task) == "The agent gave something else than text."
    assert failure_of(got(probe, task["id"])) == "The agent gave something else than text."


@covers("output.other")
@pytest.mark.parametrize("word", ["file", "data"])
def test_so_has_the_demo_agent_where_it_gives_such_things(alice: Hosted, word: str) -> None:
    failure_of(sent(alice, word))


@covers("output.none")
def test_an_agent_that_gives_nothing_has_failed(probe: Hosted) -> None:
    assert failure_of(sent(probe, "nothing")) == "The agent ended without a result."


@covers("output.large", "json.tasks")
@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("text 1000000", True),
        ("text 1044478", True),
        ("text 1044479", False),
        ("text 1048577", False),
        ("text 3000000", False),
        ("escapes 174000", True),
        ("escapes 174800", False),
    ],
)
def test_a_result_may_have_as_much_as_a_reply_can_hold(probe: Hosted, text: str, taken: bool) -> None:
    task = sent(probe, text)
    if not taken:
        assert "more than fits into a reply" in failure_of(task)
        return
    reply = probe.call("GetTask", {"id": task["id"]})
    assert len(reply.body) <= MIB
    word, count = text.split()
    assert result_of(reply.result) == ("x" if word == "text" else "\x01") * int(count)
    assert result_of(task) == result_of(reply.result)


@covers("json.tasks")
def test_a_task_that_is_too_large_loses_its_oldest_messages(probe: Hosted) -> None:
    params = send_params("said 30 60000")
    reply = probe.call("SendMessage", params)
    task_id = reply.task["id"]
    for answer, task in (
        (reply, reply.task),
        (again := probe.call("GetTask", {"id": task_id}), again.result),
    ):
        assert 300_000 < len(answer.body) <= MIB + 100
        assert 5 <= len(task["history"]) < 18
        assert task["history"][-1]["role"] == "ROLE_AGENT"
        assert result_of(task) == "said"
    one = got(probe, task_id, historyLength=1)["history"]
    assert one == task["history"][-1:]


@covers("json.tasks")
def test_what_is_too_large_without_any_history_is_an_error_and_can_be_cancelled(probe: Hosted) -> None:
    """Nothing bounds what an agent says of its progress, as it is bound in what it gives."""
    task_id = sent(probe, "loud 1100000", wait=False)["id"]

    def answer() -> Reply:
        return probe.call("GetTask", {"id": task_id, "historyLength": 0})

    until(lambda: answer().reason == "RESULT_TOO_LARGE", what="the agent has said it")
    refused(answer(), TOO_LARGE_RESULT, identifier=1)
    cancelled = probe.call("CancelTask", {"id": task_id})
    assert len(cancelled.body) <= MIB
    assert cancelled.result["status"]["state"] == "TASK_STATE_CANCELED"
    assert got(probe, task_id, historyLength=1)["status"]["state"] == "TASK_STATE_CANCELED"


@covers("json.pages", "list.artifacts")
def test_a_page_of_large_results_holds_fewer_tasks_and_goes_on(alice: Hosted) -> None:
    mine = alice.by("HUGO").to("probe")
    sizes = [300_000, 300_000, 500_000, 900_000, 1_000_000]
    tasks = [sent(mine, f"text {size}")["id"] for size in sizes]
    found: list[str] = []
    token, pages = "", 0
    while True:
        params = {"includeArtifacts": True, "pageSize": 100, "pageToken": token}
        reply = mine.call("ListTasks", params)
        assert len(reply.body) <= MIB
        page = reply.result
        assert page["totalSize"] == len(tasks)
        found += [task["id"] for task in page["tasks"]]
        assert all(result_of(task) for task in page["tasks"])
        token, pages = page["nextPageToken"], pages + 1
        if not token:
            break
    assert found == tasks[::-1]
    assert pages == 4
    assert len(mine.call("ListTasks").result["tasks"]) == len(tasks), "without them all fit on one page"


@covers("json.pages")
def test_a_page_of_one_large_task_leaves_its_history_out(alice: Hosted) -> None:
    mine = alice.by("BOB").to("probe")
    task = sent(mine, "said 40 60000")
    params = {"contextId": task["contextId"], "historyLength": 1000}
    reply = mine.call("ListTasks", params)
    assert len(reply.body) <= MIB
    (listed,) = reply.result["tasks"]
    assert (listed["id"], listed.get("history", [])) == (task["id"], [])
